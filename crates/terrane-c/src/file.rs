//! An open file.

use std::ffi::{CString, c_char, c_void};
use std::path::Path;
use std::time::Duration;

use library::georeferencing::{georeference, is_exact, storage};
use library::{MODELS, OpenOptions, Resources, Terrain};
use terrane_codec::format::{ByteSource, MemoryLimit};
use terrane_codec::{ReadAhead, TerrainOptions};
use terrane_geo::{HeightUnit, Storage};

use crate::border::{given, guard, reference, status, text};
use crate::failure::{ErrorText, Failure, Outcome};
use crate::source::{CallerSource, ReadAllFunction, ReadFunction};

/// An open file, which threads may share.
pub(crate) struct File {
    pub(crate) terrain: Terrain,
    /// Threads that decode a large window.
    pub(crate) jobs: usize,
    /// Whether the caller keeps what it reads, so that nothing is kept here.
    pub(crate) is_cached_elsewhere: bool,
    /// How `terrane decode` would store the heights.
    pub(crate) storage: Storage,
    pub(crate) unit: HeightUnit,
    pub(crate) texts: Texts,
}

/// Texts that a description leads to.
pub(crate) struct Texts {
    pub(crate) method: CString,
    pub(crate) model: CString,
    pub(crate) unit: CString,
    pub(crate) description: CString,
    pub(crate) crs: CString,
    pub(crate) wkt: CString,
    pub(crate) keys: CString,
    pub(crate) json: CString,
    pub(crate) geotiff: Vec<u8>,
}

/// What a file may take while it is open.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct OpenSettings {
    memory_limit: u64,
    threads: u32,
    is_cached_elsewhere: i32,
    read_all: Option<ReadAllFunction>,
}

/// Memory in bytes; 0 leaves it to the library.
pub(crate) fn memory(bytes: u64) -> MemoryLimit {
    if bytes == 0 {
        MemoryLimit::default()
    } else {
        MemoryLimit { bytes }
    }
}

/// So many threads; 0 for all cores.
pub(crate) fn threads(threads: u32) -> usize {
    match threads {
        0 => Resources::default().jobs,
        threads => threads as usize,
    }
}

impl File {
    fn new(terrain: Terrain, settings: OpenSettings) -> Outcome<Self> {
        let header = terrain.header();
        let mut storage = storage(header, is_exact(header))?;
        let georeference = georeference(header);
        let crs = &georeference.crs;
        let unit = storage.unit(crs).map_err(|value| Failure::Argument {
            name: "unit",
            must: "a unit of height that is known",
            value,
        })?;
        let (width, height) = header.pyramid.size(0).unwrap_or_default();
        let has_gaps = header.statistics.pixels < u64::from(width) * u64::from(height);
        if storage.nodata.is_none() && storage.sample.is_float() && has_gaps {
            // What such a raster holds where it has no data; said, so that nobody has to guess.
            storage.nodata = Some(f64::NAN);
        }
        let model = header.model.as_ref().map(|model| model.name.as_str());
        let texts = Texts {
            method: text(header.method.name()),
            model: text(model.unwrap_or_default()),
            unit: text(unit.name()),
            description: text(&header.samples.description),
            crs: text(&crs.to_string()),
            wkt: text(&header.wkt),
            keys: text(&crs.text),
            json: text(&library::describe(terrain.reader()).to_string()),
            geotiff: if crs.is_empty() {
                Vec::new()
            } else {
                crs.to_geotiff()
            },
        };
        Ok(Self {
            jobs: threads(settings.threads),
            is_cached_elsewhere: settings.is_cached_elsewhere != 0,
            storage,
            unit,
            texts,
            terrain,
        })
    }
}

/// The settings that a caller gives, or those of the library.
///
/// # Safety
/// The pointer is NULL or leads to settings.
unsafe fn settings(settings: *const OpenSettings) -> OpenSettings {
    // SAFETY: as this function's.
    let given = unsafe { settings.as_ref() }.copied();
    given.unwrap_or(OpenSettings {
        memory_limit: 0,
        threads: 0,
        is_cached_elsewhere: 0,
        read_all: None,
    })
}

fn handle(file: Result<File, i32>) -> *mut File {
    file.map_or(std::ptr::null_mut(), |file| Box::into_raw(Box::new(file)))
}

/// Opens a file of this machine.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_open(
    path: *const c_char,
    options: *const OpenSettings,
    error: ErrorText,
) -> *mut File {
    let open = || {
        // SAFETY: as this function's.
        let (settings, path) = unsafe { (settings(options), given("path", path)?) };
        let path = Path::new(path.ok_or(Failure::Null { name: "path" })?);
        let options = OpenOptions {
            memory: memory(settings.memory_limit),
            ..OpenOptions::default()
        };
        File::new(library::open_with(path, &options)?, settings)
    };
    // SAFETY: as this function's.
    handle(unsafe { guard(error, open) })
}

/// Opens a file that the caller reads.
///
/// # Safety
/// Pointers and the function are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_open_with(
    read: Option<ReadFunction>,
    user: *mut c_void,
    length: u64,
    options: *const OpenSettings,
    error: ErrorText,
) -> *mut File {
    let open = || {
        // SAFETY: as this function's.
        let settings = unsafe { settings(options) };
        let read = read.ok_or(Failure::Null { name: "read" })?;
        // SAFETY: `terrane.h` asks for such a function.
        let source = unsafe { CallerSource::new(read, settings.read_all, user, length) };
        let options = TerrainOptions {
            models: MODELS,
            model: None,
            memory: memory(settings.memory_limit),
        };
        let source: Box<dyn ByteSource> = match settings.read_all {
            // Its reads wait for answers.
            Some(_) => Box::new(ReadAhead::new(Box::new(source))),
            None => Box::new(source),
        };
        File::new(Terrain::open(source, options)?, settings)
    };
    // SAFETY: as this function's.
    handle(unsafe { guard(error, open) })
}

/// Limits the time of all further work on a file.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_limit_time(file: *const File, seconds: f64, error: ErrorText) -> i32 {
    let limit = || {
        // SAFETY: as this function's.
        let file = unsafe { open_file(file)? };
        let limit = if seconds == 0.0 {
            None
        } else {
            let limit = Duration::try_from_secs_f64(seconds);
            Some(limit.map_err(|_| Failure::Argument {
                name: "seconds",
                must: "0 or above",
                value: seconds.to_string(),
            })?)
        };
        file.terrain.limit_time(limit);
        Ok(())
    };
    // SAFETY: as this function's.
    unsafe { status(error, limit) }
}

/// Closes a file.
///
/// # Safety
/// The file is NULL or was opened by this library; nobody uses it any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_close(file: *mut File) {
    if !file.is_null() {
        let close = || {
            // SAFETY: it came from `Box::into_raw` in `handle`.
            drop(unsafe { Box::from_raw(file) });
            Ok(())
        };
        // SAFETY: no text is asked for.
        let _ = unsafe { guard(std::ptr::null_mut(), close) };
    }
}

/// A file that was handed over.
///
/// # Safety
/// It is NULL or open while the result is used.
pub(crate) unsafe fn open_file<'a>(file: *const File) -> Outcome<&'a File> {
    // SAFETY: as this function's.
    unsafe { reference("file", file) }
}
