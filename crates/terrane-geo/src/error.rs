//! What can go wrong with a raster, each with the file it happened to.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use terrane_format::Window;

/// An error of reading or writing a raster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened, read, written or renamed.
    #[error("{path}: cannot {action}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// An address where a file of this machine is needed.
    #[error(
        "{path}: cannot {action}: it is an address, and only terrane files are read from those"
    )]
    Address {
        /// The address.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
    },
    /// The file is not a TIFF, or is damaged.
    #[error("{path}: not a readable GeoTIFF: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is of another format.
    #[error(
        "{path}: is {format}, and only GeoTIFFs are read; make one first: gdal_translate {path} {}",
        as_geotiff(path).display()
    )]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: &'static str,
    },
    /// A terrane file where a raster is needed.
    #[error("{path}: is a terrane file, not a raster; `terrane decode` makes a GeoTIFF of it")]
    IsTerrane {
        /// The file.
        path: PathBuf,
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
    /// The file was written to, replaced or removed while it was read.
    #[error("{path}: changed while it was read; wait until it is written and start again")]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The coordinate reference system that GDAL's file beside a raster states is not understood.
    #[error(
        "{path}: the coordinate reference system in the file beside it (.aux.xml) cannot be used; give one with `crs`"
    )]
    CrsBeside {
        /// The raster.
        path: PathBuf,
        /// Why.
        #[source]
        source: crate::CrsTextError,
    },
    /// The band that was asked for is not there.
    #[error("{path}: has no band {band}: it has {bands}")]
    NoBand {
        /// The file.
        path: PathBuf,
        /// The band.
        band: u16,
        /// How many it has.
        bands: u16,
    },
    /// The raster has several bands, and none was chosen.
    #[error("{path}: has {bands} bands; choose that of the heights with `band`, such as 1")]
    SeveralBands {
        /// The file.
        path: PathBuf,
        /// How many it has.
        bands: u16,
    },
    /// The part that was asked for does not touch the raster.
    #[error("{path}: `bbox` does not touch the raster, which spans {extent:?}")]
    OutsideBox {
        /// The file.
        path: PathBuf,
        /// Left, bottom, right and top of the raster.
        extent: [f64; 4],
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
    /// The output is what it would be made of.
    #[error("{path}: is the input {input} itself; name another file to write")]
    IsInput {
        /// The output.
        path: PathBuf,
        /// The input that it is.
        input: PathBuf,
    },
    /// The output is a folder.
    #[error("{path}: is a folder; name a file in it to write")]
    IsFolder {
        /// The output.
        path: PathBuf,
    },
    /// The output is nothing that a file may replace.
    #[error("{path}: is {what} and is left as it is; name another file to write")]
    NotReplaceable {
        /// The output.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The name of the output says that it is something else.
    #[error(
        "{path}: would be {kind}, and .{ending} is the ending of {said}; name it .{right}, or add `any_extension`"
    )]
    OtherEnding {
        /// The output.
        path: PathBuf,
        /// Its ending.
        ending: String,
        /// What files with that ending are.
        said: &'static str,
        /// What it would be.
        kind: &'static str,
        /// The ending that it should have.
        right: &'static str,
    },
    /// More memory than may be used.
    #[error(transparent)]
    Memory(#[from] terrane_format::MemoryError),
    /// The output exists and was not to be replaced.
    #[error("{path}: exists already; use `overwrite` to replace it")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The output is being written by another program.
    #[error("{path}: is being written by another program")]
    BeingWritten {
        /// The file.
        path: PathBuf,
    },
    /// What is there is not what would be put in its place.
    #[error("{path}: {found}; it is left as it is, name another folder")]
    Foreign {
        /// The folder that was to be written.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// The output is an input, holds one or lies in one.
    #[error("{path}: is, holds or lies in the input {input}, and cannot be replaced")]
    HoldsInput {
        /// The output.
        path: PathBuf,
        /// The input.
        input: PathBuf,
    },
    /// A reference system that is to be read from a `GeoTIFF` in memory.
    #[error("the GeoTIFF that is to state the reference system cannot be read: {reason}")]
    NotACrs {
        /// Why.
        reason: String,
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

/// What the `GeoTIFF` of a raster may be called.
fn as_geotiff(path: &Path) -> PathBuf {
    let named = path.with_extension("tif");
    if named == path {
        return path.with_extension("geo.tif");
    }
    named
}

impl Error {
    /// What the system said of a path, which may be an address that was taken for one.
    pub(crate) fn of_path(path: &Path, action: &'static str, source: io::Error) -> Self {
        let path = path.to_owned();
        let is_address = path.to_str().is_some_and(|name| name.contains("://"));
        let is_unknown = matches!(
            source.kind(),
            ErrorKind::NotFound | ErrorKind::InvalidFilename
        );
        if is_address && is_unknown {
            return Self::Address { path, action };
        }
        Self::Io {
            path,
            action,
            source,
        }
    }
}

/// The result of reading or writing a raster.
pub type Result<T> = std::result::Result<T, Error>;
