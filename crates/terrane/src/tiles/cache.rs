//! Decoded blocks of all files, within a number of bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_codec::format::LevelTile;
use terrane_codec::{Found, Kept};

use super::Deadline;
use super::blocks::{Block, Blocks};
use super::error::{Result, TileError};

/// Bytes that an entry takes besides its heights.
const OVERHEAD: u64 = 256;
/// Bytes of a block of the default size, 256 × 256 pixels.
const TYPICAL_BYTES: usize = 256 * 256 * 4;
/// The part of the cache for blocks that were asked for again; the rest is for new ones, of which a map tile needs
/// several at once.
const HOT: f64 = 0.75;

type Key = (u64, LevelTile);
type Value = Option<Arc<Block>>;

/// Decoded blocks of all files that share it; those who ask for a block that is being read wait for it.
#[derive(Debug)]
pub struct BlockCache {
    blocks: Kept<Key, Value>,
    files: AtomicU64,
    decoded: AtomicU64,
    reused: AtomicU64,
}

fn weigh(block: &Value) -> u64 {
    OVERHEAD + block.as_ref().map_or(0, |block| block.bytes() as u64)
}

impl BlockCache {
    /// A cache of so many bytes.
    pub fn new(max_bytes: usize) -> Self {
        let typical = (max_bytes / TYPICAL_BYTES).max(1);
        Self {
            blocks: Kept::new(max_bytes as u64, typical, HOT, weigh),
            files: AtomicU64::new(0),
            decoded: AtomicU64::new(0),
            reused: AtomicU64::new(0),
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

    /// Blocks that were found here.
    pub fn reused(&self) -> u64 {
        self.reused.load(Ordering::Relaxed)
    }

    /// A number that tells a file from the others.
    pub(super) fn number_file(&self) -> u64 {
        self.files.fetch_add(1, Ordering::Relaxed)
    }

    /// A block of a file; `None` where it has no data.
    pub(super) fn block(
        &self,
        file: u64,
        blocks: &Blocks,
        tile: LevelTile,
        deadline: Deadline,
    ) -> Result<Value> {
        // Where reading fails the next one who asks tries again, as a web server may be back by then.
        let read = || -> Result<Value> { Ok(blocks.read(tile)?.map(Arc::new)) };
        let found = self
            .blocks
            .find_or_make(&(file, tile), deadline.remaining(), read);
        match found? {
            Found::Kept(block) => {
                self.reused.fetch_add(1, Ordering::Relaxed);
                Ok(block)
            }
            Found::Made(block) => {
                self.decoded.fetch_add(1, Ordering::Relaxed);
                Ok(block)
            }
            Found::Late => Err(TileError::Late),
        }
    }
}
