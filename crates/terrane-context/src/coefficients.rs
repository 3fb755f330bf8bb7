//! A picture as wavelet coefficients.

use crate::compand::SUBSTEPS;
use crate::distribution::MAX_SYMBOL;
use crate::matrix::Matrix;
use crate::wavelet::{
    BANDS, GROWTH, Subbands, forward_53, forward_97, inverse_53, inverse_97, low_positions,
    subband_sizes,
};

/// The transform goes on until neither side of the LL band is longer than this.
const MAX_LL_SIDE: usize = 8;

/// How heights become coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// CDF 9/7; coefficients are rounded to steps.
    Lossy,
    /// The reversible 5/3 of integers.
    Lossless,
}

impl Transform {
    /// Parts of a step that decoded heights are counted in.
    pub fn substeps(self) -> i64 {
        match self {
            Self::Lossy => SUBSTEPS,
            Self::Lossless => 1,
        }
    }

    /// The inverse transform of one level.
    #[inline(always)]
    pub fn inverse(self, subbands: Subbands<i64>) -> Matrix<i64> {
        match self {
            Self::Lossy => inverse_97(subbands),
            Self::Lossless => inverse_53(subbands),
        }
    }
}

/// The wavelet coefficients of a picture, in steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Coefficients {
    /// Size of the picture.
    pub width: usize,
    /// Size of the picture.
    pub height: usize,
    /// How it was made.
    pub transform: Transform,
    /// The LL band of the coarsest level.
    pub ll: Matrix<f64>,
    /// HL, LH and HH of each level, finest level first.
    pub levels: Vec<[Matrix<f64>; BANDS]>,
}

/// Sizes of all levels' HL, LH and HH, finest first, and of the coarsest LL band.
pub(crate) fn level_sizes(width: usize, height: usize) -> (Vec<[[usize; 2]; BANDS]>, [usize; 2]) {
    let mut ll = [width, height];
    let mut levels = Vec::new();
    while ll[0].max(ll[1]) > MAX_LL_SIDE {
        let (next, bands) = subband_sizes(ll[0], ll[1]);
        levels.push(bands);
        ll = next;
    }
    (levels, ll)
}

/// Whether numbers of steps can be transformed.
fn is_within(values: &[f64]) -> bool {
    let limit = (MAX_SYMBOL >> 12) as f64;
    values.iter().all(|value| value.abs() < limit)
}

impl Transform {
    /// One level of the transform of a picture in steps, which are rounded where nothing is lost; `None` where they are
    /// not finite or too large.
    pub fn forward(self, picture: &Matrix<f64>) -> Option<Subbands<f64>> {
        if !is_within(&picture.values) {
            return None;
        }
        Some(match self {
            Self::Lossy => forward_97(picture),
            Self::Lossless => {
                let Subbands { ll, bands } = forward_53(&picture.map(|value| value.round() as i64));
                let floats = |band: Matrix<i64>| band.map(|value| value as f64);
                Subbands {
                    ll: floats(ll),
                    bands: bands.map(floats),
                }
            }
        })
    }

    /// Where the samples of an LL band lie along an axis, from where the pixels of the picture do.
    pub fn low_positions(self, positions: &[f64]) -> Vec<f64> {
        low_positions(positions, self == Self::Lossless)
    }

    /// By how much a picture's LL band is larger than itself.
    pub fn growth(self) -> f64 {
        match self {
            Self::Lossy => GROWTH,
            Self::Lossless => 1.0,
        }
    }
}

impl Coefficients {
    /// Transforms a picture in steps; `None` where they are not finite or too large.
    pub fn new(picture: &Matrix<f64>, transform: Transform) -> Option<Self> {
        if !is_within(&picture.values) {
            return None;
        }
        let mut ll = picture.clone();
        let mut levels = Vec::new();
        while ll.width.max(ll.height) > MAX_LL_SIDE {
            let subbands = transform.forward(&ll)?;
            ll = subbands.ll;
            levels.push(subbands.bands);
        }
        Some(Self {
            width: picture.width,
            height: picture.height,
            transform,
            ll,
            levels,
        })
    }

    /// Transforms heights in steps with the 9/7.
    pub fn lossy(heights: &Matrix<f64>) -> Option<Self> {
        Self::new(heights, Transform::Lossy)
    }

    /// Transforms heights in integer steps with the 5/3.
    pub fn lossless(heights: &Matrix<i64>) -> Option<Self> {
        Self::new(&heights.map(|value| value as f64), Transform::Lossless)
    }
}
