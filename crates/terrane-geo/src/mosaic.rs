//! Several rasters on one grid, read as one.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use terrane_format::Window;

use crate::file_state::{FileStates, check_states};
use crate::{
    Error, GeoTiff, Grid, Note, RasterInfo, RasterOptions, RasterSource, Result, SampleType,
    Storage,
};

/// Rasters may be off the common grid by this part of a pixel: rounding in their headers, not a shift of the land.
const ALIGNMENT_PIXELS: f64 = 0.01;
/// A country is thousands of files, more than a process may hold open.
const OPEN_FILES: usize = 32;

/// Rasters of the same system and pixel size, on one grid; where they overlap, the last one with data counts.
pub struct Mosaic {
    info: RasterInfo,
    pieces: Pieces,
    notes: Vec<Note>,
}

/// A raster file and its pixels on a common grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The file.
    pub path: PathBuf,
    /// Where it lies.
    pub window: Window,
}

/// Files whose offsets on a grid are known; a file is opened when it is first read.
pub struct Pieces {
    files: Vec<Piece>,
    /// Numbers of the pieces by their first row.
    by_row: Vec<usize>,
    /// Rows of the highest piece.
    tallest: usize,
    /// Each file as it was when it was first opened: it may be opened many times, and must be the same each time.
    states: Vec<OnceLock<FileStates>>,
    /// How each is read.
    options: RasterOptions,
    open: Mutex<Vec<(usize, Arc<GeoTiff>)>>,
}

impl Mosaic {
    /// Reads the headers of all files and puts them on the grid of the first.
    pub fn open(paths: &[impl AsRef<Path>]) -> Result<Self> {
        Self::open_with(paths, &RasterOptions::default())
    }

    /// The same of files of which something is said that counts before what they state. A box is not cut out here: see
    /// [`crate::open_with`].
    pub fn open_with(paths: &[impl AsRef<Path>], options: &RasterOptions) -> Result<Self> {
        let mut notes = Vec::new();
        let mut first: Option<RasterInfo> = None;
        let mut storage: Option<Storage> = None;
        let mut offsets = Vec::with_capacity(paths.len());
        let mut states = Vec::with_capacity(paths.len());
        for path in paths {
            let raster = GeoTiff::open_with(path.as_ref(), options)?;
            let info = raster.info().clone();
            states.push(OnceLock::from(raster.states().clone()));
            notes.extend_from_slice(raster.notes());
            let anchor = first.get_or_insert_with(|| info.clone());
            offsets.push((
                info.path.clone(),
                offset(anchor, &info)?,
                info.width(),
                info.height(),
            ));
            storage = Some(match storage {
                Some(common) => common_storage(common, &info.storage),
                None => info.storage,
            });
        }
        let (Some(mut info), Some(storage)) = (first, storage) else {
            return Err(Error::NoInput);
        };

        let left = offsets.iter().map(|file| file.1.0).min().unwrap_or(0);
        let top = offsets.iter().map(|file| file.1.1).min().unwrap_or(0);
        let mut pieces = Vec::with_capacity(offsets.len());
        let (mut right, mut bottom) = (0, 0);
        for (path, (column, row), width, height) in offsets {
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
        let mut pieces = Pieces::new(pieces, options.clone());
        pieces.states = states;
        Ok(Self {
            info,
            pieces,
            notes,
        })
    }

    /// The files and their offsets.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces.files
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

    fn touches(&self, window: Window) -> bool {
        self.pieces.touches(window)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.pieces.check_unchanged()
    }

    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn identity(&self) -> String {
        format!("{:?}", self.pieces.states)
    }
}

impl Pieces {
    /// Files at their offsets, the ones that count most last, and how each is read.
    pub fn new(pieces: Vec<Piece>, options: RasterOptions) -> Self {
        let mut by_row: Vec<usize> = (0..pieces.len()).collect();
        by_row.sort_by_key(|&index| pieces[index].window.row);
        Self {
            by_row,
            tallest: pieces
                .iter()
                .map(|piece| piece.window.height)
                .max()
                .unwrap_or(0),
            states: vec![OnceLock::new(); pieces.len()],
            options,
            files: pieces,
            open: Mutex::new(Vec::new()),
        }
    }

    /// Numbers of the pieces that share pixels with a window, among those of its rows.
    fn touching(&self, window: Window) -> impl Iterator<Item = usize> {
        let row = |&index: &usize| self.files[index].window.row;
        let bottom = window.row.saturating_add(window.height);
        let above = |index: &usize| row(index).saturating_add(self.tallest) <= window.row;
        let first = self.by_row.partition_point(above);
        let last = self.by_row.partition_point(|index| row(index) < bottom);
        let rows = self.by_row.get(first..last).unwrap_or_default().iter();
        rows.copied()
            .filter(move |&index| window.intersection(&self.files[index].window).is_some())
    }

    /// Whether any file lies in a window of the grid.
    pub fn touches(&self, window: Window) -> bool {
        self.touching(window).next().is_some()
    }

    /// Fails where a file is no longer what it was when it was first opened.
    pub fn check_unchanged(&self) -> Result<()> {
        let opened = self.states.iter().filter_map(OnceLock::get);
        opened
            .into_iter()
            .try_for_each(|states| check_states(states))
    }

    fn piece(&self, index: usize) -> Result<Arc<GeoTiff>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry_index) = open.iter().position(|(piece, _)| *piece == index) {
            let entry = open.remove(entry_index);
            open.push(entry);
        } else {
            let path = &self.files[index].path;
            // A file that is being written may not open at all, so it is asked before and after.
            if let Some(state) = self.states[index].get() {
                check_states(state)?;
            }
            let raster = Arc::new(GeoTiff::open_with(path, &self.options)?);
            if self.states[index].get_or_init(|| raster.states().clone()) != raster.states() {
                return Err(Error::Changed { path: path.clone() });
            }
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
        // In the order in which they were given, since the last one counts.
        let mut touching: Vec<usize> = self.touching(window).collect();
        touching.sort_unstable();
        for index in touching {
            let piece = &self.files[index];
            let Some(shared) = window.intersection(&piece.window) else {
                continue;
            };
            let inside = Window {
                column: shared.column - piece.window.column,
                row: shared.row - piece.window.row,
                ..shared
            };
            let part = self.piece(index)?.read(0, inside)?;
            grid.not_heights += part.not_heights;
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
fn offset(first: &RasterInfo, info: &RasterInfo) -> Result<(i64, i64)> {
    let refuse = |reason: String| Error::Mosaic {
        path: info.path.clone(),
        first: first.path.clone(),
        reason,
    };
    let (ours, theirs) = (&info.georeference, &first.georeference);
    if ours.is_georeferenced != theirs.is_georeferenced || !ours.is_georeferenced {
        return Err(refuse(
            "a raster that is not georeferenced has no neighbours".into(),
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
fn common_storage(common: Storage, other: &Storage) -> Storage {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_a_window_are_those_that_share_pixels_with_it() {
        // Scattered offsets and sizes, some of them high, one empty.
        let pieces: Vec<Piece> = (0..200_usize)
            .map(|index| Piece {
                path: PathBuf::new(),
                window: Window {
                    column: index * 7919 % 900,
                    row: index * 104_729 % 700,
                    width: 20 + index % 13,
                    height: if index % 50 == 7 { 400 } else { index % 31 },
                },
            })
            .collect();
        let all = Pieces::new(pieces.clone(), RasterOptions::default());
        for index in 0..300_usize {
            let window = Window {
                column: index * 31 % 1000,
                row: index * 17 % 1200,
                width: index % 90,
                height: index % 70,
            };
            let mut found: Vec<usize> = all.touching(window).collect();
            found.sort_unstable();
            let overlaps = |&piece: &usize| window.intersection(&pieces[piece].window).is_some();
            let expected: Vec<usize> = (0..pieces.len()).filter(overlaps).collect();
            assert_eq!(found, expected, "{window:?}");
            assert_eq!(all.touches(window), !expected.is_empty());
        }
        assert!(!Pieces::new(Vec::new(), RasterOptions::default()).touches(Window::whole(10, 10)));
    }
}
