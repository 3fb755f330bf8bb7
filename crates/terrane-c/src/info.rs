//! What a file says of itself.

use std::ffi::c_char;

use library::georeferencing::georeference;
use terrane_codec::format::ErrorBound;
use terrane_geo::SampleType;

use crate::border::status;
use crate::failure::{ErrorText, Failure, Outcome};
use crate::file::{File, open_file};

pub(crate) const TRN_UINT8: i32 = 1;
pub(crate) const TRN_INT8: i32 = 2;
pub(crate) const TRN_UINT16: i32 = 3;
pub(crate) const TRN_INT16: i32 = 4;
pub(crate) const TRN_UINT32: i32 = 5;
pub(crate) const TRN_INT32: i32 = 6;
pub(crate) const TRN_FLOAT32: i32 = 7;
pub(crate) const TRN_FLOAT64: i32 = 8;

const TRN_BOUND_NONE: i32 = 0;
const TRN_BOUND_MAX_ERROR: i32 = 1;
const TRN_BOUND_LOSSLESS: i32 = 2;

const SAMPLES: [(i32, SampleType); 8] = [
    (TRN_UINT8, SampleType::U8),
    (TRN_INT8, SampleType::I8),
    (TRN_UINT16, SampleType::U16),
    (TRN_INT16, SampleType::I16),
    (TRN_UINT32, SampleType::U32),
    (TRN_INT32, SampleType::I32),
    (TRN_FLOAT32, SampleType::F32),
    (TRN_FLOAT64, SampleType::F64),
];

/// The type that a number stands for.
pub(crate) fn sample_type(code: i32) -> Outcome<SampleType> {
    let found = SAMPLES.iter().find(|(number, _)| *number == code);
    found
        .map(|(_, sample)| *sample)
        .ok_or_else(|| Failure::Argument {
            name: "sample",
            must: "one of TRN_UINT8 to TRN_FLOAT64",
            value: code.to_string(),
        })
}

fn sample_code(sample: SampleType) -> i32 {
    let found = SAMPLES.iter().find(|(_, other)| *other == sample);
    found.map_or(TRN_FLOAT64, |(code, _)| *code)
}

#[repr(C)]
struct Info {
    width: u32,
    height: u32,
    tile: u32,
    levels: u32,
    affine: [f64; 6],
    is_georeferenced: i32,
    pixel_is_point: i32,
    horizontal_epsg: u32,
    vertical_epsg: u32,
    crs: *const c_char,
    wkt: *const c_char,
    geotiff: *const u8,
    geotiff_length: usize,
    sample: i32,
    has_nodata: i32,
    nodata: f64,
    scale: f64,
    offset: f64,
    unit: *const c_char,
    metres_per_unit: f64,
    description: *const c_char,
    source_sample: i32,
    source_has_nodata: i32,
    source_nodata: f64,
    bound: i32,
    bound_m: f64,
    max_error_m: f64,
    rmse_m: f64,
    pixels: u64,
    lowest_m: f64,
    highest_m: f64,
    method: *const c_char,
    model: *const c_char,
    bytes: u64,
    json: *const c_char,
}

/// Describes a file.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_describe(file: *const File, info: *mut Info, error: ErrorText) -> i32 {
    let describe = || {
        // SAFETY: as this function's.
        let file = unsafe { open_file(file)? };
        if info.is_null() {
            return Err(Failure::Null { name: "info" });
        }
        // SAFETY: it leads to a description that the caller wants written.
        unsafe { info.write(file.info()) };
        Ok(())
    };
    // SAFETY: as this function's.
    unsafe { status(error, describe) }
}

impl File {
    fn info(&self) -> Info {
        let header = self.terrain.header();
        let pyramid = &header.pyramid;
        let (width, height) = pyramid.size(0).unwrap_or_default();
        let crs = georeference(header).crs;
        let statistics = &header.statistics;
        let (bound, bound_m) = match header.bound {
            ErrorBound::None => (TRN_BOUND_NONE, f64::NAN),
            ErrorBound::MaxError(bound) => (TRN_BOUND_MAX_ERROR, bound),
            ErrorBound::Lossless { .. } => (TRN_BOUND_LOSSLESS, 0.0),
        };
        let (samples, storage, texts) = (&header.samples, &self.storage, &self.texts);
        let source = SampleType::ALL
            .into_iter()
            .find(|sample| sample.name() == samples.kind);
        Info {
            width,
            height,
            tile: pyramid.side().into(),
            levels: pyramid.levels().into(),
            affine: self.terrain.corner_affine(),
            is_georeferenced: header.is_georeferenced.into(),
            pixel_is_point: header.pixel_is_point.into(),
            horizontal_epsg: crs.horizontal_epsg().map_or(0, u32::from),
            vertical_epsg: crs.vertical_epsg().map_or(0, u32::from),
            crs: texts.crs.as_ptr(),
            wkt: texts.wkt.as_ptr(),
            geotiff: if texts.geotiff.is_empty() {
                std::ptr::null()
            } else {
                texts.geotiff.as_ptr()
            },
            geotiff_length: texts.geotiff.len(),
            sample: sample_code(storage.sample),
            has_nodata: storage.nodata.is_some().into(),
            nodata: storage.nodata.unwrap_or(f64::NAN),
            scale: storage.band.scale,
            offset: storage.band.offset,
            unit: texts.unit.as_ptr(),
            metres_per_unit: self.unit.metres(),
            description: texts.description.as_ptr(),
            source_sample: source.map_or(0, sample_code),
            source_has_nodata: samples.nodata.is_some().into(),
            source_nodata: samples.nodata.unwrap_or(f64::NAN),
            bound,
            bound_m,
            max_error_m: statistics.max_error_m,
            rmse_m: statistics.rmse_m,
            pixels: statistics.pixels,
            lowest_m: statistics.lowest_m,
            highest_m: statistics.highest_m,
            method: texts.method.as_ptr(),
            model: texts.model.as_ptr(),
            bytes: self.terrain.reader().length(),
            json: texts.json.as_ptr(),
        }
    }
}

#[repr(C)]
struct GeoKeys {
    directory: *const u16,
    directory_length: usize,
    doubles: *const f64,
    doubles_length: usize,
    text: *const c_char,
}

/// GeoTIFF's keys of a file, as its source had them.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_describe_keys(
    file: *const File,
    keys: *mut GeoKeys,
    error: ErrorText,
) -> i32 {
    let describe = || {
        // SAFETY: as this function's.
        let file = unsafe { open_file(file)? };
        if keys.is_null() {
            return Err(Failure::Null { name: "keys" });
        }
        let own = &file.terrain.header().geo_keys;
        let found = GeoKeys {
            directory: own.directory.as_ptr(),
            directory_length: own.directory.len(),
            doubles: own.doubles.as_ptr(),
            doubles_length: own.doubles.len(),
            text: file.texts.keys.as_ptr(),
        };
        // SAFETY: it leads to keys that the caller wants written.
        unsafe { keys.write(found) };
        Ok(())
    };
    // SAFETY: as this function's.
    unsafe { status(error, describe) }
}

#[repr(C)]
struct Level {
    width: u32,
    height: u32,
    rmse_m: f64,
    max_error_m: f64,
}

/// Describes a level.
///
/// # Safety
/// Pointers are as `terrane.h` asks for.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_describe_level(
    file: *const File,
    level: u32,
    out: *mut Level,
    error: ErrorText,
) -> i32 {
    let describe = || {
        // SAFETY: as this function's.
        let file = unsafe { open_file(file)? };
        if out.is_null() {
            return Err(Failure::Null { name: "out" });
        }
        let header = file.terrain.header();
        let number = file.level(level)?;
        let (width, height) = header.pyramid.size(number).unwrap_or_default();
        let (rmse_m, max_error_m) = match usize::from(number).checked_sub(1) {
            None => (header.statistics.rmse_m, header.statistics.max_error_m),
            Some(index) => {
                let overview = header.overviews.get(index).copied().unwrap_or_default();
                (overview.rmse_m.into(), overview.max_error_m.into())
            }
        };
        let found = Level {
            width,
            height,
            rmse_m,
            max_error_m,
        };
        // SAFETY: it leads to a level that the caller wants written.
        unsafe { out.write(found) };
        Ok(())
    };
    // SAFETY: as this function's.
    unsafe { status(error, describe) }
}
