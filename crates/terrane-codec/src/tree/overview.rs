//! Where the pixels of an overview lie.
//!
//! The coarse pictures of the wavelet have their pixels on the even ones of the finer picture. Everybody expects the pixels
//! of an overview in the middle of those that they cover: by the surface through the picture they are moved there, a quarter of
//! a pixel for the first overview and nearly half for the next ones. Beyond a tile's border the picture of the tile above
//! says how the ground goes on, so that no tile needs its neighbours.

use crate::kernel::weights;

/// Pixels around a picture.
const BORDER: usize = 2;

/// A picture in metres, with what lies around it.
#[derive(Debug)]
pub(crate) struct Extended {
    width: usize,
    height: usize,
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

impl Extended {
    /// A picture below another, or at the top of its tree, where it goes on straight.
    pub(crate) fn new(heights: &[f64], width: usize, above: Option<Above>) -> Self {
        let height = heights.len() / width.max(1);
        let across = width + 2 * BORDER;
        let mut extended = Self {
            width,
            height,
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

    fn across(&self) -> usize {
        self.width + 2 * BORDER
    }

    fn go_on_straight(&mut self) {
        let across = self.across();
        for row in BORDER..BORDER + self.height {
            let line = &mut self.values[row * across..][..across];
            straight(line.len(), |index| index, line);
        }
        let down = self.height + 2 * BORDER;
        for column in 0..across {
            straight(down, |index| index * across + column, &mut self.values);
        }
    }

    fn go_on_below(&mut self, above: Above) {
        let across = self.across();
        // A pixel of the tile above lies on every second one; in between, the mean of its neighbours.
        let pair = |index: usize, start: usize| {
            let first = start + BORDER + index / 2 - BORDER / 2;
            [first, first + index % 2]
        };
        let wide = above.picture.across();
        for row in 0..self.height + 2 * BORDER {
            let is_inside = (BORDER..BORDER + self.height).contains(&row);
            let [top, bottom] = pair(row, above.row);
            for column in 0..across {
                if is_inside && (BORDER..BORDER + self.width).contains(&column) {
                    continue;
                }
                let [left, right] = pair(column, above.column);
                let at = |row: usize, column: usize| above.picture.values[row * wide + column];
                let sum = at(top, left) + at(top, right) + at(bottom, left) + at(bottom, right);
                self.values[row * across + column] = sum / 4.0;
            }
        }
    }

    /// The heights where an overview has its pixels, so many levels above the finest of its storey.
    pub(crate) fn shown(&self, depth: u8) -> Vec<f64> {
        let shift = 0.5 - 0.5 / f64::from(depth).exp2();
        let [taps, ..] = weights(shift);
        let across = self.across();
        // Along rows, then along columns; the first tap is one before.
        let rows: Vec<f64> = self
            .values
            .chunks_exact(across)
            .flat_map(|line| line[BORDER - 1..].windows(taps.len()).take(self.width))
            .map(|four| four.iter().zip(taps).map(|(value, tap)| value * tap).sum())
            .collect();
        let mut shown = vec![0.0; self.width * self.height];
        for (row, line) in shown.chunks_exact_mut(self.width).enumerate() {
            for (tap, weight) in taps.into_iter().enumerate() {
                let from = &rows[(row + BORDER - 1 + tap) * self.width..][..self.width];
                for (value, from) in line.iter_mut().zip(from) {
                    *value += weight * from;
                }
            }
        }
        shown
    }
}

/// Continues a line on both sides by its last difference.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A plane, with a position's coordinates in pixels of the finest level.
    fn plane(x: f64, y: f64) -> f64 {
        3.0 + 0.7 * x - 0.3 * y
    }

    /// The coarse picture of a plane as the wavelet has it: pixels on the first of the ones they cover.
    fn picture(width: usize, height: usize, column: usize, row: usize, size: f64) -> Vec<f64> {
        (0..width * height)
            .map(|index| {
                let (x, y) = (column + index % width, row + index / width);
                plane(x as f64 * size, y as f64 * size)
            })
            .collect()
    }

    #[test]
    fn a_plane_lies_where_the_pixels_of_overviews_lie() {
        let root = Extended::new(&picture(9, 7, 0, 0, 4.0), 9, None);
        let above = Above {
            picture: &root,
            column: 4,
            row: 4,
        };
        let below = Extended::new(&picture(9, 5, 8, 8, 2.0), 9, Some(above));
        for (shown, width, [column, row], size) in [
            (root.shown(2), 9, [0, 0], 4.0),
            (below.shown(1), 9, [8, 8], 2.0),
        ] {
            for (index, height) in shown.iter().enumerate() {
                let middle =
                    |first: usize, index: usize| (first + index) as f64 * size + (size - 1.0) / 2.0;
                let expected = plane(middle(column, index % width), middle(row, index / width));
                assert!((height - expected).abs() < 1e-9, "{size} {index}");
            }
        }
    }

    #[test]
    fn a_single_pixel_has_a_height() {
        assert_eq!(Extended::new(&[7.0], 1, None).shown(3), [7.0]);
    }
}
