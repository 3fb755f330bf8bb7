//! Writes a file: tiles as they come, then the index, then the head in the room that was kept for it.
#![expect(
    clippy::cast_possible_truncation,
    reason = "pages are bounded by the limits"
)]

use std::io::{Seek, SeekFrom, Write};

use crate::checksum::crc32c;
use crate::header::{Extent, Header, Statistics};
use crate::index::{PagePlace, TilePlace, page, tiles_per_page};
use crate::{Error, Result, limits};

/// A file that is being written.
#[derive(Debug)]
pub struct Writer<W> {
    file: W,
    header: Header,
    places: Vec<TilePlace>,
    end: u64,
}

impl<W: Write + Seek> Writer<W> {
    /// Starts a file; its statistics and the place of its model are filled in later.
    pub fn create(mut file: W, header: Header) -> Result<Self> {
        let tiles = usize::try_from(header.pyramid.tiles()).unwrap_or(usize::MAX);
        // What does not fit the head should be known before the tiles are made.
        header.to_bytes(
            0,
            limits::PAGE_TILES,
            &vec![
                PagePlace {
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
            places: vec![TilePlace::default(); tiles],
            end: limits::HEAD as u64,
        })
    }

    /// Puts the model into the file.
    pub fn embed_model(&mut self, bytes: &[u8]) -> Result<()> {
        let extent = Extent {
            offset: self.end,
            length: bytes.len() as u64,
            crc: crc32c(&[bytes]),
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
        let place = usize::try_from(number)
            .ok()
            .and_then(|index| self.places.get_mut(index));
        let place = place.ok_or_else(|| refuse("there is no such tile"))?;
        if place.length > 0 {
            return Err(refuse("it was written before"));
        }
        if record.is_empty() || record.len() as u64 > limits::TILE_BYTES {
            return Err(refuse("its record is empty or too long"));
        }
        self.file.write_all(record)?;
        *place = TilePlace {
            offset: self.end,
            length: record.len() as u64,
        };
        self.end += place.length;
        Ok(())
    }

    /// Bytes written so far.
    pub fn length(&self) -> u64 {
        self.end
    }

    /// Writes the index and the head.
    pub fn finish(mut self, mut statistics: Statistics) -> Result<W> {
        statistics.tiles = self.places.iter().filter(|place| place.length > 0).count() as u64;
        self.header.statistics = statistics;
        let per_page = tiles_per_page(self.header.pyramid.tiles());
        let mut pages = Vec::new();
        for places in self.places.chunks(per_page as usize) {
            let bytes = page(places);
            self.file.write_all(&bytes)?;
            pages.push(PagePlace {
                offset: self.end,
                length: bytes.len() as u32,
                crc: crc32c(&[&bytes]),
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
