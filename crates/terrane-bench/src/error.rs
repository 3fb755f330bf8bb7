//! What can go wrong with a benchmark.

use std::path::PathBuf;

/// An error of a benchmark or a diagnosis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A run of the benchmark cannot be used.
    #[error("{path}: not a run of this benchmark: {reason}")]
    Run {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder of results holds none.
    #[error(
        "{path}: holds no run that can be compared; one is a folder with config.toml and eval-{split}.json"
    )]
    NoResults {
        /// The folder.
        path: PathBuf,
        /// The split.
        split: String,
    },
    /// There is nothing to measure.
    #[error("the split \"{split}\" has no tiles")]
    EmptySplit {
        /// The split.
        split: String,
    },
    /// A method's tokens do not stand for patches.
    #[error("the tokens of this method do not stand for patches; those of HUVR and HUVR+SIREN do")]
    NoPatchTokens,
    /// Patches that a tile cannot be cut into.
    #[error(
        "patches of {patch} pixels do not fill a tile of {side} pixels; their side must divide it, and be 32 at most"
    )]
    Patch {
        /// Side of a patch.
        patch: usize,
        /// Side of a tile.
        side: usize,
    },
    /// Numbers that a patch does not have.
    #[error("{numbers} numbers cannot stand for a patch of {pixels} pixels; ask for 1 to {pixels}")]
    Numbers {
        /// Numbers per patch.
        numbers: usize,
        /// Its pixels.
        pixels: usize,
    },
    /// Codecs could not be compared.
    #[error(transparent)]
    Codec(#[from] crate::codecs::CodecError),
    /// A network could not be trained or used.
    #[error(transparent)]
    Train(#[from] terrane_train::Error),
    /// A preset cannot be had as it was asked for.
    #[error(transparent)]
    Preset(#[from] terrane_train::config::ConfigError),
    /// Heights could not be compared.
    #[error(transparent)]
    Measure(#[from] terrane_train::measure::MeasureError),
    /// No raster can be measured.
    #[error("there is no raster to measure: {reason}")]
    NoSources {
        /// Why not.
        reason: String,
    },
    /// A number that must be above zero.
    #[error("`{name}` is {value}; it must be above 0")]
    NotPositive {
        /// The option.
        name: &'static str,
        /// What was given.
        value: f64,
    },
    /// A file does not keep what it promises.
    #[error(
        "{raster}: a file of {codec} is off by {max_error_m} m, and should be by {bound_m} m at most"
    )]
    BoundExceeded {
        /// The raster.
        raster: String,
        /// What wrote the file.
        codec: String,
        /// What was promised.
        bound_m: f64,
        /// What was found.
        max_error_m: f64,
    },
    /// A raster could not be read or written.
    #[error(transparent)]
    Raster(#[from] terrane_geo::Error),
    /// A terrane file could not be written or read.
    #[error(transparent)]
    File(#[from] terrane::Error),
    /// The report could not be written.
    #[error(transparent)]
    Report(#[from] terrane_report::Error),
    /// A file could not be read or written.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// The result of a benchmark or a diagnosis.
pub type Result<T> = std::result::Result<T, Error>;
