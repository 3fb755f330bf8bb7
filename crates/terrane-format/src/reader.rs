//! Reads a file: one small read to open it, at most two more per tile.
#![expect(
    clippy::cast_possible_truncation,
    reason = "places in a page are bounded by its length"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::checksum::crc32c;
use crate::header::{Extent, Header};
use crate::index::{PagePlace, TilePlace};
use crate::record::{self, Layer, Record};
use crate::source::Source;
use crate::{Error, LevelTile, MemoryLimit, Method, Result, limits};

/// Entries of pages that are kept: a page of a large file has many.
const KEPT_PLACES: usize = 1 << 22;

/// An open file.
pub struct Reader {
    source: Box<dyn Source>,
    header: Header,
    length: u64,
    page_tiles: u32,
    pages: Vec<PagePlace>,
    /// Pages that were read.
    known: Mutex<HashMap<usize, Arc<Vec<TilePlace>>>>,
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
    pub fn open(source: Box<dyn Source>) -> Result<Self> {
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
            known: Mutex::default(),
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

    fn page(&self, index: usize) -> Result<Arc<Vec<TilePlace>>> {
        if let Some(page) = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&index)
        {
            return Ok(Arc::clone(page));
        }
        let place = self.pages[index];
        let bytes = self.read("index", place.offset, place.length.into())?;
        let first = index as u64 * u64::from(self.page_tiles);
        let tiles = (self.header.pyramid.tiles() - first).min(self.page_tiles.into());
        let page = Arc::new(place.parse(&bytes, tiles)?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = known.values().map(|page| page.len()).sum();
        if kept + page.len() > KEPT_PLACES {
            known.clear();
        }
        known.insert(index, Arc::clone(&page));
        drop(known);
        Ok(page)
    }

    /// Where a tile is; `None` where it has no data.
    pub fn place(&self, tile: LevelTile) -> Result<Option<TilePlace>> {
        let number = self.header.pyramid.number(tile)?;
        let per_page = u64::from(self.page_tiles);
        let page = self.page((number / per_page) as usize)?;
        let place = page[(number % per_page) as usize];
        Ok((place.length > 0).then_some(place))
    }

    /// The bytes of a tile, checked; `None` where it has no data.
    pub fn bytes(&self, tile: LevelTile) -> Result<Option<Vec<u8>>> {
        let Some(place) = self.place(tile)? else {
            return Ok(None);
        };
        let bytes = self.read("tile", place.offset, place.length)?;
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
            Layer::Tokens(_) => !matches!(self.header.method, Method::Integers | Method::Context),
            Layer::Details(_) => self.header.method == Method::Context,
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
        let found = crc32c(&[&bytes]);
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
                    .filter(|place| place.length > 0)
                    .map(|place| (place.offset, place.length)),
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
