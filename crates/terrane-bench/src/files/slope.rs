//! Slope and aspect of every pixel, by Horn's gradient of the 3×3 heights around it, and how far those of decoded heights
//! are off.

use terrane_geo::{Product, derive_rows};

use super::ground::Ground;

/// Gentler slopes have no aspect that anybody would use.
const MIN_SLOPE_DEG: f64 = 2.0;
/// The error of an aspect that level ground no longer has: that of a direction at random.
const NO_ASPECT_DEG: f64 = 90.0;

/// Slope and aspect in degrees; NaN at the edge, beside gaps, and the aspect of level ground.
#[derive(Debug)]
pub(super) struct Slopes {
    slope_deg: Vec<f64>,
    aspect_deg: Vec<f64>,
}

/// How far slopes are off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SlopeErrors {
    /// Root mean square error of slopes.
    pub slope_rmse_deg: f64,
    /// Root mean square error of aspects, where the source is steeper than two degrees; NaN where it nowhere is.
    pub aspect_rmse_deg: f64,
}

impl Slopes {
    /// Those of a ground.
    pub(super) fn of(ground: &Ground) -> Self {
        let derive = |product| -> Vec<f64> {
            let row = |row: usize| ground.heights.chunks_exact(ground.width).nth(row);
            (0..ground.height)
                .flat_map(|middle| {
                    let above = middle.checked_sub(1).and_then(row);
                    let current = row(middle).unwrap_or_default();
                    derive_rows(product, above, current, row(middle + 1), ground.cell)
                })
                .collect()
        };
        Self {
            slope_deg: derive(Product::Slope),
            aspect_deg: derive(Product::Aspect),
        }
    }

    /// How far others are off from these.
    pub(super) fn errors(&self, decoded: &Self) -> SlopeErrors {
        let slopes = self.slope_deg.iter().zip(&decoded.slope_deg);
        let slopes = slopes.map(|(source, decoded)| decoded - source);
        let aspects = self.aspect_deg.iter().zip(&decoded.aspect_deg);
        let steep = self.slope_deg.iter().zip(aspects);
        let steep = steep.filter(|(slope, _)| **slope > MIN_SLOPE_DEG);
        let aspects = steep.map(|(_, (source, decoded))| {
            if decoded.is_nan() {
                return NO_ASPECT_DEG;
            }
            let apart = (decoded - source).rem_euclid(360.0);
            apart.min(360.0 - apart)
        });
        SlopeErrors {
            slope_rmse_deg: root_mean_square(slopes),
            aspect_rmse_deg: root_mean_square(aspects),
        }
    }
}

/// The root of the mean of the squares of what is a number; NaN where nothing is.
fn root_mean_square(values: impl Iterator<Item = f64>) -> f64 {
    let valid = values.filter(|value| !value.is_nan());
    let (sum, count) = valid.fold((0.0, 0_usize), |(sum, count), value| {
        (sum + value * value, count + 1)
    });
    (sum / count as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::ground::tests::{ground, surface};
    use super::*;

    /// A plane that rises by a part of a metre for each metre, towards a direction clockwise from north.
    fn plane(rise: f64, direction_deg: f64) -> Vec<f64> {
        let (east, north) = direction_deg.to_radians().sin_cos();
        surface(12, 9, |column, row| {
            100.0 + rise * 2.0 * (column * east - row * north)
        })
    }

    fn errors(source: &[f64], decoded: &[f64]) -> SlopeErrors {
        Slopes::of(&ground(12, source)).errors(&Slopes::of(&ground(12, decoded)))
    }

    #[test]
    fn planes_differ_by_their_angles() {
        let found = errors(&plane(0.5, 30.0), &plane(0.5, 30.0));
        assert_eq!((found.slope_rmse_deg, found.aspect_rmse_deg), (0.0, 0.0));
        let found = errors(&plane(0.5, 350.0), &plane(0.25, 20.0));
        let apart = 0.5_f64.atan().to_degrees() - 0.25_f64.atan().to_degrees();
        assert!((found.slope_rmse_deg - apart).abs() < 1e-3, "{found:?}");
        // Across north, where the numbers of the angles leap.
        assert!((found.aspect_rmse_deg - 30.0).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn gentle_slopes_have_no_part_in_aspects() {
        let gentle = errors(&plane(0.03, 0.0), &plane(0.03, 90.0));
        assert!(gentle.aspect_rmse_deg.is_nan());
        let levelled = errors(&plane(0.5, 0.0), &plane(0.0, 0.0));
        assert_eq!(levelled.aspect_rmse_deg, 90.0);
    }

    #[test]
    fn gaps_are_left_out() {
        let source = plane(0.5, 30.0);
        let mut gaps = source.clone();
        gaps[40] = f64::NAN;
        let found = errors(&gaps, &source);
        assert_eq!((found.slope_rmse_deg, found.aspect_rmse_deg), (0.0, 0.0));
    }
}
