//! A dense layer that computes in the precision of its input and keeps its weights in full.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::module;

use crate::init::Init;
#[cfg(feature = "libtorch")]
use crate::libtorch;
use crate::tape::keep;

/// `x · weight + bias`, with weights `[in, out]`.
#[derive(Module, Debug)]
pub struct Dense {
    /// Weights `[in, out]`.
    pub weight: Param<Tensor<2>>,
    /// Bias `[out]`.
    pub bias: Option<Param<Tensor<1>>>,
}

impl Dense {
    /// Weights and bias spread evenly over ±1/√in, as PyTorch starts a layer.
    pub fn plain(inputs: usize, outputs: usize, init: &mut Init) -> Self {
        let bound = 1.0 / (inputs as f64).sqrt();
        Self {
            weight: init.uniform([inputs, outputs], bound),
            bias: Some(init.uniform([outputs], bound)),
        }
    }

    /// As [`Dense::plain`], without a bias.
    pub fn without_bias(inputs: usize, outputs: usize, init: &mut Init) -> Self {
        Self {
            weight: init.uniform([inputs, outputs], 1.0 / (inputs as f64).sqrt()),
            bias: None,
        }
    }

    /// Normally distributed weights and a bias of 0.
    pub fn normal(inputs: usize, outputs: usize, deviation: f64, init: &mut Init) -> Self {
        Self {
            weight: init.normal([inputs, outputs], deviation),
            bias: Some(init.constant([outputs], 0.0)),
        }
    }

    /// Weights of 0 and a bias of one value: a layer that ignores its input at first.
    pub fn constant(inputs: usize, outputs: usize, bias: f32, init: &Init) -> Self {
        Self {
            weight: init.constant([inputs, outputs], 0.0),
            bias: Some(init.constant([outputs], bias)),
        }
    }

    /// Applies the layer to the last axis, in the precision of the input.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        keep(&x);
        let dtype = x.dtype();
        let bias = self.bias.as_ref().map(|bias| bias.val().cast(dtype));
        linear(x, self.weight.val().cast(dtype), bias)
    }
}

/// `x · weight + bias` over the last axis as one product of two matrices.
///
/// Burn keeps other axes as a batch of products, whose gradients by the weight are then as many matrices to be summed.
pub(crate) fn linear<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
) -> Tensor<D> {
    let mut shape = x.dims();
    let [inputs, outputs] = weight.dims();
    let rows = shape[..D - 1].iter().product();
    let y = product(x.reshape([rows, inputs]), weight, bias);
    // What would be written over is a view, and LibTorch copies the whole gradient of a view that is written over.
    keep(&y);
    shape[D - 1] = outputs;
    y.reshape(shape)
}

fn product(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    #[cfg(feature = "libtorch")]
    if let Some(bias) = &bias
        && let Some(y) = libtorch::linear(&x, &weight, bias)
    {
        return y;
    }
    module::linear(x, weight, bias)
}
