//! Heights by blocks of every level, of a neural terrain file or of the raster it was made from.
//!
//! A level has half the columns and rows of the one before, down to a single pixel. Those that a file does not hold are
//! means: a few are taken when they are asked for, coarser ones once when the file is opened, and kept in memory.

use std::sync::Arc;

use anyhow::{Context, Result};
use terrane::Terrain;
use terrane::format::{LevelTile, TileId, Window};
use terrane_geo::{Grid, RasterSource};

/// The first level of a raster without overviews that is kept in memory: a 256th of its pixels.
const FIRST_KEPT: u8 = 4;
/// Side of a raster's blocks.
const RASTER_SIDE: usize = 512;
/// Rows of a raster that are read at once for its levels in memory; a multiple of 2 to the power of [`FIRST_KEPT`].
const STRIP: usize = 256;

/// A block of heights in metres, NaN where there is no data.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) width: usize,
    pub(crate) heights: Vec<f32>,
}

impl Block {
    fn of(width: usize, heights: &[f64]) -> Self {
        Self {
            width,
            heights: heights.iter().map(|&height| height as f32).collect(),
        }
    }
}

enum Base {
    Terrain(Arc<Terrain>),
    Raster(Box<dyn RasterSource>),
}

/// All levels of a file.
pub(crate) struct Blocks {
    base: Base,
    size: (usize, usize),
    side: usize,
    /// Levels that the file itself holds.
    stored: u8,
    /// The first level in memory, and all from there on.
    first_kept: u8,
    kept: Vec<Grid>,
}

impl Blocks {
    /// The levels of a neural terrain file.
    pub(crate) fn of_terrain(terrain: Arc<Terrain>) -> Result<Self> {
        let pyramid = &terrain.header().pyramid;
        let stored = pyramid.levels();
        let (width, height) = pyramid.size(0).unwrap_or_default();
        let last = stored - 1;
        let coarsest = pyramid.size(last).unwrap_or_default();
        let (coarse_width, coarse_height) = (coarsest.0 as usize, coarsest.1 as usize);
        let heights = terrain.read(last, Window::whole(coarse_width, coarse_height))?;
        let grid = Grid {
            width: coarse_width,
            height: coarse_height,
            heights,
        };
        Ok(Self {
            size: (width as usize, height as usize),
            side: pyramid.side().into(),
            stored,
            first_kept: stored,
            kept: halvings(grid.halved()),
            base: Base::Terrain(terrain),
        })
    }

    /// The levels of a raster: its overviews where they are halves, else means of its pixels.
    pub(crate) fn of_raster(raster: Box<dyn RasterSource>) -> Result<Self> {
        let levels = &raster.info().levels;
        let (width, height) = levels[0];
        let stored = levels
            .iter()
            .enumerate()
            .take_while(|(level, size)| **size == halved((width, height), *level as u8))
            .count() as u8;
        let first_kept = stored.max(FIRST_KEPT);
        let last = usize::from(stored - 1);
        let (coarse_width, coarse_height) = levels[last];
        let mut first = Grid {
            width: 0,
            height: 0,
            heights: Vec::new(),
        };
        for row in (0..coarse_height).step_by(STRIP) {
            let window = Window {
                column: 0,
                row,
                width: coarse_width,
                height: STRIP.min(coarse_height - row),
            };
            let mut strip = raster.read(last, window)?;
            for _ in stored - 1..first_kept {
                strip = strip.halved();
            }
            first.width = strip.width;
            first.height += strip.height;
            first.heights.extend(strip.heights);
        }
        Ok(Self {
            size: (width, height),
            side: RASTER_SIDE,
            stored,
            first_kept,
            kept: halvings(first),
            base: Base::Raster(raster),
        })
    }

    /// Columns and rows of a level.
    pub(crate) fn size(&self, level: u8) -> (usize, usize) {
        halved(self.size, level)
    }

    /// Side of a block in pixels.
    pub(crate) fn side(&self) -> usize {
        self.side
    }

    /// The last level, of one pixel.
    pub(crate) fn last_level(&self) -> u8 {
        self.first_kept + self.kept.len() as u8 - 1
    }

    /// The window of a block.
    pub(crate) fn window(&self, level: u8, column: usize, row: usize) -> Window {
        let (width, height) = self.size(level);
        let (left, top) = (column * self.side, row * self.side);
        Window {
            column: left,
            row: top,
            width: self.side.min(width.saturating_sub(left)),
            height: self.side.min(height.saturating_sub(top)),
        }
    }

    /// One block, or `None` where it has no data.
    pub(crate) fn read(&self, level: u8, column: usize, row: usize) -> Result<Option<Block>> {
        let window = self.window(level, column, row);
        if level >= self.first_kept {
            let grid = self
                .kept
                .get(usize::from(level - self.first_kept))
                .with_context(|| format!("there is no level {level}"))?;
            return Ok(Some(Block::of(window.width, &grid.crop(window).heights)));
        }
        match &self.base {
            Base::Terrain(terrain) => {
                let id = TileId { column, row };
                let tile = terrain.decode(LevelTile { level, id })?;
                Ok(tile.map(|tile| Block::of(window.width, &tile.valid_heights())))
            }
            Base::Raster(raster) => {
                let from = level.min(self.stored - 1);
                let (width, height) = self.size(from);
                let wide = Window {
                    column: window.column << (level - from),
                    row: window.row << (level - from),
                    width: window.width << (level - from),
                    height: window.height << (level - from),
                };
                let mut grid = raster.read(
                    from.into(),
                    Window {
                        width: wide.width.min(width - wide.column),
                        height: wide.height.min(height - wide.row),
                        ..wide
                    },
                )?;
                for _ in from..level {
                    grid = grid.halved();
                }
                Ok(Some(Block::of(window.width, &grid.heights)))
            }
        }
    }
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

    #[test]
    fn levels_that_a_raster_lacks_are_means() {
        let info = RasterInfo {
            path: PathBuf::new(),
            levels: vec![(1201, 600)],
            georeference: Georeference::new(
                Affine::north_up(0.0, 0.0, 1.0),
                Crs::projected(2056, None),
            ),
            storage: Storage::metres(SampleType::F32, None),
            unit: HeightUnit::Metre,
        };
        let blocks = Blocks::of_raster(Box::new(Plane(info))).unwrap();
        assert_eq!(blocks.size(blocks.last_level()), (1, 1));
        for level in 0..=5 {
            let (width, height) = blocks.size(level);
            let block = blocks.read(level, 0, 0).unwrap().unwrap();
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
        let last = blocks.read(0, 2, 1).unwrap().unwrap();
        assert_eq!((last.width, last.heights.len()), (177, 177 * 88));
    }
}
