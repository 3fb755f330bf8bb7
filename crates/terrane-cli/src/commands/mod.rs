//! One file per command.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use burn::tensor::Device;
use terrane::format::{Reader, Source};
use terrane::{FileModel, Terrain};
pub(crate) use terrane_convert::{crs_unit_m, ground, is_unit_constant, map_unit_m};
use terrane_geo::Existing;

use crate::Common;

pub(crate) mod bench;
pub(crate) mod dataset;
pub(crate) mod decode;
pub(crate) mod demo;
pub(crate) mod derive;
pub(crate) mod diagnose;
pub(crate) mod encode;
pub(crate) mod eval;
pub(crate) mod generate;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod query;
pub(crate) mod serve;
pub(crate) mod shard;
pub(crate) mod tables;
pub(crate) mod train;
pub(crate) mod verify;

/// Where a command computes.
#[derive(clap::Args)]
pub(crate) struct DeviceArguments {
    /// Where to compute: cpu, cuda, rocm, metal, vulkan or wgpu; cuda:1 is the second card. A training takes several,
    /// as cuda:0,cuda:1.
    #[arg(long, default_value = "cpu")]
    device: String,
}

impl DeviceArguments {
    /// The device.
    pub(crate) fn open(&self) -> Result<Device> {
        Ok(terrane_lab::device::parse(&self.device)?)
    }

    /// What to call it in a report: its name, and the model of a CPU where the system tells it.
    pub(crate) fn describe(&self) -> String {
        let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = information
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        match model {
            Some((_, model)) if self.device == "cpu" => {
                let threads = std::thread::available_parallelism().map_or(1, usize::from);
                format!("{}, {threads} threads", model.trim())
            }
            _ => self.device.clone(),
        }
    }

    /// All devices that were named.
    pub(crate) fn open_all(&self) -> Result<Vec<Device>> {
        Ok(terrane_lab::device::parse_all(&self.device)?)
    }
}

/// A neural terrain file to read.
#[derive(clap::Args)]
pub(crate) struct FileArguments {
    /// The neural terrain file: a path or an address (https://…, s3://…).
    file: PathBuf,
    /// Its model, where it is neither in the file nor in the program.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
}

impl FileArguments {
    /// The file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.file
    }

    /// The file without its model.
    pub(crate) fn reader(&self) -> Result<Reader> {
        Reader::open(open_source(&self.file)?)
            .with_context(|| format!("{} cannot be opened", self.file.display()))
    }

    /// The file, ready to decode.
    pub(crate) fn terrain(&self) -> Result<Terrain> {
        open_terrain(&self.file, self.model.as_deref())
    }
}

fn open_source(file: &Path) -> Result<Box<dyn Source>> {
    terrane::source(file).with_context(|| format!("{} cannot be opened", file.display()))
}

/// A neural terrain file, with its model where it is neither in the file nor in the program.
pub(crate) fn open_terrain(file: &Path, model: Option<&Path>) -> Result<Terrain> {
    let model = match model {
        None => None,
        Some(path) => {
            let bytes = std::fs::read(path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            let model = FileModel::from_bytes(&bytes)
                .with_context(|| format!("{} cannot be used as a model", path.display()))?;
            Some(model)
        }
    };
    Terrain::open(open_source(file)?, model)
        .with_context(|| format!("{} cannot be opened", file.display()))
}

/// A check that did not hold: the command ends with 1 instead of 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CheckFailed(pub(crate) String);

/// Threads to use.
pub(crate) fn jobs(common: &Common) -> usize {
    common.jobs.map_or_else(
        || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
        std::num::NonZeroUsize::get,
    )
}

/// What `--overwrite` says about an existing output.
pub(crate) fn existing(overwrite: bool) -> Existing {
    if overwrite {
        Existing::Replace
    } else {
        Existing::Keep
    }
}
