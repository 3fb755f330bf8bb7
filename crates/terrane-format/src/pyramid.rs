//! The levels of a file: the raster itself and halves of it, each divided into tiles that are numbered through.
//!
//! A few levels make a storey, and every tile of a storey's last level is the root of a tree: it and all tiles below it,
//! down to the storey's first level. A tree is what is written, indexed and lost as one.
#![expect(
    clippy::cast_possible_truncation,
    reason = "a file has at most 24 levels"
)]

use crate::{Error, Result, TileGrid, TileId, Window, limits};

/// Levels of a storey, at most.
const STOREY: u8 = 4;
/// Pixels across a tree, at most: what an encoder holds at a time.
const TREE_SIDE: u16 = 4096;

/// All levels of a raster, from full resolution down.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "PyramidSize", into = "PyramidSize")
)]
pub struct Pyramid {
    levels: Vec<Level>,
    side: u16,
    tiles: u64,
}

/// What a pyramid follows from.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct PyramidSize {
    width: u32,
    height: u32,
    side: u16,
    levels: u8,
}

#[cfg(feature = "serde")]
impl From<Pyramid> for PyramidSize {
    fn from(pyramid: Pyramid) -> Self {
        let (width, height) = pyramid.size(0).unwrap_or_default();
        Self {
            width,
            height,
            side: pyramid.side(),
            levels: pyramid.levels(),
        }
    }
}

#[cfg(feature = "serde")]
impl TryFrom<PyramidSize> for Pyramid {
    type Error = Error;

    fn try_from(size: PyramidSize) -> Result<Self> {
        Self::new(size.width, size.height, size.side, size.levels)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    width: u32,
    height: u32,
    grid: TileGrid,
    /// The number of its first tile.
    first: u64,
}

/// One tile of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct LevelTile {
    /// The level, 0 at full resolution.
    pub level: u8,
    /// The tile in the level.
    pub id: TileId,
}

impl LevelTile {
    /// The tile that covers it so many levels up.
    #[must_use]
    pub fn above(self, levels: u8) -> Self {
        Self {
            level: self.level + levels,
            id: TileId {
                column: self.id.column >> levels,
                row: self.id.row >> levels,
            },
        }
    }
}

impl Pyramid {
    /// `levels` levels of a raster of `width` × `height` pixels, with tiles of `side` pixels.
    pub fn new(width: u32, height: u32, side: u16, levels: u8) -> Result<Self> {
        let exceeded = |what, value: u64, limit: u64| Error::LimitExceeded { what, value, limit };
        for (what, value) in [("columns", width), ("rows", height)] {
            if value > limits::RASTER_SIDE {
                return Err(exceeded(what, value.into(), limits::RASTER_SIDE.into()));
            }
        }
        if !limits::TILE_SIDE.contains(&side) {
            return Err(exceeded(
                "pixels across a tile",
                side.into(),
                (*limits::TILE_SIDE.end()).into(),
            ));
        }
        if !side.is_multiple_of(2) {
            return Err(Error::Malformed {
                what: "head",
                offset: 0,
                reason: "the side of a tile is odd",
            });
        }
        if levels == 0 || levels > limits::LEVELS {
            return Err(exceeded("levels", levels.into(), limits::LEVELS.into()));
        }
        let mut all = Vec::with_capacity(levels.into());
        let mut tiles = 0_u64;
        for level in 0..u32::from(levels) {
            let (width, height) = (halved(width, level), halved(height, level));
            let grid = TileGrid::new(width as usize, height as usize, side.into())?;
            all.push(Level {
                width,
                height,
                grid,
                first: tiles,
            });
            tiles += grid.columns() as u64 * grid.rows() as u64;
            if tiles > limits::TILES {
                return Err(exceeded("tiles", tiles, limits::TILES));
            }
        }
        Ok(Self {
            levels: all,
            side,
            tiles,
        })
    }

    /// With as many levels as it takes until one tile holds everything.
    pub fn complete(width: u32, height: u32, side: u16) -> Result<Self> {
        Self::new(width, height, side, Self::levels_for(width, height, side))
    }

    /// As many levels as it takes until one tile holds everything.
    pub fn levels_for(width: u32, height: u32, side: u16) -> u8 {
        let mut levels = 1;
        while levels < limits::LEVELS
            && halved(width.max(height), u32::from(levels) - 1) > u32::from(side)
        {
            levels += 1;
        }
        levels
    }

    /// Number of levels.
    pub fn levels(&self) -> u8 {
        self.levels.len() as u8
    }

    /// Side of a tile.
    pub fn side(&self) -> u16 {
        self.side
    }

    /// Columns and rows of a level, or `None` where there is no such level.
    pub fn size(&self, level: u8) -> Option<(u32, u32)> {
        self.levels
            .get(usize::from(level))
            .map(|level| (level.width, level.height))
    }

    /// The tiles of a level.
    pub fn grid(&self, level: u8) -> Option<&TileGrid> {
        self.levels.get(usize::from(level)).map(|level| &level.grid)
    }

    /// Number of tiles of all levels.
    pub fn tiles(&self) -> u64 {
        self.tiles
    }

    /// The number of a tile.
    pub fn number(&self, tile: LevelTile) -> Result<u64> {
        let no_level = Error::LimitExceeded {
            what: "as a level",
            value: tile.level.into(),
            limit: self.levels.len() as u64 - 1,
        };
        let level = self.levels.get(usize::from(tile.level)).ok_or(no_level)?;
        level.grid.window(tile.id)?;
        Ok(level.first + tile.id.row as u64 * level.grid.columns() as u64 + tile.id.column as u64)
    }

    /// The tile of a number, or `None` where there is none.
    pub fn tile(&self, number: u64) -> Option<LevelTile> {
        let index = self
            .levels
            .partition_point(|level| level.first <= number)
            .checked_sub(1)?;
        let level = &self.levels[index];
        let index_in_level = usize::try_from(number - level.first).ok()?;
        let columns = level.grid.columns();
        let id = TileId {
            column: index_in_level % columns,
            row: index_in_level / columns,
        };
        (id.row < level.grid.rows()).then_some(LevelTile {
            level: index as u8,
            id,
        })
    }

    /// Levels of a storey: four, or fewer where tiles are so large that a tree would be too large.
    pub fn storey_levels(&self) -> u8 {
        (1..STOREY)
            .take_while(|&more| u32::from(self.side) << more <= TREE_SIDE.into())
            .count() as u8
            + 1
    }

    /// The first level of the storey of a level.
    pub fn storey(&self, level: u8) -> u8 {
        level - level % self.storey_levels()
    }

    /// The level at which the trees of a level have their roots.
    pub fn root_level(&self, level: u8) -> u8 {
        (self.storey(level) + self.storey_levels() - 1).min(self.levels() - 1)
    }

    /// The tile above a tile in its tree; `None` for a root.
    pub fn parent(&self, tile: LevelTile) -> Option<LevelTile> {
        (tile.level < self.root_level(tile.level)).then(|| tile.above(1))
    }

    /// The root of a tile's tree.
    pub fn root(&self, tile: LevelTile) -> LevelTile {
        tile.above(self.root_level(tile.level) - tile.level)
    }

    /// The levels at which trees have their roots, finest first.
    fn root_levels(&self) -> impl Iterator<Item = u8> + use<'_> {
        (0..self.levels()).filter(|&level| self.root_level(level) == level)
    }

    /// Number of trees.
    pub fn trees(&self) -> u64 {
        self.root_levels()
            .filter_map(|level| self.grid(level))
            .map(|grid| grid.columns() as u64 * grid.rows() as u64)
            .sum()
    }

    /// The number of the tree of a root: storey by storey, row by row.
    pub fn tree_number(&self, root: LevelTile) -> Result<u64> {
        let number = self.number(root)?;
        let mut before = 0;
        for level in self.root_levels() {
            let level_of = &self.levels[usize::from(level)];
            if level == root.level {
                return Ok(before + number - level_of.first);
            }
            before += level_of.grid.columns() as u64 * level_of.grid.rows() as u64;
        }
        Err(Error::Malformed {
            what: "index",
            offset: 0,
            reason: "a tree was asked for by a tile that is no root",
        })
    }

    /// The root of the tree of a number, or `None` where there is none.
    pub fn tree(&self, number: u64) -> Option<LevelTile> {
        let mut left = number;
        for level in self.root_levels() {
            let level = &self.levels[usize::from(level)];
            let count = level.grid.columns() as u64 * level.grid.rows() as u64;
            if left < count {
                return self.tile(level.first + left);
            }
            left -= count;
        }
        None
    }

    /// All tiles of the tree of a root: the root first, then level by level, row by row.
    pub fn tree_tiles(&self, root: LevelTile) -> Vec<LevelTile> {
        let last = self.storey(root.level);
        (last..=root.level)
            .rev()
            .flat_map(|level| self.tiles_below(root, level))
            .collect()
    }

    /// The tiles of a level that lie in a tile of a coarser one, row by row.
    pub fn tiles_below(&self, tile: LevelTile, level: u8) -> Vec<LevelTile> {
        let below = tile.level.saturating_sub(level);
        let Some(grid) = self.grid(level) else {
            return Vec::new();
        };
        let range = |first: usize, end: usize| (first << below)..((first + 1) << below).min(end);
        let columns = range(tile.id.column, grid.columns());
        range(tile.id.row, grid.rows())
            .flat_map(|row| columns.clone().map(move |column| TileId { column, row }))
            .map(|id| LevelTile { level, id })
            .collect()
    }

    /// The pixels of a tile in its level.
    pub fn window(&self, tile: LevelTile) -> Result<Window> {
        self.number(tile)?;
        self.levels[usize::from(tile.level)].grid.window(tile.id)
    }
}

fn halved(size: u32, times: u32) -> u32 {
    size.div_ceil(1 << times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_has_a_number_of_its_own() {
        let levels = Pyramid::levels_for(1000, 700, 256);
        assert_eq!(levels, 3);
        let pyramid = Pyramid::new(1000, 700, 256, levels).unwrap();
        assert_eq!(pyramid.size(2), Some((250, 175)));
        assert_eq!(pyramid.tiles(), 12 + 4 + 1);
        for number in 0..pyramid.tiles() {
            let tile = pyramid.tile(number).unwrap();
            assert_eq!(pyramid.number(tile).unwrap(), number);
        }
        assert_eq!(pyramid.tile(pyramid.tiles()), None);
        assert!(
            pyramid
                .number(LevelTile {
                    level: 3,
                    id: TileId { column: 0, row: 0 }
                })
                .is_err()
        );
        assert!(
            pyramid
                .number(LevelTile {
                    level: 1,
                    id: TileId { column: 2, row: 0 }
                })
                .is_err()
        );
    }

    #[test]
    fn every_tile_belongs_to_one_tree() {
        for (width, height, side) in [
            (1000, 700, 16),
            (16, 9, 16),
            (5000, 3, 16),
            (900, 2300, 16),
            (90_000, 50_000, 512),
            (90_000, 50_000, 2000),
            (90_000, 50_000, 4096),
        ] {
            let pyramid = Pyramid::complete(width, height, side).unwrap();
            let across = u32::from(side) << (pyramid.storey_levels() - 1);
            assert!(across <= 4096 && (across > 2048 || side == 16), "{across}");
            let mut seen = vec![0; usize::try_from(pyramid.tiles()).unwrap()];
            for number in 0..pyramid.trees() {
                let root = pyramid.tree(number).unwrap();
                assert_eq!(pyramid.tree_number(root).unwrap(), number);
                assert_eq!(pyramid.parent(root), None);
                let tiles = pyramid.tree_tiles(root);
                assert_eq!(tiles[0], root);
                for tile in tiles {
                    assert_eq!(pyramid.root(tile), root);
                    let number = usize::try_from(pyramid.number(tile).unwrap()).unwrap();
                    seen[number] += 1;
                }
            }
            assert!(seen.iter().all(|&count| count == 1), "{width}×{height}");
            assert_eq!(pyramid.tree(pyramid.trees()), None);
        }
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(Pyramid::new(u32::MAX, 1, 256, 1).is_err());
        assert!(Pyramid::new(1 << 30, 1 << 30, 16, 1).is_err());
        assert!(Pyramid::new(10, 10, 8, 1).is_err() && Pyramid::new(10, 10, 256, 0).is_err());
        assert!(Pyramid::new(0, 10, 256, 1).is_err() && Pyramid::new(10, 10, 257, 1).is_err());
    }
}
