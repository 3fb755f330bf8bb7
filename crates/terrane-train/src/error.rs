//! What can go wrong with datasets, training and evaluation.

use std::path::PathBuf;

/// An error of datasets, training or evaluation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A network would take more memory than it may.
    #[error("{what} takes {}, and the limit is {:.1} GB: make it smaller, or raise `memory_limit`", match bytes {
        Some(bytes) => format!("about {:.1} GB of memory", *bytes as f64 / 1e9),
        None => "more memory than can be counted".to_owned(),
    }, *limit as f64 / 1e9)]
    Memory {
        /// What would take it.
        what: &'static str,
        /// How much, where it can be counted.
        bytes: Option<u64>,
        /// The limit in bytes.
        limit: u64,
    },
    /// No device to train on was given.
    #[error("a training needs a device")]
    NoDevice,
    /// Some devices would have nothing to do.
    #[error("a step of {tiles} tiles cannot be shared by {devices} devices: raise train.batch")]
    TooManyDevices {
        /// Tiles of a step.
        tiles: usize,
        /// Devices given.
        devices: usize,
    },
    /// A teacher cannot be on several devices yet.
    #[error("a training that follows a teacher runs on one device")]
    TeacherOnSeveral,
    /// Symbols could not be counted into tables.
    #[error("the tables of the model's symbols cannot be made: {reason}")]
    Tables {
        /// Why.
        reason: String,
    },
    /// A preset cannot be had as it was asked for.
    #[error(transparent)]
    Preset(#[from] crate::config::ConfigError),
    /// A context model cannot be made or used.
    #[error(transparent)]
    Context(#[from] terrane_context::Error),
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
        source: crate::data::LinkError,
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
        source: crate::data::download::DownloadError,
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
    /// A configuration cannot be used.
    #[error("{path}: {source}")]
    Config {
        /// Where it stands.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: crate::config::ConfigError,
    },
    /// Weights cannot be used.
    #[error("{path}: {source}")]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        #[source]
        source: terrane_networks::weights::WeightsError,
    },
    /// A device did not do what it was asked.
    #[error("the device failed: {reason}")]
    Device {
        /// What it said.
        reason: String,
    },
    /// A distillation was asked for without its teacher.
    #[error("{}", terrane_networks::distillation::MISSING_WEIGHTS)]
    NoTeacher,
    /// A method has no states that a teacher could be compared with.
    #[error(
        "train.distil: this method has nothing that a teacher could be compared with; HUVR and HUVR+SIREN have"
    )]
    NotDistillable,
    /// A dataset has nothing to train on.
    #[error("the dataset has no tiles in its train split")]
    NoTrainingTiles,
    /// A method works on tiles of another size.
    #[error("the tiles are {tiles} pixels across, the method works on {method}")]
    TileSide {
        /// Side of the dataset's tiles.
        tiles: usize,
        /// Side the method works on.
        method: usize,
    },
    /// Tiles have no subbands that the context codec could learn from.
    #[error(
        "the tiles are {tiles} pixels across, and the context codec learns from tiles of at least {min}"
    )]
    SmallTiles {
        /// Side of the dataset's tiles.
        tiles: usize,
        /// The minimum side.
        min: usize,
    },
    /// A folder holds a run already.
    #[error("{path}: holds a run already; use `resume` to go on with it, or name another folder")]
    RunExists {
        /// The folder.
        path: PathBuf,
    },
    /// A new run would write over files that are no run.
    #[error(
        "{path}: holds \"{name}\" already, and no run that could be resumed; name another folder"
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// What the run would write over.
        name: String,
    },
    /// An output that is an input.
    #[error("{path}: is the input {input}, and is left as it is; name another output")]
    IsInput {
        /// The output.
        path: PathBuf,
        /// The input.
        input: PathBuf,
    },
    /// A checkpoint of a network of other sizes.
    #[error(
        "{path}: belongs to a network of {found} weights, and the configuration has {expected}; a run is resumed with the sizes it began with"
    )]
    OtherNetwork {
        /// The checkpoint.
        path: PathBuf,
        /// Weights of the configuration's network.
        expected: usize,
        /// Weights of the checkpoint.
        found: usize,
    },
    /// A teacher sees other patches than the method.
    #[error(
        "train.distil: the teacher sees patches of {teacher} pixels, and method.patch is {method}; they must be equal"
    )]
    TeacherPatch {
        /// Side of the teacher's patches.
        teacher: usize,
        /// Side of the method's patches.
        method: usize,
    },
    /// No tile could be cut.
    #[error(
        "{path}: no raster in it has a tile of {side}x{side} pixels without a gap; the largest is {name} with {width}x{height} pixels"
    )]
    NoTiles {
        /// The folder.
        path: PathBuf,
        /// Side of a tile.
        side: usize,
        /// The largest raster.
        name: String,
        /// Its columns.
        width: usize,
        /// Its rows.
        height: usize,
    },
    /// A training went astray.
    #[error("the loss or the weights were not finite at step {step}; {}", match last {
        Some(last) => format!("{} holds step {last}, from where `resume` goes on; lower the learning rate or clip the gradient first", checkpoint.display()),
        None => "there is no checkpoint yet; lower the learning rate or clip the gradient".to_owned(),
    })]
    NotFinite {
        /// The step.
        step: usize,
        /// The last checkpoint's file.
        checkpoint: PathBuf,
        /// The last checkpoint's step.
        last: Option<usize>,
    },
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
    /// A catalogue has rasters of one region in different splits: what is measured would have been seen.
    #[error(
        "{path}: {} is of the split {} and {} of {}, and both show the region \"{region}\", which belongs to one split",
        rasters[0], splits[0], rasters[1], splits[1]
    )]
    RegionInTwoSplits {
        /// The catalogue.
        path: PathBuf,
        /// The region.
        region: String,
        /// Two of its rasters.
        rasters: Box<[String; 2]>,
        /// Their splits.
        splits: Box<[String; 2]>,
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

/// The result of work with datasets, training or evaluation.
pub type Result<T> = std::result::Result<T, Error>;
