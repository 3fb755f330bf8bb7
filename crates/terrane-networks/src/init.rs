//! Initial weights, drawn on the host so that a seed gives the same network on every device.

use burn::module::{Param, ParamId};
use burn::tensor::{Device, Shape, Tensor, TensorData};

use terrane_codec::random::Random;

/// Draws the initial weights of a network.
#[derive(Debug)]
pub struct Init<'a> {
    random: Random,
    device: &'a Device,
    extent: Extent,
}

/// How much of a network is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All of it.
    Whole,
    /// Shapes without numbers.
    Outline,
}

impl<'a> Init<'a> {
    /// Starts drawing for a device.
    pub fn new(seed: u64, device: &'a Device) -> Self {
        Self {
            random: Random::new(seed, 0),
            device,
            extent: Extent::Whole,
        }
    }

    /// For a network whose arrays have shapes and no numbers: it takes no memory, and computes nothing.
    pub(crate) fn outline(device: &'a Device) -> Self {
        Self {
            extent: Extent::Outline,
            ..Self::new(0, device)
        }
    }

    /// A size of something that is computed beside the weights; an outline has as little of it as can be.
    pub(crate) fn beside(&self, size: usize, least: usize) -> usize {
        match self.extent {
            Extent::Whole => size,
            Extent::Outline => least,
        }
    }

    /// The device the weights go to.
    pub fn device(&self) -> &'a Device {
        self.device
    }

    /// Weights of one value.
    pub fn constant<const D: usize>(&self, shape: [usize; D], value: f32) -> Param<Tensor<D>> {
        self.parameter(shape, || vec![value; shape.iter().product()])
    }

    /// Weights spread evenly over ±`bound`.
    pub fn uniform<const D: usize>(&mut self, shape: [usize; D], bound: f64) -> Param<Tensor<D>> {
        self.between(shape, -bound, bound)
    }

    /// Weights spread evenly from `low` to `high`.
    pub fn between<const D: usize>(
        &mut self,
        shape: [usize; D],
        low: f64,
        high: f64,
    ) -> Param<Tensor<D>> {
        self.filled(shape, |random, count| spread(random, count, low, high))
    }

    /// Weights `[rows, columns]` spread evenly over ±`bound`, except the last row, which is spread over ±`last`.
    pub(crate) fn uniform_with_last_row(
        &mut self,
        [rows, columns]: [usize; 2],
        bound: f64,
        last: f64,
    ) -> Param<Tensor<2>> {
        self.filled([rows, columns], |random, count| {
            let mut values = spread(random, count, -bound, bound);
            // The last row is drawn a second time, so that seeds keep their networks.
            values.truncate(count - columns);
            values.extend(spread(random, columns, -last, last));
            values
        })
    }

    /// Normally distributed weights of mean 0.
    pub fn normal<const D: usize>(
        &mut self,
        shape: [usize; D],
        deviation: f64,
    ) -> Param<Tensor<D>> {
        self.filled(shape, |random, count| {
            (0..count)
                .map(|_| (deviation * random.normal()) as f32)
                .collect()
        })
    }

    /// Normally distributed weights of mean 0, drawn again beyond two deviations.
    pub fn truncated_normal<const D: usize>(
        &mut self,
        shape: [usize; D],
        deviation: f64,
    ) -> Param<Tensor<D>> {
        self.filled(shape, |random, count| {
            (0..count)
                .map(|_| {
                    loop {
                        let draw = random.normal();
                        if draw.abs() <= 2.0 {
                            break (deviation * draw) as f32;
                        }
                    }
                })
                .collect()
        })
    }

    /// Weights of which so many are drawn at once.
    fn filled<const D: usize>(
        &mut self,
        shape: [usize; D],
        draw: impl FnOnce(&mut Random, usize) -> Vec<f32>,
    ) -> Param<Tensor<D>> {
        let mut random = self.random.clone();
        let parameter = self.parameter(shape, || draw(&mut random, shape.iter().product()));
        self.random = random;
        parameter
    }

    fn parameter<const D: usize>(
        &self,
        shape: [usize; D],
        values: impl FnOnce() -> Vec<f32>,
    ) -> Param<Tensor<D>> {
        match self.extent {
            Extent::Whole => Param::from_tensor(Tensor::from_data(
                TensorData::new(values(), shape),
                self.device,
            )),
            Extent::Outline => Param::uninitialized(
                ParamId::new(),
                move |device, _| Tensor::zeros(shape, device),
                self.device.clone(),
                true,
                Shape::from(shape),
            ),
        }
    }
}

/// Numbers spread evenly from `low` to `high`.
fn spread(random: &mut Random, count: usize, low: f64, high: f64) -> Vec<f32> {
    (0..count)
        .map(|_| (low + (high - low) * random.unit()) as f32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_has_a_bound_of_its_own_and_other_weights_stay() {
        let device = Device::flex();
        let values =
            |param: Param<Tensor<2>>| -> Vec<f32> { param.val().into_data().try_to_vec().unwrap() };
        let mut init = Init::new(3, &device);
        let mut expected = values(init.uniform([4, 3], 0.5))[..9].to_vec();
        expected.extend(values(init.uniform([1, 3], 8.0)));
        let after = values(init.uniform([1, 1], 1.0));
        let mut init = Init::new(3, &device);
        assert_eq!(
            values(init.uniform_with_last_row([4, 3], 0.5, 8.0)),
            expected
        );
        assert_eq!(values(init.uniform([1, 1], 1.0)), after);
    }
}
