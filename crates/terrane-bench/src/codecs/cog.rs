//! A tile of a cloud-optimised GeoTIFF: heights rounded to steps, a predictor of TIFF, and a general compressor.

use super::codec::{
    Codec, Coded, Goal, OFFSET_AND_SCALE, TIFF_INDEX, Tile, error_m, relative_errors,
};
use super::{CodecError, packer::Packer};

/// What a TIFF stores of a height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sample {
    /// Whole steps above the lowest, in 16 bits where they fit, by differences from the left (predictor 2).
    Integers,
    /// 32-bit floats, by differences of their bytes (predictor 3).
    Floats,
}

/// One way to store a tile in a TIFF.
pub(super) struct Cog {
    /// What is stored.
    pub(super) sample: Sample,
    /// What it is packed with.
    pub(super) packer: Packer,
}

/// Heights in whole steps, counted from the first above an offset.
struct Steps {
    offset_m: f64,
    first: f64,
    step_m: f64,
    values: Vec<u32>,
}

impl Steps {
    /// `None` where 32 bits do not hold the steps.
    fn new(tile: &Tile, goal: Goal) -> Option<Self> {
        let (offset_m, first, step_m) = match (goal, error_m(tile, goal)) {
            // From a whole step, so that heights in whole steps come back.
            (Goal::Lossless(step_m), _) => (0.0, (tile.low_m / step_m).round(), step_m),
            // As it is stored.
            (_, error) => (f64::from(tile.low_m as f32), 0.0, 2.0 * error?),
        };
        if tile.range_m / step_m >= f64::from(u32::MAX - 1) {
            return None;
        }
        let steps = |&height: &f32| {
            let steps = (f64::from(height) - offset_m) / step_m - first;
            steps.round_ties_even() as u32
        };
        Some(Self {
            offset_m,
            first,
            step_m,
            values: tile.heights.iter().map(steps).collect(),
        })
    }

    fn heights(&self, values: impl Iterator<Item = u32>) -> Vec<f32> {
        let height = |value| (f64::from(value) + self.first) * self.step_m + self.offset_m;
        values.map(|value| height(value) as f32).collect()
    }
}

impl Cog {
    fn integers(&self, tile: &Tile, goal: Goal) -> Result<Option<Coded>, CodecError> {
        let Some(steps) = Steps::new(tile, goal) else {
            return Ok(None);
        };
        let is_short = steps.values.iter().all(|&value| value <= 0xFFFF);
        let size = if is_short { 2 } else { 4 };
        let predicted = differences(&steps.values, tile.side);
        let plain: Vec<u8> = predicted
            .iter()
            .flat_map(|value| value.to_le_bytes().into_iter().take(size))
            .collect();
        let packed = self.packer.pack(&plain)?;
        let plain = self.packer.unpack(&packed, plain.len())?;
        let values: Vec<u32> = plain
            .chunks_exact(size)
            .map(|bytes| {
                let parts = bytes.iter().rev().map(|&byte| u32::from(byte));
                parts.fold(0, |value, byte| value << 8 | byte)
            })
            .collect();
        let mask = if is_short { 0xFFFF } else { u32::MAX };
        let values = sums(&values, tile.side);
        Ok(Some(Coded {
            bytes: packed.len() + TIFF_INDEX + OFFSET_AND_SCALE,
            heights: steps.heights(values.iter().map(|value| value & mask)),
        }))
    }

    fn floats(&self, tile: &Tile, goal: Goal) -> Result<Option<Coded>, CodecError> {
        let heights = match goal {
            Goal::Lossless(_) => tile.heights.clone(),
            _ => match Steps::new(tile, goal) {
                Some(steps) => steps.heights(steps.values.iter().copied()),
                None => return Ok(None),
            },
        };
        let mut plain = Vec::with_capacity(heights.len() * 4);
        for row in heights.chunks_exact(tile.side) {
            plain.extend(predict_floats(row));
        }
        let packed = self.packer.pack(&plain)?;
        let plain = self.packer.unpack(&packed, plain.len())?;
        let rows = plain.chunks_exact(tile.side * 4).flat_map(restore_floats);
        Ok(Some(Coded {
            bytes: packed.len() + TIFF_INDEX,
            heights: rows.collect(),
        }))
    }
}

impl Codec for Cog {
    fn name(&self) -> String {
        let sample = match self.sample {
            Sample::Integers => "integers, predictor 2",
            Sample::Floats => "floats, predictor 3",
        };
        format!("COG {sample}, {}", self.packer.name())
    }

    fn is_variant(&self) -> bool {
        self.sample == Sample::Floats || Some(&self.packer) != Packer::ALL.last()
    }

    fn qualities(&self) -> Vec<f64> {
        relative_errors()
    }

    fn code(&self, tile: &Tile, goal: Goal) -> Result<Option<Coded>, CodecError> {
        match self.sample {
            Sample::Integers => self.integers(tile, goal),
            Sample::Floats => self.floats(tile, goal),
        }
    }
}

/// Predictor 2: every value but a row's first less the one before it.
fn differences(values: &[u32], side: usize) -> Vec<u32> {
    values
        .chunks_exact(side)
        .flat_map(|row| {
            let before = std::iter::once(&0).chain(row);
            row.iter()
                .zip(before)
                .map(|(value, before)| value.wrapping_sub(*before))
        })
        .collect()
}

/// Predictor 2 undone.
fn sums(values: &[u32], side: usize) -> Vec<u32> {
    values
        .chunks_exact(side)
        .flat_map(|row| {
            row.iter().scan(0_u32, |sum, value| {
                *sum = sum.wrapping_add(*value);
                Some(*sum)
            })
        })
        .collect()
}

/// Predictor 3: the highest bytes of a row's floats, then the next, and so on; each byte less the one before it.
fn predict_floats(row: &[f32]) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..4)
        .flat_map(|byte| row.iter().map(move |value| value.to_be_bytes()[byte]))
        .collect();
    for index in (1..bytes.len()).rev() {
        bytes[index] = bytes[index].wrapping_sub(bytes[index - 1]);
    }
    bytes
}

/// Predictor 3 undone.
fn restore_floats(bytes: &[u8]) -> Vec<f32> {
    let mut bytes = bytes.to_vec();
    for index in 1..bytes.len() {
        bytes[index] = bytes[index].wrapping_add(bytes[index - 1]);
    }
    let width = bytes.len() / 4;
    (0..width)
        .map(|column| f32::from_be_bytes([0, 1, 2, 3].map(|byte| bytes[byte * width + column])))
        .collect()
}
