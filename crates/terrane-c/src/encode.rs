//! A raster that the caller reads, to a file.

use std::ffi::{c_char, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use library::{Destination, EncodeProgress, Profile, Reached, Resources, Settings, Target};
use terrane_geo::geodesy::is_geographic;
use terrane_geo::{
    BandMetadata, Crs, Existing, Georeference, Grid, Kind, Output, RasterInfo, RasterSource,
    Storage, Window,
};

use crate::border::{TRN_OK, TRN_STOPPED, given, reference, status};
use crate::failure::{ErrorText, Failure, Outcome};
use crate::file::{memory, threads};
use crate::info::{TRN_FLOAT32, sample_type};

const TRN_TARGET_DEFAULT: i32 = 0;
const TRN_TARGET_MAX_ERROR: i32 = 1;
const TRN_TARGET_RMSE: i32 = 2;
const TRN_TARGET_BPP: i32 = 3;
const TRN_TARGET_LOSSLESS: i32 = 4;

const TRN_REACHED_TARGET: i32 = 0;
const TRN_REACHED_LOSSLESS: i32 = 1;
const TRN_REACHED_SMALLEST: i32 = 2;

/// Code of the key that says what a pixel's position refers to, and its two values.
const RASTER_TYPE: u16 = 1025;
const AREA: u16 = 1;
const POINT: u16 = 2;

/// Fills a window with numbers as they are stored; returns `TRN_OK`, or `TRN_STOPPED` to stop, or anything else where it
/// fails.
type HeightsFunction = unsafe extern "C" fn(
    user: *mut c_void,
    column: u32,
    row: u32,
    width: u32,
    height: u32,
    values: *mut f64,
) -> i32;

/// Is told how much of the tiles is done, from 0 to 1; returns `TRN_OK` to go on, anything else to stop.
type ProgressFunction = unsafe extern "C" fn(user: *mut c_void, done: f64) -> i32;

#[repr(C)]
struct Raster {
    width: u32,
    height: u32,
    block_width: u32,
    is_georeferenced: i32,
    affine: [f64; 6],
    pixel_is_point: i32,
    horizontal_epsg: u32,
    vertical_epsg: u32,
    geotiff: *const u8,
    geotiff_length: usize,
    sample: i32,
    has_nodata: i32,
    nodata: f64,
    scale: f64,
    offset: f64,
    unit: *const c_char,
    description: *const c_char,
    read: Option<HeightsFunction>,
    user: *mut c_void,
}

#[repr(C)]
struct EncodeSettings {
    target: i32,
    value: f64,
    profile: *const c_char,
    effort: u32,
    tile: u32,
    threads: u32,
    memory_limit: u64,
    overwrite: i32,
    progress: Option<ProgressFunction>,
    user: *mut c_void,
}

#[repr(C)]
struct Encoded {
    bytes: u64,
    pixels: u64,
    rmse_m: f64,
    max_error_m: f64,
    not_heights: u64,
    reached: i32,
}

/// A raster of heights in metres as 32-bit floats, nowhere on earth.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_raster_init(raster: *mut Raster, width: u32, height: u32) {
    if raster.is_null() {
        return;
    }
    let plain = Raster {
        width,
        height,
        block_width: 0,
        is_georeferenced: 0,
        affine: [0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        pixel_is_point: 0,
        horizontal_epsg: 0,
        vertical_epsg: 0,
        geotiff: std::ptr::null(),
        geotiff_length: 0,
        sample: TRN_FLOAT32,
        has_nodata: 0,
        nodata: f64::NAN,
        scale: 1.0,
        offset: 0.0,
        unit: std::ptr::null(),
        description: std::ptr::null(),
        read: None,
        user: std::ptr::null_mut(),
    };
    // SAFETY: it leads to a raster that the caller wants written.
    unsafe { raster.write(plain) };
}

/// The settings of `terrane encode`.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_encode_settings_init(settings: *mut EncodeSettings) {
    if settings.is_null() {
        return;
    }
    let default = Settings::default();
    let plain = EncodeSettings {
        target: TRN_TARGET_DEFAULT,
        value: 0.0,
        profile: std::ptr::null(),
        effort: default.effort.into(),
        tile: 0,
        threads: 0,
        memory_limit: 0,
        overwrite: 0,
        progress: None,
        user: std::ptr::null_mut(),
    };
    // SAFETY: it leads to settings that the caller wants written.
    unsafe { settings.write(plain) };
}

/// A raster that the caller reads.
struct CallerRaster {
    info: RasterInfo,
    block_width: usize,
    read: HeightsFunction,
    user: *mut c_void,
    is_stopped: AtomicBool,
}

// SAFETY: the encoder reads on the thread that called it; other threads see the description alone.
unsafe impl Send for CallerRaster {}
// SAFETY: as above.
unsafe impl Sync for CallerRaster {}

impl RasterSource for CallerRaster {
    fn info(&self) -> &RasterInfo {
        &self.info
    }

    fn read(&self, level: usize, window: Window) -> terrane_geo::Result<Grid> {
        self.info.check(level, window)?;
        let mut values = vec![f64::NAN; window.width * window.height];
        // A window inside the raster, whose sides are of 32 bits.
        let [column, row, width, height] =
            [window.column, window.row, window.width, window.height].map(|value| value as u32);
        // SAFETY: `terrane.h` asks for a function that fills a window; the values have its size.
        let status =
            unsafe { (self.read)(self.user, column, row, width, height, values.as_mut_ptr()) };
        if status != TRN_OK {
            let is_stopped = status == TRN_STOPPED;
            self.is_stopped.store(is_stopped, Ordering::Relaxed);
            return Err(terrane_geo::Error::Io {
                path: self.info.path.clone(),
                action: "be read",
                source: std::io::Error::other("the caller's function failed"),
            });
        }
        let not_heights = self.info.storage.heights(&mut values, self.info.unit);
        let mut grid = Grid::new(window.width, window.height, values);
        grid.not_heights = not_heights;
        Ok(grid)
    }

    fn block_width(&self) -> usize {
        self.block_width
    }
}

/// The system that a raster states: by a `GeoTIFF`, or by codes.
///
/// # Safety
/// The raster's pointers are as `terrane.h` asks for.
unsafe fn crs(raster: &Raster) -> Outcome<Crs> {
    if !raster.geotiff.is_null() {
        // SAFETY: as this function's.
        let bytes = unsafe { std::slice::from_raw_parts(raster.geotiff, raster.geotiff_length) };
        return Ok(Crs::from_geotiff(bytes.to_vec())?);
    }
    let code = |name, epsg: u32| match u16::try_from(epsg) {
        Ok(0) => Ok(None),
        Ok(epsg) => Ok(Some(epsg)),
        Err(_) => Err(Failure::Argument {
            name,
            must: "a code of EPSG, or 0",
            value: epsg.to_string(),
        }),
    };
    let vertical = code("vertical_epsg", raster.vertical_epsg)?;
    let Some(horizontal) = code("horizontal_epsg", raster.horizontal_epsg)? else {
        return Ok(Crs::default());
    };
    match is_geographic(horizontal) {
        Some(true) => Ok(Crs::geographic(horizontal, vertical)),
        Some(false) => Ok(Crs::projected(horizontal, vertical)),
        None => Err(Failure::Argument {
            name: "horizontal_epsg",
            must: "a code that is known here (give `geotiff` instead)",
            value: horizontal.to_string(),
        }),
    }
}

/// States what the positions of a system's pixels refer to.
fn set_raster_type(crs: &mut Crs, kind: u16) {
    let keys = crs.directory.get_mut(4..).unwrap_or_default();
    let found = keys.chunks_exact_mut(4).find(|key| key[0] == RASTER_TYPE);
    if let Some(key) = found {
        key[3] = kind;
    } else if kind != AREA {
        if crs.directory.is_empty() {
            crs.directory = vec![1, 1, 1, 0];
        }
        // Keys are in order.
        let before = crs.directory[4..]
            .chunks_exact(4)
            .filter(|key| key[0] < RASTER_TYPE);
        let at = 4 + 4 * before.count();
        crs.directory.splice(at..at, [RASTER_TYPE, 0, 1, kind]);
        crs.directory[3] += 1;
    }
}

/// A raster that was handed over.
///
/// # Safety
/// The raster's pointers are as `terrane.h` asks for.
unsafe fn caller_raster(raster: &Raster) -> Outcome<CallerRaster> {
    let read = raster.read.ok_or(Failure::Null { name: "read" })?;
    for (name, value) in [("width", raster.width), ("height", raster.height)] {
        if value == 0 {
            return Err(Failure::Argument {
                name,
                must: "above 0",
                value: value.to_string(),
            });
        }
    }
    // SAFETY: as this function's.
    let (mut crs, unit, description) = unsafe {
        (
            crs(raster)?,
            given("unit", raster.unit)?.unwrap_or_default(),
            given("description", raster.description)?.unwrap_or_default(),
        )
    };
    let is_point = raster.pixel_is_point != 0;
    set_raster_type(&mut crs, if is_point { POINT } else { AREA });
    let georeference = if raster.is_georeferenced == 0 {
        Georeference::of_pixels(crs)
    } else {
        let corner = library::georeferencing::affine(raster.affine);
        if corner.invert(0.0, 0.0).is_none() {
            return Err(Failure::Argument {
                name: "affine",
                must: "invertible",
                value: format!("{:?}", raster.affine),
            });
        }
        let shift = if is_point { 0.5 } else { 0.0 };
        Georeference::new(corner.shifted(shift, shift), crs)
    };
    for (name, value) in [("scale", raster.scale), ("offset", raster.offset)] {
        if !value.is_finite() || (name == "scale" && value == 0.0) {
            return Err(Failure::Argument {
                name,
                must: "a number, and a scale not 0",
                value: value.to_string(),
            });
        }
    }
    let storage = Storage {
        sample: sample_type(raster.sample)?,
        nodata: (raster.has_nodata != 0).then_some(raster.nodata),
        band: BandMetadata {
            scale: raster.scale,
            offset: raster.offset,
            unit: unit.to_owned(),
            description: description.to_owned(),
            ..BandMetadata::default()
        },
    };
    let unit = storage
        .unit(&georeference.crs)
        .map_err(|value| Failure::Argument {
            name: "unit",
            must: "a unit of height that is known, such as m or ft",
            value,
        })?;
    Ok(CallerRaster {
        info: RasterInfo {
            path: "the raster".into(),
            levels: vec![(raster.width as usize, raster.height as usize)],
            georeference,
            storage,
            unit,
        },
        block_width: raster.block_width as usize,
        read,
        user: raster.user,
        is_stopped: AtomicBool::new(false),
    })
}

/// The settings that were handed over.
///
/// # Safety
/// The settings' pointers are as `terrane.h` asks for.
unsafe fn settings(given_settings: &EncodeSettings) -> Outcome<Settings> {
    let EncodeSettings { target, value, .. } = *given_settings;
    let target = match target {
        TRN_TARGET_DEFAULT => Target::Default,
        TRN_TARGET_MAX_ERROR => Target::MaxError(value),
        TRN_TARGET_RMSE => Target::Rmse(value),
        TRN_TARGET_BPP => Target::Bpp(value),
        TRN_TARGET_LOSSLESS => Target::Lossless,
        other => {
            return Err(Failure::Argument {
                name: "target",
                must: "one of TRN_TARGET_DEFAULT to TRN_TARGET_LOSSLESS",
                value: other.to_string(),
            });
        }
    };
    // SAFETY: as this function's.
    let profile = match unsafe { given("profile", given_settings.profile)? } {
        None => Profile::Standard,
        Some(name) => Profile::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| Failure::Argument {
                name: "profile",
                must: "fast, standard or best",
                value: name.to_owned(),
            })?,
    };
    // What does not fit is above what is allowed, and refused with a sentence where that is known.
    let tile = u16::try_from(given_settings.tile).unwrap_or(u16::MAX);
    Ok(Settings {
        profile,
        target,
        effort: u8::try_from(given_settings.effort).unwrap_or(u8::MAX),
        tile: (tile != 0).then_some(tile),
        ..Settings::default()
    })
}

/// Encodes a raster to a file.
///
/// # Safety
/// Pointers and functions are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_encode(
    raster: *const Raster,
    path: *const c_char,
    options: *const EncodeSettings,
    encoded: *mut Encoded,
    error: ErrorText,
) -> i32 {
    let encode = || {
        // SAFETY: as this function's.
        let (raster, options, path) = unsafe {
            (
                caller_raster(reference("raster", raster)?)?,
                reference("options", options)?,
                given("path", path)?.ok_or(Failure::Null { name: "path" })?,
            )
        };
        let resources = Resources {
            jobs: threads(options.threads),
            memory: memory(options.memory_limit),
        };
        // SAFETY: as this function's.
        let prepared = unsafe { settings(options)? }.prepare(resources.memory)?;
        let existing = if options.overwrite == 0 {
            Existing::Refuse
        } else {
            Existing::Replace
        };
        let destination = Destination {
            // The name is the caller's choice.
            out: Output::new(Path::new(path), existing, Kind::Any),
            resumable: None,
            resources,
        };
        let mut is_stopped = false;
        let mut progress = |at: EncodeProgress| {
            let Some(told) = options.progress else {
                return Ok(());
            };
            let done = at.tiles as f64 / at.of.max(1) as f64;
            // SAFETY: `terrane.h` asks for a function that may be called with `user` on this thread.
            if unsafe { told(options.user, done) } == TRN_OK {
                return Ok(());
            }
            is_stopped = true;
            Err(terrane_codec::Error::Stopped)
        };
        let made = library::encode(&raster, &prepared, destination, &mut progress);
        if is_stopped || raster.is_stopped.load(Ordering::Relaxed) {
            return Err(Failure::Stopped);
        }
        let made = made?;
        if !encoded.is_null() {
            let report = Encoded {
                bytes: made.bytes,
                pixels: made.measured.pixels,
                rmse_m: made.measured.rmse_m(),
                max_error_m: made.measured.max_error_m,
                not_heights: made.not_heights,
                reached: match made.reached {
                    Reached::Target => TRN_REACHED_TARGET,
                    Reached::Lossless => TRN_REACHED_LOSSLESS,
                    Reached::Smallest => TRN_REACHED_SMALLEST,
                },
            };
            // SAFETY: it leads to a report that the caller wants written.
            unsafe { encoded.write(report) };
        }
        Ok(())
    };
    // SAFETY: as this function's.
    unsafe { status(error, encode) }
}
