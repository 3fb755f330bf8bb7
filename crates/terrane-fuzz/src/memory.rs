//! A file in memory.

use terrane_format::{ByteSource, Result};

/// Bytes that are read as a file.
#[derive(Debug)]
pub(crate) struct MemoryFile(pub(crate) Vec<u8>);

impl ByteSource for MemoryFile {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let end = self.0.len();
        let first = usize::try_from(offset).map_or(end, |offset| offset.min(end));
        let last = first.saturating_add(length).min(end);
        Ok(self.0[first..last].to_vec())
    }

    fn length(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }
}
