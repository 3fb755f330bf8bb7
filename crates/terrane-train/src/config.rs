//! A complete experiment: data, method and training, as TOML with every value stated.

use include_dir::{Dir, File, include_dir};
use serde::{Deserialize, Serialize};
use terrane_codec::Normalise;
use terrane_networks::blocks::{Check, SettingError};
use terrane_networks::methods::{MethodConfig, Precision};

use crate::context::ContextConfig;
use crate::training::ScheduleConfig;
use crate::training::optimiser::OptimiserConfig;

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
    /// Decay of a running mean of the weights, at step t at most (1 + t) / (10 + t), which is then what is saved; 0 for none.
    pub ema: f64,
    /// Steps between lines of the log; 0 for one at the end.
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

/// Maximum number of steps of a training.
const MAX_STEPS: usize = 1_000_000_000;

/// Refuses a number of steps that is zero or absurdly large.
pub(crate) fn is_step_count(key: &str, value: usize) -> Check {
    if (1..=MAX_STEPS).contains(&value) {
        Ok(())
    } else {
        let must = format!("be from 1 to {MAX_STEPS}");
        Err(SettingError::new(key, must, value))
    }
}

/// Refuses a count of zero.
pub(crate) fn is_positive(key: &str, value: usize) -> Check {
    if value > 0 {
        Ok(())
    } else {
        Err(SettingError::new(key, "be at least 1", value))
    }
}

/// Refuses numbers below 0, and what is no number.
pub fn are_non_negative(values: &[(&str, f64)]) -> Check {
    check_each(values, "be a number from 0 on", |value| value >= 0.0)
}

/// Refuses decays that leave nothing to the new.
pub(crate) fn are_decays(values: &[(&str, f64)]) -> Check {
    check_each(values, "be from 0 to less than 1", |value| {
        (0.0..1.0).contains(&value)
    })
}

/// Refuses fractions below 0 or above 1.
pub(crate) fn are_fractions(values: &[(&str, f64)]) -> Check {
    check_each(values, "be from 0 to 1", |value| {
        (0.0..=1.0).contains(&value)
    })
}

/// Refuses numbers that are not finite, or not as they must be.
pub fn check_each(values: &[(&str, f64)], must: &str, is_so: fn(f64) -> bool) -> Check {
    let wrong = |(_, value): &&(&str, f64)| !value.is_finite() || !is_so(*value);
    match values.iter().find(wrong) {
        Some((key, value)) => Err(SettingError::new(key, must, value)),
        None => Ok(()),
    }
}

impl TrainConfig {
    fn check(&self) -> Check {
        is_step_count("train.steps", self.steps)?;
        is_positive("train.batch", self.batch)?;
        are_non_negative(&[("train.clip_norm", self.clip_norm)])?;
        are_decays(&[("train.ema", self.ema)])?;
        self.optimiser.check()?;
        self.schedule.check()
    }
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
    #[error("`set` {setting}: write it as key=value, such as train.steps=1000")]
    Setting {
        /// The setting.
        setting: String,
    },
    /// A value that cannot be used.
    #[error(transparent)]
    Value(#[from] SettingError),
    /// A setting names a key that is not there.
    #[error("`set` {key}: there is no such key in this configuration")]
    NoKey {
        /// The key.
        key: String,
    },
}

/// The built-in presets: every file of the folder is one, by its name.
static PRESETS: Dir = include_dir!("$CARGO_MANIFEST_DIR/src/presets");

/// Names of the built-in presets.
pub fn preset_names() -> Vec<&'static str> {
    let files = PRESETS.files();
    let mut names: Vec<_> = files
        .filter_map(|file| file.path().file_stem()?.to_str())
        .collect();
    names.sort_unstable();
    names
}

/// The text of a built-in preset.
pub fn preset_text(name: &str) -> Result<&'static str, ConfigError> {
    PRESETS
        .get_file(format!("{name}.toml"))
        .and_then(File::contents_utf8)
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
    /// From TOML with settings applied, and checked; the one with `[widths]` is the context codec's.
    pub fn parse(text: &str, settings: &[String]) -> Result<Self, ConfigError> {
        let is_context = text
            .parse::<toml::Table>()
            .is_ok_and(|table| table.contains_key("widths"));
        Ok(if is_context {
            let config: ContextConfig = parse(text, settings)?;
            config.check()?;
            Self::Context(Box::new(config))
        } else {
            let config: Config = parse(text, settings)?;
            config.check()?;
            Self::Method(Box::new(config))
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
    /// A built-in preset with settings such as `train.steps=1000` applied, and checked.
    pub fn preset(name: &str, settings: &[String]) -> Result<Self, ConfigError> {
        let config = Self::parse(preset_text(name)?, settings)?;
        config.check()?;
        Ok(config)
    }

    /// Refuses values that no training can have.
    pub fn check(&self) -> Check {
        self.method.check()?;
        self.train.check()
    }

    /// A configuration from TOML with settings applied, as it stands there.
    pub fn parse(text: &str, settings: &[String]) -> Result<Self, ConfigError> {
        parse(text, settings)
    }

    /// The configuration as TOML.
    pub(crate) fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a configuration has only types that TOML knows")
    }
}

fn set(table: &mut toml::Table, key: &str, value: &str) -> Result<(), ConfigError> {
    let missing = || ConfigError::NoKey {
        key: key.to_owned(),
    };
    let mut parts = key.split('.');
    let mut slot = table
        .get_mut(parts.next().unwrap_or_default())
        .ok_or_else(missing)?;
    for part in parts {
        slot = slot
            .as_table_mut()
            .and_then(|table| table.get_mut(part))
            .ok_or_else(missing)?;
    }
    // What does not read as a number, a truth value or a quoted text is a text.
    let parsed = format!("value = {value}")
        .parse::<toml::Table>()
        .ok()
        .and_then(|mut table| table.remove("value"));
    *slot = match parsed.unwrap_or_else(|| toml::Value::String(value.to_owned())) {
        toml::Value::Integer(number) if slot.is_float() => toml::Value::Float(number as f64),
        other => other,
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::memory::{MemoryLimit, NetworkMemory};

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

    /// Keys of all values of a table, such as `train.steps`.
    fn keys(table: &toml::Table, path: &str, all: &mut Vec<String>) {
        for (name, value) in table {
            let key = format!("{path}{name}");
            match value {
                toml::Value::Table(table) => keys(table, &format!("{key}."), all),
                _ => all.push(key),
            }
        }
    }

    /// Any key of any preset with any number is accepted, or refused with a sentence that names the key; nothing is
    /// made of it, and no more memory is asked for than there is.
    #[test]
    fn every_key_takes_every_value_or_says_why_not() {
        let limit = MemoryLimit {
            bytes: 16_000_000_000,
        };
        let mut outcomes = [0, 0];
        for name in preset_names() {
            let text = preset_text(name).unwrap();
            let mut all = Vec::new();
            keys(&text.parse().unwrap(), "", &mut all);
            assert!(all.len() > 15, "{name}: {all:?}");
            for key in all {
                for value in [
                    "0",
                    "1",
                    "7",
                    "-1",
                    "0.5",
                    "100000000",
                    "1e300",
                    "nan",
                    "inf",
                    "x",
                ] {
                    let setting = format!("{key}={value}");
                    let outcome = Experiment::parse(text, std::slice::from_ref(&setting))
                        .map_err(crate::Error::from)
                        .and_then(|experiment| match &experiment {
                            Experiment::Method(config) => {
                                limit.require_training(config, &Device::flex())
                            }
                            Experiment::Context(config) => {
                                limit.require_context(config, &Device::flex())
                            }
                        });
                    let Err(error) = outcome else {
                        outcomes[0] += 1;
                        continue;
                    };
                    outcomes[1] += 1;
                    let text = error.to_string();
                    assert!(
                        text.len() > 20 && text.lines().count() == 1,
                        "{name} {setting}: {text}"
                    );
                }
            }
        }
        assert!(outcomes.iter().all(|&count| count > 300), "{outcomes:?}");
    }

    /// Presets with letters changed, left out and repeated here and there are read or refused.
    #[test]
    fn changed_texts_are_read_or_refused() {
        const LETTERS: &[u8] = b"0123456789-+.eE=[]{}\"'#,\n a";
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        let mut outcomes = [0, 0];
        for name in preset_names() {
            for _ in 0..300 {
                let mut text = preset_text(name).unwrap().as_bytes().to_vec();
                for _ in 0..=random(2) {
                    let at = random(text.len());
                    let end = text.len().min(at + 1 + random(20));
                    match random(3) {
                        0 => text[at] = LETTERS[random(LETTERS.len())],
                        1 => drop(text.drain(at..end)),
                        _ => text.extend_from_within(at..end),
                    }
                }
                if let Ok(text) = std::str::from_utf8(&text) {
                    outcomes[usize::from(Experiment::parse(text, &[]).is_err())] += 1;
                }
            }
        }
        assert!(outcomes.iter().all(|&count| count > 50), "{outcomes:?}");
    }

    #[test]
    fn values_that_cannot_be_used_are_named() {
        for (preset, setting, expected) in [
            (
                "huvr-small",
                "method.patch=7",
                "method.patch must divide method.side (256), and is 7",
            ),
            (
                "functa-small",
                "method.width=100000000",
                "method.width must be from 1 to 16384, and is 100000000",
            ),
            (
                "functa-small",
                "train.steps=0",
                "train.steps must be from 1 to 1000000000, and is 0",
            ),
            (
                "functa-small",
                "train.batch=0",
                "train.batch must be at least 1, and is 0",
            ),
            (
                "functa-small",
                "train.schedule.peak=nan",
                "train.schedule.peak must be a number from 0 on, and is NaN",
            ),
            (
                "functa-small",
                "train.schedule.peak=-1",
                "train.schedule.peak must be a number from 0 on, and is -1",
            ),
            (
                "functa-small",
                "train.ema=1",
                "train.ema must be from 0 to less than 1, and is 1",
            ),
            (
                "functa-small",
                "train.optimiser.beta2=1",
                "train.optimiser.beta2 must be from 0 to less than 1, and is 1",
            ),
            (
                "functa-small",
                "train.optimiser.epsilon=0",
                "train.optimiser.epsilon must be above 0, and is 0",
            ),
            (
                "context",
                "widths.reach=5",
                "widths.reach must be from 1 to 4, and is 5",
            ),
            (
                "context",
                "widths.trunk=6",
                "widths.trunk must be a multiple of 4 from 4 to 512, and is 6",
            ),
            (
                "context",
                "rate.finest=0",
                "rate.finest must be from 0.000001 to 1, and is 0",
            ),
            (
                "context",
                "rate.coarsest=0.0001",
                "rate.coarsest must be at least rate.finest (0.0002), and is 0.0001",
            ),
            (
                "context",
                "train.seconds=-1",
                "train.seconds must be a number from 0 on, and is -1",
            ),
            (
                "context",
                "data.splits=[]",
                "data.splits must name a split, and is []",
            ),
        ] {
            let text = preset_text(preset).unwrap();
            let error = Experiment::parse(text, &[setting.to_owned()]).unwrap_err();
            assert_eq!(error.to_string(), expected);
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
