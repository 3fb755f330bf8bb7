//! Reads a file: one small read to open it, at most two more per tile.
#![expect(
    clippy::cast_possible_truncation,
    reason = "the index of a tile in a page is bounded by its length"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crc32c::crc32c;

use crate::header::{Extent, Header};
use crate::index::{PageLocation, TileLocation};
use crate::record::{self, Layer, Record};
use crate::source::ByteSource;
use crate::{Error, LevelTile, MemoryLimit, Result, Stored, limits};

/// Entries of pages that are cached: a page of a large file has many.
const CACHED_LOCATIONS: usize = 1 << 22;

/// An open file.
pub struct Reader {
    source: Box<dyn ByteSource>,
    header: Header,
    length: u64,
    page_tiles: u32,
    pages: Vec<PageLocation>,
    /// Pages that were read.
    cached: Mutex<HashMap<usize, Arc<Vec<TileLocation>>>>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter
            .debug_struct("Reader")
            .field("header", &self.header)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Reads the head.
    pub fn open(source: Box<dyn ByteSource>) -> Result<Self> {
        let head = source.read(0, limits::HEAD)?;
        let (header, length, page_tiles, pages) = Header::parse(&head)?;
        let found = source.length()?;
        if found != length {
            return Err(Error::Length {
                expected: length,
                found,
            });
        }
        // Pages that share bytes would let a small file ask for any amount of memory.
        let mut extents: Vec<(u64, u64)> = pages
            .iter()
            .map(|page| (page.offset, u64::from(page.length)))
            .collect();
        extents.sort_unstable();
        let mut end = limits::HEAD as u64;
        for (offset, count) in extents {
            if offset < end || count > length.saturating_sub(offset) {
                return Err(Error::Malformed {
                    what: "index",
                    offset,
                    reason: "its pages overlap or lie outside the file",
                });
            }
            end = offset + count;
        }
        Ok(Self {
            source,
            header,
            length,
            page_tiles,
            pages,
            cached: Mutex::default(),
        })
    }

    /// What the file holds.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    fn read(&self, what: &'static str, offset: u64, length: u64) -> Result<Vec<u8>> {
        let is_inside = offset >= limits::HEAD as u64
            && offset
                .checked_add(length)
                .is_some_and(|end| end <= self.length);
        let count = usize::try_from(length).ok().filter(|_| is_inside);
        let Some(count) = count else {
            return Err(Error::Malformed {
                what,
                offset,
                reason: "it lies outside the file",
            });
        };
        let bytes = self.source.read(offset, count)?;
        if bytes.len() != count {
            return Err(Error::Malformed {
                what,
                offset,
                reason: "it ends too early",
            });
        }
        Ok(bytes)
    }

    fn page(&self, index: usize) -> Result<Arc<Vec<TileLocation>>> {
        if let Some(page) = self
            .cached
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&index)
        {
            return Ok(Arc::clone(page));
        }
        let location = self.pages[index];
        let bytes = self.read("index", location.offset, location.length.into())?;
        let first = index as u64 * u64::from(self.page_tiles);
        let tiles = (self.header.pyramid.tiles() - first).min(self.page_tiles.into());
        let page = Arc::new(location.parse(&bytes, tiles)?);
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let entries: usize = cached.values().map(|page| page.len()).sum();
        if entries + page.len() > CACHED_LOCATIONS {
            cached.clear();
        }
        cached.insert(index, Arc::clone(&page));
        drop(cached);
        Ok(page)
    }

    /// Where the record of a tile is; `None` where it has no data.
    pub fn locate(&self, tile: LevelTile) -> Result<Option<TileLocation>> {
        let number = self.header.pyramid.number(tile)?;
        let per_page = u64::from(self.page_tiles);
        let page = self.page((number / per_page) as usize)?;
        let location = page[(number % per_page) as usize];
        Ok((location.length > 0).then_some(location))
    }

    /// The bytes of a tile, checked; `None` where it has no data.
    pub fn bytes(&self, tile: LevelTile) -> Result<Option<Vec<u8>>> {
        let Some(location) = self.locate(tile)? else {
            return Ok(None);
        };
        let bytes = self.read("tile", location.offset, location.length)?;
        record::check(&bytes, self.header.pyramid.number(tile)?)?;
        Ok(Some(bytes))
    }

    /// A tile; `None` where it has no data.
    pub fn tile(&self, tile: LevelTile) -> Result<Option<Record>> {
        let number = self.header.pyramid.number(tile)?;
        let window = self.header.pyramid.window(tile)?;
        let Some(bytes) = self.bytes(tile)? else {
            return Ok(None);
        };
        let record = Record::parse(&bytes, number, window)?;
        let is_of_method = match record.layer {
            Layer::Integers(_) => true,
            Layer::Tokens(_) => self.header.method.stored() == Stored::Tokens,
            Layer::Wavelet(_) => self.header.method.stored() == Stored::Wavelet,
        };
        if is_of_method {
            Ok(Some(record))
        } else {
            Err(Error::Malformed {
                what: "tile",
                offset: record::KIND_OFFSET,
                reason: "its kind does not belong to the file's method",
            })
        }
    }

    /// The model inside the file, where there is one and memory allows.
    pub fn embedded_model(&self, memory: MemoryLimit) -> Result<Option<Vec<u8>>> {
        let Some(Extent {
            offset,
            length,
            crc,
        }) = self.header.model.as_ref().and_then(|model| model.embedded)
        else {
            return Ok(None);
        };
        // Its bytes, its arrays and its network.
        memory.check("the model inside the file", length.saturating_mul(3), "")?;
        let bytes = self.read("model", offset, length)?;
        let found = crc32c(&bytes);
        if found != crc {
            return Err(Error::Checksum {
                what: "model",
                expected: crc,
                found,
            });
        }
        Ok(Some(bytes))
    }

    /// Checks that every byte of the file belongs to exactly one part; the checksums of tiles are left to [`Reader::bytes`].
    pub fn check_layout(&self) -> Result<()> {
        let mut parts = vec![(0, limits::HEAD as u64)];
        parts.extend(
            self.pages
                .iter()
                .map(|page| (page.offset, u64::from(page.length))),
        );
        parts.extend(
            self.header
                .model
                .as_ref()
                .and_then(|model| model.embedded)
                .map(|extent| (extent.offset, extent.length)),
        );
        for index in 0..self.pages.len() {
            parts.extend(
                self.page(index)?
                    .iter()
                    .filter(|location| location.length > 0)
                    .map(|location| (location.offset, location.length)),
            );
        }
        parts.sort_unstable();
        let mut end = 0;
        for (offset, length) in parts {
            if offset != end {
                return Err(Error::Malformed {
                    what: "file",
                    offset: end,
                    reason: "its parts overlap or leave a gap",
                });
            }
            end += length;
        }
        if end == self.length {
            Ok(())
        } else {
            Err(Error::Length {
                expected: end,
                found: self.length,
            })
        }
    }
}
