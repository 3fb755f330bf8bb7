//! The training loop.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde_json::json;
use terrane::methods::{Method, Model};

use crate::batches::{Batches, Tiles};
use crate::checkpoint::{self, CHECKPOINT, CONFIG, METRICS, MODEL};
use crate::config::Config;
use crate::dataset::Dataset;
use crate::evaluate::evaluate;
use crate::optimiser::Optimiser;
use crate::{Error, Result};

/// How far a training is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Steps done.
    pub step: usize,
    /// Steps in all.
    pub steps: usize,
    /// The loss of the last step.
    pub loss: f64,
    /// Tiles per second since the start.
    pub tiles_per_s: f64,
}

/// Whether a training starts anew or goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// In a folder that holds no run.
    New,
    /// From the last checkpoint of the folder.
    Resume,
}

/// Trains a method in a folder; returns the trained network.
///
/// The folder gets `config.toml` before the first step, a line of `metrics.jsonl` now and then, checkpoints, and at
/// the end `model.safetensors`. On one CPU a resumed training gives the same weights, bit for bit, as one that was
/// never stopped.
pub fn train(
    config: &Config,
    dataset: &Dataset,
    folder: &Path,
    start: Start,
    device: &Device,
    progress: &mut dyn FnMut(Progress),
) -> Result<Model> {
    let settings = &config.train;
    if dataset.side() != config.method.side() {
        return Err(Error::TileSide {
            tiles: dataset.side(),
            method: config.method.side(),
        });
    }
    let learning = device.clone().autodiff();
    let mut model = config.method.init(config.seed, &learning);
    let mut optimiser =
        Optimiser::new(settings.optimiser, settings.clip_norm, settings.ema, &model);
    if start == Start::Resume {
        let state = checkpoint::read_state(&folder.join(CHECKPOINT), device)?;
        model = crate::optimiser::scatter(model, state.weights.clone());
        optimiser = optimiser.with_state(state);
    }
    let mut log = Log::open(folder, config, start, optimiser.state().steps)?;

    let first = optimiser.state().steps;
    let tiles = Arc::new(Tiles::load(dataset, &config.data, config.seed)?);
    let mut batches = Batches::start(
        tiles,
        first..settings.steps,
        settings.batch,
        config.data,
        config.seed,
    );
    let clock = Instant::now();
    for step in first..settings.steps {
        let Some(batch) = batches.next(device) else {
            break;
        };
        let loss = loss(&model, batch, config);
        let rate = settings.schedule.rate(step, settings.steps);
        model = optimiser.step(rate, model, &mut loss.backward());

        let done = step + 1;
        let is_due =
            |every: usize| done == settings.steps || (every > 0 && done.is_multiple_of(every));
        if is_due(settings.log_every) || is_due(settings.checkpoint_every) {
            let loss: f64 = loss.into_scalar::<f32>().into();
            if !loss.is_finite() {
                return Err(Error::NotFinite {
                    step,
                    checkpoint: folder.join(CHECKPOINT),
                    last: log.checkpoint,
                });
            }
            let tiles_per_s =
                ((done - first) * settings.batch) as f64 / clock.elapsed().as_secs_f64();
            log.line(
                &json!({ "step": done, "loss": loss, "rate": rate, "tiles_per_s": tiles_per_s }),
            )?;
            progress(Progress {
                step: done,
                steps: settings.steps,
                loss,
                tiles_per_s,
            });
        }
        if settings.validate_every > 0 && is_due(settings.validate_every) {
            let split = dataset.split("val");
            if !split.is_empty() {
                let best = optimiser.best(model.clone()).valid();
                let summary = evaluate(&best, config, dataset, &split, device)?.summary()?;
                log.line(&json!({ "step": done, "val_psnr_db": summary.mean.psnr_db, "val_rmse_m": summary.mean.rmse_m }))?;
            }
        }
        if is_due(settings.checkpoint_every) {
            checkpoint::write_state(&folder.join(CHECKPOINT), optimiser.state())?;
            log.checkpoint = Some(done);
        }
    }
    let model = optimiser.best(model).valid();
    checkpoint::write_model(&folder.join(MODEL), &model, config)?;
    Ok(model)
}

/// The mean square error of a batch in normalised heights.
fn loss(model: &Model, batch: Tensor<3>, config: &Config) -> Tensor<1> {
    let precision = config.train.precision;
    let tokens = model.encode(batch.clone(), precision);
    (model.decode(tokens, precision) - batch).square().mean()
}

/// The lines of `metrics.jsonl`.
struct Log {
    file: File,
    path: PathBuf,
    /// The step of the last checkpoint.
    checkpoint: Option<usize>,
}

impl Log {
    fn open(folder: &Path, config: &Config, start: Start, step: usize) -> Result<Self> {
        let failed = |path: &Path, source| Error::Io {
            path: path.to_owned(),
            action: "be written",
            source,
        };
        let path = folder.join(METRICS);
        if start == Start::New {
            if folder.join(CONFIG).exists() {
                return Err(Error::RunExists {
                    path: folder.to_owned(),
                });
            }
            std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
            std::fs::write(folder.join(CONFIG), config.to_toml())
                .map_err(|error| failed(folder, error))?;
        } else {
            // Lines after the checkpoint belong to steps that will be taken again.
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let is_kept = |line: &&str| {
                serde_json::from_str::<serde_json::Value>(line)
                    .is_ok_and(|value| value["step"].as_u64().is_some_and(|at| at <= step as u64))
            };
            let kept: String = text
                .lines()
                .filter(is_kept)
                .map(|line| format!("{line}\n"))
                .collect();
            std::fs::write(&path, kept).map_err(|error| failed(&path, error))?;
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|error| failed(&path, error))?;
        Ok(Self {
            file,
            path,
            checkpoint: (start == Start::Resume).then_some(step),
        })
    }

    fn line(&mut self, value: &serde_json::Value) -> Result<()> {
        writeln!(self.file, "{value}").map_err(|source| Error::Io {
            path: self.path.clone(),
            action: "be written",
            source,
        })
    }
}
