//! Where the tiles are: pages that list trees and the records in them, and a root that says where the pages are.
#![expect(
    clippy::cast_possible_truncation,
    reason = "counts are bounded by the limits first"
)]

use crate::bytes::{Cursor, Put};
use crate::checksum::crc32c;
use crate::{Error, Result, limits};

/// Where the record of a tile is in the file; a length of 0 is a tile without data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TileLocation {
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
}

/// Where the records of a tree are: one after another, in the order of its tiles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TreeLocation {
    /// The first byte of the first.
    pub offset: u64,
    /// Their bytes, 0 for a tile without data; empty where the whole tree has none.
    pub lengths: Vec<u32>,
}

impl TreeLocation {
    /// Bytes of all records.
    pub fn length(&self) -> u64 {
        self.lengths.iter().map(|&length| u64::from(length)).sum()
    }

    /// Where a record is; a length of 0 where its tile has no data.
    pub fn record(&self, index: usize) -> TileLocation {
        let Some(&length) = self.lengths.get(index) else {
            return TileLocation::default();
        };
        let before: u64 = self.lengths[..index]
            .iter()
            .map(|&length| u64::from(length))
            .sum();
        TileLocation {
            offset: self.offset + before,
            length: length.into(),
        }
    }
}

/// Where an index page is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageLocation {
    pub(crate) offset: u64,
    pub(crate) length: u32,
    pub(crate) crc: u32,
}

impl PageLocation {
    const BYTES: usize = 16;

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes[12..].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    pub(crate) fn parse_all(chunk: &[u8], count: u32) -> Result<Vec<Self>> {
        let mut cursor = Cursor::new(chunk, "root of the index");
        if chunk.len() != count as usize * Self::BYTES {
            return Err(cursor.malformed("it does not have an entry per page"));
        }
        (0..count)
            .map(|_| {
                let page = Self {
                    offset: cursor.u64()?,
                    length: cursor.u32()?,
                    crc: cursor.u32()?,
                };
                if page.length > limits::PAGE_BYTES {
                    return Err(Error::LimitExceeded {
                        what: "bytes of an index page",
                        value: page.length.into(),
                        limit: limits::PAGE_BYTES.into(),
                    });
                }
                Ok(page)
            })
            .collect()
    }

    /// Checks the bytes of the page and reads it; `records` says how many tiles each tree has.
    pub(crate) fn parse(&self, bytes: &[u8], records: &[usize]) -> Result<Vec<TreeLocation>> {
        let found = crc32c(bytes);
        if found != self.crc {
            return Err(Error::Checksum {
                what: "index",
                expected: self.crc,
                found,
            });
        }
        parse_page(bytes, records)
    }
}

/// Trees per page: doubled until the root has room for all pages.
pub(crate) fn trees_per_page(trees: u64) -> u32 {
    let mut per_page = limits::PAGE_TREES;
    while trees.div_ceil(per_page.into()) > limits::PAGES.into() {
        per_page *= 2;
    }
    per_page
}

/// A page as bytes: for each tree its length and, where it has one, how far it starts from the end of the one before,
/// and the lengths of its records but the last, which follows.
pub fn page(trees: &[TreeLocation]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut end = 0_u64;
    for tree in trees {
        let length = tree.length();
        bytes.put_varint(length);
        if length > 0 {
            let distance = tree.offset.wrapping_sub(end).cast_signed();
            bytes.put_varint((distance << 1 ^ distance >> 63).cast_unsigned());
            let (_, lengths) = tree.lengths.split_last().unwrap_or((&0, &[]));
            for &length in lengths {
                bytes.put_varint(length.into());
            }
            end = tree.offset + length;
        }
    }
    bytes
}

fn parse_page(bytes: &[u8], records: &[usize]) -> Result<Vec<TreeLocation>> {
    let mut cursor = Cursor::new(bytes, "index");
    if records.len() > bytes.len() {
        return Err(cursor.malformed("it has fewer entries than trees"));
    }
    let mut trees = Vec::with_capacity(records.len());
    let mut end = 0_u64;
    for &records in records {
        let length = cursor.varint()?;
        if length == 0 {
            trees.push(TreeLocation::default());
            continue;
        }
        let code = cursor.varint()?;
        let distance = (code >> 1) ^ (code & 1).wrapping_neg();
        let offset = end.wrapping_add(distance);
        end = offset
            .checked_add(length)
            .ok_or_else(|| cursor.malformed("a tree ends beyond all files"))?;
        let mut lengths = Vec::with_capacity(records.min(cursor.remaining() + 1));
        let mut left = length;
        for _ in 1..records {
            let length = cursor.varint()?;
            left = left
                .checked_sub(length)
                .ok_or_else(|| cursor.malformed("its records are longer than a tree"))?;
            lengths.push(record_length(length)?);
        }
        lengths.push(record_length(left)?);
        trees.push(TreeLocation { offset, lengths });
    }
    cursor.end()?;
    Ok(trees)
}

fn record_length(length: u64) -> Result<u32> {
    if length <= limits::TILE_BYTES {
        return Ok(length as u32);
    }
    Err(Error::LimitExceeded {
        what: "bytes of a tile",
        value: length,
        limit: limits::TILE_BYTES,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(offset: u64, lengths: &[u32]) -> TreeLocation {
        TreeLocation {
            offset,
            lengths: lengths.to_vec(),
        }
    }

    /// Trees in any order, one of them without data.
    fn trees() -> Vec<TreeLocation> {
        vec![
            tree(160, &[100]),
            tree(900_000_000_000, &[7, 0, 0, 300, 9]),
            TreeLocation::default(),
            tree(260, &[0, 0, 1]),
        ]
    }

    const RECORDS: [usize; 4] = [1, 5, 85, 3];

    #[test]
    fn locations_in_any_order_come_back() {
        let bytes = page(&trees());
        assert_eq!(parse_page(&bytes, &RECORDS).unwrap(), trees());
        assert!(parse_page(&bytes, &RECORDS[..3]).is_err());
        assert!(parse_page(&bytes, &[1, 5, 85, 3, 1]).is_err());
        assert!(parse_page(&bytes, &[1, 4, 85, 3]).is_err());
        for cut in 0..bytes.len() {
            assert!(parse_page(&bytes[..cut], &RECORDS).is_err());
        }
        let record = trees()[1].record(3);
        assert_eq!((record.offset, record.length), (900_000_000_007, 300));
        assert_eq!(trees()[2].record(84).length, 0);
    }

    #[test]
    fn a_page_of_other_bytes_is_refused() {
        let bytes = page(&trees());
        let location = PageLocation {
            offset: 20_000,
            length: bytes.len() as u32,
            crc: crc32c(&bytes),
        };
        assert_eq!(location.parse(&bytes, &RECORDS).unwrap(), trees());
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(
                location.parse(&flipped, &RECORDS),
                Err(Error::Checksum { .. })
            ));
        }
    }

    #[test]
    fn stated_lengths_are_not_trusted() {
        // More trees than the page has bytes, before any memory is taken for them.
        assert!(parse_page(&[0; 10], &[85; 11]).is_err());
        let mut bytes = Vec::new();
        bytes.put_varint(limits::TILE_BYTES + 1);
        bytes.put_varint(0);
        assert!(matches!(
            parse_page(&bytes, &[1]),
            Err(Error::LimitExceeded { .. })
        ));
        // A tree that ends beyond 2^64.
        let mut bytes = Vec::new();
        bytes.put_varint(5);
        bytes.put_varint(1);
        assert!(parse_page(&bytes, &[1]).is_err());
        // Any byte changed, in a page whose checksum nobody asks for.
        let bytes = page(&trees());
        for offset in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[offset] = value;
                let _ = parse_page(&changed, &RECORDS);
            }
        }
    }

    #[test]
    fn roots_come_back_or_are_refused() {
        let pages = [(16_384, 7, 1), (u64::MAX, limits::PAGE_BYTES, u32::MAX)].map(
            |(offset, length, crc)| PageLocation {
                offset,
                length,
                crc,
            },
        );
        let mut root: Vec<u8> = pages.iter().flat_map(|page| page.to_bytes()).collect();
        assert_eq!(PageLocation::parse_all(&root, 2).unwrap(), pages);
        for count in [0, 1, 3, u32::MAX] {
            assert!(PageLocation::parse_all(&root, count).is_err());
        }
        root[8..12].copy_from_slice(&(limits::PAGE_BYTES + 1).to_le_bytes());
        assert!(matches!(
            PageLocation::parse_all(&root, 2),
            Err(Error::LimitExceeded { .. })
        ));
    }

    #[test]
    fn the_root_of_a_country_fits_the_head() {
        // Germany at 1 m: trees of 2048 pixels, and their overviews.
        let trees = 357_000_000_000_u64 / (2048 * 2048) + 500;
        let pages = trees.div_ceil(trees_per_page(trees).into());
        assert!(pages <= 512 && pages * PageLocation::BYTES as u64 <= 8192);
        assert_eq!(trees_per_page(7000), limits::PAGE_TREES);
    }
}
