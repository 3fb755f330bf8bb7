//! A part of a level put together from blocks, and the continuous surface through it.

use std::sync::Arc;

use terrane::format::{LevelTile, TileId};
use terrane::kernel::{PixelJet, blend, blend_height};

use super::TileError;
use super::blocks::{Block, Blocks};
use super::error::Result;
use super::warp::PixelPosition;

/// Pixels around the asked ones: the surface needs two, and what continues it beyond the data looks at six more.
const MARGIN: isize = 8;
/// No patch has more pixels: a level is chosen so that a tile takes a few hundred across, wherever the file lies.
const MAX_PIXELS: usize = 1 << 22;

/// Whether a part of a level is small enough to be put together.
pub(super) fn is_small(width: usize, height: usize) -> bool {
    let margins = 2 * MARGIN.cast_unsigned() + 1;
    width
        .saturating_add(margins)
        .saturating_mul(height.saturating_add(margins))
        <= MAX_PIXELS
}

/// Reads a block; `None` where it has no data.
type Read<'a> = dyn FnMut(LevelTile) -> Result<Option<Arc<Block>>> + 'a;

/// Pixels of one level around some positions.
pub(super) struct Patch {
    left: isize,
    top: isize,
    width: usize,
    height: usize,
    /// Heights; beyond the data they go on for two pixels, so that the surface reaches the data's edge.
    heights: Vec<f32>,
    is_valid: Vec<bool>,
    /// Pixels of full resolution across one of the level.
    scale: f64,
    size: (usize, usize),
}

impl Patch {
    /// The pixels around positions, which are given in pixels of full resolution; `None` where none meets the raster.
    pub(super) fn around(
        blocks: &Blocks,
        level: u8,
        positions: &[PixelPosition],
        read: &mut Read,
    ) -> Result<Option<Self>> {
        let scale = f64::from(1_u32 << level);
        let size = blocks.size(level);
        let Some([left, top, right, bottom]) = span(positions, scale, size) else {
            return Ok(None);
        };
        let (left, top) = (left - MARGIN, top - MARGIN);
        let width = (right + MARGIN + 1 - left).cast_unsigned();
        let height = (bottom + MARGIN + 1 - top).cast_unsigned();
        if width.saturating_mul(height) > MAX_PIXELS {
            return Err(TileError::TooCoarse);
        }
        let mut patch = Self {
            left,
            top,
            width,
            height,
            heights: vec![f32::NAN; width * height],
            is_valid: Vec::new(),
            scale,
            size,
        };
        patch.paste(blocks, level, read)?;
        patch.is_valid = patch
            .heights
            .iter()
            .map(|height| !height.is_nan())
            .collect();
        patch.continue_beyond_data();
        Ok(Some(patch))
    }

    fn paste(&mut self, blocks: &Blocks, level: u8, read: &mut Read) -> Result<()> {
        let side = blocks.side();
        let inside = |start: isize, length: usize, size: usize| {
            let end = (start + length.cast_signed()).clamp(0, size.cast_signed());
            start.max(0).cast_unsigned()..end.cast_unsigned()
        };
        let columns = inside(self.left, self.width, self.size.0);
        let rows = inside(self.top, self.height, self.size.1);
        for block_row in rows.start / side..rows.end.div_ceil(side) {
            for block_column in columns.start / side..columns.end.div_ceil(side) {
                let id = TileId {
                    column: block_column,
                    row: block_row,
                };
                let tile = LevelTile { level, id };
                let Some(block) = read(tile)? else {
                    continue;
                };
                let window = blocks.window(tile);
                let from = columns.start.max(window.column);
                let to = columns.end.min(window.column + window.width);
                for row in rows.start.max(window.row)..rows.end.min(window.row + window.height) {
                    let source = (row - window.row) * block.width + from - window.column;
                    let target = (row.cast_signed() - self.top).cast_unsigned() * self.width
                        + (from.cast_signed() - self.left).cast_unsigned();
                    self.heights[target..target + to - from]
                        .copy_from_slice(&block.heights[source..source + to - from]);
                }
            }
        }
        Ok(())
    }

    /// Gives pixels beside the data the mean of what straight lines from the data lead to, twice.
    fn continue_beyond_data(&mut self) {
        if self.is_valid.iter().all(|&valid| valid) {
            return;
        }
        let (width, height) = (self.width.cast_signed(), self.height.cast_signed());
        for _ in 0..2 {
            let before = self.heights.clone();
            let at = |column: isize, row: isize| {
                ((0..width).contains(&column) && (0..height).contains(&row))
                    .then(|| before[(row * width + column).cast_unsigned()])
                    .filter(|height| !height.is_nan())
            };
            for row in 0..height {
                for column in 0..width {
                    let index = (row * width + column).cast_unsigned();
                    if !before[index].is_nan() {
                        continue;
                    }
                    let (mut sum, mut count) = (0.0, 0.0);
                    for (x, y) in NEIGHBOURS {
                        let Some(near) = at(column + x, row + y) else {
                            continue;
                        };
                        let far = at(column + 2 * x, row + 2 * y).unwrap_or(near);
                        sum += 2.0 * near - far;
                        count += 1.0;
                    }
                    if count > 0.0 {
                        self.heights[index] = sum / count;
                    }
                }
            }
        }
    }

    /// The surface at a position in pixels of full resolution, derivatives per pixel of full resolution; `None` where there
    /// is no data.
    pub(super) fn jet(&self, position: PixelPosition) -> Option<PixelJet> {
        let (samples, x, y) = self.samples(position)?;
        let jet = blend(&samples, x, y);
        let (first, second) = (1.0 / self.scale, 1.0 / (self.scale * self.scale));
        Some(PixelJet {
            value: jet.value,
            x: jet.x * first,
            y: jet.y * first,
            xx: jet.xx * second,
            xy: jet.xy * second,
            yy: jet.yy * second,
        })
    }

    /// The height at a position in pixels of full resolution; `None` where there is no data.
    pub(super) fn height(&self, position: PixelPosition) -> Option<f64> {
        let (samples, x, y) = self.samples(position)?;
        Some(blend_height(&samples, x, y))
    }

    /// The 4×4 heights around a position, and where it lies between the middle ones.
    fn samples(&self, position: PixelPosition) -> Option<([[f64; 4]; 4], f64, f64)> {
        let (column, row) = (position[0] / self.scale, position[1] / self.scale);
        if !self.has_data(column, row) {
            return None;
        }
        let (column, row) = (column - 0.5, row - 0.5);
        let (left, top) = (column.floor(), row.floor());
        let start = (left as isize - 1 - self.left).cast_unsigned()
            + (top as isize - 1 - self.top).cast_unsigned() * self.width;
        let samples = [0, 1, 2, 3].map(|tap_row| {
            let from = start + tap_row * self.width;
            let row = &self.heights[from..from + 4];
            [row[0], row[1], row[2], row[3]].map(f64::from)
        });
        Some((samples, column - left, row - top))
    }

    fn has_data(&self, column: f64, row: f64) -> bool {
        let inside = |value: f64, size: usize| (0.0..=size as f64).contains(&value);
        if !(inside(column, self.size.0) && inside(row, self.size.1)) {
            return false;
        }
        let column = (column as usize).min(self.size.0 - 1).cast_signed() - self.left;
        let row = (row as usize).min(self.size.1 - 1).cast_signed() - self.top;
        self.is_valid[(row * self.width.cast_signed() + column).cast_unsigned()]
    }
}

const NEIGHBOURS: [(isize, isize); 8] = [
    (-1, -1),
    (0, -1),
    (1, -1),
    (-1, 0),
    (1, 0),
    (-1, 1),
    (0, 1),
    (1, 1),
];

/// First column and row and last column and row of the level's pixels that the positions inside the raster meet.
fn span(positions: &[PixelPosition], scale: f64, size: (usize, usize)) -> Option<[isize; 4]> {
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for position in positions {
        let at = [position[0] / scale, position[1] / scale];
        let is_inside =
            (0.0..=size.0 as f64).contains(&at[0]) && (0.0..=size.1 as f64).contains(&at[1]);
        if is_inside {
            for axis in 0..2 {
                low[axis] = low[axis].min(at[axis]);
                high[axis] = high[axis].max(at[axis]);
            }
        }
    }
    (low[0] <= high[0]).then(|| {
        [
            low[0] as isize,
            low[1] as isize,
            high[0] as isize,
            high[1] as isize,
        ]
    })
}
