//! A complete experiment: data, method and training, as TOML with every value stated.

use serde::{Deserialize, Serialize};
use terrane::Normalise;
use terrane::methods::{MethodConfig, Precision};

use crate::context::ContextConfig;
use crate::optimiser::OptimiserConfig;
use crate::schedule::ScheduleConfig;

/// A complete experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Its name.
    pub name: String,
    /// Where all its random numbers start.
    pub seed: u64,
    /// The tiles.
    pub data: DataConfig,
    /// The method.
    pub method: MethodConfig,
    /// The training.
    pub train: TrainConfig,
}

/// Which tiles, and how they are shown to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// Number of training tiles, the first of one random order; 0 takes all.
    pub tiles: usize,
    /// Whether tiles are flipped and turned at random.
    pub augment: bool,
    /// Whether every pass over the tiles has an order of its own.
    pub shuffle: bool,
    /// How heights become numbers near 1.
    pub normalise: Normalise,
}

/// How the network is trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Number of steps.
    pub steps: usize,
    /// Tiles per step.
    pub batch: usize,
    /// Precision of the large matrix products.
    pub precision: Precision,
    /// Largest length of the gradient, as one vector; 0 leaves it as it is.
    pub clip_norm: f64,
    /// Whether a DINOv3 teacher is followed as well; its weights are given when the training starts.
    pub distil: bool,
    /// Share of the old in a running mean of the weights, which is then what is saved; 0 for none.
    pub ema: f64,
    /// Steps between lines of the log.
    pub log_every: usize,
    /// Steps between measurements on the val split; 0 for none.
    pub validate_every: usize,
    /// Steps between checkpoints; 0 for one at the end.
    pub checkpoint_every: usize,
    /// The optimiser.
    pub optimiser: OptimiserConfig,
    /// The learning rate.
    pub schedule: ScheduleConfig,
}

/// What can be wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no such preset.
    #[error("there is no preset \"{name}\"; there are {}", known.join(", "))]
    NoPreset {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// The text is not a configuration.
    #[error("not a configuration: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// A setting is not of the form key=value.
    #[error("--set {setting}: write it as key=value, such as train.steps=1000")]
    Setting {
        /// The setting.
        setting: String,
    },
    /// A setting names a key that is not there.
    #[error("--set {key}: there is no such key in this configuration")]
    NoKey {
        /// The key.
        key: String,
    },
}

macro_rules! presets {
    ($($name:literal),+ $(,)?) => {
        const PRESETS: &[(&str, &str)] = &[$(($name, include_str!(concat!("presets/", $name, ".toml")))),+];
    };
}

presets! {
    "context", "context-fast", "context-best", "transinr", "transinr-small", "functa", "functa-small", "huvr", "huvr-small", "huvr-siren", "huvr-siren-small",
}

/// Names of the built-in presets.
pub fn preset_names() -> Vec<&'static str> {
    PRESETS.iter().map(|(name, _)| *name).collect()
}

/// The text of a built-in preset.
pub fn preset_text(name: &str) -> Result<&'static str, ConfigError> {
    PRESETS
        .iter()
        .find(|(preset, _)| *preset == name)
        .map(|(_, text)| *text)
        .ok_or_else(|| ConfigError::NoPreset {
            name: name.to_owned(),
            known: preset_names(),
        })
}

/// Anything that can be trained.
#[derive(Debug, Clone, PartialEq)]
pub enum Experiment {
    /// A method.
    Method(Box<Config>),
    /// The model of the context codec.
    Context(Box<ContextConfig>),
}

impl Experiment {
    /// From TOML with settings applied; the one with `[widths]` is the context codec's.
    pub fn parse(text: &str, settings: &[String]) -> Result<Self, ConfigError> {
        let is_context = text
            .parse::<toml::Table>()
            .is_ok_and(|table| table.contains_key("widths"));
        Ok(if is_context {
            Self::Context(Box::new(parse(text, settings)?))
        } else {
            Self::Method(Box::new(parse(text, settings)?))
        })
    }
}

/// A configuration from TOML with settings applied; a setting replaces a value that is there.
fn parse<T: serde::de::DeserializeOwned>(
    text: &str,
    settings: &[String],
) -> Result<T, ConfigError> {
    let malformed = |error: toml::de::Error| ConfigError::Malformed {
        reason: error.message().to_owned(),
    };
    let mut table: toml::Table = text.parse().map_err(malformed)?;
    for setting in settings {
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| ConfigError::Setting {
                setting: setting.clone(),
            })?;
        set(&mut table, key.trim(), value.trim())?;
    }
    toml::Value::Table(table).try_into().map_err(malformed)
}

impl Config {
    /// A built-in preset with settings such as `train.steps=1000` applied.
    pub fn preset(name: &str, settings: &[String]) -> Result<Self, ConfigError> {
        Self::parse(preset_text(name)?, settings)
    }

    /// A configuration from TOML with settings applied.
    pub fn parse(text: &str, settings: &[String]) -> Result<Self, ConfigError> {
        parse(text, settings)
    }

    /// The configuration as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a configuration has only types that TOML knows")
    }
}

fn set(table: &mut toml::Table, key: &str, value: &str) -> Result<(), ConfigError> {
    let missing = || ConfigError::NoKey {
        key: key.to_owned(),
    };
    let mut parts = key.split('.');
    let mut place = table
        .get_mut(parts.next().unwrap_or_default())
        .ok_or_else(missing)?;
    for part in parts {
        place = place
            .as_table_mut()
            .and_then(|table| table.get_mut(part))
            .ok_or_else(missing)?;
    }
    // What does not read as a number, a truth value or a quoted text is a text.
    let parsed = format!("value = {value}")
        .parse::<toml::Table>()
        .ok()
        .and_then(|mut table| table.remove("value"));
    *place = match parsed.unwrap_or_else(|| toml::Value::String(value.to_owned())) {
        toml::Value::Integer(number) if place.is_float() => toml::Value::Float(number as f64),
        other => other,
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_complete_and_survives_writing() {
        for name in preset_names() {
            let text = preset_text(name).unwrap();
            let experiment =
                Experiment::parse(text, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
            let (found, written) = match &experiment {
                Experiment::Method(config) => (&config.name, config.to_toml()),
                Experiment::Context(config) => (&config.name, config.to_toml()),
            };
            assert_eq!(found, name);
            assert_eq!(Experiment::parse(&written, &[]).unwrap(), experiment);
        }
    }

    #[test]
    fn settings_replace_what_is_there_and_nothing_else() {
        let set = |setting: &str| Config::preset("huvr-siren", &[setting.to_owned()]);
        assert_eq!(set("train.steps=7").unwrap().train.steps, 7);
        assert_eq!(set("train.clip_norm=2").unwrap().train.clip_norm, 2.0);
        assert_eq!(set("name=other").unwrap().name, "other");
        assert!(
            set("method.modulation=shift")
                .unwrap()
                .to_toml()
                .contains("modulation = \"shift\"")
        );
        assert_eq!(
            set("train.stepps=7").unwrap_err(),
            ConfigError::NoKey {
                key: "train.stepps".into()
            }
        );
        assert!(
            set("train.steps=many")
                .unwrap_err()
                .to_string()
                .contains("invalid type")
        );
        assert!(
            set("method.kind=functa")
                .unwrap_err()
                .to_string()
                .contains("unknown field")
        );
        assert!(matches!(
            set("train.steps"),
            Err(ConfigError::Setting { .. })
        ));
        assert!(
            Config::preset("huvr-sirren", &[])
                .unwrap_err()
                .to_string()
                .contains("huvr-siren-small")
        );
    }
}
