//! What a terrane file keeps of a raster's description, and back.

use terrane_codec::Terrain;
use terrane_codec::format::{ErrorBound, GeoKeys, Header, Samples};
use terrane_geo::geodesy::WGS_84;
use terrane_geo::{
    Affine, BandMetadata, Crs, GeodesyError, Georeference, HeightUnit, Projection, RasterInfo,
    SampleType, Storage, System, UnitOrigin,
};

use crate::{Error, Result};

/// A transform from its six numbers in GDAL's order.
pub fn affine(numbers: [f64; 6]) -> Affine {
    Affine::from_numbers(numbers)
}

/// GeoTIFF's keys as the file keeps them.
pub fn geo_keys(crs: &Crs) -> GeoKeys {
    GeoKeys {
        directory: crs.directory.clone(),
        doubles: crs.doubles.clone(),
        text: crs.text.clone(),
    }
}

/// How a source stores its heights, as the file keeps it.
pub fn samples(info: &RasterInfo) -> Samples {
    let storage = &info.storage;
    Samples {
        kind: storage.sample.name().to_owned(),
        nodata: storage.nodata,
        scale: storage.band.scale,
        offset: storage.band.offset,
        unit: storage.band.unit.clone(),
        description: storage.band.description.clone(),
    }
}

/// Where the raster of a file lies.
pub fn georeference(header: &Header) -> Georeference {
    let keys = &header.geo_keys;
    let crs = Crs {
        directory: keys.directory.clone(),
        doubles: keys.doubles.clone(),
        text: keys.text.clone(),
    };
    Georeference {
        anchor: affine(header.affine),
        is_georeferenced: header.is_georeferenced,
        crs,
    }
}

/// The unit in which the source stores its heights, and what states it; `None` where it is not known here.
pub fn height_unit(header: &Header) -> Option<(HeightUnit, UnitOrigin)> {
    let mut storage = Storage::metres(SampleType::F64, None);
    storage.band.unit.clone_from(&header.samples.unit);
    storage.unit_with_origin(&georeference(header).crs).ok()
}

/// Columns and rows of a file at full resolution.
pub fn size(terrain: &Terrain) -> (usize, usize) {
    let (width, height) = terrain.header().pyramid.size(0).unwrap_or_default();
    (width as usize, height as usize)
}

/// How many metres the shift of a file's datum to WGS 84 may be off, as EPSG states it: `None` where it states nothing, and
/// an error where the file cannot be placed on the Earth.
pub fn placement(header: &Header) -> std::result::Result<Option<f64>, GeodesyError> {
    if !header.is_georeferenced {
        return Err(GeodesyError::NoSystem);
    }
    let (width, height) = header.pyramid.size(0).unwrap_or_default();
    let own = System::of_raster(&georeference(header), (width as usize, height as usize))?;
    Ok(Projection::new(&own, &System::epsg(WGS_84)?)?.accuracy_m())
}

/// Whether every height at full resolution is the source's: because the file is lossless, or because it was so when the
/// file was made.
pub fn is_exact(header: &Header) -> bool {
    matches!(header.bound, ErrorBound::Lossless { .. }) || header.statistics.max_error_m == 0.0
}

/// How a decoded raster is stored: as its source where every value is the source's, else as floats that are fine enough
/// for the error bound.
pub fn storage(header: &Header, as_source: bool) -> Result<Storage> {
    let samples = &header.samples;
    let sample = SampleType::ALL
        .into_iter()
        .find(|sample| sample.name() == samples.kind)
        .ok_or_else(|| Error::UnknownSamples {
            kind: samples.kind.clone(),
        })?;
    let mut band = BandMetadata {
        unit: samples.unit.clone(),
        description: samples.description.clone(),
        ..BandMetadata::default()
    };
    let (width, height) = header.pyramid.size(0).unwrap_or_default();
    let statistics = &header.statistics;
    let has_gaps = statistics.pixels < u64::from(width) * u64::from(height);
    // An integer raster whose gaps were a mask has no value for them.
    if as_source && (sample.is_float() || samples.nodata.is_some() || !has_gaps) {
        band.scale = samples.scale;
        band.offset = samples.offset;
        return Ok(Storage {
            sample,
            nodata: samples.nodata,
            band,
        });
    }
    let max_abs = statistics.lowest_m.abs().max(statistics.highest_m.abs());
    let is_fine = match header.bound {
        ErrorBound::MaxError(bound) => bound < 4.0 * F32_STEP * (max_abs + bound),
        ErrorBound::Lossless { .. } => true,
        ErrorBound::None => false,
    };
    let sample = match sample {
        SampleType::F32 => SampleType::F32,
        SampleType::F64 => SampleType::F64,
        _ if is_fine => SampleType::F64,
        _ => SampleType::F32,
    };
    // A height that was decoded must not be taken for none, in whatever unit.
    let range = [statistics.lowest_m, statistics.highest_m];
    let is_free = |value: &f64| {
        let margin = 1.0 + value.abs() * 1e-6;
        [1.0, 0.3048]
            .iter()
            .all(|unit| value * unit < range[0] - margin || value * unit > range[1] + margin)
    };
    let nodata = [samples.nodata, Some(-9999.0), Some(-1e9)]
        .into_iter()
        .flatten()
        .find(is_free)
        .unwrap_or(f64::NAN);
    Ok(Storage {
        sample,
        nodata: Some(nodata),
        band,
    })
}

/// A 32-bit float is off by at most this part of its value.
const F32_STEP: f64 = 1.0 / 16_777_216.0;
