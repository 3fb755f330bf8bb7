//! What crosses the border: errors and texts, and no panic.

use std::ffi::{CStr, CString, c_char};

use library::Fault;

use crate::failure::{ErrorText, Failure, Outcome};

/// A call that did what it should.
pub(crate) const TRN_OK: i32 = 0;
/// A call that failed.
pub(crate) const TRN_ERROR: i32 = 1;
/// A call that the caller's own function stopped.
pub(crate) const TRN_STOPPED: i32 = 2;

/// Runs what stands behind a function; an error or a panic becomes `None`, and its text goes to the caller.
///
/// # Safety
/// `error` is NULL or may be written to.
pub(crate) unsafe fn guard<T>(
    error: ErrorText,
    work: impl FnOnce() -> Outcome<T>,
) -> Result<T, i32> {
    let outcome = Fault::catch(work).unwrap_or_else(|fault| Err(fault.into()));
    outcome.map_err(|failure| {
        // SAFETY: as this function's.
        unsafe { report(error, &failure) };
        match failure {
            Failure::Stopped => TRN_STOPPED,
            _ => TRN_ERROR,
        }
    })
}

/// As [`guard`], for functions that return how they ended.
///
/// # Safety
/// As [`guard`].
pub(crate) unsafe fn status(error: ErrorText, work: impl FnOnce() -> Outcome<()>) -> i32 {
    // SAFETY: as this function's.
    match unsafe { guard(error, work) } {
        Ok(()) => TRN_OK,
        Err(status) => status,
    }
}

unsafe fn report(error: ErrorText, failure: &Failure) {
    if !error.is_null() {
        let text = text(&library::sentence(failure));
        // SAFETY: the caller may write to it.
        unsafe { *error = text.into_raw() };
    }
}

/// A text for C, which cannot hold a zero.
pub(crate) fn text(text: &str) -> CString {
    CString::new(library::one_line(text).replace('\0', "")).unwrap_or_default()
}

/// What a pointer leads to.
///
/// # Safety
/// It is NULL, or leads to a value that lives and does not change while the result is used.
pub(crate) unsafe fn reference<'a, T>(name: &'static str, pointer: *const T) -> Outcome<&'a T> {
    // SAFETY: as this function's.
    unsafe { pointer.as_ref() }.ok_or(Failure::Null { name })
}

/// A text that a caller gives; `None` where it is NULL.
///
/// # Safety
/// It is NULL, or a text with a zero at its end that lives while the result is used.
pub(crate) unsafe fn given<'a>(
    name: &'static str,
    pointer: *const c_char,
) -> Outcome<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as this function's.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    text.map(Some).map_err(|_| Failure::NotText { name })
}
