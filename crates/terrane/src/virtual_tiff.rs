//! A terrane file as a cloud-optimised `GeoTIFF` that is nowhere: its bytes are made when they are read, so that whatever reads
//! a `GeoTIFF` by parts reads the file.
//!
//! It has the pixels, the type and the description of what `terrane decode` writes, without compression, and the overviews of
//! the file itself. Reading a block decodes one tile.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use terrane_codec::Terrain;
use terrane_codec::format::{ErrorBound, Header, LevelTile, TileId, Window};
use terrane_geo::{Grid, MetadataItem, PlainBlocks, PlainCog, PlainRaster, Storage};

use crate::georeferencing::{georeference, is_exact, storage};
use crate::{Error, Result};

/// Side of a block where tiles have one that no block of a TIFF can have, which must be a multiple of 16.
const OTHER_SIDE: usize = 256;
/// Bytes that an entry of the cache takes besides its block.
const OVERHEAD: u64 = 128;
/// Bytes of a block of the default size, 256 × 256 pixels.
const TYPICAL_BYTES: usize = 256 * 256 * 4;

type Key = (u64, LevelTile);

#[derive(Debug, Clone)]
struct BlockBytes;

impl Weighter<Key, Arc<[u8]>> for BlockBytes {
    fn weight(&self, _: &Key, block: &Arc<[u8]>) -> u64 {
        OVERHEAD + block.len() as u64
    }
}

/// Blocks that were made for one [`VirtualTiff`] or several, kept for a while: a block is often read in several parts.
#[derive(Debug)]
pub struct TiffCache {
    blocks: Cache<Key, Arc<[u8]>, BlockBytes>,
    files: AtomicU64,
    decoded: AtomicU64,
}

impl TiffCache {
    /// A cache of so many bytes.
    pub fn new(max_bytes: usize) -> Self {
        let options = OptionsBuilder::new()
            .weight_capacity(max_bytes as u64)
            .estimated_items_capacity((max_bytes / TYPICAL_BYTES).max(1))
            // A block is a large part of a small cache, which must not be divided further.
            .shards(1)
            .build()
            .expect("the capacities are set");
        Self {
            blocks: Cache::with_options(
                options,
                BlockBytes,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            files: AtomicU64::new(0),
            decoded: AtomicU64::new(0),
        }
    }

    /// Bytes that are kept now.
    pub fn bytes(&self) -> usize {
        self.blocks.weight() as usize
    }

    /// Blocks that were decoded.
    pub fn decoded(&self) -> u64 {
        self.decoded.load(Ordering::Relaxed)
    }
}

/// A terrane file as the bytes of a `GeoTIFF`, which threads read at once.
#[derive(Debug)]
pub struct VirtualTiff {
    cog: PlainCog,
    source: Blocks,
}

#[derive(Debug)]
struct Blocks {
    terrain: Arc<Terrain>,
    side: usize,
    /// Whether tiles may have no data.
    has_empty: bool,
    cache: Arc<TiffCache>,
    /// Tells files apart in the cache.
    file: u64,
}

impl VirtualTiff {
    /// A file, called by its name in errors, with the cache for its blocks.
    pub fn new(terrain: Arc<Terrain>, name: &Path, cache: &Arc<TiffCache>) -> Result<Self> {
        let header = terrain.header();
        let pyramid = &header.pyramid;
        let tile_side = usize::from(pyramid.side());
        let is_tile = tile_side.is_multiple_of(16);
        let side = if is_tile { tile_side } else { OTHER_SIDE };
        let storage = storage(header, is_exact(header))?;
        let georeference = georeference(header);
        let mut items = accuracy(header);
        // Without a unit there are no heights, which the layout says.
        if let Ok(unit) = storage.unit(&georeference.crs) {
            let shown = |height_m| storage.shown(height_m, unit);
            items.extend(statistics(header, &storage, shown));
        }
        let levels = (0..pyramid.levels()).filter_map(|level| pyramid.size(level));
        let cog = PlainCog::new(PlainRaster {
            name: name.to_owned(),
            levels: levels
                .map(|(width, height)| (width as usize, height as usize))
                .collect(),
            side,
            georeference,
            storage,
            items,
        })?;
        let has_empty = is_tile && header.statistics.tiles < pyramid.tiles();
        Ok(Self {
            cog,
            source: Blocks {
                terrain,
                side,
                has_empty,
                cache: Arc::clone(cache),
                file: cache.files.fetch_add(1, Ordering::Relaxed),
            },
        })
    }

    /// Bytes of the whole.
    pub fn length(&self) -> u64 {
        self.cog.length()
    }

    /// Reads from an offset on; how many bytes, which are fewer than asked for at the end alone.
    pub fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<usize> {
        self.cog.read_at(offset, bytes, &SourceOf(self))
    }

    /// Where what is made together with an offset ends: a block, or a part of the directories.
    pub fn piece_end(&self, offset: u64) -> u64 {
        self.cog.piece_end(offset)
    }

    /// How heights are stored.
    pub fn storage(&self) -> &Storage {
        self.cog.storage()
    }
}

/// The blocks of a file, in the form that its layout knows.
struct SourceOf<'a>(&'a VirtualTiff);

fn tile(level: usize, column: usize, row: usize) -> LevelTile {
    LevelTile {
        level: level as u8,
        id: TileId { column, row },
    }
}

impl PlainBlocks for SourceOf<'_> {
    type Error = Error;

    fn is_empty(&self, level: usize, column: usize, row: usize) -> bool {
        let source = &self.0.source;
        source.has_empty && source.terrain.is_known_empty(tile(level, column, row))
    }

    fn bytes(&self, level: usize, column: usize, row: usize) -> Result<Arc<[u8]>> {
        let VirtualTiff { cog, source } = self.0;
        let block = tile(level, column, row);
        source
            .cache
            .blocks
            .get_or_insert_with(&(source.file, block), || {
                let heights = source.heights(block)?;
                source.cache.decoded.fetch_add(1, Ordering::Relaxed);
                Ok(cog.encode(level, column, row, &heights)?.into())
            })
    }
}

impl Blocks {
    fn heights(&self, block: LevelTile) -> Result<Grid> {
        let terrain = &self.terrain;
        let pyramid = &terrain.header().pyramid;
        if self.side == usize::from(pyramid.side()) {
            let Window { width, height, .. } = pyramid.window(block)?;
            return Ok(match terrain.decode(block)? {
                Some(tile) => Grid::new(width, height, tile.valid_heights()),
                None => Grid::missing(width, height),
            });
        }
        let (width, height) = pyramid.size(block.level).unwrap_or_default();
        let (column, row) = (block.id.column * self.side, block.id.row * self.side);
        let window = Window {
            column,
            row,
            width: self.side.min((width as usize).saturating_sub(column)),
            height: self.side.min((height as usize).saturating_sub(row)),
        };
        let heights = terrain.read(block.level, window)?;
        Ok(Grid::new(window.width, window.height, heights))
    }
}

/// What a file says of its errors.
fn accuracy(header: &Header) -> Vec<MetadataItem> {
    let item = |name, value| MetadataItem {
        name,
        value,
        of_band: false,
    };
    let mut items = vec![item("TERRANE_METHOD", header.method.name().to_owned())];
    match header.bound {
        ErrorBound::None => {}
        ErrorBound::MaxError(bound) => items.push(item("TERRANE_BOUND_M", bound.to_string())),
        ErrorBound::Lossless { .. } => items.push(item("TERRANE_LOSSLESS", "YES".to_owned())),
    }
    let statistics = &header.statistics;
    items.push(item("TERRANE_RMSE_M", statistics.rmse_m.to_string()));
    items.push(item(
        "TERRANE_MAX_ERROR_M",
        statistics.max_error_m.to_string(),
    ));
    items
}

/// The statistics of GDAL that a file knows, of stored numbers.
fn statistics(header: &Header, storage: &Storage, shown: impl Fn(f64) -> f64) -> Vec<MetadataItem> {
    let statistics = &header.statistics;
    if statistics.pixels == 0 {
        return Vec::new();
    }
    let (mut least, mut most) = (shown(statistics.lowest_m), shown(statistics.highest_m));
    if storage.band.scale < 0.0 {
        std::mem::swap(&mut least, &mut most);
    }
    let (width, height) = header.pyramid.size(0).unwrap_or_default();
    let share = statistics.pixels as f64 / (f64::from(width) * f64::from(height));
    let item = |name, value: f64| MetadataItem {
        name,
        value: value.to_string(),
        of_band: true,
    };
    vec![
        item("STATISTICS_MAXIMUM", most),
        item("STATISTICS_MINIMUM", least),
        item("STATISTICS_VALID_PERCENT", (share * 1e6).round() / 1e4),
    ]
}

#[cfg(test)]
mod tests;
