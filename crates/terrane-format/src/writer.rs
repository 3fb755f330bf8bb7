//! Writes a file: tiles as they come, then the index, then the head in the space that was reserved for it.
#![expect(
    clippy::cast_possible_truncation,
    reason = "pages are bounded by the limits"
)]

use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};

use crc32c::crc32c;

use crate::header::{Extent, Header, Statistics};
use crate::index::{PageLocation, TileLocation, page, tiles_per_page};
use crate::{Error, Result, limits};

/// A file that is being written.
#[derive(Debug)]
pub struct Writer<W> {
    file: W,
    header: Header,
    /// The tiles that have data: a raster may be nearly empty.
    locations: BTreeMap<u64, TileLocation>,
    end: u64,
}

impl<W: Write + Seek> Writer<W> {
    /// Starts a file; its statistics and the offset of its model are filled in later.
    pub fn create(mut file: W, header: Header) -> Result<Self> {
        // What does not fit the head should be known before the tiles are made.
        header.to_bytes(
            0,
            limits::PAGE_TILES,
            &vec![
                PageLocation {
                    offset: 0,
                    length: 0,
                    crc: 0
                };
                page_count(&header)
            ],
        )?;
        file.write_all(&[0; limits::HEAD])?;
        Ok(Self {
            file,
            header,
            locations: BTreeMap::new(),
            end: limits::HEAD as u64,
        })
    }

    /// Puts the model into the file.
    pub fn embed_model(&mut self, bytes: &[u8]) -> Result<()> {
        let extent = Extent {
            offset: self.end,
            length: bytes.len() as u64,
            crc: crc32c(bytes),
        };
        if let Some(model) = &mut self.header.model {
            self.file.write_all(bytes)?;
            self.end += extent.length;
            model.embedded = Some(extent);
        }
        Ok(())
    }

    /// Appends the record of a tile; a tile without data is simply not written.
    pub fn tile(&mut self, number: u64, record: &[u8]) -> Result<()> {
        let refuse = |reason| Error::NotWritable { number, reason };
        if number >= self.header.pyramid.tiles() {
            return Err(refuse("there is no such tile"));
        }
        if self.locations.contains_key(&number) {
            return Err(refuse("it was written before"));
        }
        if record.is_empty() || record.len() as u64 > limits::TILE_BYTES {
            return Err(refuse("its record is empty or too long"));
        }
        self.file.write_all(record)?;
        let location = TileLocation {
            offset: self.end,
            length: record.len() as u64,
        };
        self.locations.insert(number, location);
        self.end += location.length;
        Ok(())
    }

    /// Bytes written so far.
    pub fn length(&self) -> u64 {
        self.end
    }

    /// Writes the index and the head.
    pub fn finish(mut self, mut statistics: Statistics) -> Result<W> {
        statistics.tiles = self.locations.len() as u64;
        self.header.statistics = statistics;
        let tiles = self.header.pyramid.tiles();
        let per_page = tiles_per_page(tiles);
        let mut pages = Vec::new();
        for first in (0..tiles).step_by(per_page as usize) {
            let count = (tiles - first).min(per_page.into());
            let mut locations = vec![TileLocation::default(); count as usize];
            for (number, location) in self.locations.range(first..first + count) {
                locations[(number - first) as usize] = *location;
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
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head)?;
        self.file.flush()?;
        Ok(self.file)
    }
}

fn page_count(header: &Header) -> usize {
    let tiles = header.pyramid.tiles();
    tiles.div_ceil(tiles_per_page(tiles).into()) as usize
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::header::tests::{full, least};
    use crate::{LevelTile, Reader, TileId};

    fn writer(header: Header) -> Writer<Cursor<Vec<u8>>> {
        Writer::create(Cursor::new(Vec::new()), header).unwrap()
    }

    #[test]
    fn a_tile_is_written_once_and_only_where_there_is_one() {
        // 40 by 30 pixels in tiles of 16: three by two.
        let mut writer = writer(least());
        writer.tile(5, b"record").unwrap();
        for (number, record) in [
            (5, &b"again"[..]),
            (6, b"outside"),
            (u64::MAX, b"x"),
            (0, b""),
        ] {
            assert!(matches!(
                writer.tile(number, record),
                Err(Error::NotWritable { number: found, .. }) if found == number
            ));
        }
        writer.tile(0, b"first").unwrap();
        assert_eq!(writer.length(), limits::HEAD as u64 + 11);
    }

    #[test]
    fn tiles_are_found_wherever_they_were_written() {
        let header = Header {
            model: None,
            ..full()
        };
        let mut writer = writer(header);
        for number in [16_u64, 3, 0, 11] {
            writer.tile(number, &number.to_le_bytes()).unwrap();
        }
        let bytes = writer.finish(Statistics::default()).unwrap().into_inner();
        let reader = Reader::open(Box::new(bytes.clone())).unwrap();
        assert_eq!(reader.header().statistics.tiles, 4);
        reader.check_layout().unwrap();
        for number in 0..17 {
            let tile = reader.header().pyramid.tile(number).unwrap();
            let location = reader.locate(tile).unwrap();
            assert_eq!(location.is_some(), [0, 3, 11, 16].contains(&number));
            if let Some(TileLocation { offset, length }) = location {
                let record = &bytes[offset as usize..][..length as usize];
                assert_eq!(record, number.to_le_bytes());
            }
        }
    }

    #[test]
    fn an_unfinished_file_is_refused() {
        let mut writer = writer(least());
        writer.tile(1, b"record").unwrap();
        let bytes = writer.file.into_inner();
        assert!(matches!(
            Reader::open(Box::new(bytes)),
            Err(Error::NotTerrane)
        ));
    }

    #[test]
    fn a_file_without_tiles_is_a_file() {
        let writer = writer(least());
        let bytes = writer.finish(Statistics::default()).unwrap().into_inner();
        let reader = Reader::open(Box::new(bytes)).unwrap();
        reader.check_layout().unwrap();
        let id = TileId { column: 2, row: 1 };
        assert!(reader.tile(LevelTile { level: 0, id }).unwrap().is_none());
    }

    #[test]
    fn descriptions_that_do_not_fit_are_known_before_any_tile() {
        let header = Header {
            wkt: "x".repeat(limits::HEAD),
            ..least()
        };
        assert!(matches!(
            Writer::create(Cursor::new(Vec::new()), header),
            Err(Error::HeadTooLong { .. })
        ));
    }
}
