//! The loop that trains a context model.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use burn::tensor::Device;
use serde_json::json;
use terrane_codec::random::Random;
use terrane_context::{Codec, Coefficients, Matrix, ProbabilityModel, Quantiser, to_bytes};
use terrane_geo::Existing;

use crate::config::ConfigError;
use crate::context::config::ContextConfig;
use crate::context::learner::{Canvases, ContextLearner, Upload};
use crate::context::samples::{Batch, Drawn, draw};
use crate::data::Dataset;
use crate::training::checkpoint::{self, CHECKPOINT, MODEL};
use crate::training::differentiation::{self, Differentiation, scatter_fixed};
use crate::training::optimiser::Optimiser;
use crate::training::{Log, Prepared, Progress, Start};
use crate::{Error, Result};

/// Smaller tiles have an LL band alone, and no subbands to learn from.
const MIN_SIDE: usize = 16;
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

/// Trains a model and writes a run's folder, as [`crate::training::train()`] does for the methods; gives back the steps done.
#[expect(clippy::too_many_lines, reason = "the loop is read as a whole")]
pub fn train(
    config: &ContextConfig,
    dataset: &Dataset,
    folder: &Path,
    start: Start,
    device: &Device,
    progress: &mut dyn FnMut(Progress),
) -> Result<usize> {
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
    let tiles = Arc::new(tiles(config, dataset)?);
    let differentiation = Differentiation::on(device);
    let learning = differentiation.device(device);
    let mut learner = ContextLearner::new(&config.widths, config.seed, &learning);
    let weights = differentiation::weights(&learner);
    let (clip_norm, ema) = (settings.clip_norm, settings.ema);
    let optimiser = Optimiser::new(settings.optimiser, clip_norm, ema, weights);
    let mut optimiser = start.optimiser(optimiser, folder, device)?;
    learner = differentiation.scatter(learner, optimiser.state().weights.clone());
    let first = optimiser.state().steps;
    let mut log = Log::open(folder, &config.to_toml(), start, first)?;

    let mut batches = {
        let (tiles, config, device) = (Arc::clone(&tiles), config.clone(), device.clone());
        Prepared::start(&(first..settings.steps), threads(), 1, move |step| {
            Upload::new(batch(&tiles, side, &config, step), &device)
        })
    };
    let before_s = log.elapsed_s;
    let clock = Instant::now();
    let mut waited = Duration::ZERO;
    for step in first..settings.steps {
        let waiting = Instant::now();
        let batch = batches.next();
        waited += waiting.elapsed();
        let (losses, recording) = learner.losses(
            &config.widths,
            &Canvases::new(&batch, device),
            differentiation,
        );
        let loss = match &losses.offsets {
            Some(offsets) => losses.bits.clone() + offsets.clone(),
            None => losses.bits.clone(),
        };
        let gradient = differentiation.gradient(&loss, &learner);
        drop(recording);
        let elapsed_s = before_s + clock.elapsed().as_secs_f64();
        let rate = settings.rate(step, elapsed_s);
        let weights = optimiser.step(rate, gradient);
        learner = differentiation.scatter(learner, weights);

        let done = step + 1;
        let is_over = settings.seconds > 0.0 && elapsed_s >= settings.seconds;
        let is_last = is_over || done == settings.steps;
        let is_due = |every: usize| is_last || (every > 0 && done.is_multiple_of(every));
        // A checkpoint has a line of its own step, by which a run that goes on knows its time.
        if is_due(settings.log_every) || is_due(settings.checkpoint_every) {
            let number = |tensor: burn::tensor::Tensor<1>| -> f64 {
                differentiation.numbers(tensor).into_scalar::<f32>().into()
            };
            let bits = number(losses.bits);
            if !bits.is_finite() || !optimiser.is_finite() {
                return Err(Error::NotFinite {
                    step,
                    checkpoint: folder.join(CHECKPOINT),
                    last: log.checkpoint,
                });
            }
            let elapsed_s = before_s + clock.elapsed().as_secs_f64();
            let steps_per_s = (done - first) as f64 / clock.elapsed().as_secs_f64();
            log.line(&json!({
                "step": done,
                "loss": bits,
                "offset_loss": losses.offsets.map_or(0.0, number),
                "bits_per_pixel": number(losses.rate),
                "learning_rate": rate,
                "elapsed_s": elapsed_s,
                "steps_per_s": steps_per_s,
                "waited_s": waited.as_secs_f64(),
            }))?;
            progress(Progress {
                step: done,
                steps: settings.steps,
                loss: bits,
                tiles_per_s: steps_per_s * settings.batch as f64,
            });
        }
        if settings.validate_every > 0 && is_due(settings.validate_every) {
            let best = scatter_fixed(learner.clone(), optimiser.best());
            let measured = measure(&codec(config, &best, &[])?, dataset)?;
            log.line(&json!({ "step": done, "val_bpp": measured }))?;
        }
        if is_due(settings.checkpoint_every) {
            checkpoint::write_state(&folder.join(CHECKPOINT), optimiser.state())?;
            log.checkpoint = Some(done);
        }
        if is_over {
            break;
        }
    }
    drop(batches);
    let best = scatter_fixed(learner, optimiser.best());
    let bytes = with_tables(config, &best, &tiles, side)?;
    checkpoint::write_bytes(&folder.join(MODEL), &bytes, Existing::Replace)?;
    Ok(optimiser.state().steps)
}

/// The model's file, with tables of what its symbols were.
fn with_tables(
    config: &ContextConfig,
    learner: &ContextLearner,
    tiles: &[Vec<f32>],
    side: usize,
) -> Result<Vec<u8>> {
    let mut counts = Vec::new();
    // Twice: what a symbol costs decides which are chosen.
    let passes = if config.train.count_tiles > 0 { 2 } else { 0 };
    for _ in 0..passes {
        counts = count(&codec(config, learner, &counts)?, config, tiles, side);
    }
    model_bytes(config, learner, &counts)
}

/// The tiles that are learned from.
fn tiles(config: &ContextConfig, dataset: &Dataset) -> Result<Vec<Vec<f32>>> {
    let limit = config.data.max_resolution;
    let mut tiles = Vec::new();
    for split in &config.data.splits {
        for number in dataset.split(split) {
            if limit > 0.0 && dataset.source(number).resolution_m > limit {
                continue;
            }
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
    Ok(tiles)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The batch of a step.
fn batch(tiles: &[Vec<f32>], side: usize, config: &ContextConfig, step: usize) -> Batch {
    let mut random = Random::new(config.seed, step as u64);
    let mut batch = Batch::new(config.train.batch);
    let mut window = 0;
    while window < config.train.batch {
        let tile = &tiles[random.below(tiles.len())];
        if let Some(drawn) = draw(tile, side, &config.data, &config.rate, &mut random) {
            batch.set(window, &drawn, &mut random);
            window += 1;
        }
    }
    batch
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
    let tiles = split
        .iter()
        .step_by(split.len().div_ceil(VALIDATED).max(1))
        .map(|&number| dataset.heights(number))
        .collect::<Result<Vec<_>>>()?;
    let pixels = (side * side * tiles.len()) as f64;
    let bytes = in_parallel(&tiles, |heights| measure_tile(codec, heights, side));
    let mut rates = vec![0.0; MEASURED.len()];
    for bytes in bytes {
        for (rate, bytes) in rates.iter_mut().zip(bytes) {
            *rate += bytes as f64 * 8.0 / pixels;
        }
    }
    Ok(rates)
}

/// Bytes of a tile at each of the steps.
fn measure_tile(codec: &Codec, heights: &[f32], side: usize) -> [usize; MEASURED.len()] {
    let (low, high) = heights.iter().fold(
        (f32::INFINITY, f32::NEG_INFINITY),
        |(low, high), &height| (low.min(height), high.max(height)),
    );
    let range = f64::from(high - low).max(1e-3);
    MEASURED.map(|part| {
        let values = heights
            .iter()
            .map(|&height| f64::from(height - low) / (range * part))
            .collect();
        Matrix::from_values(side, side, values)
            .and_then(|picture| Coefficients::lossy(&picture))
            .map_or(0, |tile| codec.encode(&tile, COUNTED, 0).0.len())
    })
}

/// What comes of each, on all cores.
fn in_parallel<T: Sync, U: Send>(items: &[T], make: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let part = items.len().div_ceil(threads()).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = items
            .chunks(part)
            .map(|items| scope.spawn(|| items.iter().map(&make).collect::<Vec<U>>()))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// How often each symbol of each table is met.
fn count(codec: &Codec, config: &ContextConfig, tiles: &[Vec<f32>], side: usize) -> Vec<Vec<u64>> {
    let numbers: Vec<usize> = (0..config.train.count_tiles).collect();
    let part = numbers.len().div_ceil(threads()).max(1);
    let parts: Vec<&[usize]> = numbers.chunks(part).collect();
    let counted = in_parallel(&parts, |numbers| {
        let mut counts = codec.model().distributions.no_counts();
        for &number in *numbers {
            let mut random = Random::new(config.seed, COUNT | number as u64);
            let tile = &tiles[random.below(tiles.len())];
            let drawn = draw(tile, side, &config.data, &config.rate, &mut random);
            if let Some(Drawn { tile, .. }) = drawn {
                codec.count(&tile, COUNTED, &mut counts);
            }
        }
        counts
    });
    let mut sums = codec.model().distributions.no_counts();
    for counts in counted {
        for (sums, counts) in sums.iter_mut().zip(counts) {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::config::{Experiment, preset_text};
    use crate::fixture::dataset;

    #[test]
    fn a_training_without_batches_panics_and_leaves_no_model() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        // No batch has so many windows: the threads that prepare batches panic.
        let settings = [format!("train.batch={}", 1_u64 << 60)];
        let text = preset_text("context-fast").unwrap();
        let Ok(Experiment::Context(config)) = Experiment::parse(text, &settings) else {
            panic!("the preset is one of the context codec");
        };
        let path = folder.path().join("run");
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let device = Device::flex();
            train(&config, &dataset, &path, Start::New, &device, &mut |_| {})
        }));
        assert!(ended.is_err() && !path.join(MODEL).exists());
    }
}
