//! An open terrane file.

use std::hash::Hash;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use terrane_format::{
    ByteSource, Error as FormatError, Header, LevelTile, LocalFile, MemoryLimit, ModelId, Reader,
    Stored, TileId, Window,
};

use crate::Error;
use crate::address::RemoteOptions;
#[cfg(feature = "remote")]
use crate::address::is_address;
use crate::kept::Kept;
use crate::model::{FileModel, Models};
use crate::parallel::in_parallel;
use crate::resources::Resources;
use crate::surface::Surface;
use crate::tile::{Tile, TileDecoder};
use crate::time_limit::TimeLimit;
use crate::tree::{Branch, Place};

/// Decoded pixels that are kept, and tiles at most and at least.
const KEPT_PIXELS: usize = 1 << 24;
const KEPT: std::ops::RangeInclusive<usize> = 4..=256;
/// The same of tiles that others lie below, which take several times as much.
const KEPT_BRANCH_PIXELS: usize = 3 << 19;
const KEPT_BRANCHES: std::ops::RangeInclusive<usize> = 4..=64;
/// Tiles whose records are fetched together.
const FETCHED: usize = 512;

/// An open file: its description, its tiles, its surface.
#[derive(Debug)]
pub struct Terrain {
    reader: Reader,
    decoder: TileDecoder,
    memory: MemoryLimit,
    time: TimeLimit,
    /// Tiles that were used last; `None` for one without data.
    tiles: TileCache<LevelTile, Tile>,
    /// Tiles that others lie below, and whether with heights of their own.
    branches: TileCache<(LevelTile, bool), Branch>,
}

type TileCache<K, T> = Kept<K, Option<Arc<T>>>;

/// Records that were fetched and are whole, in the order of their tiles.
type Records = Vec<(LevelTile, Option<Vec<u8>>)>;

/// The bytes of a file of this machine or, with the feature `remote`, at an address.
#[cfg_attr(
    not(feature = "remote"),
    expect(unused_variables, reason = "addresses cannot be read")
)]
pub fn source(path: &Path, options: RemoteOptions) -> Result<Box<dyn ByteSource>, Error> {
    #[cfg(feature = "remote")]
    if let Some(address) = path.to_str().filter(|name| is_address(name)) {
        let file = crate::RemoteFile::open_with(address, options)?;
        return Ok(Box::new(crate::ReadAhead::new(Box::new(file))));
    }
    Ok(Box::new(LocalFile::open(path)?))
}

/// A cache of so many tiles; they are few and large, and a point at a border needs several new ones at once.
fn tile_cache<K: Eq + Hash + Clone, T>(kept: usize) -> TileCache<K, T> {
    Kept::new(kept as u64, kept, 0.5, |_| 1)
}

/// What a file needs to be opened.
#[derive(Debug, Clone, Default)]
pub struct TerrainOptions {
    /// The models that this program knows.
    pub models: Models,
    /// The file's model, where it is neither inside the file nor inside this program.
    pub model: Option<FileModel>,
    /// Memory that the file may take.
    pub memory: MemoryLimit,
}

/// The model that a file names: the one that was given, one of this program, or the one inside the file.
fn model_of(reader: &Reader, id: &ModelId, options: &TerrainOptions) -> Result<FileModel, Error> {
    let header = reader.header();
    if header.method.has_tokens() && !options.models.has_networks() && options.model.is_none() {
        return Err(Error::NoNetworks {
            method: header.method,
        });
    }
    let known = options.model.clone();
    let known = known.or_else(|| options.models.built_in(&id.sha256));
    let model = if let Some(model) = known {
        model
    } else {
        let bytes = reader.embedded_model(options.memory)?;
        let bytes = bytes.ok_or(Error::NoModel)?;
        options.models.load(&bytes, options.memory)?
    };
    if model.sha256() != id.sha256 {
        return Err(Error::OtherModel {
            name: if id.name.is_empty() {
                "without a name".to_owned()
            } else {
                id.name.clone()
            },
            expected: hex::encode(id.sha256),
            found: hex::encode(model.sha256()),
        });
    }
    let side = usize::from(header.pyramid.side());
    if model.side().is_some_and(|needed| needed != side) {
        return Err(Error::Setting {
            what: "the side of a tile",
            must: "that of the model",
            value: side.to_string(),
        });
    }
    Ok(model)
}

impl Terrain {
    /// Opens a file from any source.
    pub fn open(source: Box<dyn ByteSource>, options: TerrainOptions) -> Result<Self, Error> {
        let reader = Reader::open(source)?;
        let header = reader.header();
        let model = match &header.model {
            None => None,
            Some(id) => Some(model_of(&reader, id, &options)?),
        };
        let decoder = TileDecoder::new(header.method, model, header.bound);
        let side = usize::from(header.pyramid.side());
        let kept = (KEPT_PIXELS / (side * side)).clamp(*KEPT.start(), *KEPT.end());
        let terrain = Self {
            reader,
            decoder,
            memory: options.memory,
            time: TimeLimit::default(),
            tiles: tile_cache(kept),
            branches: tile_cache(
                (KEPT_BRANCH_PIXELS / (side * side))
                    .clamp(*KEPT_BRANCHES.start(), *KEPT_BRANCHES.end()),
            ),
        };
        // A tile that is too large for the memory should be known before one is decoded.
        terrain.decoders(1)?;
        Ok(terrain)
    }

    /// Memory that this file may take.
    pub fn memory(&self) -> MemoryLimit {
        self.memory
    }

    /// From now on all work on this file together may take so long, and then ends with an error; `None` for any time. A
    /// file of a few megabytes may say that it has 10¹⁶ pixels.
    pub fn limit_time(&self, limit: Option<Duration>) {
        self.time.set(limit);
    }

    /// Threads that may decode tiles at a time, of so many.
    pub fn decoders(&self, jobs: usize) -> Result<usize, Error> {
        let side = self.header().pyramid.side();
        let bytes = self.decoder.decoding_bytes(side.into());
        let memory = self.memory;
        Resources { jobs, memory }.jobs_of(bytes)
    }

    /// What the file holds.
    pub fn header(&self) -> &Header {
        self.reader.header()
    }

    /// The file below.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(crate) fn decoder(&self) -> &TileDecoder {
        &self.decoder
    }

    /// The continuous surface at full resolution.
    pub fn surface(&self) -> Result<Surface<'_>, Error> {
        Surface::new(self)
    }

    /// Decodes a tile; `None` where it has no data. It is kept for a while, and those who ask for it at the same time
    /// wait for the one that decodes it.
    pub fn tile(&self, tile: LevelTile) -> Result<Option<Arc<Tile>>, Error> {
        self.time.check()?;
        self.tiles
            .get_or_make(&tile, || Ok(self.decode(tile)?.map(Arc::new)))
    }

    /// Decodes a tile without keeping it.
    pub fn decode(&self, tile: LevelTile) -> Result<Option<Tile>, Error> {
        self.decode_from(tile, &self.fetch(&[tile])?)
    }

    /// Whether the index alone says that a tile has no data; false where it does not say, or cannot be read.
    pub fn is_known_empty(&self, tile: LevelTile) -> bool {
        let pyramid = &self.header().pyramid;
        // In a tree of wavelets a tile without a record is what the tile above it says.
        let asked = match self.header().method.stored() {
            Stored::Wavelet => pyramid.root(tile),
            _ => tile,
        };
        matches!(self.reader.locate(asked), Ok(None))
    }

    /// What a function makes of every tile of some trees, or of what is wrong with it, by so many threads. Every tile
    /// follows the one above it, so that none is decoded twice.
    pub fn decode_trees<T: Send>(
        &self,
        roots: &[LevelTile],
        jobs: usize,
        work: &(dyn Fn(LevelTile, Result<Option<Tile>, Error>) -> Result<T, Error> + Sync),
    ) -> Result<Vec<T>, Error> {
        let mut tiles = Vec::new();
        for &root in roots {
            self.add_below(root, &mut tiles);
        }
        let records = self.fetch(&tiles)?;
        in_parallel(tiles.len(), self.decoders(jobs)?, &|index| {
            let tile = tiles[index];
            work(tile, self.decode_from(tile, &records))
        })
    }

    /// Adds a tile, and below it each of those below it in its tree with its own.
    fn add_below(&self, tile: LevelTile, tiles: &mut Vec<LevelTile>) {
        tiles.push(tile);
        let pyramid = &self.header().pyramid;
        if tile.level > pyramid.storey(tile.level) {
            for below in pyramid.tiles_below(tile, tile.level - 1) {
                self.add_below(below, tiles);
            }
        }
    }

    /// The records of tiles and of those above them that are not at hand, in one round of reads. What is damaged is left
    /// out, so that only those who need it fail.
    fn fetch(&self, tiles: &[LevelTile]) -> Result<Records, Error> {
        self.time.check()?;
        let mut wanted = Vec::new();
        for &tile in tiles {
            // One outside the file is an error of its own.
            self.header().pyramid.number(tile)?;
            let is_shown = tile.level > self.header().pyramid.storey(tile.level);
            let mut next = Some(tile);
            while let Some(tile) = next {
                wanted.push(tile);
                let above = self.parent(tile);
                next = above.filter(|&above| !self.has_branch(above, is_shown));
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        let records = self.reader.records(&wanted)?;
        Ok(wanted
            .into_iter()
            .zip(records)
            .filter_map(|(tile, record)| Some((tile, record.ok()?)))
            .collect())
    }

    /// The tile above another, where tiles hold what those above them do not.
    fn parent(&self, tile: LevelTile) -> Option<LevelTile> {
        let is_tree = self.header().method.stored() == Stored::Wavelet;
        self.header().pyramid.parent(tile).filter(|_| is_tree)
    }

    fn decode_from(&self, tile: LevelTile, records: &Records) -> Result<Option<Tile>, Error> {
        self.time.check()?;
        let pyramid = &self.header().pyramid;
        let has_below = tile.level > pyramid.storey(tile.level);
        if has_below && self.header().method.stored() == Stored::Wavelet {
            let branch = self.branch(tile, true, records)?;
            return Ok(branch.map(|branch| branch.tile.copied()));
        }
        let branch = self.decode_branch(tile, false, records)?;
        Ok(branch.map(|branch| branch.tile))
    }

    /// A tile that others lie below, which is kept for a while.
    fn branch(
        &self,
        tile: LevelTile,
        is_shown: bool,
        records: &Records,
    ) -> Result<Option<Arc<Branch>>, Error> {
        // One with heights does for those below it too.
        if let Some(branch) = self.branches.get(&(tile, true)) {
            return Ok(branch);
        }
        self.branches.get_or_make(&(tile, is_shown), || {
            Ok(self.decode_branch(tile, is_shown, records)?.map(Arc::new))
        })
    }

    fn has_branch(&self, tile: LevelTile, is_shown: bool) -> bool {
        self.branches.contains(&(tile, true)) || self.branches.contains(&(tile, is_shown))
    }

    fn decode_branch(
        &self,
        tile: LevelTile,
        is_shown: bool,
        records: &Records,
    ) -> Result<Option<Branch>, Error> {
        let parent = self.parent(tile);
        let above = match parent {
            None => None,
            Some(parent) => self.branch(parent, is_shown, records)?,
        };
        let damaged = |source: Error| Error::Tile {
            tile,
            source: Box::new(source),
        };
        let read;
        let fetched = records.binary_search_by_key(&tile, |&(other, _)| other);
        let bytes = if let Ok(place) = fetched {
            &records[place].1
        } else {
            let bytes = self.reader.bytes(tile);
            read = bytes.map_err(|error| damaged(error.into()))?;
            &read
        };
        if parent.is_some() && above.is_none() {
            // Nothing lies below a tile without data.
            return match bytes {
                None => Ok(None),
                Some(_) => Err(damaged(Error::Format(FormatError::Malformed {
                    what: "tile",
                    offset: 0,
                    reason: "it lies below a tile without data",
                }))),
            };
        }
        let place = Place::of(&self.header().pyramid, tile)?;
        self.decoder
            .branch(&place, bytes.as_deref(), above.as_deref(), is_shown)
            .map_err(damaged)
    }

    /// The transform from the corner of the first pixel, in GDAL's order.
    pub fn corner_affine(&self) -> [f64; 6] {
        let header = self.header();
        let mut affine = header.affine;
        if header.is_georeferenced && header.pixel_is_point {
            affine[0] -= 0.5 * affine[1] + 0.5 * affine[2];
            affine[3] -= 0.5 * affine[4] + 0.5 * affine[5];
        }
        affine
    }

    /// As [`Terrain::read`], with so many threads and without keeping tiles: for going through a whole file.
    pub fn read_with(&self, level: u8, window: Window, jobs: usize) -> Result<Vec<f64>, Error> {
        self.check_window(level, window)?;
        self.check_memory(window)?;
        let heights = Mutex::new(vec![f64::NAN; window.width * window.height]);
        self.decode_window(level, window, jobs, &|tile| {
            let mut heights = heights.lock().unwrap_or_else(PoisonError::into_inner);
            paste(&tile, window, &mut heights);
        })?;
        Ok(heights.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Decodes the tiles that a window touches, with so many threads and without keeping them; `take` is given those
    /// that have data, in any order.
    pub fn decode_window(
        &self,
        level: u8,
        window: Window,
        jobs: usize,
        take: &(dyn Fn(Tile) + Sync),
    ) -> Result<(), Error> {
        self.check_window(level, window)?;
        let jobs = self.decoders(jobs)?;
        let tiles = in_turns(self.tiles_of(level, window), jobs);
        for tiles in tiles.chunks(FETCHED) {
            let records = self.fetch(tiles)?;
            in_parallel(tiles.len(), jobs, &|index| {
                if let Some(tile) = self.decode_from(tiles[index], &records)? {
                    take(tile);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The tiles that a window touches, row by row.
    fn tiles_of(&self, level: u8, window: Window) -> Vec<LevelTile> {
        let side = usize::from(self.header().pyramid.side());
        let columns = window.column / side..(window.column + window.width).div_ceil(side);
        let rows = window.row / side..(window.row + window.height).div_ceil(side);
        rows.flat_map(|row| columns.clone().map(move |column| TileId { column, row }))
            .map(|id| LevelTile { level, id })
            .collect()
    }

    /// Refuses a window whose heights do not fit the memory.
    fn check_memory(&self, window: Window) -> Result<(), Error> {
        let pixels = window.pixels().unwrap_or(usize::MAX) as u64;
        Ok(self.memory.check(
            "the heights of such a window",
            pixels.saturating_mul(8),
            "read a smaller part or an overview, or ",
        )?)
    }

    /// Refuses a window that is not inside a level.
    pub fn check_window(&self, level: u8, window: Window) -> Result<(), Error> {
        let (width, height) = self.header().pyramid.size(level).unwrap_or_default();
        if window.fits(width as usize, height as usize) {
            return Ok(());
        }
        Err(Error::Setting {
            what: "a window",
            must: "inside the raster",
            value: format!(
                "{}x{} at column {}, row {} of level {level}",
                window.width, window.height, window.column, window.row
            ),
        })
    }

    /// Heights of a window of a level, row by row; NaN where there is no data.
    pub fn read(&self, level: u8, window: Window) -> Result<Vec<f64>, Error> {
        self.check_window(level, window)?;
        self.check_memory(window)?;
        let mut heights = vec![f64::NAN; window.width * window.height];
        for tiles in self.tiles_of(level, window).chunks(FETCHED) {
            let missing: Vec<LevelTile> = tiles
                .iter()
                .copied()
                .filter(|tile| !self.tiles.contains(tile))
                .collect();
            let records = self.fetch(&missing)?;
            for &tile in tiles {
                let decode = || Ok(self.decode_from(tile, &records)?.map(Arc::new));
                let found: Result<_, Error> = self.tiles.get_or_make(&tile, decode);
                if let Some(tile) = found? {
                    paste(&tile, window, &mut heights);
                }
            }
        }
        Ok(heights)
    }
}

/// What sorts tiles tree by tree, and in a tree by those above them, so that these are decoded about once.
pub(crate) fn by_trees(id: TileId) -> [(usize, usize); 4] {
    [3, 2, 1, 0].map(|above| (id.row >> above, id.column >> above))
}

/// Tiles by those above them, so that these are decoded about once, and in as many turns as there are threads, so that no
/// two of them wait for the same one.
fn in_turns(mut tiles: Vec<LevelTile>, turns: usize) -> Vec<LevelTile> {
    tiles.sort_by_key(|tile| by_trees(tile.id));
    let part = tiles.len().div_ceil(turns.max(1)).max(1);
    let parts: Vec<&[LevelTile]> = tiles.chunks(part).collect();
    (0..part)
        .flat_map(|index| parts.iter().filter_map(move |part| part.get(index)))
        .copied()
        .collect()
}

/// Puts the part of a tile that a window shares into the window's heights.
fn paste(tile: &Tile, window: Window, heights: &mut [f64]) {
    let Some(shared) = tile.window.intersection(&window) else {
        return;
    };
    for row in shared.row..shared.row + shared.height {
        let from = (row - tile.window.row) * tile.window.width + shared.column - tile.window.column;
        let to = (row - window.row) * window.width + shared.column - window.column;
        let heights = &mut heights[to..to + shared.width];
        heights.copy_from_slice(&tile.heights[from..from + shared.width]);
        if let Some(missing) = &tile.missing {
            for (height, missing) in heights.iter_mut().zip(&missing[from..]) {
                if *missing {
                    *height = f64::NAN;
                }
            }
        }
    }
}
