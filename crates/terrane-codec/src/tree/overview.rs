//! Where the pixels of an overview lie.
//!
//! The coarse pictures of the wavelet have their pixels on the even ones of the finer picture, and at the borders of tiles, where
//! the wavelet is mirrored, a little further inside. Everybody expects the pixels of an overview in the middle of those that they
//! cover: by the surface through the picture they are moved there, a quarter of a pixel for the first overview and nearly
//! half for the next ones. Beyond a tile's border the picture of the tile above says how the ground goes on, so that no tile
//! needs its neighbours; where the tree ends, it goes on straight.

use std::ops::Range;

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
    /// Pixels of the finest level that one covers, and the last that there is.
    size: f64,
    last: f64,
    /// Whether the tree has more before it, and after it.
    goes_on: [bool; 2],
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
        let tiles = count
            .div_ceil(side << depth)
            .min(1 << (root.level - tile.level));
        let inner = positions(transform, count, side, depth, tile_at);
        let end = BORDER + inner.len();
        let mut axis = Self {
            at: vec![0.0; end + BORDER],
            first: tile_at * side,
            size: 2_f64.powi(depth.into()),
            last: (count - 1) as f64,
            goes_on: [tile_at > 0, tile_at + 1 < tiles].map(|goes_on| goes_on && above.is_some()),
        };
        axis.at[BORDER..end].copy_from_slice(&inner);
        // By whole pixels: what lies above was mirrored where the tree ends, and may lie nearer, or even before.
        for distance in 1..=BORDER {
            let away = distance as f64 * axis.size;
            axis.at[BORDER - distance] = axis.at[BORDER] - away;
            axis.at[end - 1 + distance] = axis.at[end - 1] + away;
        }
        if let Some((above, start)) = above {
            let known = axis.known();
            for index in (known.start..BORDER).chain(end..known.end) {
                let [left, right] = pair(index, start);
                axis.at[index] = f64::midpoint(above.at[left], above.at[right]);
            }
        }
        axis
    }

    fn len(&self) -> usize {
        self.at.len() - 2 * BORDER
    }

    /// The places of the picture and of what the tile above says around it.
    fn known(&self) -> Range<usize> {
        let [before, after] = self.goes_on.map(|goes_on| if goes_on { 0 } else { BORDER });
        before..self.at.len() - after
    }

    /// For every known place the one of the line above that lies before it, and which part of the way to the next it is.
    fn between(&self, above: &Self, start: usize) -> Vec<(usize, f64)> {
        self.known()
            .map(|index| {
                let [first, _] = pair(index, start);
                let (from, to) = (above.at[first], above.at[first + 1]);
                (first, (self.at[index] - from) / (to - from))
            })
            .collect()
    }

    /// A line of a grid goes on straight, by its last two known values, where they end.
    fn go_on_straight(&self, values: &mut [f64], start: usize, stride: usize) {
        let place = |index: usize| start + index * stride;
        let known = self.known();
        let (first, last) = (known.start, known.end - 1);
        for index in (0..first).chain(known.end..self.at.len()) {
            let end = index.clamp(first, last);
            let next = if index < first {
                last.min(first + 1)
            } else {
                first.max(last - 1)
            };
            let value = values[place(end)];
            let part = if next == end {
                0.0
            } else {
                (self.at[index] - self.at[end]) / (self.at[next] - self.at[end])
            };
            values[place(index)] = value + part * (values[place(next)] - value);
        }
    }

    /// The middle of what a pixel of an overview covers: less at the raster's edge, so that nothing is said of what lies beyond.
    fn middle(&self, index: usize) -> f64 {
        let first = (self.first + index) as f64 * self.size;
        f64::midpoint(first, self.last.min(first + self.size - 1.0))
    }

    /// For every pixel of an overview how far the four around it, weighed, lie beside it, in differences of the two in
    /// the middle.
    fn misses(&self, taps: [f64; 4]) -> Vec<f64> {
        (0..self.len())
            .map(|index| {
                let four = &self.at[index + BORDER - 1..][..taps.len()];
                let lies: f64 = four.iter().zip(taps).map(|(at, tap)| at * tap).sum();
                (self.middle(index) - lies) / (four[2] - four[1])
            })
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
    /// A picture below another, or at the top of its tree.
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
        if let Some(above) = above {
            extended.go_on_below(above);
        }
        extended.go_on_straight();
        extended
    }

    /// Its columns and rows.
    pub(crate) fn axes(&self) -> [&Axis; 2] {
        [&self.columns, &self.rows]
    }

    fn across(&self) -> usize {
        self.columns.at.len()
    }

    /// As the picture above says, where its tree goes on.
    fn go_on_below(&mut self, above: Above) {
        let across = self.across();
        let (width, height) = (self.columns.len(), self.rows.len());
        let [columns, rows] = above.picture.axes();
        let columns = self.columns.between(columns, above.column);
        let rows = self.rows.between(rows, above.row);
        let wide = above.picture.across();
        for (row, (top, down)) in self.rows.known().zip(rows) {
            let is_inside = (BORDER..BORDER + height).contains(&row);
            for (column, &(left, right)) in self.columns.known().zip(&columns) {
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

    /// Where its tree ends: along rows, then along columns.
    fn go_on_straight(&mut self) {
        let across = self.across();
        for row in self.rows.known() {
            self.columns
                .go_on_straight(&mut self.values, row * across, 1);
        }
        for column in 0..across {
            self.rows.go_on_straight(&mut self.values, column, across);
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
mod tests;
