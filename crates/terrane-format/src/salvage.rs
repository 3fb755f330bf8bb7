//! What can be saved of a damaged head or a damaged page of the index.
//!
//! A checksum of 32 bits says of one wrong byte which one it is and what it was. Of more than one wrong byte it says nothing,
//! and now and then names a byte by chance: what is found here is only to be used where it can be checked otherwise.
#![expect(
    clippy::cast_possible_truncation,
    reason = "a head has at most 16 KiB, and a byte is taken of a checksum"
)]

use crc32c::crc32c;

use crate::header::{FIXED, Header, LENGTH_OFFSET};
use crate::{ErrorBound, Method, limits};

/// CRC-32C, reflected.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// What a byte does to a checksum.
const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (if crc & 1 == 1 { POLYNOMIAL } else { 0 });
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

const TABLE: [u32; 256] = table();

/// The bytes that, wrong by themselves, explain that `bytes` have another checksum: where they are, and what to change
/// (exclusive or).
fn single_bytes(bytes: &[u8], expected: u32) -> Vec<(usize, u8)> {
    let mut found = Vec::new();
    let mut difference = crc32c(bytes) ^ expected;
    if difference == 0 {
        return found;
    }
    // From the last byte to the first, the difference that would have been there one byte before.
    for offset in (0..bytes.len()).rev() {
        let top = difference >> 24;
        let Some(byte) = (0..256).find(|&byte| TABLE[byte] >> 24 == top) else {
            return found;
        };
        if TABLE[byte] == difference {
            found.push((offset, byte as u8));
        }
        difference = ((difference ^ TABLE[byte]) << 8) | byte as u32;
    }
    found
}

/// Bytes with one of them put right, so that they have their checksum; `None` where one byte does not explain it, or more
/// than one does.
pub fn mended(bytes: &[u8], expected: u32) -> Option<Vec<u8>> {
    let [(offset, change)] = single_bytes(bytes, expected)[..] else {
        return None;
    };
    let mut mended = bytes.to_vec();
    mended[offset] ^= change;
    Some(mended)
}

/// A head with one byte put right, from the first bytes of a file; `None` where that does not make it a head.
pub fn mended_head(start: &[u8]) -> Option<Vec<u8>> {
    let stated = start.get(LENGTH_OFFSET..LENGTH_OFFSET + 2)?;
    let stated = u16::from_le_bytes([stated[0], stated[1]]);
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut consider = |head: Vec<u8>| {
        let is_head = head_length(&head) == Some(head.len());
        if is_head && !found.contains(&head) {
            found.push(head);
        }
    };
    let of_length = |length: u16| {
        let head = start.get(..usize::from(length))?;
        let (checked, crc) = head.split_at_checked(head.len().checked_sub(4)?)?;
        let crc = u32::from_le_bytes([crc[0], crc[1], crc[2], crc[3]]);
        Some((checked, crc))
    };
    if let Some((checked, crc)) = of_length(stated) {
        let actual = crc32c(checked);
        if (actual ^ crc)
            .to_le_bytes()
            .iter()
            .filter(|&&byte| byte != 0)
            .count()
            == 1
        {
            consider([checked, &actual.to_le_bytes()].concat());
        }
        for (offset, change) in single_bytes(checked, crc) {
            let mut head = start[..usize::from(stated)].to_vec();
            head[offset] ^= change;
            consider(head);
        }
    }
    // Its length is wrong in one byte, and so the place of its checksum.
    for change in 1..=u16::from(u8::MAX) {
        for length in [stated ^ change, stated ^ (change << 8)] {
            if let Some((checked, crc)) = of_length(length)
                && checked.len() >= FIXED
            {
                let mut checked = checked.to_vec();
                checked[LENGTH_OFFSET..LENGTH_OFFSET + 2].copy_from_slice(&length.to_le_bytes());
                if crc32c(&checked) == crc {
                    checked.extend(crc.to_le_bytes());
                    consider(checked);
                }
            }
        }
    }
    let [head] = &mut found[..] else {
        return None;
    };
    Some(std::mem::take(head))
}

/// What a damaged head still seems to say of how its file was encoded. Any of it may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Traces {
    /// Side of a tile.
    pub side: Option<u16>,
    /// The method.
    pub method: Option<Method>,
    /// The error bound.
    pub bound: Option<ErrorBound>,
}

/// Reads what is left of a damaged head, without its checksum.
pub fn traces(start: &[u8]) -> Traces {
    let u16_at = |at: usize| Some(u16::from_le_bytes(start.get(at..at + 2)?.try_into().ok()?));
    let f64_at = |at: usize| Some(f64::from_le_bytes(start.get(at..at + 8)?.try_into().ok()?));
    let side = u16_at(32).filter(|side| limits::TILE_SIDE.contains(side) && side % 2 == 0);
    // Zeros are a method too: where the side is lost, so is what stands beside it.
    let method = side.and(start.get(35));
    let method = method.and_then(|&code| Method::from_code(code).ok());
    let bound = match start.get(40) {
        Some(1) => f64_at(96)
            .filter(|bound| bound.is_finite() && *bound > 0.0)
            .map(ErrorBound::MaxError),
        Some(2) => Some(ErrorBound::Lossless { as_f32: false }),
        Some(3) => Some(ErrorBound::Lossless { as_f32: true }),
        _ => None,
    };
    Traces {
        side,
        method,
        bound,
    }
}

/// The checksum of a page of the index or of a model.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c(bytes)
}

/// Bytes of the head at the start of a file, where it is whole.
pub fn head_length(start: &[u8]) -> Option<usize> {
    Header::parse(start).ok().map(|head| head.length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::tests::{full, least};
    use crate::index::PageLocation;

    fn heads() -> [Vec<u8>; 2] {
        let page = PageLocation {
            offset: 20_000,
            length: 7,
            crc: 0x1234_5678,
        };
        [least(), full()].map(|header| header.to_bytes(20_007, 64, &[page]).unwrap())
    }

    #[test]
    fn one_wrong_byte_of_a_head_is_put_right_wherever_it_is() {
        for head in heads() {
            let mut start = head.clone();
            start.extend([7; 100]);
            let mut mended = 0;
            for offset in 0..head.len() {
                for change in [1, 0x80, 0xff, 0x5a] {
                    start[offset] ^= change;
                    match mended_head(&start) {
                        Some(found) => {
                            assert_eq!(found, head, "byte {offset}");
                            mended += 1;
                        }
                        None => panic!("byte {offset} is not mended"),
                    }
                    start[offset] ^= change;
                }
            }
            assert_eq!(mended, head.len() * 4);
        }
    }

    #[test]
    fn more_than_one_wrong_byte_is_not_put_right() {
        for head in heads() {
            for first in (0..head.len() - 40).step_by(3) {
                let mut start = head.clone();
                for byte in &mut start[first..first + 40] {
                    *byte ^= 0x5a;
                }
                assert_eq!(mended_head(&start), None, "from byte {first}");
            }
        }
        assert_eq!(mended_head(&[]), None);
        assert_eq!(mended_head(&[0xff; 200]), None);
    }

    #[test]
    fn one_wrong_byte_of_anything_is_found_by_its_checksum() {
        let bytes: Vec<u8> = (0..3000_u32).map(|at| ((at * at) >> 3) as u8).collect();
        let crc = crc32c(&bytes);
        assert_eq!(mended(&bytes, crc), None);
        for offset in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[offset] ^= (offset % 255) as u8 + 1;
            assert_eq!(mended(&wrong, crc).as_ref(), Some(&bytes));
        }
    }

    #[test]
    fn traces_are_what_the_head_said() {
        for head in heads() {
            let parsed = Header::parse(&head).unwrap().header;
            let found = traces(&head);
            assert_eq!(found.side, Some(parsed.pyramid.side()));
            assert_eq!(found.method, Some(parsed.method));
        }
        assert_eq!(traces(&[0; 164]).side, None);
        assert_eq!(traces(&[]), Traces::default());
    }
}
