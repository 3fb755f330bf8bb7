//! A terrane file back to heights on a grid.

use std::ops::Range;

use terrane_codec::Terrain;
use terrane_codec::format::{ErrorBound, LevelTile, TileId, Window};
use terrane_codec::resample::Resampled;
use terrane_geo::{CogWriter, Georeference, Output, Storage, box_window};

use crate::damage::is_damage;
use crate::georeferencing::{georeference, is_exact, storage};
use crate::{Error, Result};

/// Which heights of a file are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Decoding {
    /// The part, in map units: left, bottom, right, top.
    pub bbox: Option<[f64; 4]>,
    /// The side of a square pixel in map units: finer ones sample the surface, coarser ones take means of what they cover, from
    /// eight times the file's own pixels on of an overview.
    pub resolution: Option<f64>,
    /// An overview instead of full resolution; nothing with another pixel size.
    pub level: u8,
    /// What becomes of tiles that are damaged.
    pub damaged: Damaged,
}

/// What becomes of tiles that cannot be read because their file is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Damaged {
    /// The first of them is an error.
    #[default]
    Refuse,
    /// They have no data.
    Skip,
}

/// The pixels of a grid that a box touches.
fn part(georeference: &Georeference, size: (usize, usize), bbox: [f64; 4]) -> Result<Window> {
    box_window(georeference, size, bbox).ok_or(Error::OutsideBox)
}

/// The grid that a decoding gives.
#[derive(Debug)]
pub struct View<'a> {
    terrain: &'a Terrain,
    pixels: Pixels<'a>,
    damaged: Damaged,
    /// Where it lies.
    pub georeference: Georeference,
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

#[derive(Debug)]
enum Pixels<'a> {
    Level(u8, Window),
    Resampled(Resampled<'a>),
}

impl Decoding {
    /// The grid of these heights.
    pub fn view<'a>(&self, terrain: &'a Terrain) -> Result<View<'a>> {
        match self.resolution {
            None => self.view_level(terrain),
            Some(resolution) => self.view_resampled(terrain, resolution),
        }
    }

    fn view_level<'a>(&self, terrain: &'a Terrain) -> Result<View<'a>> {
        let mut view = View::of_level(terrain, self.level)?;
        if let Some(bbox) = self.bbox {
            let window = part(&view.georeference, (view.width, view.height), bbox)?;
            view = View::of_window(terrain, self.level, window)?;
        }
        view.damaged = self.damaged;
        Ok(view)
    }

    fn view_resampled<'a>(&self, terrain: &'a Terrain, resolution: f64) -> Result<View<'a>> {
        if !(resolution > 0.0 && resolution.is_finite()) {
            return Err(Error::NotPositive {
                name: "resolution",
                value: resolution,
            });
        }
        let mut frame = georeference(terrain.header());
        let corner = frame.affine();
        if corner.invert(0.0, 0.0).is_none() {
            return Err(Error::Singular);
        }
        let (width, height) = terrain.header().pyramid.size(0).unwrap_or_default();
        let whole = Window::whole(width as usize, height as usize);
        let window = match self.bbox {
            None => whole,
            Some(bbox) => part(&frame, (whole.width, whole.height), bbox)?,
        };
        // Pixels of a raster are often not quite square; those that are asked for are.
        let factors = corner.pixel_sides().map(|side| resolution / side);
        let grid = Resampled::new(terrain, window, factors)?;
        let corner = corner
            .shifted(window.column as f64, window.row as f64)
            .stretched(factors);
        let is_georeferenced = frame.is_georeferenced;
        frame = Georeference::at_corner(corner, frame.crs);
        frame.is_georeferenced = is_georeferenced;
        Ok(View {
            terrain,
            georeference: frame,
            width: grid.width(),
            height: grid.height(),
            pixels: Pixels::Resampled(grid),
            damaged: Damaged::Refuse,
        })
    }

    /// Writes the heights as a COG; `progress` is told rows done and rows in all, and may stop it.
    pub fn write(
        &self,
        terrain: &Terrain,
        out: &Output,
        jobs: usize,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<Decoded> {
        out.check()?;
        let view = self.view(terrain)?;
        let size = (view.width, view.height);
        // Skipped tiles need a value for no data, which the source may not have.
        let has_nodata = terrain.header().samples.nodata.is_some();
        let as_source = view.is_exact() && (self.damaged == Damaged::Refuse || has_nodata);
        let storage = storage(terrain.header(), as_source)?;
        view.check_memory(jobs)?;
        let georeference = view.georeference.clone();
        let mut writer = CogWriter::create(out, size, georeference, storage.clone())?;
        let mut damaged = Vec::new();
        for rows in view.strips(jobs) {
            let end = rows.end as u64;
            writer.write_rows(&view.rows_beside(rows, jobs, &mut damaged)?)?;
            progress(end, view.height as u64)?;
        }
        writer.finish()?;
        damaged.sort_unstable_by_key(|tile| (tile.id.row, tile.id.column));
        damaged.dedup();
        Ok(Decoded {
            width: size.0,
            height: size.1,
            storage,
            damaged_tiles: damaged.len() as u64,
            bound_m: view.bound_m(),
        })
    }
}

/// A raster that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// Its columns.
    pub width: usize,
    /// Its rows.
    pub height: usize,
    /// How its heights are stored, which may differ from the source's.
    pub storage: Storage,
    /// Tiles of the file that are damaged and have no data here.
    pub damaged_tiles: u64,
    /// The error that the file guarantees for these heights; see [`View::bound_m`].
    pub bound_m: Option<f64>,
}

impl<'a> View<'a> {
    /// All pixels of a level.
    fn of_level(terrain: &'a Terrain, level: u8) -> Result<Self> {
        let pyramid = &terrain.header().pyramid;
        let (width, height) = pyramid.size(level).ok_or(Error::NoLevel {
            level,
            last: pyramid.levels() - 1,
        })?;
        let (width, height) = (width as usize, height as usize);
        let georeference = georeference(terrain.header());
        Ok(Self {
            terrain,
            damaged: Damaged::Refuse,
            pixels: Pixels::Level(level, Window::whole(width, height)),
            georeference: if level == 0 {
                georeference
            } else {
                georeference.coarsened(f64::from(1_u32 << level))
            },
            width,
            height,
        })
    }

    /// The pixels of a window of a level.
    pub fn of_window(terrain: &'a Terrain, level: u8, window: Window) -> Result<Self> {
        let whole = Self::of_level(terrain, level)?;
        terrain.check_window(level, window)?;
        Ok(Self {
            pixels: Pixels::Level(level, window),
            georeference: whole.georeference.cropped(window.column, window.row),
            width: window.width,
            height: window.height,
            ..whole
        })
    }

    /// Whether every height is the source's.
    fn is_exact(&self) -> bool {
        is_exact(self.terrain.header()) && matches!(self.pixels, Pixels::Level(0, _))
    }

    /// The error that the file guarantees for these heights, before they are stored as floats: of pixels at full resolution
    /// against the source's, and of means of them against the same means of the source's. Points between pixels and overviews
    /// have none.
    pub fn bound_m(&self) -> Option<f64> {
        let is_bounded = match &self.pixels {
            Pixels::Level(level, _) => *level == 0,
            Pixels::Resampled(grid) => grid.is_bounded(),
        };
        match self.terrain.header().bound {
            ErrorBound::MaxError(bound) if is_bounded => Some(bound),
            ErrorBound::Lossless { .. } if is_bounded => Some(0.0),
            _ => None,
        }
    }

    /// Refuses a grid whose rows do not fit the memory while they are written.
    fn check_memory(&self, jobs: usize) -> Result<()> {
        let needed = self
            .strip_bytes(jobs)
            .saturating_add(CogWriter::memory(self.width, self.height));
        Ok(self.terrain.memory().check(
            "writing so wide a raster",
            needed,
            "decode a part with `bbox` or an overview with `level`, or ",
        )?)
    }

    /// Rows that are made at a time, which end where tiles do, so that no tile is decoded twice: as many rows of tiles
    /// as give each of so many threads a tile.
    fn strips(&self, jobs: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let height = self.height;
        let (first, rows) = match &self.pixels {
            Pixels::Resampled(grid) => (grid.strip_rows(), grid.strip_rows()),
            Pixels::Level(_, window) => {
                let side = usize::from(self.terrain.header().pyramid.side());
                let tiles = (window.column % side + window.width).div_ceil(side);
                // Two rows of tiles at least lie below the same tiles.
                let rows = side * jobs.div_ceil(tiles.max(1)).max(2);
                (rows - window.row % side, rows)
            }
        };
        let mut end = 0;
        std::iter::from_fn(move || {
            let start = end;
            end = if start == 0 { first } else { start + rows }.min(height);
            (start < end).then_some(start..end)
        })
    }

    /// Memory of the heights of a strip.
    fn strip_bytes(&self, jobs: usize) -> u64 {
        let rows = self.strips(jobs).map(|rows| rows.len()).max();
        (rows.unwrap_or_default() as u64).saturating_mul(self.width as u64 * 8)
    }

    /// All heights, row by row, each as what a function makes of it; beside them a strip is in memory.
    pub fn array<T>(&self, jobs: usize, convert: impl Fn(f64) -> T) -> Result<Vec<T>> {
        let pixels = self.width as u64 * self.height as u64;
        self.terrain.memory().check(
            "so large an array",
            pixels
                .saturating_mul(size_of::<T>() as u64)
                .saturating_add(self.strip_bytes(jobs)),
            "read a part with `bbox`, or a coarser `resolution`, or ",
        )?;
        let mut values = Vec::with_capacity(self.width * self.height);
        for rows in self.strips(jobs) {
            values.extend(self.rows(rows, jobs)?.into_iter().map(&convert));
        }
        Ok(values)
    }

    /// Heights of some rows; NaN where there is no data.
    pub fn rows(&self, rows: Range<usize>, jobs: usize) -> Result<Vec<f64>> {
        self.rows_beside(rows, jobs, &mut Vec::new())
    }

    /// As [`Self::rows`]; also gives the tiles that were skipped.
    fn rows_beside(
        &self,
        rows: Range<usize>,
        jobs: usize,
        damaged: &mut Vec<LevelTile>,
    ) -> Result<Vec<f64>> {
        let (level, window) = match &self.pixels {
            Pixels::Resampled(grid) => return Ok(grid.rows(rows, jobs)?),
            Pixels::Level(level, window) => (*level, window),
        };
        let part = Window {
            row: window.row + rows.start,
            height: rows.len(),
            ..*window
        };
        match self.terrain.read_with(level, part, jobs) {
            Err(error) if self.damaged == Damaged::Skip && is_damage(&error) => {
                self.what_is_whole(level, part, damaged)
            }
            heights => Ok(heights?),
        }
    }

    /// The heights of a window tile by tile, so that each is damaged for itself.
    fn what_is_whole(
        &self,
        level: u8,
        window: Window,
        damaged: &mut Vec<LevelTile>,
    ) -> Result<Vec<f64>> {
        let side = usize::from(self.terrain.header().pyramid.side());
        let mut heights = vec![f64::NAN; window.width * window.height];
        let (right, bottom) = (window.column + window.width, window.row + window.height);
        for row in window.row / side..bottom.div_ceil(side) {
            for column in window.column / side..right.div_ceil(side) {
                let (left, top) = (window.column.max(column * side), window.row.max(row * side));
                let tile = Window {
                    column: left,
                    row: top,
                    width: right.min((column + 1) * side) - left,
                    height: bottom.min((row + 1) * side) - top,
                };
                let id = TileId { column, row };
                match self.terrain.read_with(level, tile, 1) {
                    Ok(found) => {
                        for (line, values) in found.chunks_exact(tile.width).enumerate() {
                            let start =
                                (top - window.row + line) * window.width + left - window.column;
                            heights[start..start + tile.width].copy_from_slice(values);
                        }
                    }
                    Err(error) if is_damage(&error) => damaged.push(LevelTile { level, id }),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(heights)
    }
}
