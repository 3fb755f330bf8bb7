//! The files of the viewer, inside the program.

use sha2::{Digest, Sha256};

/// One file.
pub(crate) struct Asset {
    name: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) bytes: &'static [u8],
}

macro_rules! asset {
    ($name:literal, $folder:literal, $media_type:literal) => {
        Asset {
            name: $name,
            media_type: $media_type,
            bytes: include_bytes!(concat!("../../../viewer/", $folder, $name)),
        }
    };
}

/// The page itself.
pub(crate) const PAGE: Asset = asset!("index.html", "", "text/html; charset=utf-8");

const ASSETS: [Asset; 14] = [
    asset!("style.css", "", "text/css; charset=utf-8"),
    asset!("icon.svg", "", "image/svg+xml"),
    asset!("main.js", "", "text/javascript; charset=utf-8"),
    asset!("maps.js", "", "text/javascript; charset=utf-8"),
    asset!("swipe.js", "", "text/javascript; charset=utf-8"),
    asset!("inspect.js", "", "text/javascript; charset=utf-8"),
    asset!("profile.js", "", "text/javascript; charset=utf-8"),
    asset!("chart.js", "", "text/javascript; charset=utf-8"),
    asset!("legend.js", "", "text/javascript; charset=utf-8"),
    asset!("parts.js", "", "text/javascript; charset=utf-8"),
    asset!("words.js", "", "text/javascript; charset=utf-8"),
    asset!(
        "maplibre-gl.mjs",
        "vendor/maplibre-gl/",
        "text/javascript; charset=utf-8"
    ),
    asset!(
        "maplibre-gl-worker.mjs",
        "vendor/maplibre-gl/",
        "text/javascript; charset=utf-8"
    ),
    asset!(
        "maplibre-gl.css",
        "vendor/maplibre-gl/",
        "text/css; charset=utf-8"
    ),
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
