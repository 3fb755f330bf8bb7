//! The heights of a tree at every level, as an encoder sees them.

use terrane_format::{LevelTile, Pyramid, Window, halve};

use crate::Error;
use crate::tile::{TileEncoder, TileHeights};

/// The ground of a tree: its heights at the finest level of its storey, and means of those at the coarser ones.
pub(crate) struct TreeSource<'a> {
    pub(crate) pyramid: &'a Pyramid,
    pub(crate) root: LevelTile,
    /// Finest first.
    levels: Vec<Level>,
    /// The pixels of full resolution that are water, where there are some.
    water: Option<Vec<bool>>,
}

struct Level {
    window: Window,
    /// NaN where there is no data.
    heights: Vec<f64>,
}

/// The pixels that a tile covers at a finer level.
pub(crate) fn window_below(pyramid: &Pyramid, tile: LevelTile, level: u8) -> Result<Window, Error> {
    let window = pyramid.window(tile)?;
    let below = tile.level - level;
    let (width, height) = pyramid.size(level).unwrap_or_default();
    let (column, row) = (window.column << below, window.row << below);
    Ok(Window {
        column,
        row,
        width: (window.width << below).min(width as usize - column),
        height: (window.height << below).min(height as usize - row),
    })
}

impl<'a> TreeSource<'a> {
    /// The tree of a root, from all heights of its ground at the finest level of its storey, and those that are water.
    pub(crate) fn new(
        pyramid: &'a Pyramid,
        root: LevelTile,
        heights: Vec<f64>,
        water: Option<Vec<bool>>,
    ) -> Result<Self, Error> {
        let first = pyramid.storey(root.level);
        let mut levels: Vec<Level> = Vec::new();
        let mut heights = Some(heights);
        for level in first..=root.level {
            let window = window_below(pyramid, root, level)?;
            let heights = match (heights.take(), levels.last()) {
                (Some(heights), _) => heights,
                (None, Some(finer)) => halve(&finer.heights, finer.window.width),
                (None, None) => Vec::new(),
            };
            if heights.len() != window.width * window.height {
                return Err(Error::TreeSize {
                    expected: window.width * window.height,
                    found: heights.len(),
                });
            }
            levels.push(Level { window, heights });
        }
        Ok(Self {
            pyramid,
            root,
            levels,
            water,
        })
    }

    /// Levels below the root.
    pub(crate) fn depth(&self) -> u8 {
        self.levels.len() as u8 - 1
    }

    /// The tiles so many levels above the finest, row by row.
    pub(crate) fn tiles(&self, depth: u8) -> Vec<LevelTile> {
        let level = self.pyramid.storey(self.root.level) + depth;
        self.pyramid.tiles_below(self.root, level)
    }

    /// Size of the ground so many levels above the finest.
    pub(crate) fn window(&self, depth: u8) -> Window {
        self.levels[usize::from(depth)].window
    }

    /// All heights at the finest level, NaN where there is no data.
    pub(crate) fn heights(&self) -> &[f64] {
        &self.levels[0].heights
    }

    /// The heights among them.
    pub(crate) fn valid(&self) -> impl Iterator<Item = f64> + '_ {
        let heights = self.heights().iter().copied();
        heights.filter(|height| !height.is_nan())
    }

    /// Whether there is any data.
    pub(crate) fn has_data(&self) -> bool {
        let coarsest = self.levels.last();
        coarsest.is_some_and(|level| level.heights.iter().any(|height| !height.is_nan()))
    }

    /// The heights of a tile; `None` where there is no data.
    pub(crate) fn tile(&self, tile: LevelTile) -> Result<Option<TileHeights>, Error> {
        let depth = tile.level - self.pyramid.storey(self.root.level);
        let level = &self.levels[usize::from(depth)];
        let window = self.pyramid.window(tile)?;
        let heights = cut(&level.heights, &level.window, &window);
        TileHeights::new(heights, window)
    }

    /// As [`Self::tile`], with the water of a tile of full resolution.
    pub(crate) fn tile_with_water(
        &self,
        tile: LevelTile,
        encoder: &TileEncoder,
    ) -> Result<Option<TileHeights>, Error> {
        let mut found = self.tile(tile)?;
        if tile.level == 0
            && let (Some(heights), Some(water)) = (&mut found, &self.water)
        {
            let water = cut(water, &self.window(0), &heights.window);
            heights.water = encoder.water(heights, &water);
        }
        Ok(found)
    }
}

/// The part of a grid over a larger window that lies in a window.
fn cut<T: Copy>(grid: &[T], of: &Window, window: &Window) -> Vec<T> {
    let (column, row) = (window.column - of.column, window.row - of.row);
    grid.chunks_exact(of.width)
        .skip(row)
        .take(window.height)
        .flat_map(|line| &line[column..column + window.width])
        .copied()
        .collect()
}
