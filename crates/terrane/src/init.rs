//! Initial weights, drawn on the host so that a seed gives the same network on every device.

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};

use crate::random::Random;

/// Draws the initial weights of a network.
#[derive(Debug)]
pub struct Init<'a> {
    random: Random,
    device: &'a Device,
}

impl<'a> Init<'a> {
    /// Starts drawing for a device.
    pub fn new(seed: u64, device: &'a Device) -> Self {
        Self {
            random: Random::new(seed, 0),
            device,
        }
    }

    /// The device the weights go to.
    pub fn device(&self) -> &'a Device {
        self.device
    }

    /// Weights of one value.
    pub fn constant<const D: usize>(&self, shape: [usize; D], value: f32) -> Param<Tensor<D>> {
        self.parameter(shape, vec![value; shape.iter().product()])
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
        let count = shape.iter().product();
        let values = (0..count)
            .map(|_| (low + (high - low) * self.random.unit()) as f32)
            .collect();
        self.parameter(shape, values)
    }

    /// Normally distributed weights of mean 0.
    pub fn normal<const D: usize>(
        &mut self,
        shape: [usize; D],
        deviation: f64,
    ) -> Param<Tensor<D>> {
        let count = shape.iter().product();
        let values = (0..count)
            .map(|_| (deviation * self.random.normal()) as f32)
            .collect();
        self.parameter(shape, values)
    }

    /// Normally distributed weights of mean 0, drawn again beyond two deviations.
    pub fn truncated_normal<const D: usize>(
        &mut self,
        shape: [usize; D],
        deviation: f64,
    ) -> Param<Tensor<D>> {
        let count = shape.iter().product();
        let values = (0..count)
            .map(|_| {
                loop {
                    let draw = self.random.normal();
                    if draw.abs() <= 2.0 {
                        break (deviation * draw) as f32;
                    }
                }
            })
            .collect();
        self.parameter(shape, values)
    }

    fn parameter<const D: usize>(&self, shape: [usize; D], values: Vec<f32>) -> Param<Tensor<D>> {
        Param::from_tensor(Tensor::from_data(
            TensorData::new(values, shape),
            self.device,
        ))
    }
}
