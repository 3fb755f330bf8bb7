//! What can go wrong when codecs are compared.

use std::path::PathBuf;

/// An error of the comparison of codecs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// A tile that is not a square of the stated side.
    #[error("a tile of side {side} has {found} heights; tiles are squares of at least 3 pixels")]
    TileSize {
        /// Side of the tile.
        side: usize,
        /// Heights given.
        found: usize,
    },
    /// A tile holds a value that is not a height.
    #[error("a tile holds a value that is not a height at index {index}")]
    NotAHeight {
        /// Index of the value.
        index: usize,
    },
    /// There is nothing to compare.
    #[error("there is no tile to compare codecs on: all {flat} given are flat")]
    NoTiles {
        /// Tiles that were left out.
        flat: usize,
    },
    /// A curve from elsewhere is of other tiles.
    #[error("{codec}: its curve is of {found} tiles, and {expected} are compared")]
    OtherTiles {
        /// Its name.
        codec: String,
        /// Tiles of the curve.
        found: usize,
        /// Tiles given.
        expected: usize,
    },
    /// A codec failed.
    #[error("{codec}: a tile cannot be coded: {source}")]
    Failed {
        /// Its name.
        codec: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A codec failed and did not say why.
    #[error("{codec}: refused a tile")]
    Refused {
        /// Its name.
        codec: String,
    },
    /// A codec lost something where it must not.
    #[error("{codec}: does not give back what it was given, and should without loss")]
    NotLossless {
        /// Its name.
        codec: String,
    },
    /// Heights cannot be compared.
    #[error(transparent)]
    Measure(#[from] terrane_train::measure::MeasureError),
    /// What Python needs cannot be written.
    #[error("{path}: cannot be written: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Python cannot be started.
    #[error("{python}: cannot be started: {source}; give the path of a Python 3 with `python`")]
    Start {
        /// The program.
        python: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Python stopped with an error.
    #[error("{python}: the codecs of Python failed: {message}")]
    Python {
        /// The program.
        python: PathBuf,
        /// The last it said.
        message: String,
    },
    /// What Python printed cannot be understood.
    #[error("the output of the codecs of Python cannot be used: {reason}")]
    Output {
        /// What is wrong with it.
        reason: String,
    },
}

impl CodecError {
    pub(crate) fn failed(
        codec: &str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Failed {
            codec: codec.to_owned(),
            source: source.into(),
        }
    }
}
