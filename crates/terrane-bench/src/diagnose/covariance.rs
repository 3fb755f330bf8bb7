//! Covariances of many variables, their principal components, and correlations with others held fixed.

use serde::{Deserialize, Serialize};

/// Fraction of the variance that the rank accounts for.
const RANK_SHARE: f64 = 0.95;
/// A variance below this fraction of what it was is rounding.
const ROUNDING: f64 = 1e-12;
/// Rounds of rotations after which eigenvalues have their digits long since.
const MAX_SWEEPS: usize = 64;

/// The covariance of variables that come one observation after another.
#[derive(Debug, Clone)]
pub(crate) struct Covariance {
    width: usize,
    count: u64,
    /// The first observation: sums of what differs from it lose no digits to a common height.
    origin: Vec<f64>,
    sums: Vec<f64>,
    /// Sums of products, rows of the upper triangle.
    products: Vec<f64>,
    difference: Vec<f64>,
}

/// A symmetric matrix.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Symmetric {
    width: usize,
    values: Vec<f64>,
}

/// How variance is spread over directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spectrum {
    /// Variances along the principal directions, from great to small.
    pub eigenvalues: Vec<f64>,
    /// Directions that account for 95 % of the variance.
    pub rank_95: usize,
    /// (Σλ)²/Σλ²: the number of directions where all count alike, towards 1 where one has all the variance.
    pub participation_ratio: f64,
}

impl Covariance {
    /// Of so many variables.
    pub(crate) fn new(width: usize) -> Self {
        Self {
            width,
            count: 0,
            origin: Vec::new(),
            sums: vec![0.0; width],
            products: vec![0.0; width * width],
            difference: vec![0.0; width],
        }
    }

    /// Adds an observation.
    pub(crate) fn add(&mut self, values: impl Iterator<Item = f64>) {
        let difference = &mut self.difference;
        difference.clear();
        difference.extend(values);
        debug_assert_eq!(difference.len(), self.width);
        if self.count == 0 {
            self.origin.clone_from(difference);
        }
        self.count += 1;
        for (value, origin) in difference.iter_mut().zip(&self.origin) {
            *value -= origin;
        }
        for (sum, value) in self.sums.iter_mut().zip(&*difference) {
            *sum += value;
        }
        for (row, &value) in difference.iter().enumerate() {
            let products = &mut self.products[row * self.width + row..(row + 1) * self.width];
            for (product, other) in products.iter_mut().zip(&difference[row..]) {
                *product += value * other;
            }
        }
    }

    /// The means of the variables.
    pub(crate) fn means(&self) -> Vec<f64> {
        let count = self.count.max(1) as f64;
        let sums = self.origin.iter().zip(&self.sums);
        sums.map(|(origin, sum)| origin + sum / count).collect()
    }

    /// The covariances.
    pub(crate) fn matrix(&self) -> Symmetric {
        let width = self.width;
        let count = self.count.max(1) as f64;
        let mut values = vec![0.0; width * width];
        for row in 0..width {
            for column in row..width {
                let product = self.products[row * width + column] / count;
                let value = product - self.sums[row] / count * self.sums[column] / count;
                values[row * width + column] = value;
                values[column * width + row] = value;
            }
        }
        Symmetric { width, values }
    }
}

impl Symmetric {
    fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.width + column]
    }

    /// The first rows and columns.
    pub(crate) fn leading(&self, width: usize) -> Self {
        let values = (0..width)
            .flat_map(|row| self.values[row * self.width..][..width].to_vec())
            .collect();
        Self { width, values }
    }

    /// Pearson's correlation of two variables; 0 where one of them does not vary.
    pub(crate) fn correlation(&self, a: usize, b: usize) -> f64 {
        let product = self.at(a, a) * self.at(b, b);
        if product > 0.0 {
            self.at(a, b) / product.sqrt()
        } else {
            0.0
        }
    }

    /// The covariances of what linear regression on some variables leaves of all: those of its residuals.
    pub(crate) fn given(&self, variables: &[usize]) -> Self {
        let mut rest = self.clone();
        for &variable in variables {
            let variance = rest.at(variable, variable);
            if variance <= ROUNDING * self.at(variable, variable) {
                continue;
            }
            let column: Vec<f64> = (0..self.width).map(|row| rest.at(row, variable)).collect();
            for (row, a) in column.iter().enumerate() {
                for (column, b) in column.iter().enumerate() {
                    rest.values[row * self.width + column] -= a * b / variance;
                }
            }
        }
        // A variable that the others explain has rounding left, which correlates with anything.
        for variable in 0..self.width {
            if rest.at(variable, variable) <= ROUNDING * self.at(variable, variable) {
                rest.values[variable * self.width + variable] = 0.0;
            }
        }
        rest
    }

    /// Eigenvalues from great to small, each with its direction of length 1, by Jacobi's rotations.
    pub(crate) fn principal(&self) -> Vec<(f64, Vec<f64>)> {
        let width = self.width;
        let mut matrix = self.clone();
        let mut directions: Vec<Vec<f64>> = (0..width)
            .map(|axis| {
                let mut direction = vec![0.0; width];
                direction[axis] = 1.0;
                direction
            })
            .collect();
        let size = self.values.iter().map(|value| value * value).sum::<f64>();
        for _ in 0..MAX_SWEEPS {
            let beside: f64 = (0..width)
                .flat_map(|row| (row + 1..width).map(move |column| (row, column)))
                .map(|(row, column)| matrix.at(row, column).powi(2))
                .sum();
            if beside <= f64::EPSILON.powi(2) * size {
                break;
            }
            for p in 0..width {
                for q in p + 1..width {
                    let Some((cosine, sine)) = matrix.rotate(p, q) else {
                        continue;
                    };
                    let (head, tail) = directions.split_at_mut(q);
                    for (a, b) in head[p].iter_mut().zip(&mut tail[0]) {
                        (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
                    }
                }
            }
        }
        let values = (0..width).map(|index| matrix.at(index, index));
        let mut principal: Vec<(f64, Vec<f64>)> = values.zip(directions).collect();
        principal.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        principal
    }

    /// Turns the plane of two axes so that they do not covary; the cosine and sine of the turn, where there is one.
    fn rotate(&mut self, p: usize, q: usize) -> Option<(f64, f64)> {
        let (width, beside) = (self.width, self.at(p, q));
        if beside == 0.0 {
            return None;
        }
        let cotangent = (self.at(q, q) - self.at(p, p)) / (2.0 * beside);
        let tangent = cotangent.signum() / (cotangent.abs() + cotangent.hypot(1.0));
        let cosine = 1.0 / tangent.hypot(1.0);
        let sine = tangent * cosine;
        let (pp, qq) = (self.at(p, p), self.at(q, q));
        for k in 0..width {
            let (kp, kq) = (self.at(p, k), self.at(q, k));
            let (a, b) = (cosine * kp - sine * kq, sine * kp + cosine * kq);
            for (axis, value) in [(p, a), (q, b)] {
                self.values[axis * width + k] = value;
                self.values[k * width + axis] = value;
            }
        }
        self.values[p * width + p] = pp - tangent * beside;
        self.values[q * width + q] = qq + tangent * beside;
        self.values[p * width + q] = 0.0;
        self.values[q * width + p] = 0.0;
        Some((cosine, sine))
    }

    /// How the variance is spread.
    pub(crate) fn spectrum(&self) -> Spectrum {
        // A variance of zero comes out as rounding, and may be below it.
        let trace: f64 = (0..self.width).map(|index| self.at(index, index)).sum();
        let principal = self.principal();
        let mut eigenvalues: Vec<f64> = principal.iter().map(|(value, _)| *value).collect();
        for value in &mut eigenvalues {
            if *value <= ROUNDING * trace {
                *value = 0.0;
            }
        }
        let total: f64 = eigenvalues.iter().sum();
        let squares: f64 = eigenvalues.iter().map(|value| value * value).sum();
        let mut sum = 0.0;
        let before = eigenvalues.iter().take_while(|&value| {
            sum += value;
            sum < RANK_SHARE * total
        });
        Spectrum {
            rank_95: if total > 0.0 { before.count() + 1 } else { 0 },
            participation_ratio: if squares > 0.0 {
                total * total / squares
            } else {
                0.0
            },
            eigenvalues,
        }
    }
}

#[cfg(test)]
mod tests {
    use terrane_codec::random::Random;

    use super::*;

    #[test]
    fn a_known_spectrum_is_found() {
        // Variances 9, 4, 1 and 0 along turned axes, far from the origin.
        let mut random = Random::new(1, 0);
        let mut covariance = Covariance::new(4);
        let turned = |a: f64, b: f64| [0.6 * a - 0.8 * b, 0.8 * a + 0.6 * b];
        for _ in 0..40_000 {
            let [first, second, third] = [3.0, 2.0, 1.0].map(|size| size * random.normal());
            let [x, y] = turned(first, second);
            let [y, z] = turned(y, third);
            covariance.add([x, y, z, 5.0].into_iter().map(|value| value + 1e6));
        }
        let spectrum = covariance.matrix().spectrum();
        for (value, expected) in spectrum.eigenvalues.iter().zip([9.0, 4.0, 1.0, 0.0]) {
            assert!(
                (value - expected).abs() < 0.03 * expected + 1e-6,
                "{spectrum:?}"
            );
        }
        assert_eq!((spectrum.eigenvalues[3], spectrum.rank_95), (0.0, 3));
        let means = covariance.means();
        for (mean, expected) in means.iter().zip([1e6, 1e6, 1e6, 1e6 + 5.0]) {
            assert!((mean - expected).abs() < 0.1, "{means:?}");
        }
        assert!((spectrum.participation_ratio - 14.0 * 14.0 / 98.0).abs() < 0.03);
        assert_eq!(covariance.matrix().leading(1).spectrum().rank_95, 1);
    }

    #[test]
    fn eigenvalues_and_directions_are_exact() {
        // The second difference of n points has eigenvalues 2 − 2 cos(kπ/(n+1)).
        let width = 24;
        let mut values = vec![0.0; width * width];
        for row in 0..width {
            values[row * width + row] = 2.0;
            if row > 0 {
                values[row * width + row - 1] = -1.0;
                values[(row - 1) * width + row] = -1.0;
            }
        }
        let matrix = Symmetric { width, values };
        let principal = matrix.principal();
        for (index, (value, direction)) in principal.iter().enumerate() {
            let angle = (width - index) as f64 * std::f64::consts::PI / (width + 1) as f64;
            assert!((value - (2.0 - 2.0 * angle.cos())).abs() < 1e-13, "{value}");
            for row in 0..width {
                let product: f64 = (0..width)
                    .map(|column| matrix.at(row, column) * direction[column])
                    .sum();
                assert!((product - value * direction[row]).abs() < 1e-12);
            }
            for (other, (_, second)) in principal.iter().enumerate() {
                let product: f64 = direction.iter().zip(second).map(|(a, b)| a * b).sum();
                assert!((product - f64::from(other == index)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn what_others_explain_is_held_fixed() {
        // x and y share z and nothing else; w shares its own noise with x.
        let mut random = Random::new(2, 0);
        let mut covariance = Covariance::new(5);
        for _ in 0..50_000 {
            let [z, x, y, w] = [(); 4].map(|()| random.normal());
            let x = z + x;
            covariance.add([x, z + y, z, x - 2.0 * z + w, 3.0 * z - 7.0].into_iter());
        }
        let matrix = covariance.matrix();
        assert!((matrix.correlation(0, 1) - 0.5).abs() < 0.02);
        let rest = matrix.given(&[2]);
        assert!(rest.correlation(0, 1).abs() < 0.02);
        // Of x is left x′, of w is left x′ + w.
        assert!((rest.correlation(0, 3) - 0.5_f64.sqrt()).abs() < 0.02);
        // What z explains wholly has no correlation left, and holding it fixed as well changes nothing.
        assert_eq!(rest.correlation(0, 4), 0.0);
        let both = matrix.given(&[2, 4]);
        assert!((both.correlation(0, 3) - rest.correlation(0, 3)).abs() < 1e-9);
    }
}
