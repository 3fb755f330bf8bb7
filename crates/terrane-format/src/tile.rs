//! How a raster is divided into square tiles.

use crate::Error;

/// A rectangle of pixels, from its top-left corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Window {
    /// First column.
    pub column: usize,
    /// First row.
    pub row: usize,
    /// Number of columns.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
}

impl Window {
    /// The whole of a raster of `width` × `height` pixels.
    pub fn whole(width: usize, height: usize) -> Self {
        Self {
            column: 0,
            row: 0,
            width,
            height,
        }
    }

    /// The number of pixels, or `None` where it exceeds what a machine can address.
    pub fn pixels(&self) -> Option<usize> {
        self.width.checked_mul(self.height)
    }

    /// Whether the window lies inside a raster of `width` × `height` pixels.
    pub fn fits(&self, width: usize, height: usize) -> bool {
        self.column
            .checked_add(self.width)
            .is_some_and(|end| end <= width)
            && self
                .row
                .checked_add(self.height)
                .is_some_and(|end| end <= height)
    }

    /// The part that both windows share, or `None` where they share no pixel.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let column = self.column.max(other.column);
        let row = self.row.max(other.row);
        let right = self
            .column
            .saturating_add(self.width)
            .min(other.column.saturating_add(other.width));
        let bottom = self
            .row
            .saturating_add(self.height)
            .min(other.row.saturating_add(other.height));
        (right > column && bottom > row).then(|| Self {
            column,
            row,
            width: right - column,
            height: bottom - row,
        })
    }
}

/// Column and row of a tile in its grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct TileId {
    /// Column of tiles, from the left.
    pub column: usize,
    /// Row of tiles, from the top.
    pub row: usize,
}

/// The division of a raster into square tiles; those of the last column and row may be smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileGrid {
    width: usize,
    height: usize,
    side: usize,
}

impl TileGrid {
    /// Divides a raster of `width` × `height` pixels into tiles of `side` × `side`.
    pub fn new(width: usize, height: usize, side: usize) -> Result<Self, Error> {
        if width == 0 || height == 0 || side == 0 {
            return Err(Error::EmptyGrid {
                width,
                height,
                side,
            });
        }
        Ok(Self {
            width,
            height,
            side,
        })
    }

    /// Number of columns of tiles.
    pub fn columns(&self) -> usize {
        self.width.div_ceil(self.side)
    }

    /// Number of rows of tiles.
    pub fn rows(&self) -> usize {
        self.height.div_ceil(self.side)
    }

    /// The pixels of one tile.
    pub fn window(&self, id: TileId) -> Result<Window, Error> {
        if id.column >= self.columns() || id.row >= self.rows() {
            return Err(Error::NoSuchTile {
                id,
                columns: self.columns(),
                rows: self.rows(),
            });
        }
        let column = id.column * self.side;
        let row = id.row * self.side;
        Ok(Window {
            column,
            row,
            width: self.side.min(self.width - column),
            height: self.side.min(self.height - row),
        })
    }

    /// All tiles, row by row.
    pub fn tiles(&self) -> impl Iterator<Item = TileId> + use<> {
        let columns = self.columns();
        (0..self.rows()).flat_map(move |row| (0..columns).map(move |column| TileId { column, row }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_pixel_once() {
        for (width, height, side) in [
            (1, 1, 256),
            (256, 256, 256),
            (257, 511, 256),
            (1000, 37, 64),
        ] {
            let grid = TileGrid::new(width, height, side).unwrap();
            let mut seen = vec![0_u8; width * height];
            for id in grid.tiles() {
                let window = grid.window(id).unwrap();
                assert!(window.fits(width, height));
                for row in window.row..window.row + window.height {
                    for column in window.column..window.column + window.width {
                        seen[row * width + column] += 1;
                    }
                }
            }
            assert!(
                seen.iter().all(|&count| count == 1),
                "{width}x{height} by {side}"
            );
        }
    }

    #[test]
    fn windows_intersect_or_do_not() {
        let a = Window {
            column: 10,
            row: 10,
            width: 20,
            height: 5,
        };
        let b = Window {
            column: 25,
            row: 0,
            width: 100,
            height: 12,
        };
        assert_eq!(
            a.intersection(&b),
            Some(Window {
                column: 25,
                row: 10,
                width: 5,
                height: 2
            })
        );
        assert_eq!(a.intersection(&Window { column: 30, ..b }), None);
        assert!(
            !Window {
                column: usize::MAX,
                ..a
            }
            .fits(100, 100)
        );
    }

    #[test]
    fn an_empty_grid_and_a_tile_outside_are_refused() {
        assert!(matches!(
            TileGrid::new(0, 5, 256),
            Err(Error::EmptyGrid { .. })
        ));
        let grid = TileGrid::new(300, 300, 256).unwrap();
        let id = TileId { column: 2, row: 0 };
        assert!(matches!(
            grid.window(id),
            Err(Error::NoSuchTile {
                columns: 2,
                rows: 2,
                ..
            })
        ));
    }
}
