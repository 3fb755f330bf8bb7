//! What is served, and what is known of each file.

use serde_json::{Map, Value, json};
use terrane_codec::format::ErrorBound;

use terrane::tiles::{Format, Layer, Legend, TileRequest, legend};

use crate::dataset::Dataset;

/// All files, as martin lists its sources.
pub(crate) fn catalogue<'a>(datasets: impl Iterator<Item = &'a Dataset>) -> Value {
    let tiles: Map<String, Value> = datasets
        .map(|dataset| {
            let entry = json!({
                "content_type": Format::Png.media_type(),
                "description": dataset.tiles.crs().to_string(),
                "original": dataset.original.as_ref().map(|original| &original.name),
                "before": dataset.before.as_ref().map(|before| &before.name),
                "is_original": dataset.tiles.terrain().is_none(),
            });
            (dataset.name.clone(), entry)
        })
        .collect();
    json!({ "tiles": tiles })
}

/// What is known of a file.
pub(crate) fn info(dataset: &Dataset) -> Value {
    let layers: Vec<Value> = Layer::ALL
        .into_iter()
        .filter(|layer| dataset.tiles.has_layer(*layer))
        .map(|layer| describe(dataset, layer))
        .collect();
    let tiles = &dataset.tiles;
    let zooms = tiles.zooms(Layer::Height);
    let mut value = json!({
        "name": dataset.name,
        "bytes": dataset.bytes,
        "bounds": tiles.bounds(),
        "minzoom": zooms.start(),
        "maxzoom": zooms.end(),
        "crs": tiles.crs().to_string(),
        "pixel_m": tiles.pixel_m(),
        "lowest_m": tiles.range().lowest_m,
        "highest_m": tiles.range().highest_m,
        "original": dataset.original.as_ref().map(|original| &original.name),
        "original_bytes": dataset.original.as_ref().map(|original| original.bytes),
        "before": dataset.before.as_ref().map(|before| &before.name),
        "is_original": dataset.tiles.terrain().is_none(),
        "layers": layers,
    });
    if let Some(terrain) = tiles.terrain() {
        let header = terrain.header();
        let statistics = &header.statistics;
        let (width, height) = header.pyramid.size(0).unwrap_or_default();
        value["width"] = width.into();
        value["height"] = height.into();
        value["pixels"] = statistics.pixels.into();
        value["bpp"] = (dataset.bytes as f64 * 8.0 / statistics.pixels.max(1) as f64).into();
        value["rmse_m"] = statistics.rmse_m.into();
        value["max_error_m"] = statistics.max_error_m.into();
        value["bound_m"] = match header.bound {
            ErrorBound::MaxError(bound) => bound.into(),
            _ => Value::Null,
        };
        value["lossless"] = matches!(header.bound, ErrorBound::Lossless { .. }).into();
        value["method"] = header.method.name().into();
        value["model"] = header.model.as_ref().map(|model| model.name.clone()).into();
    }
    value
}

/// A layer with its legend; where the end of its colours depends on the zoom, with that end for every zoom.
fn describe(dataset: &Dataset, layer: Layer) -> Value {
    let legend = legend(layer);
    let is_limited = legend.as_ref().is_some_and(Legend::is_limited);
    let limits: Option<Map<String, Value>> = is_limited.then(|| {
        let zooms = dataset.tiles.zooms(layer);
        zooms
            .map(|z| {
                let limit = dataset.tiles.limit(layer, z, TileRequest::SIDE);
                (z.to_string(), limit.into())
            })
            .collect()
    });
    json!({
        "name": layer.name(),
        "unit": layer.unit(),
        "minzoom": dataset.tiles.zooms(layer).start(),
        "legend": legend,
        "limit_by_zoom": limits,
    })
}
