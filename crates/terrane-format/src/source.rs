//! Where the bytes of a file come from.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::Result;

/// Bytes that can be read in parts.
pub trait ByteSource: Send + Sync {
    /// Bytes from an offset on; fewer where the file ends before.
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>>;

    /// The length of all; a remote source may know it only after the first read.
    fn length(&self) -> Result<u64>;
}

/// A file of this machine.
#[derive(Debug)]
pub struct LocalFile {
    file: Mutex<File>,
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
        Ok(Self {
            file: Mutex::new(file),
            length,
        })
    }
}

impl ByteSource for LocalFile {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        // No more than there is: a stated length is not trusted.
        let left = self.length.saturating_sub(offset);
        let length = usize::try_from(left).map_or(length, |left| length.min(left));
        let mut bytes = vec![0; length];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(&mut bytes)?;
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
