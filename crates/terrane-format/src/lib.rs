//! The terrane file: bytes and symbols, exact.
//!
//! A [`Writer`] takes the [`Record`]s of tiles and makes a file of them; a [`Reader`] opens one from any [`ByteSource`] with
//! one small read and fetches records by tile. The bytes are specified in `spec/terrane-1.md`; nothing here depends on
//! floating-point arithmetic, a model or a geodata library, so a file is the same on every machine.
//!
//! [`TileGrid`] divides a raster of any size into square tiles; a [`Pyramid`] does so for a raster and its overviews.
//!
//! ```
//! use terrane_format::{TileGrid, TileId};
//!
//! let grid = TileGrid::new(1000, 600, 256)?;
//! assert_eq!((grid.columns(), grid.rows()), (4, 3));
//! let last = grid.window(TileId { column: 3, row: 2 })?;
//! assert_eq!((last.width, last.height), (232, 88)); // ragged edges stay ragged
//! # Ok::<(), terrane_format::Error>(())
//! ```

mod bytes;
mod checksum;
pub mod coder;
pub mod corrections;
mod error;
mod flats;
mod halve;
mod header;
mod index;
pub mod integers;
pub mod limits;
pub mod mask;
mod memory;
mod method;
#[cfg(feature = "serde")]
mod nodata;
mod positioned;
#[cfg(test)]
mod properties;
mod pyramid;
mod reader;
pub mod record;
pub mod salvage;
mod source;
mod table;
mod tile;
pub mod tokens;
mod writer;

pub use checksum::crc32c;
pub use corrections::Corrections;
pub use error::{Error, Result};
pub use flats::Flats;
pub use halve::{halve, halve_rows};
pub use header::{
    ErrorBound, Extent, GeoKeys, Header, ModelId, OverviewStatistics, Samples, Statistics,
};
pub use index::{TileLocation, TreeLocation, page as index_page};
pub use mask::ParentMask;
pub use memory::{MemoryError, MemoryLimit};
pub use method::{Method, Stored, UnknownMethod};
pub use positioned::read_exact_at;
pub use pyramid::{LevelTile, Pyramid};
pub use reader::Reader;
pub use record::{
    CodedRecord, Details, IntegerScale, Integers, Layer, LayerKind, Record, RecordParts, Residual,
    WaveletLayer,
};
pub use source::{ByteSource, LocalFile};
pub use table::FrequencyTable;
pub use tile::{TileGrid, TileId, Window};
pub use tokens::{Coding, TokenTables, Tokens};
pub use writer::Writer;
