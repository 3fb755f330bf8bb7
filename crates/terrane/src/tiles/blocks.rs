//! Heights by blocks of every level, of a file or of the raster it was made from.
//!
//! A level has half the columns and rows of the one before, down to a single pixel. Those that a file does not hold are
//! means: a few are taken when they are asked for, coarser ones once when the file is opened, and kept in memory. Where
//! that would be too much, as for a large file without overviews, there are no coarser levels.

use std::sync::Arc;

use terrane_codec::format::{LevelTile, Window, limits};
use terrane_codec::tile::Tile;
use terrane_codec::tiling::Tiling;
use terrane_codec::{Terrain, fill};
use terrane_geo::{Grid, RasterSource};

use super::TileError;
use super::error::Result;

/// The first level of a raster without overviews that is kept in memory: a 256th of its pixels.
const FIRST_KEPT: u8 = 4;
/// Side of a raster's blocks, or the next multiple of the file's tiles.
const RASTER_SIDE: usize = 512;
/// Pixels of a raster that are read at once.
const MAX_READ: usize = 1 << 22;
/// Rows of a raster that are read at once for its levels in memory, where they are not too long; a multiple of 2 to the
/// power of [`FIRST_KEPT`].
const STRIP: usize = 256;
/// Pixels of the first level in memory, and of the level that it is made of where a terrane file holds that: as
/// many as the largest tile has.
const MAX_KEPT: usize = limits::TILE_PIXELS;

/// A block of heights in metres.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) width: usize,
    /// A missing pixel has a height that continues its neighbours, as in a decoded tile, and NaN where its whole tile has
    /// no data.
    pub(super) heights: Vec<f32>,
    /// Pixels without data.
    pub(super) missing: Option<Vec<bool>>,
}

fn as_f32(heights: &[f64]) -> Vec<f32> {
    heights.iter().map(|&height| height as f32).collect()
}

impl Block {
    fn of_tile(tile: Tile) -> Self {
        Self {
            width: tile.window.width,
            heights: as_f32(&tile.heights),
            missing: tile.missing,
        }
    }

    /// A block of heights that are NaN where there is no data, filled tile by tile as a file's are; `None` where it has
    /// none at all.
    fn of_grid(mut grid: Grid, side: usize) -> Option<Self> {
        let missing: Vec<bool> = grid.heights.iter().map(|height| height.is_nan()).collect();
        let missing = missing.contains(&true).then_some(missing);
        if missing.is_some() {
            for row in (0..grid.height).step_by(side) {
                for column in (0..grid.width).step_by(side) {
                    let window = Window {
                        column,
                        row,
                        width: side.min(grid.width - column),
                        height: side.min(grid.height - row),
                    };
                    let mut tile = grid.crop(window);
                    if !tile.heights.iter().all(|height| height.is_nan()) {
                        fill(&mut tile.heights, window.width);
                        grid.paste(&tile, column, row);
                    }
                }
            }
        }
        let has_data = missing
            .as_ref()
            .is_none_or(|missing| missing.contains(&false));
        has_data.then(|| Self {
            width: grid.width,
            heights: as_f32(&grid.heights),
            missing,
        })
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.heights[..]) + self.missing.as_ref().map_or(0, Vec::len)
    }
}

enum Base {
    Terrain(Arc<Terrain>),
    Raster(Box<dyn RasterSource>),
}

/// All levels of a file.
pub(super) struct Blocks {
    base: Base,
    size: (usize, usize),
    /// Side of a block.
    side: usize,
    /// Side of a tile, of which a block has one or more.
    tile_side: usize,
    /// Levels that the file itself holds.
    stored: u8,
    /// The first level in memory, and all from there on.
    first_kept: u8,
    kept: Vec<Grid>,
}

impl Blocks {
    /// The levels of a terrane file.
    pub(super) fn of_terrain(terrain: Arc<Terrain>) -> Result<Self> {
        let pyramid = &terrain.header().pyramid;
        let stored = pyramid.levels();
        let (width, height) = pyramid.size(0).unwrap_or_default();
        let last = stored - 1;
        let coarsest = pyramid.size(last).unwrap_or_default();
        let whole = Window::whole(coarsest.0 as usize, coarsest.1 as usize);
        let mut kept = Vec::new();
        if whole.pixels().is_some_and(|pixels| pixels <= MAX_KEPT) {
            let grid = Grid::new(whole.width, whole.height, terrain.read(last, whole)?);
            kept = halvings(grid.halved());
        }
        Ok(Self {
            size: (width as usize, height as usize),
            side: pyramid.side().into(),
            tile_side: pyramid.side().into(),
            stored,
            first_kept: stored,
            kept,
            base: Base::Terrain(terrain),
        })
    }

    /// The levels of a raster: its overviews where they are halves, else means of its pixels. Gaps are filled tile by
    /// tile, as in a file with tiles of this side.
    pub(super) fn of_raster(raster: Box<dyn RasterSource>, tile_side: usize) -> Result<Self> {
        let levels = &raster.info().levels;
        let (width, height) = levels[0];
        let stored = levels
            .iter()
            .enumerate()
            .take(limits::LEVELS.into())
            .take_while(|(level, size)| **size == halved((width, height), *level as u8))
            .count() as u8;
        let first_kept = stored.max(FIRST_KEPT);
        let kept = match halved((width, height), first_kept) {
            (columns, rows) if columns.saturating_mul(rows) <= MAX_KEPT => {
                halvings(whole_level(raster.as_ref(), stored - 1, first_kept)?)
            }
            _ => Vec::new(),
        };
        Ok(Self {
            size: (width, height),
            side: RASTER_SIDE.next_multiple_of(tile_side),
            tile_side,
            stored,
            first_kept,
            kept,
            base: Base::Raster(raster),
        })
    }

    /// Columns and rows of a level.
    pub(super) fn size(&self, level: u8) -> (usize, usize) {
        halved(self.size, level)
    }

    /// Side of a block in pixels.
    pub(super) fn side(&self) -> usize {
        self.side
    }

    /// How a level is divided into tiles.
    pub(super) fn tiling(&self, level: u8) -> Tiling {
        let (width, height) = self.size(level);
        Tiling {
            width,
            height,
            side: self.tile_side,
        }
    }

    /// The last level that there is: of one pixel, unless coarser ones would have been too much.
    pub(super) fn last_level(&self) -> u8 {
        self.first_kept + self.kept.len() as u8 - 1
    }

    /// The window of a block.
    pub(super) fn window(&self, block: LevelTile) -> Window {
        let (width, height) = self.size(block.level);
        let (left, top) = (block.id.column * self.side, block.id.row * self.side);
        Window {
            column: left,
            row: top,
            width: self.side.min(width.saturating_sub(left)),
            height: self.side.min(height.saturating_sub(top)),
        }
    }

    /// One block, or `None` where it has no data.
    pub(super) fn read(&self, block: LevelTile) -> Result<Option<Block>> {
        let level = block.level;
        let window = self.window(block);
        if level >= self.first_kept {
            let grid =
                self.kept
                    .get(usize::from(level - self.first_kept))
                    .ok_or(TileError::NoLevel {
                        level,
                        last: self.last_level(),
                    })?;
            return Ok(Block::of_grid(grid.crop(window), self.tile_side));
        }
        match &self.base {
            Base::Terrain(terrain) => {
                let tile = terrain.decode(block)?;
                Ok(tile.map(Block::of_tile))
            }
            Base::Raster(raster) => {
                let from = level.min(self.stored - 1);
                let grid = coarsened(raster.as_ref(), from, level, window)?;
                Ok(Block::of_grid(grid, self.tile_side))
            }
        }
    }
}

/// A whole level of a raster, made of a finer one.
fn whole_level(raster: &dyn RasterSource, from: u8, level: u8) -> Result<Grid> {
    let (width, height) = halved(raster.info().levels[0], level);
    let mut whole = Grid::missing(width, height);
    let times = 1 << (level - from);
    // Rows as long as they are, so that rows of a raster that is stored by rows are read once.
    let columns = (MAX_READ / times / times).clamp(1, width);
    let rows = (MAX_READ / times / times / columns).clamp(1, STRIP.div_ceil(times));
    for row in (0..height).step_by(rows) {
        for column in (0..width).step_by(columns) {
            let window = Window {
                column,
                row,
                width: columns.min(width - column),
                height: rows.min(height - row),
            };
            let part = coarsened(raster, from, level, window)?;
            whole.paste(&part, column, row);
        }
    }
    Ok(whole)
}

/// A window of a level of a raster, made of a finer one.
fn coarsened(raster: &dyn RasterSource, from: u8, level: u8, window: Window) -> Result<Grid> {
    let (width, height) = raster.info().levels[usize::from(from)];
    let times = 1 << (level - from);
    let rows = (MAX_READ / times / times / window.width.max(1)).max(1);
    let heights = Vec::with_capacity(window.width * window.height);
    let mut whole = Grid::new(window.width, window.height, heights);
    for row in (window.row..window.row + window.height).step_by(rows) {
        let (left, top) = (window.column * times, row * times);
        let count = rows.min(window.row + window.height - row);
        let fine = Window {
            column: left,
            row: top,
            width: (window.width * times).min(width - left),
            height: (count * times).min(height - top),
        };
        let mut part = raster.read(from.into(), fine)?;
        for _ in from..level {
            part = part.halved();
        }
        whole.heights.extend(part.heights);
    }
    Ok(whole)
}

/// Columns and rows at a level.
fn halved((width, height): (usize, usize), level: u8) -> (usize, usize) {
    let half = |size: usize| size.div_ceil(1 << level).max(1);
    (half(width), half(height))
}

/// A grid and its halves down to one pixel.
fn halvings(first: Grid) -> Vec<Grid> {
    let mut all = vec![first];
    while let Some(last) = all.last()
        && last.width.max(last.height) > 1
    {
        let next = last.halved();
        all.push(next);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use terrane_codec::format::TileId;
    use terrane_geo::{Affine, Crs, Georeference, HeightUnit, RasterInfo, SampleType, Storage};

    struct Plane(RasterInfo);

    impl RasterSource for Plane {
        fn info(&self) -> &RasterInfo {
            &self.0
        }

        fn read(&self, level: usize, window: Window) -> terrane_geo::Result<Grid> {
            let info = &self.0;
            info.levels.get(level).ok_or(terrane_geo::Error::NoInput)?;
            let mut grid = Grid::missing(window.width, window.height);
            for (index, height) in grid.heights.iter_mut().enumerate() {
                let (column, row) = (index % window.width, index / window.width);
                *height = (window.column + column) as f64 + 1000.0 * (window.row + row) as f64;
            }
            Ok(grid)
        }
    }

    fn at(level: u8, column: usize, row: usize) -> LevelTile {
        let id = TileId { column, row };
        LevelTile { level, id }
    }

    fn plane(size: (usize, usize)) -> RasterInfo {
        RasterInfo {
            path: PathBuf::new(),
            levels: vec![size],
            georeference: Georeference::new(
                Affine::north_up(0.0, 0.0, 1.0),
                Crs::projected(2056, None),
            ),
            storage: Storage::metres(SampleType::F32, None),
            unit: HeightUnit::Metre,
        }
    }

    #[test]
    fn levels_that_a_raster_lacks_are_means() {
        let info = plane((1201, 600));
        let blocks = Blocks::of_raster(Box::new(Plane(info)), 256).unwrap();
        assert_eq!(blocks.size(blocks.last_level()), (1, 1));
        for level in 0..=5 {
            let (width, height) = blocks.size(level);
            let block = blocks.read(at(level, 0, 0)).unwrap().unwrap();
            assert_eq!(block.width, width.min(RASTER_SIDE));
            assert_eq!(block.heights.len(), block.width * height.min(RASTER_SIDE));
            let step = f64::from(1_u32 << level);
            let mean = (step - 1.0) / 2.0;
            for (column, row) in [(0, 0), (3, 2), (10, 7)] {
                let expected = (column as f64 * step + mean) + 1000.0 * (row as f64 * step + mean);
                let found = f64::from(block.heights[row * block.width + column]);
                assert!(
                    (found - expected).abs() < 0.02,
                    "level {level}: {found} instead of {expected}"
                );
            }
        }
        let last = blocks.read(at(0, 2, 1)).unwrap().unwrap();
        assert_eq!((last.width, last.heights.len()), (177, 177 * 88));
    }

    /// What is read at once does not show: a wide raster is read in parts of rows.
    #[test]
    fn a_wide_raster_is_read_in_parts() {
        let info = plane((600_000, 40));
        let blocks = Blocks::of_raster(Box::new(Plane(info)), 256).unwrap();
        let block = blocks.read(at(4, 73, 0)).unwrap().unwrap();
        assert_eq!(blocks.size(4), (37_500, 3));
        // Means of 16 columns and rows; the last row has 8.
        let found = f64::from(block.heights[block.width + 3]);
        let expected = f64::from((73 * 512 + 3) * 16) + 7.5 + 1000.0 * (16.0 + 7.5);
        assert!((found - expected).abs() < 0.1, "{found} {expected}");
        let found = f64::from(block.heights[2 * block.width]);
        let expected = f64::from(73 * 512 * 16) + 7.5 + 1000.0 * (32.0 + 3.5);
        assert!((found - expected).abs() < 0.1, "{found} {expected}");
    }

    #[test]
    fn levels_that_would_be_too_much_are_left_out() {
        let info = plane((1 << 20, 1 << 20));
        let blocks = Blocks::of_raster(Box::new(Plane(info)), 256).unwrap();
        assert_eq!(blocks.last_level(), FIRST_KEPT - 1);
        let block = blocks.read(at(3, 1, 1)).unwrap().unwrap();
        assert_eq!((block.width, block.heights.len()), (512, 512 * 512));
        assert!(blocks.read(at(FIRST_KEPT, 0, 0)).is_err());
    }
}
