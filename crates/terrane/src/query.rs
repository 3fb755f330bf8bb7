//! Heights and derivatives on the ground at points.

use serde_json::{Value, json};
use terrane_codec::{Sample, Surface, Terrain};
use terrane_geo::{Derivatives, Ground, GroundScale, Projection, System};

use crate::Result;
use crate::georeferencing::{georeference, size};

/// The surface at a point, in metres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroundSample {
    /// Height in metres.
    pub height: f64,
    /// Derivatives on the ground, x east and y north.
    pub derivatives: Derivatives,
}

impl GroundSample {
    /// A sample in map units, and how the map lies on the ground there.
    pub fn new(sample: &Sample, ground: Ground) -> Self {
        Self {
            height: sample.height,
            derivatives: Derivatives::on_ground(sample.gradient, sample.hessian, ground),
        }
    }
}

/// The continuous surface of a file with its derivatives on the ground.
#[derive(Debug)]
pub struct GroundSurface<'a> {
    surface: Surface<'a>,
    scale: GroundScale,
}

impl<'a> GroundSurface<'a> {
    /// The surface of a file at full resolution.
    pub fn new(terrain: &'a Terrain) -> Result<Self> {
        Ok(Self {
            surface: terrain.surface()?,
            scale: GroundScale::of_raster(&georeference(terrain.header()), size(terrain))?,
        })
    }

    /// The surface at a point of the map; `None` where there is no data.
    pub fn at(
        &self,
        x: f64,
        y: f64,
    ) -> std::result::Result<Option<GroundSample>, terrane_codec::Error> {
        match self.surface.at(x, y) {
            Ok(sample) => Ok(Some(GroundSample::new(&sample, self.scale.at(x, y)))),
            Err(terrane_codec::Error::NoHeight { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The surface at many points of the map, in their order; every tile is decoded about once.
    pub fn at_points(
        &self,
        points: &[(f64, f64)],
        jobs: usize,
    ) -> Result<Vec<Option<GroundSample>>> {
        let samples = self.surface.at_points(points, jobs)?;
        Ok(samples
            .iter()
            .zip(points)
            .map(|(sample, &(x, y))| {
                let sample = sample.as_ref()?;
                Some(GroundSample::new(sample, self.scale.at(x, y)))
            })
            .collect())
    }
}

/// What is known at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointReport {
    /// Map coordinates of the file.
    pub x: f64,
    /// Map coordinates of the file.
    pub y: f64,
    /// The surface there; `None` where there is no data.
    pub sample: Option<GroundSample>,
}

impl PointReport {
    /// The report as JSON, `null` for what is not defined.
    pub fn json(&self) -> Value {
        let Self { x, y, sample } = self;
        let Some(GroundSample {
            height,
            derivatives,
        }) = sample
        else {
            return json!({ "x": x, "y": y, "height_m": Value::Null });
        };
        json!({
            "x": x, "y": y, "height_m": height,
            "gradient_east": derivatives.gradient[0], "gradient_north": derivatives.gradient[1],
            "slope_deg": derivatives.slope_deg(), "aspect_deg": derivatives.aspect_deg(),
            "laplacian_per_m": derivatives.laplacian(),
            "profile_curvature_per_m": Some(derivatives.profile_curvature()).filter(|value| !value.is_nan()),
            "plan_curvature_per_m": derivatives.plan_curvature(),
            "hessian_per_m": derivatives.hessian,
        })
    }
}

/// The surface at points, which are in the file's own system unless `epsg` is the code of another.
pub fn query(
    terrain: &Terrain,
    points: &[(f64, f64)],
    epsg: Option<u16>,
    jobs: usize,
) -> Result<Vec<PointReport>> {
    let surface = GroundSurface::new(terrain)?;
    let own = System::of_raster(&georeference(terrain.header()), size(terrain));
    let points = match (epsg, own) {
        // Longitudes are counted around the raster.
        (None, Ok(own)) => points.iter().map(|&(x, y)| (own.near(x), y)).collect(),
        (None, Err(_)) => points.to_vec(),
        (Some(epsg), own) => {
            let projection = Projection::new(&System::epsg(epsg)?, &own?)?;
            let convert = |&(x, y): &(f64, f64)| Ok(projection.apply(x, y)?);
            points.iter().map(convert).collect::<Result<Vec<_>>>()?
        }
    };
    let samples = surface.at_points(&points, jobs)?;
    Ok(points
        .into_iter()
        .zip(samples)
        .map(|((x, y), sample)| PointReport { x, y, sample })
        .collect())
}
