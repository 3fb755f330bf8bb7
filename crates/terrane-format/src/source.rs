//! Where the bytes of a file come from.

use std::fs::File;
use std::path::Path;

use crate::Result;
use crate::positioned::read_exact_at;

/// Bytes that can be read in parts.
pub trait ByteSource: Send + Sync {
    /// Bytes from an offset on; fewer where the file ends before.
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>>;

    /// Several parts at once, each an offset and a length; a remote source asks for them side by side.
    fn read_all(&self, parts: &[(u64, usize)]) -> Result<Vec<Vec<u8>>> {
        parts
            .iter()
            .map(|&(offset, length)| self.read(offset, length))
            .collect()
    }

    /// The length of all; a remote source may know it only after the first read.
    fn length(&self) -> Result<u64>;
}

/// A file of this machine, which threads read at once.
#[derive(Debug)]
pub struct LocalFile {
    file: File,
    length: u64,
}

impl LocalFile {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self> {
        Self::from_file(File::open(path)?)
    }

    /// A file that is open.
    pub fn from_file(file: File) -> Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file, length })
    }
}

impl ByteSource for LocalFile {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        // No more than there is: a stated length is not trusted.
        let left = self.length.saturating_sub(offset);
        let length = usize::try_from(left).map_or(length, |left| length.min(left));
        let mut bytes = vec![0; length];
        read_exact_at(&self.file, &mut bytes, offset)?;
        Ok(bytes)
    }

    fn length(&self) -> Result<u64> {
        Ok(self.length)
    }
}

/// A file in memory.
impl ByteSource for Vec<u8> {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.len());
        let end = start.saturating_add(length).min(self.len());
        Ok(self[start..end].to_vec())
    }

    fn length(&self) -> Result<u64> {
        Ok(self.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn threads_read_one_file_at_once() {
        let bytes: Vec<u8> = (0..100_000_u32)
            .flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        let path = std::env::temp_dir().join(format!("terrane-source-{}", std::process::id()));
        File::create(&path).unwrap().write_all(&bytes).unwrap();
        let file = LocalFile::open(&path).unwrap();
        assert_eq!(file.length().unwrap(), bytes.len() as u64);
        std::thread::scope(|scope| {
            for first in 0..8 {
                let (file, bytes) = (&file, &bytes);
                scope.spawn(move || {
                    for offset in (first * 997..bytes.len()).step_by(1009) {
                        let expected = &bytes[offset..(offset + 300).min(bytes.len())];
                        assert_eq!(file.read(offset as u64, 300).unwrap(), expected);
                    }
                });
            }
        });
        drop(file);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn no_more_is_read_than_there_is() {
        let source = vec![1_u8, 2, 3];
        assert_eq!(source.read(1, usize::MAX).unwrap(), [2, 3]);
        assert_eq!(source.read(u64::MAX, 5).unwrap(), [0_u8; 0]);
    }
}
