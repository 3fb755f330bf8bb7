//! What is served, and what is known of each file.

use serde_json::{Map, Value, json};
use terrane_codec::format::ErrorBound;

use super::colour::legend;
use super::dataset::Dataset;
use super::layer::Layer;
use super::picture::Format;
use super::tilejson::SIDE;

/// All files, as martin lists its sources.
pub(crate) fn catalogue<'a>(datasets: impl Iterator<Item = &'a Dataset>) -> Value {
    let tiles: Map<String, Value> = datasets
        .map(|dataset| {
            let entry = json!({
                "content_type": Format::Png.media_type(),
                "description": dataset.crs.to_string(),
                "original": dataset.original.as_ref().map(|original| &original.name),
                "is_original": dataset.terrain.is_none(),
            });
            (dataset.name.clone(), entry)
        })
        .collect();
    json!({ "tiles": tiles })
}

/// Whether a dataset has a layer.
pub(crate) fn has_layer(dataset: &Dataset, layer: Layer) -> bool {
    layer != Layer::Difference || dataset.original.is_some()
}

/// What is known of a file.
pub(crate) fn info(dataset: &Dataset) -> Value {
    let layers: Vec<Value> = Layer::ALL
        .into_iter()
        .filter(|layer| has_layer(dataset, *layer))
        .map(|layer| describe(dataset, layer))
        .collect();
    let mut value = json!({
        "name": dataset.name,
        "bytes": dataset.bytes,
        "bounds": dataset.bounds,
        "minzoom": dataset.zooms.start(),
        "maxzoom": dataset.zooms.end(),
        "crs": dataset.crs.to_string(),
        "pixel_m": dataset.pixel_m,
        "lowest_m": dataset.range.lowest_m,
        "highest_m": dataset.range.highest_m,
        "original": dataset.original.as_ref().map(|original| &original.name),
        "original_bytes": dataset.original.as_ref().map(|original| original.bytes),
        "is_original": dataset.terrain.is_none(),
        "layers": layers,
    });
    if let Some(terrain) = &dataset.terrain {
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
    let limits: Option<Map<String, Value>> =
        matches!(legend["kind"].as_str(), Some("root" | "signed")).then(|| {
            dataset
                .zooms_of(layer)
                .map(|z| (z.to_string(), dataset.limit(layer, z, SIDE).into()))
                .collect()
        });
    json!({ "name": layer.name(), "unit": layer.unit(), "legend": legend, "limit_by_zoom": limits })
}
