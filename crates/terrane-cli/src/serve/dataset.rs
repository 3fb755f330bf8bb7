//! One file that is served: where it lies on the web map, and its surface.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use terrane_codec::format::ErrorBound;
use terrane_codec::{Sample, Terrain, shown};
use terrane_geo::{
    Affine, Crs, CrsKind, Georeference, GroundScale, Product, Projection, RasterSource,
};

use crate::placement::georeference;

use super::blocks::Blocks;
use super::layer::Layer;
use super::limits::Deadline;
use super::mercator::{MOST_ZOOM, TileId, degrees, position};
use super::patch::{BlockStore, Patch, TooCoarse, is_small};
use super::warp::{Frame, Place};

/// Points along each edge of a raster that are converted to find its bounds.
const EDGE_POINTS: usize = 33;
/// At the least zoom a raster is so many pixels across.
const LEAST_PIXELS: f64 = 48.0;
/// Curvature at the end of its colours, times the side of a pixel.
const CURVATURE_PER_PIXEL: f64 = 1.0;
/// The same for contour lines, which bend the more the flatter the ground.
const PLAN_CURVATURE_PER_PIXEL: f64 = 4.0;
/// The end of the colours of a difference where nothing was lost.
const LOSSLESS_LIMIT_M: f64 = 1e-3;

/// Heights of a file that says so itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub(crate) lowest_m: f64,
    pub(crate) highest_m: f64,
}

/// One file that is served.
pub(crate) struct Dataset {
    pub(crate) name: String,
    /// Tells files apart in the store of blocks.
    number: u64,
    /// Changes when the file does.
    pub(crate) identity: String,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    pub(crate) terrain: Option<Arc<Terrain>>,
    pub(crate) crs: Crs,
    pub(crate) bounds: [f64; 4],
    pub(crate) zooms: std::ops::RangeInclusive<u8>,
    pub(crate) range: Range,
    /// Side of a pixel in metres.
    pub(crate) pixel_m: f64,
    /// The raster that the file was made from.
    pub(crate) original: Option<Arc<Dataset>>,
    blocks: Blocks,
    affine: Affine,
    to_own: Projection,
    pub(crate) scale: GroundScale,
    /// The zoom at which a pixel of a tile of 256 is as large as one of the raster.
    native_zoom: f64,
    /// The first zoom that the overviews reach.
    first_zoom: u8,
}

impl Dataset {
    /// A neural terrain file; `head` is what it begins with.
    pub(crate) fn of_terrain(
        name: String,
        number: u64,
        path: &Path,
        (terrain, head): (Terrain, &[u8]),
        original: Option<Arc<Self>>,
    ) -> Result<Self> {
        let terrain = Arc::new(terrain);
        let header = terrain.header();
        let place = georeference(header);
        let statistics = &header.statistics;
        let range = Range {
            lowest_m: statistics.lowest_m,
            highest_m: statistics.highest_m,
        };
        // The head holds the checksums of the index, which holds those of the tiles.
        let identity = hex::encode(&Sha256::digest(head)[..8]);
        let blocks = Blocks::of_terrain(terrain.clone())?;
        let bytes = terrain.reader().length();
        let mut dataset = Self::place(name, number, &place, blocks)
            .with_context(|| format!("{} cannot be put on a web map", shown(path)))?;
        dataset.identity = identity;
        dataset.bytes = bytes;
        dataset.range = range;
        dataset.terrain = Some(terrain);
        dataset.original = original;
        Ok(dataset)
    }

    /// The raster that a file was made from.
    pub(crate) fn of_raster(
        name: String,
        number: u64,
        path: &Path,
        raster: Box<dyn RasterSource>,
        range: Range,
    ) -> Result<Self> {
        let place = raster.info().georeference.clone();
        let metadata =
            std::fs::metadata(path).with_context(|| format!("{} cannot be read", shown(path)))?;
        let changed = metadata
            .modified()
            .ok()
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let blocks = Blocks::of_raster(raster)?;
        let mut dataset = Self::place(name, number, &place, blocks)
            .with_context(|| format!("{} cannot be put on a web map", shown(path)))?;
        dataset.identity = format!(
            "{}-{}",
            metadata.len(),
            changed.unwrap_or_default().as_nanos()
        );
        dataset.bytes = metadata.len();
        dataset.range = range;
        Ok(dataset)
    }

    fn place(name: String, number: u64, place: &Georeference, blocks: Blocks) -> Result<Self> {
        ensure!(
            place.placed,
            "it does not say where it lies; give its raster a transform and encode it again"
        );
        let own = place.crs.horizontal_epsg();
        if place.crs.kind() == CrsKind::Geocentric {
            bail!("its coordinates are earth-centred");
        }
        let to_own = Projection::new(4326, own)?;
        let from_own = Projection::new(own.unwrap_or_default(), Some(4326))?;
        let affine = place.affine();
        ensure!(
            affine.invert(0.0, 0.0).is_some(),
            "its transform cannot be inverted"
        );
        let size = blocks.size(0);
        let bounds = bounds(&affine, size, &from_own)?;
        let scale = GroundScale::of(&place.crs)?;
        let mut dataset = Self {
            name,
            number,
            identity: String::new(),
            bytes: 0,
            terrain: None,
            crs: place.crs.clone(),
            bounds,
            zooms: 0..=0,
            range: Range {
                lowest_m: 0.0,
                highest_m: 0.0,
            },
            pixel_m: scale.pixel_m(&affine, size),
            scale,
            original: None,
            blocks,
            affine,
            to_own,
            native_zoom: 0.0,
            first_zoom: 0,
        };
        let density = dataset.pixels_per_square(&from_own)?;
        dataset.native_zoom = (density / 256.0).log2();
        let across = size.0.max(size.1) as f64;
        let zoom = |value: f64| value.clamp(0.0, f64::from(MOST_ZOOM)) as u8;
        let least = zoom((dataset.native_zoom - (across / LEAST_PIXELS).log2()).floor());
        let last = dataset.blocks.last_level();
        let (columns, rows) = dataset.blocks.size(last);
        if !is_small(columns, rows) {
            // A tile's pixels are at most two of the coarsest overview across.
            dataset.first_zoom = zoom((dataset.native_zoom - f64::from(last) - 1.0).ceil());
        }
        // One zoom finer than the pixels: the surface between them is continuous.
        let most = zoom(dataset.native_zoom.ceil() + 1.0);
        dataset.zooms = least.max(dataset.first_zoom).min(most)..=most;
        Ok(dataset)
    }

    /// Pixels of the raster across the whole Web Mercator square, were all as at its middle.
    fn pixels_per_square(&self, from_own: &Projection) -> Result<f64> {
        const STEP: f64 = 1e-7;
        let (width, height) = self.blocks.size(0);
        let (x, y) = self.affine.apply(width as f64 / 2.0, height as f64 / 2.0);
        let (longitude, latitude) = from_own.apply(x, y)?;
        let middle = position(longitude, latitude);
        let at = |east: f64, south: f64| {
            let (longitude, latitude) = degrees(middle.0 + east, middle.1 + south);
            self.pixel(longitude, latitude)
                .context("its middle cannot be converted")
        };
        let slope =
            |from: Place, to: Place| [0, 1].map(|axis| (to[axis] - from[axis]) / (2.0 * STEP));
        let across = slope(at(-STEP, 0.0)?, at(STEP, 0.0)?);
        let down = slope(at(0.0, -STEP)?, at(0.0, STEP)?);
        let density = (across[0] * down[1] - across[1] * down[0]).abs().sqrt();
        ensure!(
            density.is_finite() && density > 0.0,
            "its pixels have no size on the ground"
        );
        Ok(density)
    }

    /// Map coordinates of a longitude and a latitude.
    pub(crate) fn map_point(&self, longitude: f64, latitude: f64) -> Option<(f64, f64)> {
        self.to_own.apply(longitude, latitude).ok()
    }

    /// The place in the raster of a longitude and a latitude.
    fn pixel(&self, longitude: f64, latitude: f64) -> Option<Place> {
        let (x, y) = self.map_point(longitude, latitude)?;
        let (column, row) = self.affine.invert(x, y)?;
        (column.is_finite() && row.is_finite()).then_some([column, row])
    }

    /// The level whose pixels are nearest in size to those of a tile; the same for all tiles of a zoom.
    pub(crate) fn level(&self, z: u8, side: usize) -> u8 {
        let zoom = f64::from(z) + (side as f64 / 256.0).log2();
        (self.native_zoom - zoom)
            .round()
            .clamp(0.0, f64::from(self.blocks.last_level())) as u8
    }

    /// The zooms at which a layer can be had: a difference needs both.
    pub(crate) fn zooms_of(&self, layer: Layer) -> std::ops::RangeInclusive<u8> {
        let (least, most) = (*self.zooms.start(), *self.zooms.end());
        match &self.original {
            Some(original) if layer == Layer::Difference => {
                least.max(*original.zooms.start()).min(most)..=most
            }
            _ => least..=most,
        }
    }

    /// The value at the end of a layer's colours at a zoom, where it depends on it.
    pub(crate) fn limit(&self, layer: Layer, z: u8, side: usize) -> f64 {
        let scale = f64::from(1_u32 << self.level(z, side));
        match layer {
            Layer::Difference => scale * self.stated_error_m().unwrap_or(LOSSLESS_LIMIT_M),
            Layer::Product(Product::PlanCurvature) => {
                PLAN_CURVATURE_PER_PIXEL / (scale * self.pixel_m)
            }
            _ => CURVATURE_PER_PIXEL / (scale * self.pixel_m),
        }
    }

    /// The error that the file promises or, without a promise, states; `None` where nothing was lost.
    fn stated_error_m(&self) -> Option<f64> {
        let header = self.terrain.as_ref()?.header();
        match header.bound {
            ErrorBound::MaxError(bound) => Some(bound),
            ErrorBound::Lossless { .. } => None,
            ErrorBound::None => Some(header.statistics.max_error_m),
        }
        .filter(|error| *error > 0.0)
    }

    /// Whether a tile and the raster have anything in common.
    pub(crate) fn meets(&self, tile: TileId) -> bool {
        let [west, south, east, north] = tile.bounds();
        let [left, bottom, right, top] = self.bounds;
        west <= right && east >= left && south <= top && north >= bottom
    }

    /// Places of a tile's pixels in the raster, and the pixels around them.
    pub(crate) fn patch(
        &self,
        store: &BlockStore,
        tile: TileId,
        side: usize,
        deadline: Deadline,
    ) -> Result<(Vec<Place>, Option<Patch>)> {
        if !self.meets(tile) {
            return Ok((Vec::new(), None));
        }
        if tile.z < self.first_zoom {
            return Err(TooCoarse.into());
        }
        let convert = |longitude, latitude| self.pixel(longitude, latitude);
        let places = Frame::new(tile, side).places(self.bounds, &convert);
        let level = self.level(tile.z, side);
        let patch = Patch::around(store, self.number, &self.blocks, level, &places, deadline)?;
        Ok((places, patch))
    }

    /// The surface at a point of the map, at full resolution: the file's own, or the one through the raster's pixels.
    pub(crate) fn sample(
        &self,
        store: &BlockStore,
        x: f64,
        y: f64,
        deadline: Deadline,
    ) -> Result<Option<Sample>> {
        deadline.check()?;
        if let Some(terrain) = &self.terrain {
            return match terrain.surface()?.at(x, y) {
                Ok(sample) => Ok(Some(sample)),
                Err(terrane_codec::Error::NoHeight { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            };
        }
        let Some((column, row)) = self.affine.invert(x, y) else {
            return Ok(None);
        };
        let place = [column, row];
        let patch = Patch::around(store, self.number, &self.blocks, 0, &[place], deadline)?;
        Ok(patch
            .and_then(|patch| patch.jet(place))
            .map(|jet| self.in_map_units(jet)))
    }

    /// A sample in map units from one in pixels.
    pub(crate) fn in_map_units(&self, jet: terrane_codec::kernel::PixelJet) -> Sample {
        let Affine {
            x_per_column: a,
            x_per_row: b,
            y_per_column: c,
            y_per_row: d,
            ..
        } = self.affine;
        let determinant = a * d - b * c;
        // Columns and rows per unit of x and of y.
        let (by_x, by_y) = (
            [d / determinant, -c / determinant],
            [-b / determinant, a / determinant],
        );
        let first = |v: [f64; 2]| jet.x * v[0] + jet.y * v[1];
        let second = |v: [f64; 2], w: [f64; 2]| {
            jet.xx * v[0] * w[0] + jet.xy * (v[0] * w[1] + v[1] * w[0]) + jet.yy * v[1] * w[1]
        };
        Sample {
            height: jet.value,
            gradient: [first(by_x), first(by_y)],
            hessian: [second(by_x, by_x), second(by_x, by_y), second(by_y, by_y)],
        }
    }

    /// Metres per map unit at a pixel of the raster.
    pub(crate) fn unit_m(&self, place: Place) -> [f64; 2] {
        let (_, y) = self.affine.apply(place[0], place[1]);
        self.scale.at(y)
    }
}

/// West, south, east and north of a raster in degrees.
fn bounds(
    affine: &Affine,
    (width, height): (usize, usize),
    from_own: &Projection,
) -> Result<[f64; 4]> {
    let mut bounds = [
        f64::INFINITY,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NEG_INFINITY,
    ];
    for step in 0..EDGE_POINTS {
        let part = step as f64 / (EDGE_POINTS - 1) as f64;
        let (across, down) = (part * width as f64, part * height as f64);
        for (column, row) in [
            (across, 0.0),
            (across, height as f64),
            (0.0, down),
            (width as f64, down),
        ] {
            let (x, y) = affine.apply(column, row);
            let (longitude, latitude) = from_own.apply(x, y)?;
            bounds[0] = bounds[0].min(longitude);
            bounds[1] = bounds[1].min(latitude);
            bounds[2] = bounds[2].max(longitude);
            bounds[3] = bounds[3].max(latitude);
        }
    }
    ensure!(
        bounds.iter().all(|degrees| degrees.is_finite())
            && bounds[0] >= -181.0
            && bounds[2] <= 181.0
            && bounds[1] >= -90.1
            && bounds[3] <= 90.1,
        "it lies outside the world"
    );
    Ok([
        bounds[0].max(-180.0),
        bounds[1].max(-90.0),
        bounds[2].min(180.0),
        bounds[3].min(90.0),
    ])
}
