//! What can be wrong with a conversion.

use std::path::PathBuf;

use terrane_codec::ModelError;

/// An error of a conversion.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting that must be above zero.
    #[error("`{name}` must be above 0, not {value}")]
    NotPositive {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// An effort that there is not.
    #[error(
        "`effort` must be from 0 to {}, not {effort}",
        crate::settings::MAX_EFFORT
    )]
    Effort {
        /// What was asked for.
        effort: u8,
    },
    /// Symbols of a width that there is not.
    #[error(
        "`bits` must be one of {:?}, not {bits}",
        terrane_format::tokens::WIDTHS
    )]
    Bits {
        /// What was asked for.
        bits: u8,
    },
    /// A setting of tokens for a method without.
    #[error("only the neural representations have tokens: leave out `bits` and `fixed_width`")]
    NoTokens,
    /// A model for a method without.
    #[error("the method {method} has no model: leave out `model` and `embed_model`")]
    NoModel {
        /// The method.
        method: terrane_format::Method,
    },
    /// Tokens, and a build without networks.
    #[error(
        "{method} stores tokens, and this build of terrane has no networks: build with the feature `networks`"
    )]
    NoNetworks {
        /// The method.
        method: terrane_format::Method,
    },
    /// The program has no model of a method.
    #[error("there is no model of this method in the program: give one with `model`")]
    NoBuiltIn,
    /// The model is of another method than the one asked for.
    #[error("the model is of another method: it is a {name}")]
    OtherMethod {
        /// The model's name.
        name: String,
    },
    /// No loss with a network.
    #[error("a network's floats cannot give every bit back: `lossless` needs the `method` context")]
    LossyNetwork,
    /// Tiles of another side than the model's.
    #[error(
        "this model works on tiles of {side} pixels: leave out `tile`, or let it be that instead of {tile}"
    )]
    TileOfModel {
        /// The model's.
        side: usize,
        /// The one asked for.
        tile: u16,
    },
    /// Tiles of a side that no file can have.
    #[error("`tile` must be an even number from 16 to 4096, not {tile}")]
    TileSide {
        /// The side.
        tile: u16,
    },
    /// The raster has more columns or rows than a file can have.
    #[error("the raster is too large")]
    RasterTooLarge,
    /// A rate that cannot be had.
    #[error("a {what} of {target} cannot be reached: {}", nearest(*below, *above))]
    Unreachable {
        /// What was asked for.
        what: &'static str,
        /// How much of it.
        target: f64,
        /// The nearest below that there is to have.
        below: Option<f64>,
        /// The nearest above.
        above: Option<f64>,
    },
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("{} cannot be written", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is no model.
    #[error("{} cannot be used as a model", path.display())]
    UnusableModel {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: ModelError,
    },
    /// A raster cannot be encoded.
    #[error("{} cannot be encoded", path.display())]
    Encode {
        /// The raster.
        path: PathBuf,
        /// Why.
        #[source]
        source: terrane_codec::Error,
    },
    /// A terrane file cannot be opened.
    #[error("{} cannot be opened", terrane_codec::shown(path))]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: terrane_codec::Error,
    },
    /// An overview that is not there.
    #[error("there is no level {level}: the last is {last}")]
    NoLevel {
        /// The level.
        level: u8,
        /// The last.
        last: u8,
    },
    /// A box beside the raster.
    #[error("the box lies outside the raster")]
    OutsideBox,
    /// Heights that contour lines cannot be drawn at.
    #[error(transparent)]
    Levels(#[from] crate::contour::LevelsError),
    /// A name that does not say how lines are to be written.
    #[error(
        "{}: lines are written as .geojson, .geojsonl or .fgb (FlatGeobuf), as the ending of the name says",
        path.display()
    )]
    LineFormat {
        /// The name.
        path: PathBuf,
    },
    /// Lines of a raster whose system is not known, in another system.
    #[error(
        "the file states no coordinate system, so its lines cannot be put into another: give `crs` own"
    )]
    LinesNotOnEarth,
    /// Lines that cannot be put into a FlatGeobuf.
    #[error("{}: cannot be written as FlatGeobuf", path.display())]
    FlatGeobuf {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A transform without an inverse.
    #[error("the raster's transform cannot be inverted")]
    Singular,
    /// A pixel size that is not a whole number of pixels.
    #[error(
        "`resolution` must be a whole multiple of the new file's pixels, which are {width} by {height}, and not {resolution}"
    )]
    NotWhole {
        /// What was asked for.
        resolution: f64,
        /// Width of a pixel in map units.
        width: f64,
        /// Height of a pixel in map units.
        height: f64,
    },
    /// Of two files one alone says where it lies.
    #[error("the {side} file does not say where it lies, and the other does")]
    NoPlace {
        /// Which.
        side: crate::change::Side,
    },
    /// Heights above different zeros.
    #[error(
        "the new file's heights are in EPSG:{new} and the old file's in EPSG:{old}: bring one raster to the other's vertical system first"
    )]
    VerticalSystems {
        /// The new file's.
        new: u16,
        /// The old file's.
        old: u16,
    },
    /// Two files without a pixel in common.
    #[error("the two files have no pixel with data in common")]
    NothingShared,
    /// A proof that cannot be had.
    #[error(transparent)]
    Unproven(#[from] crate::change::Unproven),
    /// Samples of a type that is not known.
    #[error("the file's samples are of the unknown type {kind}")]
    UnknownSamples {
        /// The type.
        kind: String,
    },
    /// More memory than may be taken.
    #[error(transparent)]
    Memory(#[from] terrane_codec::format::MemoryError),
    /// A coordinate system or a point of one.
    #[error(transparent)]
    Geodesy(#[from] terrane_geo::GeodesyError),
    /// A file compared with a raster of another size.
    #[error(
        "the file has {width} x {height} pixels and the raster {other_width} x {other_height}: it is not its source"
    )]
    OtherSize {
        /// Columns of the file.
        width: usize,
        /// Rows of the file.
        height: usize,
        /// Columns of the raster.
        other_width: usize,
        /// Rows of the raster.
        other_height: usize,
    },
    /// A rate of a whole file, which shards cannot have.
    #[error(
        "`rmse` and `bpp` of a whole file need all its tiles at once, which shards do not have: give `max_error` or `lossless`, or add `per_tile`"
    )]
    WholeRate,
    /// A text that is no plan.
    #[error("{} is not a plan of shards", path.display())]
    NotAPlan {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A plan that contradicts itself.
    #[error("{} is not a plan of shards: {reason}", path.display())]
    BadPlan {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A plan of another version of this program, which may encode otherwise.
    #[error(
        "the plan was made by terrane {plan} and this is {program}: use that version, or plan again"
    )]
    OtherProgram {
        /// The plan's.
        plan: String,
        /// This one.
        program: &'static str,
    },
    /// A raster that is not the one of the plan any more.
    #[error("{} changed since the plan was made: plan again", path.display())]
    InputChanged {
        /// The raster.
        path: PathBuf,
    },
    /// A model that is not the one of the plan.
    #[error("the plan needs the model {name} ({expected}): give it with `model`")]
    PlanModel {
        /// Its name.
        name: String,
        /// Its hash.
        expected: String,
    },
    /// A shard that is not in the plan.
    #[error("there is no shard {number}: the plan has {count}, counted from 0")]
    NoShard {
        /// The number.
        number: u32,
        /// How many there are.
        count: usize,
    },
    /// A shard that was not encoded yet.
    #[error("shard {number} of {count} is missing: {} is not there", path.display())]
    MissingShard {
        /// The number.
        number: u32,
        /// How many there are.
        count: usize,
        /// Where it should be.
        path: PathBuf,
    },
    /// A file that is to be repaired from a raster with other heights.
    #[error(
        "{}: at column {column}, row {row} the file has {file_m} m and the raster {raster_m} m: it is not the raster that the file was made from",
        path.display()
    )]
    OtherHeights {
        /// The file.
        path: PathBuf,
        /// Column of the pixel.
        column: usize,
        /// Row of the pixel.
        row: usize,
        /// The file's height.
        file_m: f64,
        /// The raster's.
        raster_m: f64,
    },
    /// A file whose undamaged parts are not what the raster gives.
    #[error(
        "{}: the raster does not give the records that the file still has: it is another raster, or the file was encoded with settings that it does not state (give them: `effort`, `rmse`, `bpp`, `per_tile`) or by another version of terrane",
        path.display()
    )]
    NotRemade {
        /// The file.
        path: PathBuf,
    },
    /// A file of which nothing is left that a new one could be compared with.
    #[error(
        "{}: nothing of it is left that would tell whether a new file is the same: encode the raster again",
        path.display()
    )]
    NothingLeft {
        /// The file.
        path: PathBuf,
    },
    /// A file whose head is lost, and whose records the settings at hand do not give.
    #[error(
        "{}: its head is lost, and neither what is left of it nor the usual settings give its records: give those that it was encoded with, and its raster",
        path.display()
    )]
    HeadLost {
        /// The file.
        path: PathBuf,
    },
    /// Zooms of which there are none.
    #[error("there are no zooms from {first} to {last}: the finest is {finest}")]
    Zooms {
        /// The first.
        first: u8,
        /// The last.
        last: u8,
        /// The finest that there is.
        finest: u8,
    },
    /// An archive of nothing.
    #[error("no tile of these zooms has any data")]
    NoTiles,
    /// Map tiles.
    #[error(transparent)]
    Tiles(#[from] crate::tiles::TileError),
    /// A raster.
    #[error(transparent)]
    Raster(#[from] terrane_geo::Error),
    /// A setting of reading rasters is none.
    #[error(transparent)]
    RasterOption(#[from] terrane_geo::RasterOptionError),
    /// A terrane file.
    #[error(transparent)]
    Terrain(#[from] terrane_codec::Error),
}

/// What there is to have instead of a rate.
fn nearest(below: Option<f64>, above: Option<f64>) -> String {
    match (below, above) {
        (Some(below), Some(above)) => {
            format!("the nearest that there are are {below:.4} and {above:.4}")
        }
        (Some(below), None) => format!("the most that there is is {below:.4}"),
        (None, Some(above)) => format!("the least that there is is {above:.4}"),
        (None, None) => "there is none".to_owned(),
    }
}

/// The result of a conversion.
pub type Result<T> = std::result::Result<T, Error>;

impl From<terrane_codec::format::Error> for Error {
    fn from(error: terrane_codec::format::Error) -> Self {
        Self::Terrain(error.into())
    }
}
