//! What can be wrong with a grid of tiles.

use crate::tile::TileId;

/// An error of the format crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
}
