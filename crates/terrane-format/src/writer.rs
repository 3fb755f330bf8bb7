//! Writes a file: trees as they come, then the index, then the head in the space that was reserved for it.
#![expect(
    clippy::cast_possible_truncation,
    reason = "pages are bounded by the limits"
)]

use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};

use crate::checksum::crc32c;
use crate::header::{Extent, Header, OverviewStatistics, Statistics};
use crate::index::{PageLocation, TreeLocation, page, trees_per_page};
use crate::{Error, Result, limits};

/// A file that is being written.
#[derive(Debug)]
pub struct Writer<W> {
    file: W,
    header: Header,
    /// The trees that have data: a raster may be nearly empty.
    trees: BTreeMap<u64, TreeLocation>,
    /// Bytes of the head, which depend on nothing that is not known yet.
    head: usize,
    end: u64,
}

impl<W: Write + Seek> Writer<W> {
    /// Starts a file; its statistics and the offset of its model are filled in later. With `embeds_model` room is kept
    /// for where the model will be.
    pub fn create(mut file: W, mut header: Header, embeds_model: bool) -> Result<Self> {
        if let Some(model) = &mut header.model {
            model.embedded = embeds_model.then_some(Extent {
                offset: 0,
                length: 0,
                crc: 0,
            });
        }
        let nowhere = PageLocation {
            offset: 0,
            length: 0,
            crc: 0,
        };
        let trees = header.pyramid.trees();
        let pages = trees.div_ceil(trees_per_page(trees).into()) as usize;
        let head = header.to_bytes(0, limits::PAGE_TREES, &vec![nowhere; pages])?;
        file.write_all(&vec![0; head.len()])?;
        Ok(Self {
            file,
            header,
            trees: BTreeMap::new(),
            head: head.len(),
            end: head.len() as u64,
        })
    }

    /// Puts the model into the file.
    pub fn embed_model(&mut self, bytes: &[u8]) -> Result<()> {
        let extent = Extent {
            offset: self.end,
            length: bytes.len() as u64,
            crc: crc32c(bytes),
        };
        let model = self.header.model.as_mut();
        if let Some(place) = model.and_then(|model| model.embedded.as_mut()) {
            self.file.write_all(bytes)?;
            self.end += extent.length;
            *place = extent;
        }
        Ok(())
    }

    /// Appends the records of a tree, in the order of its tiles; one of a tile without data is empty, and a tree without
    /// data is simply not written.
    pub fn tree(&mut self, number: u64, records: &[impl AsRef<[u8]>]) -> Result<()> {
        let refuse = |reason| Error::NotWritable { number, reason };
        let pyramid = &self.header.pyramid;
        let root = pyramid.tree(number);
        let root = root.ok_or_else(|| refuse("there is no such tree"))?;
        if self.trees.contains_key(&number) {
            return Err(refuse("it was written before"));
        }
        if records.len() != pyramid.tree_tiles(root).len() {
            return Err(refuse("it has another number of records than tiles"));
        }
        let mut lengths = Vec::with_capacity(records.len());
        for record in records {
            let length = u32::try_from(record.as_ref().len()).ok();
            let length = length.filter(|&length| u64::from(length) <= limits::TILE_BYTES);
            lengths.push(length.ok_or_else(|| refuse("one of its records is too long"))?);
        }
        if lengths.iter().all(|&length| length == 0) {
            return Err(refuse("it has no data"));
        }
        for record in records {
            self.file.write_all(record.as_ref())?;
        }
        let tree = TreeLocation {
            offset: self.end,
            lengths,
        };
        self.end += tree.length();
        self.trees.insert(number, tree);
        Ok(())
    }

    /// Bytes written so far.
    pub fn length(&self) -> u64 {
        self.end
    }

    /// Writes the index and the head.
    pub fn finish(
        mut self,
        statistics: Statistics,
        overviews: Vec<OverviewStatistics>,
    ) -> Result<W> {
        self.header.statistics = statistics;
        self.header.overviews = overviews;
        let trees = self.header.pyramid.trees();
        let per_page = trees_per_page(trees);
        let mut pages = Vec::new();
        for first in (0..trees).step_by(per_page as usize) {
            let count = (trees - first).min(per_page.into());
            let mut locations = vec![TreeLocation::default(); count as usize];
            for (number, location) in self.trees.range(first..first + count) {
                locations[(number - first) as usize] = location.clone();
            }
            let bytes = page(&locations);
            self.file.write_all(&bytes)?;
            pages.push(PageLocation {
                offset: self.end,
                length: bytes.len() as u32,
                crc: crc32c(&bytes),
            });
            self.end += bytes.len() as u64;
        }
        let head = self.header.to_bytes(self.end, per_page, &pages)?;
        if head.len() != self.head {
            return Err(Error::HeadTooLong {
                bytes: head.len(),
                limit: self.head,
            });
        }
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head)?;
        self.file.flush()?;
        Ok(self.file)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::header::tests::{full, least};
    use crate::{LevelTile, Reader, TileId, TileLocation};

    fn writer(header: Header) -> Writer<Cursor<Vec<u8>>> {
        Writer::create(Cursor::new(Vec::new()), header, false).unwrap()
    }

    fn finish(writer: Writer<Cursor<Vec<u8>>>) -> Vec<u8> {
        let file = writer.finish(Statistics::default(), Vec::new()).unwrap();
        file.into_inner()
    }

    #[test]
    fn a_tree_is_written_once_and_only_where_there_is_one() {
        // 40 by 30 pixels in tiles of 16 and one level: three by two trees of a tile.
        let mut writer = writer(least());
        let head = writer.length();
        writer.tree(5, &[b"record".to_vec()]).unwrap();
        for (number, records) in [
            (5, vec![b"again".to_vec()]),
            (6, vec![b"outside".to_vec()]),
            (u64::MAX, vec![b"x".to_vec()]),
            (0, vec![Vec::new()]),
            (0, Vec::new()),
            (0, vec![b"a".to_vec(), b"b".to_vec()]),
        ] {
            assert!(matches!(
                writer.tree(number, &records),
                Err(Error::NotWritable { number: found, .. }) if found == number
            ));
        }
        writer.tree(0, &[b"first".to_vec()]).unwrap();
        assert_eq!(writer.length(), head + 11);
    }

    #[test]
    fn tiles_are_found_wherever_they_were_written() {
        let header = Header {
            model: None,
            ..full()
        };
        // Three levels: one tree of 1, 4 and 12 tiles.
        let tiles = header.pyramid.tree_tiles(header.pyramid.tree(0).unwrap());
        let with_data = [16_u64, 3, 0, 11];
        let records: Vec<Vec<u8>> = tiles
            .iter()
            .map(|&tile| header.pyramid.number(tile).unwrap())
            .map(|number| {
                if with_data.contains(&number) {
                    number.to_le_bytes().to_vec()
                } else {
                    Vec::new()
                }
            })
            .collect();
        let mut writer = writer(header);
        writer.tree(0, &records).unwrap();
        let bytes = finish(writer);
        let reader = Reader::open(Box::new(bytes.clone())).unwrap();
        reader.check_layout().unwrap();
        for number in 0..17 {
            let tile = reader.header().pyramid.tile(number).unwrap();
            let location = reader.locate(tile).unwrap();
            assert_eq!(location.is_some(), with_data.contains(&number));
            if let Some(TileLocation { offset, length }) = location {
                let record = &bytes[offset as usize..][..length as usize];
                assert_eq!(record, number.to_le_bytes());
            }
        }
    }

    #[test]
    fn a_head_takes_what_it_needs() {
        let writer = writer(least());
        let head = writer.length();
        let bytes = finish(writer);
        // Six trees without data are a byte each.
        assert_eq!(bytes.len() as u64, head + 6);
        assert!(head < 280, "{head}");
    }

    #[test]
    fn an_unfinished_file_is_refused() {
        let mut writer = writer(least());
        writer.tree(1, &[b"record".to_vec()]).unwrap();
        let bytes = writer.file.into_inner();
        assert!(matches!(
            Reader::open(Box::new(bytes)),
            Err(Error::NotTerrane)
        ));
    }

    #[test]
    fn a_file_without_tiles_is_a_file() {
        let reader = Reader::open(Box::new(finish(writer(least())))).unwrap();
        reader.check_layout().unwrap();
        let id = TileId { column: 2, row: 1 };
        assert!(reader.bytes(LevelTile { level: 0, id }).unwrap().is_none());
    }

    #[test]
    fn descriptions_that_do_not_fit_are_known_before_any_tile() {
        let header = Header {
            wkt: "x".repeat(limits::HEAD),
            ..least()
        };
        assert!(matches!(
            Writer::create(Cursor::new(Vec::new()), header, false),
            Err(Error::HeadTooLong { .. })
        ));
    }
}
