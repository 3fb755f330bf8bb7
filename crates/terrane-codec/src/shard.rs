//! The trees of one area, in a file of their own until all areas are merged.
//!
//! ```text
//! head      magic, version, number of the shard, SHA-256 of the plan
//! trees     measures and records of their tiles, one tree after another
//! index     number and length of each
//! rows      heights at half the resolution of the last level, for the overviews that need several shards
//! tail      how many trees and heights, SHA-256 of head, index and rows
//! ```
//!
//! Trees carry checksums of their own, so every byte is checked without reading anything twice.

use std::io::Write;

use sha2::{Digest, Sha256};
use terrane_format::{ByteSource, Pyramid, Window};

use crate::Error;
use crate::division::Area;
use crate::encode::{Heights, Report, Teller};
use crate::measured::Measured;
use crate::pyramid_builder::{Coder, Part, PyramidBuilder, Storey};
use crate::resources::Resources;
use crate::tile::TileEncoder;
use crate::tree::EncodedTree;

const MAGIC: [u8; 8] = *b"\x89TRS\r\n\x1a\n";
const VERSION: u32 = 1;
/// Magic, version, number, plan.
const HEAD: usize = 8 + 4 + 4 + 32;
/// Number, length.
const ENTRY: usize = 8 + 8;
/// Trees, heights, checksum.
const TAIL: usize = 8 + 8 + 32;

/// Which shard of which plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardId {
    /// SHA-256 of the plan.
    pub plan: [u8; 32],
    /// The number of the shard.
    pub number: u32,
}

impl ShardId {
    fn head(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[12..16].copy_from_slice(&self.number.to_le_bytes());
        head[16..].copy_from_slice(&self.plan);
        head
    }

    fn refuse(&self, reason: &'static str) -> Error {
        Error::Shard {
            number: self.number,
            reason,
        }
    }
}

/// A shard to be made.
#[derive(Debug)]
pub struct ShardEncoding<'a> {
    /// Which it is.
    pub id: ShardId,
    /// The levels of the whole raster.
    pub pyramid: &'a Pyramid,
    /// How tiles are coded.
    pub encoder: &'a TileEncoder,
    /// What belongs to it.
    pub area: Area,
    /// The coarsest level that it has.
    pub top: u8,
    /// Threads and memory.
    pub resources: Resources,
}

impl ShardEncoding<'_> {
    /// Encodes the area, which is read by strips of rows. Returns what was measured at full resolution.
    pub fn run(
        self,
        file: &mut dyn Write,
        heights: &mut dyn Heights,
        progress: &mut Report,
    ) -> Result<Measured, Error> {
        let whole = self.area.window(self.pyramid);
        let part = Part::of_window(self.pyramid, whole);
        let coder = Coder::new(self.pyramid, self.encoder, None, self.resources)?;
        let mut writer = ShardWriter::create(file, self.id)?;
        let side = Storey::of(self.pyramid, 0).side;
        let mut builder = PyramidBuilder::new(coder, part, self.top);
        let mut measured = Measured::default();
        let corner = (whole.column, whole.row);
        let mut teller = Teller::new(progress, tiles(self.pyramid, &self.area, self.top));
        for _ in (0..whole.height).step_by(side) {
            let mut done = builder.done;
            builder.read_strip(corner, heights, &mut |tree: EncodedTree| {
                add_full(&mut measured, self.pyramid, &tree);
                writer.tree(&tree)?;
                done += tree.tiles.len() as u64;
                teller.tell(done, writer.bytes)
            })?;
            teller.tell(builder.done, writer.bytes)?;
        }
        writer.finish(&builder.beyond.take().unwrap_or_default())?;
        Ok(measured)
    }
}

/// A shard that is being written.
pub(crate) struct ShardWriter<'a> {
    file: &'a mut dyn Write,
    head: [u8; HEAD],
    index: Vec<u8>,
    bytes: u64,
}

impl<'a> ShardWriter<'a> {
    pub(crate) fn create(file: &'a mut dyn Write, id: ShardId) -> Result<Self, Error> {
        let mut writer = Self {
            file,
            head: id.head(),
            index: Vec::new(),
            bytes: 0,
        };
        writer.put(&id.head())?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes += bytes.len() as u64;
        self.file
            .write_all(bytes)
            .map_err(|error| Error::Format(error.into()))
    }

    pub(crate) fn tree(&mut self, tree: &EncodedTree) -> Result<(), Error> {
        let bytes = tree.to_bytes();
        self.index.extend(tree.number.to_le_bytes());
        self.index.extend((bytes.len() as u64).to_le_bytes());
        self.put(&bytes)
    }

    /// Writes the index and the heights that coarser levels are made of.
    pub(crate) fn finish(mut self, heights: &[f64]) -> Result<(), Error> {
        let index = std::mem::take(&mut self.index);
        let rows: Vec<u8> = heights
            .iter()
            .flat_map(|height| height.to_le_bytes())
            .collect();
        let mut tail = ((index.len() / ENTRY) as u64).to_le_bytes().to_vec();
        tail.extend((heights.len() as u64).to_le_bytes());
        tail.extend(checksum([&self.head[..], &index, &rows, &tail]));
        for part in [index, rows, tail] {
            self.put(&part)?;
        }
        Ok(())
    }
}

fn checksum(parts: [&[u8]; 4]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
    }
    digest.finalize().into()
}

/// Tiles of an area, with or without data.
fn tiles(pyramid: &Pyramid, area: &Area, top: u8) -> u64 {
    let side = usize::from(pyramid.side());
    let Window { width, height, .. } = area.window(pyramid);
    (0..=top)
        .map(|level| {
            let across = |size: usize| size.div_ceil(1 << level).div_ceil(side) as u64;
            across(width) * across(height)
        })
        .sum()
}

/// Adds what was measured of a tree at full resolution.
fn add_full(measured: &mut Measured, pyramid: &Pyramid, tree: &EncodedTree) {
    let tiles = pyramid
        .tree(tree.number)
        .map(|root| pyramid.tree_tiles(root));
    for (tile, encoded) in tiles.into_iter().flatten().zip(&tree.tiles) {
        if tile.level == 0 {
            measured.join(&encoded.measured);
        }
    }
}

/// One tree in a shard.
#[derive(Debug, Clone, Copy)]
struct Entry {
    number: u64,
    offset: u64,
    length: u64,
}

/// A finished shard.
pub struct ShardFile {
    id: ShardId,
    source: Box<dyn ByteSource>,
    pyramid: Pyramid,
    entries: Vec<Entry>,
    /// Where the rows start.
    rows: u64,
    /// Heights in a row.
    width: usize,
}

impl std::fmt::Debug for ShardFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter
            .debug_struct("ShardFile")
            .field("id", &self.id)
            .field("trees", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl ShardFile {
    /// Opens a shard and checks that it is whole, of this plan and of this area; records are checked when they are read.
    pub fn open(
        source: Box<dyn ByteSource>,
        id: ShardId,
        pyramid: &Pyramid,
        area: &Area,
        top: u8,
    ) -> Result<Self, Error> {
        let length = source.length()?;
        let head = source.read(0, HEAD)?;
        if !head.starts_with(&MAGIC) {
            return Err(id.refuse("is not a shard: remove the file and encode it again"));
        }
        if head != id.head() {
            return Err(id.refuse(
                "is of another plan, or of another version: remove the file and encode it again",
            ));
        }
        let damaged = || id.refuse("is damaged: remove the file and encode it again");
        let tail_at = length.checked_sub(TAIL as u64).ok_or_else(damaged)?;
        let tail = source.read(tail_at, TAIL)?;
        let count = number(&tail, 0).ok_or_else(damaged)?;
        let heights = number(&tail, 8).ok_or_else(damaged)?;
        // No count is believed beyond what the area can have and the file can hold.
        let window = area.window(pyramid);
        let beyond = |size: usize| size.div_ceil(1 << (u32::from(top) + 1));
        let is_top = top + 1 >= pyramid.levels();
        let width = beyond(window.width);
        let expected = if is_top {
            0
        } else {
            (width * beyond(window.height)) as u64
        };
        if heights != expected || count > tiles(pyramid, area, top) {
            return Err(damaged());
        }
        let rows = tail_at.checked_sub(heights * 8).ok_or_else(damaged)?;
        let index_at = rows.checked_sub(count * ENTRY as u64).ok_or_else(damaged)?;
        let read = |offset: u64, end: u64| -> Result<Vec<u8>, Error> {
            let length = usize::try_from(end - offset).map_err(|_| damaged())?;
            let bytes = source.read(offset, length)?;
            if bytes.len() == length {
                Ok(bytes)
            } else {
                Err(damaged())
            }
        };
        let (index, heights) = (read(index_at, rows)?, read(rows, tail_at)?);
        if tail[16..] != checksum([&head, &index, &heights, &tail[..16]]) {
            return Err(damaged());
        }
        let mut entries = Vec::with_capacity(index.len() / ENTRY);
        let mut offset = HEAD as u64;
        for entry in index.chunks_exact(ENTRY) {
            let entry = Entry {
                number: number(entry, 0).ok_or_else(damaged)?,
                offset,
                length: number(entry, 8)
                    .filter(|&length| length <= index_at)
                    .ok_or_else(damaged)?,
            };
            offset = offset.saturating_add(entry.length);
            entries.push(entry);
        }
        if offset != index_at {
            return Err(damaged());
        }
        entries.sort_unstable_by_key(|entry| entry.number);
        Ok(Self {
            id,
            source,
            pyramid: pyramid.clone(),
            entries,
            rows,
            width,
        })
    }

    /// Reads every tree and checks it. Returns what was measured at full resolution.
    pub fn check(&self) -> Result<Measured, Error> {
        let mut measured = Measured::default();
        for entry in &self.entries {
            add_full(&mut measured, &self.pyramid, &self.read(entry)?);
        }
        Ok(measured)
    }

    fn read(&self, entry: &Entry) -> Result<EncodedTree, Error> {
        let damaged = || {
            self.id
                .refuse("is damaged: remove the file and encode it again")
        };
        let length = usize::try_from(entry.length).map_err(|_| damaged())?;
        let bytes = self.source.read(entry.offset, length)?;
        EncodedTree::parse(&self.pyramid, entry.number, &bytes).ok_or_else(damaged)
    }

    /// A tree; `None` where it has no data.
    pub(crate) fn tree(&self, number: u64) -> Result<Option<EncodedTree>, Error> {
        let found = self
            .entries
            .binary_search_by_key(&number, |entry| entry.number);
        let Ok(index) = found else {
            return Ok(None);
        };
        self.read(&self.entries[index]).map(Some)
    }

    /// Some rows at half the resolution of the last level.
    pub(crate) fn rows(&self, first: usize, count: usize) -> Result<Vec<f64>, Error> {
        let row = self.width as u64 * 8;
        let bytes = self
            .source
            .read(self.rows + first as u64 * row, count * self.width * 8)?;
        Ok(bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|&bytes| f64::from_le_bytes(bytes))
            .collect())
    }

    /// Heights in a row of [`ShardFile::rows`].
    pub(crate) fn width(&self) -> usize {
        self.width
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(std::array::from_fn(|index| {
        bytes[index]
    })))
}
