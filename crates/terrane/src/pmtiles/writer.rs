//! Tiles in their order, one after another, to one file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use terrane_geo::{AtomicFile, Output};

use super::directory::{Directories, Entry, directories, gzip};
use crate::tiles::Format;
use crate::{Error, Result};

/// Bytes of the header.
const HEADER: usize = 127;
/// The root directory lies within so many first bytes, which a reader asks for at once.
const FIRST_READ: usize = 16_384;

/// What is said of all tiles together.
#[derive(Debug, Clone)]
pub(crate) struct Archive {
    /// What a tile is.
    pub(crate) format: Format,
    /// The first and the last zoom.
    pub(crate) zooms: (u8, u8),
    /// West, south, east and north in degrees.
    pub(crate) bounds: [f64; 4],
    /// Longitude and latitude of a first view.
    pub(crate) centre: (f64, f64),
    /// Its zoom.
    pub(crate) centre_zoom: u8,
    /// A JSON object.
    pub(crate) metadata: String,
}

/// An archive that is being written; it appears under its name when it is finished.
pub(crate) struct PmtilesWriter<'a> {
    output: AtomicFile,
    path: &'a Path,
    /// Tiles wait here until the length of the directories before them is known.
    spool: BufWriter<File>,
    length: u64,
    entries: Vec<Entry>,
    /// Where equal tiles are, by the first half of their hash.
    known: HashMap<[u8; 16], (u64, u32)>,
    tiles: u64,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// Tiles that can be asked for.
    pub(crate) tiles: u64,
    /// Different ones among them.
    pub(crate) contents: u64,
}

impl<'a> PmtilesWriter<'a> {
    /// Starts an archive.
    pub(crate) fn create(output: &Output<'a>) -> Result<Self> {
        let path = output.path();
        let target = output.check()?;
        let folder = target
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let output = AtomicFile::create(output)?;
        let spool = tempfile::tempfile_in(folder.unwrap_or(Path::new(".")));
        Ok(Self {
            output,
            path,
            spool: BufWriter::with_capacity(1 << 20, spool.map_err(|error| failed(path, error))?),
            length: 0,
            entries: Vec::new(),
            known: HashMap::new(),
            tiles: 0,
        })
    }

    /// Appends a tile; its number is above that of the last.
    pub(crate) fn add(&mut self, tile: u64, bytes: &[u8]) -> Result<()> {
        let mut key = [0; 16];
        key.copy_from_slice(&Sha256::digest(bytes)[..16]);
        let (offset, length) = if let Some(&place) = self.known.get(&key) {
            place
        } else {
            let place = (self.length, bytes.len() as u32);
            self.spool
                .write_all(bytes)
                .map_err(|error| failed(self.path, error))?;
            self.length += bytes.len() as u64;
            self.known.insert(key, place);
            place
        };
        self.tiles += 1;
        if let Some(last) = self.entries.last_mut()
            && (last.offset, last.length) == (offset, length)
            && last.tile + u64::from(last.run) == tile
        {
            last.run += 1;
            return Ok(());
        }
        self.entries.push(Entry {
            tile,
            offset,
            length,
            run: 1,
        });
        Ok(())
    }

    /// Completes the file and gives it its name.
    pub(crate) fn finish(mut self, archive: &Archive) -> Result<Written> {
        let path = self.path;
        let written = self
            .assemble(archive)
            .map_err(|error| failed(path, error))?;
        self.output.commit()?;
        Ok(written)
    }

    fn assemble(&mut self, archive: &Archive) -> std::io::Result<Written> {
        let Directories { root, leaves } = directories(&self.entries, FIRST_READ - HEADER)?;
        let metadata = gzip(archive.metadata.as_bytes())?;
        let header = self.header(archive, [root.len(), metadata.len(), leaves.len()]);
        self.spool.flush()?;
        let spool = self.spool.get_mut();
        spool.seek(SeekFrom::Start(0))?;
        let file = self.output.file();
        for part in [&header, &root, &metadata, &leaves] {
            file.write_all(part)?;
        }
        std::io::copy(spool, file)?;
        Ok(Written {
            bytes: file.stream_position()?,
            tiles: self.tiles,
            contents: self.known.len() as u64,
        })
    }

    fn header(&self, archive: &Archive, lengths: [usize; 3]) -> Vec<u8> {
        const GZIP: u8 = 2;
        const NONE: u8 = 1;
        const CLUSTERED: u8 = 1;
        let [root, metadata, leaves] = lengths.map(|length| length as u64);
        let mut header = b"PMTiles\x03".to_vec();
        let mut offset = HEADER as u64;
        for length in [root, metadata, leaves, self.length] {
            header.extend(offset.to_le_bytes());
            header.extend(length.to_le_bytes());
            offset += length;
        }
        for count in [
            self.tiles,
            self.entries.len() as u64,
            self.known.len() as u64,
        ] {
            header.extend(count.to_le_bytes());
        }
        let kind = match archive.format {
            Format::Png => 2,
            Format::Webp => 4,
        };
        header.extend([
            CLUSTERED,
            GZIP,
            NONE,
            kind,
            archive.zooms.0,
            archive.zooms.1,
        ]);
        let degrees = |value: f64| ((value * 1e7).round() as i32).to_le_bytes();
        for value in archive.bounds {
            header.extend(degrees(value));
        }
        header.push(archive.centre_zoom);
        header.extend(degrees(archive.centre.0));
        header.extend(degrees(archive.centre.1));
        header
    }
}

fn failed(path: &Path, source: std::io::Error) -> Error {
    Error::Unwritable {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_geo::{Existing, Kind};

    #[test]
    fn equal_tiles_are_stored_once_and_runs_are_one_entry() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pmtiles");
        let output = Output::new(&path, Existing::Refuse, Kind::Any);
        let mut writer = PmtilesWriter::create(&output).unwrap();
        for (tile, bytes) in [(1, "sea"), (2, "sea"), (3, "sea"), (4, "land"), (9, "sea")] {
            writer.add(tile, bytes.as_bytes()).unwrap();
        }
        assert_eq!(writer.entries.len(), 3);
        let archive = Archive {
            format: Format::Png,
            zooms: (1, 2),
            bounds: [-10.0, -20.0, 30.0, 40.0],
            centre: (10.0, 10.0),
            centre_zoom: 1,
            metadata: "{}".into(),
        };
        let written = writer.finish(&archive).unwrap();
        assert_eq!((written.tiles, written.contents), (5, 2));
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, written.bytes);
        assert_eq!(&bytes[..8], b"PMTiles\x03");
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        // Sections follow each other without gaps, and tiles are last.
        let mut next = HEADER as u64;
        for at in [8, 24, 40, 56] {
            assert_eq!(number(at), next);
            next += number(at + 8);
        }
        assert_eq!(next, written.bytes);
        assert_eq!(&bytes[bytes.len() - 7..], b"sealand");
        assert_eq!([number(72), number(80), number(88)], [5, 3, 2]);
        let west = i32::from_le_bytes(bytes[102..106].try_into().unwrap());
        assert_eq!(west, -100_000_000);
    }
}
