//! Adam and AdamW over all weights as one vector: one update, one length for clipping, two arrays to save.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor};
use serde::{Deserialize, Serialize};

/// Numbers of the optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimiserConfig {
    /// Share of the old in the mean gradient.
    pub beta1: f64,
    /// Share of the old in the mean square gradient.
    pub beta2: f64,
    /// Added to the root of the mean square.
    pub epsilon: f64,
    /// Part of a weight that is lost per step and unit of learning rate (AdamW); 0 makes it plain Adam.
    pub weight_decay: f64,
}

/// The optimiser with its memory.
#[derive(Debug, Clone)]
pub struct Optimiser {
    config: OptimiserConfig,
    clip_norm: f64,
    ema: f64,
    state: State,
}

/// What an optimiser remembers; every vector has all weights in the order of the network.
#[derive(Debug, Clone)]
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
    /// An optimiser at its first step; `clip_norm` and `ema` of 0 switch them off.
    pub fn new(config: OptimiserConfig, clip_norm: f64, ema: f64, module: &impl Module) -> Self {
        let weights = gather(module, None);
        let nought = weights.zeros_like();
        let average = (ema > 0.0).then(|| weights.clone());
        let state = State {
            steps: 0,
            weights,
            mean: nought.clone(),
            square: nought,
            average,
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
    pub fn with_state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Changes the network by one step against the gradients.
    pub fn step<M: Module>(&mut self, rate: f64, module: M, gradients: &mut Gradients) -> M {
        let mut gradient = gather(&module, Some(gradients));
        if self.clip_norm > 0.0 {
            // As PyTorch does it; on the device, so that nothing waits for the number.
            let length = gradient.clone().square().sum().sqrt();
            let factor = length
                .add_scalar(1e-6)
                .recip()
                .mul_scalar(self.clip_norm)
                .clamp_max(1.0);
            gradient = gradient * factor;
        }
        let OptimiserConfig {
            beta1,
            beta2,
            epsilon,
            weight_decay,
        } = self.config;
        let State {
            steps,
            weights,
            mean,
            square,
            average,
        } = &mut self.state;
        *steps += 1;
        let time = *steps as i32;
        take(mean, |mean| {
            mean.mul_scalar(beta1) + gradient.clone().mul_scalar(1.0 - beta1)
        });
        take(square, |square| {
            square.mul_scalar(beta2) + gradient.square().mul_scalar(1.0 - beta2)
        });
        let root = square
            .clone()
            .sqrt()
            .mul_scalar(1.0 / (1.0 - beta2.powi(time)).sqrt())
            .add_scalar(epsilon);
        let change = (mean.clone() / root).mul_scalar(rate / (1.0 - beta1.powi(time)));
        take(weights, |weights| {
            weights.mul_scalar(1.0 - rate * weight_decay) - change
        });
        if let Some(average) = average {
            let share = self.ema;
            take(average, |average| {
                average.mul_scalar(share) + weights.clone().mul_scalar(1.0 - share)
            });
        }
        scatter(module, self.state.weights.clone())
    }

    /// The network to keep: with the running mean of the weights where there is one.
    pub fn best<M: Module>(&self, module: M) -> M {
        match &self.state.average {
            Some(average) => scatter(module, average.clone()),
            None => module,
        }
    }
}

/// Replaces a tensor by a function of itself, so that it may be changed in place.
fn take(tensor: &mut Tensor<1>, change: impl FnOnce(Tensor<1>) -> Tensor<1>) {
    let placeholder = tensor.clone().narrow(0, 0, 1);
    *tensor = change(std::mem::replace(tensor, placeholder));
}

/// All weights of a network as one vector, or their gradients; a weight without a gradient has one of 0.
fn gather(module: &impl Module, gradients: Option<&mut Gradients>) -> Tensor<1> {
    let mut gatherer = Gatherer {
        gradients,
        parts: Vec::new(),
    };
    module.visit(&mut gatherer);
    Tensor::cat(gatherer.parts, 0)
}

/// Puts one vector back into the weights of a network.
pub fn scatter<M: Module>(module: M, weights: Tensor<1>) -> M {
    module.map(&mut Scatterer { weights, place: 0 })
}

struct Gatherer<'a> {
    gradients: Option<&'a mut Gradients>,
    parts: Vec<Tensor<1>>,
}

impl ModuleVisitor for Gatherer<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let count: usize = value.dims().iter().product();
        let part = match &mut self.gradients {
            Some(gradients) => value
                .grad_remove(gradients)
                .unwrap_or_else(|| value.inner().zeros_like()),
            None => value.inner(),
        };
        self.parts.push(part.reshape([count]));
    }
}

struct Scatterer {
    weights: Tensor<1>,
    place: usize,
}

impl ModuleMapper for Scatterer {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|old| {
            let shape = old.dims();
            let count: usize = shape.iter().product();
            let part = self
                .weights
                .clone()
                .narrow(0, self.place, count)
                .reshape(shape);
            self.place += count;
            let needs_gradient = old.is_require_grad();
            if old.is_autodiff() {
                part.autodiff().set_require_grad(needs_gradient)
            } else {
                part
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use terrane::blocks::Dense;
    use terrane::init::Init;
    use terrane::weights::Weights;

    use super::*;

    /// Three steps on a fixed quadratic: d(½‖w‖²)/dw = w for the weight, 1 for the bias.
    fn three_steps(weight_decay: f64, clip_norm: f64) -> Vec<f32> {
        let device = Device::flex().autodiff();
        let mut module = Dense::constant(1, 2, 0.5, &Init::new(1, &device));
        let config = OptimiserConfig {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay,
        };
        let mut optimiser = Optimiser::new(config, clip_norm, 0.0, &module);
        for _ in 0..3 {
            let weight = module.weight.val();
            let bias = module.bias.as_ref().unwrap().val();
            let loss = weight.sub_scalar(1.0).square().sum() + bias.mul_scalar(3.0).sum();
            module = optimiser.step(0.1, module, &mut loss.backward());
        }
        let weights = Weights::of(&module);
        weights
            .arrays
            .values()
            .flat_map(|array| array.values.clone())
            .collect()
    }

    fn assert_close(ours: &[f32], expected: [f32; 4]) {
        assert!(
            ours.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6),
            "{ours:?} {expected:?}"
        );
    }

    #[test]
    fn steps_are_those_of_pytorch() {
        // torch.optim.AdamW(lr=0.1) on the same loss; bias first.
        assert_close(&three_steps(0.0, 0.0), [0.2, 0.2, 0.298_413_7, 0.298_413_7]);
        assert_close(
            &three_steps(0.1, 0.0),
            [0.188_139_5, 0.188_139_5, 0.295_436_3, 0.295_436_3],
        );
    }

    #[test]
    fn the_gradient_is_clipped_as_one_vector() {
        // Adam divides a common factor out again, up to epsilon: only its size inside the means shows.
        let clipped = three_steps(0.0, 1e-3);
        assert!(clipped.iter().all(|value| value.is_finite()));
        let device = Device::flex().autodiff();
        let module = Dense::constant(1, 2, 0.5, &Init::new(1, &device));
        let config = OptimiserConfig {
            beta1: 0.0,
            beta2: 0.0,
            epsilon: 1e6,
            weight_decay: 0.0,
        };
        let mut optimiser = Optimiser::new(config, 1.0, 0.0, &module);
        // Gradient (0, 0, 3, 4): length 5, clipped to 1; a huge epsilon makes the step proportional to it.
        let bias = module.bias.as_ref().unwrap().val();
        let loss = (bias * Tensor::<1>::from_floats([3.0, 4.0], &device)).sum();
        let module = optimiser.step(1e6, module, &mut loss.backward());
        let bias = Weights::of(&module).arrays["bias"].values.clone();
        assert!(
            (bias[0] - (0.5 - 0.6)).abs() < 1e-4 && (bias[1] - (0.5 - 0.8)).abs() < 1e-4,
            "{bias:?}"
        );
    }
}
