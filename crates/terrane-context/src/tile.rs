//! A tile as coefficients of a wavelet.

use crate::compand::UNIT;
use crate::distribution::MOST_SYMBOL;
use crate::grid::Grid;
use crate::wavelet::{BANDS, Split, join_53, join_97, split_53, split_97, split_sizes};

/// Levels go on until neither side is longer than this.
const COARSEST: usize = 8;

/// How heights become coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// CDF 9/7; coefficients are rounded to steps.
    Lossy,
    /// The reversible 5/3 of whole numbers.
    Lossless,
}

impl Transform {
    /// Parts of a step that decoded heights are counted in.
    pub fn unit(self) -> i64 {
        match self {
            Self::Lossy => UNIT,
            Self::Lossless => 1,
        }
    }

    /// One level back.
    #[inline(always)]
    pub fn join(self, split: Split<i64>) -> Grid<i64> {
        match self {
            Self::Lossy => join_97(split),
            Self::Lossless => join_53(split),
        }
    }
}

/// A tile in steps: its coefficients, coarsest picture first.
#[derive(Debug, Clone, PartialEq)]
pub struct Tile {
    /// Size of the tile.
    pub width: usize,
    /// Size of the tile.
    pub height: usize,
    /// How it was made.
    pub transform: Transform,
    /// The coarsest picture, in steps.
    pub coarsest: Grid<f64>,
    /// Bands of details in steps, finest level first.
    pub levels: Vec<[Grid<f64>; BANDS]>,
}

/// Sizes of all levels' bands, finest first, and of the coarsest picture.
pub(crate) fn level_sizes(width: usize, height: usize) -> (Vec<[[usize; 2]; BANDS]>, [usize; 2]) {
    let mut low = [width, height];
    let mut levels = Vec::new();
    while low[0].max(low[1]) > COARSEST {
        let (next, bands) = split_sizes(low[0], low[1]);
        levels.push(bands);
        low = next;
    }
    (levels, low)
}

impl Tile {
    /// Transforms heights in steps; `None` where they are not finite or too large.
    pub fn lossy(heights: &Grid<f64>) -> Option<Self> {
        let limit = (MOST_SYMBOL >> 12) as f64;
        if heights
            .values
            .iter()
            .any(|value| value.is_nan() || value.abs() >= limit)
        {
            return None;
        }
        let mut low = heights.clone();
        let mut levels = Vec::new();
        while low.width.max(low.height) > COARSEST {
            let split = split_97(&low);
            low = split.low;
            levels.push(split.bands);
        }
        Some(Self {
            width: heights.width,
            height: heights.height,
            transform: Transform::Lossy,
            coarsest: low,
            levels,
        })
    }

    /// Transforms whole numbers; `None` where they are too large.
    pub fn lossless(heights: &Grid<i64>) -> Option<Self> {
        if heights
            .values
            .iter()
            .any(|value| value.abs() > MOST_SYMBOL >> 12)
        {
            return None;
        }
        let mut low = heights.clone();
        let mut levels = Vec::new();
        let floats = |grid: Grid<i64>| grid.map(|value| value as f64);
        while low.width.max(low.height) > COARSEST {
            let split = split_53(&low);
            low = split.low;
            levels.push(split.bands.map(floats));
        }
        Some(Self {
            width: heights.width,
            height: heights.height,
            transform: Transform::Lossless,
            coarsest: floats(low),
            levels,
        })
    }
}
