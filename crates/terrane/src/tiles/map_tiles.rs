//! A file on the web map: its bounds and zooms, its tiles and its surface.

use std::ops::RangeInclusive;
use std::sync::Arc;

use terrane_codec::format::ErrorBound;
use terrane_codec::{InverseTransform, Sample, Terrain};
use terrane_geo::geodesy::WGS_84;
use terrane_geo::{
    Affine, Crs, CrsKind, Georeference, GroundScale, Product, Projection, RasterSource, System,
};

use crate::change::bound_of;
use crate::georeferencing::georeference as georeference_of;
use crate::query::{GroundSample, PointReport};

use super::blocks::Blocks;
use super::bounds::{bounds, overlap};
use super::error::Result;
use super::mercator::{degrees, position};
use super::patch::{Patch, is_small};
use super::warp::{Frame, PixelPosition};
use super::{Before, BlockCache, Deadline, Layer, MAX_ZOOM, MapTile, TileError, TileRequest};

/// At the coarsest zoom a raster is so many pixels across.
const MIN_PIXELS: f64 = 48.0;
/// Curvature at the end of its colours, times the side of a pixel.
const CURVATURE_PER_PIXEL: f64 = 1.0;
/// The same for contour lines, which bend the more the flatter the ground.
const PLAN_CURVATURE_PER_PIXEL: f64 = 4.0;
/// The end of the colours of a difference where nothing was lost.
const LOSSLESS_LIMIT_M: f64 = 1e-3;
/// The heights that colours range over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeightRange {
    /// The lowest in metres.
    pub lowest_m: f64,
    /// The highest in metres.
    pub highest_m: f64,
}

impl HeightRange {
    /// The range that a file states.
    fn of(terrain: &Terrain) -> Self {
        let statistics = &terrain.header().statistics;
        Self {
            lowest_m: statistics.lowest_m,
            highest_m: statistics.highest_m,
        }
    }
}

/// A file on the web map.
pub struct MapTiles {
    terrain: Option<Arc<Terrain>>,
    original: Option<Arc<Self>>,
    before: Option<Before>,
    crs: Crs,
    range: HeightRange,
    bounds: [f64; 4],
    zooms: RangeInclusive<u8>,
    pixel_m: f64,
    cache: Arc<BlockCache>,
    /// Tells files apart in the cache.
    file: u64,
    blocks: Blocks,
    affine: Affine,
    inverse: InverseTransform,
    to_own: Projection,
    from_own: Projection,
    scale: GroundScale,
    /// The zoom at which a pixel of a tile of 256 is as large as one of the raster.
    native_zoom: f64,
    /// The first zoom that the overviews reach.
    first_zoom: u8,
}

impl MapTiles {
    /// The tiles of a file.
    pub fn open(terrain: Arc<Terrain>, cache: &Arc<BlockCache>) -> Result<Self> {
        let georeference = georeference_of(terrain.header());
        let range = HeightRange::of(&terrain);
        let blocks = Blocks::of_terrain(terrain.clone())?;
        let mut tiles = Self::new(&georeference, blocks, range, cache)?;
        tiles.terrain = Some(terrain);
        Ok(tiles)
    }

    /// The tiles of the raster that a file was made from, coloured as the file's.
    pub fn of_original(
        raster: Box<dyn RasterSource>,
        terrain: &Terrain,
        cache: &Arc<BlockCache>,
    ) -> Result<Self> {
        let georeference = raster.info().georeference.clone();
        let side = terrain.header().pyramid.side();
        let blocks = Blocks::of_raster(raster, side.into())?;
        Self::new(&georeference, blocks, HeightRange::of(terrain), cache)
    }

    /// The same tiles, with the raster that the file was made from to compare with.
    #[must_use]
    pub fn with_original(self, original: Option<Arc<Self>>) -> Self {
        Self { original, ..self }
    }

    /// The same tiles, with an earlier file to show what changed since.
    #[must_use]
    pub fn with_before(self, before: Option<Before>) -> Self {
        Self { before, ..self }
    }

    fn new(
        georeference: &Georeference,
        blocks: Blocks,
        range: HeightRange,
        cache: &Arc<BlockCache>,
    ) -> Result<Self> {
        if !georeference.is_georeferenced {
            return Err(TileError::NotGeoreferenced);
        }
        if georeference.crs.kind() == CrsKind::Geocentric {
            return Err(TileError::Geocentric);
        }
        let affine = georeference.affine();
        let inverse = InverseTransform::of(affine.numbers()).ok_or(TileError::Singular)?;
        let size = blocks.size(0);
        let own = System::of_raster(georeference, size)?;
        let earth = System::epsg(WGS_84)?;
        let to_own = Projection::new(&earth, &own)?;
        let from_own = Projection::new(&own, &earth)?;
        let bounds = bounds(&affine, size, &from_own, &to_own)?;
        let scale = GroundScale::of_raster(georeference, size)?;
        let middle = affine.apply(size.0 as f64 / 2.0, size.1 as f64 / 2.0);
        let middle = from_own.apply(middle.0, middle.1)?;
        let mut tiles = Self {
            terrain: None,
            original: None,
            before: None,
            crs: georeference.crs.clone(),
            range,
            bounds,
            zooms: 0..=0,
            pixel_m: scale.pixel_m(&affine, size),
            cache: cache.clone(),
            file: cache.number_file(),
            blocks,
            affine,
            inverse,
            to_own,
            from_own,
            scale,
            native_zoom: 0.0,
            first_zoom: 0,
        };
        let density = tiles.pixels_per_square(middle)?;
        tiles.native_zoom = (density / 256.0).log2();
        let across = size.0.max(size.1) as f64;
        let zoom = |value: f64| value.clamp(0.0, f64::from(MAX_ZOOM)) as u8;
        let coarsest = zoom((tiles.native_zoom - (across / MIN_PIXELS).log2()).floor());
        let last = tiles.blocks.last_level();
        let (columns, rows) = tiles.blocks.size(last);
        if !is_small(columns, rows) {
            // A tile's pixels are at most two of the coarsest overview across.
            tiles.first_zoom = zoom((tiles.native_zoom - f64::from(last) - 1.0).ceil());
        }
        // One zoom finer than the pixels: the surface between them is continuous.
        let finest = zoom(tiles.native_zoom.ceil() + 1.0);
        tiles.zooms = coarsest.max(tiles.first_zoom).min(finest)..=finest;
        Ok(tiles)
    }

    /// Pixels of the raster across the whole Web Mercator square, were all as at its middle.
    fn pixels_per_square(&self, (longitude, latitude): (f64, f64)) -> Result<f64> {
        const STEP: f64 = 1e-7;
        let middle = position(longitude, latitude);
        let at = |east: f64, south: f64| {
            let (longitude, latitude) = degrees(middle.0 + east, middle.1 + south);
            self.pixel(longitude, latitude)
                .ok_or(TileError::NoPixelSize)
        };
        let slope = |from: PixelPosition, to: PixelPosition| {
            [0, 1].map(|axis| (to[axis] - from[axis]) / (2.0 * STEP))
        };
        let across = slope(at(-STEP, 0.0)?, at(STEP, 0.0)?);
        let down = slope(at(0.0, -STEP)?, at(0.0, STEP)?);
        let density = (across[0] * down[1] - across[1] * down[0]).abs().sqrt();
        if density.is_finite() && density > 0.0 {
            Ok(density)
        } else {
            Err(TileError::NoPixelSize)
        }
    }

    /// The file; `None` where the tiles are those of a raster.
    pub fn terrain(&self) -> Option<&Arc<Terrain>> {
        self.terrain.as_ref()
    }

    /// The raster that the file was made from, where it is known.
    pub fn original(&self) -> Option<&Arc<Self>> {
        self.original.as_ref()
    }

    /// The coordinate system of the file.
    pub fn crs(&self) -> &Crs {
        &self.crs
    }

    /// The heights that colours range over.
    pub fn range(&self) -> HeightRange {
        self.range
    }

    /// West, south, east and north in degrees; east is above 180 where the raster lies across that meridian.
    pub fn bounds(&self) -> [f64; 4] {
        self.bounds
    }

    /// How many metres the shift to WGS 84 may be off, as EPSG states it; `None` where it states nothing.
    pub fn accuracy_m(&self) -> Option<f64> {
        self.from_own.accuracy_m()
    }

    /// The zoom at which a pixel of a tile of 256 is as large as one of the raster.
    pub fn native_zoom(&self) -> f64 {
        self.native_zoom
    }

    /// Side of a pixel in metres.
    pub fn pixel_m(&self) -> f64 {
        self.pixel_m
    }

    /// Whether a layer can be drawn: a difference needs an original, and a change an earlier file.
    pub fn has_layer(&self, layer: Layer) -> bool {
        match layer {
            Layer::Difference => self.original.is_some(),
            Layer::Change => self.before.is_some(),
            _ => true,
        }
    }

    /// The zooms at which a layer is worth drawing; what compares two needs both.
    pub fn zooms(&self, layer: Layer) -> RangeInclusive<u8> {
        let (coarsest, finest) = (*self.zooms.start(), *self.zooms.end());
        let first = match (layer, &self.original, &self.before) {
            (Layer::Difference, Some(original), _) => coarsest.max(*original.zooms.start()),
            (Layer::Change, _, Some(before)) => {
                let first = coarsest.max(*before.tiles().zooms.start());
                let is_drawn = |z: &u8| before.level(self.level(*z, TileRequest::SIDE)).is_some();
                (first..=finest).find(is_drawn).unwrap_or(finest)
            }
            _ => coarsest,
        };
        first.min(finest)..=finest
    }

    /// Map coordinates of a longitude and a latitude.
    pub fn map_point(&self, longitude: f64, latitude: f64) -> Option<(f64, f64)> {
        self.to_own.apply(longitude, latitude).ok()
    }

    /// The position in the raster of a longitude and a latitude.
    fn pixel(&self, longitude: f64, latitude: f64) -> Option<PixelPosition> {
        let (x, y) = self.map_point(longitude, latitude)?;
        let (column, row) = self.affine.invert(x, y)?;
        (column.is_finite() && row.is_finite()).then_some([column, row])
    }

    /// The level whose pixels are nearest in size to those of a tile; the same for all tiles of a zoom.
    pub(super) fn level(&self, z: u8, side: usize) -> u8 {
        let zoom = f64::from(z) + (side as f64 / 256.0).log2();
        (self.native_zoom - zoom)
            .round()
            .clamp(0.0, f64::from(self.blocks.last_level())) as u8
    }

    /// The value at the end of a layer's colours at a zoom, where it depends on it.
    pub fn limit(&self, layer: Layer, z: u8, side: usize) -> f64 {
        let scale = f64::from(1_u32 << self.level(z, side));
        match layer {
            Layer::Difference => scale * self.stated_error_m().unwrap_or(LOSSLESS_LIMIT_M),
            Layer::Change => self.before.as_ref().map_or(1.0, Before::limit_m),
            Layer::Product(Product::PlanCurvature) => {
                PLAN_CURVATURE_PER_PIXEL / (scale * self.pixel_m)
            }
            _ => CURVATURE_PER_PIXEL / (scale * self.pixel_m),
        }
    }

    /// The error bound that the file guarantees, 0 where nothing was lost; `None` without a guarantee.
    pub fn bound_m(&self) -> Option<f64> {
        bound_of(self.terrain.as_ref()?.header())
    }

    /// The error bound of the file or, without one, the error that it states; `None` where nothing was lost.
    pub fn stated_error_m(&self) -> Option<f64> {
        let header = self.terrain.as_ref()?.header();
        match header.bound {
            ErrorBound::MaxError(bound) => Some(bound),
            ErrorBound::Lossless { .. } => None,
            ErrorBound::None => Some(header.statistics.max_error_m),
        }
        .filter(|error| *error > 0.0)
    }

    /// Whether a tile and the raster have anything in common.
    fn meets(&self, tile: MapTile) -> bool {
        overlap(self.bounds, tile.bounds())
    }

    /// Positions of a tile's pixels in the raster, and the pixels around them.
    pub(super) fn patch(
        &self,
        tile: MapTile,
        side: usize,
        deadline: Deadline,
    ) -> Result<(Vec<PixelPosition>, Option<Patch>)> {
        let positions = self.positions(tile, side)?;
        let patch = self.patch_around(self.level(tile.z, side), &positions, deadline)?;
        Ok((positions, patch))
    }

    /// Positions of a tile's pixels in the raster; none where they have nothing in common.
    pub(super) fn positions(&self, tile: MapTile, side: usize) -> Result<Vec<PixelPosition>> {
        if !self.meets(tile) {
            return Ok(Vec::new());
        }
        if tile.z < self.first_zoom {
            return Err(TileError::TooCoarse);
        }
        let convert = |longitude, latitude| self.pixel(longitude, latitude);
        Ok(Frame::new(tile, side).positions(self.bounds, &convert))
    }

    /// What is proven to have changed at each pixel of a tile, in metres; NaN where nothing is.
    pub(super) fn changes(
        &self,
        tile: MapTile,
        side: usize,
        deadline: Deadline,
    ) -> Result<Vec<f64>> {
        let before = self.before.as_ref().ok_or(TileError::NoBefore)?;
        let positions = self.positions(tile, side)?;
        let level = before
            .level(self.level(tile.z, side))
            .ok_or(TileError::TooCoarse)?;
        let earlier: Vec<PixelPosition> = positions
            .iter()
            .map(|position| before.position(*position))
            .collect();
        let new = self.patch_around(level, &positions, deadline)?;
        let old = before.tiles().patch_around(level, &earlier, deadline)?;
        let (Some(new), Some(old)) = (new, old) else {
            return Ok(Vec::new());
        };
        let change = |position: &PixelPosition| {
            let pixel = new.pixel(*position)?;
            let earlier = before.pixel(level, pixel)?;
            let difference = new.pixel_height(pixel)? - old.pixel_height(earlier)?;
            before.proven(level, difference)
        };
        Ok(positions
            .iter()
            .map(|position| change(position).unwrap_or(f64::NAN))
            .collect())
    }

    /// Columns and rows of a level.
    pub(super) fn size(&self, level: u8) -> (usize, usize) {
        self.blocks.size(level)
    }

    /// Pixels of the raster across one of a tile of a zoom.
    pub(super) fn pixels_across(&self, z: u8, side: usize) -> f64 {
        2_f64.powf(self.native_zoom - f64::from(z)) * 256.0 / side as f64
    }

    /// Longitude and latitude of a position in the raster; `None` where it has none.
    pub(super) fn longitude_latitude(&self, [column, row]: PixelPosition) -> Option<(f64, f64)> {
        let (x, y) = self.affine.apply(column, row);
        self.from_own.apply(x, y).ok()
    }

    /// The pixels of a level around positions.
    pub(super) fn patch_around(
        &self,
        level: u8,
        positions: &[PixelPosition],
        deadline: Deadline,
    ) -> Result<Option<Patch>> {
        let read = |id| self.cache.block(self.file, &self.blocks, id, deadline);
        Patch::around(&self.blocks, level, positions, &mut |id| {
            deadline.check()?;
            read(id)
        })
    }

    /// The surface at a point of the map, at full resolution: the file's own, or the one through the raster's pixels;
    /// `None` where there is no data.
    pub fn sample(&self, x: f64, y: f64, deadline: Deadline) -> Result<Option<Sample>> {
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
        let position = [column, row];
        let patch = self.patch_around(0, &[position], deadline)?;
        Ok(patch
            .and_then(|patch| patch.jet(position))
            .map(|jet| self.inverse.sample(jet)))
    }

    /// What is known at a longitude and a latitude, as [`crate::query()`] reports it; `None` where the file's system
    /// has no such point.
    pub fn point(
        &self,
        longitude: f64,
        latitude: f64,
        deadline: Deadline,
    ) -> Result<Option<PointReport>> {
        let Some((x, y)) = self.map_point(longitude, latitude) else {
            return Ok(None);
        };
        let sample = self.sample(x, y, deadline)?;
        let sample = sample.map(|sample| GroundSample::new(&sample, self.scale.at(x, y)));
        Ok(Some(PointReport { x, y, sample }))
    }

    /// The surface on the ground at a position of a patch; `None` where there is no data.
    pub(super) fn ground(&self, patch: &Patch, position: PixelPosition) -> Option<GroundSample> {
        let sample = self.inverse.sample(patch.jet(position)?);
        let (x, y) = self.affine.apply(position[0], position[1]);
        Some(GroundSample::new(&sample, self.scale.at(x, y)))
    }
}
