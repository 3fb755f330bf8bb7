//! What is served, and what is known of each file.

use serde_json::{Map, Value, json};

use terrane::tiles::Format;

use crate::Server;
use crate::dataset::Dataset;

/// All files, as martin lists its sources; `names` holds their order, which an object has not.
pub(crate) fn catalogue(server: &Server) -> Value {
    let tiles: Map<String, Value> = server
        .datasets
        .iter()
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
    json!({ "names": server.names(), "attribution": server.attribution, "tiles": tiles })
}

/// What is known of a file.
pub(crate) fn info(dataset: &Dataset) -> Value {
    let mut value = dataset.tiles.info();
    value["name"] = dataset.name.clone().into();
    value["bytes"] = dataset.bytes.into();
    let original = dataset.original.as_ref();
    value["original"] = original.map(|original| original.name.clone()).into();
    value["original_bytes"] = original.map(|original| original.bytes).into();
    value["before"] = dataset
        .before
        .as_ref()
        .map(|before| before.name.clone())
        .into();
    value
}
