//! The files of the viewer and of the browser's decoder, inside the program.

use sha2::{Digest, Sha256};

/// One file.
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) bytes: &'static [u8],
}

macro_rules! asset {
    ($name:literal, $folder:literal, $media_type:literal) => {
        Asset {
            name: $name,
            media_type: $media_type,
            bytes: include_bytes!(concat!("../", $folder, $name)),
        }
    };
}

/// The page itself.
pub(crate) const PAGE: Asset = asset!("index.html", "viewer/", "text/html; charset=utf-8");

pub(crate) const ASSETS: [Asset; 16] = [
    asset!("style.css", "viewer/", "text/css; charset=utf-8"),
    asset!("icon.svg", "viewer/", "image/svg+xml"),
    asset!("main.js", "viewer/", "text/javascript; charset=utf-8"),
    asset!("address.js", "viewer/", "text/javascript; charset=utf-8"),
    asset!("maps.js", "viewer/", "text/javascript; charset=utf-8"),
    asset!("swipe.js", "viewer/", "text/javascript; charset=utf-8"),
    asset!("inspect.js", "viewer/", "text/javascript; charset=utf-8"),
    asset!("profile.js", "viewer/", "text/javascript; charset=utf-8"),
    asset!("chart.js", "viewer/", "text/javascript; charset=utf-8"),
    asset!("legend.js", "viewer/", "text/javascript; charset=utf-8"),
    asset!("parts.js", "viewer/", "text/javascript; charset=utf-8"),
    asset!("source.js", "viewer/", "text/javascript; charset=utf-8"),
    asset!("words.js", "viewer/", "text/javascript; charset=utf-8"),
    asset!(
        "maplibre-gl.mjs",
        "viewer/vendor/maplibre-gl/",
        "text/javascript; charset=utf-8"
    ),
    asset!(
        "maplibre-gl-worker.mjs",
        "viewer/vendor/maplibre-gl/",
        "text/javascript; charset=utf-8"
    ),
    asset!(
        "maplibre-gl.css",
        "viewer/vendor/maplibre-gl/",
        "text/css; charset=utf-8"
    ),
];

/// The decoder for browsers, which only a site needs: a server decodes by itself.
pub(crate) const DECODER: [Asset; 9] = [
    asset!("index.js", "web/", "text/javascript; charset=utf-8"),
    asset!("assets.js", "web/", "text/javascript; charset=utf-8"),
    asset!("bytes.js", "web/", "text/javascript; charset=utf-8"),
    asset!("files.js", "web/", "text/javascript; charset=utf-8"),
    asset!("input.js", "web/", "text/javascript; charset=utf-8"),
    asset!("decoder.js", "web/", "text/javascript; charset=utf-8"),
    asset!("pool.js", "web/", "text/javascript; charset=utf-8"),
    asset!("worker.js", "web/", "text/javascript; charset=utf-8"),
    asset!("terrane.wasm", "web/", "application/wasm"),
];

/// A file by its name.
pub(crate) fn asset(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

impl Asset {
    /// A tag that changes with the file.
    pub(crate) fn tag(&self) -> String {
        format!("\"{}\"", hex::encode(&Sha256::digest(self.bytes)[..8]))
    }
}
