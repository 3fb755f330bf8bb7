//! One file per command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use terrane::OpenOptions;
use terrane_codec::format::Reader;
use terrane_codec::{RemoteOptions, Terrain};
use terrane_geo::{Existing, Kind, Output};

use crate::Common;
use crate::streams::source;

#[cfg(feature = "lab")]
pub(crate) mod bench;
pub(crate) mod contour;
#[cfg(feature = "lab")]
pub(crate) mod dataset;
pub(crate) mod decode;
#[cfg(feature = "lab")]
pub(crate) mod demo;
pub(crate) mod derive;
#[cfg(feature = "lab")]
mod device;
#[cfg(feature = "lab")]
pub(crate) mod diagnose;
pub(crate) mod diff;
pub(crate) mod encode;
#[cfg(feature = "lab")]
pub(crate) mod eval;
pub(crate) mod generate;
#[cfg(feature = "lab")]
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod query;
pub(crate) mod raster;
pub(crate) mod repair;
pub(crate) mod serve;
pub(crate) mod shard;
pub(crate) mod site;
#[cfg(feature = "lab")]
pub(crate) mod tables;
pub(crate) mod tiles;
#[cfg(feature = "lab")]
pub(crate) mod train;
pub(crate) mod verify;

#[cfg(feature = "lab")]
pub(crate) use device::DeviceArguments;

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

/// A terrane file to read.
#[derive(clap::Args)]
pub(crate) struct FileArguments {
    /// The terrane file: a path, an address (https://…, s3://…), or - for standard input.
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
        let file = source(&self.file)?;
        Ok(terrane::open_reader(&file, self.remote.options())?)
    }

    /// The file, ready to decode.
    pub(crate) fn terrain(&self, common: &Common) -> Result<Terrain> {
        let options = OpenOptions {
            model: self.model.clone(),
            memory: common.memory(),
            remote: self.remote.options(),
        };
        Ok(terrane::open_with(&source(&self.file)?, &options)?)
    }
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

/// What is said of a command that the light program does not have.
#[cfg(not(feature = "lab"))]
pub(crate) fn absent(words: &[std::ffi::OsString]) -> anyhow::Error {
    const LAB: [&str; 8] = [
        "bench", "dataset", "demo", "diagnose", "eval", "import", "tables", "train",
    ];
    let name = words
        .first()
        .map_or("".into(), |word| word.to_string_lossy());
    if LAB.contains(&&*name) {
        anyhow::anyhow!(
            "this is the light program, without `{name}`: build terrane-cli with its default features"
        )
    } else {
        anyhow::anyhow!("there is no command `{name}`; terrane --help lists them")
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
