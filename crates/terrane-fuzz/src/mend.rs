//! Puts right every checksum and length that a file states of itself, so that what lies behind them is reached.

use std::ops::Range;

use crc32c::{crc32c, crc32c_append};
use terrane_format::{LevelTile, Pyramid, Reader};

use crate::memory::MemoryFile;

/// Where the head says how long it is, and how long the file is.
const HEAD_LENGTH: Range<usize> = 10..12;
const FILE_LENGTH: Range<usize> = 16..24;
/// The head before its chunks.
const FIXED: usize = 160;
const CRC: usize = 4;
/// An entry of the root of the index: offset, length, checksum.
const PAGE: usize = 16;
/// The end of what is said of an embedded model: offset, length, checksum.
const EXTENT: usize = 20;
/// Records that are mended at most.
const RECORDS: usize = 512;

pub(crate) fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// The part of a file at an offset that it states itself.
fn part(file: &[u8], offset: u64, length: u64) -> Option<&[u8]> {
    let first = usize::try_from(offset).ok()?;
    file.get(first..first.checked_add(usize::try_from(length).ok()?)?)
}

/// The chunks of a head: tags, and where their bytes are.
fn chunks(head: &[u8]) -> Vec<([u8; 4], Range<usize>)> {
    let mut chunks = Vec::new();
    let mut at = FIXED;
    while let Some(&[a, b, c, d, ref length @ ..]) = head.get(at..at + 8) {
        let length = usize::try_from(number(length)).unwrap_or(usize::MAX);
        let bytes = at + 8..(at + 8).saturating_add(length);
        if bytes.end > head.len() {
            break;
        }
        at = bytes.end;
        chunks.push(([a, b, c, d], bytes));
    }
    chunks
}

pub(crate) fn put_crc(file: &mut [u8], at: usize, crc: u32) {
    if let Some(place) = file.get_mut(at..at + CRC) {
        place.copy_from_slice(&crc.to_le_bytes());
    }
}

/// The checksum that a record should begin with as the tile of a number; `None` where it is too short to have one.
pub(crate) fn record_crc(record: &[u8], number: u64) -> Option<u32> {
    let rest = record.get(CRC..)?;
    Some(crc32c_append(crc32c(&number.to_le_bytes()), rest))
}

/// Mends the head, and the checksums that it has of other parts.
fn mend_head(file: &mut [u8]) -> Option<()> {
    let length = usize::try_from(number(file.get(HEAD_LENGTH)?)).ok()?;
    if length < FIXED + CRC || length > file.len() {
        return None;
    }
    let whole = (file.len() as u64).to_le_bytes();
    file[FILE_LENGTH].copy_from_slice(&whole);
    for (tag, bytes) in chunks(&file[..length - CRC]) {
        let entries: Vec<usize> = match &tag {
            b"ROOT" => bytes.step_by(PAGE).collect(),
            b"MODL" if bytes.len() > EXTENT => vec![bytes.end - EXTENT],
            _ => continue,
        };
        // A length is of four bytes in the root and of eight for a model.
        let size = if tag == *b"ROOT" { 4 } else { 8 };
        for entry in entries {
            let crc_at = entry + 8 + size;
            let Some(stated) = file.get(entry..crc_at) else {
                continue;
            };
            let (offset, count) = (number(&stated[..8]), number(&stated[8..]));
            if crc_at + CRC <= length - CRC
                && let Some(crc) = part(file, offset, count).map(crc32c)
            {
                put_crc(file, crc_at, crc);
            }
        }
    }
    let crc = crc32c(&file[..length - CRC]);
    put_crc(file, length - CRC, crc);
    Some(())
}

/// Tiles of a pyramid, from the last number on, up to so many.
pub(crate) fn some_tiles(pyramid: &Pyramid, most: usize) -> impl Iterator<Item = LevelTile> {
    let numbers = (0..pyramid.tiles()).rev().take(most);
    numbers.filter_map(|number| pyramid.tile(number))
}

/// The file with all checksums right that can be: of the head, the pages of the index, an embedded model and the records.
pub fn mend(mut file: Vec<u8>) -> Vec<u8> {
    if mend_head(&mut file).is_none() {
        return file;
    }
    let Ok(reader) = Reader::open(Box::new(MemoryFile(file.clone()))) else {
        return file;
    };
    let pyramid = &reader.header().pyramid;
    for tile in some_tiles(pyramid, RECORDS) {
        let (Ok(Some(place)), Ok(tile)) = (reader.locate(tile), pyramid.number(tile)) else {
            continue;
        };
        let Some(record) = part(&file, place.offset, place.length) else {
            continue;
        };
        if let (Some(crc), Ok(at)) = (record_crc(record, tile), usize::try_from(place.offset)) {
            put_crc(&mut file, at, crc);
        }
    }
    // A record may lie over the head or an index page.
    mend_head(&mut file);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_stays_and_a_damaged_one_opens() {
        for (name, bytes) in crate::targets::tests::golden_files() {
            assert_eq!(mend(bytes.clone()), bytes, "{name}");
            let mut damaged = bytes.clone();
            let last = damaged.len() - 1;
            damaged[last] ^= 1;
            // The height of the lowest pixel, which says nothing of the layout.
            damaged[120] ^= 1;
            assert!(Reader::open(Box::new(MemoryFile(damaged.clone()))).is_err());
            let mended = mend(damaged);
            assert!(Reader::open(Box::new(MemoryFile(mended))).is_ok(), "{name}");
        }
    }
}
