//! Weight matrices whose columns are brought to unit length on every pass.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::init::Init;
use crate::tape::{keep, kept};

/// Columns shorter than this are divided by it instead.
const MIN_LENGTH: f64 = 1e-12;

/// Weights `[in + 1, out]` with the bias as the last row, as the authors pack them.
#[derive(Module, Debug)]
pub struct PackedWeights {
    /// The packed matrix.
    pub packed: Param<Tensor<2>>,
}

impl PackedWeights {
    /// Weights and bias spread evenly over ±1/√in.
    pub fn new(inputs: usize, outputs: usize, init: &mut Init) -> Self {
        Self {
            packed: init.uniform([inputs + 1, outputs], 1.0 / (inputs as f64).sqrt()),
        }
    }

    /// As [`PackedWeights::new`], with the weights spread over ±`bound`.
    pub(crate) fn within(inputs: usize, outputs: usize, bound: f64, init: &mut Init) -> Self {
        let bias = 1.0 / (inputs as f64).sqrt();
        Self {
            packed: init.uniform_with_last_row([inputs + 1, outputs], bound, bias),
        }
    }

    /// The weights `[in, out]`, as they are.
    pub fn weight(&self) -> Tensor<2> {
        let packed = self.packed.val();
        let [rows, _] = packed.dims();
        packed.narrow(0, 0, rows - 1)
    }

    /// The bias `[1, out]`.
    pub fn bias(&self) -> Tensor<2> {
        let packed = self.packed.val();
        let [rows, _] = packed.dims();
        packed.narrow(0, rows - 1, 1)
    }
}

/// Divides every column, along the last axis but one, by its length.
pub fn normalise_columns<const D: usize>(weight: Tensor<D>) -> Tensor<D> {
    keep(&weight);
    let length = kept(kept(weight.clone().square().sum_dim(D - 2)).sqrt());
    weight / kept(length.clamp_min(MIN_LENGTH))
}
