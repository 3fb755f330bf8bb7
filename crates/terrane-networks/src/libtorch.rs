//! Kernels of LibTorch that Burn does not reach; each is one pass over memory for what Burn takes several for.
#![expect(
    deprecated,
    reason = "the fastest backend for NVIDIA cards that builds today"
)]

use burn::backend::LibTorch;
use burn::backend::libtorch::TchTensor;
use burn::tensor::Tensor;

/// `x · weight + bias`, where the tensors are LibTorch's.
pub(crate) fn linear(x: &Tensor<2>, weight: &Tensor<2>, bias: &Tensor<1>) -> Option<Tensor<2>> {
    let x = x.clone().try_into_primitive::<LibTorch>().ok()?;
    let weight = weight.clone().try_into_primitive::<LibTorch>().ok()?;
    let bias = bias.clone().try_into_primitive::<LibTorch>().ok()?;
    let y = bias.tensor.addmm(&x.tensor, &weight.tensor);
    Some(Tensor::from_primitive::<LibTorch>(TchTensor::new(y)))
}

/// `x · sigmoid(x)`, where the tensor is LibTorch's.
pub(crate) fn silu<const D: usize>(x: &Tensor<D>) -> Option<Tensor<D>> {
    let x = x.clone().try_into_primitive::<LibTorch>().ok()?;
    let y = TchTensor::new(x.tensor.silu());
    Some(Tensor::from_primitive::<LibTorch>(y))
}

/// The first `count` along an axis and the rest, whose gradients are joined again in one pass, where the tensor is
/// LibTorch's.
pub(crate) fn split<const D: usize>(
    x: &Tensor<D>,
    count: usize,
    axis: usize,
) -> Option<[Tensor<D>; 2]> {
    let rest = x.dims()[axis] - count;
    let x = x.clone().try_into_primitive::<LibTorch>().ok()?;
    let sizes = [count as i64, rest as i64];
    let mut parts = x.tensor.split_with_sizes(sizes, axis as i64).into_iter();
    let mut next = || {
        let part = TchTensor::partial(parts.next()?, x.storage.clone());
        Some(Tensor::from_primitive::<LibTorch>(part))
    };
    Some([next()?, next()?])
}

/// The same numbers in one piece, without what led to them, where the tensor is LibTorch's.
pub(crate) fn numbers<const D: usize>(x: &Tensor<D>) -> Option<Tensor<D>> {
    let mut x = x.clone().try_into_primitive::<LibTorch>().ok()?;
    let numbers = x.tensor.detach();
    if numbers.is_contiguous() {
        x.tensor = numbers;
        return Some(Tensor::from_primitive::<LibTorch>(x));
    }
    let numbers = TchTensor::new(numbers.contiguous());
    Some(Tensor::from_primitive::<LibTorch>(numbers))
}
