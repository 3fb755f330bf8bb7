//! The heights of a tile as an encoder sees them, and searches for the step that gives a rate.

use terrane_format::Window;
use terrane_format::record::{IntegerScale, Integers};

/// Steps that surveys store heights in, tried from the coarsest.
const STEPS_M: [f64; 14] = [
    1.0,
    0.5,
    0.25,
    0.2,
    0.1,
    0.0625,
    0.05,
    0.03125,
    0.02,
    0.01,
    0.007_812_5,
    0.005,
    0.001,
    0.0001,
];
/// Halvings of a search for a rate.
const SEARCHES: u32 = 14;

/// One tile's heights, NaN where there is no data.
pub(crate) struct Source<'a> {
    pub(crate) heights: &'a [f64],
    pub(crate) missing: Option<Vec<bool>>,
    pub(crate) window: Window,
}

impl Source<'_> {
    pub(crate) fn is_missing(&self, index: usize) -> bool {
        self.missing.as_ref().is_some_and(|missing| missing[index])
    }

    pub(crate) fn valid<'b>(&'b self, values: &'b [f64]) -> impl Iterator<Item = f64> + 'b {
        values
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.is_missing(*index))
            .map(|(_, &value)| value)
    }

    pub(crate) fn greatest(&self) -> f64 {
        self.valid(self.heights)
            .fold(0.0, |greatest, height| greatest.max(height.abs()))
    }

    /// The lowest and the highest.
    pub(crate) fn range(&self) -> (f64, f64) {
        self.valid(self.heights)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), height| {
                (low.min(height), high.max(height))
            })
    }

    /// The height of all pixels, where they have one.
    pub(crate) fn flat(&self) -> Option<f64> {
        let mut heights = self.valid(self.heights);
        let first = heights.next()?;
        heights
            .all(|height| height.to_bits() == first.to_bits())
            .then_some(first)
    }

    /// What decoded heights leave over.
    pub(crate) fn differences(&self, decoded: &[f64]) -> Vec<f64> {
        self.heights
            .iter()
            .zip(decoded)
            .map(|(height, decoded)| height - decoded)
            .collect()
    }

    /// Error of values that are rounded to a step, or left out altogether.
    pub(crate) fn rmse(&self, values: &[f64], step_m: Option<f64>) -> f64 {
        let (sum, count) = self.valid(values).fold((0.0, 0.0), |(sum, count), value| {
            let kept = step_m.map_or(0.0, |step| (value / step).round() * step);
            (sum + (value - kept).powi(2), count + 1.0)
        });
        (sum / count).sqrt()
    }

    /// The coarsest step that gives every height back, or 0.
    pub(crate) fn exact_step(&self, is_f32: bool) -> f64 {
        let is_exact = |step: f64| {
            self.valid(self.heights).all(|height| {
                let back = (height / step).round() * step;
                back == height || (is_f32 && back as f32 == height as f32)
            })
        };
        STEPS_M
            .into_iter()
            .find(|&step| is_exact(step))
            .unwrap_or(0.0)
    }

    /// The bits of heights as integers in the order of the heights.
    pub(crate) fn as_bits(&self) -> Integers {
        let is_f32 = self
            .valid(self.heights)
            .all(|height| f64::from(height as f32) == height);
        let values = self
            .heights
            .iter()
            .map(|&height| match (height.is_nan(), is_f32) {
                (true, _) => 0,
                (_, true) => ordered(
                    i64::from((height as f32).to_bits().cast_signed()),
                    i64::from(i32::MAX),
                ),
                _ => ordered(height.to_bits().cast_signed(), i64::MAX),
            });
        Integers {
            scale: if is_f32 {
                IntegerScale::F32Bits
            } else {
                IntegerScale::F64Bits
            },
            values: values.collect(),
        }
    }
}

/// Values in steps; 0 where there is none.
pub(crate) fn rounded(values: &[f64], step_m: f64) -> Vec<i64> {
    values
        .iter()
        .map(|value| {
            if value.is_nan() {
                0
            } else {
                (value / step_m).round() as i64
            }
        })
        .collect()
}

/// Bits of a float as an integer that grows with it, and back: a negative one counts down from −1.
fn ordered(bits: i64, magnitude: i64) -> i64 {
    if bits < 0 { !(bits & magnitude) } else { bits }
}

pub(crate) fn integer_heights(integers: &Integers) -> Vec<f64> {
    let values = integers.values.iter();
    match integers.scale {
        IntegerScale::Step { origin_m, step_m } => values
            .map(|&value| origin_m + value as f64 * step_m)
            .collect(),
        IntegerScale::F32Bits => values
            .map(|&value| {
                let bits = if value < 0 {
                    (!value as u32) | 1 << 31
                } else {
                    value as u32
                };
                f64::from(f32::from_bits(bits))
            })
            .collect(),
        IntegerScale::F64Bits => values
            .map(|&value| {
                f64::from_bits(if value < 0 {
                    (!value).cast_unsigned() | 1 << 63
                } else {
                    value.cast_unsigned()
                })
            })
            .collect(),
    }
}

/// The coarsest step whose error is no more than the target; `None` where nothing needs to be kept.
pub(crate) fn search_rmse(target: f64, rmse: impl Fn(Option<f64>) -> f64) -> Option<f64> {
    if rmse(None) <= target {
        return None;
    }
    // A step of √12 times the error is right for small steps; coarser ones may do where most is nought.
    let (mut fine, mut coarse) = (target, target * 64.0);
    for _ in 0..SEARCHES {
        let middle = (fine * coarse).sqrt();
        if rmse(Some(middle)) <= target {
            fine = middle;
        } else {
            coarse = middle;
        }
    }
    Some(fine)
}

/// The finest step whose bytes fit a budget; `None` where nothing fits.
pub(crate) fn search_size(budget: f64, largest: f64, size: impl Fn(f64) -> f64) -> Option<f64> {
    let (mut fine, mut coarse) = (1e-5, 4.0 * largest.max(1e-3));
    if size(coarse) > budget {
        return None;
    }
    for _ in 0..SEARCHES {
        let middle = (fine * coarse).sqrt();
        if size(middle) <= budget {
            coarse = middle;
        } else {
            fine = middle;
        }
    }
    Some(coarse)
}
