//! Sines and cosines of whole tensors on the CPU.
//!
//! Networks of sines spend nearly all their time in sines. Burn computes them one by one on one core; here they are
//! polynomials in wide registers on all cores, also while a training is recorded. The arithmetic is the same on every
//! machine: no products are fused with sums.
#![expect(
    clippy::inline_always,
    reason = "what is not inlined is not compiled for wide registers"
)]

use std::f32::consts::FRAC_2_PI;

use burn::backend::autodiff::Autodiff;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::flex::FlexTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{DType, Tensor, TensorData};
use rayon::prelude::*;
use terrane_context::simd;

const CONTIGUOUS: &str = "a contiguous tensor of floats is a slice";
/// Numbers that are worth handing to another core.
const SHARE: usize = 1 << 14;
/// Beyond this the reduction to a quarter turn loses digits, and the standard library takes over.
const LARGEST: f32 = 8192.0;
/// π/2 in three parts; the first two have so few digits that their products with integers are exact.
const QUARTER: [f32; 3] = [1.570_312_5, 4.837_513e-4, 7.549_79e-8];
/// Adding and subtracting it rounds to integers.
const ROUNDING: f32 = 12_582_912.0;

/// Sines of all numbers.
pub(crate) fn sine<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    Wave::Sine.of(x)
}

/// Cosines of all numbers.
pub(crate) fn cosine<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    Wave::Cosine.of(x)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wave {
    Sine,
    Cosine,
}

impl Wave {
    fn of<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        if x.dtype() == DType::F32 {
            if let Ok(x) = x.clone().try_into_primitive::<Flex>() {
                return Tensor::from_primitive::<Flex>(self.compute(&x));
            }
            if let Ok(x) = x.clone().try_into_primitive::<Autodiff<Flex>>() {
                let y = match Slope
                    .prepare::<NoCheckpointing>([x.node()])
                    .compute_bound()
                    .stateful()
                {
                    OpsKind::Tracked(prepared) => {
                        let y = self.compute(x.primitive());
                        prepared.finish((self, x.into_primitive()), y)
                    }
                    OpsKind::UnTracked(prepared) => prepared.finish(self.compute(x.primitive())),
                };
                return Tensor::from_primitive::<Autodiff<Flex>>(y);
            }
        }
        match self {
            Self::Sine => x.sin(),
            Self::Cosine => x.cos(),
        }
    }

    /// Quarter turns ahead of the sine.
    fn turns(self) -> i32 {
        i32::from(self == Self::Cosine)
    }

    fn of_number(self, x: f32) -> f32 {
        match self {
            Self::Sine => x.sin(),
            Self::Cosine => x.cos(),
        }
    }

    fn compute(self, x: &FlexTensor) -> FlexTensor {
        let shape = x.shape();
        let x = x.to_contiguous();
        let x: &[f32] = x.as_slice().expect(CONTIGUOUS);
        let mut out = vec![0.0; x.len()];
        out.par_chunks_mut(SHARE)
            .zip(x.par_chunks(SHARE))
            .for_each(|(out, x)| simd::run(Values { wave: self, x, out }));
        FlexTensor::from_data(TensorData::new(out, shape))
    }
}

/// The derivative: the gradient times the other wave.
#[derive(Debug)]
struct Slope;

impl Backward<Flex, 1> for Slope {
    type State = (Wave, FlexTensor);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (wave, x) = ops.state;
        unary::<Flex, _>(ops.parents, ops.node, grads, |gradient| {
            sloped(gradient, wave, &x)
        });
    }
}

/// A gradient times the derivative of the wave at x, in the gradient's own memory where nothing else holds it.
fn sloped(mut gradient: FlexTensor, wave: Wave, x: &FlexTensor) -> FlexTensor {
    let x = x.to_contiguous();
    let x: &[f32] = x.as_slice().expect(CONTIGUOUS);
    if !gradient.is_contiguous() || gradient.storage::<f32>().len() != x.len() {
        gradient = gradient.to_contiguous();
    }
    gradient
        .storage_mut::<f32>()
        .par_chunks_mut(SHARE)
        .zip(x.par_chunks(SHARE))
        .for_each(|(gradient, x)| simd::run(Slopes { wave, x, gradient }));
    gradient
}

struct Values<'a> {
    wave: Wave,
    x: &'a [f32],
    out: &'a mut [f32],
}

impl simd::Work for Values<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { wave, x, out } = self;
        if !is_near(x) {
            for (out, x) in out.iter_mut().zip(x) {
                *out = wave.of_number(*x);
            }
            return;
        }
        let turns = wave.turns();
        for (out, x) in out.iter_mut().zip(x) {
            *out = turned_sine(*x, turns);
        }
    }
}

struct Slopes<'a> {
    wave: Wave,
    x: &'a [f32],
    gradient: &'a mut [f32],
}

impl simd::Work for Slopes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { wave, x, gradient } = self;
        // The derivative of a wave is the wave a quarter turn ahead.
        if !is_near(x) {
            for (gradient, x) in gradient.iter_mut().zip(x) {
                *gradient *= match wave {
                    Wave::Sine => x.cos(),
                    Wave::Cosine => -x.sin(),
                };
            }
            return;
        }
        let turns = wave.turns() + 1;
        for (gradient, x) in gradient.iter_mut().zip(x) {
            *gradient *= turned_sine(*x, turns);
        }
    }
}

/// Whether the reduction to a quarter turn keeps its digits for all numbers.
#[inline(always)]
fn is_near(x: &[f32]) -> bool {
    x.iter().fold(0.0_f32, |most, x| most.max(x.abs())) <= LARGEST
}

/// The sine of x and some quarter turns; the polynomials are those of least largest error on an eighth of a turn.
#[inline(always)]
fn turned_sine(x: f32, quarters: i32) -> f32 {
    let nearest = x * FRAC_2_PI + ROUNDING;
    let whole = nearest - ROUNDING;
    let r = ((x - whole * QUARTER[0]) - whole * QUARTER[1]) - whole * QUARTER[2];
    // The lowest bits of the rounded number are those of the integer.
    let quarters = (nearest.to_bits() as i32).wrapping_add(quarters);
    let square = r * r;
    let odd = r + r * square * ((-1.951_529_6e-4 * square + 8.332_161e-3) * square - 0.166_666_55);
    let even = (1.0 - 0.5 * square)
        + square * square * ((2.443_315_7e-5 * square - 1.388_731_6e-3) * square + 4.166_664_6e-2);
    let value = if quarters & 1 == 0 { odd } else { even };
    f32::from_bits(value.to_bits() ^ (((quarters & 2) as u32) << 30))
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    fn numbers() -> Vec<f32> {
        (0..40_000)
            .map(|index| (index as f32 - 20_000.0) * 0.013_7)
            .chain([0.0, -0.0, 1e-20, 8191.9, -8000.3])
            .collect()
    }

    #[test]
    fn values_are_those_of_the_standard_library() {
        let device = Device::flex();
        let numbers = numbers();
        let x = Tensor::<1>::from_floats(numbers.as_slice(), &device);
        let [ours, others] = [sine(x.clone()), cosine(x)]
            .map(|tensor| tensor.into_data().try_to_vec::<f32>().unwrap());
        for ((x, sine), cosine) in numbers.iter().zip(ours).zip(others) {
            let x = f64::from(*x);
            assert!(
                (f64::from(sine) - x.sin()).abs() < 1.5e-7,
                "sin {x}: {sine}"
            );
            assert!(
                (f64::from(cosine) - x.cos()).abs() < 1.5e-7,
                "cos {x}: {cosine}"
            );
        }
        let far = Tensor::<1>::from_floats([1e6, f32::NAN, f32::INFINITY], &device);
        let far = sine(far).into_data().try_to_vec::<f32>().unwrap();
        assert!((far[0] - 1e6_f32.sin()).abs() < 1e-7 && far[1].is_nan() && far[2].is_nan());
    }

    #[test]
    fn derivatives_are_those_of_burn() {
        let device = Device::flex().autodiff();
        let x = Tensor::<2>::from_floats([[0.3, -2.0, 7.5], [4.0, 0.0, -31.0]], &device);
        let weight = Tensor::<2>::from_floats([[1.0, -2.0, 0.5], [3.0, 1.5, 0.25]], &device);
        let gradient = |wave: fn(Tensor<2>) -> Tensor<2>| -> Vec<f32> {
            let x = x.clone().require_grad();
            // Transposed, so that what arrives is not in one piece.
            let loss = (wave(x.clone().transpose()).transpose() * weight.clone()).sum();
            x.grad(&loss.backward())
                .unwrap()
                .into_data()
                .try_to_vec()
                .unwrap()
        };
        for (ours, burns) in [
            (gradient(sine), gradient(Tensor::sin)),
            (gradient(cosine), gradient(Tensor::cos)),
        ] {
            assert!(
                ours.iter().zip(&burns).all(|(a, b)| (a - b).abs() < 1e-6),
                "{ours:?} {burns:?}"
            );
        }
    }
}
