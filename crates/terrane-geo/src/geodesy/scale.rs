//! Metres on the ground per unit of a map.

use super::GeodesyError;
use super::epsg::{definition, number, parameter, unit_m};
use crate::{Affine, Crs, CrsKind, HeightUnit};

/// A degree of latitude in the mean, on a sphere of the Earth's size.
pub const METRES_PER_DEGREE: f64 = 111_195.0;

/// The radius of the Earth in Mercator's projection; that of the ellipsoid differs by a third of a percent at most.
const MERCATOR_RADIUS_M: f64 = 6_378_137.0;

/// How many metres on the ground a unit of a map is, which may depend on the position. All slopes, curvatures and pixel
/// sizes use it, so that they are the same wherever they are asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GroundScale {
    /// The same everywhere.
    Constant(f64),
    /// Longitudes and latitudes in degrees.
    Degrees,
    /// Mercator's projection, whose unit shrinks away from the equator.
    Mercator {
        /// Metres per unit of the map, on the map.
        unit_m: f64,
        /// The map's metres per metre on the equator.
        equator: f64,
        /// What is added to all northings, in units of the map.
        northing: f64,
    },
}

impl GroundScale {
    /// The scale of a system; one that states no unit counts as metric.
    pub fn of(crs: &Crs) -> Result<Self, GeodesyError> {
        if crs.kind() == CrsKind::Geographic {
            return Ok(Self::Degrees);
        }
        let unit_m = match crs.linear_unit_code() {
            None => crs.horizontal_epsg().and_then(unit_m).unwrap_or(1.0),
            Some(code) => HeightUnit::from_epsg_unit(code)
                .ok_or(GeodesyError::UnknownUnit { code })?
                .metres(),
        };
        let definition = crs.horizontal_epsg().and_then(definition);
        let definition = definition.as_deref().unwrap_or("");
        if parameter(definition, "+proj=") != Some("merc") {
            return Ok(Self::Constant(unit_m));
        }
        let number = |key: &str| parameter(definition, key).and_then(number);
        let parallel = number("+lat_ts=").map(|latitude| latitude.to_radians().cos());
        Ok(Self::Mercator {
            unit_m,
            equator: number("+k=")
                .or_else(|| number("+k_0="))
                .or(parallel)
                .unwrap_or(1.0),
            northing: number("+y_0=").unwrap_or(0.0) / unit_m,
        })
    }

    /// Whether a unit is as many metres everywhere.
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }

    /// Metres per unit of x and of y at a y of the map.
    pub fn at(&self, y: f64) -> [f64; 2] {
        match *self {
            Self::Constant(unit_m) => [unit_m; 2],
            Self::Degrees => [METRES_PER_DEGREE * y.to_radians().cos(), METRES_PER_DEGREE],
            Self::Mercator {
                unit_m,
                equator,
                northing,
            } => {
                let angle = (y - northing) * unit_m / (MERCATOR_RADIUS_M * equator);
                // The cosine of the latitude.
                [unit_m * angle.cosh().recip() / equator; 2]
            }
        }
    }

    /// Side of a pixel in metres, the root of its area, at the middle of a raster of `width` × `height` pixels.
    pub fn pixel_m(&self, affine: &Affine, (width, height): (usize, usize)) -> f64 {
        let (_, y) = affine.apply(width as f64 / 2.0, height as f64 / 2.0);
        let [x_m, y_m] = self.at(y);
        affine.pixel_size() * (x_m * y_m).abs().sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(crs: &Crs, y: f64) -> [f64; 2] {
        GroundScale::of(crs).unwrap().at(y)
    }

    #[test]
    fn a_unit_of_a_web_map_shrinks_away_from_the_equator() {
        let crs = Crs::projected(3857, None);
        let is_constant = |crs: &Crs| GroundScale::of(crs).unwrap().is_constant();
        assert!(!is_constant(&crs) && is_constant(&Crs::projected(2056, None)));
        assert_eq!(at(&crs, 0.0), [1.0; 2]);
        // 60° north, by the definition of the projection.
        let y = MERCATOR_RADIUS_M * 75_f64.to_radians().tan().ln();
        let [x_m, y_m] = at(&crs, y);
        assert!((x_m - 0.5).abs() < 1e-12 && x_m == y_m, "{x_m}");
        // World Mercator is on the ellipsoid.
        let [x_m, _] = at(&Crs::projected(3395, None), y);
        assert!((x_m - 0.5).abs() < 2e-3, "{x_m}");
    }

    #[test]
    fn a_pixel_is_measured_on_the_ground() {
        let pixel_m =
            |crs: &Crs, affine: Affine| GroundScale::of(crs).unwrap().pixel_m(&affine, (10, 10));
        let metres = Affine::north_up(2_600_000.0, 1_200_000.0, 0.5);
        assert_eq!(pixel_m(&Crs::projected(2056, None), metres), 0.5);
        // A system whose code alone tells that it is in feet.
        let feet = pixel_m(&Crs::projected(2263, None), metres);
        assert!((feet - 0.5 * 1200.0 / 3937.0).abs() < 1e-12);
        let degrees = Affine::north_up(7.0, 60.005, 0.001);
        let expected = METRES_PER_DEGREE * 0.001 * 0.5_f64.sqrt();
        assert!((pixel_m(&Crs::geographic(4326, None), degrees) - expected).abs() < 1e-6);
    }
}
