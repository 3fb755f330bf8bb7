//! How coefficients become symbols.

use crate::coefficients::Transform;

/// Chooses symbols: the nearest, or by rate and distortion (RDOQ).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantiser {
    /// The Lagrangian weight of a bit, in squared steps; 0 rounds to the nearest symbol.
    pub lambda: f64,
    /// Fraction of a step by which rounding is moved towards 0.
    pub dead_zone: f64,
}

impl Quantiser {
    /// Rounds every coefficient to its nearest symbol.
    pub const ROUNDING: Self = Self {
        lambda: 0.0,
        dead_zone: 0.0,
    };

    /// As it is for a transform: where nothing is lost there is nothing to choose.
    pub(crate) fn of(self, transform: Transform) -> Self {
        match transform {
            Transform::Lossy => self,
            Transform::Lossless => Self::ROUNDING,
        }
    }

    /// The nearest symbol, a little towards 0.
    #[inline(always)]
    pub fn nearest(&self, value: f64) -> i64 {
        let magnitude = (value.abs() + 0.5 - self.dead_zone).floor();
        magnitude.copysign(value) as i64
    }
}
