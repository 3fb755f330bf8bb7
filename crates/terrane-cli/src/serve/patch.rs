//! A part of a level put together from blocks, and the continuous surface through it.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use terrane_codec::kernel::{PixelJet, blend, blend_height};

use crate::output::sentence;

use super::blocks::{Block, Blocks};
use super::limits::Deadline;
use super::lru::Lru;
use super::metrics::Counter;
use super::warp::Place;

/// Pixels around the asked ones: the surface needs two, and what continues it beyond the data looks at six more.
const MARGIN: isize = 8;
/// No patch has more pixels: a level is chosen so that a tile takes a few hundred across, wherever the file lies.
const MOST_PIXELS: usize = 1 << 22;

/// A tile of so coarse a zoom that the file's overviews do not reach it.
#[derive(Debug, thiserror::Error)]
#[error(
    "this zoom is too coarse for the overviews that the file has: minzoom in its TileJSON says where they begin"
)]
pub(crate) struct TooCoarse;

/// Whether a part of a level is small enough to be put together.
pub(crate) fn is_small(width: usize, height: usize) -> bool {
    let margins = 2 * MARGIN.cast_unsigned() + 1;
    width
        .saturating_add(margins)
        .saturating_mul(height.saturating_add(margins))
        <= MOST_PIXELS
}

/// Which block: of which file, which level, column and row.
pub(crate) type BlockKey = (u64, u8, usize, usize);

/// The block once it is there; those who ask meanwhile wait for the one that reads it.
type Slot = Arc<OnceLock<Result<Option<Arc<Block>>, String>>>;

/// Decoded blocks of all files, within a number of bytes.
pub(crate) struct BlockStore {
    slots: Lru<BlockKey, Slot>,
    pub(crate) decoded: Counter,
    pub(crate) reused: Counter,
}

impl BlockStore {
    /// A store of so many bytes.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            slots: Lru::new(most_bytes),
            decoded: Counter::default(),
            reused: Counter::default(),
        }
    }

    /// Bytes that are kept now.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.bytes()
    }

    fn block(&self, file: u64, blocks: &Blocks, place: [usize; 3]) -> Result<Option<Arc<Block>>> {
        let [level, column, row] = place;
        let key = (file, level as u8, column, row);
        let slot = self.slots.get(&key).unwrap_or_else(|| {
            let slot = Slot::default();
            // Counted in full before it is there, so that many at once stay within the bound too.
            let bytes = blocks
                .window(level as u8, column, row)
                .pixels()
                .unwrap_or(0)
                * 4;
            self.slots.insert(key, slot.clone(), bytes);
            slot
        });
        let mut is_new = false;
        let outcome = slot.get_or_init(|| {
            is_new = true;
            blocks
                .read(level as u8, column, row)
                .map(|block| block.map(Arc::new))
                .map_err(|error| sentence(&error))
        });
        if is_new {
            self.decoded.add(1);
        } else {
            self.reused.add(1);
        }
        outcome.clone().map_err(|reason| {
            // Reading may succeed the next time, as with a file on a web server.
            self.slots.insert(key, Slot::default(), 0);
            anyhow::anyhow!(reason)
        })
    }
}

/// Pixels of one level around some places.
pub(crate) struct Patch {
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
    /// The pixels around places, which are given in pixels of full resolution; `None` where no place meets the raster.
    pub(crate) fn around(
        store: &BlockStore,
        file: u64,
        blocks: &Blocks,
        level: u8,
        places: &[Place],
        deadline: Deadline,
    ) -> Result<Option<Self>> {
        let scale = f64::from(1_u32 << level);
        let size = blocks.size(level);
        let Some([left, top, right, bottom]) = extent(places, scale, size) else {
            return Ok(None);
        };
        let (left, top) = (left - MARGIN, top - MARGIN);
        let width = (right + MARGIN + 1 - left).cast_unsigned();
        let height = (bottom + MARGIN + 1 - top).cast_unsigned();
        if width.saturating_mul(height) > MOST_PIXELS {
            return Err(TooCoarse.into());
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
        patch.paste(store, file, blocks, level, deadline)?;
        patch.is_valid = patch
            .heights
            .iter()
            .map(|height| !height.is_nan())
            .collect();
        patch.continue_beyond_data();
        Ok(Some(patch))
    }

    fn paste(
        &mut self,
        store: &BlockStore,
        file: u64,
        blocks: &Blocks,
        level: u8,
        deadline: Deadline,
    ) -> Result<()> {
        let side = blocks.side();
        let inside = |start: isize, length: usize, size: usize| {
            let end = (start + length.cast_signed()).clamp(0, size.cast_signed());
            start.max(0).cast_unsigned()..end.cast_unsigned()
        };
        let columns = inside(self.left, self.width, self.size.0);
        let rows = inside(self.top, self.height, self.size.1);
        for block_row in rows.start / side..rows.end.div_ceil(side) {
            for block_column in columns.start / side..columns.end.div_ceil(side) {
                deadline.check()?;
                let place = [usize::from(level), block_column, block_row];
                let Some(block) = store.block(file, blocks, place)? else {
                    continue;
                };
                let window = blocks.window(level, block_column, block_row);
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

    /// The surface at a place in pixels of full resolution, derivatives per pixel of full resolution; `None` where there
    /// is no data.
    pub(crate) fn jet(&self, place: Place) -> Option<PixelJet> {
        let (samples, x, y) = self.samples(place)?;
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

    /// The height at a place in pixels of full resolution; `None` where there is no data.
    pub(crate) fn height(&self, place: Place) -> Option<f64> {
        let (samples, x, y) = self.samples(place)?;
        Some(blend_height(&samples, x, y))
    }

    /// The 4×4 heights around a place, and where it lies between the middle ones.
    fn samples(&self, place: Place) -> Option<([[f64; 4]; 4], f64, f64)> {
        let (column, row) = (place[0] / self.scale, place[1] / self.scale);
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

/// First column and row and last column and row of the level's pixels that the places inside the raster meet.
fn extent(places: &[Place], scale: f64, size: (usize, usize)) -> Option<[isize; 4]> {
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for place in places {
        let at = [place[0] / scale, place[1] / scale];
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
