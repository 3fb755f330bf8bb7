//! TileJSON 3.0.0: how a map client finds the tiles.

use serde_json::{Map, Value, json};
use terrane::tiles::{Format, Layer, TileRequest};

use crate::dataset::Dataset;

/// The description of contour lines as vector tiles; an interval in metres stays in the addresses of the tiles.
pub(crate) fn contours_tilejson(dataset: &Dataset, interval: Option<f64>, base: &str) -> Value {
    let name = &dataset.name;
    let [west, south, east, north] = dataset.tiles.bounds();
    let zooms = dataset.tiles.zooms(Layer::Height);
    let query = interval.map_or_else(String::new, |interval| format!("?interval={interval}"));
    let intervals: Map<String, Value> = zooms
        .clone()
        .map(|z| {
            let interval = interval.unwrap_or_else(|| dataset.tiles.contour_interval(z));
            (z.to_string(), interval.into())
        })
        .collect();
    json!({
        "tilejson": "3.0.0",
        "name": format!("{name}, contours"),
        "scheme": "xyz",
        "tiles": [format!("{base}/{name}/contours/{{z}}/{{x}}/{{y}}.mvt{query}")],
        "bounds": dataset.tiles.bounds(),
        "center": [
            f64::midpoint(west, east),
            f64::midpoint(south, north),
            (zooms.start() + 2).min(*zooms.end()),
        ],
        "minzoom": zooms.start(),
        "maxzoom": zooms.end(),
        "format": "pbf",
        "vector_layers": [{
            "id": "contours",
            "description": "Lines of equal height; every fifth is an index line",
            "minzoom": zooms.start(),
            "maxzoom": zooms.end(),
            "fields": { "height": "Number of metres", "index": "Boolean" },
        }],
        "interval_m_by_zoom": intervals,
    })
}

/// The description of one layer; `base` is the address of the server.
pub(crate) fn tilejson(dataset: &Dataset, layer: Layer, format: Format, base: &str) -> Value {
    let name = &dataset.name;
    let [west, south, east, north] = dataset.tiles.bounds();
    let part = match layer {
        Layer::Height => String::new(),
        _ => format!("/{}", layer.name()),
    };
    let extension = format.extension();
    let zooms = dataset.tiles.zooms(layer);
    let mut value = json!({
        "tilejson": "3.0.0",
        "name": if layer == Layer::Height { name.clone() } else { format!("{name}, {}", layer.name()) },
        "scheme": "xyz",
        "tiles": [format!("{base}/{name}{part}/{{z}}/{{x}}/{{y}}.{extension}")],
        "bounds": dataset.tiles.bounds(),
        "center": [
            f64::midpoint(west, east),
            f64::midpoint(south, north),
            (zooms.start() + 2).min(*zooms.end()),
        ],
        "minzoom": zooms.start(),
        "maxzoom": zooms.end(),
        "tileSize": TileRequest::SIDE,
        "format": extension,
        "unit": layer.unit(),
    });
    if layer == Layer::Height {
        value["encoding"] = "terrarium".into();
        value["nodata_height_m"] = dataset.tiles.range().lowest_m.into();
    }
    value
}
