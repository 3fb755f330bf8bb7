//! Heights by windows and tiles.

use library::format::{LevelTile, TileId, Window};
use terrane_geo::SampleType;

use crate::border::status;
use crate::failure::{ErrorText, Failure, Outcome};
use crate::file::{File, open_file};

/// Tiles that are decoded for a window and kept for the next one; more are only passed through.
const KEPT_TILES: usize = 4;

/// A part of a level, in pixels.
#[repr(C)]
#[derive(Clone, Copy)]
struct Part {
    level: u32,
    column: u32,
    row: u32,
    width: u32,
    height: u32,
}

impl Part {
    fn window(self) -> Window {
        Window {
            column: self.column as usize,
            row: self.row as usize,
            width: self.width as usize,
            height: self.height as usize,
        }
    }
}

impl File {
    /// A level that there is.
    pub(crate) fn level(&self, level: u32) -> Outcome<u8> {
        let found = u8::try_from(level).ok();
        let found = found.filter(|level| *level < self.terrain.header().pyramid.levels());
        found.ok_or_else(|| Failure::Argument {
            name: "level",
            must: "a level of the file",
            value: level.to_string(),
        })
    }

    /// Heights of a part; NaN where there is no data.
    fn heights(&self, level: u8, window: Window) -> Outcome<Vec<f64>> {
        self.terrain.check_window(level, window)?;
        let side = usize::from(self.terrain.header().pyramid.side());
        let tiles = |first: usize, size: usize| (first % side + size).div_ceil(side);
        let count = tiles(window.column, window.width) * tiles(window.row, window.height);
        Ok(if count > KEPT_TILES {
            self.terrain.read_with(level, window, self.jobs)?
        } else if self.is_cached_elsewhere {
            self.terrain.read_with(level, window, 1)?
        } else {
            self.terrain.read(level, window)?
        })
    }

    /// The heights as they would be stored.
    fn stored(&self, level: u8, window: Window) -> Outcome<Vec<f64>> {
        let mut heights = self.heights(level, window)?;
        for (index, height) in heights.iter_mut().enumerate() {
            let stored = if level == 0 {
                self.storage.store(*height, self.unit)
            } else {
                Ok(self.storage.nearest(*height, self.unit))
            };
            *height = stored.map_err(|reason| Failure::Pixel {
                level,
                row: window.row + index / window.width,
                column: window.column + index % window.width,
                reason,
            })?;
        }
        Ok(heights)
    }
}

/// Writes rows to where the caller wants them.
///
/// # Safety
/// `out` leads to as many rows, each `line` values after the last, and may be written to.
unsafe fn write<T>(
    values: &[f64],
    width: usize,
    out: *mut T,
    line: usize,
    convert: impl Fn(f64) -> T,
) {
    for (index, row) in values.chunks_exact(width.max(1)).enumerate() {
        for (column, &value) in row.iter().enumerate() {
            // SAFETY: as this function's. A caller's buffer may lie at any byte.
            unsafe {
                out.add(index * line + column)
                    .write_unaligned(convert(value));
            };
        }
    }
}

/// Values from a row to the next, for rows of a width; 0 where they follow each other.
fn line_of(line: usize, width: u32) -> Outcome<usize> {
    match line {
        0 => Ok(width as usize),
        line if line >= width as usize => Ok(line),
        line => Err(Failure::Argument {
            name: "line",
            must: "0 or at least the width",
            value: line.to_string(),
        }),
    }
}

/// Reads a window as a type, after what a function makes of the file and the window.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
unsafe fn read<T>(
    (file, part, out, line): (*const File, *const Part, *mut T, usize),
    error: ErrorText,
    convert: impl Fn(f64) -> T,
) -> i32 {
    let read = || {
        // SAFETY: as this function's.
        let (file, part) = unsafe { (open_file(file)?, *crate::border::reference("part", part)?) };
        if out.is_null() {
            return Err(Failure::Null { name: "out" });
        }
        let line = line_of(line, part.width)?;
        let heights = file.heights(file.level(part.level)?, part.window())?;
        // SAFETY: the caller gives room for the window.
        unsafe { write(&heights, part.width as usize, out, line, convert) };
        Ok(())
    };
    // SAFETY: as this function's.
    unsafe { status(error, read) }
}

/// Heights of a window as 32-bit floats.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_read_f32(
    file: *const File,
    part: *const Part,
    out: *mut f32,
    line: usize,
    error: ErrorText,
) -> i32 {
    // SAFETY: as this function's.
    unsafe { read((file, part, out, line), error, |height| height as f32) }
}

/// Heights of a window as 64-bit floats.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_read_f64(
    file: *const File,
    part: *const Part,
    out: *mut f64,
    line: usize,
    error: ErrorText,
) -> i32 {
    // SAFETY: as this function's.
    unsafe { read((file, part, out, line), error, |height| height) }
}

/// Numbers of a window as a decoded raster would hold them.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_read_stored(
    file: *const File,
    part: *const Part,
    out: *mut std::ffi::c_void,
    line: usize,
    error: ErrorText,
) -> i32 {
    let read = || {
        // SAFETY: as this function's.
        let (file, part) = unsafe { (open_file(file)?, *crate::border::reference("part", part)?) };
        if out.is_null() {
            return Err(Failure::Null { name: "out" });
        }
        let (line, width) = (line_of(line, part.width)?, part.width as usize);
        let values = file.stored(file.level(part.level)?, part.window())?;
        // SAFETY: the caller gives room for the window in the type that the description states.
        unsafe {
            match file.storage.sample {
                SampleType::U8 => write(&values, width, out.cast(), line, |raw| raw as u8),
                SampleType::I8 => write(&values, width, out.cast(), line, |raw| raw as i8),
                SampleType::U16 => write(&values, width, out.cast(), line, |raw| raw as u16),
                SampleType::I16 => write(&values, width, out.cast(), line, |raw| raw as i16),
                SampleType::U32 => write(&values, width, out.cast(), line, |raw| raw as u32),
                SampleType::I32 => write(&values, width, out.cast(), line, |raw| raw as i32),
                SampleType::F32 => write(&values, width, out.cast(), line, |raw| raw as f32),
                SampleType::F64 => write(&values, width, out.cast(), line, |raw: f64| raw),
            }
        }
        Ok(())
    };
    // SAFETY: as this function's.
    unsafe { status(error, read) }
}

/// Heights of a tile as 32-bit floats, in a square of tiles' side; NaN beyond the raster.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_read_tile(
    file: *const File,
    level: u32,
    column: u32,
    row: u32,
    out: *mut f32,
    error: ErrorText,
) -> i32 {
    let read = || {
        // SAFETY: as this function's.
        let file = unsafe { open_file(file)? };
        if out.is_null() {
            return Err(Failure::Null { name: "out" });
        }
        let pyramid = &file.terrain.header().pyramid;
        let level = file.level(level)?;
        let (column, row) = (column as usize, row as usize);
        let id = TileId { column, row };
        let window = pyramid
            .window(LevelTile { level, id })
            .map_err(terrane_codec::Error::from)?;
        let side = usize::from(pyramid.side());
        let heights = file.heights(level, window)?;
        let missing = vec![f64::NAN; side * side];
        // SAFETY: the caller gives room for a square of tiles' side, of which the tile is a part.
        unsafe {
            write(&missing, side, out, side, |height| height as f32);
            write(&heights, window.width, out, side, |height| height as f32);
        };
        Ok(())
    };
    // SAFETY: as this function's.
    unsafe { status(error, read) }
}
