//! A part of a level put together from blocks, and the continuous surface through it.

use std::sync::Arc;

use terrane_codec::format::{LevelTile, TileId, Window};
use terrane_codec::kernel::PixelJet;
use terrane_codec::pixels::Pixels;

use super::TileError;
use super::blocks::{Block, Blocks};
use super::error::Result;
use super::warp::PixelPosition;

/// Pixels around the asked ones.
const MARGIN: isize = Pixels::<f32>::MARGIN.cast_signed();
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
    pixels: Pixels<f32>,
    /// Pixels of full resolution across one of the level.
    scale: f64,
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
        let tiling = blocks.tiling(level);
        let inside = |start: isize, length: usize, size: usize| {
            let end = (start + length.cast_signed()).clamp(0, size.cast_signed());
            start.max(0).cast_unsigned()..end.cast_unsigned()
        };
        let columns = inside(left, width, tiling.width);
        let rows = inside(top, height, tiling.height);
        let mut pixels = Pixels::missing(tiling, left, top, width, height);
        let side = blocks.side();
        let mut pending = None;
        for row in rows.start / side..rows.end.div_ceil(side) {
            for column in columns.start / side..columns.end.div_ceil(side) {
                let id = TileId { column, row };
                let tile = LevelTile { level, id };
                let block = match read(tile) {
                    // All that is to be read should be known at once.
                    Err(error) if error.is_pending() => {
                        pending = Some(error);
                        None
                    }
                    outcome => outcome?,
                };
                if let Some(block) = block {
                    let window = Window {
                        width: block.width,
                        ..blocks.window(tile)
                    };
                    pixels.paste(window, &block.heights, block.missing.as_deref());
                }
            }
        }
        pending.map_or(Ok(Some(Self { pixels, scale })), Err)
    }

    /// The pixels themselves, in which positions count pixels of the level.
    pub(super) fn pixels(&self) -> &Pixels<f32> {
        &self.pixels
    }

    /// The surface at a position in pixels of full resolution, derivatives per pixel of full resolution; `None` where there
    /// is no data.
    pub(super) fn jet(&self, position: PixelPosition) -> Option<PixelJet> {
        let jet = self
            .pixels
            .jet(position[0] / self.scale, position[1] / self.scale)?;
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
        self.pixels
            .height(position[0] / self.scale, position[1] / self.scale)
    }

    /// The pixel of the level at a position in pixels of full resolution; `None` outside the raster.
    pub(super) fn pixel(&self, position: PixelPosition) -> Option<(usize, usize)> {
        let [column, row] = position.map(|at| at / self.scale);
        self.pixels.tiling().pixel(column, row)
    }

    /// The height of a pixel of the level itself; `None` where there is no data.
    pub(super) fn pixel_height(&self, pixel: (usize, usize)) -> Option<f64> {
        self.pixels.centre(pixel)
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
    use crate::{Settings, Target, fixture};
    use terrane_codec::format::Method;
    use terrane_geo::{Affine, Crs, Georeference, Grid, MemoryRaster, SampleType, Storage};

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
            fixture::write(&raster, &settings, &path);
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
