//! A part of a level put together from blocks, and the continuous surface through it.

use std::convert::Infallible;
use std::sync::Arc;

use terrane_codec::format::{LevelTile, TileId};
use terrane_codec::kernel::{PixelJet, interpolate_4x4, interpolate_4x4_height};
use terrane_codec::tiling::Tiling;

use super::TileError;
use super::blocks::{Block, Blocks};
use super::error::Result;
use super::warp::PixelPosition;

/// Pixels around the asked ones: the kernel needs two, and what continues it beyond the data looks one further.
const MARGIN: isize = 4;
/// No patch has more pixels: a level is chosen so that a tile takes a few hundred across, wherever the file lies.
const MAX_PIXELS: usize = 1 << 22;

/// Whether a part of a level is small enough to be put together.
pub(super) fn is_small(width: usize, height: usize) -> bool {
    let margins = 2 * MARGIN.cast_unsigned() + 1;
    width
        .saturating_add(margins)
        .saturating_mul(height.saturating_add(margins))
        <= MAX_PIXELS
}

/// Reads a block; `None` where it has no data.
type Read<'a> = dyn FnMut(LevelTile) -> Result<Option<Arc<Block>>> + 'a;

/// Pixels of one level around some positions.
pub(super) struct Patch {
    left: isize,
    top: isize,
    width: usize,
    height: usize,
    /// Heights of tiles with data; NaN outside.
    heights: Vec<f32>,
    /// Pixels that have data themselves.
    is_valid: Vec<bool>,
    /// Pixels of full resolution across one of the level.
    scale: f64,
    tiling: Tiling,
}

impl Patch {
    /// The pixels around positions, which are given in pixels of full resolution; `None` where none meets the raster.
    pub(super) fn around(
        blocks: &Blocks,
        level: u8,
        positions: &[PixelPosition],
        read: &mut Read,
    ) -> Result<Option<Self>> {
        let scale = f64::from(1_u32 << level);
        let size = blocks.size(level);
        let Some([left, top, right, bottom]) = span(positions, scale, size) else {
            return Ok(None);
        };
        let (left, top) = (left - MARGIN, top - MARGIN);
        let width = (right + MARGIN + 1 - left).cast_unsigned();
        let height = (bottom + MARGIN + 1 - top).cast_unsigned();
        if width.saturating_mul(height) > MAX_PIXELS {
            return Err(TileError::TooCoarse);
        }
        let mut patch = Self {
            left,
            top,
            width,
            height,
            heights: vec![f32::NAN; width * height],
            is_valid: vec![false; width * height],
            scale,
            tiling: blocks.tiling(level),
        };
        patch.paste(blocks, level, read)?;
        Ok(Some(patch))
    }

    fn paste(&mut self, blocks: &Blocks, level: u8, read: &mut Read) -> Result<()> {
        let side = blocks.side();
        let inside = |start: isize, length: usize, size: usize| {
            let end = (start + length.cast_signed()).clamp(0, size.cast_signed());
            start.max(0).cast_unsigned()..end.cast_unsigned()
        };
        let columns = inside(self.left, self.width, self.tiling.width);
        let rows = inside(self.top, self.height, self.tiling.height);
        for block_row in rows.start / side..rows.end.div_ceil(side) {
            for block_column in columns.start / side..columns.end.div_ceil(side) {
                let id = TileId {
                    column: block_column,
                    row: block_row,
                };
                let tile = LevelTile { level, id };
                let Some(block) = read(tile)? else {
                    continue;
                };
                let window = blocks.window(tile);
                let from = columns.start.max(window.column);
                let to = columns.end.min(window.column + window.width);
                for row in rows.start.max(window.row)..rows.end.min(window.row + window.height) {
                    let source = (row - window.row) * block.width + from - window.column;
                    let target = (row.cast_signed() - self.top).cast_unsigned() * self.width
                        + (from.cast_signed() - self.left).cast_unsigned();
                    let count = to - from;
                    let heights = &block.heights[source..source + count];
                    self.heights[target..target + count].copy_from_slice(heights);
                    for index in 0..count {
                        let is_missing = block
                            .missing
                            .as_ref()
                            .is_some_and(|missing| missing[source + index]);
                        self.is_valid[target + index] = !is_missing;
                    }
                }
            }
        }
        Ok(())
    }

    /// The surface at a position in pixels of full resolution, derivatives per pixel of full resolution; `None` where there
    /// is no data.
    pub(super) fn jet(&self, position: PixelPosition) -> Option<PixelJet> {
        let (column, row) = self.valid(position)?;
        let jet = match self.samples(column, row) {
            Some((samples, x, y)) => interpolate_4x4(&samples, x, y),
            None => self.beside_data(column, row)?,
        };
        let (first, second) = (1.0 / self.scale, 1.0 / (self.scale * self.scale));
        Some(PixelJet {
            value: jet.value,
            x: jet.x * first,
            y: jet.y * first,
            xx: jet.xx * second,
            xy: jet.xy * second,
            yy: jet.yy * second,
        })
    }

    /// The height at a position in pixels of full resolution; `None` where there is no data.
    pub(super) fn height(&self, position: PixelPosition) -> Option<f64> {
        let (column, row) = self.valid(position)?;
        match self.samples(column, row) {
            Some((samples, x, y)) => Some(interpolate_4x4_height(&samples, x, y)),
            None => Some(self.beside_data(column, row)?.value),
        }
    }

    /// The pixel of the level at a position in pixels of full resolution; `None` outside the raster.
    pub(super) fn pixel(&self, position: PixelPosition) -> Option<(usize, usize)> {
        let [column, row] = position.map(|at| at / self.scale);
        self.tiling.pixel(column, row)
    }

    /// The height of a pixel of the level itself; `None` where there is no data.
    pub(super) fn pixel_height(&self, pixel: (usize, usize)) -> Option<f64> {
        let is_valid = *self.is_valid.get(self.index(pixel)?)?;
        is_valid.then(|| self.known(pixel)).flatten()
    }

    /// The position in pixels of the level; `None` where there is no data.
    fn valid(&self, position: PixelPosition) -> Option<(f64, f64)> {
        let (column, row) = (position[0] / self.scale, position[1] / self.scale);
        let pixel = self.tiling.pixel(column, row)?;
        self.is_valid[self.index(pixel)?].then_some((column, row))
    }

    fn index(&self, (column, row): (usize, usize)) -> Option<usize> {
        let column = usize::try_from(column.cast_signed() - self.left).ok()?;
        let row = usize::try_from(row.cast_signed() - self.top).ok()?;
        (column < self.width && row < self.height).then_some(row * self.width + column)
    }

    /// The height at a pixel centre; `None` where its tile has no data.
    fn known(&self, pixel: (usize, usize)) -> Option<f64> {
        let height = self.heights[self.index(pixel)?];
        (!height.is_nan()).then_some(height.into())
    }

    /// The 4×4 heights around a position, and where it lies between the middle ones; `None` where one of them is beyond
    /// the data. The tiles of all of them have the same surface there, so that nothing needs to be blended.
    fn samples(&self, column: f64, row: f64) -> Option<([[f64; 4]; 4], f64, f64)> {
        let (column, row) = (column - 0.5, row - 0.5);
        let (left, top) = (column.floor(), row.floor());
        let start = (left as isize - 1 - self.left).cast_unsigned()
            + (top as isize - 1 - self.top).cast_unsigned() * self.width;
        let samples = [0, 1, 2, 3].map(|tap_row| {
            let from = start + tap_row * self.width;
            let row = &self.heights[from..from + 4];
            [row[0], row[1], row[2], row[3]].map(f64::from)
        });
        let is_complete = !samples.as_flattened().iter().any(|height| height.is_nan());
        is_complete.then_some((samples, column - left, row - top))
    }

    /// The surface where the kernel reaches beyond the data.
    fn beside_data(&self, column: f64, row: f64) -> Option<PixelJet> {
        let pixel = self.tiling.pixel(column, row)?;
        let blended = self.tiling.blend(column, row, |tile| {
            let window = self.tiling.window(tile);
            let nearest = (
                pixel
                    .0
                    .clamp(window.column, window.column + window.width - 1),
                pixel.1.clamp(window.row, window.row + window.height - 1),
            );
            if self.known(nearest).is_none() {
                return Ok(None);
            }
            let known = |column, row| Ok::<_, Infallible>(self.known((column, row)));
            self.tiling.kernel(tile, column, row, known).map(Some)
        });
        let Ok(jet) = blended;
        jet
    }
}

/// First column and row and last column and row of the level's pixels that the positions inside the raster meet.
fn span(positions: &[PixelPosition], scale: f64, size: (usize, usize)) -> Option<[isize; 4]> {
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for position in positions {
        let at = [position[0] / scale, position[1] / scale];
        let is_inside =
            (0.0..=size.0 as f64).contains(&at[0]) && (0.0..=size.1 as f64).contains(&at[1]);
        if is_inside {
            for axis in 0..2 {
                low[axis] = low[axis].min(at[axis]);
                high[axis] = high[axis].max(at[axis]);
            }
        }
    }
    (low[0] <= high[0]).then(|| {
        [
            low[0] as isize,
            low[1] as isize,
            high[0] as isize,
            high[1] as isize,
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Destination, Settings, Target, encode};
    use terrane_codec::Resources;
    use terrane_codec::format::Method;
    use terrane_geo::{
        Affine, Crs, Existing, Georeference, Grid, Kind, MemoryRaster, Output, SampleType, Storage,
    };

    const SIDE: usize = 64;
    const SIZE: (usize, usize) = (200, 150);

    /// Hills with a gap inside a tile, a tile without data, and last tiles of 8 columns and 22 rows.
    fn hills() -> Grid {
        let mut grid = Grid::missing(SIZE.0, SIZE.1);
        for (index, height) in grid.heights.iter_mut().enumerate() {
            let (column, row) = (index % SIZE.0, index / SIZE.0);
            let (x, y) = (column as f64, row as f64);
            let is_gap = (x - 30.0).hypot(y - 100.0) < 9.5;
            let is_absent = column / SIDE == 1 && row / SIDE == 1;
            if !is_gap && !is_absent {
                *height =
                    431.0 + 12.0 * (x / 21.0).sin() * (y / 17.0).cos() + 3.0 * (x / 5.0).sin();
            }
        }
        grid
    }

    /// Positions inside tiles, along their borders, beside gaps, and up to the edges of the raster.
    fn positions() -> Vec<PixelPosition> {
        let (width, height) = (SIZE.0 as f64, SIZE.1 as f64);
        let mut positions = Vec::new();
        let columns = [
            0.0, 0.3, 30.2, 63.6, 64.0, 64.4, 127.9, 128.0, 128.3, 192.2, 199.7, width,
        ];
        let rows = [
            0.0, 0.2, 20.1, 63.7, 64.0, 64.2, 90.4, 109.8, 127.6, 128.0, 128.4, 149.9, height,
        ];
        for column in columns {
            for row in rows {
                positions.push([column, row]);
            }
        }
        for step in 0..400 {
            let angle = f64::from(step) * 0.0157;
            let radius = 9.0 + 1.5 * f64::from(step % 7) / 7.0;
            positions.push([30.5 + radius * angle.cos(), 100.5 + radius * angle.sin()]);
        }
        positions
    }

    #[test]
    fn heights_and_slopes_are_those_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        for method in [Method::Context, Method::Integers] {
            let georeference = Georeference::new(
                Affine::north_up(2_600_000.0, 1_200_000.0, 2.0),
                Crs::projected(2056, None),
            );
            let storage = Storage::metres(SampleType::F32, Some(-9999.0));
            let raster = MemoryRaster::new("hills", hills(), georeference, storage);
            let path = folder.path().join("hills.trn");
            let settings = Settings {
                method: Some(method),
                tile: Some(SIDE as u16),
                target: Target::MaxError(0.05),
                ..Settings::default()
            };
            let destination = Destination {
                out: Output::new(&path, Existing::Replace, Kind::Any),
                resumable: None,
                resources: Resources::default(),
            };
            let prepared = settings.prepare(destination.resources.memory).unwrap();
            encode(&raster, &prepared, destination, &mut |_| Ok(())).unwrap();
            let terrain = Arc::new(crate::open(&path).unwrap());
            let surface = terrain.surface().unwrap();
            let blocks = Blocks::of_terrain(terrain.clone()).unwrap();
            let positions = positions();
            let mut read = |tile| Ok(blocks.read(tile)?.map(Arc::new));
            let patch = Patch::around(&blocks, 0, &positions, &mut read);
            let patch = patch.unwrap().unwrap();
            let mut compared = 0;
            for position in positions {
                let [column, row] = position;
                let expected = surface.height_at_pixel(column, row).unwrap();
                assert_eq!(patch.height(position).is_some(), expected.is_some());
                let Some(expected) = expected else {
                    continue;
                };
                let height = patch.height(position).unwrap();
                let jet = patch.jet(position).unwrap();
                // A 32-bit float of 431 m is off by 15 µm; extrapolating takes a few of them together.
                let tolerance = 2e-4;
                assert!(
                    (height - expected).abs() < tolerance,
                    "{method:?} {position:?}: {height} {expected}"
                );
                assert!((jet.value - expected).abs() < tolerance);
                let sample = surface
                    .at(2_600_000.0 + 2.0 * column, 1_200_000.0 - 2.0 * row)
                    .unwrap();
                assert!((jet.x / 2.0 - sample.gradient[0]).abs() < 10.0 * tolerance);
                compared += 1;
            }
            assert!(compared > 300, "{compared}");
        }
    }
}
