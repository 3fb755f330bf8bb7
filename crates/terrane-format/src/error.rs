//! What can be wrong with a file or a grid of tiles.

use crate::tile::TileId;

/// The result of reading or writing a file.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the format crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A raster or a tile without pixels was asked for.
    #[error("a raster of {width}x{height} pixels cannot be cut into tiles of {side} pixels")]
    EmptyGrid {
        /// Columns of the raster.
        width: usize,
        /// Rows of the raster.
        height: usize,
        /// Side of a tile.
        side: usize,
    },
    /// The tile lies outside the grid.
    #[error(
        "tile column {}, row {} is outside the grid of {columns}x{rows} tiles",
        id.column, id.row
    )]
    NoSuchTile {
        /// The tile asked for.
        id: TileId,
        /// Columns of the grid.
        columns: usize,
        /// Rows of the grid.
        rows: usize,
    },
    /// The file does not start as a terrane file does.
    #[error("this is not a terrane file")]
    NotTerrane,
    /// The bytes are not what the specification says.
    #[error("the {what} is damaged at byte {offset}: {reason}")]
    Malformed {
        /// The part of the file.
        what: &'static str,
        /// Where in that part.
        offset: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// Bytes changed since they were written.
    #[error("the {what} is damaged: its checksum is {found:08x} and should be {expected:08x}")]
    Checksum {
        /// The part of the file.
        what: &'static str,
        /// The stored checksum.
        expected: u32,
        /// That of the bytes.
        found: u32,
    },
    /// The file is right but newer than this program.
    #[error(
        "the file needs {what} {value}, which this version of terrane does not know; a newer one may"
    )]
    Unsupported {
        /// What is not known.
        what: &'static str,
        /// Its number or name.
        value: String,
    },
    /// The file states more than a reader accepts.
    #[error("the file states {value} {what}, more than the limit of {limit}")]
    LimitExceeded {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        value: u64,
        /// How much is accepted.
        limit: u64,
    },
    /// The file is shorter or longer than it says.
    #[error("the file has {found} bytes and should have {expected}: it was cut off or added to")]
    Length {
        /// Bytes that the header states.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// The descriptions do not fit the head.
    #[error(
        "the descriptions of the file need {bytes} bytes and have {limit}: shorten the coordinate system's text"
    )]
    HeadTooLong {
        /// Bytes needed.
        bytes: usize,
        /// Bytes there are.
        limit: usize,
    },
    /// A tile was written twice, or does not belong to the grid.
    #[error("tile {number} cannot be written: {reason}")]
    NotWritable {
        /// Its number.
        number: u64,
        /// Why.
        reason: &'static str,
    },
    /// More memory than may be taken.
    #[error(transparent)]
    Memory(#[from] crate::MemoryError),
    /// A source that reads later, such as a browser's: the bytes are not here yet.
    #[error("the bytes are not here yet: they must be read before this is asked again")]
    Pending,
    /// The machine could not read or write.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A store on the network could not be read.
    #[error("{address} cannot be read: {reason}")]
    Remote {
        /// The address.
        address: String,
        /// What the store said.
        reason: String,
    },
}
