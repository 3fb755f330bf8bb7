//! What can go wrong with datasets.

use std::path::PathBuf;

/// An error of the lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A raster could not be read, or an output not be written.
    #[error(transparent)]
    Raster(#[from] terrane_geo::Error),
    /// A list of links cannot be understood.
    #[error("{path}: not a list of links: {source}")]
    Links {
        /// The list.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: crate::links::LinkError,
    },
    /// A download failed for good; what arrived is kept for the next try.
    #[error(
        "{url}: cannot be downloaded: {source}; run the command again to go on where it stopped"
    )]
    Download {
        /// The address.
        url: String,
        /// Why it failed.
        #[source]
        source: crate::download::DownloadError,
    },
    /// A list has nothing the protocol can use.
    #[error(
        "{path}: names no swissALTI3D raster of 0.5 m (a name such as swissalti3d_2019_2501-1120_0.5_2056_5728.tif)"
    )]
    NoSwissTiles {
        /// The list.
        path: PathBuf,
    },
    /// Heights could not be compared.
    #[error(transparent)]
    Measure(#[from] crate::measure::MeasureError),
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
    /// A catalogue cannot be understood.
    #[error("{path}: not a catalogue of rasters: {reason}")]
    Catalogue {
        /// The catalogue.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder holds no dataset, or a damaged one.
    #[error("{path}: not a tile dataset: {reason}; build one with `terrane dataset build`")]
    Dataset {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder holds nothing to build from.
    #[error("{path}: holds no GeoTIFF (.tif or .tiff)")]
    NoRasters {
        /// The folder.
        path: PathBuf,
    },
    /// A tile size or stride that cannot be cut.
    #[error(
        "tiles of {side} pixels every {stride} pixels cannot be cut; both must be at least 1, the stride at most the side"
    )]
    Stride {
        /// Side of a tile.
        side: usize,
        /// Distance between tiles.
        stride: usize,
    },
    /// A raster is not what the swissALTI3D protocol starts from.
    #[error(
        "{path}: is {width}x{height} pixels of {pixel_m} m; the protocol starts from 2000x2000 pixels of 0.5 m"
    )]
    NotSwissAlti3d {
        /// The raster.
        path: PathBuf,
        /// Its columns.
        width: usize,
        /// Its rows.
        height: usize,
        /// Side of its pixels.
        pixel_m: f64,
    },
}

/// The result of a step of the lab.
pub type Result<T> = std::result::Result<T, Error>;
