//! A raster divided into areas that are encoded apart.
//!
//! An area is a rectangle of tiles that starts at a multiple of 2^`top` tiles, where trees of level `top` have their roots: so
//! the overviews of its ground up to that level are its own, and no tree needs its neighbours.

use serde::{Deserialize, Serialize};
use terrane_format::{Pyramid, Window};

use crate::Error;

/// A rectangle of tiles at full resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// Its first column of tiles.
    pub column: usize,
    /// Its first row of tiles.
    pub row: usize,
    /// Columns of tiles.
    pub columns: usize,
    /// Rows of tiles.
    pub rows: usize,
}

impl Area {
    /// Its pixels at full resolution.
    pub fn window(&self, pyramid: &Pyramid) -> Window {
        let side = usize::from(pyramid.side());
        let (width, height) = pyramid.size(0).unwrap_or_default();
        let (column, row) = (self.column * side, self.row * side);
        Window {
            column,
            row,
            width: (self.columns * side).min((width as usize).saturating_sub(column)),
            height: (self.rows * side).min((height as usize).saturating_sub(row)),
        }
    }
}

/// All areas of a raster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Division {
    /// The coarsest level that areas have by themselves; coarser ones need several.
    pub top: u8,
    /// The areas, from the top left.
    pub areas: Vec<Area>,
}

fn refuse(what: &'static str, must: &'static str, value: String) -> Error {
    Error::Setting { what, must, value }
}

/// Columns and rows of tiles of a level.
fn grid(pyramid: &Pyramid, level: u8) -> (usize, usize) {
    pyramid
        .grid(level)
        .map_or((0, 0), |grid| (grid.columns(), grid.rows()))
}

/// The levels at which trees have their roots, finest first.
fn roots(pyramid: &Pyramid) -> impl Iterator<Item = u8> + '_ {
    (0..pyramid.levels()).filter(|&level| pyramid.root_level(level) == level)
}

impl Division {
    /// Squares of so many tiles, a power of two; at least of a tree.
    pub fn squares(pyramid: &Pyramid, tiles: usize) -> Result<Self, Error> {
        if !tiles.is_power_of_two() {
            return Err(refuse(
                "the side of a shard in tiles",
                "a power of two",
                tiles.to_string(),
            ));
        }
        let asked = tiles.ilog2().min(u32::from(pyramid.levels() - 1)) as u8;
        let top = roots(pyramid).filter(|&level| level <= asked).last();
        let top = top.unwrap_or_else(|| pyramid.root_level(0));
        let across = 1_usize << asked.saturating_sub(top);
        let (columns, rows) = grid(pyramid, top);
        let blocks = (0..rows)
            .step_by(across)
            .flat_map(|row| {
                (0..columns).step_by(across).map(move |column| Area {
                    column,
                    row,
                    columns: across.min(columns - column),
                    rows: across.min(rows - row),
                })
            })
            .collect();
        Ok(Self::from_blocks(pyramid, top, blocks))
    }

    /// So many areas of nearly the same size.
    pub fn into_areas(pyramid: &Pyramid, count: usize) -> Result<Self, Error> {
        let blocks = |level| {
            let (columns, rows) = grid(pyramid, level);
            columns * rows
        };
        let trees = blocks(pyramid.root_level(0));
        let top = roots(pyramid)
            .filter(|&level| blocks(level) >= count)
            .last();
        let Some(top) = top.filter(|_| count > 0) else {
            return Err(refuse(
                "the number of shards",
                "from 1 to the number of trees",
                format!("{count} for {trees} trees"),
            ));
        };
        let (columns, rows) = grid(pyramid, top);
        let mut parts = Vec::with_capacity(count);
        let whole = Area {
            column: 0,
            row: 0,
            columns,
            rows,
        };
        halve(whole, count, &mut parts);
        parts.sort_unstable_by_key(|area| (area.row, area.column));
        Ok(Self::from_blocks(pyramid, top, parts))
    }

    /// From areas that count the tiles of level `top`.
    fn from_blocks(pyramid: &Pyramid, top: u8, blocks: Vec<Area>) -> Self {
        let (columns, rows) = grid(pyramid, 0);
        let areas = blocks
            .into_iter()
            .map(|block| {
                let (column, row) = (block.column << top, block.row << top);
                Area {
                    column,
                    row,
                    columns: (block.columns << top).min(columns - column),
                    rows: (block.rows << top).min(rows - row),
                }
            })
            .collect();
        Self { top, areas }
    }

    /// Checks that the areas cover every tile once and start where they may.
    pub fn check(&self, pyramid: &Pyramid) -> Result<(), Error> {
        let wrong = |reason: &str| refuse("the division", "whole", reason.to_owned());
        let is_root = self.top < pyramid.levels() && pyramid.root_level(self.top) == self.top;
        if !is_root || self.areas.is_empty() {
            return Err(wrong("it has no areas or no such level"));
        }
        let block = 1_usize << self.top;
        let (columns, rows) = grid(pyramid, 0);
        let (block_columns, block_rows) = grid(pyramid, self.top);
        let mut taken = vec![false; block_columns * block_rows];
        for area in &self.areas {
            let fits = |start: usize, count: usize, size: usize| {
                let end = start.checked_add(count).filter(|&end| end <= size);
                count > 0
                    && start.is_multiple_of(block)
                    && end.is_some_and(|end| end == size || end.is_multiple_of(block))
            };
            if !fits(area.column, area.columns, columns) || !fits(area.row, area.rows, rows) {
                return Err(wrong(
                    "an area starts or ends between blocks or outside the raster",
                ));
            }
            for row in area.row / block..(area.row + area.rows).div_ceil(block) {
                for column in area.column / block..(area.column + area.columns).div_ceil(block) {
                    if std::mem::replace(&mut taken[row * block_columns + column], true) {
                        return Err(wrong("areas overlap"));
                    }
                }
            }
        }
        if taken.iter().all(|&taken| taken) {
            Ok(())
        } else {
            Err(wrong("some tiles are in no area"))
        }
    }
}

/// Cuts an area across its longer side until there are as many as asked for; each part keeps at least a tile for each.
fn halve(area: Area, count: usize, parts: &mut Vec<Area>) {
    if count == 1 {
        parts.push(area);
        return;
    }
    let is_wide = area.columns >= area.rows;
    let (long, short) = if is_wide {
        (area.columns, area.rows)
    } else {
        (area.rows, area.columns)
    };
    let cut = long / 2;
    let (before, after) = (cut * short, (long - cut) * short);
    let share = (count * cut + long / 2) / long;
    let first = share.clamp(
        count.saturating_sub(after).max(1),
        before.min(count - 1).max(1),
    );
    let (mut left, mut right) = (area, area);
    if is_wide {
        left.columns = cut;
        right.column += cut;
        right.columns -= cut;
    } else {
        left.rows = cut;
        right.row += cut;
        right.rows -= cut;
    }
    halve(left, first, parts);
    halve(right, count - first, parts);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pyramid(width: u32, height: u32) -> Pyramid {
        Pyramid::complete(width, height, 16).unwrap()
    }

    #[test]
    fn every_division_covers_every_tile_once() {
        for (width, height) in [(1500, 900), (16, 900), (4000, 17), (933, 1333)] {
            let pyramid = pyramid(width, height);
            let (columns, rows) = grid(&pyramid, pyramid.root_level(0));
            for count in 1..=(columns * rows).min(60) {
                let division = Division::into_areas(&pyramid, count).unwrap();
                assert_eq!(division.areas.len(), count);
                division.check(&pyramid).unwrap();
            }
            assert!(Division::into_areas(&pyramid, columns * rows + 1).is_err());
            for tiles in [1, 2, 4, 16, 64] {
                let division = Division::squares(&pyramid, tiles).unwrap();
                division.check(&pyramid).unwrap();
                let largest = division.areas.iter().map(|area| area.columns).max();
                assert!(largest.unwrap() <= tiles.max(8));
            }
        }
        assert_eq!(
            Division::into_areas(&pyramid(1500, 900), 1).unwrap().top,
            pyramid(1500, 900).levels() - 1
        );
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        let pyramid = pyramid(1500, 900);
        assert!(Division::squares(&pyramid, 3).is_err());
        assert!(
            Division::into_areas(&pyramid, 0).is_err()
                && Division::into_areas(&pyramid, 100_000).is_err()
        );
        let whole = Division::squares(&pyramid, 8).unwrap();
        let mut missing = whole.clone();
        missing.areas.pop();
        let mut twice = whole.clone();
        twice.areas[1] = twice.areas[0];
        let mut askew = whole.clone();
        askew.areas[0].column = 1;
        let mut between = whole.clone();
        between.top = 2;
        let mut endless = whole;
        endless.areas[0].columns = usize::MAX;
        for division in [missing, twice, askew, between, endless] {
            assert!(division.check(&pyramid).is_err());
        }
    }
}
