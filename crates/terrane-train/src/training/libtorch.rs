//! What Burn does not pass on of LibTorch: the flags and gradients of the tensors behind it.
#![expect(
    deprecated,
    reason = "the fastest backend for NVIDIA cards that builds today"
)]

use burn::backend::LibTorch;
use burn::backend::libtorch::TchTensor;
use burn::tensor::{Device, Tensor};

const INVARIANT: &str = "the tensor is on a LibTorch device";

/// Whether a device is LibTorch's.
pub(crate) fn is_on(device: &Device) -> bool {
    Tensor::<1>::zeros([1], device)
        .try_into_primitive::<LibTorch>()
        .is_ok()
}

/// The same numbers as the start of a graph.
pub(crate) fn leaf<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    let mut primitive = tensor.try_into_primitive::<LibTorch>().expect(INVARIANT);
    primitive.tensor = primitive.tensor.detach().set_requires_grad(true);
    Tensor::from_primitive::<LibTorch>(primitive)
}

/// The same numbers without what led to them.
pub(crate) fn detach<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    let mut primitive = tensor.try_into_primitive::<LibTorch>().expect(INVARIANT);
    primitive.tensor = primitive.tensor.detach();
    Tensor::from_primitive::<LibTorch>(primitive)
}

/// Rounded and cut in one pass, and one for the gradient, which passes where nothing was cut.
pub(crate) fn rounded<const D: usize>(
    tensor: Tensor<D>,
    unit: f64,
    [least, largest]: [i64; 2],
) -> Tensor<D> {
    let primitive = tensor.try_into_primitive::<LibTorch>().expect(INVARIANT);
    let rounded = primitive
        .tensor
        .fake_quantize_per_tensor_affine(1.0 / unit, 0, least, largest);
    Tensor::from_primitive::<LibTorch>(TchTensor::new(rounded))
}

/// The parts of a tensor along its first axis, whose gradients are put together in one pass.
pub(crate) fn parts(tensor: Tensor<3>) -> Vec<Tensor<2>> {
    let primitive = tensor.try_into_primitive::<LibTorch>().expect(INVARIANT);
    let parts = primitive.tensor.unbind(0);
    parts
        .into_iter()
        // Each takes part in the whole's storage, so that none is written over while another is there.
        .map(|part| TchTensor::from_existing(part, primitive.storage.clone()))
        .map(Tensor::from_primitive::<LibTorch>)
        .collect()
}

/// Whether a leaf has a gradient.
pub(crate) fn has_gradient<const D: usize>(leaf: Tensor<D>) -> bool {
    let primitive = leaf.try_into_primitive::<LibTorch>().expect(INVARIANT);
    primitive.tensor.grad().defined()
}

/// Computes the gradients of all leaves that a loss depends on.
pub(crate) fn backward(loss: Tensor<1>) {
    loss.try_into_primitive::<LibTorch>()
        .expect(INVARIANT)
        .tensor
        .backward();
}

/// The gradient of a leaf, or 0 where the loss did not depend on it.
pub(crate) fn gradient<const D: usize>(leaf: Tensor<D>) -> Tensor<D> {
    let mut primitive = leaf.try_into_primitive::<LibTorch>().expect(INVARIANT);
    let gradient = primitive.tensor.grad();
    primitive.tensor = if gradient.defined() {
        gradient
    } else {
        primitive.tensor.detach().zeros_like()
    };
    Tensor::from_primitive::<LibTorch>(primitive)
}

/// The length of a vector in one pass, where it is LibTorch's.
pub(crate) fn length(vector: &Tensor<1>) -> Option<Tensor<1>> {
    let primitive = vector.clone().try_into_primitive::<LibTorch>().ok()?;
    let length = TchTensor::new(primitive.tensor.norm().reshape([1]));
    Some(Tensor::from_primitive::<LibTorch>(length))
}
