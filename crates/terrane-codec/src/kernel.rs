//! The C² surface through a raster: quintic pieces on four samples an axis.
//!
//! At a sample it has the sample's value, the central difference as slope and the second difference as curvature; so
//! the surface's derivatives at pixel centres are the ones that everybody computes from the raster.

/// Rows: powers of t from 0 to 5; columns: the samples at −1, 0, 1, 2.
const WEIGHTS: [[f64; 4]; 6] = [
    [0.0, 1.0, 0.0, 0.0],
    [-0.5, 0.0, 0.5, 0.0],
    [0.5, -1.0, 0.5, 0.0],
    [1.5, -4.5, 4.5, -1.5],
    [-2.5, 7.5, -7.5, 2.5],
    [1.0, -3.0, 3.0, -1.0],
];

/// Weights of the four samples around a position t of [0, 1], and their first and second derivatives.
pub fn weights(t: f64) -> [[f64; 4]; 3] {
    let mut all = [[0.0; 4]; 3];
    for tap in 0..4 {
        // Horner's scheme for the value and its derivatives together.
        let (mut value, mut first, mut second) = (0.0, 0.0, 0.0);
        for row in WEIGHTS.iter().rev() {
            second = second * t + 2.0 * first;
            first = first * t + value;
            value = value * t + row[tap];
        }
        all[0][tap] = value;
        all[1][tap] = first;
        all[2][tap] = second;
    }
    all
}

/// A height with its derivatives along columns (x) and rows (y) of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PixelJet {
    /// The height.
    pub value: f64,
    /// Its change per column.
    pub x: f64,
    /// Its change per row.
    pub y: f64,
    /// Second derivative along columns.
    pub xx: f64,
    /// Mixed second derivative.
    pub xy: f64,
    /// Second derivative along rows.
    pub yy: f64,
}

impl PixelJet {
    /// The sum of two surfaces.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            x: self.x + other.x,
            y: self.y + other.y,
            xx: self.xx + other.xx,
            xy: self.xy + other.xy,
            yy: self.yy + other.yy,
        }
    }

    /// The product of two surfaces.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        let (a, b) = (self, other);
        Self {
            value: a.value * b.value,
            x: a.x * b.value + a.value * b.x,
            y: a.y * b.value + a.value * b.y,
            xx: a.xx * b.value + 2.0 * a.x * b.x + a.value * b.xx,
            xy: a.xy * b.value + a.x * b.y + a.y * b.x + a.value * b.xy,
            yy: a.yy * b.value + 2.0 * a.y * b.y + a.value * b.yy,
        }
    }

    /// The product of a weight along columns and one along rows, each with its first and second derivative.
    #[must_use]
    pub fn of_weights([x, dx, dxx]: [f64; 3], [y, dy, dyy]: [f64; 3]) -> Self {
        let columns = Self {
            value: x,
            x: dx,
            xx: dxx,
            ..Self::default()
        };
        columns.times(Self {
            value: y,
            y: dy,
            yy: dyy,
            ..Self::default()
        })
    }

    /// The surface scaled in height.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        self.times(Self {
            value: factor,
            ..Self::default()
        })
    }
}

/// The surface at a position in units of samples, where sample (column, row) lies at those coordinates.
pub fn interpolate(column: f64, row: f64, mut sample: impl FnMut(isize, isize) -> f64) -> PixelJet {
    let Ok(jet) = try_interpolate(column, row, |column, row| {
        Ok::<_, std::convert::Infallible>(sample(column, row))
    });
    jet
}

/// As [`interpolate`], where a sample may fail.
pub fn try_interpolate<E>(
    column: f64,
    row: f64,
    mut sample: impl FnMut(isize, isize) -> Result<f64, E>,
) -> Result<PixelJet, E> {
    let (left, top) = (column.floor(), row.floor());
    let mut samples = [[0.0; 4]; 4];
    for (tap_row, samples) in (-1..).zip(&mut samples) {
        for (tap_column, value) in (-1..).zip(samples) {
            *value = sample(left as isize + tap_column, top as isize + tap_row)?;
        }
    }
    Ok(interpolate_4x4(&samples, column - left, row - top))
}

/// The surface between the middle four of 4×4 samples, at a position of [0, 1]² between them.
pub fn interpolate_4x4(samples: &[[f64; 4]; 4], x: f64, y: f64) -> PixelJet {
    let (horizontal, vertical) = (weights(x), weights(y));
    let mut jet = PixelJet::default();
    for (j, samples) in samples.iter().enumerate() {
        // One row first: its value and derivatives along x.
        let mut along = [0.0; 3];
        for (i, sample) in samples.iter().enumerate() {
            for order in 0..3 {
                along[order] += horizontal[order][i] * sample;
            }
        }
        let [value, first, second] = vertical.map(|weights| weights[j]);
        jet.value += value * along[0];
        jet.x += value * along[1];
        jet.xx += value * along[2];
        jet.y += first * along[0];
        jet.xy += first * along[1];
        jet.yy += second * along[0];
    }
    jet
}

/// The height alone of [`interpolate_4x4`], at a fraction of its cost.
pub fn interpolate_4x4_height(samples: &[[f64; 4]; 4], x: f64, y: f64) -> f64 {
    let weights = |t: f64| {
        let mut weights = [0.0; 4];
        for row in WEIGHTS.iter().rev() {
            for (weight, power) in weights.iter_mut().zip(row) {
                *weight = *weight * t + power;
            }
        }
        weights
    };
    let (horizontal, vertical) = (weights(x), weights(y));
    let along = |samples: &[f64; 4]| {
        let products = samples.iter().zip(horizontal);
        products.fold(0.0, |sum, (sample, weight)| sum + weight * sample)
    };
    let rows = samples.iter().zip(vertical);
    rows.fold(0.0, |sum, (row, weight)| sum + weight * along(row))
}

/// A smooth step from 0 at t = 0 to 1 at t = 1 with its derivatives; both ends are flat to the second order.
fn step(t: f64) -> [f64; 3] {
    if t <= 0.0 {
        return [0.0, 0.0, 0.0];
    }
    if t >= 1.0 {
        return [1.0, 0.0, 0.0];
    }
    [
        t * t * t * (t * (t * 6.0 - 15.0) + 10.0),
        30.0 * t * t * (t * (t - 2.0) + 1.0),
        60.0 * t * (t * (2.0 * t - 3.0) + 1.0),
    ]
}

/// The cells that cover a position on one axis, each with its weight and the weight's derivatives. Cells of `side` from 0
/// on pass into each other up to `radius` beyond their borders; weights sum to 1.
pub fn blend_weights(
    position: f64,
    cells: usize,
    side: usize,
    radius: f64,
) -> Vec<(usize, [f64; 3])> {
    let side = side as f64;
    let own = ((position / side).floor().max(0.0) as usize).min(cells - 1);
    let border = (position / side).round();
    let distance = position - border * side;
    let is_inner = border >= 1.0 && border < cells as f64;
    if !is_inner || distance.abs() >= radius {
        return vec![(own, [1.0, 0.0, 0.0])];
    }
    let right = border as usize;
    let width = 2.0 * radius;
    let [value, first, second] = step((distance + radius) / width);
    let (first, second) = (first / width, second / (width * width));
    vec![
        (right - 1, [1.0 - value, -first, -second]),
        (right, [value, first, second]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wavy(column: isize, row: isize) -> f64 {
        (0.7 * column as f64).sin() * 3.0 + (0.4 * row as f64 + 0.2 * column as f64).cos() * 2.0
    }

    #[test]
    fn the_height_alone_is_the_height() {
        let samples = [0, 1, 2, 3].map(|row| [0, 1, 2, 3].map(|column| wavy(column, row)));
        for (x, y) in [(0.0, 0.0), (0.3, 0.9), (1.0, 0.5), (0.71, 0.02)] {
            assert_eq!(
                interpolate_4x4_height(&samples, x, y),
                interpolate_4x4(&samples, x, y).value
            );
        }
    }

    #[test]
    fn at_samples_it_is_what_everybody_computes() {
        let jet = interpolate(3.0, 5.0, wavy);
        let at = |x: isize, y: isize| wavy(3 + x, 5 + y);
        assert!((jet.value - at(0, 0)).abs() < 1e-12);
        assert!((jet.x - (at(1, 0) - at(-1, 0)) / 2.0).abs() < 1e-12);
        assert!((jet.yy - (at(0, 1) - 2.0 * at(0, 0) + at(0, -1))).abs() < 1e-12);
    }

    #[test]
    fn derivatives_are_those_of_the_surface_and_have_no_jumps() {
        let h = 1e-4;
        for (x, y) in [(2.3, 4.8), (2.0 - 1e-9, 3.5), (6.999, 1.001)] {
            let f = |x: f64, y: f64| interpolate(x, y, wavy).value;
            let jet = interpolate(x, y, wavy);
            assert!((jet.x - (f(x + h, y) - f(x - h, y)) / (2.0 * h)).abs() < 1e-6);
            assert!(
                (jet.xy
                    - (f(x + h, y + h) - f(x - h, y + h) - f(x + h, y - h) + f(x - h, y - h))
                        / (4.0 * h * h))
                    .abs()
                    < 1e-5
            );
        }
        let (before, after) = (
            interpolate(4.0 - 1e-10, 2.5, wavy),
            interpolate(4.0, 2.5, wavy),
        );
        assert!((before.xx - after.xx).abs() < 1e-6 && (before.x - after.x).abs() < 1e-8);
    }

    #[test]
    fn quadratics_are_exact() {
        let jet = interpolate(1.37, -2.81, |x, y| {
            (x * x) as f64 - 2.0 * (x * y) as f64 + 3.0 * (y * y) as f64
        });
        let (x, y) = (1.37, -2.81);
        assert!((jet.value - (x * x - 2.0 * x * y + 3.0 * y * y)).abs() < 1e-9);
        assert!(
            (jet.xx - 2.0).abs() < 1e-9
                && (jet.xy + 2.0).abs() < 1e-9
                && (jet.yy - 6.0).abs() < 1e-9
        );
    }

    #[test]
    fn blend_weights_sum_to_one_and_pass_smoothly() {
        for position in [
            0.0, 0.5, 7.9, 13.99, 14.0, 15.2, 16.0, 17.3, 18.0, 31.0, 40.0, 47.9,
        ] {
            let weights = blend_weights(position, 3, 16, 2.0);
            let sum: f64 = weights.iter().map(|(_, [value, ..])| value).sum();
            let slope: f64 = weights.iter().map(|(_, [_, first, _])| first).sum();
            assert!((sum - 1.0).abs() < 1e-12 && slope.abs() < 1e-12);
        }
        assert_eq!(blend_weights(16.0, 3, 16, 2.0)[0].1[0], 0.5);
        assert_eq!(blend_weights(0.0, 3, 16, 2.0), [(0, [1.0, 0.0, 0.0])]);
        assert_eq!(blend_weights(48.0, 3, 16, 2.0), [(2, [1.0, 0.0, 0.0])]);
    }
}
