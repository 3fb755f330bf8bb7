//! What a fixed linear basis holds of tiles in so many numbers per patch: what a network with as many has to beat.

use std::collections::BTreeSet;
use std::f64::consts::PI;

use serde::{Deserialize, Serialize};
use terrane_codec::Normalisation;
use terrane_train::data::Dataset;
use terrane_train::evaluate::Evaluation;
use terrane_train::measure::{
    MeasureError, SeamMeasures, Summary, mean_seams, measure, measure_seams,
};

use super::covariance::Covariance;
use super::patches::Patches;
use crate::{Error, Result};

/// The widest patch: finding principal components takes the sixth power of it.
const MAX_PATCH: usize = 32;

/// What is projected on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearOptions {
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Numbers per patch.
    pub numbers: Vec<usize>,
}

/// A basis of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The directions in which patches of training tiles differ most, from their mean.
    PrincipalComponents,
    /// Cosines along rows and columns from the slowest on, which nothing has to be learnt for.
    Cosines,
}

/// What linear bases hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Linear {
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Tiles whose patches the principal components are of.
    pub taught: usize,
    /// For each basis and each count of numbers.
    pub held: Vec<Held>,
}

/// What one basis holds in so many numbers per patch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The basis.
    pub basis: Basis,
    /// Numbers per patch.
    pub numbers: usize,
    /// Means over all tiles; derivatives are finite differences of what the basis holds.
    pub summary: Summary,
    /// Near seams of patches and away from them.
    pub seams: SeamMeasures,
    /// Measures of every tile.
    pub evaluation: Evaluation,
}

impl LinearOptions {
    /// The counts of numbers, each once, from few to many. Refuses patches that do not fill a tile, and more numbers than they
    /// have pixels.
    fn counts(&self, side: usize) -> Result<Vec<usize>> {
        let patch = self.patch;
        if patch == 0 || patch > MAX_PATCH || !side.is_multiple_of(patch) {
            return Err(Error::Patch { patch, side });
        }
        let counts: BTreeSet<usize> = self.numbers.iter().copied().collect();
        let pixels = patch * patch;
        match counts.iter().find(|count| !(1..=pixels).contains(*count)) {
            Some(&numbers) => Err(Error::Numbers { numbers, pixels }),
            None => Ok(counts.into_iter().collect()),
        }
    }
}

/// Patches as sums of directions around a mean.
struct Projection {
    basis: Basis,
    mean: Vec<f64>,
    /// Each of length 1 and at right angles to the others, those that hold most first.
    directions: Vec<Vec<f64>>,
}

/// Projects tiles on principal components of other tiles' patches, and on cosines.
///
/// Heights are normalised to [0, 1] tile by tile, as networks get them; the numbers are not rounded.
pub fn linear(
    dataset: &Dataset,
    taught: &[usize],
    tiles: &[usize],
    options: &LinearOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Linear> {
    if taught.is_empty() || tiles.is_empty() {
        return Err(MeasureError::TooFewTiles { found: 0 }.into());
    }
    let side = dataset.side();
    let (patch, counts) = (options.patch, options.counts(side)?);
    let all = taught.len() + tiles.len();
    let mut patches = Covariance::new(patch * patch);
    for (done, &tile) in taught.iter().enumerate() {
        let heights = dataset.heights(tile)?;
        let cut = cut(&heights, side, patch);
        for index in 0..cut.count() {
            patches.add(cut.normalised(index));
        }
        progress(done + 1, all);
    }
    let bases = [Projection::principal(&patches), Projection::cosines(patch)];
    let mut evaluations = vec![vec![Evaluation::default(); counts.len()]; bases.len()];
    for (done, &tile) in tiles.iter().enumerate() {
        let heights = dataset.heights(tile)?;
        let cut = cut(&heights, side, patch);
        for (basis, evaluations) in bases.iter().zip(&mut evaluations) {
            for (held, evaluation) in basis.held(&cut, &counts).iter().zip(evaluations) {
                evaluation.tiles.push(tile);
                evaluation
                    .measures
                    .push(measure(&heights, held, side, side)?);
                evaluation
                    .seams
                    .push(measure_seams(&heights, held, side, side, patch)?);
            }
        }
        progress(taught.len() + done + 1, all);
    }
    let mut held = Vec::new();
    for (basis, evaluations) in bases.iter().zip(evaluations) {
        for (&numbers, evaluation) in counts.iter().zip(evaluations) {
            held.push(Held {
                basis: basis.basis,
                numbers,
                summary: evaluation.summary()?,
                seams: mean_seams(&evaluation.seams)?,
                evaluation,
            });
        }
    }
    Ok(Linear {
        patch,
        taught: taught.len(),
        held,
    })
}

/// The patches of a tile whose heights are normalised to [0, 1].
fn cut(heights: &[f32], side: usize, patch: usize) -> Patches<'_> {
    Patches {
        heights,
        map: Normalisation::of(heights),
        side,
        patch,
    }
}

impl Projection {
    fn principal(patches: &Covariance) -> Self {
        let principal = patches.matrix().principal();
        Self {
            basis: Basis::PrincipalComponents,
            mean: patches.means(),
            directions: principal
                .into_iter()
                .map(|(_, direction)| direction)
                .collect(),
        }
    }

    fn cosines(patch: usize) -> Self {
        let wave = |index: usize, position: usize| {
            let size = if index == 0 { 1.0_f64 } else { 2.0 };
            let angle = PI * index as f64 * (position as f64 + 0.5) / patch as f64;
            (size / patch as f64).sqrt() * angle.cos()
        };
        let mut waves: Vec<(usize, usize)> = (0..patch)
            .flat_map(|down| (0..patch).map(move |along| (down, along)))
            .collect();
        // Those of one frequency keep their order.
        waves.sort_by_key(|(down, along)| down * down + along * along);
        let directions = waves.into_iter().map(|(down, along)| {
            (0..patch * patch)
                .map(|pixel| wave(down, pixel / patch) * wave(along, pixel % patch))
                .collect()
        });
        Self {
            basis: Basis::Cosines,
            mean: vec![0.0; patch * patch],
            directions: directions.collect(),
        }
    }

    /// A tile in metres after each of some counts of numbers per patch, from few to many.
    fn held(&self, tile: &Patches, counts: &[usize]) -> Vec<Vec<f32>> {
        let most = counts.last().copied().unwrap_or(0);
        let mut held = vec![vec![0.0; tile.heights.len()]; counts.len()];
        for index in 0..tile.count() {
            let rest: Vec<f64> = tile
                .normalised(index)
                .zip(&self.mean)
                .map(|(value, mean)| value - mean)
                .collect();
            let mut sum = self.mean.clone();
            let mut held = counts.iter().zip(&mut held).peekable();
            for (taken, direction) in self.directions[..most].iter().enumerate() {
                let number: f64 = rest.iter().zip(direction).map(|(a, b)| a * b).sum();
                for (value, part) in sum.iter_mut().zip(direction) {
                    *value += number * part;
                }
                if let Some((_, heights)) = held.next_if(|(count, _)| **count == taken + 1) {
                    for ((row, column), value) in tile.positions(index).zip(&sum) {
                        heights[row * tile.side + column] = tile.map.metres(*value as f32);
                    }
                }
            }
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use terrane_train::fixture::dataset;

    use super::*;

    fn options(patch: usize, numbers: &[usize]) -> LinearOptions {
        let numbers = numbers.to_vec();
        LinearOptions { patch, numbers }
    }

    #[test]
    fn more_numbers_hold_more_until_all_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let (taught, tiles) = (dataset.split("train"), dataset.split("val"));
        let options = options(8, &[64, 4, 16, 4]);
        assert_eq!(options.counts(32).unwrap(), [4, 16, 64]);
        let mut seen = Vec::new();
        let found = linear(&dataset, &taught, &tiles, &options, &mut |done, all| {
            seen.push((done, all));
        })
        .unwrap();
        assert_eq!((found.patch, found.taught), (8, taught.len()));
        let all = taught.len() + tiles.len();
        assert_eq!((seen.len(), seen.last()), (all, Some(&(all, all))));
        for (of_basis, basis) in found
            .held
            .chunks(3)
            .zip([Basis::PrincipalComponents, Basis::Cosines])
        {
            assert!(of_basis.iter().all(|held| held.basis == basis));
            let [few, more, whole] = [0, 1, 2].map(|index: usize| &of_basis[index].summary.mean);
            assert!(few.psnr_db + 3.0 < more.psnr_db && more.psnr_db < whole.psnr_db);
            assert!(more.gradient_rmse_m_per_px < few.gradient_rmse_m_per_px);
            // As many numbers as pixels are the patch itself.
            assert!(whole.rmse_m < 1e-5 * whole.range_m, "{whole:?}");
        }
        let section = found.section();
        assert_eq!(section.tables[0].rows.len(), 6);
    }

    #[test]
    fn principal_components_are_the_best_for_what_taught_them() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let tiles = dataset.split("train");
        let options = options(8, &[6]);
        let found = linear(&dataset, &tiles, &tiles, &options, &mut |_, _| {}).unwrap();
        // Of normalised heights, in the mean over pixels: the range of each tile is taken out again.
        let square = |held: &Held| {
            let measures = held.evaluation.measures.iter();
            measures
                .map(|tile| (tile.rmse_m / tile.range_m).powi(2))
                .sum::<f64>()
        };
        let [principal, cosines] = &found.held[..] else {
            panic!("{:?}", found.held)
        };
        assert!(square(principal) < square(cosines));
    }

    #[test]
    fn a_wave_takes_its_own_cosine() {
        let side = 16;
        let heights: Vec<f32> = (0..side * side)
            .map(|pixel| {
                let wave = |position: usize| (PI * 2.0 * (position as f64 + 0.5) / 16.0).cos();
                (5.0 + 3.0 * wave(pixel / side)) as f32
            })
            .collect();
        let tile = cut(&heights, side, 16);
        // The constant, two of one wave's half, its mixture, and then the wave down the rows.
        let held = Projection::cosines(16).held(&tile, &[4, 6]);
        let error = |held: &[f32]| {
            let errors = held.iter().zip(&heights).map(|(a, b)| (a - b).abs());
            errors.fold(0.0, f32::max)
        };
        assert!(
            error(&held[0]) > 1.0 && error(&held[1]) < 1e-5,
            "{:?}",
            held[1]
        );
    }

    #[test]
    fn what_no_tile_has_is_refused() {
        for (patch, numbers, text) in [
            (0, vec![4], "patches of 0 pixels"),
            (12, vec![4], "do not fill a tile of 32 pixels"),
            (64, vec![4], "patches of 64 pixels"),
            (8, vec![0], "0 numbers"),
            (8, vec![65], "a patch of 64 pixels"),
        ] {
            let error = options(patch, &numbers).counts(32).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
