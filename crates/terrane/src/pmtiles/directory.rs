//! Where tiles are: directories of entries, the first one small enough for the first read.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// One tile, a run of equal ones, or a leaf directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// The number of the first tile.
    pub(super) tile: u64,
    /// Where its bytes begin, counted from those of the first tile, or of the first leaf.
    pub(super) offset: u64,
    /// How many they are.
    pub(super) length: u32,
    /// How many tiles in a row have them; 0 for a leaf.
    pub(super) run: u32,
}

/// All directories as bytes.
pub(super) struct Directories {
    pub(super) root: Vec<u8>,
    pub(super) leaves: Vec<u8>,
}

/// Entries of a leaf at first; more where that gives more leaves than the root has room for.
const LEAF: usize = 4096;

/// Divides entries such that the root is not longer than it may be.
pub(super) fn directories(entries: &[Entry], longest: usize) -> std::io::Result<Directories> {
    let root = serialise(entries)?;
    if root.len() <= longest {
        let leaves = Vec::new();
        return Ok(Directories { root, leaves });
    }
    let mut size = LEAF;
    loop {
        let (mut leaves, mut heads) = (Vec::new(), Vec::new());
        for part in entries.chunks(size) {
            let leaf = serialise(part)?;
            heads.push(Entry {
                tile: part[0].tile,
                offset: leaves.len() as u64,
                length: leaf.len() as u32,
                run: 0,
            });
            leaves.extend(leaf);
        }
        let root = serialise(&heads)?;
        // One leaf alone always fits.
        if root.len() <= longest || heads.len() == 1 {
            return Ok(Directories { root, leaves });
        }
        size *= 2;
    }
}

/// A directory: columns of its entries one after another as variable-length integers, compressed.
fn serialise(entries: &[Entry]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(entries.len() * 6);
    varint(&mut bytes, entries.len() as u64);
    let mut last = 0;
    for entry in entries {
        varint(&mut bytes, entry.tile - last);
        last = entry.tile;
    }
    for entry in entries {
        varint(&mut bytes, entry.run.into());
    }
    for entry in entries {
        varint(&mut bytes, entry.length.into());
    }
    let mut next = None;
    for entry in entries {
        // What follows the bytes before it is 0.
        let is_next = next == Some(entry.offset);
        varint(&mut bytes, if is_next { 0 } else { entry.offset + 1 });
        next = Some(entry.offset + u64::from(entry.length));
    }
    gzip(&bytes)
}

/// Bytes, compressed.
pub(super) fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn unzipped(bytes: &[u8]) -> Vec<u64> {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(bytes)
            .read_to_end(&mut plain)
            .unwrap();
        let (mut numbers, mut value, mut shift) = (Vec::new(), 0_u64, 0);
        for byte in plain {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                numbers.push(value);
                (value, shift) = (0, 0);
            }
        }
        numbers
    }

    #[test]
    fn entries_are_columns_of_differences() {
        let entry = |tile, offset, length, run| Entry {
            tile,
            offset,
            length,
            run,
        };
        let entries = [
            entry(5, 0, 300, 1),
            entry(7, 300, 20, 4),
            entry(90, 0, 300, 1),
        ];
        let found = directories(&entries, 16_000).unwrap();
        assert!(found.leaves.is_empty());
        let expected = [3, 5, 2, 83, 1, 4, 1, 300, 20, 300, 1, 0, 1];
        assert_eq!(unzipped(&found.root), expected);
    }

    #[test]
    fn many_entries_are_divided_into_leaves() {
        let entries: Vec<Entry> = (0..50_000_u64)
            .map(|tile| Entry {
                tile: tile * 3,
                offset: tile * 1000 + tile * tile % 7,
                length: 900 + (tile * 7919 % 101) as u32,
                run: 1,
            })
            .collect();
        let found = directories(&entries, 200).unwrap();
        assert!(found.root.len() <= 200);
        let root = unzipped(&found.root);
        let count = root[0] as usize;
        assert!(count > 1);
        // Every leaf is where the root says, and together they have all entries.
        let lengths = &root[1 + 2 * count..][..count];
        let (mut from, mut all) = (0, 0);
        for length in lengths {
            let to = from + *length as usize;
            all += unzipped(&found.leaves[from..to])[0];
            from = to;
        }
        assert_eq!((all, from), (50_000, found.leaves.len()));
    }
}
