//! A neural terrain file back to heights on a grid.

use std::ops::Range;
use std::path::Path;

use terrane::format::{Error as FormatError, MemoryLimit, Promise, Window};
use terrane::resample::Resampled;
use terrane::{RemoteOptions, Terrain};
use terrane_geo::{Affine, CogWriter, Georeference, Output, Storage};

use crate::placement::{affine, georeference, storage};
use crate::settings::read_model;
use crate::{Error, Result};

/// What a file may take while it is open.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenOptions {
    /// Memory.
    pub memory: MemoryLimit,
    /// What holds for an address.
    pub remote: RemoteOptions,
}

/// Opens a file of this machine or at an address, with its model where it is neither in the file nor in the program.
pub fn open(path: &Path, model: Option<&Path>, options: OpenOptions) -> Result<Terrain> {
    let OpenOptions { memory, remote } = options;
    let model = model.map(|path| read_model(path, memory)).transpose()?;
    let model = model.map(|(model, _)| model);
    terrane::source_with(path, remote)
        .and_then(|source| Terrain::open_within(source, model, memory))
        .map_err(|source| match source {
            // It names the address by itself.
            terrane::Error::Format(FormatError::Remote { .. }) => Error::Terrain(source),
            source => Error::Open {
                path: path.to_owned(),
                source,
            },
        })
}

/// Rows of a resampled grid that are made at a time.
const ROWS: usize = 16;

/// Which heights of a file are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Decoding {
    /// The part, in map units: left, bottom, right, top.
    pub bbox: Option<[f64; 4]>,
    /// The side of a pixel in map units: finer ones sample the surface, coarser ones take means.
    pub resolution: Option<f64>,
    /// An overview instead of full resolution; nothing with another pixel size.
    pub level: u8,
}

/// The pixels of a grid that a box touches.
pub fn pixel_window(affine: &Affine, size: (usize, usize), bbox: [f64; 4]) -> Result<Window> {
    let [x0, y0, x1, y1] = bbox;
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for (x, y) in [(x0, y0), (x0, y1), (x1, y0), (x1, y1)] {
        let (column, row) = affine.invert(x, y).ok_or(Error::Singular)?;
        for (axis, value) in [column, row].into_iter().enumerate() {
            low[axis] = low[axis].min(value);
            high[axis] = high[axis].max(value);
        }
    }
    // A corner on a pixel's border does not touch the pixel beyond; coordinates carry rounding.
    let first = |value: f64| (value + 1e-6).floor().max(0.0) as usize;
    let end = |value: f64, size: usize| ((value - 1e-6).ceil().max(0.0) as usize).min(size);
    let (column, row) = (first(low[0]), first(low[1]));
    let (right, bottom) = (end(high[0], size.0), end(high[1], size.1));
    if column >= right || row >= bottom {
        return Err(Error::OutsideBox);
    }
    Ok(Window {
        column,
        row,
        width: right - column,
        height: bottom - row,
    })
}

/// The grid that a decoding gives.
#[derive(Debug)]
pub struct View<'a> {
    terrain: &'a Terrain,
    pixels: Pixels<'a>,
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
        let pyramid = &terrain.header().pyramid;
        let level = self.level;
        let (width, height) = pyramid.size(level).ok_or(Error::NoLevel {
            level,
            last: pyramid.levels() - 1,
        })?;
        let whole = Window::whole(width as usize, height as usize);
        let place = georeference(terrain.header());
        let place = if level == 0 {
            place
        } else {
            place.coarsened(f64::from(1_u32 << level))
        };
        let window = match self.bbox {
            None => whole,
            Some(bbox) => pixel_window(&place.affine(), (whole.width, whole.height), bbox)?,
        };
        Ok(View {
            terrain,
            pixels: Pixels::Level(level, window),
            georeference: place.cropped(window.column, window.row),
            width: window.width,
            height: window.height,
        })
    }

    fn view_resampled<'a>(&self, terrain: &'a Terrain, resolution: f64) -> Result<View<'a>> {
        if !(resolution > 0.0 && resolution.is_finite()) {
            return Err(Error::NotPositive {
                name: "resolution",
                value: resolution,
            });
        }
        let header = terrain.header();
        let corner = affine(terrain.corner_affine());
        let (across, down) = (
            corner.x_per_column.hypot(corner.y_per_column),
            corner.x_per_row.hypot(corner.y_per_row),
        );
        if (across / down - 1.0).abs() >= 1e-6 {
            return Err(Error::NotSquare {
                width: across,
                height: down,
            });
        }
        let (width, height) = header.pyramid.size(0).unwrap_or_default();
        let whole = Window::whole(width as usize, height as usize);
        let window = match self.bbox {
            None => whole,
            Some(bbox) => pixel_window(&corner, (whole.width, whole.height), bbox)?,
        };
        let factor = resolution / corner.pixel_size();
        let grid = Resampled::new(terrain, window, factor)?;
        let anchor = corner
            .shifted(window.column as f64, window.row as f64)
            .scaled(factor);
        let mut place = georeference(header);
        place.anchor = if place.is_georeferenced && place.crs.pixel_is_point() {
            anchor.shifted(0.5, 0.5)
        } else {
            anchor
        };
        Ok(View {
            terrain,
            georeference: place,
            width: grid.width(),
            height: grid.height(),
            pixels: Pixels::Resampled(grid),
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
        let storage = storage(terrain.header(), view.is_exact())?;
        view.check_memory()?;
        let place = view.georeference.clone();
        let mut writer = CogWriter::create(out, size, place, storage.clone())?;
        let mut row = 0;
        while row < view.height {
            let end = view.strip_end(row);
            writer.write_rows(&view.rows(row..end, jobs)?)?;
            row = end;
            progress(row as u64, view.height as u64)?;
        }
        writer.finish()?;
        Ok(Decoded {
            width: size.0,
            height: size.1,
            storage,
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
}

impl View<'_> {
    /// Whether every height is the source's: because that was promised, or because it was so when the file was made.
    fn is_exact(&self) -> bool {
        let header = self.terrain.header();
        let is_lossless = matches!(header.promise, Promise::Lossless { .. });
        let is_exact = is_lossless || header.statistics.max_error_m == 0.0;
        is_exact && matches!(self.pixels, Pixels::Level(0, _))
    }

    /// Refuses a grid whose rows do not fit the memory while they are written.
    pub fn check_memory(&self) -> Result<()> {
        let rows = (self.strip_end(0) * self.width) as u64;
        let needed = rows
            .saturating_mul(8)
            .saturating_add(CogWriter::memory(self.width, self.height));
        Ok(self.terrain.memory().check(
            "writing so wide a raster",
            needed,
            "decode a part with --bbox or an overview with --level, or ",
        )?)
    }

    /// Where a strip of rows should end: where tiles do, so that no tile is decoded twice.
    fn strip_end(&self, row: usize) -> usize {
        let end = match &self.pixels {
            Pixels::Level(_, window) => {
                let side = usize::from(self.terrain.header().pyramid.side());
                ((window.row + row) / side + 1) * side - window.row
            }
            Pixels::Resampled(_) => row + ROWS,
        };
        end.min(self.height)
    }

    /// Heights of some rows; NaN where there is no data.
    pub fn rows(&self, rows: Range<usize>, jobs: usize) -> Result<Vec<f64>> {
        Ok(match &self.pixels {
            Pixels::Resampled(grid) => grid.rows(rows, jobs)?,
            Pixels::Level(level, window) => {
                let part = Window {
                    row: window.row + rows.start,
                    height: rows.len(),
                    ..*window
                };
                self.terrain.read_with(*level, part, jobs)?
            }
        })
    }
}
