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
use crate::record::{self, Record};
use crate::source::ByteSource;
use crate::{Error, LevelTile, MemoryLimit, Result, Stored, limits};

/// Entries of pages that are cached: a page of a large file has many.
const CACHED_LOCATIONS: usize = 1 << 22;

/// An open file.
pub struct Reader {
    source: Box<dyn ByteSource>,
    head: Vec<u8>,
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
            head,
            header,
            length,
            page_tiles,
            pages,
            cached: Mutex::default(),
        })
    }

    /// The bytes of the head, which tell one version of a file from another.
    pub fn head(&self) -> &[u8] {
        &self.head
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
        // A tile that the method's codec leaves alone is stored as integers.
        let stored = record.layer.stored();
        let is_of_method = [Stored::Integers, self.header.method.stored()].contains(&stored);
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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::header::tests::{full, least, seal};
    use crate::index::page;
    use crate::{
        IntegerScale, Integers, Layer, Method, Pyramid, Statistics, TileId, TileStatistics,
        WaveletLayer, Writer,
    };

    /// The record of a tile of 16 by 16 pixels.
    fn record(number: u64, layer: Layer) -> Vec<u8> {
        let record = Record {
            statistics: TileStatistics::default(),
            missing: None,
            layer,
            residual: None,
        };
        record.to_bytes(number, 16)
    }

    fn integers(first: i64) -> Layer {
        Layer::Integers(Integers {
            scale: IntegerScale::Step {
                origin_m: 400.0,
                step_m: 0.5,
            },
            values: (first..first + 256).collect(),
        })
    }

    fn file(header: Header, model: &[u8], tiles: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut writer = Writer::create(Cursor::new(Vec::new()), header).unwrap();
        writer.embed_model(model).unwrap();
        for (number, record) in tiles {
            writer.tile(*number, record).unwrap();
        }
        writer.finish(Statistics::default()).unwrap().into_inner()
    }

    fn small() -> Vec<u8> {
        let tiles = [0, 1, 3].map(|number: i64| {
            let number = number.cast_unsigned();
            (number, record(number, integers(number.cast_signed() * 7)))
        });
        file(least(), &[], &tiles)
    }

    fn open(bytes: Vec<u8>) -> Result<Reader> {
        Reader::open(Box::new(bytes))
    }

    fn tile(column: usize, row: usize) -> LevelTile {
        let id = TileId { column, row };
        LevelTile { level: 0, id }
    }

    #[test]
    fn tiles_come_back_from_any_page() {
        // 69 by 69 tiles: more than a page of 4096 holds.
        let header = Header {
            pyramid: Pyramid::new(1104, 1104, 16, 1).unwrap(),
            ..least()
        };
        let numbers = [0_u64, 68, 4095, 4096, 4760];
        let tiles = numbers.map(|number| (number, record(number, integers(number.cast_signed()))));
        let reader = open(file(header, &[], &tiles)).unwrap();
        assert_eq!(reader.pages.len(), 2);
        reader.check_layout().unwrap();
        for number in 0..4761 {
            let tile = reader.header().pyramid.tile(number).unwrap();
            let found = reader.tile(tile).unwrap();
            let expected = numbers.contains(&number);
            assert_eq!(
                found.map(|record| record.layer),
                expected.then(|| integers(number.cast_signed()))
            );
        }
        assert!(reader.tile(tile(69, 0)).is_err());
    }

    #[test]
    fn a_file_of_any_other_length_is_refused() {
        let bytes = small();
        for length in 0..bytes.len() {
            assert!(open(bytes[..length].to_vec()).is_err(), "{length}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert!(matches!(open(longer), Err(Error::Length { .. })));
    }

    #[test]
    fn no_flipped_bit_of_a_tile_or_page_goes_unnoticed() {
        let bytes = small();
        for bit in limits::HEAD * 8..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let reader = open(flipped).unwrap();
            let tiles = [[0, 0], [1, 0], [0, 1]].map(|[column, row]| tile(column, row));
            assert!(
                tiles.iter().any(|&tile| reader.tile(tile).is_err()),
                "{bit}"
            );
        }
    }

    #[test]
    fn a_record_of_another_tile_is_refused() {
        let tiles = [0, 1].map(|number| (number, record(number, integers(0))));
        let mut bytes = file(least(), &[], &tiles);
        let reader = open(bytes.clone()).unwrap();
        let [a, b] = [tile(0, 0), tile(1, 0)].map(|tile| reader.locate(tile).unwrap().unwrap());
        assert_eq!(a.length, b.length);
        let (a, b, length) = (a.offset as usize, b.offset as usize, a.length as usize);
        bytes.copy_within(a..a + length, b);
        let reader = open(bytes).unwrap();
        reader.tile(tile(0, 0)).unwrap();
        assert!(matches!(
            reader.tile(tile(1, 0)),
            Err(Error::Checksum { what: "tile", .. })
        ));
    }

    #[test]
    fn a_tile_of_another_kind_than_the_files_is_refused() {
        let wavelet = Layer::Wavelet(WaveletLayer {
            is_lossless: false,
            step_m: 0.5,
            offset: 3,
            bytes: vec![1, 2, 3],
        });
        let tokens = Layer::Tokens(vec![1, 2, 3]);
        for &method in Method::ALL {
            let header = Header { method, ..least() };
            let tiles = [
                (0, record(0, integers(0))),
                (1, record(1, tokens.clone())),
                (2, record(2, wavelet.clone())),
            ];
            let reader = open(file(header, &[], &tiles)).unwrap();
            let is_read = [0, 1, 2].map(|column| reader.tile(tile(column, 0)).is_ok());
            let stored = method.stored();
            let expected = [true, stored == Stored::Tokens, stored == Stored::Wavelet];
            assert_eq!(is_read, expected, "{method}");
        }
    }

    #[test]
    fn a_model_comes_back_checked_and_within_memory() {
        let mut header = full();
        header.pyramid = Pyramid::new(40, 30, 16, 1).unwrap();
        let mut bytes = file(header, b"a model", &[]);
        let memory = MemoryLimit { bytes: 21 };
        let model = open(bytes.clone()).unwrap().embedded_model(memory);
        assert_eq!(model.unwrap().unwrap(), b"a model");
        let memory_less = MemoryLimit { bytes: 20 };
        assert!(matches!(
            open(bytes.clone()).unwrap().embedded_model(memory_less),
            Err(Error::Memory(_))
        ));
        bytes[limits::HEAD] ^= 1;
        assert!(matches!(
            open(bytes).unwrap().embedded_model(memory),
            Err(Error::Checksum { what: "model", .. })
        ));
        assert!(
            open(small())
                .unwrap()
                .embedded_model(memory)
                .unwrap()
                .is_none()
        );
    }

    /// A file with an index that somebody made up: pages of bytes, wherever they are said to be.
    fn made_up(header: &Header, pages: &[PageLocation], page_tiles: u32, rest: &[u8]) -> Vec<u8> {
        let length = limits::HEAD as u64 + rest.len() as u64;
        let mut bytes = header.to_bytes(length, page_tiles, pages).unwrap();
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn pages_that_overlap_or_lie_outside_are_refused() {
        let head = limits::HEAD as u64;
        let pages = |all: &[(u64, u32)]| -> Vec<PageLocation> {
            all.iter()
                .map(|&(offset, length)| PageLocation {
                    offset,
                    length,
                    crc: 0,
                })
                .collect()
        };
        for wrong in [
            [(head, 5), (head + 4, 5)],
            [(head, 5), (head, 5)],
            [(head - 1, 5), (head + 5, 5)],
            [(head, 5), (head + 6, 5)],
            [(head, 5), (u64::MAX, 5)],
        ] {
            let bytes = made_up(&least(), &pages(&wrong), 3, &[0; 10]);
            assert!(matches!(
                open(bytes),
                Err(Error::Malformed { what: "index", .. })
            ));
        }
        let right = pages(&[(head + 5, 5), (head, 5)]);
        assert!(open(made_up(&least(), &right, 3, &[0; 10])).is_ok());
    }

    #[test]
    fn tiles_outside_the_file_are_refused() {
        let head = limits::HEAD as u64;
        for (offset, length) in [(0, 10), (head - 1, 2), (head, 1 << 30), (u64::MAX - 9, 9)] {
            let mut locations = [TileLocation::default(); 6];
            locations[4] = TileLocation { offset, length };
            let bytes = page(&locations);
            let location = PageLocation {
                offset: head,
                length: bytes.len() as u32,
                crc: crc32c(&bytes),
            };
            let reader = open(made_up(&least(), &[location], 4096, &bytes)).unwrap();
            assert!(reader.tile(tile(0, 0)).unwrap().is_none());
            assert!(matches!(
                reader.tile(tile(1, 1)),
                Err(Error::Malformed { what: "tile", .. })
            ));
            assert!(reader.check_layout().is_err());
        }
    }

    #[test]
    fn bytes_that_belong_to_nothing_are_found() {
        let mut bytes = small();
        bytes.push(7);
        let length = bytes.len() as u64;
        bytes[16..24].copy_from_slice(&length.to_le_bytes());
        seal(&mut bytes);
        let reader = open(bytes).unwrap();
        assert!(matches!(reader.check_layout(), Err(Error::Length { .. })));
    }
}
