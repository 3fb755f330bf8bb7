//! What a layer leaves over: differences in steps, added to what it decodes to.

use terrane_format::Corrections;
use terrane_format::integers::{self, Prediction};
use terrane_format::record::Residual;

use super::heights::{TileHeights, rounded};
use crate::step_search::bisect;

/// The coarsest step for the differences whose error is no more than the target; `None` where nothing needs to be kept.
pub(super) fn step_for_rmse(target: f64, rmse: impl Fn(Option<f64>) -> f64) -> Option<f64> {
    if rmse(None) <= target {
        return None;
    }
    // A step of √12 times the error is right for small steps; coarser ones may do where most is zero.
    let (fine, _) = bisect(target, target * 64.0, |step| rmse(Some(step)) <= target);
    Some(fine)
}

/// The finest step whose bytes fit a budget; `None` where nothing fits.
pub(super) fn step_for_bytes(
    tile: &TileHeights,
    values: &[f64],
    prediction: Prediction,
    (budget, largest): (f64, f64),
) -> Option<f64> {
    let size = |step| {
        let symbols = rounded(values, step);
        let missing = tile.missing.as_deref();
        integers::encode(&symbols, tile.window.width, prediction, missing).len() as f64
    };
    let coarsest = 4.0 * largest.max(1e-3);
    if size(coarsest) > budget {
        return None;
    }
    let (_, coarse) = bisect(1e-5, coarsest, |step| size(step) > budget);
    Some(coarse)
}

/// Differences in steps.
pub(crate) fn residual(differences: &[f64], step_m: f64) -> Residual {
    Residual {
        step_m,
        values: rounded(differences, step_m),
    }
}

/// Adds corrections to the heights of a tile of a width.
pub(crate) fn correct(heights: &mut [f64], corrections: &Corrections, width: usize) {
    for (height, metres) in heights.iter_mut().zip(corrections.metres(width)) {
        *height += metres;
    }
}

/// Adds what a residual stands for to heights.
pub(crate) fn add(heights: &mut [f64], residual: &Residual) {
    for (height, &value) in heights.iter_mut().zip(&residual.values) {
        *height += value as f64 * residual.step_m;
    }
}
