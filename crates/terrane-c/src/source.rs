//! A file that the caller reads.

use std::ffi::c_void;
use std::io;

use terrane_codec::format::{ByteSource, Error, Result};

use crate::border::TRN_OK;

/// Reads bytes from an offset into a buffer: returns how many, fewer only where the file ends, below 0 where it fails.
pub(crate) type ReadFunction =
    unsafe extern "C" fn(user: *mut c_void, offset: u64, buffer: *mut c_void, length: usize) -> i64;

/// Reads several parts at once, all of each; returns `TRN_OK` or another status.
pub(crate) type ReadAllFunction = unsafe extern "C" fn(
    user: *mut c_void,
    count: usize,
    offsets: *const u64,
    lengths: *const usize,
    buffers: *mut *mut c_void,
) -> i32;

pub(crate) struct CallerSource {
    read: ReadFunction,
    read_all: Option<ReadAllFunction>,
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
    /// The functions may be called with `user`, by any thread and by several at once, while this lives; they write to the
    /// buffers no more than they are asked for.
    pub(crate) unsafe fn new(
        read: ReadFunction,
        read_all: Option<ReadAllFunction>,
        user: *mut c_void,
        length: u64,
    ) -> Self {
        Self {
            read,
            read_all,
            user,
            length,
        }
    }

    /// A length from an offset on, but no more than there is: a stated length is not trusted.
    fn within(&self, offset: u64, length: usize) -> usize {
        let left = self.length.saturating_sub(offset);
        usize::try_from(left).map_or(length, |left| length.min(left))
    }
}

fn failed(offset: u64) -> Error {
    let message = format!("the caller's read function failed at byte {offset}");
    Error::Io(io::Error::other(message))
}

impl ByteSource for CallerSource {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let length = self.within(offset, length);
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
                _ => return Err(failed(offset)),
            }
        }
        bytes.truncate(done);
        Ok(bytes)
    }

    fn read_all(&self, parts: &[(u64, usize)]) -> Result<Vec<Vec<u8>>> {
        let (Some(read_all), [(first, _), ..]) = (self.read_all, parts) else {
            return parts
                .iter()
                .map(|&(offset, length)| self.read(offset, length))
                .collect();
        };
        let offsets: Vec<u64> = parts.iter().map(|&(offset, _)| offset).collect();
        let mut all: Vec<Vec<u8>> = parts
            .iter()
            .map(|&(offset, length)| vec![0; self.within(offset, length)])
            .collect();
        let lengths: Vec<usize> = all.iter().map(Vec::len).collect();
        let mut buffers: Vec<*mut c_void> = all
            .iter_mut()
            .map(|part| part.as_mut_ptr().cast())
            .collect();
        // SAFETY: as asked for by `new`; there are as many offsets, lengths and buffers, and each buffer has its length.
        let status = unsafe {
            read_all(
                self.user,
                parts.len(),
                offsets.as_ptr(),
                lengths.as_ptr(),
                buffers.as_mut_ptr(),
            )
        };
        if status == TRN_OK {
            Ok(all)
        } else {
            Err(failed(*first))
        }
    }

    fn length(&self) -> Result<u64> {
        Ok(self.length)
    }
}
