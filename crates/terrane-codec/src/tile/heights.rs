//! The heights of a tile as an encoder sees them.

use terrane_format::Window;

use super::water::Water;
use crate::Error;
use crate::measured::Measured;

/// Steps that surveys store heights in, tried from the coarsest.
pub(super) const STEPS_M: [f64; 14] = [
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

/// One tile's heights, NaN where there is no data.
pub(crate) struct TileHeights {
    pub(crate) heights: Vec<f64>,
    pub(crate) missing: Option<Vec<bool>>,
    pub(crate) window: Window,
    /// Where there is some, and it was looked for.
    pub(crate) water: Option<Water>,
}

impl TileHeights {
    /// The heights of a window; `None` where there is no data at all.
    pub(crate) fn new(heights: Vec<f64>, window: Window) -> Result<Option<Self>, Error> {
        if let Some(index) = heights.iter().position(|height| height.is_infinite()) {
            return Err(Error::NotAHeight {
                row: window.row + index / window.width,
                column: window.column + index % window.width,
            });
        }
        let missing: Vec<bool> = heights.iter().map(|height| height.is_nan()).collect();
        if missing.iter().all(|&missing| missing) {
            return Ok(None);
        }
        let missing = missing.contains(&true).then_some(missing);
        Ok(Some(Self {
            heights,
            missing,
            window,
            water: None,
        }))
    }

    /// What comes back, against what was there.
    pub(crate) fn measure(&self, decoded: &[f64]) -> Measured {
        let mut measured = Measured::default();
        for (index, (&height, &decoded)) in self.heights.iter().zip(decoded).enumerate() {
            if !self.is_missing(index) {
                measured.add(height, decoded);
            }
        }
        measured
    }

    pub(crate) fn is_missing(&self, index: usize) -> bool {
        self.missing.as_ref().is_some_and(|missing| missing[index])
    }

    pub(crate) fn valid<'b>(&'b self, values: &'b [f64]) -> impl Iterator<Item = f64> + Clone + 'b {
        values
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.is_missing(*index))
            .map(|(_, &value)| value)
    }

    /// The maximum magnitude.
    pub(crate) fn max_abs(&self) -> f64 {
        self.valid(&self.heights)
            .fold(0.0, |max, height| max.max(height.abs()))
    }

    /// Whether there is a zero below zero, which no count of steps gives back.
    pub(crate) fn has_negative_zero(&self) -> bool {
        let bits = (-0.0_f64).to_bits();
        self.valid(&self.heights)
            .any(|height| height.to_bits() == bits)
    }

    /// The height of all pixels, where they have one.
    pub(crate) fn flat(&self) -> Option<f64> {
        let mut heights = self.valid(&self.heights);
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
        exact_step(self.valid(&self.heights), is_f32)
    }
}

/// The coarsest of the steps in which surveys store heights that gives every one of these back, or 0.
pub fn exact_step(heights: impl Iterator<Item = f64> + Clone, is_f32: bool) -> f64 {
    let is_exact = |step: f64| {
        heights.clone().all(|height| {
            let back = (height / step).round() * step;
            back == height || (is_f32 && back as f32 == height as f32)
        })
    };
    STEPS_M
        .into_iter()
        .find(|&step| is_exact(step))
        .unwrap_or(0.0)
}

/// The lowest and the highest of some heights.
pub(crate) fn range(heights: impl Iterator<Item = f64>) -> (f64, f64) {
    heights.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), height| {
        (low.min(height), high.max(height))
    })
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
