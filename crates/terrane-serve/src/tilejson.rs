//! TileJSON: how a map client finds the tiles.

use serde_json::Value;
use terrane::tiles::{Format, Layer, TileError};

use crate::dataset::Dataset;

/// The description of contour lines as vector tiles; an interval in metres stays in the addresses of the tiles.
pub(crate) fn contours_tilejson(
    dataset: &Dataset,
    interval: Option<f64>,
    base: &str,
) -> Result<Value, TileError> {
    let name = &dataset.name;
    let query = interval.map_or_else(String::new, |interval| format!("?interval={interval}"));
    let address = format!("{base}/{name}/contours/{{z}}/{{x}}/{{y}}.mvt{query}");
    let tiles = &dataset.tiles;
    tiles.contours_tilejson(name, &address, interval)
}

/// The description of one layer; `base` is the address of the server.
pub(crate) fn tilejson(dataset: &Dataset, layer: Layer, format: Format, base: &str) -> Value {
    let name = &dataset.name;
    let part = match layer {
        Layer::Height => String::new(),
        _ => format!("/{}", layer.name()),
    };
    let extension = format.extension();
    let address = format!("{base}/{name}{part}/{{z}}/{{x}}/{{y}}.{extension}");
    let mut value = dataset.tiles.tilejson(layer, name, &address);
    value["format"] = extension.into();
    value
}

/// Adds the attribution, which is HTML, where there is one.
pub(crate) fn attribute(description: &mut Value, attribution: Option<&str>) {
    if let Some(attribution) = attribution {
        description["attribution"] = attribution.into();
    }
}
