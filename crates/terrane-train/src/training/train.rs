//! The training loop.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use burn::tensor::{Device, Tensor};
use serde_json::json;
use terrane_geo::Existing;
use terrane_networks::dinov3::Teacher;
use terrane_networks::methods::Model;

use crate::config::{Config, ConfigError};
use crate::data::{Dataset, Tiles, batches};
use crate::evaluate::evaluate;
use crate::tables;
use crate::training::Log;
use crate::training::checkpoint::{self, CHECKPOINT, MODEL};
use crate::training::differentiation::{self, Differentiation, scatter_fixed};
use crate::training::learner::Learner;
use crate::training::optimiser::Optimiser;
use crate::training::team::Team;
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

impl Start {
    /// An optimiser as the run left it, where it goes on.
    pub(crate) fn optimiser(
        self,
        new: Optimiser,
        folder: &Path,
        device: &Device,
    ) -> Result<Optimiser> {
        Ok(match self {
            Self::New => new,
            Self::Resume => {
                let path = folder.join(CHECKPOINT);
                let state = checkpoint::read_state(&path, device)?;
                let count = |weights: &Tensor<1>| weights.shape().num_elements();
                let expected = count(&new.state().weights);
                let vectors = [&state.weights, &state.mean, &state.square];
                let average = state.average.iter();
                if let Some(other) = vectors
                    .into_iter()
                    .chain(average)
                    .find(|vector| count(vector) != expected)
                {
                    let found = count(other);
                    return Err(Error::OtherNetwork {
                        path,
                        expected,
                        found,
                    });
                }
                new.with_state(state)
            }
        })
    }
}

/// Trains a method in a folder; returns the trained network.
///
/// The folder gets `config.toml` before the first step, a line of `metrics.jsonl` now and then, checkpoints, and at
/// the end `model.safetensors`. Several devices share the tiles of every step; the first one keeps the weights. On one CPU a resumed training gives the same weights, bit for bit, as one that was
/// never stopped.
pub fn train(
    config: &Config,
    dataset: &Dataset,
    folder: &Path,
    start: Start,
    devices: &[Device],
    teacher: Option<&Teacher>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Model> {
    let settings = &config.train;
    let device = devices.first().ok_or(Error::NoDevice)?;
    config.check().map_err(ConfigError::from)?;
    Log::check(folder, start, dataset)?;
    if dataset.side() != config.method.side() {
        return Err(Error::TileSide {
            tiles: dataset.side(),
            method: config.method.side(),
        });
    }
    let differentiation = Differentiation::on(device);
    let mut learner = Learner::new(config, teacher, &differentiation.device(device))?;
    let weights = differentiation::weights(&learner);
    let optimiser = Optimiser::new(
        settings.optimiser,
        settings.clip_norm,
        settings.ema,
        weights,
    );
    let mut optimiser = start.optimiser(optimiser, folder, device)?;
    learner = differentiation.scatter(learner, optimiser.state().weights.clone());
    let mut team = Team::new(&learner, devices, settings.batch, teacher)?;
    let mut log = Log::open(folder, &config.to_toml(), start, optimiser.state().steps)?;

    let first = optimiser.state().steps;
    let tiles = Arc::new(Tiles::load(dataset, &config.data, config.seed)?);
    let mut batches = batches::start(
        tiles,
        first..settings.steps,
        settings.batch,
        config.data,
        config.seed,
        device,
    );
    let clock = Instant::now();
    for step in first..settings.steps {
        let (loss, gradient) = team.gradient(&learner, batches.next(), settings.precision);
        let rate = settings.schedule.rate(step, settings.steps);
        let weights = optimiser.step(rate, gradient);
        team.broadcast(&weights);
        learner = differentiation.scatter(learner, weights);

        let done = step + 1;
        let is_due =
            |every: usize| done == settings.steps || (every > 0 && done.is_multiple_of(every));
        if is_due(settings.log_every) || is_due(settings.checkpoint_every) {
            let loss: f64 = loss.into_scalar::<f32>().into();
            if !loss.is_finite() || !optimiser.is_finite() {
                return Err(Error::NotFinite {
                    step,
                    checkpoint: folder.join(CHECKPOINT),
                    last: log.checkpoint,
                });
            }
            let tiles_per_s =
                ((done - first) * settings.batch) as f64 / clock.elapsed().as_secs_f64();
            let elapsed_s = clock.elapsed().as_secs_f64();
            log.line(&json!({
                "step": done, "loss": loss, "rate": rate, "tiles_per_s": tiles_per_s, "elapsed_s": elapsed_s
            }))?;
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
                let best = scatter_fixed(learner.clone(), optimiser.best()).model;
                let summary = evaluate(&best, config, dataset, &split, device)?.summary()?;
                log.line(&json!({ "step": done, "val_psnr_db": summary.mean.psnr_db, "val_rmse_m": summary.mean.rmse_m }))?;
            }
        }
        if is_due(settings.checkpoint_every) {
            checkpoint::write_state(&folder.join(CHECKPOINT), optimiser.state())?;
            log.checkpoint = Some(done);
        }
    }
    let model = scatter_fixed(learner, optimiser.best()).model;
    let tables = tables::learn(&model, config, dataset, device)?;
    checkpoint::write_model(
        &folder.join(MODEL),
        &model,
        config,
        Some(&tables),
        Existing::Replace,
    )?;
    Ok(model)
}

#[cfg(test)]
mod tests {
    /// As the program has it.
    #[global_allocator]
    static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use burn::module::Module;
    use burn::tensor::Distribution;
    use terrane_geo::synthetic::{Recipe, generate};
    use terrane_networks::dinov3::TeacherConfig;
    use terrane_networks::init::Init;
    use terrane_networks::methods::{Method, Precision};
    use terrane_networks::weights::Weights;

    use super::*;
    use crate::data::DatasetWriter;
    use crate::fixture::{config, dataset, source};
    use crate::memory::MemoryLimit;
    use crate::training::checkpoint::METRICS;

    #[expect(clippy::panic_in_result_fn, reason = "a power cut does not return")]
    fn run(
        config: &Config,
        dataset: &Dataset,
        folder: &Path,
        start: Start,
        stop_at: usize,
    ) -> Result<Model> {
        train(
            config,
            dataset,
            folder,
            start,
            &[Device::flex()],
            None,
            &mut |progress| {
                assert!(progress.step < stop_at, "stopped as if by a power cut");
            },
        )
    }

    #[test]
    fn a_resumed_training_is_the_one_that_was_never_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let config = config(&[]);
        let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
        let expected = run(&config, &dataset, &whole, Start::New, usize::MAX).unwrap();
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            run(&config, &dataset, &cut, Start::New, 5)
        }));
        assert!(stopped.is_err() && !cut.join(MODEL).exists());
        let resumed = run(&config, &dataset, &cut, Start::Resume, usize::MAX).unwrap();
        assert_eq!(Weights::of(&expected), Weights::of(&resumed));

        let lines = |folder: &Path| -> Vec<(u64, bool)> {
            std::fs::read_to_string(folder.join(METRICS))
                .unwrap()
                .lines()
                .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
                .map(|value| {
                    (
                        value["step"].as_u64().unwrap(),
                        value["val_psnr_db"].is_number(),
                    )
                })
                .collect()
        };
        assert_eq!(lines(&whole), lines(&cut));
        assert_eq!(lines(&whole).len(), 6 + 2);
        let (model, read) =
            checkpoint::read_model(&cut.join(MODEL), &Device::flex(), MemoryLimit::of_machine())
                .unwrap();
        assert_eq!((Weights::of(&model), read), (Weights::of(&resumed), config));
    }

    #[test]
    fn a_training_without_batches_panics_and_leaves_no_model() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        // No list has so many tiles: the thread that prepares batches panics.
        let vast = config(&[&format!("train.batch={}", 1_u64 << 60)]);
        let path = folder.path().join("run");
        let ended = catch_unwind(AssertUnwindSafe(|| {
            run(&vast, &dataset, &path, Start::New, usize::MAX)
        }));
        assert!(ended.is_err() && !path.join(MODEL).exists());
    }

    #[test]
    fn two_devices_learn_what_one_learns() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let config = config(&["train.batch=3", "train.validate_every=0"]);
        let learned = |name: &str, devices: &[Device]| {
            let path = folder.path().join(name);
            let mut losses = Vec::new();
            let mut see = |progress: Progress| losses.push(progress.loss);
            train(
                &config,
                &dataset,
                &path,
                Start::New,
                devices,
                None,
                &mut see,
            )
            .map(|_| losses)
        };
        // Their gradients are equal up to rounding (see `team`), which Adam's first steps make larger.
        let one = learned("one", &[Device::flex()]).unwrap();
        let two = learned("two", &[Device::flex(), Device::flex()]).unwrap();
        assert_eq!(one.len(), 6);
        for (a, b) in one.iter().zip(&two) {
            assert!((a - b).abs() < 1e-3 * a, "{one:?} {two:?}");
        }
        let devices = vec![Device::flex(); 4];
        assert!(matches!(
            learned("four", &devices),
            Err(Error::TooManyDevices { .. })
        ));
    }

    #[test]
    fn training_learns_and_other_folders_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let config = config(&[
            "train.steps=60",
            "train.ema=0",
            "data.augment=false",
            "train.batch=4",
        ]);
        let run_folder = folder.path().join("run");
        let mut losses = Vec::new();
        train(
            &config,
            &dataset,
            &run_folder,
            Start::New,
            &[Device::flex()],
            None,
            &mut |progress| losses.push(progress.loss),
        )
        .unwrap();
        assert!(
            losses[59] < 0.25 * losses[0],
            "{} to {}",
            losses[0],
            losses[59]
        );
        assert!(matches!(
            run(&config, &dataset, &run_folder, Start::New, usize::MAX),
            Err(Error::RunExists { .. })
        ));
        // A model without a run is somebody's too.
        std::fs::remove_file(run_folder.join(checkpoint::CONFIG)).unwrap();
        let before = std::fs::read(run_folder.join(MODEL)).unwrap();
        let error = run(&config, &dataset, &run_folder, Start::New, usize::MAX).unwrap_err();
        assert!(matches!(error, Error::Occupied { .. }), "{error}");
        assert_eq!(std::fs::read(run_folder.join(MODEL)).unwrap(), before);
        let error = run(&config, &dataset, dataset.folder(), Start::New, usize::MAX).unwrap_err();
        assert!(matches!(error, Error::IsInput { .. }), "{error}");
    }

    #[test]
    fn a_run_is_resumed_with_the_sizes_it_began_with() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let path = folder.path().join("run");
        run(&config(&[]), &dataset, &path, Start::New, usize::MAX).unwrap();
        let other = config(&["method.bottleneck=4"]);
        let text = run(&other, &dataset, &path, Start::Resume, usize::MAX)
            .unwrap_err()
            .to_string();
        assert!(text.contains("belongs to a network of"), "{text}");
    }

    #[test]
    fn a_loss_that_is_not_finite_ends_the_training_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let wild = config(&[
            "train.schedule.peak=1e30",
            "train.schedule.warmup_steps=0",
            "train.validate_every=0",
        ]);
        let error = run(
            &wild,
            &dataset,
            &folder.path().join("run"),
            Start::New,
            usize::MAX,
        )
        .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("not finite at step") && text.contains("lower the learning rate"),
            "{text}"
        );
        // The loss of the last step is that of the weights before it.
        let last = config(&[
            "train.schedule.peak=1e39",
            "train.schedule.warmup_steps=0",
            "train.validate_every=0",
            "train.steps=1",
        ]);
        let path = folder.path().join("last");
        let error = run(&last, &dataset, &path, Start::New, usize::MAX).unwrap_err();
        assert!(matches!(error, Error::NotFinite { .. }), "{error}");
        assert!(!path.join(MODEL).exists() && !path.join(CHECKPOINT).exists());
    }

    #[test]
    fn a_teacher_is_followed_where_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let followed = config(&["train.distil=true"]);
        let error = run(
            &followed,
            &dataset,
            &folder.path().join("a"),
            Start::New,
            usize::MAX,
        )
        .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("dinov3_vitb16_pretrain_lvd1689m"),
            "{error}"
        );
        let device = Device::flex();
        let size = TeacherConfig {
            width: 32,
            depth: 1,
            heads: 2,
            hidden: 32,
            patch: 8,
        };
        let teacher = size.init(&Init::new(1, &device));
        let mut losses = Vec::new();
        let model = train(
            &followed,
            &dataset,
            &folder.path().join("b"),
            Start::New,
            std::slice::from_ref(&device),
            Some(&teacher),
            &mut |progress| losses.push(progress.loss),
        )
        .unwrap();
        // The heads that compare do not belong to the model.
        assert_eq!(
            model.num_params(),
            followed.method.init(0, &device).num_params()
        );
        assert!(losses[5] < losses[0] && losses[0] > 0.5, "{losses:?}");
        let coarse = TeacherConfig { patch: 16, ..size }.init(&Init::new(1, &device));
        let error = train(
            &followed,
            &dataset,
            &folder.path().join("c"),
            Start::New,
            std::slice::from_ref(&device),
            Some(&coarse),
            &mut |_| {},
        )
        .unwrap_err();
        assert!(matches!(error, Error::TeacherPatch { .. }), "{error}");
    }

    /// Four tiles of gentle farmland, 256 pixels across.
    fn farmland(folder: &Path) -> Dataset {
        let recipe = Recipe {
            width: 512,
            height: 512,
            seed: 5,
            relief_m: 12.0,
            nodata_corner: false,
            ..Recipe::default()
        };
        let terrain = generate(&recipe);
        let mut writer =
            DatasetWriter::create(&folder.join("farmland"), 256, Existing::Replace, &[]).unwrap();
        writer.add_source(source("train"));
        for (row, column) in [(0, 0), (0, 256), (256, 0), (256, 256)] {
            let tile: Vec<f32> = (row..row + 256)
                .flat_map(|row| terrain.heights[row * 512 + column..][..256].to_vec())
                .collect();
            writer.add_tile(column, row, &tile).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    #[ignore = "takes minutes; run by `just test-learn`"]
    fn every_small_preset_learns_four_tiles() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = farmland(folder.path());
        let device = Device::flex();
        let mut failed = Vec::new();
        // As many steps of one tile as two minutes allow on two cores: more steps teach more than larger ones.
        for (preset, steps, peak) in [
            ("huvr-siren-small", 1150, 3e-3),
            ("huvr-small", 1500, 3e-3),
            ("functa-small", 1120, 2e-3),
            ("transinr-small", 1850, 1.6e-2),
        ] {
            let settings = [
                "data.augment=false".to_owned(),
                "train.validate_every=0".to_owned(),
                "train.checkpoint_every=0".to_owned(),
                format!("train.schedule.peak={peak}"),
                // With one tile per step the squares of gradients should be forgotten soon.
                "train.optimiser.beta2=0.98".to_owned(),
                "train.schedule.warmup_steps=20".to_owned(),
                format!("train.steps={steps}"),
                "train.batch=1".to_owned(),
            ];
            let config = Config::preset(preset, &settings).unwrap();
            let clock = Instant::now();
            let run = folder.path().join(preset);
            let model = train(
                &config,
                &dataset,
                &run,
                Start::New,
                std::slice::from_ref(&device),
                None,
                &mut |_| {},
            )
            .unwrap();
            let seconds = clock.elapsed().as_secs_f64();
            let summary =
                evaluate(&model, &config, &dataset, &dataset.split("train"), &device).unwrap();
            let summary = summary.summary().unwrap().mean;
            eprintln!(
                "{preset}: {} steps in {seconds:.0} s, RMSE {:.4} m of a range of {:.1} m",
                config.train.steps, summary.rmse_m, summary.range_m
            );
            if summary.rmse_m >= 0.1 || seconds >= 120.0 {
                failed.push(preset);
            }
        }
        assert!(
            failed.is_empty(),
            "not below 0.1 m within two minutes: {failed:?}"
        );
    }

    #[test]
    fn tokens_have_the_shape_in_which_they_are_stored() {
        let device = Device::flex();
        for name in terrane_codec::format::Method::ALL
            .iter()
            .filter(|method| method.has_tokens())
            .map(|method| method.name())
        {
            let config = Config::preset(&format!("{name}-small"), &[]).unwrap();
            let model = config.method.init(0, &device);
            let side = config.method.side();
            let tile = Tensor::<3>::random([1, side, side], Distribution::Default, &device);
            let tokens = model.encode(tile, Precision::Full);
            let [count, channels] = config.method.token_shape();
            assert_eq!(tokens.dims(), [1, count, channels], "{name}");
            assert_eq!(
                model.decode(tokens, Precision::Full).dims(),
                [1, side, side]
            );
        }
    }

    #[test]
    fn tiles_of_another_size_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let config = Config::preset("huvr-siren-small", &[]).unwrap();
        assert!(matches!(
            run(
                &config,
                &dataset,
                &folder.path().join("run"),
                Start::New,
                usize::MAX
            ),
            Err(Error::TileSide {
                tiles: 32,
                method: 256
            })
        ));
    }
}
