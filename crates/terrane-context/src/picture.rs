//! A decoded picture, and what the pictures below it are coded with.

use crate::coefficients::Transform;
use crate::grid::Area;
use crate::matrix::Matrix;
use crate::wavelet::BANDS;

/// A decoded picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    pub(crate) transform: Transform,
    /// What contexts are derived from, without the dequantiser's offsets; empty where nothing finer follows.
    pub(crate) seen: Matrix<i64>,
    /// What heights are made of, with them, where they differ.
    pub(crate) decoded: Option<Matrix<i64>>,
    /// The symbols of its last level, where something finer follows.
    pub(crate) bands: Option<[Matrix<i64>; BANDS]>,
}

/// A part of a picture: the LL band of the picture below it.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The picture.
    pub picture: &'a Picture,
    /// Which part; it lies inside.
    pub area: Area,
}

impl Picture {
    /// An LL band in steps, before any level is added to it.
    pub(crate) fn coarsest(ll: &Matrix<i64>, transform: Transform) -> Self {
        let seen = ll.map(|value| value.wrapping_mul(transform.substeps()));
        Self {
            transform,
            decoded: (transform == Transform::Lossy).then(|| seen.clone()),
            seen,
            bands: None,
        }
    }

    /// How it was made.
    pub fn transform(&self) -> Transform {
        self.transform
    }

    /// Its pixels: in 1/64 steps, or in steps where the transform is lossless.
    pub fn values(&self) -> &Matrix<i64> {
        self.decoded.as_ref().unwrap_or(&self.seen)
    }

    /// All of it.
    pub fn whole(&self) -> Part<'_> {
        Part {
            picture: self,
            area: Area::whole(self.values()),
        }
    }

    /// The same picture in steps that are longer by so many 16ths.
    #[must_use]
    pub fn coarser(&self, sixteenths: u16) -> Self {
        let divisor = 16 + i64::from(sixteenths);
        // Rounded half up; no picture is near the ends of 64 bits.
        let scale = |matrix: &Matrix<i64>| {
            matrix
                .map(|value| (value.wrapping_mul(32).wrapping_add(divisor)).div_euclid(2 * divisor))
        };
        Self {
            transform: self.transform,
            seen: scale(&self.seen),
            decoded: self.decoded.as_ref().map(scale),
            bands: self.bands.clone(),
        }
    }
}
