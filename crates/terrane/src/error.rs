//! What can be wrong with tiles on their way into a network.

/// An error of the terrane crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
    /// A tile holds a value that is not a height.
    #[error("a tile holds a value that is not a height at row {row}, column {column}")]
    NotAHeight {
        /// Row of the pixel.
        row: usize,
        /// Column of the pixel.
        column: usize,
    },
}
