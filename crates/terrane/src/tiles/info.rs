//! What a map client is told of a file: its layers, its facts, and how its tiles are found.

use serde_json::{Map, Value, json};
use terrane_codec::format::ErrorBound;

use super::bounds::{middle, unwrapped};
use super::error::Result;
use super::{Layer, Legend, MapTiles, TileRequest, legend};

impl MapTiles {
    /// What is known of the file, or of the raster that one was made from.
    pub fn info(&self) -> Value {
        let layers: Vec<Value> = Layer::ALL
            .into_iter()
            .filter(|layer| self.has_layer(*layer))
            .map(|layer| self.layer_info(layer))
            .collect();
        let zooms = self.zooms(Layer::Height);
        let mut value = json!({
            "bounds": self.bounds(),
            "accuracy_m": self.accuracy_m(),
            "minzoom": zooms.start(),
            "maxzoom": zooms.end(),
            "crs": self.crs().to_string(),
            "pixel_m": self.pixel_m(),
            "lowest_m": self.range().lowest_m,
            "highest_m": self.range().highest_m,
            "is_original": self.terrain().is_none(),
            "layers": layers,
        });
        if let Some(terrain) = self.terrain() {
            let header = terrain.header();
            let statistics = &header.statistics;
            let (width, height) = header.pyramid.size(0).unwrap_or_default();
            let bytes = terrain.reader().length();
            value["bytes"] = bytes.into();
            value["width"] = width.into();
            value["height"] = height.into();
            value["pixels"] = statistics.pixels.into();
            value["bpp"] = (bytes as f64 * 8.0 / statistics.pixels.max(1) as f64).into();
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
    fn layer_info(&self, layer: Layer) -> Value {
        let legend = legend(layer);
        let is_limited = legend.as_ref().is_some_and(Legend::is_limited);
        let limits: Option<Map<String, Value>> = is_limited.then(|| {
            let zooms = self.zooms(layer);
            zooms
                .map(|z| {
                    let limit = self.limit(layer, z, TileRequest::SIDE);
                    (z.to_string(), limit.into())
                })
                .collect()
        });
        json!({
            "name": layer.name(),
            "unit": layer.unit(),
            "minzoom": self.zooms(layer).start(),
            "legend": legend,
            "limit_by_zoom": limits,
        })
    }

    /// TileJSON 3.0.0 of a layer: how a map client finds its tiles, which are at `address`, a template.
    pub fn tilejson(&self, layer: Layer, name: &str, address: &str) -> Value {
        let title = match layer {
            Layer::Height => name.to_owned(),
            _ => format!("{name}, {}", layer.name()),
        };
        let mut value = self.found_at(&title, address, layer);
        value["tileSize"] = TileRequest::SIDE.into();
        value["unit"] = layer.unit().into();
        if layer == Layer::Height {
            value["encoding"] = "terrarium".into();
            value["nodata_height_m"] = self.range().lowest_m.into();
        }
        value
    }

    /// TileJSON 3.0.0 of contour lines as vector tiles, `interval` metres apart or as suits the zoom; an
    /// error where tiles would not be drawn at that interval.
    pub fn contours_tilejson(
        &self,
        name: &str,
        address: &str,
        interval: Option<f64>,
    ) -> Result<Value> {
        interval
            .map(|interval| self.contour_levels(interval))
            .transpose()?;
        let zooms = self.zooms(Layer::Height);
        let intervals: Map<String, Value> = zooms
            .clone()
            .map(|z| {
                let interval = interval.unwrap_or_else(|| self.contour_interval(z));
                (z.to_string(), interval.into())
            })
            .collect();
        let mut value = self.found_at(&format!("{name}, contours"), address, Layer::Height);
        value["format"] = "pbf".into();
        value["vector_layers"] = json!([{
            "id": "contours",
            "description": "Lines of equal height; every fifth is an index line",
            "minzoom": zooms.start(),
            "maxzoom": zooms.end(),
            "fields": { "height": "Number of metres", "index": "Boolean" },
        }]);
        value["interval_m_by_zoom"] = intervals.into();
        Ok(value)
    }

    /// What every TileJSON says: where tiles are, and which places and zooms of a layer there are.
    fn found_at(&self, title: &str, address: &str, layer: Layer) -> Value {
        let (longitude, latitude) = middle(self.bounds());
        let zooms = self.zooms(layer);
        json!({
            "tilejson": "3.0.0",
            "name": title,
            "scheme": "xyz",
            "tiles": [address],
            // Bounds of TileJSON do not pass 180°.
            "bounds": unwrapped(self.bounds()),
            "center": [
                longitude,
                latitude,
                (zooms.start() + 2).min(*zooms.end()),
            ],
            "minzoom": zooms.start(),
            "maxzoom": zooms.end(),
        })
    }
}
