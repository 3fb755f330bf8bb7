//! Opening a file, of this machine or at an address.

use std::path::{Path, PathBuf};

use terrane_codec::{FileModel, Models, RemoteOptions, Terrain, TerrainOptions};
use terrane_format::{Error as FormatError, MemoryLimit, Reader};

use crate::{Error, Result};

/// The models of this build: those of the context codec and, with the feature `networks`, networks.
#[cfg(feature = "networks")]
pub const MODELS: Models = Models::with(&terrane_networks::NETWORKS);
/// The models of this build: those of the context codec and, with the feature `networks`, networks.
#[cfg(not(feature = "networks"))]
pub const MODELS: Models = Models::LIGHT;

/// A model and its file.
pub type ModelFile = (FileModel, Vec<u8>);

/// What a file needs, and what it may take while it is open.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The file of its model, where that is neither inside the file nor inside the program.
    pub model: Option<PathBuf>,
    /// Memory.
    pub memory: MemoryLimit,
    /// What holds for an address.
    pub remote: RemoteOptions,
}

/// Opens a file of this machine or at an address (`https://…`, `s3://…`).
pub fn open(path: impl AsRef<Path>) -> Result<Terrain> {
    open_with(path.as_ref(), &OpenOptions::default())
}

/// As [`open`], with options.
pub fn open_with(path: &Path, options: &OpenOptions) -> Result<Terrain> {
    let memory = options.memory;
    let model = options.model.as_deref();
    let model = model.map(|path| read_model(path, memory)).transpose()?;
    terrane_codec::source(path, options.remote)
        .and_then(|source| {
            let options = TerrainOptions {
                models: MODELS,
                model: model.map(|(model, _)| model),
                memory,
            };
            Terrain::open(source, options)
        })
        .map_err(|source| failure(path, source))
}

/// Opens a file for its description and its bytes alone, which needs no model.
pub fn open_reader(path: &Path, remote: RemoteOptions) -> Result<Reader> {
    terrane_codec::source(path, remote)
        .and_then(|source| Ok(Reader::open(source)?))
        .map_err(|source| failure(path, source))
}

fn failure(path: &Path, source: terrane_codec::Error) -> Error {
    match source {
        // It names the address by itself.
        terrane_codec::Error::Format(FormatError::Remote { .. }) => Error::Terrain(source),
        source => Error::Open {
            path: path.to_owned(),
            source,
        },
    }
}

/// Reads a model from its file, in so much memory.
pub fn read_model(path: &Path, memory: MemoryLimit) -> Result<ModelFile> {
    let failed = |source| Error::Unreadable {
        path: path.to_owned(),
        source,
    };
    let bytes = std::fs::metadata(path).map_err(failed)?.len();
    // Its bytes, its arrays and its network.
    memory.check("so large a model", bytes.saturating_mul(3), "")?;
    let file = std::fs::read(path).map_err(failed)?;
    let model = MODELS
        .load(&file, memory)
        .map_err(|source| Error::UnusableModel {
            path: path.to_owned(),
            source,
        })?;
    Ok((model, file))
}
