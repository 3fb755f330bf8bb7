//! Adam and AdamW over all weights as one vector: one update, one length for clipping, two arrays to save.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use terrane_networks::blocks::Check;
#[cfg(feature = "libtorch")]
use terrane_networks::cuda;

use crate::config::{are_decays, are_non_negative, check_each};

/// Numbers of the optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimiserConfig {
    /// Decay of the running mean of gradients.
    pub beta1: f64,
    /// Decay of the running mean of squared gradients.
    pub beta2: f64,
    /// Added to the root of the mean square.
    pub epsilon: f64,
    /// Part of a weight that is lost per step and unit of learning rate (AdamW); 0 makes it plain Adam.
    pub weight_decay: f64,
}

impl OptimiserConfig {
    /// Refuses numbers that no optimiser can have; keys are those of a training's configuration.
    pub(crate) fn check(&self) -> Check {
        are_decays(&[
            ("train.optimiser.beta1", self.beta1),
            ("train.optimiser.beta2", self.beta2),
        ])?;
        check_each(
            &[("train.optimiser.epsilon", self.epsilon)],
            "be above 0",
            |value| value > 0.0,
        )?;
        are_non_negative(&[("train.optimiser.weight_decay", self.weight_decay)])
    }
}

/// The optimiser with its memory. On a card it writes over what it remembers, so it cannot be cloned.
#[derive(Debug)]
pub struct Optimiser {
    config: OptimiserConfig,
    clip_norm: f64,
    ema: f64,
    state: State,
}

/// What an optimiser remembers; every vector has all weights in the order of the network.
#[derive(Debug)]
pub struct State {
    /// Steps done.
    pub steps: usize,
    /// The weights themselves.
    pub weights: Tensor<1>,
    /// Mean gradient.
    pub mean: Tensor<1>,
    /// Mean square gradient.
    pub square: Tensor<1>,
    /// Running mean of the weights, where one is kept.
    pub average: Option<Tensor<1>>,
}

impl Optimiser {
    /// An optimiser at its first step from the given weights; `clip_norm` and `ema` of 0 switch them off.
    pub fn new(config: OptimiserConfig, clip_norm: f64, ema: f64, weights: Tensor<1>) -> Self {
        // None shares its memory with another: they are written over.
        let state = State {
            steps: 0,
            mean: weights.zeros_like(),
            square: weights.zeros_like(),
            average: (ema > 0.0).then(|| weights.clone().mul_scalar(1.0)),
            weights,
        };
        Self {
            config,
            clip_norm,
            ema,
            state,
        }
    }

    /// What it remembers.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Goes on from what an earlier one remembered.
    #[must_use]
    pub(crate) fn with_state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Takes one step against the gradient; returns the new weights, on a card in the memory of the last ones.
    pub fn step(&mut self, rate: f64, gradient: Tensor<1>) -> Tensor<1> {
        let OptimiserConfig {
            beta1,
            beta2,
            epsilon,
            weight_decay,
        } = self.config;
        // A mean of few weights forgets quickly: those it began with would stay in it for thousands of steps otherwise.
        let taken = self.state.steps as f64;
        let ema = self.ema.min((1.0 + taken) / (10.0 + taken));
        self.state.steps += 1;
        let time = self.state.steps as i32;
        let update = Update {
            clip_norm: self.clip_norm,
            beta1,
            beta2,
            epsilon,
            root_factor: 1.0 / (1.0 - beta2.powi(time)).sqrt(),
            rate: rate / (1.0 - beta1.powi(time)),
            keep: 1.0 - rate * weight_decay,
            ema,
        };
        update.apply(&mut self.state, gradient);
        self.state.weights.clone()
    }

    /// Whether all weights are numbers.
    pub(crate) fn is_finite(&self) -> bool {
        let zero = self.state.weights.clone().mul_scalar(0.0).sum();
        zero.into_scalar::<f32>() == 0.0
    }

    /// The weights to keep: their running mean where there is one.
    pub(crate) fn best(&self) -> Tensor<1> {
        self.state
            .average
            .clone()
            .unwrap_or_else(|| self.state.weights.clone())
    }
}

/// The numbers of one step.
#[derive(Debug)]
struct Update {
    /// The longest gradient, or 0.
    clip_norm: f64,
    beta1: f64,
    beta2: f64,
    epsilon: f64,
    /// What the root of the mean square is multiplied with, since it starts at 0.
    root_factor: f64,
    /// The learning rate over what the mean lacks since it starts at 0.
    rate: f64,
    /// The part of a weight that its decay leaves.
    keep: f64,
    /// Decay of the running mean of weights at this step.
    ema: f64,
}

impl Update {
    fn apply(&self, state: &mut State, mut gradient: Tensor<1>) {
        #[cfg(feature = "libtorch")]
        if self.apply_in_one_pass(state, &gradient) {
            return;
        }
        if self.clip_norm > 0.0 {
            // As PyTorch does it; on the device, so that nothing waits for the number.
            let factor = length(&gradient)
                .add_scalar(1e-6)
                .recip()
                .mul_scalar(self.clip_norm)
                .clamp_max(1.0);
            gradient = gradient * factor;
        }
        let State {
            weights,
            mean,
            square,
            average,
            ..
        } = state;
        *mean = mean.clone().mul_scalar(self.beta1) + gradient.clone().mul_scalar(1.0 - self.beta1);
        *square =
            square.clone().mul_scalar(self.beta2) + gradient.square().mul_scalar(1.0 - self.beta2);
        let root = square
            .clone()
            .sqrt()
            .mul_scalar(self.root_factor)
            .add_scalar(self.epsilon);
        let change = (mean.clone() / root).mul_scalar(self.rate);
        *weights = weights.clone().mul_scalar(self.keep) - change;
        if let Some(average) = average {
            *average =
                average.clone().mul_scalar(self.ema) + weights.clone().mul_scalar(1.0 - self.ema);
        }
    }

    /// The same by a kernel that writes over what is remembered, where there is one; whether there is.
    #[cfg(feature = "libtorch")]
    fn apply_in_one_pass(&self, state: &State, gradient: &Tensor<1>) -> bool {
        let Ok(adam) = cuda::Adam::of(gradient) else {
            return false;
        };
        let step = cuda::AdamStep {
            clip: self.clip_norm,
            beta1: self.beta1,
            beta2: self.beta2,
            epsilon: self.epsilon,
            root_factor: self.root_factor,
            rate: self.rate,
            keep: self.keep,
            decay: self.ema,
        };
        adam.step(
            &step,
            [&state.weights, &state.mean, &state.square],
            state.average.as_ref(),
            gradient,
            &length(gradient),
        );
        true
    }
}

fn length(vector: &Tensor<1>) -> Tensor<1> {
    #[cfg(feature = "libtorch")]
    if let Some(length) = crate::training::libtorch::length(vector) {
        return length;
    }
    vector.clone().square().sum().sqrt()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    fn vector(values: [f32; 2]) -> Tensor<1> {
        Tensor::from_floats(values, &Device::flex())
    }

    fn values(tensor: Tensor<1>) -> Vec<f32> {
        tensor.into_data().try_to_vec().unwrap()
    }

    /// Three steps on (w₀ − 1)² + 3 w₁ from (0, ½).
    fn three_steps(weight_decay: f64) -> Vec<f32> {
        let config = OptimiserConfig {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay,
        };
        let mut optimiser = Optimiser::new(config, 0.0, 0.0, vector([0.0, 0.5]));
        for _ in 0..3 {
            let now = values(optimiser.state().weights.clone());
            optimiser.step(0.1, vector([2.0 * (now[0] - 1.0), 3.0]));
        }
        values(optimiser.best())
    }

    #[test]
    fn steps_are_those_of_pytorch() {
        // torch.optim.AdamW(lr=0.1) on the same loss.
        for (weight_decay, expected) in
            [(0.0, [0.298_413_7, 0.2]), (0.1, [0.295_436_3, 0.188_139_5])]
        {
            let ours = three_steps(weight_decay);
            assert!(
                ours.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6),
                "{ours:?} {expected:?}"
            );
        }
    }

    #[test]
    fn the_gradient_is_clipped_as_one_vector() {
        // (3, 4) has length 5 and is clipped to 1; a huge epsilon makes the step proportional to it.
        let config = OptimiserConfig {
            beta1: 0.0,
            beta2: 0.0,
            epsilon: 1e6,
            weight_decay: 0.0,
        };
        let mut optimiser = Optimiser::new(config, 1.0, 0.0, vector([0.5, 0.5]));
        let weights = values(optimiser.step(1e6, vector([3.0, 4.0])));
        assert!(
            (weights[0] - (0.5 - 0.6)).abs() < 1e-4 && (weights[1] - (0.5 - 0.8)).abs() < 1e-4,
            "{weights:?}"
        );
    }

    #[test]
    fn the_running_mean_follows_the_weights() {
        let config = OptimiserConfig {
            beta1: 0.0,
            beta2: 0.0,
            epsilon: 1.0,
            weight_decay: 0.0,
        };
        let mut optimiser = Optimiser::new(config, 0.0, 0.75, vector([0.0, 0.0]));
        optimiser.step(4.0, vector([1.0, -1.0]));
        assert_eq!(values(optimiser.state().weights.clone()), [-2.0, 2.0]);
        // A tenth of what it began with, whatever the decay is later.
        assert_eq!(values(optimiser.best()), [-1.8, 1.8]);
        // From step 27 on the decay is what was asked for: 28 / 37 is more.
        for _ in 1..40 {
            optimiser.step(0.0, vector([0.0, 0.0]));
        }
        let before = values(optimiser.best());
        let weights = values(optimiser.step(4.0, vector([-1.0, 1.0])));
        let expected = 0.75 * before[0] + 0.25 * weights[0];
        assert!((values(optimiser.best())[0] - expected).abs() < 1e-6);
    }

    #[test]
    fn a_long_mean_of_a_short_training_has_nothing_of_its_start() {
        let config = OptimiserConfig {
            beta1: 0.0,
            beta2: 0.0,
            epsilon: 1.0,
            weight_decay: 0.0,
        };
        let mut optimiser = Optimiser::new(config, 0.0, 0.9995, vector([5.0, 5.0]));
        optimiser.step(8.0, vector([1.0, 1.0]));
        let weights = values(optimiser.state().weights.clone());
        for _ in 1..1600 {
            optimiser.step(0.0, vector([0.0, 0.0]));
        }
        for (mean, weight) in values(optimiser.best()).iter().zip(weights) {
            assert!((mean - weight).abs() < 1e-5, "{mean} of {weight}");
        }
    }
}
