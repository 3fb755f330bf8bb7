//! The continuous surface through a part of a raster whose heights are at hand.

use std::convert::Infallible;

use terrane_format::Window;

use crate::kernel::{PixelJet, interpolate_4x4, interpolate_4x4_height};
use crate::tiling::Tiling;

/// The 4×4 heights around a position, and where it lies between the middle ones.
type Samples = ([[f64; 4]; 4], f64, f64);

/// A part of a raster: heights of the pixels that tiles with data have, and which of them have data themselves.
#[derive(Debug)]
pub struct Pixels<H> {
    tiling: Tiling,
    left: isize,
    top: isize,
    width: usize,
    height: usize,
    /// NaN where a tile has no data, and outside the raster.
    heights: Vec<H>,
    /// Pixels that have data themselves.
    is_valid: Vec<bool>,
}

impl<H: Copy + Into<f64> + From<f32>> Pixels<H> {
    /// Pixels that must be known around a position for its surface: the kernel needs two, and what continues it beyond
    /// the data looks one further.
    pub const MARGIN: usize = 4;

    /// A part that has no data yet; it may reach beyond the raster.
    pub fn missing(tiling: Tiling, left: isize, top: isize, width: usize, height: usize) -> Self {
        Self {
            tiling,
            left,
            top,
            width,
            height,
            heights: vec![f32::NAN.into(); width * height],
            is_valid: vec![false; width * height],
        }
    }

    /// Puts the heights of a tile, or of a block of them, where they belong; `missing` says which pixels have no data.
    pub fn paste<T: Copy + Into<H>>(
        &mut self,
        window: Window,
        heights: &[T],
        missing: Option<&[bool]>,
    ) {
        let shared = |start: usize, size: usize, first: isize, length: usize| {
            let end = (start + size)
                .cast_signed()
                .min(first + length.cast_signed());
            start.cast_signed().max(first)..end
        };
        let columns = shared(window.column, window.width, self.left, self.width);
        let rows = shared(window.row, window.height, self.top, self.height);
        if columns.is_empty() {
            return;
        }
        let count = columns.len();
        for row in rows {
            let source = (row.cast_unsigned() - window.row) * window.width
                + (columns.start.cast_unsigned() - window.column);
            let target = (row - self.top).cast_unsigned() * self.width
                + (columns.start - self.left).cast_unsigned();
            let targets = self.heights[target..target + count].iter_mut();
            for (target, &height) in targets.zip(&heights[source..source + count]) {
                *target = height.into();
            }
            let valid = &mut self.is_valid[target..target + count];
            match missing {
                None => valid.fill(true),
                Some(missing) => {
                    for (valid, missing) in valid.iter_mut().zip(&missing[source..]) {
                        *valid = !missing;
                    }
                }
            }
        }
    }

    /// Takes over the rows that another part of the same columns shares with this one.
    pub fn take_rows(&mut self, other: &Self) {
        if (self.left, self.width) != (other.left, other.width) {
            return;
        }
        let first = self.top.max(other.top);
        let end =
            (self.top + self.height.cast_signed()).min(other.top + other.height.cast_signed());
        if first >= end {
            return;
        }
        let count = (end - first).cast_unsigned() * self.width;
        let to = (first - self.top).cast_unsigned() * self.width;
        let from = (first - other.top).cast_unsigned() * self.width;
        self.heights[to..to + count].copy_from_slice(&other.heights[from..from + count]);
        self.is_valid[to..to + count].copy_from_slice(&other.is_valid[from..from + count]);
    }

    /// How the raster is divided into tiles.
    pub fn tiling(&self) -> Tiling {
        self.tiling
    }

    /// The surface at a position in pixels; `None` where there is no data.
    pub fn jet(&self, column: f64, row: f64) -> Option<PixelJet> {
        self.check(column, row)?;
        match self.samples(column, row) {
            Some((samples, x, y)) => Some(interpolate_4x4(&samples, x, y)),
            None => self.beside_data(column, row),
        }
    }

    /// The height at a position in pixels; `None` where there is no data.
    pub fn height(&self, column: f64, row: f64) -> Option<f64> {
        self.check(column, row)?;
        match self.samples(column, row) {
            Some((samples, x, y)) => Some(interpolate_4x4_height(&samples, x, y)),
            None => Some(self.beside_data(column, row)?.value),
        }
    }

    /// The height at the centre of a pixel; `None` where it has no data.
    pub fn centre(&self, pixel: (usize, usize)) -> Option<f64> {
        let index = self.index(pixel).filter(|&index| self.is_valid[index])?;
        Some(self.heights[index].into())
    }

    /// `None` where there is no data.
    fn check(&self, column: f64, row: f64) -> Option<()> {
        let pixel = self.tiling.pixel(column, row)?;
        self.is_valid[self.index(pixel)?].then_some(())
    }

    fn index(&self, (column, row): (usize, usize)) -> Option<usize> {
        let column = usize::try_from(column.cast_signed() - self.left).ok()?;
        let row = usize::try_from(row.cast_signed() - self.top).ok()?;
        (column < self.width && row < self.height).then_some(row * self.width + column)
    }

    /// The height at a pixel centre; `None` where its tile has no data.
    fn known(&self, pixel: (usize, usize)) -> Option<f64> {
        let height: f64 = self.heights[self.index(pixel)?].into();
        (!height.is_nan()).then_some(height)
    }

    /// The heights around a position; `None` where one of them is beyond the data. The tiles of all of them have the
    /// same surface there, so that nothing needs to be blended.
    fn samples(&self, column: f64, row: f64) -> Option<Samples> {
        let (column, row) = (column - 0.5, row - 0.5);
        let (left, top) = (column.floor(), row.floor());
        let first_column = usize::try_from(left as isize - 1 - self.left).ok()?;
        let first_row = usize::try_from(top as isize - 1 - self.top).ok()?;
        if first_column + 4 > self.width || first_row + 4 > self.height {
            return None;
        }
        let start = first_column + first_row * self.width;
        // Written out, row by row: a compiler that minds size makes loops of it, which take twice as long.
        let taps = |tap_row: usize| {
            let from = start + tap_row * self.width;
            let row: &[H; 4] = self.heights[from..].first_chunk()?;
            let [a, b, c, d]: [f64; 4] =
                [row[0].into(), row[1].into(), row[2].into(), row[3].into()];
            let is_complete = !(a.is_nan() | b.is_nan() | c.is_nan() | d.is_nan());
            is_complete.then_some([a, b, c, d])
        };
        let samples = [taps(0)?, taps(1)?, taps(2)?, taps(3)?];
        Some((samples, column - left, row - top))
    }

    /// The surface where the kernel reaches beyond the data.
    fn beside_data(&self, column: f64, row: f64) -> Option<PixelJet> {
        let pixel = self.tiling.pixel(column, row)?;
        let blended = self.tiling.blend(column, row, |tile| {
            let window = self.tiling.window(tile);
            let nearest = (
                pixel
                    .0
                    .clamp(window.column, window.column + window.width - 1),
                pixel.1.clamp(window.row, window.row + window.height - 1),
            );
            if self.known(nearest).is_none() {
                return Ok(None);
            }
            let known = |column, row| Ok::<_, Infallible>(self.known((column, row)));
            self.tiling.kernel(tile, column, row, known).map(Some)
        });
        let Ok(jet) = blended;
        jet
    }
}
