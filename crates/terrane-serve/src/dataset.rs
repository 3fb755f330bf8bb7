//! One file that is served: its name, what tells it from another version, and its tiles.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};
use terrane::tiles::{Before, BlockCache, MapTiles, TileError};
use terrane::{TiffCache, VirtualTiff, sentence};
use terrane_codec::{Terrain, shown};
use terrane_geo::RasterSource;
use tokio::sync::OnceCell;

use crate::Error;

/// One file that is served.
pub(crate) struct Dataset {
    pub(crate) name: String,
    /// Changes when the file does.
    pub(crate) identity: String,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    pub(crate) tiles: Arc<MapTiles>,
    /// The file as a `GeoTIFF`, or why it cannot be one; an original has none.
    pub(crate) tiff: Option<Result<Arc<VirtualTiff>, String>>,
    /// Where its bytes are, once somebody asked: all of it is read for that.
    pub(crate) parts: OnceCell<Value>,
    /// The raster that the file was made from.
    pub(crate) original: Option<Arc<Self>>,
    /// An earlier file of the same pixels.
    pub(crate) before: Option<Arc<Self>>,
}

/// What a file is compared with.
#[derive(Default)]
pub(crate) struct Compared {
    pub(crate) original: Option<Arc<Dataset>>,
    pub(crate) before: Option<Arc<Dataset>>,
}

fn on_map(path: &Path) -> impl FnOnce(TileError) -> Error {
    let file = shown(path);
    move |source| Error::NotOnMap { file, source }
}

impl Dataset {
    /// A terrane file.
    pub(crate) fn of_terrain(
        name: String,
        path: &Path,
        terrain: Arc<Terrain>,
        Compared { original, before }: Compared,
        cache: &Arc<BlockCache>,
        tiff_cache: &Arc<TiffCache>,
    ) -> Result<Self, Error> {
        let tiff = VirtualTiff::new(terrain.clone(), Path::new(&name), tiff_cache);
        let tiff = tiff.map(Arc::new).map_err(|error| sentence(&error));
        let bytes = terrain.reader().length();
        // The head holds the checksums of the index, which holds those of the tiles.
        let identity = hex::encode(&Sha256::digest(terrain.reader().head())[..8]);
        let compared = original.as_ref().map(|original| original.tiles.clone());
        let earlier = before
            .as_ref()
            .map(|before| Before::new(&terrain, before.tiles.clone()))
            .transpose()
            .map_err(|source| Error::NotBefore {
                name: name.clone(),
                source: Box::new(source),
            })?;
        let tiles = MapTiles::open(terrain, cache).map_err(on_map(path))?;
        Ok(Self {
            name,
            identity,
            bytes,
            tiles: Arc::new(tiles.with_original(compared).with_before(earlier)),
            tiff: Some(tiff),
            parts: OnceCell::new(),
            original,
            before,
        })
    }

    /// The raster that a file was made from.
    pub(crate) fn of_original(
        name: String,
        path: &Path,
        raster: Box<dyn RasterSource>,
        terrain: &Terrain,
        cache: &Arc<BlockCache>,
    ) -> Result<Self, Error> {
        let metadata = std::fs::metadata(path).map_err(|source| Error::Unreadable {
            file: shown(path),
            source,
        })?;
        let changed = metadata
            .modified()
            .ok()
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let tiles = MapTiles::of_original(raster, terrain, cache).map_err(on_map(path))?;
        Ok(Self {
            name,
            identity: format!(
                "{}-{}",
                metadata.len(),
                changed.unwrap_or_default().as_nanos()
            ),
            bytes: metadata.len(),
            tiles: Arc::new(tiles),
            tiff: None,
            parts: OnceCell::new(),
            original: None,
            before: None,
        })
    }
}
