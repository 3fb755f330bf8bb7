//! The state of a training on disk, and the trained model.

use std::io::Write;
use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use terrane_codec::format::TokenTables;
use terrane_codec::format::tokens::WIDTHS;
use terrane_geo::{AtomicFile, Existing, Output};
use terrane_networks::dinov3::{Teacher, TeacherConfig};
use terrane_networks::methods::Model;
use terrane_networks::model::{CONFIG_KEY, table_arrays, table_name};
use terrane_networks::released::load_released;
use terrane_networks::weights::{Array, Weights, WeightsError};

use crate::config::Config;
use crate::memory::{MemoryLimit, NetworkMemory};
use crate::training::optimiser::State;
use crate::training::pth;
use crate::{Error, Result};

/// Names of the files in a run's folder.
pub const CONFIG: &str = "config.toml";
/// One JSON object per line.
pub const METRICS: &str = "metrics.jsonl";
/// What a training needs to go on.
pub const CHECKPOINT: &str = "checkpoint.safetensors";
/// The trained model.
pub const MODEL: &str = "model.safetensors";

const STEP_KEY: &str = "step";

/// Writes a model with its configuration; the file appears whole or not at all.
pub fn write_model(
    path: &Path,
    model: &Model,
    config: &Config,
    tables: Option<&TokenTables>,
    existing: Existing,
) -> Result<()> {
    let mut weights = Weights::of(model);
    weights
        .arrays
        .extend(tables.map(table_arrays).into_iter().flatten());
    weights.metadata.insert(CONFIG_KEY.into(), config.to_toml());
    write(path, &weights, existing)
}

/// Reads a model with its configuration; a network is made only where its arrays are there and it fits into memory.
pub fn read_model(path: &Path, device: &Device, memory: MemoryLimit) -> Result<(Model, Config)> {
    let mut weights = read(path, memory)?;
    // The tables of its symbols belong to the codec, not to the network.
    for bits in WIDTHS {
        weights.arrays.remove(&table_name(bits));
    }
    let damaged = |source| Error::Weights {
        path: path.to_owned(),
        source,
    };
    let text = weights.metadata.get(CONFIG_KEY).ok_or_else(|| {
        damaged(WeightsError::Missing {
            name: CONFIG_KEY.into(),
        })
    })?;
    let wrong = |source| Error::Config {
        path: path.to_owned(),
        source,
    };
    let config = Config::parse(text, &[]).map_err(wrong)?;
    let arrays = config
        .method
        .arrays()
        .map_err(|error| wrong(error.into()))?;
    weights.check(&arrays).map_err(damaged)?;
    memory.require_network(&config.method)?;
    let model = weights
        .load_into(config.method.init(0, device))
        .map_err(damaged)?;
    Ok((model, config))
}

/// Reads a checkpoint that the authors of HUVR or HUVR+SIREN released into the network of a configuration.
pub fn import(path: &Path, config: &Config, device: &Device, memory: MemoryLimit) -> Result<Model> {
    memory.require_network(&config.method)?;
    let weights = read(path, memory)?;
    load_released(&weights, config.method.init(0, device)).map_err(|source| Error::Weights {
        path: path.to_owned(),
        source,
    })
}

/// Reads a DINOv3 teacher; its size follows from its weights.
pub fn read_teacher(path: &Path, device: &Device, memory: MemoryLimit) -> Result<Teacher> {
    let weights = read(path, memory)?;
    TeacherConfig::of(&weights)
        .and_then(|config| Teacher::load(&weights, &config, device))
        .map_err(|source| Error::Weights {
            path: path.to_owned(),
            source,
        })
}

/// Writes what an optimiser remembers.
pub(crate) fn write_state(path: &Path, state: &State) -> Result<()> {
    let mut weights = Weights::default();
    let mut insert = |name: &str, tensor: &Tensor<1>| {
        let data = tensor.clone().into_data();
        let shape = data.shape().to_vec();
        let values = data.try_to_vec().map_err(|error| Error::Device {
            reason: error.to_string(),
        })?;
        weights.arrays.insert(name.into(), Array { shape, values });
        Ok::<(), Error>(())
    };
    insert("weights", &state.weights)?;
    insert("mean", &state.mean)?;
    insert("square", &state.square)?;
    if let Some(average) = &state.average {
        insert("average", average)?;
    }
    weights
        .metadata
        .insert(STEP_KEY.into(), state.steps.to_string());
    write(path, &weights, Existing::Replace)
}

/// Reads what an optimiser remembered.
pub(crate) fn read_state(path: &Path, device: &Device) -> Result<State> {
    let mut weights = read(path, MemoryLimit::of_machine())?;
    let damaged = |source| Error::Weights {
        path: path.to_owned(),
        source,
    };
    let missing = |name: &str| damaged(WeightsError::Missing { name: name.into() });
    let steps = weights
        .metadata
        .get(STEP_KEY)
        .and_then(|step| step.parse().ok())
        .ok_or_else(|| missing(STEP_KEY))?;
    let mut take = |name: &str| {
        weights
            .arrays
            .remove(name)
            .map(|array| Tensor::from_data(TensorData::new(array.values, array.shape), device))
    };
    let mut need = |name: &str| take(name).ok_or_else(|| missing(name));
    let (first, mean, square) = (need("weights")?, need("mean")?, need("square")?);
    Ok(State {
        steps,
        weights: first,
        mean,
        square,
        average: take("average"),
    })
}

/// Reads named arrays from a safetensors file or a PyTorch checkpoint.
pub(crate) fn read(path: &Path, memory: MemoryLimit) -> Result<Weights> {
    let damaged = |source| Error::Weights {
        path: path.to_owned(),
        source,
    };
    let length = std::fs::metadata(path).map_or(0, |found| found.len());
    // Its bytes and its arrays are in memory at once.
    memory.require("reading this file", length.checked_mul(2))?;
    if pth::is_checkpoint(path) {
        return pth::read(path).map_err(damaged);
    }
    let bytes = std::fs::read(path).map_err(|source| Error::Io {
        path: path.to_owned(),
        action: "be read",
        source,
    })?;
    Weights::from_bytes(&bytes).map_err(damaged)
}

fn write(path: &Path, weights: &Weights, existing: Existing) -> Result<()> {
    let bytes = weights.to_bytes().map_err(|source| Error::Weights {
        path: path.to_owned(),
        source,
    })?;
    write_bytes(path, &bytes, existing)
}

/// Writes a file, which appears whole or not at all.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8], existing: Existing) -> Result<()> {
    let mut file = AtomicFile::create(&Output::named_here(path, existing))?;
    file.file().write_all(bytes).map_err(|source| Error::Io {
        path: path.to_owned(),
        action: "be written",
        source,
    })?;
    Ok(file.commit()?)
}
