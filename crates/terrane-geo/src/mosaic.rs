//! Several rasters on one grid, read as one.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use terrane_format::Window;

use crate::{Error, GeoTiff, Grid, RasterInfo, RasterSource, Result, SampleType, Storage};

/// Rasters may be off the common grid by this part of a pixel: rounding in their headers, not a shift of the land.
const ALIGNMENT_PIXELS: f64 = 0.01;
/// A country is thousands of files, more than a process may hold open.
const OPEN_FILES: usize = 32;

/// Rasters of the same system and pixel size, placed on one grid; where they overlap, the last one with data counts.
pub struct Mosaic {
    info: RasterInfo,
    pieces: Pieces,
}

/// A raster file and its pixels on a common grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The file.
    pub path: PathBuf,
    /// Where it lies.
    pub window: Window,
}

/// Files whose places on a grid are known; a file is opened when it is first read.
pub struct Pieces {
    pieces: Vec<Piece>,
    open: Mutex<Vec<(usize, Arc<GeoTiff>)>>,
}

impl Mosaic {
    /// Reads the headers of all files and places them on the grid of the first.
    pub fn open(paths: &[impl AsRef<Path>]) -> Result<Self> {
        let mut first: Option<RasterInfo> = None;
        let mut storage: Option<Storage> = None;
        let mut places = Vec::with_capacity(paths.len());
        for path in paths {
            let info = GeoTiff::open(path.as_ref())?.info().clone();
            let anchor = first.get_or_insert_with(|| info.clone());
            places.push((
                info.path.clone(),
                place(anchor, &info)?,
                info.width(),
                info.height(),
            ));
            storage = Some(match storage {
                Some(common) => join(common, &info.storage),
                None => info.storage,
            });
        }
        let (Some(mut info), Some(storage)) = (first, storage) else {
            return Err(Error::NoInput);
        };

        let left = places.iter().map(|place| place.1.0).min().unwrap_or(0);
        let top = places.iter().map(|place| place.1.1).min().unwrap_or(0);
        let mut pieces = Vec::with_capacity(places.len());
        let (mut right, mut bottom) = (0, 0);
        for (path, (column, row), width, height) in places {
            let window = Window {
                column: (column - left) as usize,
                row: (row - top) as usize,
                width,
                height,
            };
            right = right.max(window.column + width);
            bottom = bottom.max(window.row + height);
            pieces.push(Piece { path, window });
        }
        info.levels = vec![(right, bottom)];
        info.georeference.anchor = info.georeference.anchor.shifted(left as f64, top as f64);
        info.storage = storage;
        Ok(Self {
            info,
            pieces: Pieces::new(pieces),
        })
    }

    /// The files and their places.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces.pieces
    }
}

impl RasterSource for Mosaic {
    fn info(&self) -> &RasterInfo {
        &self.info
    }

    fn read(&self, level: usize, window: Window) -> Result<Grid> {
        self.info.check(level, window)?;
        self.pieces.read(window)
    }
}

impl Pieces {
    /// Files at their places, the ones that count most last.
    pub fn new(pieces: Vec<Piece>) -> Self {
        Self {
            pieces,
            open: Mutex::new(Vec::new()),
        }
    }

    fn piece(&self, index: usize) -> Result<Arc<GeoTiff>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = open.iter().position(|(piece, _)| *piece == index) {
            let entry = open.remove(place);
            open.push(entry);
        } else {
            let raster = Arc::new(GeoTiff::open(&self.pieces[index].path)?);
            if open.len() >= OPEN_FILES {
                open.remove(0);
            }
            open.push((index, raster));
        }
        Ok(Arc::clone(&open[open.len() - 1].1))
    }

    /// Heights of a window of the grid, NaN where no file has data.
    pub fn read(&self, window: Window) -> Result<Grid> {
        let mut grid = Grid::missing(window.width, window.height);
        for (index, piece) in self.pieces.iter().enumerate() {
            let Some(shared) = window.intersection(&piece.window) else {
                continue;
            };
            let inside = Window {
                column: shared.column - piece.window.column,
                row: shared.row - piece.window.row,
                ..shared
            };
            let part = self.piece(index)?.read(0, inside)?;
            for row in 0..shared.height {
                let start =
                    (shared.row - window.row + row) * window.width + shared.column - window.column;
                for (height, &new) in grid.heights[start..start + shared.width]
                    .iter_mut()
                    .zip(part.row(row))
                {
                    if !new.is_nan() {
                        *height = new;
                    }
                }
            }
        }
        Ok(grid)
    }
}

/// Column and row of a raster's first pixel on the grid of the first one.
fn place(first: &RasterInfo, info: &RasterInfo) -> Result<(i64, i64)> {
    let refuse = |reason: String| Error::Mosaic {
        path: info.path.clone(),
        first: first.path.clone(),
        reason,
    };
    let (ours, theirs) = (&info.georeference, &first.georeference);
    if ours.placed != theirs.placed || !ours.placed {
        return Err(refuse(
            "a raster without a place on the ground has no neighbours".into(),
        ));
    }
    if ours.crs != theirs.crs {
        return Err(refuse(format!(
            "its system is {}, not {}",
            ours.crs, theirs.crs
        )));
    }
    if info.unit != first.unit {
        return Err(refuse(format!(
            "its heights are in {}, not {}",
            info.unit.name(),
            first.unit.name()
        )));
    }
    let (a, b) = (ours.affine(), theirs.affine());
    let size = b.pixel_size();
    let is_same = [
        (a.x_per_column, b.x_per_column),
        (a.x_per_row, b.x_per_row),
        (a.y_per_column, b.y_per_column),
        (a.y_per_row, b.y_per_row),
    ]
    .iter()
    // Over a whole file the difference must stay far below a pixel.
    .all(|(ours, theirs)| {
        (ours - theirs).abs() * (info.width().max(info.height()) as f64) < ALIGNMENT_PIXELS * size
    });
    if !is_same {
        return Err(refuse(format!(
            "its pixels are {} across, not {size}",
            a.pixel_size()
        )));
    }
    let (column, row) = b
        .invert(a.x, a.y)
        .ok_or_else(|| refuse("its pixels have no size".into()))?;
    if (column - column.round()).abs() > ALIGNMENT_PIXELS
        || (row - row.round()).abs() > ALIGNMENT_PIXELS
    {
        return Err(refuse(format!(
            "its pixels lie {:.3} columns and {:.3} rows off the grid",
            column - column.round(),
            row - row.round()
        )));
    }
    if column.abs() > 1e9 || row.abs() > 1e9 {
        return Err(refuse("it lies more than a billion pixels away".into()));
    }
    Ok((column.round() as i64, row.round() as i64))
}

/// A storage that holds the heights of both: their own where they agree, else floating point.
fn join(common: Storage, other: &Storage) -> Storage {
    if common == *other {
        return common;
    }
    let is_wide = |sample| matches!(sample, SampleType::U32 | SampleType::I32 | SampleType::F64);
    let sample = if is_wide(common.sample) || is_wide(other.sample) {
        SampleType::F64
    } else {
        SampleType::F32
    };
    let mut band = common.band;
    (band.scale, band.offset) = (1.0, 0.0);
    Storage {
        sample,
        nodata: Some(-9999.0),
        band,
    }
}
