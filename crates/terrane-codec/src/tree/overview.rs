//! Where the pixels of an overview lie.
//!
//! The coarse pictures of the wavelet have their pixels on the even ones of the finer picture, and at the borders of tiles, where
//! the wavelet is mirrored, a little further inside. Everybody expects the pixels of an overview in the middle of those that they
//! cover: by the surface through the picture they are moved there, a quarter of a pixel for the first overview and nearly
//! half for the next ones. Beyond a tile's border the picture of the tile above says how the ground goes on, so that no tile
//! needs its neighbours.

use terrane_context::Transform;
use terrane_format::{LevelTile, Pyramid};

use crate::kernel::weights;

/// Pixels around a picture.
const BORDER: usize = 2;

/// Where the pixels of a picture lie along its columns or rows, in pixels of the finest level of its storey from the start
/// of its tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    /// Of each column or row, with the border.
    at: Vec<f64>,
    /// The first column or row in the tree.
    first: usize,
    /// Pixels of the finest level that one covers.
    size: f64,
}

/// A picture in metres, with what lies around it.
#[derive(Debug)]
pub(crate) struct Extended {
    columns: Axis,
    rows: Axis,
    /// Row by row, with the border.
    values: Vec<f64>,
}

/// The tile above another, and where in it that starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Above<'a> {
    pub(crate) picture: &'a Extended,
    pub(crate) column: usize,
    pub(crate) row: usize,
}

/// A line's border continued straight, by its last difference.
fn straight(length: usize, at: impl Fn(usize) -> usize, values: &mut [f64]) {
    let (first, last) = (BORDER, length - BORDER - 1);
    let slope = |from: usize, to: usize, values: &[f64]| {
        if first == last {
            0.0
        } else {
            values[at(from)] - values[at(to)]
        }
    };
    let before = slope(first, (first + 1).min(last), values);
    let after = slope(last, last.saturating_sub(1).max(first), values);
    for distance in 1..=BORDER {
        values[at(first - distance)] = values[at(first)] + distance as f64 * before;
        values[at(last + distance)] = values[at(last)] + distance as f64 * after;
    }
}

/// The two places of the line above that a place of a line with its border lies between: it lies on the first, or in the middle.
fn pair(index: usize, start: usize) -> [usize; 2] {
    let first = start + BORDER + index / 2 - BORDER / 2;
    [first, first + index % 2]
}

impl Axis {
    /// The columns (or the rows) of a tile so many levels above the finest of its storey.
    pub(crate) fn of(
        pyramid: &Pyramid,
        tile: LevelTile,
        transform: Transform,
        is_rows: bool,
        above: Option<(&Self, usize)>,
    ) -> Self {
        let level = pyramid.storey(tile.level);
        let (width, height) = pyramid.size(level).unwrap_or_default();
        let root = pyramid.root(tile);
        let (count, tile_at, root_at) = if is_rows {
            (height, tile.id.row, root.id.row)
        } else {
            (width, tile.id.column, root.id.column)
        };
        let side = usize::from(pyramid.side());
        let depth = tile.level - level;
        // Counted from where the tree starts, so that equal trees are equal to the last bit wherever they lie.
        let tile_at = tile_at - (root_at << (root.level - tile.level));
        let count = count as usize - ((root_at * side) << (root.level - level));
        let inner = positions(transform, count, side, depth, tile_at);
        let mut at = vec![0.0; inner.len() + 2 * BORDER];
        at[BORDER..BORDER + inner.len()].copy_from_slice(&inner);
        match above {
            None => straight(at.len(), |index| index, &mut at),
            Some((above, start)) => {
                for index in (0..BORDER).chain(BORDER + inner.len()..at.len()) {
                    let [left, right] = pair(index, start);
                    at[index] = f64::midpoint(above.at[left], above.at[right]);
                }
            }
        }
        Self {
            at,
            first: tile_at * side,
            size: 2_f64.powi(depth.into()),
        }
    }

    fn len(&self) -> usize {
        self.at.len() - 2 * BORDER
    }

    /// For every place, with the border, the one of the line above that lies before it, and which part of the way to the
    /// next it is.
    fn between(&self, above: &Self, start: usize) -> Vec<(usize, f64)> {
        self.at
            .iter()
            .enumerate()
            .map(|(index, at)| {
                let [first, _] = pair(index, start);
                let first = first.min(above.at.len() - 2);
                let (from, to) = (above.at[first], above.at[first + 1]);
                let part = (at - from) / (to - from);
                (first, if part.is_finite() { part } else { 0.0 })
            })
            .collect()
    }

    /// For every pixel of an overview how far the four around it, weighed, lie beside it, in differences of the two in
    /// the middle.
    fn misses(&self, taps: [f64; 4]) -> Vec<f64> {
        (0..self.len())
            .map(|index| {
                let four = &self.at[index + BORDER - 1..][..taps.len()];
                let lies: f64 = four.iter().zip(taps).map(|(at, tap)| at * tap).sum();
                let expected = (self.first + index) as f64 * self.size + (self.size - 1.0) / 2.0;
                (expected - lies) / (four[2] - four[1])
            })
            .map(|miss| if miss.is_finite() { miss } else { 0.0 })
            .collect()
    }
}

/// Where the pixels of a tile's picture lie, from those of the tiles below it.
fn positions(transform: Transform, count: usize, side: usize, depth: u8, tile: usize) -> Vec<f64> {
    let at_depth = count.div_ceil(1 << depth);
    let pixels = tile * side..((tile + 1) * side).min(at_depth);
    if depth == 0 {
        return pixels.map(|pixel| pixel as f64).collect();
    }
    let below = count.div_ceil(1 << (depth - 1)).div_ceil(side);
    (2 * tile..(2 * tile + 2).min(below))
        .flat_map(|tile| {
            transform.low_positions(&positions(transform, count, side, depth - 1, tile))
        })
        .collect()
}

impl Extended {
    /// A picture below another, or at the top of its tree, where it goes on straight.
    pub(crate) fn new(heights: &[f64], [columns, rows]: [Axis; 2], above: Option<Above>) -> Self {
        let (width, height) = (columns.len(), rows.len());
        let across = width + 2 * BORDER;
        let mut extended = Self {
            columns,
            rows,
            values: vec![0.0; across * (height + 2 * BORDER)],
        };
        for (row, line) in heights.chunks_exact(width).enumerate() {
            let start = (row + BORDER) * across + BORDER;
            extended.values[start..start + width].copy_from_slice(line);
        }
        match above {
            None => extended.go_on_straight(),
            Some(above) => extended.go_on_below(above),
        }
        extended
    }

    /// Its columns and rows.
    pub(crate) fn axes(&self) -> [&Axis; 2] {
        [&self.columns, &self.rows]
    }

    fn across(&self) -> usize {
        self.columns.at.len()
    }

    fn go_on_straight(&mut self) {
        let across = self.across();
        let down = self.rows.at.len();
        for row in BORDER..down - BORDER {
            let line = &mut self.values[row * across..][..across];
            straight(line.len(), |index| index, line);
        }
        for column in 0..across {
            straight(down, |index| index * across + column, &mut self.values);
        }
    }

    fn go_on_below(&mut self, above: Above) {
        let across = self.across();
        let (width, height) = (self.columns.len(), self.rows.len());
        let [columns, rows] = above.picture.axes();
        let columns = self.columns.between(columns, above.column);
        let rows = self.rows.between(rows, above.row);
        let wide = above.picture.across();
        for (row, &(top, down)) in rows.iter().enumerate() {
            let is_inside = (BORDER..BORDER + height).contains(&row);
            for (column, &(left, right)) in columns.iter().enumerate() {
                if is_inside && (BORDER..BORDER + width).contains(&column) {
                    continue;
                }
                let along = |row: usize| {
                    let line = &above.picture.values[row * wide + left..][..2];
                    line[0] + right * (line[1] - line[0])
                };
                let (upper, lower) = (along(top), along(top + 1));
                self.values[row * across + column] = upper + down * (lower - upper);
            }
        }
    }

    /// The heights where an overview has its pixels, so many levels above the finest of its storey.
    pub(crate) fn shown(&self, depth: u8, transform: Transform) -> Vec<f64> {
        let taps = taps(0.5 - 0.5 / 2_f64.powi(depth.into()), transform);
        let across = self.across();
        let (width, height) = (self.columns.len(), self.rows.len());
        let (misses, down) = (self.columns.misses(taps), self.rows.misses(taps));
        // Along rows, then along columns; the first tap is one before.
        let rows: Vec<f64> = self
            .values
            .chunks_exact(across)
            .flat_map(|line| line[BORDER - 1..].windows(taps.len()).zip(&misses))
            .map(|(four, miss)| {
                let moved: f64 = four.iter().zip(taps).map(|(value, tap)| value * tap).sum();
                moved + miss * (four[2] - four[1])
            })
            .collect();
        let mut shown = vec![0.0; width * height];
        for (row, line) in shown.chunks_exact_mut(width).enumerate() {
            let at = |tap: usize| &rows[(row + BORDER - 1 + tap) * width..][..width];
            for (tap, weight) in taps.into_iter().enumerate() {
                for (value, from) in line.iter_mut().zip(at(tap)) {
                    *value += weight * from;
                }
            }
            let pairs = at(1).iter().zip(at(2));
            for (value, (here, next)) in line.iter_mut().zip(pairs) {
                *value += down[row] * (next - here);
            }
        }
        shown
    }
}

/// Weights of the four pixels around a position between the middle two. The short lowpass of the 5/3 lets through more of
/// what an overview cannot hold, so half of them are a smoother kernel's: the cubic B-spline's.
fn taps(t: f64, transform: Transform) -> [f64; 4] {
    let [kernel, ..] = weights(t);
    if transform == Transform::Lossy {
        return kernel;
    }
    let smooth = [
        (1.0 - t).powi(3),
        3.0 * t.powi(3) - 6.0 * t * t + 4.0,
        -3.0 * t.powi(3) + 3.0 * t * t + 3.0 * t + 1.0,
        t.powi(3),
    ];
    std::array::from_fn(|tap| kernel[tap] / 2.0 + smooth[tap] / 12.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_context::Matrix;
    use terrane_format::TileId;

    /// A plane, with a position's coordinates in pixels of the finest level.
    fn plane(x: f64, y: f64) -> f64 {
        3.0 + 0.7 * x - 0.3 * y
    }

    /// The picture of a plane that a tile has, made of those of the tiles below it.
    fn picture(pyramid: &Pyramid, tile: LevelTile, transform: Transform) -> Matrix<f64> {
        let window = pyramid.window(tile).unwrap();
        let mut all = Matrix::new(window.width, window.height);
        if tile.level == 0 {
            for row in 0..window.height {
                for (column, value) in all.row_mut(row).iter_mut().enumerate() {
                    *value = plane((window.column + column) as f64, (window.row + row) as f64);
                }
            }
            return all;
        }
        for below in pyramid.tiles_below(tile, tile.level - 1) {
            // Large, so that the 5/3's rounding does not count.
            let large = picture(pyramid, below, transform).map(|height| height * 1e5);
            let ll = transform.forward(&large).unwrap().ll;
            let ll = ll.map(|value| value / 1e5 / transform.growth());
            let place = pyramid.window(below).unwrap();
            let (column, row) = (place.column / 2, place.row / 2);
            all.paste(&ll, column - window.column, row - window.row);
        }
        all
    }

    #[test]
    fn a_plane_lies_where_the_pixels_of_overviews_lie() {
        let pyramid = Pyramid::new(61, 50, 16, 3).unwrap();
        for transform in [Transform::Lossy, Transform::Lossless] {
            let extended = |tile: LevelTile, above: Option<Above>| {
                let axis = |is_rows: bool| {
                    let above = above.map(|above| {
                        let [columns, rows] = above.picture.axes();
                        if is_rows {
                            (rows, above.row)
                        } else {
                            (columns, above.column)
                        }
                    });
                    Axis::of(&pyramid, tile, transform, is_rows, above)
                };
                let picture = picture(&pyramid, tile, transform);
                Extended::new(&picture.values, [axis(false), axis(true)], above)
            };
            let at = |level, column, row| LevelTile {
                level,
                id: TileId { column, row },
            };
            let root = extended(at(2, 0, 0), None);
            let above = Above {
                picture: &root,
                column: 8,
                row: 8,
            };
            let below = extended(at(1, 1, 1), Some(above));
            for (shown, tile, size) in [
                (root.shown(2, transform), at(2, 0, 0), 4.0),
                (below.shown(1, transform), at(1, 1, 1), 2.0),
            ] {
                let window = pyramid.window(tile).unwrap();
                for (index, height) in shown.iter().enumerate() {
                    let middle = |index: usize| index as f64 * size + (size - 1.0) / 2.0;
                    let expected = plane(
                        middle(window.column + index % window.width),
                        middle(window.row + index / window.width),
                    );
                    assert!(
                        (height - expected).abs() < 1e-3,
                        "{size} {index}: {height} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_single_pixel_has_a_height() {
        let pyramid = Pyramid::new(1, 1, 16, 1).unwrap();
        let id = TileId { column: 0, row: 0 };
        let axis = || {
            Axis::of(
                &pyramid,
                LevelTile { level: 0, id },
                Transform::Lossy,
                true,
                None,
            )
        };
        let picture = Extended::new(&[7.0], [axis(), axis()], None);
        assert_eq!(picture.shown(3, Transform::Lossy), [7.0]);
    }
}
