//! The parts of a neural terrain file that are exact: how a raster is divided into tiles.
//!
//! [`TileGrid`] divides a raster of any size into square tiles; [`Window`] is a rectangle of pixels; [`TileId`] names
//! one tile. Nothing here uses floating point, a model or a geodata library.
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

mod error;
mod tile;

pub use error::Error;
pub use tile::{TileGrid, TileId, Window};
