//! A complete training of the context codec, as TOML with every value stated.

use serde::{Deserialize, Serialize};
use terrane_context::Widths;

use crate::optimiser::OptimiserConfig;
use crate::schedule::ScheduleConfig;

/// A complete training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextConfig {
    /// Its name.
    pub name: String,
    /// Where all its random numbers start.
    pub seed: u64,
    /// The tiles.
    pub data: DataConfig,
    /// The rates it learns.
    pub rate: RateConfig,
    /// The network.
    pub widths: Widths,
    /// The training.
    pub train: TrainConfig,
}

impl ContextConfig {
    /// The configuration as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a configuration has only types that TOML knows")
    }
}

/// Which tiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// Splits of the dataset.
    pub splits: Vec<String>,
    /// Whether tiles are flipped and turned at random.
    pub augment: bool,
}

/// Which rates: one model serves them all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateConfig {
    /// The finest step, as a part of a tile's range.
    pub finest: f64,
    /// The coarsest step.
    pub coarsest: f64,
    /// Coefficients are rounded towards 0 by up to this part of a step.
    pub dead_zone: f64,
    /// Share of tiles that are coded without loss.
    pub lossless: f64,
}

/// How it is trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Number of steps.
    pub steps: usize,
    /// Tiles per step.
    pub batch: usize,
    /// Coefficients of each tile per head.
    pub samples: usize,
    /// Largest length of the gradient; 0 leaves it as it is.
    pub clip_norm: f64,
    /// Share of the old in a running mean of the weights, which is then what is saved; 0 for none.
    pub ema: f64,
    /// Steps between lines of the log.
    pub log_every: usize,
    /// Steps between measurements on the val split; 0 for none.
    pub validate_every: usize,
    /// Steps between checkpoints; 0 for one at the end.
    pub checkpoint_every: usize,
    /// Tiles that are counted for the tables at the end.
    pub count_tiles: usize,
    /// The optimiser.
    pub optimiser: OptimiserConfig,
    /// The learning rate.
    pub schedule: ScheduleConfig,
}
