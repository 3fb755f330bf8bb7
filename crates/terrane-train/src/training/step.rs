//! A training step by itself, for measurements.

use burn::tensor::{Device, Distribution, Tensor};
use terrane_networks::methods::{Method, Precision};

use crate::Result;
use crate::config::Config;
use crate::evaluate::numbers_of;
use crate::training::differentiation::{self, Differentiation, scatter_fixed};
use crate::training::learner::Learner;
use crate::training::optimiser::Optimiser;
use crate::training::team::Team;

/// What a training does in every step, on tiles of noise.
#[derive(Debug)]
pub struct Step<'a> {
    config: &'a Config,
    differentiation: Differentiation,
    learner: Learner,
    optimiser: Optimiser,
    team: Team<'a>,
    tiles: Tensor<3>,
}

impl<'a> Step<'a> {
    /// A training of a configuration at its start, with the configuration's tiles a step.
    pub fn new(config: &'a Config, device: &Device) -> Result<Self> {
        let settings = &config.train;
        let differentiation = Differentiation::on(device);
        let learner = Learner::new(config, None, &differentiation.device(device))?;
        let weights = differentiation::weights(&learner);
        let optimiser = Optimiser::new(
            settings.optimiser,
            settings.clip_norm,
            settings.ema,
            weights.clone(),
        );
        let learner = differentiation.scatter(learner, weights);
        let devices = [device.clone()];
        let team = Team::new(&learner, &devices, settings.batch, None)?;
        let side = config.method.side();
        let tiles = Tensor::random([settings.batch, side, side], Distribution::Default, device);
        Ok(Self {
            config,
            differentiation,
            learner,
            optimiser,
            team,
            tiles,
        })
    }

    /// Adds noise to all weights: layers that start at 0 would hide most of a network.
    #[must_use]
    pub fn disturbed(mut self, deviation: f64) -> Self {
        let weights = differentiation::weights(&self.learner);
        let noise = weights.random_like(Distribution::Normal(0.0, deviation));
        self.learner = self.differentiation.scatter(self.learner, weights + noise);
        self
    }

    /// Loss and gradient of the step.
    pub fn gradient(&self) -> Result<(f64, Vec<f32>)> {
        let precision = self.config.train.precision;
        // Weights that no gradient was added to.
        let weights = differentiation::weights(&self.learner);
        let learner = self.differentiation.scatter(self.learner.clone(), weights);
        let (loss, gradient) = self.team.gradient(&learner, self.tiles.clone(), precision);
        Ok((f64::from(numbers_of(loss)?[0]), numbers_of(gradient)?))
    }

    /// Takes so many steps and waits for the last.
    pub fn run(mut self, steps: usize) -> Result<Self> {
        let precision = self.config.train.precision;
        let mut last = None;
        for _ in 0..steps {
            let (loss, gradient) = self
                .team
                .gradient(&self.learner, self.tiles.clone(), precision);
            let weights = self.optimiser.step(1e-5, gradient);
            self.learner = self.differentiation.scatter(self.learner, weights);
            last = Some(loss);
        }
        if let Some(loss) = last {
            numbers_of(loss)?;
        }
        Ok(self)
    }

    /// Encodes and decodes the first tiles, so many at once and so often, and waits for the last.
    pub fn forward(&self, tiles: usize, passes: usize) -> Result<()> {
        let precision: Precision = self.config.train.precision;
        let weights = self.optimiser.state().weights.clone();
        let model = scatter_fixed(self.learner.clone(), weights).model;
        let tiles = self.tiles.clone().narrow(0, 0, tiles);
        let mut last = None;
        for _ in 0..passes {
            let tokens = model.encode(tiles.clone(), precision);
            last = Some(model.decode(tokens, precision).sum());
        }
        if let Some(sum) = last {
            numbers_of(sum)?;
        }
        Ok(())
    }
}
