//! Symbols of a finest level chosen with an error bound in view.
//!
//! A pixel that decodes beyond the bound has to be corrected, which costs bits. So a symbol may be worth a change that
//! its own error would not justify: one up mends a pixel or two, one down saves its bits where no pixel leaves the
//! bound. The search goes over all symbols of the level and over the bumps that correct what its footprints cannot
//! (errors of coarser levels), and takes every change by one that saves bits in all. What it knows is approximate (the
//! dequantiser moves its neighbours, footprints are cut off at borders): corrections come from a real decode.

use crate::distribution::{Context, Distributions};
use crate::matrix::Matrix;
use crate::simd::{self, Work};
use crate::wavelet::{BANDS, Subbands, inverse_97};

/// Pixels around the picture, so that no footprint ends outside.
const BORDER: usize = 16;
/// Lanes of a footprint's rows: of the bands that are high across, and of the others.
const WIDE: usize = 16;
const NARROW: usize = 8;
/// The error of a pixel without data or beyond the border, in steps: whatever is added, its cost stays.
const NOWHERE: f32 = 1e9;
/// Errors beyond so many bounds cost no more.
const FAR: f32 = 4.0;

/// What an error costs, in bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalty {
    /// The bound, in steps.
    pub bound: f32,
    /// A pixel beyond the bound.
    pub outlier: f32,
    /// Where the cost of an outlier begins and where it is full, in bounds: errors are not known exactly, and one that is
    /// well within leaves room for other changes.
    pub ramp: [f32; 2],
    /// A squared bound.
    pub square: f32,
    /// A change must save so much.
    pub least: f32,
}

impl Penalty {
    #[inline(always)]
    fn of(&self, error: f32) -> f32 {
        let size = error.abs() * (1.0 / self.bound);
        let [from, to] = self.ramp;
        let ramp = ((size - from) * (1.0 / (to - from))).clamp(0.0, 1.0);
        let near = size.min(FAR);
        self.outlier * ramp + self.square * near * near
    }
}

/// Smooth bumps on a grid, which are added to the decoded picture.
#[derive(Debug, Clone)]
pub struct Bumps {
    /// Pixels from one to the next.
    pub spacing: usize,
    /// Their profile along either axis, 8 pixels at most, centred on a cell of the grid.
    pub profile: Vec<f32>,
    /// Their height, in steps.
    pub height: f32,
    /// Bits of none, one and two at a place.
    pub bits: [f32; 3],
    /// How many stand on every place.
    pub values: Matrix<i64>,
}

/// The symbols of a finest level.
#[derive(Debug)]
pub struct FinestSymbols<'a> {
    /// The model's tables.
    pub distributions: &'a Distributions,
    /// How each symbol of HL, LH and HH was predicted.
    pub contexts: &'a [Matrix<Context>; BANDS],
    /// The symbols, which are changed.
    pub values: &'a mut [Matrix<i64>; BANDS],
}

/// Changes symbols and bumps, one step at a time, until `rounds` are over or nothing saves bits any more.
///
/// `errors` are those of the decoded picture: source − decoded, in steps, NaN where a pixel has no data. They come back
/// as they should be after the changes.
pub fn search(
    errors: &Matrix<f64>,
    penalty: Penalty,
    rounds: usize,
    bumps: &mut [Bumps],
    symbols: Option<FinestSymbols>,
) -> Matrix<f32> {
    simd::run(Search {
        errors,
        penalty,
        rounds,
        bumps,
        symbols,
    })
}

/// What one symbol adds to the picture.
struct Footprint<const W: usize> {
    /// Where its first pixel lies, from the first of its place on the grid.
    right: isize,
    down: isize,
    /// Pixels from one symbol to the next.
    spacing: usize,
    rows: Vec<[f32; W]>,
}

impl<const W: usize> Footprint<W> {
    /// Of a band, by the inverse transform of a single symbol.
    fn of_band(band: usize) -> Self {
        const SIDE: usize = 16;
        const ONE: i64 = 1 << 24;
        let empty = || Matrix::new(SIDE, SIDE);
        let mut bands = [empty(), empty(), empty()];
        bands[band].row_mut(SIDE / 2)[SIDE / 2] = ONE;
        let picture = inverse_97(Subbands { ll: empty(), bands });
        let used = |column: usize, row: usize| picture.row(row)[column].abs() > ONE >> 10;
        let mut columns = (0..2 * SIDE).filter(|&x| (0..2 * SIDE).any(|y| used(x, y)));
        let first = columns.next().unwrap_or(SIDE);
        let rows: Vec<usize> = (0..2 * SIDE)
            .filter(|&y| (0..2 * SIDE).any(|x| used(x, y)))
            .collect();
        let part = |column: usize, row: usize| {
            let value = picture.row(row).get(column).copied().unwrap_or(0);
            value as f32 / ONE as f32
        };
        Self {
            right: first as isize - SIDE as isize,
            down: rows.first().map_or(0, |&row| row as isize - SIDE as isize),
            spacing: 2,
            rows: rows
                .iter()
                .map(|&row| std::array::from_fn(|x| part(first + x, row)))
                .collect(),
        }
    }

    fn of_bump(bumps: &Bumps) -> Self {
        let profile = &bumps.profile;
        let before = profile.len().saturating_sub(bumps.spacing) as isize / 2;
        let row = |a: f32| std::array::from_fn(|x| a * profile.get(x).copied().unwrap_or(0.0));
        Self {
            right: -before,
            down: -before,
            spacing: bumps.spacing,
            rows: profile.iter().map(|a| row(a * bumps.height)).collect(),
        }
    }
}

/// Errors and what they cost.
struct Picture {
    penalty: Penalty,
    stride: usize,
    errors: Vec<f32>,
    costs: Vec<f32>,
}

impl Picture {
    #[inline(always)]
    fn new(errors: &Matrix<f64>, penalty: Penalty) -> Self {
        let stride = errors.width + 2 * BORDER;
        let mut padded = vec![NOWHERE; stride * (errors.height + 2 * BORDER)];
        for row in 0..errors.height {
            let line = &mut padded[(row + BORDER) * stride + BORDER..];
            for (slot, &error) in line.iter_mut().zip(errors.row(row)) {
                if !error.is_nan() {
                    *slot = error as f32;
                }
            }
        }
        Self {
            penalty,
            stride,
            costs: padded.iter().map(|&error| penalty.of(error)).collect(),
            errors: padded,
        }
    }

    /// What the pixels of a footprint cost.
    #[inline(always)]
    fn cost<const W: usize>(&self, start: usize, rows: &[[f32; W]]) -> f32 {
        let mut sums = [0.0; W];
        for line in 0..rows.len() {
            let costs = &self.costs[start + line * self.stride..][..W];
            for (sum, cost) in sums.iter_mut().zip(costs) {
                *sum += cost;
            }
        }
        sums.iter().sum()
    }

    /// What they would cost after a change.
    #[inline(always)]
    fn cost_after<const W: usize>(&self, start: usize, rows: &[[f32; W]], change: f32) -> f32 {
        let mut sums = [0.0; W];
        for (line, weights) in rows.iter().enumerate() {
            let errors = &self.errors[start + line * self.stride..][..W];
            for ((sum, error), weight) in sums.iter_mut().zip(errors).zip(weights) {
                *sum += self.penalty.of(error - change * weight);
            }
        }
        sums.iter().sum()
    }

    #[inline(always)]
    fn apply<const W: usize>(&mut self, start: usize, rows: &[[f32; W]], change: f32) {
        for (line, weights) in rows.iter().enumerate() {
            let at = start + line * self.stride;
            let errors = self.errors[at..][..W].iter_mut();
            let costs = self.costs[at..][..W].iter_mut();
            for ((error, cost), weight) in errors.zip(costs).zip(weights) {
                *error -= change * weight;
                *cost = self.penalty.of(*error);
            }
        }
    }

    /// Goes over a grid once; `bits` are those of a value at an index. Gives back how many values were changed.
    #[inline(always)]
    fn sweep<const W: usize>(
        &mut self,
        footprint: &Footprint<W>,
        values: &mut Matrix<i64>,
        bits: impl Fn(usize, i64) -> f32,
    ) -> usize {
        let rows = &footprint.rows;
        let mut changes = 0;
        for row in 0..values.height {
            let top = (footprint.spacing * row + BORDER).wrapping_add_signed(footprint.down);
            for column in 0..values.width {
                let left =
                    (footprint.spacing * column + BORDER).wrapping_add_signed(footprint.right);
                let start = top * self.stride + left;
                let index = row * values.width + column;
                let value = values.values[index];
                let bits_now = bits(index, value);
                let cost_now = self.cost(start, rows);
                let (mut least, mut best) = (-self.penalty.least, 0);
                for change in [-1, 1] {
                    let bits = bits(index, value + change) - bits_now;
                    // No change saves more than all that its pixels cost.
                    if bits - cost_now < least {
                        let cost = bits + self.cost_after(start, rows, change as f32) - cost_now;
                        if cost < least {
                            (least, best) = (cost, change);
                        }
                    }
                }
                if best != 0 {
                    values.values[index] += best;
                    self.apply(start, rows, best as f32);
                    changes += 1;
                }
            }
        }
        changes
    }
}

struct Search<'a> {
    errors: &'a Matrix<f64>,
    penalty: Penalty,
    rounds: usize,
    bumps: &'a mut [Bumps],
    symbols: Option<FinestSymbols<'a>>,
}

impl Work for Search<'_> {
    type Output = Matrix<f32>;

    #[inline(always)]
    fn run<const FUSED: bool>(mut self) -> Matrix<f32> {
        let mut picture = Picture::new(self.errors, self.penalty);
        let of_bumps: Vec<Footprint<NARROW>> = self.bumps.iter().map(Footprint::of_bump).collect();
        let wide: [Footprint<WIDE>; 2] = [0, 2].map(Footprint::of_band);
        let narrow: Footprint<NARROW> = Footprint::of_band(1);
        for _ in 0..self.rounds {
            let mut changes = 0;
            for (footprint, bumps) in of_bumps.iter().zip(self.bumps.iter_mut()) {
                let bits = bumps.bits;
                changes += picture.sweep(footprint, &mut bumps.values, |_, value| {
                    bits.get(value.unsigned_abs() as usize)
                        .copied()
                        .unwrap_or(f32::INFINITY)
                });
            }
            if let Some(symbols) = &mut self.symbols {
                let (distributions, contexts) = (symbols.distributions, symbols.contexts);
                let bits = |band: usize| {
                    let contexts = &contexts[band].values;
                    move |index: usize, symbol: i64| distributions.cost(contexts[index], symbol)
                };
                let [hl, lh, hh] = &mut *symbols.values;
                changes += picture.sweep(&wide[0], hl, bits(0));
                changes += picture.sweep(&narrow, lh, bits(1));
                changes += picture.sweep(&wide[1], hh, bits(2));
            }
            if changes == 0 {
                break;
            }
        }
        let Matrix { width, height, .. } = *self.errors;
        let mut errors = Matrix::new(width, height);
        for row in 0..height {
            let line = &picture.errors[(row + BORDER) * picture.stride + BORDER..][..width];
            errors.row_mut(row).copy_from_slice(line);
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LayerWeights, ProbabilityModel, to_bytes};
    use crate::widths::Widths;

    const SIDE: usize = 64;

    fn distributions() -> Distributions {
        let widths = Widths {
            trunk: 4,
            blocks: 0,
            band: 0,
            band_blocks: 0,
            hidden: 4,
            last: 0,
            dequantiser: 0,
            reach: 1,
        };
        let layers: Vec<LayerWeights> = widths
            .layers()
            .iter()
            .map(|shape| LayerWeights {
                weights: vec![0; shape.inputs * shape.outputs],
                bias: vec![0; shape.outputs],
            })
            .collect();
        let bytes = to_bytes("test", &widths, &layers, &[]).unwrap();
        ProbabilityModel::from_bytes(&bytes).unwrap().distributions
    }

    fn penalty(outlier: f32) -> Penalty {
        Penalty {
            bound: 0.4,
            outlier,
            ramp: [0.95, 1.05],
            square: 0.1,
            least: 0.0,
        }
    }

    fn bands<T: Copy + Default>() -> [Matrix<T>; BANDS] {
        std::array::from_fn(|_| Matrix::new(SIDE / 2, SIDE / 2))
    }

    /// The errors that symbols leave which a decoder lacks.
    fn errors_of(symbols: &[Matrix<i64>; BANDS]) -> Matrix<f64> {
        let bands = symbols
            .each_ref()
            .map(|band| band.map(|symbol| symbol << 20));
        let ll = Matrix::new(SIDE / 2, SIDE / 2);
        inverse_97(Subbands { ll, bands }).map(|value| value as f64 / f64::from(1 << 20))
    }

    #[test]
    fn symbols_that_mend_pixels_are_found() {
        let distributions = distributions();
        let contexts = bands();
        let mut lacking = bands();
        for (band, at) in [(0, [9, 12]), (1, [20, 5]), (2, [3, 27]), (1, [0, 0])] {
            lacking[band].row_mut(at[1])[at[0]] = if at[0] > 9 { 1 } else { -1 };
        }
        let errors = errors_of(&lacking);
        let mut symbols = bands();
        let finest = FinestSymbols {
            distributions: &distributions,
            contexts: &contexts,
            values: &mut symbols,
        };
        let after = search(&errors, penalty(30.0), 3, &mut [], Some(finest));
        assert!(errors.values.iter().any(|error| error.abs() > 0.4));
        assert!(after.values.iter().all(|error| error.abs() < 0.4));
        // Those away from the border exactly.
        assert_eq!(symbols[0], lacking[0]);
        assert_eq!(symbols[2], lacking[2]);
    }

    #[test]
    fn symbols_that_no_pixel_needs_are_dropped() {
        let distributions = distributions();
        let contexts = bands();
        let mut symbols = bands();
        symbols[2].row_mut(8)[8] = 1;
        let errors = Matrix::new(SIDE, SIDE);
        let finest = FinestSymbols {
            distributions: &distributions,
            contexts: &contexts,
            values: &mut symbols,
        };
        let loose = Penalty {
            bound: 4.0,
            ..penalty(8.0)
        };
        search(&errors, loose, 1, &mut [], Some(finest));
        assert_eq!(symbols[2].row(8)[8], 0);
    }

    #[test]
    fn a_bump_mends_what_a_coarse_error_leaves_and_missing_pixels_count_for_nothing() {
        let bumps = || Bumps {
            spacing: 4,
            profile: vec![0.0, 0.3, 0.7, 1.0, 1.0, 0.7, 0.3, 0.0],
            height: 0.2,
            bits: [0.0, 5.0, 9.0],
            values: Matrix::new(SIDE / 4, SIDE / 4),
        };
        let mut errors = Matrix::new(SIDE, SIDE);
        for row in 20..24 {
            errors.row_mut(row)[32..36].fill(0.45);
        }
        let mut found = [bumps()];
        let after = search(&errors, penalty(8.0), 2, &mut found, None);
        assert_eq!(found[0].values.row(5)[8], 1);
        let count = found[0]
            .values
            .values
            .iter()
            .filter(|&&value| value != 0)
            .count();
        assert_eq!(count, 1);
        assert!(after.values.iter().all(|error| error.abs() < 0.4));
        errors
            .values
            .iter_mut()
            .filter(|error| **error != 0.0)
            .for_each(|error| *error = f64::NAN);
        let mut found = [bumps()];
        search(&errors, penalty(8.0), 2, &mut found, None);
        assert!(found[0].values.values.iter().all(|&value| value == 0));
    }
}
