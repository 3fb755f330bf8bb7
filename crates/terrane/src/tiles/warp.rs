//! Where the pixels of a web map lie in a raster.
//!
//! Converting every pixel by itself would cost more than decoding. Converted are the corners of cells, and what lies
//! between them is interpolated wherever the middle of a cell agrees; other cells are divided. Cells are counted over
//! the whole world, not over a tile, so that neighbouring tiles see the same ground.

use super::bounds::overlap;
use super::mercator::{MapTile, degrees};

/// Pixels across an undivided cell.
const CELL: i64 = 32;
/// Pixels of the raster that the middle of a cell may be off.
const TOLERANCE: f64 = 0.01;

/// The pixels of one tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    left: i64,
    top: i64,
    side: usize,
    /// Pixels around the world.
    around: f64,
}

/// A position in pixels of a raster: column and row from the corner of the first pixel; NaN where there is none.
pub(super) type PixelPosition = [f64; 2];

const OUTSIDE: PixelPosition = [f64::NAN; 2];

impl Frame {
    /// A tile of `side` pixels.
    pub(super) fn new(tile: MapTile, side: usize) -> Self {
        Self {
            left: i64::from(tile.x) * side as i64,
            top: i64::from(tile.y) * side as i64,
            side,
            around: side as f64 * f64::from(1_u32 << tile.z),
        }
    }

    /// Positions of all pixel centres, row by row; `convert` takes degrees to a position in the raster, which lies within
    /// `bounds`: west, south, east and north in degrees.
    pub(super) fn positions(
        &self,
        bounds: [f64; 4],
        convert: &dyn Fn(f64, f64) -> Option<PixelPosition>,
    ) -> Vec<PixelPosition> {
        let mut positions = vec![OUTSIDE; self.side * self.side];
        let bounds = widened(bounds);
        let exact = |column: i64, row: i64| {
            let (longitude, latitude) = degrees(
                (column as f64 + 0.5) / self.around,
                (row as f64 + 0.5) / self.around,
            );
            convert(longitude, latitude).unwrap_or(OUTSIDE)
        };
        let end = self.side as i64;
        let first = |start: i64| start.div_euclid(CELL) * CELL;
        for row in (first(self.top)..self.top + end).step_by(CELL as usize) {
            for column in (first(self.left)..self.left + end).step_by(CELL as usize) {
                // Far from the raster no cell is straight, and dividing them all would take a hundred times as long.
                if self.meets([column, row], bounds) {
                    self.fill(&mut positions, &exact, [column, row], CELL);
                }
            }
        }
        positions
    }

    /// Whether an undivided cell has anything in common with bounds.
    fn meets(&self, [column, row]: [i64; 2], bounds: [f64; 4]) -> bool {
        let corner =
            |column: i64, row: i64| degrees(column as f64 / self.around, row as f64 / self.around);
        let (west, north) = corner(column, row);
        let (east, south) = corner(column + CELL, row + CELL);
        overlap(bounds, [west, south, east, north])
    }

    fn fill(
        &self,
        positions: &mut [PixelPosition],
        exact: &dyn Fn(i64, i64) -> PixelPosition,
        [column, row]: [i64; 2],
        size: i64,
    ) {
        let inside = |start: i64, from: i64| {
            let end = start + self.side as i64;
            from.max(start)..(from + size).min(end)
        };
        let (columns, rows) = (inside(self.left, column), inside(self.top, row));
        if columns.is_empty() || rows.is_empty() {
            return;
        }
        let index = |x: i64, y: i64| (y - self.top) as usize * self.side + (x - self.left) as usize;
        if size == 1 {
            positions[index(column, row)] = exact(column, row);
            return;
        }
        let corners = [
            exact(column, row),
            exact(column + size, row),
            exact(column, row + size),
            exact(column + size, row + size),
        ];
        let between = |x: f64, y: f64| {
            std::array::from_fn(|axis| {
                let [a, b, c, d] = corners.map(|corner| corner[axis]);
                let (upper, lower) = (a + (b - a) * x, c + (d - c) * x);
                upper + (lower - upper) * y
            })
        };
        let is_straight = || {
            let half = size / 2;
            let (middle, guess): (PixelPosition, PixelPosition) =
                (exact(column + half, row + half), between(0.5, 0.5));
            // Not a number is not near.
            (middle[0] - guess[0]).hypot(middle[1] - guess[1]) <= TOLERANCE
        };
        if !is_straight() {
            let half = size / 2;
            for (x, y) in [(0, 0), (half, 0), (0, half), (half, half)] {
                self.fill(positions, exact, [column + x, row + y], half);
            }
            return;
        }
        let part = |value: i64, from: i64| (value - from) as f64 / size as f64;
        for y in rows {
            for x in columns.clone() {
                positions[index(x, y)] = between(part(x, column), part(y, row));
            }
        }
    }
}

/// Bounds with a margin: those of a raster come from some points of its edges alone.
fn widened([west, south, east, north]: [f64; 4]) -> [f64; 4] {
    let (across, up) = (0.01 * (east - west), 0.01 * (north - south));
    [west - across, south - up, east + across, north + up]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiles::mercator::position;

    const WORLD: [f64; 4] = [-180.0, -90.0, 180.0, 90.0];

    #[test]
    fn interpolated_positions_are_near_converted_ones() {
        // Degrees as pixels of a hundredth of a degree, which no straight line of Web Mercator is.
        let convert =
            |longitude: f64, latitude: f64| Some([longitude * 100.0, latitude.powi(2) * 2.0]);
        for z in [2, 6, 11] {
            let across = f64::from(1_u32 << z);
            let (u, v) = position(7.4, 46.9);
            let tile = MapTile::new(z, (u * across) as u32, (v * across) as u32).unwrap();
            let positions = Frame::new(tile, 256).positions(WORLD, &convert);
            for index in (0..positions.len()).step_by(97) {
                let (column, row) = (index % 256, index / 256);
                let at = |tile: u32, pixel: usize| {
                    (f64::from(tile) + (pixel as f64 + 0.5) / 256.0) / across
                };
                let (longitude, latitude) = degrees(at(tile.x, column), at(tile.y, row));
                let exact = convert(longitude, latitude).unwrap();
                let off = (positions[index][0] - exact[0]).hypot(positions[index][1] - exact[1]);
                assert!(
                    off < 2.0 * TOLERANCE,
                    "zoom {z}, pixel {index}: off by {off}"
                );
            }
        }
    }

    #[test]
    fn what_is_far_from_the_raster_is_not_converted() {
        let asked = std::cell::Cell::new(0);
        let convert = |longitude: f64, latitude: f64| {
            asked.set(asked.get() + 1);
            // Nothing is straight here.
            Some([longitude.exp(), latitude.exp()])
        };
        let frame = Frame::new(MapTile::new(1, 1, 0).unwrap(), 256);
        let near = frame.positions([95.0, 45.0, 96.0, 46.0], &convert);
        assert!(asked.get() < 3_000, "{}", asked.get());
        let all = frame.positions(WORLD, &convert);
        let mut count = 0;
        for (near, all) in near.iter().zip(&all).filter(|(near, _)| !near[0].is_nan()) {
            assert_eq!(near, all);
            count += 1;
        }
        assert_eq!(count, 1024);
    }

    #[test]
    fn what_cannot_be_converted_is_outside() {
        let convert = |longitude: f64, _: f64| (longitude > 10.0).then_some([longitude, 0.0]);
        let positions = Frame::new(MapTile::new(0, 0, 0).unwrap(), 256).positions(WORLD, &convert);
        assert!(positions[0][0].is_nan() && positions[255][0] > 179.0);
        assert!(positions[134][0].is_nan() && !positions[136][0].is_nan());
    }
}
