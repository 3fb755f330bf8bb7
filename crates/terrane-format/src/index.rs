//! Where the tiles are: pages of entries, and a root that says where the pages are.
#![expect(
    clippy::cast_possible_truncation,
    reason = "counts are bounded by the limits first"
)]

use crc32c::crc32c;

use crate::bytes::{Cursor, Put};
use crate::{Error, Result, limits};

/// Where the record of a tile is in the file; a length of 0 is a tile without data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TileLocation {
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
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

    /// Checks the bytes of the page and reads it.
    pub(crate) fn parse(&self, bytes: &[u8], tiles: u64) -> Result<Vec<TileLocation>> {
        let found = crc32c(bytes);
        if found != self.crc {
            return Err(Error::Checksum {
                what: "index",
                expected: self.crc,
                found,
            });
        }
        parse_page(bytes, tiles)
    }
}

/// Tiles per page: doubled until the root has room for all pages.
pub(crate) fn tiles_per_page(tiles: u64) -> u32 {
    let mut per_page = limits::PAGE_TILES;
    while tiles.div_ceil(per_page.into()) > limits::PAGES.into() {
        per_page *= 2;
    }
    per_page
}

/// A page as bytes: for each tile its length and, where it has one, how far it starts from the end of the one before.
pub(crate) fn page(locations: &[TileLocation]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut end = 0_u64;
    for location in locations {
        bytes.put_varint(location.length);
        if location.length > 0 {
            let distance = location.offset.wrapping_sub(end).cast_signed();
            bytes.put_varint((distance << 1 ^ distance >> 63).cast_unsigned());
            end = location.offset + location.length;
        }
    }
    bytes
}

fn parse_page(bytes: &[u8], tiles: u64) -> Result<Vec<TileLocation>> {
    let mut cursor = Cursor::new(bytes, "index");
    if tiles > bytes.len() as u64 {
        return Err(cursor.malformed("it has fewer entries than tiles"));
    }
    let mut locations = Vec::with_capacity(tiles as usize);
    let mut end = 0_u64;
    for _ in 0..tiles {
        let length = cursor.varint()?;
        if length > limits::TILE_BYTES {
            return Err(Error::LimitExceeded {
                what: "bytes of a tile",
                value: length,
                limit: limits::TILE_BYTES,
            });
        }
        let mut location = TileLocation::default();
        if length > 0 {
            let code = cursor.varint()?;
            let distance = (code >> 1) ^ (code & 1).wrapping_neg();
            let offset = end.wrapping_add(distance);
            end = offset
                .checked_add(length)
                .ok_or_else(|| cursor.malformed("a tile ends beyond all files"))?;
            location = TileLocation { offset, length };
        }
        locations.push(location);
    }
    cursor.end()?;
    Ok(locations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_in_any_order_come_back() {
        let locations = [
            (16_384, 100),
            (16_484, 7),
            (0, 0),
            (900_000_000_000, 1),
            (16_491, 5),
        ]
        .map(|(offset, length)| TileLocation { offset, length });
        let bytes = page(&locations);
        assert_eq!(parse_page(&bytes, 5).unwrap(), locations);
        assert!(parse_page(&bytes, 4).is_err() && parse_page(&bytes, 6).is_err());
        for cut in 0..bytes.len() {
            assert!(parse_page(&bytes[..cut], 5).is_err());
        }
    }

    #[test]
    fn a_page_of_other_bytes_is_refused() {
        let locations =
            [(16_384, 100), (16_484, 7)].map(|(offset, length)| TileLocation { offset, length });
        let bytes = page(&locations);
        let location = PageLocation {
            offset: 20_000,
            length: bytes.len() as u32,
            crc: crc32c(&bytes),
        };
        assert_eq!(location.parse(&bytes, 2).unwrap(), locations);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(
                location.parse(&flipped, 2),
                Err(Error::Checksum { .. })
            ));
        }
    }

    #[test]
    fn stated_lengths_are_not_trusted() {
        // More tiles than the page has bytes, before any memory is taken for them.
        assert!(parse_page(&[0; 10], u64::MAX).is_err());
        let mut bytes = Vec::new();
        bytes.put_varint(limits::TILE_BYTES + 1);
        bytes.put_varint(0);
        assert!(matches!(
            parse_page(&bytes, 1),
            Err(Error::LimitExceeded { .. })
        ));
        // A tile that ends beyond 2^64.
        let mut bytes = Vec::new();
        bytes.put_varint(5);
        bytes.put_varint(1);
        assert!(parse_page(&bytes, 1).is_err());
        // Any byte changed, in a page whose checksum nobody asks for.
        let bytes = page(
            &[(16_384, 100), (0, 0), (70_000, 1 << 20)]
                .map(|(offset, length)| TileLocation { offset, length }),
        );
        for offset in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[offset] = value;
                let _ = parse_page(&changed, 3);
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
        // Germany at 1 m with its overviews.
        let tiles = 357_000_000_000 / 65_536 * 4 / 3;
        let pages = tiles_u64(tiles).div_ceil(tiles_per_page(tiles_u64(tiles)).into());
        assert!(pages <= 512 && pages * PageLocation::BYTES as u64 <= 8192);
        assert_eq!(tiles_per_page(840_000), 4096);
    }

    fn tiles_u64(tiles: i64) -> u64 {
        tiles.cast_unsigned()
    }
}
