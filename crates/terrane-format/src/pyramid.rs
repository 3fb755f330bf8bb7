//! The levels of a file: the raster itself and halves of it, each divided into tiles that are numbered through.
#![expect(
    clippy::cast_possible_truncation,
    reason = "a file has at most 24 levels"
)]

use crate::{Error, Result, TileGrid, TileId, Window, limits};

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
    fn absurd_sizes_are_refused() {
        assert!(Pyramid::new(u32::MAX, 1, 256, 1).is_err());
        assert!(Pyramid::new(1 << 30, 1 << 30, 16, 1).is_err());
        assert!(Pyramid::new(10, 10, 8, 1).is_err() && Pyramid::new(10, 10, 256, 0).is_err());
        assert!(Pyramid::new(0, 10, 256, 1).is_err() && Pyramid::new(10, 10, 257, 1).is_err());
    }
}
