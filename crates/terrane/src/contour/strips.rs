//! The heights of a file, a strip of rows at a time: every tile is decoded once.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use terrane_codec::Terrain;
use terrane_codec::format::Window;
use terrane_codec::pixels::Pixels;
use terrane_codec::tiling::Tiling;

use super::Cells;
use crate::Result;

/// Pixels around a cell that its lines need: those of the kernel, and one more, since a line may bend out of its cell.
const MARGIN: usize = Pixels::<f64>::MARGIN + 1;
/// Rows of tiles that are decoded at a time: two lie below the same tiles.
const TILE_ROWS: usize = 2;

/// The strips of some cells of a level, from the top.
pub(super) struct Strips<'a> {
    terrain: &'a Terrain,
    level: u8,
    jobs: usize,
    tiling: Tiling,
    /// Rows of cells that are left.
    rows: Range<usize>,
    /// Columns of pixels that these need, and the end of their rows.
    columns: Range<usize>,
    end: usize,
    /// The first row of pixels that was not decoded yet.
    next: usize,
    pixels: Pixels<f64>,
}

impl<'a> Strips<'a> {
    pub(super) fn new(
        terrain: &'a Terrain,
        level: u8,
        cells: &Cells,
        tiling: Tiling,
        jobs: usize,
    ) -> Result<Self> {
        let around = |cells: Range<usize>, size: usize| {
            cells.start.saturating_sub(1 + MARGIN)..(cells.end + MARGIN).min(size)
        };
        let columns = around(cells.columns(), tiling.width);
        let rows = around(cells.rows(), tiling.height);
        let strips = Self {
            terrain,
            level,
            jobs,
            tiling,
            rows: cells.rows(),
            pixels: Pixels::missing(tiling, columns.start.cast_signed(), 0, columns.len(), 0),
            columns,
            end: rows.end,
            next: rows.start,
        };
        terrain.memory().check(
            "contour lines of so wide a raster",
            strips.bytes(),
            "trace a part with `bbox` or a coarser `level`, or ",
        )?;
        Ok(strips)
    }

    /// Memory of a strip, and of the one above, whose last rows are the first of it.
    pub(super) fn bytes(&self) -> u64 {
        let rows = (self.tiling.side * TILE_ROWS + 2 * MARGIN + 2) as u64;
        let pixel = (size_of::<f64>() + size_of::<bool>()) as u64;
        (self.columns.len() as u64)
            .saturating_mul(rows)
            .saturating_mul(2 * pixel)
    }

    /// The next rows of cells, and the pixels around them; `None` after the last.
    pub(super) fn advance(&mut self) -> Result<Option<(Range<usize>, &Pixels<f64>)>> {
        while !self.rows.is_empty() {
            let side = self.tiling.side;
            let bottom = ((self.next / side + TILE_ROWS) * side).min(self.end);
            let top = self.rows.start.saturating_sub(1 + MARGIN).min(self.next);
            let mut pixels = Pixels::missing(
                self.tiling,
                self.columns.start.cast_signed(),
                top.cast_signed(),
                self.columns.len(),
                bottom - top,
            );
            pixels.take_rows(&self.pixels);
            if self.next < bottom {
                let window = Window {
                    column: self.columns.start,
                    row: self.next,
                    width: self.columns.len(),
                    height: bottom - self.next,
                };
                let shared = Mutex::new(pixels);
                self.terrain
                    .decode_window(self.level, window, self.jobs, &|tile| {
                        let mut pixels = shared.lock().unwrap_or_else(PoisonError::into_inner);
                        pixels.paste(tile.window, &tile.heights, tile.missing.as_deref());
                    })?;
                pixels = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
            }
            self.next = bottom;
            self.pixels = pixels;
            let end = if bottom == self.end {
                self.rows.end
            } else {
                bottom.saturating_sub(MARGIN).min(self.rows.end)
            };
            let rows = self.rows.start..end.max(self.rows.start);
            self.rows.start = rows.end;
            if !rows.is_empty() {
                return Ok(Some((rows, &self.pixels)));
            }
        }
        Ok(None)
    }
}
