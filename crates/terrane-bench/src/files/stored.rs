//! A file that was written and read again.

use terrane_codec::{Measured, psnr_db};

use super::source::Source;

/// A file and the heights that it gives back.
#[derive(Debug)]
pub(super) struct Stored {
    /// Every byte of the file.
    pub bytes: u64,
    /// Heights in metres.
    pub heights: Vec<f64>,
}

/// How far heights are off, over all pixels that have one in the source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Errors {
    /// Peak signal-to-noise ratio, the peak being the range of the source.
    pub psnr_db: f64,
    /// Root mean square error.
    pub rmse_m: f64,
    /// Maximum error; infinite where a height is lost.
    pub max_error_m: f64,
}

impl Stored {
    /// How far it is off from its source.
    pub(super) fn errors(&self, source: &Source) -> Errors {
        errors(&source.heights, &self.heights, source.range_m)
    }
}

impl Errors {
    /// Between these and others, at a part of the way: PSNR linearly, errors by their logarithms where they have one.
    pub(super) fn mixed(&self, other: &Self, part: f64) -> Self {
        let linear = |from: f64, to: f64| from + (to - from) * part;
        let geometric = |from: f64, to: f64| {
            if from > 0.0 && to > 0.0 {
                linear(from.ln(), to.ln()).exp()
            } else {
                linear(from, to)
            }
        };
        Self {
            psnr_db: linear(self.psnr_db, other.psnr_db),
            rmse_m: geometric(self.rmse_m, other.rmse_m),
            max_error_m: geometric(self.max_error_m, other.max_error_m),
        }
    }
}

fn errors(source: &[f64], decoded: &[f64], range_m: f64) -> Errors {
    let mut measured = Measured::default();
    for (&height, &decoded) in source.iter().zip(decoded) {
        if !height.is_nan() {
            let is_lost = decoded.is_nan();
            measured.add(height, if is_lost { f64::INFINITY } else { decoded });
        }
    }
    let rmse_m = measured.rmse_m();
    Errors {
        psnr_db: psnr_db((rmse_m / range_m).powi(2)),
        rmse_m,
        max_error_m: measured.max_error_m,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_two_files_agrees_with_itself() {
        let of = |error_m: f64| errors(&[0.0, 10.0], &[error_m, 10.0 + error_m], 10.0);
        let found = of(0.1).mixed(&of(0.05), 0.25);
        let expected = psnr_db((found.rmse_m / 10.0).powi(2));
        assert!((found.psnr_db - expected).abs() < 1e-9, "{found:?}");
        let start = of(0.1).mixed(&of(0.05), 0.0);
        assert!((start.rmse_m - 0.1).abs() < 1e-12, "{start:?}");
    }

    #[test]
    fn the_peak_is_the_range() {
        let found = errors(&[0.0, 10.0, f64::NAN], &[0.1, 10.1, 7.0], 10.0);
        assert!((found.psnr_db - 40.0).abs() < 1e-9, "{found:?}");
        assert!((found.rmse_m - 0.1).abs() < 1e-12);
        assert!((found.max_error_m - 0.1).abs() < 1e-12);
        let exact = errors(&[1.0, 2.0], &[1.0, 2.0], 1.0);
        assert_eq!((exact.psnr_db, exact.max_error_m), (f64::INFINITY, 0.0));
        let lost = errors(&[1.0, 2.0], &[1.0, f64::NAN], 1.0);
        assert_eq!(lost.max_error_m, f64::INFINITY);
    }
}
