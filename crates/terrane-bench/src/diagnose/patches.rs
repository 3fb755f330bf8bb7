//! The patches of a tile: what a token stands for.

use terrane_codec::Normalisation;

/// A tile as square patches, row by row.
pub(super) struct Patches<'a> {
    /// Its heights in metres.
    pub heights: &'a [f32],
    /// How they are normalised.
    pub map: Normalisation,
    /// Its side in pixels.
    pub side: usize,
    /// The side of a patch, which divides it.
    pub patch: usize,
}

impl Patches<'_> {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        (self.side / self.patch).pow(2)
    }

    /// Rows and columns of a patch's pixels in the tile.
    pub(super) fn positions(&self, index: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
        let across = self.side / self.patch;
        let patch = self.patch;
        let (top, left) = (index / across * patch, index % across * patch);
        (0..patch * patch).map(move |pixel| (top + pixel / patch, left + pixel % patch))
    }

    /// A height in metres.
    pub(super) fn at(&self, row: usize, column: usize) -> f64 {
        self.heights[row * self.side + column].into()
    }

    /// A patch's heights in metres.
    pub(super) fn pixels(&self, index: usize) -> impl Iterator<Item = f64> + Clone {
        self.positions(index)
            .map(|(row, column)| self.at(row, column))
    }

    /// The same as a network sees them.
    pub(super) fn normalised(&self, index: usize) -> impl Iterator<Item = f64> + Clone {
        self.positions(index).map(|(row, column)| {
            let height = self.heights[row * self.side + column];
            self.map.normalise(height).into()
        })
    }
}
