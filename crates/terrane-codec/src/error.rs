//! What can be wrong with tiles, models and files.

/// An error of the terrane crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tile has another number of heights than its side says.
    #[error("a tile of side {side} has {found} heights instead of {}", side * side)]
    TileSize {
        /// Side of the tile.
        side: usize,
        /// Heights given.
        found: usize,
    },
    /// The ground of a tree has another number of heights than its tiles have.
    #[error("the ground of a tree has {found} heights instead of {expected}")]
    TreeSize {
        /// Heights that belong to it.
        expected: usize,
        /// Heights given.
        found: usize,
    },
    /// A tile holds a value that is not a height.
    #[error("a tile holds a value that is not a height at row {row}, column {column}")]
    NotAHeight {
        /// Row of the pixel.
        row: usize,
        /// Column of the pixel.
        column: usize,
    },
    /// A tile holds tokens and nobody gave a model.
    #[error("the file needs its model, and none was given")]
    NoModel,
    /// A file of tokens, and no networks.
    #[error(
        "the file holds tokens of {method}, and this build of terrane has no networks: build with the feature `networks` to read it"
    )]
    NoNetworks {
        /// The file's method.
        method: terrane_format::Method,
    },
    /// The model is not the one that the file was made with.
    #[error(
        "the file was made with the model {name} ({expected}), and this is another ({found}): give the right one with `model`"
    )]
    OtherModel {
        /// The name of the model in the file.
        name: String,
        /// Its hash.
        expected: String,
        /// The hash of the model that was given.
        found: String,
    },
    /// The device did not give numbers back.
    #[error("the device did not give the numbers of a tensor back")]
    Device,
    /// The point is outside the raster or has no data.
    #[error("there is no height at {x}, {y}")]
    NoHeight {
        /// Map coordinate.
        x: f64,
        /// Map coordinate.
        y: f64,
    },
    /// A resolution or a rate that cannot be.
    #[error("{what} must be {must}, and is {value}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// What it must be.
        must: &'static str,
        /// What it is.
        value: String,
    },
    /// A rate that a tile cannot have.
    #[error(
        "the tile at column {column}, row {row} cannot be brought to {target} bits per pixel: it still takes {reached:.3}"
    )]
    Unreachable {
        /// Its first column.
        column: usize,
        /// Its first row.
        row: usize,
        /// What was asked for.
        target: f64,
        /// What there is to have.
        reached: f64,
    },
    /// A tile that cannot be read, and with it those below it.
    #[error(
        "the tile at column {}, row {} of level {} cannot be read",
        tile.id.column, tile.id.row, tile.level
    )]
    Tile {
        /// Which.
        tile: terrane_format::LevelTile,
        /// Why.
        source: Box<Self>,
    },
    /// Threads could not be started.
    #[error("threads cannot be started: {0}")]
    Threads(String),
    /// More memory than may be taken.
    #[error(transparent)]
    Memory(#[from] terrane_format::MemoryError),
    /// The time that work on a file may take has passed.
    #[error("work on the file takes longer than the {seconds} s that it may take")]
    TimeLimit {
        /// The limit.
        seconds: f64,
    },
    /// The encoding was stopped.
    #[error("the encoding was stopped")]
    Stopped,
    /// A journal that cannot be used.
    #[error("{} {reason}", path.display())]
    Journal {
        /// Its file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A journal that cannot be read or written.
    #[error("{}: the journal cannot be read or written", path.display())]
    JournalIo {
        /// Its file.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A shard that cannot be used.
    #[error("shard {number} {reason}")]
    Shard {
        /// Its number.
        number: u32,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The source of heights could not be read.
    #[error("heights cannot be read")]
    Source(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The file.
    #[error(transparent)]
    Format(#[from] terrane_format::Error),
    /// The model.
    #[error(transparent)]
    Model(#[from] crate::model::ModelError),
}

impl Error {
    /// Whether bytes are missing that the file's source reads later; the same may be asked again then.
    pub fn is_pending(&self) -> bool {
        match self {
            Self::Format(terrane_format::Error::Pending) => true,
            Self::Tile { source, .. } => source.is_pending(),
            _ => false,
        }
    }
}
