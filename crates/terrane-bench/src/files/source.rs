//! A raster that files are made of: all of it, or a window that has data everywhere.

use std::path::Path;

use terrane_geo::{
    Cell, GroundScale, HeightUnit, MemoryRaster, RasterInfo, RasterSource, SampleType, Storage,
    Window,
};
use terrane_train::measure::MIN_RANGE_M;

use super::ground::Ground;
use super::window::first_complete;
use crate::Result;

/// A raster in memory.
#[derive(Debug)]
pub(super) struct Source {
    /// The name of its file without the ending.
    pub name: String,
    /// As encoders take it.
    pub raster: MemoryRaster,
    /// Its heights in metres, NaN where there is no data.
    pub heights: Vec<f64>,
    /// Its least height.
    pub low_m: f64,
    /// The range of its heights.
    pub range_m: f64,
    cell: Cell,
}

/// A raster, or why it cannot be measured.
pub(super) enum Fit {
    /// It can.
    Source(Box<Source>),
    /// It has no window without gaps of the side that was asked for.
    NoWindow,
    /// It is flat, or empty.
    Flat,
}

impl Source {
    /// Reads a raster, or its first window of a side without gaps.
    pub(super) fn read(path: &Path, side: Option<usize>) -> Result<Fit> {
        let raster = terrane_geo::open(&[path])?;
        let info = raster.info();
        let window = match side {
            None => Window::whole(info.width(), info.height()),
            Some(side) => match first_complete(raster.as_ref(), side)? {
                None => return Ok(Fit::NoWindow),
                Some(window) => window,
            },
        };
        let grid = raster.read(0, window)?;
        raster.check_unchanged()?;
        let georeference = info.georeference.cropped(window.column, window.row);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let heights = grid.heights.clone();
        let raster = MemoryRaster::new(path, grid, georeference, storage(info));
        let mut source = Self {
            name: name.into_owned(),
            cell: cell(raster.info()),
            raster,
            heights,
            low_m: 0.0,
            range_m: 0.0,
        };
        let Some((low, high)) = source.ground().range() else {
            return Ok(Fit::Flat);
        };
        (source.low_m, source.range_m) = (low, high - low);
        Ok(if source.range_m > MIN_RANGE_M {
            Fit::Source(Box::new(source))
        } else {
            Fit::Flat
        })
    }

    /// Columns.
    pub(super) fn width(&self) -> usize {
        self.raster.info().width()
    }

    /// Rows.
    pub(super) fn height(&self) -> usize {
        self.raster.info().height()
    }

    /// Pixels with data.
    pub(super) fn pixels(&self) -> usize {
        let valid = self.heights.iter().filter(|height| !height.is_nan());
        valid.count()
    }

    /// How its heights are stored.
    pub(super) fn storage(&self) -> &Storage {
        &self.raster.info().storage
    }

    /// Its heights on the ground.
    pub(super) fn ground(&self) -> Ground<'_> {
        self.ground_of(&self.heights)
    }

    /// Other heights in its place.
    pub(super) fn ground_of<'a>(&self, heights: &'a [f64]) -> Ground<'a> {
        Ground {
            width: self.width(),
            height: self.height(),
            heights,
            cell: self.cell,
        }
    }

    /// What bytes are in bits for each pixel with data.
    pub(super) fn bpp(&self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / self.pixels().max(1) as f64
    }
}

/// How heights are stored that were read in metres: as in the file, where that has metres too.
fn storage(info: &RasterInfo) -> Storage {
    if info.unit == HeightUnit::Metre {
        return info.storage.clone();
    }
    let mut storage = Storage::metres(SampleType::F64, None);
    // The vertical system would say otherwise.
    "m".clone_into(&mut storage.band.unit);
    storage
}

/// The size of a pixel at the middle of a raster.
fn cell(info: &RasterInfo) -> Cell {
    let affine = info.georeference.affine();
    let Ok(scale) = GroundScale::of(&info.georeference.crs) else {
        return Cell::square(info.pixel_m());
    };
    let (width, height) = info.levels[0];
    let (x, y) = affine.apply(width as f64 / 2.0, height as f64 / 2.0);
    let ground = scale.at(x, y);
    Cell {
        x_m: ground.length(affine.x_per_column, affine.y_per_column),
        y_m: ground.length(affine.x_per_row, affine.y_per_row),
    }
}
