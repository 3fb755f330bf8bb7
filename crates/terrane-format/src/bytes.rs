//! Numbers in bytes, little-endian; reading never goes past the end and never panics.

use crate::{Error, Result};

/// Appends numbers to a vector of bytes.
pub(crate) trait Put {
    /// Seven bits per byte, lowest first; the top bit is set when more follow.
    fn put_varint(&mut self, value: u64);
    /// Its length and its bytes.
    fn put_block(&mut self, bytes: &[u8]);
}

impl Put for Vec<u8> {
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.push((value & 0x7f) as u8);
    }

    fn put_block(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }
}

/// Reads numbers from bytes.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
    /// What is being read, for messages.
    what: &'static str,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self {
            bytes,
            offset: 0,
            what,
        }
    }

    pub(crate) fn malformed(&self, reason: &'static str) -> Error {
        Error::Malformed {
            what: self.what,
            offset: self.offset as u64,
            reason,
        }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self
            .offset
            .checked_add(count)
            .filter(|&end| end <= self.bytes.len());
        let Some(end) = end else {
            return Err(self.malformed("it ends too early"));
        };
        let part = &self.bytes[self.offset..end];
        self.offset = end;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn f32(&mut self) -> Result<f32> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    pub(crate) fn f64(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                // One number has one form, so that equal files are equal bytes.
                if byte == 0 && shift > 0 {
                    return Err(self.malformed("a number has a needless byte"));
                }
                return Ok(value);
            }
        }
        Err(self.malformed("a number has more than 64 bits"))
    }

    /// A block with its length before it.
    pub(crate) fn block(&mut self) -> Result<&'a [u8]> {
        let length = self.varint()?;
        let length = usize::try_from(length).map_err(|_| self.malformed("a block is too long"))?;
        self.take(length)
    }

    /// A block of text.
    pub(crate) fn text(&mut self) -> Result<String> {
        let bytes = self.block()?;
        String::from_utf8(bytes.to_vec()).map_err(|_| self.malformed("a text is not UTF-8"))
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.offset..];
        self.offset = self.bytes.len();
        rest
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// Nothing may follow.
    pub(crate) fn end(&self) -> Result<()> {
        if self.remaining() == 0 {
            Ok(())
        } else {
            Err(self.malformed("there is more than belongs there"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes_come_back() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            bytes.put_varint(value);
            let mut cursor = Cursor::new(&bytes, "number");
            assert_eq!(cursor.varint().unwrap(), value);
            cursor.end().unwrap();
            assert!(
                Cursor::new(&bytes[..bytes.len() - 1], "number")
                    .varint()
                    .is_err()
            );
        }
    }

    #[test]
    fn numbers_too_large_or_too_long_are_refused() {
        for bytes in [&[0xff; 10][..], &[0xff; 20], &[0x80, 0x00]] {
            assert!(Cursor::new(bytes, "number").varint().is_err());
        }
        assert!(Cursor::new(&[5, 1, 2], "block").block().is_err());
    }
}
