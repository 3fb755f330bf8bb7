//! Layer normalisation in full precision.

use burn::module::{Module, Param};
use burn::tensor::module::layer_norm;
use burn::tensor::{DType, FloatDType, Tensor};

#[cfg(feature = "libtorch")]
use crate::cuda;
use crate::init::Init;
use crate::tape::keep;

/// The same in every layer of every method.
const EPSILON: f64 = 1e-5;

/// Layer normalisation of the last axis with a scale and a shift.
#[derive(Module, Debug)]
pub struct Norm {
    /// Scale.
    pub weight: Param<Tensor<1>>,
    /// Shift.
    pub bias: Param<Tensor<1>>,
}

impl Norm {
    /// Scale 1 and shift 0.
    pub fn new(width: usize, init: &Init) -> Self {
        Self {
            weight: init.constant([width], 1.0),
            bias: init.constant([width], 0.0),
        }
    }

    /// Normalises the last axis; sums of squares need more than half precision, so the result is in full.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let x = match x.dtype() {
            DType::BF16 | DType::F16 => x.cast(FloatDType::F32),
            _ => x,
        };
        #[cfg(feature = "libtorch")]
        if let Some(y) = cuda::trunk::norm(&x, self) {
            return y;
        }
        keep(&x);
        let dtype = x.dtype();
        layer_norm(
            x,
            self.weight.val().cast(dtype),
            Some(self.bias.val().cast(dtype)),
            EPSILON,
        )
    }
}
