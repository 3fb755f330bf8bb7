//! How the surfaces of tiles become one: how neighbours blend, and how the kernel goes on beyond the data.
//!
//! Between the last pixel centres of two tiles, the surface of one passes into that of the other; at the centres
//! themselves each tile is alone, so decoding a tile never needs its neighbours.

use terrane_format::{TileId, Window};

use crate::kernel::{PixelJet, blend_weights, try_interpolate};

/// Half the width, in pixels, of the band in which one tile passes into the next: up to the pixel centres.
const BAND: f64 = 0.5;

/// A raster divided into square tiles, some of which may have no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiling {
    /// Columns of the raster.
    pub width: usize,
    /// Rows of the raster.
    pub height: usize,
    /// Side of a tile.
    pub side: usize,
}

impl Tiling {
    /// Column and row of the pixel at a position; `None` outside the raster. The first pixel reaches from 0 to 1.
    pub fn pixel(&self, column: f64, row: f64) -> Option<(usize, usize)> {
        let is_inside = (0.0..=self.width as f64).contains(&column)
            && (0.0..=self.height as f64).contains(&row);
        is_inside.then(|| {
            (
                (column as usize).min(self.width - 1),
                (row as usize).min(self.height - 1),
            )
        })
    }

    /// The tile of a pixel.
    pub fn tile(&self, (column, row): (usize, usize)) -> TileId {
        TileId {
            column: column / self.side,
            row: row / self.side,
        }
    }

    /// The pixels of a tile.
    pub fn window(&self, tile: TileId) -> Window {
        let (column, row) = (tile.column * self.side, tile.row * self.side);
        Window {
            column,
            row,
            width: self.side.min(self.width - column),
            height: self.side.min(self.height - row),
        }
    }

    /// The surface at a position in pixels, from those of the tiles around it: `jet` is that of one tile, `None` where it
    /// has no data. `None` where the tile of the position itself has none.
    pub fn blend<E>(
        &self,
        column: f64,
        row: f64,
        mut jet: impl FnMut(TileId) -> Result<Option<PixelJet>, E>,
    ) -> Result<Option<PixelJet>, E> {
        let Some(pixel) = self.pixel(column, row) else {
            return Ok(None);
        };
        let own = self.tile(pixel);
        let Some(own_jet) = jet(own)? else {
            return Ok(None);
        };
        let weights = |position, size: usize| {
            blend_weights(position, size.div_ceil(self.side), self.side, BAND)
        };
        let (columns, rows) = (weights(column, self.width), weights(row, self.height));
        let mut sum = PixelJet::default();
        let mut whole = PixelJet::default();
        for &(tile_row, [y, dy, dyy]) in &rows {
            for &(tile_column, [x, dx, dxx]) in &columns {
                let id = TileId {
                    column: tile_column,
                    row: tile_row,
                };
                // Neighbours without data take no part; the others share the band along the border.
                let tile_jet = if id == own { Some(own_jet) } else { jet(id)? };
                let Some(tile_jet) = tile_jet else {
                    continue;
                };
                let weight = PixelJet::of_weights([x, dx, dxx], [y, dy, dyy]);
                sum = sum.plus(tile_jet.times(weight));
                whole = whole.plus(weight);
            }
        }
        // Where a neighbour is absent, what is left of the band belongs to this tile.
        let is_whole = whole.value >= 1.0 - 1e-9;
        Ok(Some(if is_whole { sum } else { own_jet }))
    }

    /// The kernel's surface of one tile at a position in pixels, which may lie a little beyond its border. `known` is
    /// the height at the centre of a pixel of the raster, `None` where its tile has no data.
    pub fn kernel<E>(
        &self,
        tile: TileId,
        column: f64,
        row: f64,
        mut known: impl FnMut(usize, usize) -> Result<Option<f64>, E>,
    ) -> Result<PixelJet, E> {
        try_interpolate(column - 0.5, row - 0.5, |column, row| {
            self.node(tile, column, row, &mut known)
        })
    }

    /// The height at a pixel centre; beyond all data it goes on quadratically, or as well as the samples there are allow.
    fn node<E>(
        &self,
        tile: TileId,
        column: isize,
        row: isize,
        known: &mut impl FnMut(usize, usize) -> Result<Option<f64>, E>,
    ) -> Result<f64, E> {
        let mut known = |column: isize, row: isize| {
            let (Ok(column), Ok(row)) = (usize::try_from(column), usize::try_from(row)) else {
                return Ok(None);
            };
            if column < self.width && row < self.height {
                known(column, row)
            } else {
                Ok(None)
            }
        };
        if let Some(height) = known(column, row)? {
            return Ok(height);
        }
        // Back into the raster; where the neighbour has no data, back into this tile.
        let into = |index: isize, start: usize, size: usize| {
            index.clamp(start.cast_signed(), (start + size).cast_signed() - 1)
        };
        let mut inner = (into(column, 0, self.width), into(row, 0, self.height));
        if known(inner.0, inner.1)?.is_none() {
            let window = self.window(tile);
            inner = (
                into(column, window.column, window.width),
                into(row, window.row, window.height),
            );
        }
        let (columns, rows) = (column - inner.0, row - inner.1);
        let mut back = |steps: isize| {
            known(
                inner.0 - steps * columns.signum(),
                inner.1 - steps * rows.signum(),
            )
        };
        let distance = columns.abs().max(rows.abs()) as f64;
        Ok(match (back(0)?, back(1)?, back(2)?) {
            (Some(first), Some(second), Some(third)) => {
                first
                    + distance * (1.5 * first - 2.0 * second + 0.5 * third)
                    + 0.5 * distance * distance * (first - 2.0 * second + third)
            }
            (Some(first), Some(second), None) => first + distance * (first - second),
            (Some(first), ..) => first,
            (None, ..) => 0.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    const TILING: Tiling = Tiling {
        width: 20,
        height: 12,
        side: 8,
    };

    fn quadratic(column: f64, row: f64) -> f64 {
        let (x, y) = (column - 0.5, row - 0.5);
        3.0 + 0.5 * x - 0.25 * y + 0.125 * x * x - 0.0625 * y * y
    }

    /// The surface through a quadratic where some tiles have no data.
    fn surface(column: f64, row: f64, is_absent: impl Fn(TileId) -> bool) -> Option<PixelJet> {
        let known = |column: usize, row: usize| -> Result<_, Infallible> {
            let height = quadratic(column as f64 + 0.5, row as f64 + 0.5);
            Ok((!is_absent(TILING.tile((column, row)))).then_some(height))
        };
        let blended = TILING.blend(column, row, |tile| {
            if is_absent(tile) {
                return Ok(None);
            }
            TILING.kernel(tile, column, row, known).map(Some)
        });
        let Ok(jet) = blended;
        jet
    }

    #[test]
    fn a_quadratic_goes_on_beyond_every_edge() {
        // Inside, at borders of tiles, at edges and corners of the raster, whose last tiles are narrow.
        for (column, row) in [
            (5.3, 4.1),
            (8.0, 3.0),
            (7.8, 8.2),
            (0.1, 5.0),
            (19.9, 0.2),
            (20.0, 12.0),
        ] {
            let jet = surface(column, row, |_| false).unwrap();
            let is_corner = column > 19.0;
            let tolerance = if is_corner { 0.2 } else { 1e-9 };
            let expected = quadratic(column, row);
            assert!((jet.value - expected).abs() < tolerance, "{column} {row}");
            if !is_corner {
                assert!((jet.xx - 0.25).abs() < 1e-9 && (jet.yy + 0.125).abs() < 1e-9);
            }
        }
        assert_eq!(surface(20.1, 3.0, |_| false), None);
    }

    #[test]
    fn an_absent_neighbour_leaves_the_band_to_its_tile() {
        let is_absent = |tile: TileId| tile == TileId { column: 1, row: 0 };
        assert_eq!(surface(8.2, 3.0, is_absent), None);
        let jet = surface(7.9, 3.0, is_absent).unwrap();
        assert!((jet.value - quadratic(7.9, 3.0)).abs() < 1e-9);
    }
}
