//! One step of AdamW in one pass: see `adam.cu`.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::{Argument, CudaError, Program, Source, address, ordinal};

pub(super) const SOURCE: Source = Source {
    name: "adam",
    text: include_str!("adam.cu"),
};
const THREADS: u32 = 256;
/// Blocks that fill the largest card.
const MAX_BLOCKS: usize = 4096;

/// The kernel on a card.
#[derive(Debug)]
pub struct Adam(Arc<Program>);

/// The numbers of a step.
#[derive(Debug, Clone, Copy)]
pub struct AdamStep {
    /// The longest gradient; 0 for any.
    pub clip: f64,
    /// Decay of the mean gradient.
    pub beta1: f64,
    /// Decay of the mean square.
    pub beta2: f64,
    /// Added to the root.
    pub epsilon: f64,
    /// Factor on the root of the mean square.
    pub root_factor: f64,
    /// Factor on the mean gradient.
    pub rate: f64,
    /// Part of the weights that stays.
    pub keep: f64,
    /// Decay of the running mean of weights; 0 for none.
    pub decay: f64,
}

impl Adam {
    /// The kernel for the card that a vector lies on.
    pub fn of(vector: &Tensor<1>) -> Result<Self, CudaError> {
        Program::on(ordinal(vector)?, SOURCE, &[]).map(Self)
    }

    /// Takes a step: writes over weights, mean, square and the running mean. `length` is that of the gradient.
    pub fn step(
        &self,
        step: &AdamStep,
        [weights, mean, square]: [&Tensor<1>; 3],
        average: Option<&Tensor<1>>,
        gradient: &Tensor<1>,
        length: &Tensor<1>,
    ) {
        let [count] = weights.dims();
        let float = |number: f64| Argument::Float(number as f32);
        self.0.launch(
            "adam",
            count.div_ceil(THREADS as usize).clamp(1, MAX_BLOCKS),
            (THREADS, 1),
            &[
                address(weights, count),
                address(mean, count),
                address(square, count),
                average.map_or(Argument::Nothing, |average| address(average, count)),
                address(gradient, count),
                address(length, 1),
                Argument::Long(count as i64),
                float(step.clip),
                float(step.beta1),
                float(step.beta2),
                float(1.0 - step.beta2),
                float(step.epsilon),
                float(step.root_factor),
                float(step.rate),
                float(step.keep),
                float(if average.is_some() { step.decay } else { 0.0 }),
            ],
        );
    }
}
