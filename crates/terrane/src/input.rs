//! A raster of a plan, and how a worker knows it again.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use terrane_codec::format::Window;
use terrane_geo::Piece;

use crate::{Error, Result};

/// How a worker tells that a raster is the one of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// By its length and time.
    Time,
    /// By its length and the hash of its bytes, for rasters that are copied to the workers.
    Hash,
}

/// A raster of a plan: where it lies on the grid, and how it is known again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    // Not flattened, which `deny_unknown_fields` would not go with.
    path: PathBuf,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    modified_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    sha256: Option<String>,
    /// Files beside it that say something of it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    beside: Vec<KnownFile>,
    column: usize,
    row: usize,
    width: usize,
    height: usize,
}

/// A file, and how it is known again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownFile {
    path: PathBuf,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    modified_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    sha256: Option<String>,
}

impl KnownFile {
    fn new(path: PathBuf, checks: Checks) -> Result<Self> {
        let (bytes, modified_ns) = modified_ns(&path)?;
        Ok(Self {
            sha256: match checks {
                Checks::Time => None,
                Checks::Hash => Some(hash_of(&path)?),
            },
            modified_ns: modified_ns.filter(|_| checks == Checks::Time),
            path,
            bytes,
        })
    }

    /// Checks that it is what it was.
    fn check(&self) -> Result<()> {
        let (bytes, modified_ns) = modified_ns(&self.path)?;
        let is_same = bytes == self.bytes
            && match &self.sha256 {
                Some(expected) => hash_of(&self.path)? == *expected,
                None => modified_ns == self.modified_ns,
            };
        if is_same {
            Ok(())
        } else {
            Err(Error::InputChanged {
                path: self.path.clone(),
            })
        }
    }
}

fn hash_of(path: &Path) -> Result<String> {
    let failed = |source| Error::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut digest = Sha256::new();
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part) {
            Ok(0) => return Ok(hex::encode(digest.finalize())),
            Ok(count) => digest.update(&part[..count]),
            // A signal is no fault of the file.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

fn modified_ns(path: &Path) -> Result<(u64, Option<u64>)> {
    let failed = |source| Error::Unreadable {
        path: path.to_owned(),
        source,
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    let time = metadata.modified().map_err(failed)?;
    let since = time.duration_since(UNIX_EPOCH).ok();
    Ok((
        metadata.len(),
        since.and_then(|since| u64::try_from(since.as_nanos()).ok()),
    ))
}

impl Input {
    pub(crate) fn new(piece: &Piece, checks: Checks) -> Result<Self> {
        // Workers may be started elsewhere.
        let path = std::path::absolute(&piece.path).map_err(|source| Error::Unreadable {
            path: piece.path.clone(),
            source,
        })?;
        let beside = terrane_geo::sidecars(&path)?;
        let beside = beside.into_iter().map(|path| KnownFile::new(path, checks));
        let beside = beside.collect::<Result<_>>()?;
        let KnownFile {
            path,
            bytes,
            modified_ns,
            sha256,
        } = KnownFile::new(path, checks)?;
        let Window {
            column,
            row,
            width,
            height,
        } = piece.window;
        Ok(Self {
            path,
            bytes,
            modified_ns,
            sha256,
            beside,
            column,
            row,
            width,
            height,
        })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn piece(&self) -> Piece {
        Piece {
            path: self.path.clone(),
            window: Window {
                column: self.column,
                row: self.row,
                width: self.width,
                height: self.height,
            },
        }
    }

    /// Checks that the raster is the one that was planned with, with the files beside it.
    pub(crate) fn check(&self) -> Result<()> {
        let own = KnownFile {
            path: self.path.clone(),
            bytes: self.bytes,
            modified_ns: self.modified_ns,
            sha256: self.sha256.clone(),
        };
        own.check()?;
        let beside = terrane_geo::sidecars(&self.path)?;
        let is_known = |path: &PathBuf| self.beside.iter().any(|known| known.path == *path);
        if let Some(path) = beside.into_iter().find(|path| !is_known(path)) {
            return Err(Error::InputChanged { path });
        }
        self.beside.iter().try_for_each(KnownFile::check)
    }
}
