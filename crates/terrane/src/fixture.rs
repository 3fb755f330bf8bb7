//! Files that tests make for themselves.

use std::path::Path;

use terrane_codec::Resources;
use terrane_geo::{Existing, Kind, MemoryRaster, Output};

use crate::{Destination, Settings, encode};

/// Encodes a raster; a file that is there is replaced.
pub(crate) fn write(raster: &MemoryRaster, settings: &Settings, path: &Path) {
    let resources = Resources::of_jobs(2);
    let destination = Destination {
        out: Output::new(path, Existing::Replace, Kind::Terrain),
        resumable: None,
        resources,
    };
    let prepared = settings.prepare(resources.memory).unwrap();
    encode(raster, &prepared, destination, &mut |_| Ok(())).unwrap();
}
