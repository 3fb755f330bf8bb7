//! A file at any pixel size: finer ones sample the surface, coarser ones take means of what they cover.

use std::ops::Range;

use terrane_format::Window;

use crate::Error;
use crate::parallel::by_blocks;
use crate::terrain::Terrain;

/// Rows that are made at a time at least.
const MIN_ROWS: usize = 16;

/// A part of a file with pixels of another size.
#[derive(Debug)]
pub struct Resampled<'a> {
    terrain: &'a Terrain,
    window: Window,
    /// Pixels of the file across and down each one.
    factors: [f64; 2],
    width: usize,
    height: usize,
    /// The overview that means are taken of.
    level: u8,
}

impl<'a> Resampled<'a> {
    /// A window of the raster with pixels so many times as wide and as high, from the window's corner.
    pub fn new(terrain: &'a Terrain, window: Window, factors: [f64; 2]) -> Result<Self, Error> {
        let count = |size: usize, factor: f64| (size as f64 / factor - 1e-9).ceil().max(1.0);
        let (width, height) = (
            count(window.width, factors[0]),
            count(window.height, factors[1]),
        );
        let is_size = |factor: &f64| *factor > 0.0 && factor.is_finite();
        if !factors.iter().all(is_size) || width * height > 1e11 {
            return Err(Error::Setting {
                what: "the pixel size",
                must: "a sensible part of the raster",
                value: format!("{} by {} pixels", factors[0], factors[1]),
            });
        }
        let levels = terrain.header().pyramid.levels();
        // Some pixels across each mean, so that parts of pixels matter little.
        let level = (factors[0].min(factors[1]) / 4.0)
            .log2()
            .floor()
            .clamp(0.0, f64::from(levels - 1)) as u8;
        Ok(Self {
            terrain,
            window,
            factors,
            width: width as usize,
            height: height as usize,
            level,
        })
    }

    /// Whether each height is a mean of what its pixel covers, and not a point of the surface.
    fn is_mean(&self) -> bool {
        self.factors[0] * self.factors[1] > 1.0
    }

    /// Whether each height is a mean of heights of full resolution, by the parts of their pixels that it covers: then it is
    /// no farther off the mean of the source's than those are. An overview has no bound.
    pub fn is_bounded(&self) -> bool {
        self.is_mean() && self.level == 0
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Rows that are best made at a time. Means decode the tiles below them at every call, so they are those of a row of
    /// tiles; a surface keeps its tiles.
    pub fn strip_rows(&self) -> usize {
        if !self.is_mean() {
            return MIN_ROWS;
        }
        let side = f64::from(self.terrain.header().pyramid.side());
        let rows = side * f64::from(1_u32 << self.level) / self.factors[1];
        (rows as usize).max(MIN_ROWS)
    }

    /// Some rows of heights; NaN where there is no data.
    pub fn rows(&self, rows: Range<usize>, jobs: usize) -> Result<Vec<f64>, Error> {
        if self.is_mean() {
            return self.means(rows, jobs);
        }
        let surface = self.terrain.surface()?;
        let (first_column, first_row) = (self.window.column as f64, self.window.row as f64);
        let side = f64::from(self.terrain.header().pyramid.side());
        let wide = ((side / self.factors[0]) as usize).max(1);
        by_blocks(self.width, rows, wide, jobs, &|column, row| {
            let x = first_column + (column as f64 + 0.5) * self.factors[0];
            let y = first_row + (row as f64 + 0.5) * self.factors[1];
            Ok(surface.height_at_pixel(x, y)?.unwrap_or(f64::NAN))
        })
    }

    /// Means over what each pixel covers of the overview, parts of pixels counted as parts.
    fn means(&self, rows: Range<usize>, jobs: usize) -> Result<Vec<f64>, Error> {
        let scale = f64::from(1_u32 << self.level);
        let (level_width, level_height) = self
            .terrain
            .header()
            .pyramid
            .size(self.level)
            .unwrap_or_default();
        let [across, down] = self.factors;
        let span = |start: f64, index: usize, factor: f64, size: u32| {
            let from = (start + index as f64 * factor) / scale;
            let to = ((start + (index + 1) as f64 * factor) / scale).min(f64::from(size));
            (from, to.max(from))
        };
        let (top, _) = span(self.window.row as f64, rows.start, down, level_height);
        let (_, bottom) = span(self.window.row as f64, rows.end - 1, down, level_height);
        let (left, _) = span(self.window.column as f64, 0, across, level_width);
        let (_, right) = span(
            self.window.column as f64,
            self.width - 1,
            across,
            level_width,
        );
        let end = |value: f64, first: usize, size: u32| {
            ((value - 1e-9).ceil() as usize).clamp(first + 1, size as usize)
        };
        let (column, row) = (
            (left as usize).min(level_width as usize - 1),
            (top as usize).min(level_height as usize - 1),
        );
        let window = Window {
            column,
            row,
            width: end(right, column, level_width) - column,
            height: end(bottom, row, level_height) - row,
        };
        let heights = self.terrain.read_with(self.level, window, jobs)?;
        let row_means = |row: usize| -> Result<Vec<f64>, Error> {
            let vertical = weights(
                span(self.window.row as f64, row, down, level_height),
                window.row,
                window.height,
            );
            Ok((0..self.width)
                .map(|column| {
                    let horizontal = weights(
                        span(self.window.column as f64, column, across, level_width),
                        window.column,
                        window.width,
                    );
                    let (mut sum, mut whole) = (0.0, 0.0);
                    for &(row, y) in &vertical {
                        for &(column, x) in &horizontal {
                            let height = heights[row * window.width + column];
                            if !height.is_nan() {
                                sum += x * y * height;
                                whole += x * y;
                            }
                        }
                    }
                    if whole > 0.0 { sum / whole } else { f64::NAN }
                })
                .collect())
        };
        Ok(rows.map(row_means).collect::<Result<Vec<_>, _>>()?.concat())
    }
}

/// Pixels that a span covers, from the first of a window, and how much of each.
fn weights((from, to): (f64, f64), first: usize, count: usize) -> Vec<(usize, f64)> {
    let mut weights = Vec::new();
    let mut index = (from as usize).max(first);
    while index < first + count && (index as f64) < to {
        let covered = to.min((index + 1) as f64) - from.max(index as f64);
        if covered > 1e-9 {
            weights.push((index - first, covered));
        }
        index += 1;
    }
    weights
}
