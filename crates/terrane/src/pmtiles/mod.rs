//! Map tiles as one file, PMTiles version 3: written from first to last tile, read by ranges from any web server.
//!
//! ```text
//! header (127 bytes) │ root directory │ metadata (JSON) │ leaf directories │ tiles along a Hilbert curve
//! ```
//!
//! Equal tiles are stored once. The specification is that of Protomaps, <https://github.com/protomaps/PMTiles>. Written by
//! hand: what is needed of it is three hundred lines, and the crates that have them read from networks as well.

mod directory;
mod tile_id;
mod writer;

pub(crate) use tile_id::tile_id;
pub(crate) use writer::{Archive, PmtilesWriter};
