//! A tile as wavelet coefficients.

use crate::compand::SUBSTEPS;
use crate::distribution::MAX_SYMBOL;
use crate::matrix::Matrix;
use crate::wavelet::{
    BANDS, Subbands, forward_53, forward_97, inverse_53, inverse_97, subband_sizes,
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

/// The wavelet coefficients of a tile, in steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Coefficients {
    /// Size of the tile.
    pub width: usize,
    /// Size of the tile.
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

impl Coefficients {
    /// Transforms heights in steps; `None` where they are not finite or too large.
    pub fn lossy(heights: &Matrix<f64>) -> Option<Self> {
        let limit = (MAX_SYMBOL >> 12) as f64;
        if heights
            .values
            .iter()
            .any(|value| value.is_nan() || value.abs() >= limit)
        {
            return None;
        }
        let mut ll = heights.clone();
        let mut levels = Vec::new();
        while ll.width.max(ll.height) > MAX_LL_SIDE {
            let subbands = forward_97(&ll);
            ll = subbands.ll;
            levels.push(subbands.bands);
        }
        Some(Self {
            width: heights.width,
            height: heights.height,
            transform: Transform::Lossy,
            ll,
            levels,
        })
    }

    /// Transforms heights in integer steps; `None` where they are too large.
    pub fn lossless(heights: &Matrix<i64>) -> Option<Self> {
        if heights
            .values
            .iter()
            .any(|value| value.abs() > MAX_SYMBOL >> 12)
        {
            return None;
        }
        let mut ll = heights.clone();
        let mut levels = Vec::new();
        let floats = |band: Matrix<i64>| band.map(|value| value as f64);
        while ll.width.max(ll.height) > MAX_LL_SIDE {
            let subbands = forward_53(&ll);
            ll = subbands.ll;
            levels.push(subbands.bands.map(floats));
        }
        Some(Self {
            width: heights.width,
            height: heights.height,
            transform: Transform::Lossless,
            ll: floats(ll),
            levels,
        })
    }
}
