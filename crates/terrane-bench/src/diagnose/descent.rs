//! Adam on the weights of a module that stands for one or several tiles, each with an error of its own.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};
use terrane_networks::blocks::Check;
use terrane_networks::methods::Precision;
use terrane_train::config::are_non_negative;
use terrane_train::evaluate::numbers_of;
use terrane_train::training::ScheduleConfig;
use terrane_train::training::differentiation::{
    Choice, Differentiation, count, scatter_fixed_into, weights, weights_of,
};
use terrane_train::training::optimiser::{Optimiser, OptimiserConfig};

use crate::Result;

/// Adam as PyTorch starts it.
const ADAM: OptimiserConfig = OptimiserConfig {
    beta1: 0.9,
    beta2: 0.999,
    epsilon: 1e-8,
    weight_decay: 0.0,
};

/// How long, how fast, and how often it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Descent {
    /// Steps.
    pub steps: usize,
    /// The learning rate.
    pub schedule: ScheduleConfig,
    /// Steps between points of the curve; 0 for its two ends alone.
    pub log_every: usize,
}

/// Called at a step with the lowest errors of the tiles so far and the module as it is, not to be differentiated.
pub(crate) type Callback<'a, M> = &'a mut dyn FnMut(usize, &[f32], &M) -> Result<()>;

/// What a descent found.
pub(crate) struct FitResult<M> {
    /// The module with the best weights of every tile, not to be differentiated.
    pub(crate) module: M,
    /// Numbers that were optimised, of all tiles.
    pub(crate) numbers: usize,
    /// The lowest errors of the tiles so far, at the recorded steps.
    pub(crate) curve: Vec<(usize, Vec<f32>)>,
}

impl Descent {
    /// One rate for all steps.
    pub fn constant(steps: usize, rate: f64, log_every: usize) -> Self {
        let schedule = ScheduleConfig::Cosine {
            peak: rate,
            floor: rate,
            warmup_steps: 0,
        };
        Self {
            steps,
            schedule,
            log_every,
        }
    }

    /// Refuses rates that no descent can have.
    pub fn check(&self) -> Check {
        match self.schedule {
            ScheduleConfig::Cosine { peak, .. } => are_non_negative(&[("`rate`", peak)]),
            ScheduleConfig::Drop { .. } => self.schedule.check(),
        }
    }

    fn is_due(&self, step: usize) -> bool {
        step == 0
            || step == self.steps
            || (self.log_every > 0 && step.is_multiple_of(self.log_every))
    }

    /// Lowers the sum of the tiles' errors over all weights that it depends on, and keeps the best of every tile.
    ///
    /// The weights of several tiles must be one after another, an equal number of each. Adam treats every weight by
    /// itself, and the error of a tile depends on its own weights alone: so tiles do not influence each other.
    pub(crate) fn run<M: Module>(
        &self,
        start: M,
        device: &Device,
        errors: &dyn Fn(&M) -> Tensor<1>,
        callback: Callback<'_, M>,
    ) -> Result<FitResult<M>> {
        let _scope = Precision::Full.scope();
        let differentiation = Differentiation::on(device);
        let choice = reached(differentiation, &start, errors);
        let numbers = count(&start, &choice);
        // A copy: the optimiser writes over it.
        let first = weights_of(&start, &choice).mul_scalar(1.0);
        let mut best: Option<(Tensor<1>, Tensor<2>)> = None;
        let mut optimiser = Optimiser::new(ADAM, 0.0, 0.0, first);
        let constant = differentiation.constant(start.clone());
        let mut curve = Vec::new();
        for step in 0..=self.steps {
            let weights = optimiser.state().weights.clone();
            let module = differentiation.scatter_into(constant.clone(), weights.clone(), &choice);
            let recording = differentiation.record();
            let now = errors(&module);
            let gradient = (step < self.steps)
                .then(|| differentiation.gradient_of(&now.clone().sum(), &module, &choice));
            drop(recording);
            let now = differentiation.numbers(now);
            // Of several tiles without the places after their last weight, so that all have as many.
            let own = match now.dims() {
                [1] => weights.clone(),
                _ => weights.clone().narrow(0, 0, numbers),
            };
            let (least, kept) = lesser(best, now, own);
            if self.is_due(step) {
                let values = numbers_of(least.clone())?;
                let module = scatter_fixed_into(start.clone(), weights, &choice);
                callback(step, &values, &module)?;
                curve.push((step, values));
            }
            best = Some((least, kept));
            if let Some(gradient) = gradient {
                optimiser.step(self.schedule.rate(step, self.steps), gradient);
            }
        }
        let module = match best {
            Some((_, kept)) => {
                let weights = kept.shape().num_elements();
                scatter_fixed_into(start, kept.reshape([weights]), &choice)
            }
            None => start,
        };
        Ok(FitResult {
            module,
            numbers,
            curve,
        })
    }
}

/// The weights that the errors depend on.
fn reached<M: Module>(
    differentiation: Differentiation,
    start: &M,
    errors: &dyn Fn(&M) -> Tensor<1>,
) -> Choice {
    let module = differentiation.scatter(start.clone(), weights(start));
    let recording = differentiation.record();
    let choice = differentiation.reached(&errors(&module).sum(), &module);
    drop(recording);
    choice
}

/// The lowest errors so far and the weights that gave them; an error that is not a number is no less than any.
fn lesser(
    best: Option<(Tensor<1>, Tensor<2>)>,
    errors: Tensor<1>,
    weights: Tensor<1>,
) -> (Tensor<1>, Tensor<2>) {
    let [tiles] = errors.dims();
    let [count] = weights.dims();
    let weights = weights.reshape([tiles, count / tiles]);
    match best {
        None => (errors, weights.mul_scalar(1.0)),
        Some((least, kept)) => {
            let is_less = errors.clone().lower(least.clone());
            let wide = is_less
                .clone()
                .reshape([tiles, 1])
                .expand([tiles, count / tiles]);
            (
                least.mask_where(is_less, errors),
                kept.mask_where(wide, weights),
            )
        }
    }
}
