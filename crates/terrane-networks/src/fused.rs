//! A network of sines, its square error and the gradient of both in few passes over memory.
//!
//! A library differentiates one operation at a time, and each of them reads and writes every number of every point: of a training step
//! of HUVR+SIREN that is most of the time. Here the products of matrices are left to the library and what lies between
//! them is one pass each ([`Passes`]), forward and back in one go. Kernels of our own take these passes on NVIDIA cards; [`Plain`] is
//! what they are tested against.

use burn::module::Param;
#[cfg(feature = "libtorch")]
use burn::tensor::DType;
use burn::tensor::Tensor;

use crate::blocks::{Modulation, Siren};
use crate::tape::keep;
#[cfg(feature = "libtorch")]
use crate::{cuda, libtorch, tape};

/// The passes over all points, and the products between them. Points of a patch are `[patches · count, width]`, what modulates a
/// layer is `[patches, width]`. Outputs of layers and gradients by angles may have fewer bits than the rest, and such gradients may be
/// in units of their own: they only go from one of these functions to the next.
pub(crate) trait Passes {
    /// The angles of a layer: `input · weight`.
    fn product(&self, input: &Tensor<2>, weight: &Tensor<2>) -> Tensor<2> {
        input.clone().matmul(weight.clone())
    }

    /// Back through [`Passes::product`] to the input, in the unit of the gradient by the angles.
    fn product_back(&self, by_angle: &Tensor<2>, weight: &Tensor<2>) -> Tensor<2> {
        by_angle.clone().matmul(weight.clone().transpose())
    }

    /// Back through [`Passes::product`] to the weight, times a factor.
    fn weight_back(&self, input: Tensor<2>, by_angle: &Tensor<2>, factor: f64) -> Tensor<2> {
        input
            .transpose()
            .matmul(by_angle.clone())
            .mul_scalar(factor)
    }

    /// The first layer: `amplitude · sin(points · weight + shift)`, with the same points in every patch.
    fn first(
        &self,
        points: &Tensor<2>,
        weight: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
    ) -> Tensor<2>;

    /// A layer after its product: `amplitude · sin(angle + shift)`.
    fn sine(&self, angle: &Tensor<2>, amplitude: &Tensor<2>, shift: &Tensor<2>) -> Tensor<2>;

    /// The last sine layer and the linear one: values `[patches, count]`.
    fn value(
        &self,
        angle: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
        weight: &Tensor<2>,
        bias: &Tensor<1>,
    ) -> Tensor<2>;

    /// The same, the mean square difference from expected values, and back from it.
    fn value_and_back(
        &self,
        angle: Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
        weight: &Tensor<2>,
        bias: &Tensor<1>,
        expected: &Tensor<2>,
    ) -> Ends;

    /// From the gradient by the output of [`Passes::sine`] to that by its angle and what modulates it.
    fn sine_back(
        &self,
        gradient: Tensor<2>,
        angle: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
    ) -> (Tensor<2>, Sums);

    /// From the gradient by the output of [`Passes::first`] to that by its weight and what modulates it.
    fn first_back(
        &self,
        gradient: &Tensor<2>,
        points: &Tensor<2>,
        weight: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
    ) -> FirstSums;
}

/// Gradients by what modulates a layer, `[patches, width]`.
#[derive(Debug)]
pub(crate) struct Sums {
    pub(crate) amplitude: Tensor<2>,
    pub(crate) shift: Tensor<2>,
}

/// Gradients of the first layer.
#[derive(Debug)]
pub(crate) struct FirstSums {
    pub(crate) sums: Sums,
    /// `[2, width]`.
    pub(crate) weight: Tensor<2>,
}

/// Gradients of the last two layers, and the error.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) angle: Tensor<2>,
    pub(crate) sums: Sums,
    /// `[width, 1]`.
    pub(crate) weight: Tensor<2>,
    pub(crate) bias: Tensor<1>,
    pub(crate) error: Tensor<1>,
}

/// The mean square difference of a network's values from expected ones, `[patches, count]`, as the start of a differentiation; `None`
/// where nothing is quicker than leaving it to a library. Every patch has the same points, and every sine layer an amplitude and a phase.
/// `is_half` lets what goes through products be 16-bit floats where that is quicker.
pub(crate) fn square_error(
    siren: &Siren,
    points: &Tensor<2>,
    modulations: &[Modulation<3>],
    expected: &Tensor<2>,
    is_half: bool,
) -> Option<Tensor<1>> {
    let parts = Parts::of(siren, points, modulations)?;
    let passes = parts.kernels(is_half)?;
    Some(parts.square_error(&passes, expected))
}

/// The values of a network at the same points in every patch, `[patches, count]`, where nothing is differentiated; `None` as for
/// [`square_error`].
pub(crate) fn values<const D: usize>(
    siren: &Siren,
    points: &Tensor<D>,
    modulations: &[Modulation<D>],
) -> Option<Tensor<2>> {
    #[cfg(feature = "libtorch")]
    {
        if tape::is_recording() || points.dims()[0] != 1 {
            return None;
        }
        let count = points.dims()[D - 2];
        if points.shape().num_elements() != 2 * count {
            return None;
        }
        let points = points.clone().reshape([count, 2]);
        let parts = Parts::of(siren, &points, modulations)?;
        let passes = parts.kernels(false)?;
        Some(parts.values(&passes))
    }
    #[cfg(not(feature = "libtorch"))]
    {
        let _ = (siren, points, modulations);
        None
    }
}

/// What a network computes with, each as it waits for a gradient and as bare numbers.
struct Parts<'a> {
    siren: &'a Siren,
    points: Tensor<2>,
    layers: Vec<Layer>,
}

/// A sine layer.
struct Layer {
    amplitude: Tensor<2>,
    phase: Tensor<2>,
    numbers: Numbers,
}

/// A sine layer's numbers: ω lies in the weight, the bias in the shift.
struct Numbers {
    weight: Tensor<2>,
    amplitude: Tensor<2>,
    shift: Tensor<2>,
}

impl<'a> Parts<'a> {
    fn of<const D: usize>(
        siren: &'a Siren,
        points: &Tensor<2>,
        modulations: &[Modulation<D>],
    ) -> Option<Self> {
        let (sines, _) = siren.parts();
        if sines.len() < 2 || sines.len() != modulations.len() {
            return None;
        }
        let omega = siren.omega();
        let layers = sines
            .iter()
            .zip(modulations)
            .map(|(layer, modulation)| {
                let (Some(amplitude), Some(phase), None, None) = (
                    &modulation.amplitude,
                    &modulation.phase,
                    &modulation.frequency,
                    &modulation.offset,
                ) else {
                    return None;
                };
                let [_, width] = layer.weight.dims();
                let patches = amplitude.shape().num_elements() / width;
                let [amplitude, phase] =
                    [amplitude, phase].map(|part| part.clone().reshape([patches, width]));
                let bias = numbers(layer.bias.as_ref()?.val()).mul_scalar(omega);
                let numbers = Numbers {
                    weight: numbers(layer.weight.val()).mul_scalar(omega),
                    amplitude: numbers(amplitude.clone()),
                    shift: numbers(phase.clone()) + bias.unsqueeze(),
                };
                Some(Layer {
                    amplitude,
                    phase,
                    numbers,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Self {
            siren,
            points: points.clone(),
            layers,
        })
    }

    #[cfg(feature = "libtorch")]
    fn kernels(&self, is_half: bool) -> Option<cuda::Sines> {
        let first = &self.layers[0].numbers.amplitude;
        let [_, width] = first.dims();
        let [count, _] = self.points.dims();
        let is_even = first.dtype() == DType::F32
            && self
                .layers
                .iter()
                .all(|layer| layer.numbers.weight.dims()[1] == width);
        is_even
            .then(|| cuda::Sines::of(first, count, width, is_half).ok())
            .flatten()
    }

    #[cfg(not(feature = "libtorch"))]
    #[expect(clippy::unused_self, reason = "there are kernels with LibTorch alone")]
    fn kernels(&self, _: bool) -> Option<Plain> {
        None
    }

    /// Outputs of all sine layers but the last, and the angles of all but the first.
    fn forward(&self, passes: &impl Passes) -> (Vec<Tensor<2>>, Vec<Tensor<2>>) {
        let first = &self.layers[0].numbers;
        let mut outputs =
            vec![passes.first(&self.points, &first.weight, &first.amplitude, &first.shift)];
        let mut angles = Vec::new();
        for (index, layer) in self.layers.iter().enumerate().skip(1) {
            let Numbers {
                weight,
                amplitude,
                shift,
            } = &layer.numbers;
            let angle = passes.product(&outputs[index - 1], weight);
            if index + 1 < self.layers.len() {
                outputs.push(passes.sine(&angle, amplitude, shift));
            }
            angles.push(angle);
        }
        (outputs, angles)
    }

    #[cfg(feature = "libtorch")]
    fn values(&self, passes: &impl Passes) -> Tensor<2> {
        let (_, mut angles) = self.forward(passes);
        let (_, last) = self.siren.parts();
        let numbers_of_last = &self.layers[self.layers.len() - 1].numbers;
        let angle = angles.swap_remove(angles.len() - 1);
        let bias = last.bias.as_ref().map_or_else(
            || Tensor::zeros([1], &angle.device()),
            |bias| numbers(bias.val()),
        );
        passes.value(
            &angle,
            &numbers_of_last.amplitude,
            &numbers_of_last.shift,
            &numbers(last.weight.val()),
            &bias,
        )
    }

    fn square_error(&self, passes: &impl Passes, expected: &Tensor<2>) -> Tensor<1> {
        let (sines, last) = self.siren.parts();
        let omega = self.siren.omega();
        let (mut outputs, mut angles) = self.forward(passes);
        let mut slopes = Slopes(None);

        let top = self.layers.len() - 1;
        let angle = angles.swap_remove(top - 1);
        let device = angle.device();
        let Numbers {
            amplitude, shift, ..
        } = &self.layers[top].numbers;
        let bias = last.bias.as_ref().map(Param::val);
        let bias_numbers = bias
            .clone()
            .map_or_else(|| Tensor::zeros([1], &device), numbers);
        let Ends {
            angle: mut by_angle,
            mut sums,
            weight,
            bias: by_bias,
            error,
        } = passes.value_and_back(
            angle,
            amplitude,
            shift,
            &numbers(last.weight.val()),
            &bias_numbers,
            expected,
        );
        slopes.add(last.weight.val(), weight);
        if let Some(bias) = bias {
            slopes.add(bias, by_bias);
        }
        for index in (1..=top).rev() {
            let layer = &self.layers[index];
            slopes.add(layer.amplitude.clone(), sums.amplitude);
            slopes.add(layer.phase.clone(), sums.shift.clone());
            slopes.bias(
                sines[index].bias.as_ref().map(Param::val),
                sums.shift,
                omega,
            );
            let input = outputs.swap_remove(index - 1);
            let by_weight = passes.weight_back(input, &by_angle, omega);
            slopes.add(sines[index].weight.val(), by_weight);
            let gradient = passes.product_back(&by_angle, &layer.numbers.weight);
            let below = &self.layers[index - 1].numbers;
            if index > 1 {
                let angle = angles.swap_remove(index - 2);
                (by_angle, sums) =
                    passes.sine_back(gradient, &angle, &below.amplitude, &below.shift);
                continue;
            }
            let first = passes.first_back(
                &gradient,
                &self.points,
                &below.weight,
                &below.amplitude,
                &below.shift,
            );
            let layer = &self.layers[0];
            slopes.add(layer.amplitude.clone(), first.sums.amplitude);
            slopes.add(layer.phase.clone(), first.sums.shift.clone());
            slopes.bias(
                sines[0].bias.as_ref().map(Param::val),
                first.sums.shift,
                omega,
            );
            slopes.add(sines[0].weight.val(), first.weight.mul_scalar(omega));
            break;
        }
        slopes.with_value(error)
    }
}

/// A sum whose gradients are known: every part times its gradient, with the gradient held fixed.
///
/// A library that differentiates this sum gives every part its gradient and goes on from there.
struct Slopes(Option<Tensor<1>>);

impl Slopes {
    fn add<const D: usize>(&mut self, part: Tensor<D>, gradient: Tensor<D>) {
        let gradient = if part.device().is_autodiff() {
            gradient.autodiff()
        } else {
            gradient
        };
        keep(&part);
        keep(&gradient);
        let sum = (part * gradient).sum();
        self.0 = Some(match self.0.take() {
            Some(others) => others + sum,
            None => sum,
        });
    }

    /// A bias inside the shifts of all patches.
    fn bias(&mut self, bias: Option<Tensor<1>>, by_shift: Tensor<2>, omega: f64) {
        if let Some(bias) = bias {
            self.add(bias, by_shift.sum_dim(0).squeeze_dim(0).mul_scalar(omega));
        }
    }

    /// The same with another value.
    fn with_value(self, value: Tensor<1>) -> Tensor<1> {
        let Some(sum) = self.0 else { return value };
        let rest = value - numbers(sum.clone());
        let rest = if sum.device().is_autodiff() {
            rest.autodiff()
        } else {
            rest
        };
        sum + rest
    }
}

/// The numbers alone, in one piece, without what led to them.
fn numbers<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    #[cfg(feature = "libtorch")]
    if let Some(numbers) = libtorch::numbers(&tensor) {
        return numbers;
    }
    tensor.inner()
}

/// The passes by Burn's operations, on any device.
#[cfg(any(test, not(feature = "libtorch")))]
#[derive(Debug)]
pub(crate) struct Plain;

#[cfg(any(test, not(feature = "libtorch")))]
mod plain;

#[cfg(test)]
mod tests;
