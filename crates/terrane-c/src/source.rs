//! A file that the caller reads.

use std::ffi::c_void;
use std::io;

use terrane_codec::format::{ByteSource, Error, Result};

/// Reads bytes from an offset into a buffer: returns how many, fewer only where the file ends, below 0 where it fails.
pub(crate) type ReadFunction =
    unsafe extern "C" fn(user: *mut c_void, offset: u64, buffer: *mut c_void, length: usize) -> i64;

pub(crate) struct CallerSource {
    read: ReadFunction,
    user: *mut c_void,
    length: u64,
}

// SAFETY: `terrane.h` asks for a function that several threads may call at once with the same `user`.
unsafe impl Send for CallerSource {}
// SAFETY: as above.
unsafe impl Sync for CallerSource {}

impl CallerSource {
    /// A file of so many bytes.
    ///
    /// # Safety
    /// The function may be called with `user`, by any thread and by several at once, while this lives; it writes to the
    /// buffer no more than it is asked for.
    pub(crate) unsafe fn new(read: ReadFunction, user: *mut c_void, length: u64) -> Self {
        Self { read, user, length }
    }
}

impl ByteSource for CallerSource {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        // No more than there is: a stated length is not trusted.
        let left = self.length.saturating_sub(offset);
        let length = usize::try_from(left).map_or(length, |left| length.min(left));
        let mut bytes = vec![0; length];
        let mut done = 0;
        while done < length {
            let rest = &mut bytes[done..];
            let buffer = rest.as_mut_ptr().cast();
            // SAFETY: as asked for by `new`; the buffer has as many bytes as are asked for.
            let read = unsafe { (self.read)(self.user, offset + done as u64, buffer, rest.len()) };
            match usize::try_from(read) {
                Ok(0) => break,
                Ok(read) if read <= rest.len() => done += read,
                _ => {
                    let message = format!("the caller's read function failed at byte {offset}");
                    return Err(Error::Io(io::Error::other(message)));
                }
            }
        }
        bytes.truncate(done);
        Ok(bytes)
    }

    fn length(&self) -> Result<u64> {
        Ok(self.length)
    }
}
