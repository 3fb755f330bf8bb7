//! The trainings behind the tables: each is made once and used by all tables that need it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn::tensor::Device;
use terrane_codec::format::Method;
use terrane_networks::methods::{Model, Precision};
use terrane_train::config::{Config, ConfigError};
use terrane_train::data::Dataset;
use terrane_train::evaluate::{Evaluation, evaluate};
use terrane_train::measure::Summary;
use terrane_train::memory::{MemoryLimit, NetworkMemory};
use terrane_train::training::ScheduleConfig;
use terrane_train::training::checkpoint::{CHECKPOINT, CONFIG, METRICS, MODEL, read_model};
use terrane_train::training::{Start, train};

use crate::paper::evidence::read_evaluation;
use crate::tables::amortisation::Gap;
use crate::tables::clock::Time;
use crate::tables::ptq::Quantised;
use crate::{Error, Result};

/// The names of all methods with tokens, in the order of the paper's table.
pub fn methods() -> impl Iterator<Item = &'static str> {
    let with_tokens = Method::ALL.iter().filter(|method| method.has_tokens());
    with_tokens.map(|method| method.name())
}

/// Of a schedule this part is warm-up, as 520 of 20,800 steps are.
const WARMUP: usize = 40;

/// How large the networks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// The `-small` presets, which train on two CPU cores.
    Small,
    /// The paper's sizes.
    Paper,
}

/// How networks that are not there yet are trained, and on what all are measured.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Names of the methods that tables of methods have rows of.
    pub methods: Vec<&'static str>,
    /// Size of the networks.
    pub size: Size,
    /// Steps of every training.
    pub steps: usize,
    /// Tiles of a step.
    pub batch: usize,
    /// Precision of the large matrix products in training.
    pub precision: Precision,
    /// The split on which everything is measured.
    pub split: String,
    /// What a network may take of memory.
    pub memory: MemoryLimit,
}

/// One training: a method's preset with some values changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    /// Name of the run's folder.
    pub name: String,
    /// The method.
    pub method: &'static str,
    /// Changed values, as `key=value`.
    pub changes: Vec<String>,
}

impl Variant {
    /// A method as its preset has it.
    pub(crate) fn plain(method: &'static str) -> Self {
        Self {
            name: method.to_owned(),
            method,
            changes: Vec::new(),
        }
    }

    /// HUVR+SIREN with values changed.
    pub(crate) fn changed(name: &str, changes: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            method: "huvr-siren",
            changes: changes.iter().map(ToString::to_string).collect(),
        }
    }
}

/// A finished training with its measures.
#[derive(Debug)]
pub(crate) struct Run {
    /// Its name.
    pub name: String,
    /// Its configuration.
    pub config: Config,
    /// Measures of the split's tiles.
    pub evaluation: Evaluation,
    /// Their means.
    pub summary: Summary,
    /// Its model, where the weights are here.
    model: Option<PathBuf>,
}

impl Run {
    /// Its trained network, where the weights are here.
    pub(crate) fn model(&self, device: &Device, memory: MemoryLimit) -> Result<Option<Model>> {
        match &self.model {
            Some(path) => Ok(Some(read_model(path, device, memory)?.0)),
            None => Ok(None),
        }
    }

    /// Where its model is, if the weights are here.
    pub(crate) fn model_path(&self) -> Option<&Path> {
        self.model.as_deref()
    }

    /// Its schedule in words.
    pub(crate) fn schedule(&self) -> String {
        format!("{} × {}", self.config.train.steps, self.config.train.batch)
    }
}

/// How far the trainings are: the run, its steps done and all its steps.
pub(crate) type Report<'a> = dyn FnMut(&str, usize, usize) + 'a;

/// The trainings of a benchmark.
///
/// A run that is in its folder already is used as it is, however it was trained: its schedule stands in the tables.
/// Where only its `eval-SPLIT.json` is there (`terrane eval --json`), its measures are read from that.
pub(crate) struct Runs<'a> {
    /// The data.
    pub dataset: &'a Dataset,
    /// Where to compute.
    pub device: &'a Device,
    /// How to train and measure.
    pub settings: &'a Settings,
    folder: PathBuf,
    report: &'a mut Report<'a>,
    done: BTreeMap<String, Arc<Run>>,
    /// What several tables want and takes long.
    pub known: Known,
}

/// Measures of networks that were made already.
#[derive(Default)]
pub(crate) struct Known {
    /// Quantised tokens by method.
    pub quantised: BTreeMap<&'static str, Arc<Vec<Quantised>>>,
    /// What fitting single tiles adds.
    pub gap: Option<Arc<Gap>>,
    /// How long tiles take.
    pub times: Option<Arc<Vec<Time>>>,
}

impl<'a> Runs<'a> {
    /// Runs in a folder.
    pub(crate) fn new(
        dataset: &'a Dataset,
        device: &'a Device,
        settings: &'a Settings,
        folder: &Path,
        report: &'a mut Report<'a>,
    ) -> Self {
        Self {
            dataset,
            device,
            settings,
            folder: folder.to_owned(),
            report,
            done: BTreeMap::new(),
            known: Known::default(),
        }
    }

    /// The folder of a run.
    pub(crate) fn folder_of(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Numbers of the tiles that are measured.
    pub(crate) fn tiles(&self) -> Vec<usize> {
        self.dataset.split(&self.settings.split)
    }

    /// Says how far something other than a training is.
    pub(crate) fn report(&mut self, what: &str, done: usize, total: usize) {
        (self.report)(what, done, total);
    }

    /// A finished training; trains where it is not there.
    pub(crate) fn get(&mut self, variant: &Variant) -> Result<Arc<Run>> {
        if let Some(run) = self.done.get(&variant.name) {
            return Ok(run.clone());
        }
        let folder = self.folder_of(&variant.name);
        let (model, stored) = (
            folder.join(MODEL),
            folder.join(format!("eval-{}.json", self.settings.split)),
        );
        let run = if !model.exists() && stored.exists() {
            self.read(&variant.name, &folder, &stored)?
        } else {
            if !model.exists() {
                self.train(variant, &folder)?;
            }
            let (network, config) = read_model(&model, self.device, self.settings.memory)?;
            let tiles = self.tiles();
            let evaluation = evaluate(&network, &config, self.dataset, &tiles, self.device)?;
            Run {
                name: variant.name.clone(),
                summary: evaluation.summary()?,
                config,
                evaluation,
                model: Some(model),
            }
        };
        let run = Arc::new(run);
        self.done.insert(variant.name.clone(), run.clone());
        Ok(run)
    }

    fn train(&mut self, variant: &Variant, folder: &Path) -> Result<()> {
        let start = if folder.join(CHECKPOINT).exists() {
            Start::Resume
        } else {
            Start::New
        };
        let config = self.config(variant)?;
        self.settings
            .memory
            .require_training(&config, self.device)?;
        if start == Start::New && folder.exists() {
            remove_beginning(folder)?;
        }
        let report = &mut *self.report;
        train(
            &config,
            self.dataset,
            folder,
            start,
            std::slice::from_ref(self.device),
            None,
            &mut |progress| report(&variant.name, progress.step, progress.steps),
        )?;
        Ok(())
    }

    /// The configuration with which a variant is trained here.
    pub(crate) fn config(&self, variant: &Variant) -> Result<Config> {
        let preset = match self.settings.size {
            Size::Small => format!("{}-small", variant.method),
            Size::Paper => variant.method.to_owned(),
        };
        let mut changes = variant.changes.clone();
        changes.push(format!("method.side={}", self.dataset.side()));
        let mut config = Config::preset(&preset, &changes)?;
        let steps = self.settings.steps;
        config.name.clone_from(&variant.name);
        config.train.steps = steps;
        config.train.batch = self.settings.batch;
        config.train.precision = self.settings.precision;
        config.train.validate_every = 0;
        config.train.log_every = (steps / 50).max(1);
        config.train.checkpoint_every = steps.div_ceil(4);
        if let ScheduleConfig::Cosine { warmup_steps, .. } = &mut config.train.schedule {
            *warmup_steps = steps / WARMUP;
        }
        config.check().map_err(ConfigError::from)?;
        Ok(config)
    }

    fn read(&self, name: &str, folder: &Path, stored: &Path) -> Result<Run> {
        let failed = |path: &Path, reason: String| Error::Run {
            path: path.to_owned(),
            reason,
        };
        let evaluation = read_evaluation(stored)?;
        if evaluation.measures.len() != self.tiles().len() {
            let (found, here) = (evaluation.measures.len(), self.tiles().len());
            let reason = format!(
                "it measures {found} tiles, and the split \"{}\" has {here}",
                self.settings.split
            );
            return Err(failed(stored, reason));
        }
        let path = folder.join(CONFIG);
        let text =
            std::fs::read_to_string(&path).map_err(|error| failed(&path, error.to_string()))?;
        Ok(Run {
            name: name.to_owned(),
            config: Config::parse(&text, &[])?,
            summary: evaluation.summary()?,
            evaluation,
            model: None,
        })
    }
}

/// Removes what a training that was stopped before its first checkpoint left: nothing can go on from it. Anything else
/// is somebody's, and refused.
fn remove_beginning(folder: &Path) -> Result<()> {
    let failed = |source| Error::Io {
        path: folder.to_owned(),
        action: "be listed",
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let is_file = entry.file_type().map_err(failed)?.is_file();
        if !is_file || ![CONFIG, METRICS].iter().any(|known| name == *known) {
            return Err(terrane_train::Error::Occupied {
                path: folder.to_owned(),
                name: name.to_string_lossy().into_owned(),
            }
            .into());
        }
        files.push(entry.path());
    }
    for path in files {
        std::fs::remove_file(&path).map_err(|source| Error::Io {
            path,
            action: "be removed",
            source,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_a_training_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at(CONFIG), "a").unwrap();
        std::fs::write(at(METRICS), "b").unwrap();
        std::fs::write(at("eval-test.json"), "c").unwrap();
        let text = remove_beginning(folder.path()).unwrap_err().to_string();
        assert!(text.contains("holds \"eval-test.json\" already"), "{text}");
        assert!(at(CONFIG).exists() && at(METRICS).exists());
        std::fs::remove_file(at("eval-test.json")).unwrap();
        remove_beginning(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
