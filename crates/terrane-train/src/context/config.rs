//! A complete training of the context codec, as TOML with every value stated.

use serde::{Deserialize, Serialize};
use terrane_context::{GROUP, MAX_BLOCKS, MAX_REACH, MAX_WIDTH, Widths};
use terrane_networks::blocks::{Check, SettingError};

use crate::config::{
    are_decays, are_fractions, are_non_negative, check_each, is_positive, is_step_count,
};
use crate::context::canvas::POSITIONS;
use crate::context::samples::BYTES;
use crate::training::ScheduleConfig;
use crate::training::optimiser::OptimiserConfig;

/// Steps finer than this part of a tile's range count more symbols than the codec has.
const FINEST: f64 = 1e-6;
/// Numbers that are kept of a layer's output until it is differentiated: rounded, cut, and what they were before.
const RECORDED: u64 = 4;

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
    /// Refuses values that no training can have.
    pub(crate) fn check(&self) -> Check {
        let widths = self.widths;
        for (key, value, min, max) in [
            ("widths.trunk", widths.trunk, GROUP, MAX_WIDTH),
            ("widths.band", widths.band, 0, MAX_WIDTH),
            ("widths.hidden", widths.hidden, GROUP, MAX_WIDTH),
            ("widths.last", widths.last, 0, MAX_WIDTH),
            ("widths.dequantiser", widths.dequantiser, 0, MAX_WIDTH),
        ] {
            if !(min..=max).contains(&value) || !value.is_multiple_of(GROUP) {
                let must = format!("be a multiple of {GROUP} from {min} to {max}");
                return Err(SettingError::new(key, must, value));
            }
        }
        // Blocks of a band need its layers.
        let band_blocks = if widths.band == 0 { 0 } else { MAX_BLOCKS };
        let dequantiser_blocks = if widths.dequantiser == 0 {
            0
        } else {
            band_blocks
        };
        for (key, value, min, max) in [
            ("widths.look", widths.look, 0, 1),
            ("widths.reach", widths.reach, 1, MAX_REACH),
            ("widths.blocks", widths.blocks, 0, MAX_BLOCKS),
            ("widths.band_blocks", widths.band_blocks, 0, band_blocks),
            (
                "widths.dequantiser_blocks",
                widths.dequantiser_blocks,
                0,
                dequantiser_blocks,
            ),
        ] {
            if !(min..=max).contains(&value) {
                let must = format!("be from {min} to {max}");
                return Err(SettingError::new(key, must, value));
            }
        }
        if self.data.splits.is_empty() {
            return Err(SettingError::new("data.splits", "name a split", "[]"));
        }
        are_non_negative(&[("data.max_resolution", self.data.max_resolution)])?;
        self.rate.check()?;
        self.train.check()
    }

    /// Bytes that a training with so many windows a step takes, as estimated beforehand; `None` where the count overflows.
    pub(crate) fn training_bytes(&self, windows: usize) -> Option<u64> {
        let layers = self.widths.layers();
        let weights: u64 = layers
            .iter()
            .map(|layer| ((layer.inputs + 1) * layer.outputs) as u64)
            .sum();
        // Outputs at every position, but those of a head at a quarter of them, which also copies its inputs.
        let channels: u64 = layers
            .iter()
            .map(|layer| {
                if layer.name.starts_with("head") {
                    (layer.inputs + layer.outputs).div_ceil(4) as u64
                } else {
                    layer.outputs as u64
                }
            })
            .sum();
        (windows as u64)
            .checked_mul(POSITIONS as u64)?
            .checked_mul(RECORDED * (channels + BYTES as u64))?
            .checked_mul(4)?
            .checked_add(16 * weights)
    }

    /// The configuration as TOML.
    pub(crate) fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a configuration has only types that TOML knows")
    }
}

/// Which tiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// Splits of the dataset.
    pub splits: Vec<String>,
    /// Tiles with larger pixels are left out, in metres; 0 takes all.
    pub max_resolution: f64,
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
    /// Fraction of tiles that are coded without loss.
    pub lossless: f64,
    /// Fraction of the other tiles whose symbols are chosen by rate and error, as encoders choose them, by the program's own
    /// quick model.
    pub chosen: f64,
}

impl RateConfig {
    fn check(&self) -> Check {
        let steps = [
            ("rate.finest", self.finest),
            ("rate.coarsest", self.coarsest),
        ];
        check_each(&steps, &format!("be from {FINEST} to 1"), |step| {
            (FINEST..=1.0).contains(&step)
        })?;
        if self.coarsest < self.finest {
            let must = format!("be at least rate.finest ({})", self.finest);
            return Err(SettingError::new("rate.coarsest", must, self.coarsest));
        }
        check_each(
            &[("rate.dead_zone", self.dead_zone)],
            "be from 0 to 0.5",
            |zone| (0.0..=0.5).contains(&zone),
        )?;
        are_fractions(&[
            ("rate.lossless", self.lossless),
            ("rate.chosen", self.chosen),
        ])
    }
}

/// How it is trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Number of steps, at most.
    pub steps: usize,
    /// Seconds after which it ends, with the learning rate following the time; 0 for none.
    pub seconds: f64,
    /// Tiles per step.
    pub batch: usize,
    /// Largest length of the gradient; 0 leaves it as it is.
    pub clip_norm: f64,
    /// Decay of a running mean of the weights, at step t at most (1 + t) / (10 + t), which is then what is saved; 0 for none.
    pub ema: f64,
    /// Steps between lines of the log; 0 for one at the end.
    pub log_every: usize,
    /// Steps between measurements on the val split; 0 for none.
    pub validate_every: usize,
    /// Steps between checkpoints; 0 for one at the end.
    pub checkpoint_every: usize,
    /// Tiles that are counted for the tables at the end; with 0 they keep the shape that is learned.
    pub count_tiles: usize,
    /// The optimiser.
    pub optimiser: OptimiserConfig,
    /// The learning rate.
    pub schedule: ScheduleConfig,
}

impl TrainConfig {
    /// The learning rate of a step at a time.
    pub(crate) fn rate(&self, step: usize, elapsed_s: f64) -> f64 {
        if self.seconds > 0.0 {
            self.schedule.rate_at(step, elapsed_s / self.seconds)
        } else {
            self.schedule.rate(step, self.steps)
        }
    }

    fn check(&self) -> Check {
        is_step_count("train.steps", self.steps)?;
        is_positive("train.batch", self.batch)?;
        are_non_negative(&[
            ("train.seconds", self.seconds),
            ("train.clip_norm", self.clip_norm),
        ])?;
        are_decays(&[("train.ema", self.ema)])?;
        self.optimiser.check()?;
        self.schedule.check()
    }
}
