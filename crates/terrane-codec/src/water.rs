//! Which pixels are water: connected ones of one height, at least so many of them.
//!
//! Whether a pixel is water depends on the raster alone, however it is divided into tiles, trees and shards. Areas are
//! counted tree by tree. A small one at the border of a tree is followed beyond it until it is complete or large enough, so
//! never farther than so many pixels from the tree.

use std::collections::HashSet;

use terrane_format::Window;

use crate::Error;
use crate::encode::Heights;

/// Connected pixels of one height that are water.
const LEAST: u32 = 1024;
/// How far beyond a tree heights matter: as far as a small area goes.
pub(crate) const REACH: usize = LEAST as usize;
/// Pixels around a tree that are read at once: few small areas go farther.
const RING: usize = 32;
/// Pixels across of what is read farther away, where an area leads there.
const BLOCK: usize = 256;

/// A tree's place in a raster, and the heights around it.
pub(crate) struct Around<'a> {
    /// Columns and rows of the raster.
    pub(crate) size: [usize; 2],
    pub(crate) window: Window,
    pub(crate) heights: &'a mut dyn Heights,
}

/// The water among heights, which may go on around them; `None` where there is none.
pub(crate) fn find(
    heights: &[f64],
    width: usize,
    around: Option<Around>,
) -> Result<Option<Vec<bool>>, Error> {
    let mut areas = Areas::of(heights, width);
    if let Some(around) = around {
        let mut seen = HashSet::new();
        let mut border = around.border();
        border.retain(|&pixel| {
            let area = areas.of_pixel(pixel);
            areas.counts[area] < LEAST && !heights[pixel].is_nan() && seen.insert(area)
        });
        let mut known = Known::new(heights, around, !border.is_empty())?;
        for pixel in border {
            if known.is_water(pixel)? {
                let area = areas.of_pixel(pixel);
                areas.counts[area] = LEAST;
            }
        }
    }
    if areas.counts.iter().all(|&count| count < LEAST) {
        return Ok(None);
    }
    let water = (0..heights.len()).map(|pixel| {
        let area = areas.of_pixel(pixel);
        areas.counts[area] >= LEAST
    });
    Ok(Some(water.collect()))
}

/// The areas of one height of a grid, as a forest of pixels.
struct Areas {
    /// Another pixel of the same area, or of its root itself.
    above: Vec<u32>,
    /// Pixels of an area, at its root.
    counts: Vec<u32>,
}

impl Areas {
    fn of(heights: &[f64], width: usize) -> Self {
        let mut areas = Self {
            above: (0..heights.len() as u32).collect(),
            counts: vec![1; heights.len()],
        };
        for pixel in 0..heights.len() {
            if pixel % width > 0 && heights[pixel - 1] == heights[pixel] {
                areas.join(pixel - 1, pixel);
            }
            if pixel >= width && heights[pixel - width] == heights[pixel] {
                areas.join(pixel - width, pixel);
            }
        }
        areas
    }

    /// The root of a pixel's area.
    fn of_pixel(&mut self, mut pixel: usize) -> usize {
        while self.above[pixel] as usize != pixel {
            self.above[pixel] = self.above[self.above[pixel] as usize];
            pixel = self.above[pixel] as usize;
        }
        pixel
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of_pixel(a), self.of_pixel(b));
        if a == b {
            return;
        }
        let (large, small) = if self.counts[a] < self.counts[b] {
            (b, a)
        } else {
            (a, b)
        };
        self.above[small] = large as u32;
        self.counts[large] += self.counts[small];
    }
}

impl Around<'_> {
    /// The pixels of the window, counted in it, beyond which the raster goes on.
    fn border(&self) -> Vec<usize> {
        let Window {
            column,
            row,
            width,
            height,
        } = self.window;
        let [columns, rows] = self.size;
        let mut border = Vec::new();
        if row > 0 {
            border.extend(0..width);
        }
        if row + height < rows {
            border.extend((height - 1) * width..height * width);
        }
        if column > 0 {
            border.extend((0..height).map(|row| row * width));
        }
        if column + width < columns {
            border.extend((0..height).map(|row| row * width + width - 1));
        }
        border
    }

    /// What lies around the window: above, below, left and right.
    fn ring(&self) -> [Option<Window>; 4] {
        let Window {
            column,
            row,
            width,
            height,
        } = self.window;
        let [columns, rows] = self.size;
        let (left, top) = (column.min(RING), row.min(RING));
        let right = (columns - column - width).min(RING);
        let bottom = (rows - row - height).min(RING);
        let window = |column, row, width, height| {
            (width > 0 && height > 0).then_some(Window {
                column,
                row,
                width,
                height,
            })
        };
        [
            window(column - left, row - top, left + width + right, top),
            window(column - left, row + height, left + width + right, bottom),
            window(column - left, row, left, height),
            window(column + width, row, right, height),
        ]
    }
}

/// The heights of a tree, and those around it that were read.
struct Known<'a, 'b> {
    tree: &'a [f64],
    around: Around<'b>,
    others: Vec<(Window, Vec<f64>)>,
}

impl<'a, 'b> Known<'a, 'b> {
    fn new(tree: &'a [f64], around: Around<'b>, has_ring: bool) -> Result<Self, Error> {
        let mut known = Self {
            tree,
            around,
            others: Vec::new(),
        };
        let ring = known.around.ring().into_iter().flatten();
        for window in ring.filter(|_| has_ring) {
            known.read(window)?;
        }
        Ok(known)
    }

    fn read(&mut self, window: Window) -> Result<(), Error> {
        let heights = self.around.heights.read_around(window)?;
        self.others.push((window, heights));
        Ok(())
    }

    fn height(&mut self, [column, row]: [usize; 2]) -> Result<f64, Error> {
        let index = |window: &Window| {
            let (column, row) = (
                column.checked_sub(window.column)?,
                row.checked_sub(window.row)?,
            );
            (column < window.width && row < window.height).then(|| row * window.width + column)
        };
        if let Some(index) = index(&self.around.window) {
            return Ok(self.tree[index]);
        }
        loop {
            let mut others = self.others.iter();
            let found = others.find_map(|(window, heights)| Some(heights[index(window)?]));
            if let Some(height) = found {
                return Ok(height);
            }
            let [columns, rows] = self.around.size;
            let (first, top) = (column / BLOCK * BLOCK, row / BLOCK * BLOCK);
            self.read(Window {
                column: first,
                row: top,
                width: BLOCK.min(columns - first),
                height: BLOCK.min(rows - top),
            })?;
        }
    }

    /// Whether a pixel of the tree belongs to water.
    fn is_water(&mut self, pixel: usize) -> Result<bool, Error> {
        let Window {
            column, row, width, ..
        } = self.around.window;
        let [columns, rows] = self.around.size;
        let start = [column + pixel % width, row + pixel / width];
        let height = self.height(start)?;
        let mut area = vec![start];
        let mut seen = HashSet::from([start]);
        let mut next = 0;
        while let Some(&[column, row]) = area.get(next) {
            next += 1;
            let neighbours = [
                (column > 0).then(|| [column - 1, row]),
                (row > 0).then(|| [column, row - 1]),
                (column + 1 < columns).then_some([column + 1, row]),
                (row + 1 < rows).then_some([column, row + 1]),
            ];
            for pixel in neighbours.into_iter().flatten() {
                if !seen.contains(&pixel) && self.height(pixel)? == height {
                    seen.insert(pixel);
                    area.push(pixel);
                }
            }
            if area.len() >= LEAST as usize {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The water of a window of a raster, found with the heights around it.
    fn of_window(raster: &[f64], width: usize, window: Window) -> Vec<bool> {
        let cut = |window: Window| -> Vec<f64> {
            let rows = raster.chunks(width).skip(window.row).take(window.height);
            rows.flat_map(|row| &row[window.column..window.column + window.width])
                .copied()
                .collect()
        };
        let heights = cut(window);
        let mut read = |window: Window| Ok(cut(window));
        let around = Around {
            size: [width, raster.len() / width],
            window,
            heights: &mut read,
        };
        let found = find(&heights, window.width, Some(around)).unwrap();
        found.unwrap_or_else(|| vec![false; heights.len()])
    }

    /// Whether each window of a raster has the water that the raster has there.
    fn agrees(raster: &[f64], width: usize, side: usize) {
        let whole = find(raster, width, None).unwrap();
        let whole = whole.unwrap_or_else(|| vec![false; raster.len()]);
        let height = raster.len() / width;
        for row in (0..height).step_by(side) {
            for column in (0..width).step_by(side) {
                let window = Window {
                    column,
                    row,
                    width: side.min(width - column),
                    height: side.min(height - row),
                };
                let part = of_window(raster, width, window);
                for (index, &is_water) in part.iter().enumerate() {
                    let (x, y) = (column + index % window.width, row + index / window.width);
                    assert_eq!(is_water, whole[y * width + x], "{x} {y} of {window:?}");
                }
            }
        }
    }

    #[test]
    fn water_does_not_depend_on_where_a_raster_is_cut() {
        let mut random = Random::new(7, 0);
        for levels in [2.0, 3.0, 5.0, 40.0] {
            let (width, height) = (231, 187);
            // Blobs of all sizes, also with gaps.
            let waves: Vec<[f64; 3]> = (0..6)
                .map(|_| [random.unit(), random.unit(), 7.0 * random.unit()])
                .collect();
            let raster: Vec<f64> = (0..width * height)
                .map(|index| {
                    let (x, y) = ((index % width) as f64, (index / width) as f64);
                    let sum: f64 = waves
                        .iter()
                        .map(|[a, b, c]| (a * x / 3.0 + b * y / 4.0 + c).sin())
                        .sum();
                    if sum.abs() < 0.05 {
                        f64::NAN
                    } else {
                        (sum * levels).floor()
                    }
                })
                .collect();
            for side in [16, 50, 128] {
                agrees(&raster, width, side);
            }
        }
    }

    #[test]
    fn a_river_is_followed_far_beyond_a_tree() {
        // One pixel wide, and of 1023 or 1024 pixels; windows hold a few of them each.
        let width = 1100;
        for length in [1023, 1024] {
            let mut raster: Vec<f64> = (0..width * 40).map(|index| index as f64).collect();
            for pixel in &mut raster[width * 20 + 30..][..length] {
                *pixel = -7.0;
            }
            let water = find(&raster, width, None).unwrap();
            assert_eq!(water.is_some(), length == 1024);
            agrees(&raster, width, 64);
        }
    }
}
