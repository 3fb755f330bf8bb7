//! The C library `libterrane`; its functions are described in `include/terrane.h`.
//!
//! Every function that can fail goes through [`border::guard`], which turns errors into text and stops panics. What a C
//! program hands over is checked where it enters, and is Rust from there on.

#![expect(
    unsafe_code,
    reason = "the border to C; every use states why it is sound"
)]

mod border;
mod encode;
mod failure;
mod file;
mod info;
mod query;
mod read;
mod source;

use std::ffi::{CString, c_char};

/// The generation of the functions and structures in `terrane.h`.
const TRN_ABI: u32 = 1;

/// `TRN_ABI` of the library that is linked.
#[unsafe(no_mangle)]
extern "C" fn trn_abi() -> u32 {
    TRN_ABI
}

/// The version of the library.
#[unsafe(no_mangle)]
extern "C" fn trn_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Frees a text that the library gave away.
///
/// # Safety
/// The text is NULL or came out of `char **error` of this library, and is freed once.
#[unsafe(no_mangle)]
unsafe extern "C" fn trn_free_string(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it came from `CString::into_raw` in `border::report`.
        drop(unsafe { CString::from_raw(text) });
    }
}
