//! The loop that trains a context model.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use burn::tensor::Device;
use serde_json::json;
use terrane_codec::random::Random;
use terrane_context::{Codec, Coefficients, Matrix, ProbabilityModel, Quantiser, Taps, to_bytes};
use terrane_geo::Existing;

use crate::config::ConfigError;
use crate::context::config::ContextConfig;
use crate::context::learner::ContextLearner;
use crate::context::samples::{Batch, draw};
use crate::data::Dataset;
use crate::training::Log;
use crate::training::checkpoint::{self, CHECKPOINT, MODEL};
use crate::training::differentiation::{self, Differentiation, scatter_fixed};
use crate::training::optimiser::Optimiser;
use crate::training::{Progress, Start};
use crate::{Error, Result};

/// Smaller tiles have an LL band alone, and no subbands to learn from.
const MIN_SIDE: usize = 16;
/// Batches that wait to be used.
const AHEAD: usize = 4;
/// The stream of random numbers for counting.
const COUNT: u64 = 1 << 60;
/// Steps at which the val split is measured, as parts of a tile's range.
const MEASURED: [f64; 3] = [1e-3, 5e-3, 2e-2];
/// Tiles of the val split that are measured.
const VALIDATED: usize = 12;
/// What a bit is worth while counting: tables are for symbols chosen like those of an encoder.
const COUNTED: Quantiser = Quantiser {
    lambda: 0.1,
    dead_zone: 0.05,
};

/// Trains a model and writes a run's folder, as [`crate::training::train()`] does for the methods.
pub fn train(
    config: &ContextConfig,
    dataset: &Dataset,
    folder: &Path,
    start: Start,
    device: &Device,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    config.check().map_err(ConfigError::from)?;
    Log::check(folder, start, dataset)?;
    let settings = config.train;
    let side = dataset.side();
    if side < MIN_SIDE {
        return Err(Error::SmallTiles {
            tiles: side,
            min: MIN_SIDE,
        });
    }
    let mut tiles = Vec::new();
    for split in &config.data.splits {
        for number in dataset.split(split) {
            let tile = dataset.heights(number)?;
            // No step could be found for others, however often they are drawn.
            if tile.iter().all(|height| height.is_finite()) {
                tiles.push(tile);
            }
        }
    }
    if tiles.is_empty() {
        return Err(Error::NoTrainingTiles);
    }
    let tiles = Arc::new(tiles);
    let differentiation = Differentiation::Burn;
    let learning = differentiation.device(device);
    let mut learner = ContextLearner::new(&config.widths, config.seed, &learning);
    let weights = differentiation::weights(&learner);
    let (clip_norm, ema) = (settings.clip_norm, settings.ema);
    let optimiser = Optimiser::new(settings.optimiser, clip_norm, ema, weights);
    let mut optimiser = start.optimiser(optimiser, folder, device)?;
    learner = differentiation.scatter(learner, optimiser.state().weights.clone());
    let first = optimiser.state().steps;
    let mut log = Log::open(folder, &config.to_toml(), start, first)?;

    let batches = batches(tiles.clone(), side, config.clone(), first);
    let clock = Instant::now();
    for (step, batch) in (first..settings.steps).zip(batches) {
        let (bits, offsets) = learner.losses(&batch, device);
        let loss = match &offsets {
            Some(offsets) => bits.clone() + offsets.clone(),
            None => bits.clone(),
        };
        let gradient = differentiation.gradient(&loss, &learner);
        let weights = optimiser.step(settings.schedule.rate(step, settings.steps), gradient);
        learner = differentiation.scatter(learner, weights);

        let done = step + 1;
        let is_due =
            |every: usize| done == settings.steps || (every > 0 && done.is_multiple_of(every));
        if is_due(settings.log_every) {
            let bits: f64 = bits.into_scalar::<f32>().into();
            if !bits.is_finite() {
                return Err(Error::NotFinite {
                    step,
                    checkpoint: folder.join(CHECKPOINT),
                    last: log.checkpoint,
                });
            }
            let offsets = offsets.map_or(0.0, |offsets| f64::from(offsets.into_scalar::<f32>()));
            let elapsed_s = clock.elapsed().as_secs_f64();
            let tiles_per_s = ((done - first) * settings.batch) as f64 / elapsed_s;
            log.line(&json!({ "step": done, "loss": bits, "offset_loss": offsets, "elapsed_s": elapsed_s }))?;
            progress(Progress {
                step: done,
                steps: settings.steps,
                loss: bits,
                tiles_per_s,
            });
        }
        if settings.validate_every > 0 && is_due(settings.validate_every) {
            let best = scatter_fixed(learner.clone(), optimiser.best());
            let codec = codec(config, &best, &[])?;
            let measured = measure(&codec, dataset)?;
            log.line(&json!({ "step": done, "val_bpp": measured }))?;
        }
        if is_due(settings.checkpoint_every) {
            checkpoint::write_state(&folder.join(CHECKPOINT), optimiser.state())?;
            log.checkpoint = Some(done);
        }
    }
    let best = scatter_fixed(learner, optimiser.best());
    let mut counts = Vec::new();
    // Twice: what a symbol costs decides which are chosen.
    for _ in 0..2 {
        counts = count(&codec(config, &best, &counts)?, config, &tiles, side);
    }
    let bytes = model_bytes(config, &best, &counts)?;
    checkpoint::write_bytes(&folder.join(MODEL), &bytes, Existing::Replace)
}

/// The batches of the steps from one on, prepared by a thread of their own; the same for the same step.
fn batches(
    tiles: Arc<Vec<Vec<f32>>>,
    side: usize,
    config: ContextConfig,
    first: usize,
) -> Receiver<Batch> {
    let (sender, batches) = sync_channel(AHEAD);
    std::thread::spawn(move || {
        let taps = Taps::new(config.widths.radius);
        for step in first..config.train.steps {
            let mut random = Random::new(config.seed, step as u64);
            let mut drawn = Vec::with_capacity(config.train.batch);
            while drawn.len() < config.train.batch {
                let tile = &tiles[random.below(tiles.len())];
                drawn.extend(draw(tile, side, &config.data, &config.rate, &mut random));
            }
            let batch = Batch::new(&drawn, config.train.samples, &taps, &mut random);
            if sender.send(batch).is_err() {
                return;
            }
        }
    });
    batches
}

fn model_bytes(
    config: &ContextConfig,
    learner: &ContextLearner,
    counts: &[Vec<u64>],
) -> Result<Vec<u8>> {
    Ok(to_bytes(
        &config.name,
        &config.widths,
        &learner.weights()?,
        counts,
    )?)
}

fn codec(config: &ContextConfig, learner: &ContextLearner, counts: &[Vec<u64>]) -> Result<Codec> {
    let bytes = model_bytes(config, learner, counts)?;
    Ok(Codec::new(ProbabilityModel::from_bytes(&bytes)?))
}

/// Real bits per pixel on the val split at a few steps.
fn measure(codec: &Codec, dataset: &Dataset) -> Result<Vec<f64>> {
    let side = dataset.side();
    let split = dataset.split("val");
    let numbers: Vec<usize> = split
        .iter()
        .copied()
        .step_by(split.len().div_ceil(VALIDATED).max(1))
        .collect();
    let mut rates = vec![0.0; MEASURED.len()];
    for &number in &numbers {
        let heights = dataset.heights(number)?;
        let (low, high) = heights.iter().fold(
            (f32::INFINITY, f32::NEG_INFINITY),
            |(low, high), &height| (low.min(height), high.max(height)),
        );
        let range = f64::from(high - low).max(1e-3);
        for (rate, part) in rates.iter_mut().zip(MEASURED) {
            let values = heights
                .iter()
                .map(|&height| f64::from(height - low) / (range * part))
                .collect();
            let tile =
                Matrix::from_values(side, side, values).and_then(|grid| Coefficients::lossy(&grid));
            let Some(tile) = tile else { continue };
            let (bytes, _) = codec.encode(&tile, COUNTED, 0);
            *rate += bytes.len() as f64 * 8.0 / (side * side * numbers.len()) as f64;
        }
    }
    Ok(rates)
}

/// How often each symbol of each table is met.
fn count(codec: &Codec, config: &ContextConfig, tiles: &[Vec<f32>], side: usize) -> Vec<Vec<u64>> {
    let mut counts = codec.model().distributions.no_counts();
    for number in 0..config.train.count_tiles {
        let mut random = Random::new(config.seed, COUNT | number as u64);
        let tile = &tiles[random.below(tiles.len())];
        if let Some(drawn) = draw(tile, side, &config.data, &config.rate, &mut random) {
            codec.count(&drawn.tile, COUNTED, &mut counts);
        }
    }
    counts
}
