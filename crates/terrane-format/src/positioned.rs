//! Reads at an offset of a file, without a position that threads would have to share.

use std::fs::File;
use std::io::Result;

/// Fills a buffer with the bytes from an offset on. Nothing else may use the file's own position.
#[cfg(unix)]
pub fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

/// Fills a buffer with the bytes from an offset on. Nothing else may use the file's own position.
#[cfg(windows)]
pub fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> Result<()> {
    use std::io::ErrorKind;
    use std::os::windows::fs::FileExt;
    while !bytes.is_empty() {
        match file.seek_read(bytes, offset) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                bytes = &mut bytes[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fills a buffer with the bytes from an offset on. Nothing else may use the file's own position.
#[cfg(not(any(unix, windows)))]
pub fn read_exact_at(mut file: &File, bytes: &mut [u8], offset: u64) -> Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    use std::sync::{Mutex, PoisonError};
    // Such a system has one position per file: seek and read belong together.
    static POSITION: Mutex<()> = Mutex::new(());
    let _position = POSITION.lock().unwrap_or_else(PoisonError::into_inner);
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}
