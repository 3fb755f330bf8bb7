//! One file per command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use burn::tensor::Device;
use terrane::format::{Error as FormatError, Reader, Source};
use terrane::{RemoteOptions, Terrain, shown};
use terrane_convert::OpenOptions;
use terrane_geo::{Existing, Kind, Output};

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

/// How files at addresses are read.
#[derive(clap::Args)]
pub(crate) struct RemoteArguments {
    /// Seconds that a web server or a store may take for one read of a file at an address.
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    remote_timeout: u64,
}

impl RemoteArguments {
    /// As the library has it.
    pub(crate) fn options(&self) -> RemoteOptions {
        RemoteOptions {
            timeout: Duration::from_secs(self.remote_timeout),
        }
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
    #[command(flatten)]
    remote: RemoteArguments,
}

impl FileArguments {
    /// The file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.file
    }

    /// The file and its model: what an output must not be.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        [Some(&self.file), self.model.as_ref()]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
    }

    /// The file without its model.
    pub(crate) fn reader(&self) -> Result<Reader> {
        let source = open_source(&self.file, self.remote.options())?;
        Reader::open(source).map_err(|error| match error {
            // It names the address by itself.
            FormatError::Remote { .. } => error.into(),
            error => {
                anyhow::Error::new(error).context(format!("{} cannot be opened", shown(&self.file)))
            }
        })
    }

    /// The file, ready to decode.
    pub(crate) fn terrain(&self, common: &Common) -> Result<Terrain> {
        let options = OpenOptions {
            memory: common.memory(),
            remote: self.remote.options(),
        };
        Ok(terrane_convert::open(
            &self.file,
            self.model.as_deref(),
            options,
        )?)
    }
}

/// The bytes of a neural terrain file.
pub(crate) fn open_source(file: &Path, remote: RemoteOptions) -> Result<Box<dyn Source>> {
    terrane::source_with(file, remote).with_context(|| format!("{} cannot be opened", shown(file)))
}

/// A file to write.
#[derive(clap::Args)]
pub(crate) struct OutputOptions {
    /// Replace an existing file.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Write even where the ending of the name says that it is something else.
    #[arg(long)]
    pub(crate) any_extension: bool,
}

impl OutputOptions {
    /// The file at a path that holds something of a kind.
    pub(crate) fn output<'a>(&self, path: &'a Path, kind: Kind) -> Output<'a> {
        let kind = if self.any_extension { Kind::Any } else { kind };
        Output::new(path, existing(self.overwrite), kind)
    }
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
        Existing::Refuse
    }
}
