//! What can go wrong with a raster, each with the file it happened to.

use std::path::PathBuf;

use terrane_format::Window;

/// An error of reading or writing a raster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened, read, written or renamed.
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
    /// The file is not a TIFF, or is damaged.
    #[error("{path}: not a readable GeoTIFF: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is in order, but holds something that is not read here.
    #[error("{path}: {what} is not supported; {advice}")]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What it holds.
        what: String,
        /// What the user can do.
        advice: &'static str,
    },
    /// A window reaches outside the raster.
    #[error(
        "{path}: a window of {}x{} pixels at column {}, row {} is outside the raster of {width}x{height} pixels",
        window.width, window.height, window.column, window.row
    )]
    OutsideRaster {
        /// The file.
        path: PathBuf,
        /// The window asked for.
        window: Window,
        /// Columns of the raster, at the level asked for.
        width: usize,
        /// Rows of the raster, at the level asked for.
        height: usize,
    },
    /// The raster has no such overview.
    #[error("{path}: there is no overview level {level}; the last one is {last}")]
    NoSuchLevel {
        /// The file.
        path: PathBuf,
        /// The level asked for, 0 being full resolution.
        level: usize,
        /// The coarsest level there is.
        last: usize,
    },
    /// Rasters that should form a mosaic do not fit together.
    #[error("{path}: cannot be one mosaic with {first}: {reason}")]
    Mosaic {
        /// The raster that does not fit.
        path: PathBuf,
        /// The raster it was compared with.
        first: PathBuf,
        /// Which property differs.
        reason: String,
    },
    /// No raster was given.
    #[error("no raster was given; name at least one GeoTIFF")]
    NoInput,
    /// The output exists and was not to be replaced.
    #[error("{path}: exists already; use --overwrite to replace it")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A height cannot be stored as asked.
    #[error("{path}: row {row}, column {column}: {reason}")]
    Height {
        /// The file being written.
        path: PathBuf,
        /// Row of the pixel.
        row: usize,
        /// Column of the pixel.
        column: usize,
        /// Why it cannot be stored.
        reason: String,
    },
    /// The writer was given more or fewer rows than the raster has.
    #[error("{path}: {given} rows of {width} pixels were given for a raster of {height} rows")]
    RowCount {
        /// The file being written.
        path: PathBuf,
        /// Rows given.
        given: usize,
        /// Columns of the raster.
        width: usize,
        /// Rows of the raster.
        height: usize,
    },
}

/// The result of reading or writing a raster.
pub type Result<T> = std::result::Result<T, Error>;
