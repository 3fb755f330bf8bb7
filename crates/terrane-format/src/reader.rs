//! Reads a file: one small read to open it, one for a page of its index, and one for any records that lie below it.
#![expect(
    clippy::cast_possible_truncation,
    reason = "the index of a tree in a page is bounded by its length"
)]

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::checksum::crc32c;
use crate::header::{Extent, Header};
use crate::index::{PageLocation, TileLocation, TreeLocation};
use crate::record;
use crate::source::ByteSource;
use crate::{Error, LevelTile, MemoryLimit, Result, limits};

/// Records of pages that are cached: a page of a large file lists many.
const CACHED_RECORDS: usize = 1 << 22;
/// Parts of a file that are nearer than this are read as one.
const NEAR: u64 = 2048;

/// An open file.
pub struct Reader {
    source: Box<dyn ByteSource>,
    /// The first bytes of the file, which came with the head.
    start: Vec<u8>,
    header: Header,
    head: usize,
    length: u64,
    page_trees: u32,
    pages: Vec<PageLocation>,
    /// Pages that were read.
    cached: Mutex<HashMap<usize, Page>>,
}

type Page = Arc<Vec<TreeLocation>>;

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
        let start = source.read(0, limits::HEAD)?;
        let head = Header::parse(&start)?;
        let found = source.length()?;
        if found != head.file_length {
            return Err(Error::Length {
                expected: head.file_length,
                found,
            });
        }
        // Pages that share bytes would let a small file ask for any amount of memory.
        let mut extents: Vec<(u64, u64)> = head
            .pages
            .iter()
            .map(|page| (page.offset, u64::from(page.length)))
            .collect();
        extents.sort_unstable();
        let mut end = head.length as u64;
        for (offset, count) in extents {
            if offset < end || count > found.saturating_sub(offset) {
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
            start,
            header: head.header,
            head: head.length,
            length: found,
            page_trees: head.page_trees,
            pages: head.pages,
            cached: Mutex::default(),
        })
    }

    /// The length that a file states in its first bytes, for sources that cannot tell it.
    pub fn stated_length(start: &[u8]) -> Result<u64> {
        Ok(Header::parse(start)?.file_length)
    }

    /// The bytes of the head, which tell one version of a file from another.
    pub fn head(&self) -> &[u8] {
        &self.start[..self.head]
    }

    /// What the file holds.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes of the file as they are, from an offset on; fewer where it ends before.
    pub fn raw(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.source.read(offset, length)
    }

    /// Bytes of all pages of the index.
    pub fn index_length(&self) -> u64 {
        self.pages.iter().map(|page| u64::from(page.length)).sum()
    }

    /// The numbers of the trees that each page of the index lists.
    pub fn page_trees(&self) -> impl ExactSizeIterator<Item = Range<u64>> + use<> {
        let (per_page, trees) = (u64::from(self.page_trees), self.header.pyramid.trees());
        (0..self.pages.len()).map(move |page| {
            let first = page as u64 * per_page;
            first..(first + per_page).min(trees)
        })
    }

    /// Reads a page of the index, which must be whole.
    pub fn check_page(&self, page: usize) -> Result<()> {
        if page < self.pages.len() {
            self.page(page)?;
        }
        Ok(())
    }

    /// Where a page of the index is, and its checksum.
    pub fn page_extent(&self, page: usize) -> Option<Extent> {
        self.pages.get(page).map(|page| Extent {
            offset: page.offset,
            length: page.length.into(),
            crc: page.crc,
        })
    }

    /// Where the records of the trees of a page are.
    pub fn page_locations(&self, page: usize) -> Result<Vec<TreeLocation>> {
        if page < self.pages.len() {
            return Ok(self.page(page)?.to_vec());
        }
        Ok(Vec::new())
    }

    /// Refuses a part that does not lie in the file.
    fn check_inside(&self, what: &'static str, offset: u64, length: u64) -> Result<()> {
        let is_inside = offset >= self.head as u64
            && offset
                .checked_add(length)
                .is_some_and(|end| end <= self.length);
        if is_inside && usize::try_from(length).is_ok() {
            return Ok(());
        }
        Err(Error::Malformed {
            what,
            offset,
            reason: "it lies outside the file",
        })
    }

    /// Several parts of the file, each an offset and a length, in one round of reads.
    fn read_all(&self, what: &'static str, parts: &[(u64, u64)]) -> Result<Vec<Vec<u8>>> {
        for &(offset, length) in parts {
            self.check_inside(what, offset, length)?;
        }
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_unstable_by_key(|&index| parts[index]);
        // What lies together, and is not here yet, is read as one.
        let mut runs: Vec<(u64, u64)> = Vec::new();
        let in_start = |end: u64| end <= self.start.len() as u64;
        for &index in &order {
            let (offset, length) = parts[index];
            let end = offset + length;
            match runs.last_mut() {
                _ if in_start(end) => {}
                Some((_, run_end)) if offset <= run_end.saturating_add(NEAR) => {
                    *run_end = end.max(*run_end);
                }
                _ => runs.push((offset, end)),
            }
        }
        let asked: Vec<(u64, usize)> = runs
            .iter()
            .map(|&(offset, end)| (offset, (end - offset) as usize))
            .collect();
        let read = self.source.read_all(&asked)?;
        parts
            .iter()
            .map(|&(offset, length)| {
                let (bytes, first) = if in_start(offset + length) {
                    (&self.start, 0)
                } else {
                    let run = runs.partition_point(|&(start, _)| start <= offset) - 1;
                    (&read[run], runs[run].0)
                };
                let first = (offset - first) as usize;
                let part = bytes.get(first..first + length as usize);
                part.map(<[u8]>::to_vec).ok_or(Error::Malformed {
                    what,
                    offset,
                    reason: "it ends too early",
                })
            })
            .collect()
    }

    fn read(&self, what: &'static str, offset: u64, length: u64) -> Result<Vec<u8>> {
        let mut parts = self.read_all(what, &[(offset, length)])?;
        Ok(parts.pop().unwrap_or_default())
    }

    fn cached(&self, index: usize) -> Option<Page> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        cached.get(&index).cloned()
    }

    /// Pages of the index, of which those that are not here are read at once; damaged ones are left out.
    fn pages(&self, indices: &[usize]) -> Result<HashMap<usize, Page>> {
        let mut found = HashMap::new();
        let mut missing = Vec::new();
        for &index in indices {
            match self.cached(index) {
                Some(page) => _ = found.insert(index, page),
                None => missing.push(index),
            }
        }
        missing.sort_unstable();
        missing.dedup();
        let parts: Vec<(u64, u64)> = missing
            .iter()
            .map(|&index| (self.pages[index].offset, self.pages[index].length.into()))
            .collect();
        let read = self.read_all("index", &parts)?;
        for (index, bytes) in missing.into_iter().zip(read) {
            if let Ok(page) = self.parse_page(index, &bytes) {
                self.keep(index, &page);
                found.insert(index, page);
            }
        }
        Ok(found)
    }

    fn parse_page(&self, index: usize, bytes: &[u8]) -> Result<Page> {
        let pyramid = &self.header.pyramid;
        let first = index as u64 * u64::from(self.page_trees);
        let trees = (pyramid.trees() - first).min(self.page_trees.into());
        // A tree takes a byte at least, and what is said of a page is not trusted.
        if trees > bytes.len() as u64 {
            return Err(Error::Malformed {
                what: "index",
                offset: self.pages[index].offset,
                reason: "it has fewer entries than trees",
            });
        }
        let records: Vec<usize> = (first..first + trees)
            .filter_map(|number| pyramid.tree(number))
            .map(|root| pyramid.tree_tiles(root).len())
            .collect();
        let page = self.pages[index].parse(bytes, &records)?;
        Ok(Arc::new(page))
    }

    /// A page of the index, or what is wrong with it.
    fn page(&self, index: usize) -> Result<Page> {
        if let Some(page) = self.cached(index) {
            return Ok(page);
        }
        let location = self.pages[index];
        let bytes = self.read("index", location.offset, location.length.into())?;
        let page = self.parse_page(index, &bytes)?;
        self.keep(index, &page);
        Ok(page)
    }

    fn keep(&self, index: usize, page: &Page) {
        let records = |page: &Page| -> usize { page.iter().map(|tree| tree.lengths.len()).sum() };
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = cached.values().map(records).sum();
        if kept + records(page) > CACHED_RECORDS {
            cached.clear();
        }
        cached.insert(index, Arc::clone(page));
    }

    /// The page of a tile, its tree in the page, and its place in the tree.
    fn place(&self, tile: LevelTile) -> Result<(usize, usize, usize)> {
        let pyramid = &self.header.pyramid;
        pyramid.number(tile)?;
        let root = pyramid.root(tile);
        let number = pyramid.tree_number(root)?;
        let per_page = u64::from(self.page_trees);
        let coarser = (tile.level + 1..=root.level)
            .map(|level| pyramid.tiles_below(root, level).len())
            .sum::<usize>();
        let beside = pyramid.tiles_below(root, tile.level);
        let index = beside.iter().position(|&other| other == tile);
        Ok((
            (number / per_page) as usize,
            (number % per_page) as usize,
            coarser + index.unwrap_or(0),
        ))
    }

    /// Where the records of tiles are; `None` for those without one.
    fn locate_all(&self, tiles: &[LevelTile]) -> Result<Vec<Result<Option<TileLocation>>>> {
        let places = tiles
            .iter()
            .map(|&tile| self.place(tile))
            .collect::<Result<Vec<_>>>()?;
        let indices: Vec<usize> = places.iter().map(|&(page, ..)| page).collect();
        let pages = self.pages(&indices)?;
        Ok(places
            .into_iter()
            .map(|(index, tree, record)| {
                // A damaged page is read again for each tile, to say what is wrong with it.
                let page = match pages.get(&index) {
                    Some(page) => Arc::clone(page),
                    None => self.page(index)?,
                };
                let location = page.get(tree).map(|tree| tree.record(record));
                let location = location.filter(|location| location.length > 0);
                if let Some(TileLocation { offset, length }) = location {
                    self.check_inside("tile", offset, length)?;
                }
                Ok(location)
            })
            .collect())
    }

    /// Where the record of a tile is; `None` where it has none.
    pub fn locate(&self, tile: LevelTile) -> Result<Option<TileLocation>> {
        self.locate_all(&[tile])?.pop().unwrap_or(Ok(None))
    }

    /// The records of tiles in at most two rounds of reads, each checked by itself; `None` for those without one.
    pub fn records(&self, tiles: &[LevelTile]) -> Result<Vec<Result<Option<Vec<u8>>>>> {
        let located = self.locate_all(tiles)?;
        let parts: Vec<(u64, u64)> = located
            .iter()
            .filter_map(|location| location.as_ref().ok()?.as_ref())
            .map(|location| (location.offset, location.length))
            .collect();
        let mut read = self.read_all("tile", &parts)?.into_iter();
        let records = tiles.iter().zip(located).map(|(&tile, location)| {
            let bytes = location?.and_then(|_| read.next());
            let number = self.header.pyramid.number(tile)?;
            bytes
                .map(|bytes| record::check(&bytes, number).map(|()| bytes))
                .transpose()
        });
        Ok(records.collect())
    }

    /// The bytes of a tile, checked; `None` where it has no data.
    pub fn bytes(&self, tile: LevelTile) -> Result<Option<Vec<u8>>> {
        self.records(&[tile])?.pop().unwrap_or(Ok(None))
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
        let mut parts = vec![(0, self.head as u64)];
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
            let page = self.page(index)?;
            let trees = page.iter().filter(|tree| !tree.lengths.is_empty());
            parts.extend(trees.map(|tree| (tree.offset, tree.length())));
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
        IntegerScale, Integers, Layer, Method, Pyramid, Record, Statistics, Stored, TileId,
        WaveletLayer, Writer,
    };

    /// The record of a tile of 16 by 16 pixels.
    fn record(number: u64, layer: Layer) -> Vec<u8> {
        let record = Record {
            missing: None,
            flats: None,
            layer,
            residual: None,
            corrections: None,
        };
        record.to_bytes(number, 16, None)
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
        // Files of one level: every tile is a tree, with the tile's number.
        let mut writer =
            Writer::create(Cursor::new(Vec::new()), header, !model.is_empty()).unwrap();
        writer.embed_model(model).unwrap();
        for (number, record) in tiles {
            writer.tree(*number, std::slice::from_ref(record)).unwrap();
        }
        let file = writer.finish(Statistics::default(), Vec::new()).unwrap();
        file.into_inner()
    }

    /// A tile of a file of one level.
    fn parse(reader: &Reader, tile: LevelTile) -> Result<Option<Record>> {
        let number = reader.header.pyramid.number(tile)?;
        let window = reader.header.pyramid.window(tile)?;
        let bytes = reader.bytes(tile)?;
        let record = bytes.map(|bytes| Record::parse(&bytes, number, window, None));
        let record = record.transpose()?;
        if let Some(record) = &record {
            record.check_method(reader.header.method)?;
        }
        Ok(record)
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
        // 69 by 69 trees of a tile: 75 pages.
        let header = Header {
            pyramid: Pyramid::new(1104, 1104, 16, 1).unwrap(),
            ..least()
        };
        let numbers = [0_u64, 68, 4095, 4096, 4760];
        let tiles = numbers.map(|number| (number, record(number, integers(number.cast_signed()))));
        let reader = open(file(header, &[], &tiles)).unwrap();
        assert_eq!(reader.pages.len(), 75);
        reader.check_layout().unwrap();
        for number in 0..4761 {
            let tile = reader.header().pyramid.tile(number).unwrap();
            let found = parse(&reader, tile).unwrap();
            let expected = numbers.contains(&number);
            assert_eq!(
                found.map(|record| record.layer),
                expected.then(|| integers(number.cast_signed()))
            );
        }
        assert!(parse(&reader, tile(69, 0)).is_err());
    }

    #[test]
    fn a_damaged_page_is_known_by_its_trees() {
        let header = Header {
            pyramid: Pyramid::new(1104, 1104, 16, 1).unwrap(),
            ..least()
        };
        let mut bytes = file(header, &[], &[(100, record(100, integers(0)))]);
        let reader = open(bytes.clone()).unwrap();
        let trees: Vec<_> = reader.page_trees().collect();
        assert_eq!(
            (trees.len(), &trees[1], &trees[74]),
            (75, &(64..128), &(4736..4761))
        );
        let location = reader.pages[1];
        let outside = reader.length - reader.head as u64 - reader.index_length();
        assert_eq!(outside, reader.locate(tile(31, 1)).unwrap().unwrap().length);
        bytes[location.offset as usize] ^= 1;
        let reader = open(bytes).unwrap();
        for page in 0..trees.len() {
            assert_eq!(reader.check_page(page).is_err(), page == 1);
        }
        assert!(reader.bytes(tile(31, 1)).is_err());
        assert!(reader.bytes(tile(68, 1)).unwrap().is_none());
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
        let head = open(bytes.clone()).unwrap().head;
        for bit in head * 8..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let reader = open(flipped).unwrap();
            let tiles = [[0, 0], [1, 0], [0, 1]].map(|[column, row]| tile(column, row));
            assert!(
                tiles.iter().any(|&tile| parse(&reader, tile).is_err()),
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
        parse(&reader, tile(0, 0)).unwrap();
        assert!(matches!(
            parse(&reader, tile(1, 0)),
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
            let is_read = [0, 1, 2].map(|column| parse(&reader, tile(column, 0)).is_ok());
            let stored = method.stored();
            let expected = [true, stored == Stored::Tokens, stored == Stored::Wavelet];
            assert_eq!(is_read, expected, "{method}");
        }
    }

    #[test]
    fn a_model_comes_back_checked_and_within_memory() {
        let mut header = full();
        header.pyramid = Pyramid::new(40, 30, 16, 1).unwrap();
        header.overviews.clear();
        let mut bytes = file(header, b"a model", &[]);
        let memory = MemoryLimit { bytes: 21 };
        let model = open(bytes.clone()).unwrap().embedded_model(memory);
        assert_eq!(model.unwrap().unwrap(), b"a model");
        let memory_less = MemoryLimit { bytes: 20 };
        assert!(matches!(
            open(bytes.clone()).unwrap().embedded_model(memory_less),
            Err(Error::Memory(_))
        ));
        let head = open(bytes.clone()).unwrap().head;
        bytes[head] ^= 1;
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
    fn made_up(header: &Header, pages: &[PageLocation], page_trees: u32, rest: &[u8]) -> Vec<u8> {
        let head = header.to_bytes(0, page_trees, pages).unwrap().len();
        let length = head as u64 + rest.len() as u64;
        let mut bytes = header.to_bytes(length, page_trees, pages).unwrap();
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn pages_that_overlap_or_lie_outside_are_refused() {
        let nowhere = PageLocation {
            offset: 0,
            length: 0,
            crc: 0,
        };
        let head = made_up(&least(), &[nowhere; 2], 3, &[]).len() as u64;
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
        let nowhere = PageLocation {
            offset: 0,
            length: 0,
            crc: 0,
        };
        let head = made_up(&least(), &[nowhere], 64, &[]).len() as u64;
        for (offset, length) in [(0, 10), (head - 1, 2), (head, 1 << 30), (u64::MAX - 9, 9)] {
            let mut locations = vec![TreeLocation::default(); 6];
            locations[4] = TreeLocation {
                offset,
                lengths: vec![length],
            };
            let bytes = page(&locations);
            let location = PageLocation {
                offset: head,
                length: bytes.len() as u32,
                crc: crc32c(&bytes),
            };
            let reader = open(made_up(&least(), &[location], 64, &bytes)).unwrap();
            assert!(parse(&reader, tile(0, 0)).unwrap().is_none());
            assert!(matches!(
                parse(&reader, tile(1, 1)),
                Err(Error::Malformed { what: "tile", .. })
            ));
            let both = reader.records(&[tile(1, 1), tile(0, 0)]).unwrap();
            assert!(both[0].is_err() && matches!(both[1], Ok(None)));
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
