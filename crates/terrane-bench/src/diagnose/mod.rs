//! What amortisation costs: how well tiles could be given back by tokens, or by networks, made for each of them.

mod covariance;
mod descent;
pub mod fit;
pub mod linear;
mod patches;
pub mod presentation;
pub mod siren;
pub mod tokens;

pub use covariance::Spectrum;
pub use descent::Descent;

use serde::{Deserialize, Serialize};
use terrane_codec::random::Random;
use terrane_train::measure::{Summary, psnr_db};

/// The stream of random numbers that chooses tiles.
const CHOICE: u64 = 1 << 60;

/// One point of a curve over steps: means over tiles, each at its best so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Steps done.
    pub step: usize,
    /// Peak signal-to-noise ratio.
    pub psnr_db: f64,
}

/// How far descents are.
#[derive(Debug, Clone, Copy)]
pub struct State {
    /// Steps done, counted over all tiles or batches of tiles.
    pub step: usize,
    /// Steps in all.
    pub steps: usize,
    /// Mean PSNR of the tiles at work.
    pub psnr_db: f64,
}

/// So many tiles of a list, drawn by a seed, in their order; all where there are no more, or where no number is given.
pub fn draw(tiles: &[usize], count: Option<usize>, seed: u64) -> Vec<usize> {
    let mut drawn = tiles.to_vec();
    if let Some(count) = count {
        Random::new(seed, CHOICE).shuffle(&mut drawn);
        drawn.truncate(count);
        drawn.sort_unstable();
    }
    drawn
}

/// Adds the errors of more tiles to curves that were recorded at the same steps.
fn extend(curves: &mut Vec<(usize, Vec<f32>)>, more: Vec<(usize, Vec<f32>)>) {
    if curves.is_empty() {
        *curves = more;
        return;
    }
    for ((_, all), (_, more)) in curves.iter_mut().zip(more) {
        all.extend(more);
    }
}

/// The mean curve of errors of several tiles.
fn mean_curve(curves: &[(usize, Vec<f32>)]) -> Vec<CurvePoint> {
    curves
        .iter()
        .map(|(step, errors)| CurvePoint {
            step: *step,
            psnr_db: mean_psnr_db(errors),
        })
        .collect()
}

fn mean_psnr_db(errors: &[f32]) -> f64 {
    errors
        .iter()
        .map(|&error| psnr_db(error.into()))
        .sum::<f64>()
        / errors.len() as f64
}

/// How much better one summary is than another.
fn gain_db(from: &Summary, to: &Summary) -> f64 {
    to.mean.psnr_db - from.mean.psnr_db
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_drawn_by_a_seed() {
        let tiles: Vec<usize> = (100..140).collect();
        let drawn = draw(&tiles, Some(8), 1);
        assert_eq!(drawn, draw(&tiles, Some(8), 1));
        assert_ne!(drawn, draw(&tiles, Some(8), 2));
        assert!(
            drawn.len() == 8 && drawn.is_sorted() && drawn.iter().all(|tile| tiles.contains(tile))
        );
        assert_eq!(draw(&tiles, Some(99), 1), tiles);
        assert_eq!(draw(&tiles, None, 1), tiles);
    }

    #[test]
    fn curves_are_means_of_decibels() {
        let mut curves = vec![(0, vec![1e-2]), (5, vec![1e-3])];
        extend(&mut curves, vec![(0, vec![1e-4]), (5, vec![0.0])]);
        let curve = mean_curve(&curves);
        assert!(
            (curve[0].psnr_db - 30.0).abs() < 1e-4 && (curve[1].psnr_db - 65.0).abs() < 1e-4,
            "{curve:?}"
        );
    }
}
