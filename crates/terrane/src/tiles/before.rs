//! An earlier file of the same pixels, and what is proven to have changed since.
//!
//! A bound holds at pixels of full resolution. Overviews have none, but every file states how far the worst pixel of each is
//! from the mean of the source's pixels below it: where both files are without gaps and of one extent, those are means of
//! the same pixels, and a difference above both worst errors proves that the mean changed. Otherwise coarse tiles show
//! single pixels of full resolution, as far as that can be done in time.

use std::sync::Arc;

use terrane_codec::Terrain;
use terrane_codec::format::Header;

use super::{MapTiles, TileError};
use crate::change::{Alignment, PixelOffset, Unproven, difference_bound};

/// Where overviews prove nothing, tiles of full resolution are drawn for so many zooms more.
const COARSER: u8 = 2;
/// The end of the colours, in bounds of the difference; and in metres where nothing was lost.
const LIMIT_BOUNDS: f64 = 50.0;
const LOSSLESS_LIMIT_M: f64 = 10.0;
/// A 32-bit float, which decoded blocks hold, is off by at most this part of its value.
const F32_STEP: f64 = 1.0 / 16_777_216.0;

/// An earlier file of the same pixels.
pub struct Before {
    tiles: Arc<MapTiles>,
    offset: PixelOffset,
    /// For each level that can be compared, what a difference must exceed.
    bounds_m: Vec<f64>,
    /// The change at the end of the colours.
    limit_m: f64,
}

impl Before {
    /// Compares the place and the guarantees of an earlier file with those of a file; one of other pixels is refused, since
    /// nothing could be proven.
    pub fn new(terrain: &Terrain, tiles: Arc<MapTiles>) -> crate::Result<Self> {
        let old = tiles.terrain().ok_or(TileError::NoBefore)?;
        let Alignment::Same(offset) = Alignment::of(terrain, old)? else {
            return Err(Unproven::OtherPixels.into());
        };
        let bound_m = difference_bound(terrain.header(), old.header())?;
        Ok(Self {
            bounds_m: bounds(terrain.header(), old.header(), offset, bound_m),
            limit_m: if bound_m > 0.0 {
                LIMIT_BOUNDS * bound_m
            } else {
                LOSSLESS_LIMIT_M
            },
            tiles,
            offset,
        })
    }

    /// The tiles of the earlier file.
    pub(super) fn tiles(&self) -> &Arc<MapTiles> {
        &self.tiles
    }

    /// The level that is compared where one is wanted; `None` where that would take too long.
    pub(super) fn level(&self, wanted: u8) -> Option<u8> {
        let last = (self.bounds_m.len() - 1) as u8;
        let level = wanted.min(last);
        (wanted - level <= COARSER).then_some(level)
    }

    /// A difference of a level if it proves a change.
    pub(super) fn proven(&self, level: u8, difference_m: f64) -> Option<f64> {
        let bound = self.bounds_m.get(usize::from(level))?;
        (difference_m.abs() > *bound).then_some(difference_m)
    }

    /// The pixel of the earlier file that is one of the new file, at a level.
    pub(super) fn pixel(&self, level: u8, (column, row): (usize, usize)) -> Option<(usize, usize)> {
        // Only levels whose pixels are one are compared: a shift is a whole number of theirs.
        let moved = |at: usize, by: i64| usize::try_from(at as i64 + (by >> level)).ok();
        Some((
            moved(column, self.offset.columns)?,
            moved(row, self.offset.rows)?,
        ))
    }

    /// A position of the new file, in pixels of full resolution, in the earlier one.
    pub(super) fn position(&self, [column, row]: [f64; 2]) -> [f64; 2] {
        [
            column + self.offset.columns as f64,
            row + self.offset.rows as f64,
        ]
    }

    /// The change at the end of the colours.
    pub(super) fn limit_m(&self) -> f64 {
        self.limit_m
    }
}

/// What a difference of each level must exceed to prove a change.
fn bounds(new: &Header, old: &Header, offset: PixelOffset, bound_m: f64) -> Vec<f64> {
    // Means lie within the range of decoded heights, but for their own errors.
    let rounding = |error: f64| {
        let largest = [new, old].map(|header| {
            let statistics = &header.statistics;
            statistics.lowest_m.abs().max(statistics.highest_m.abs()) + error
        });
        F32_STEP * (largest[0] + largest[1])
    };
    let with_rounding = |bound: f64| bound + rounding(bound);
    let mut bounds = vec![with_rounding(bound_m)];
    let size = new.pyramid.size(0).unwrap_or_default();
    let is_whole = |header: &Header| {
        header.pyramid.size(0) == Some(size)
            && header.statistics.pixels == u64::from(size.0) * u64::from(size.1)
    };
    if offset.columns == 0 && offset.rows == 0 && is_whole(new) && is_whole(old) {
        let pairs = new.overviews.iter().zip(&old.overviews);
        bounds.extend(pairs.map(|(new, old)| {
            with_rounding(f64::from(new.max_error_m) + f64::from(old.max_error_m))
        }));
    }
    bounds
}
