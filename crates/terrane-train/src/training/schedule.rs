//! The learning rate over the steps of a training.

use serde::{Deserialize, Serialize};
use terrane_networks::blocks::Check;

use crate::config::{are_fractions, are_non_negative};

/// How the learning rate goes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ScheduleConfig {
    /// Up in a line from 0, then down along half a cosine.
    Cosine {
        /// The highest rate.
        peak: f64,
        /// The rate after the last step.
        floor: f64,
        /// Steps until the highest rate.
        warmup_steps: usize,
    },
    /// One rate, and a lower one after a part of the steps.
    Drop {
        /// The first rate.
        rate: f64,
        /// What the first rate is multiplied by for the second.
        factor: f64,
        /// The part of the steps before the second.
        after: f64,
    },
}

impl ScheduleConfig {
    /// Refuses rates that no training can have; keys are those of a training's configuration.
    pub fn check(&self) -> Check {
        match *self {
            Self::Cosine { peak, floor, .. } => are_non_negative(&[
                ("train.schedule.peak", peak),
                ("train.schedule.floor", floor),
            ]),
            Self::Drop {
                rate,
                factor,
                after,
            } => {
                are_non_negative(&[
                    ("train.schedule.rate", rate),
                    ("train.schedule.factor", factor),
                ])?;
                are_fractions(&[("train.schedule.after", after)])
            }
        }
    }

    /// The rate of a step, counted from 0, of so many.
    pub fn rate(&self, step: usize, steps: usize) -> f64 {
        match *self {
            Self::Cosine { warmup_steps, .. } => {
                let after = step.saturating_sub(warmup_steps) as f64;
                self.rate_at(
                    step,
                    after / (steps - warmup_steps.min(steps)).max(1) as f64,
                )
            }
            Self::Drop { .. } => self.rate_at(step, step as f64 / steps as f64),
        }
    }

    /// The rate of a step at which a part of the training is over, from 0 to 1.
    pub(crate) fn rate_at(&self, step: usize, part: f64) -> f64 {
        match *self {
            Self::Cosine {
                peak, warmup_steps, ..
            } if step < warmup_steps => peak * step as f64 / warmup_steps as f64,
            Self::Cosine { peak, floor, .. } => {
                let part = part.min(1.0);
                floor + (peak - floor) * 0.5 * (1.0 + (std::f64::consts::PI * part).cos())
            }
            Self::Drop {
                rate,
                factor,
                after,
            } => {
                if part >= after {
                    rate * factor
                } else {
                    rate
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_schedule_has_the_rates_of_the_specification() {
        let schedule = ScheduleConfig::Cosine {
            peak: 6.25e-5,
            floor: 1e-7,
            warmup_steps: 520,
        };
        assert_eq!(schedule.rate(0, 20_800), 0.0);
        assert!((schedule.rate(260, 20_800) - 3.125e-5).abs() < 1e-18);
        assert!((schedule.rate(520, 20_800) - 6.25e-5).abs() < 1e-18);
        assert!((schedule.rate(20_800, 20_800) - 1e-7).abs() < 1e-18);
    }

    #[test]
    fn the_drop_comes_after_its_part() {
        let schedule = ScheduleConfig::Drop {
            rate: 1e-4,
            factor: 0.1,
            after: 0.8,
        };
        assert_eq!(schedule.rate(799, 1000), 1e-4);
        assert!((schedule.rate(800, 1000) - 1e-5).abs() < 1e-18);
    }
}
