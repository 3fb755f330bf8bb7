//! The files of the viewer, inside the program.

use sha2::{Digest, Sha256};

/// One file.
pub(crate) struct Asset {
    name: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) bytes: &'static [u8],
}

macro_rules! asset {
    ($name:literal, $media_type:literal) => {
        asset!($name, $media_type, $name)
    };
    ($name:literal, $media_type:literal, $path:literal) => {
        Asset {
            name: $name,
            media_type: $media_type,
            bytes: include_bytes!(concat!("../../../../viewer/", $path)),
        }
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The page itself.
pub(crate) const PAGE: Asset = asset!("index.html", "text/html; charset=utf-8");

const ASSETS: [Asset; 0] = [];

/// A file by its name.
pub(crate) fn asset(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

impl Asset {
    /// A tag that changes with the file.
    pub(crate) fn tag(&self) -> String {
        format!("\"{}\"", terrane::hexadecimal(&Sha256::digest(self.bytes)[..8]))
    }
}
