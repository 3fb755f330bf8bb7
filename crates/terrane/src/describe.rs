//! What a terrane file says of itself, as JSON.

use serde_json::{Value, json};
use terrane_codec::format::{ErrorBound, Reader};

use crate::extent::{extent, geographic_extent};
use crate::georeferencing::{georeference, height_unit, placement};

/// The description of a file; needs no model.
pub fn describe(reader: &Reader) -> Value {
    let header = reader.header();
    let pyramid = &header.pyramid;
    let (width, height) = pyramid.size(0).unwrap_or_default();
    let statistics = &header.statistics;
    let georeference = georeference(header);
    let crs = &georeference.crs;
    let unit = height_unit(header);
    let (accuracy_m, unplaced) = match placement(header) {
        Ok(accuracy_m) => (accuracy_m, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let levels: Vec<(u32, u32)> = (0..pyramid.levels())
        .filter_map(|level| pyramid.size(level))
        .collect();
    // Against means of the source's pixels with data.
    let overviews: Vec<Value> = levels
        .iter()
        .enumerate()
        .skip(1)
        .zip(&header.overviews)
        .map(|((level, (width, height)), overview)| {
            json!({
                "level": level, "width": width, "height": height,
                "rmse_m": overview.rmse_m, "max_error_m": overview.max_error_m,
            })
        })
        .collect();
    let (error_bound, bound) = match header.bound {
        ErrorBound::None => ("none".to_owned(), None),
        ErrorBound::MaxError(bound) => (format!("no error above {bound} m"), Some(bound)),
        ErrorBound::Lossless { .. } => ("lossless".to_owned(), None),
    };
    json!({
        "bytes": reader.length(), "width": width, "height": height, "tile": pyramid.side(),
        "levels": levels, "tiles": pyramid.tiles(), "tiles_with_data": statistics.tiles,
        "method": header.method.name(),
        "model": header.model.as_ref().map(|model| json!({
            "name": model.name, "sha256": hex::encode(model.sha256), "embedded": model.embedded.is_some(),
        })),
        "error_bound": error_bound, "bound_m": bound, "lossless": matches!(header.bound, ErrorBound::Lossless { .. }),
        "pixels": statistics.pixels,
        "bpp": reader.length() as f64 * 8.0 / statistics.pixels.max(1) as f64,
        "rmse_m": statistics.rmse_m, "max_error_m": statistics.max_error_m,
        "overviews": overviews,
        "lowest_m": statistics.lowest_m, "highest_m": statistics.highest_m,
        "crs": crs.to_string(), "horizontal_epsg": crs.horizontal_epsg(), "vertical_epsg": crs.vertical_epsg(),
        "crs_name": crs.name(), "coordinate_unit": crs.coordinate_unit(),
        "extent": extent(header), "bounds": geographic_extent(header),
        "pixel_size": georeference.affine().pixel_sides(),
        "wgs84_accuracy_m": accuracy_m, "unplaced": unplaced,
        "affine": header.affine, "pixel_is_point": header.pixel_is_point,
        "sample_type": header.samples.kind, "nodata": header.samples.nodata, "unit": header.samples.unit,
        "height_unit": unit.map(|(unit, _)| unit.name()), "height_unit_origin": unit.map(|(_, origin)| origin.name()),
    })
}
