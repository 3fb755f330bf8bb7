//! What can be wrong with a call.

use std::ffi::c_char;

/// An error on its way to a C program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A pointer that must lead somewhere.
    #[error("`{name}` is NULL")]
    Null { name: &'static str },
    /// A text that is not UTF-8.
    #[error("`{name}` is not UTF-8")]
    NotText { name: &'static str },
    /// A number that means nothing here.
    #[error("`{name}` must be {must}, not {value}")]
    Argument {
        name: &'static str,
        must: &'static str,
        value: String,
    },
    /// A pixel of a raster cannot be given as its type.
    #[error("level {level}, row {row}, column {column}: {reason}")]
    Pixel {
        level: u8,
        row: usize,
        column: usize,
        reason: String,
    },
    /// The caller's function asked to stop.
    #[error("stopped")]
    Stopped,
    /// What terrane says.
    #[error(transparent)]
    Terrane(#[from] library::Error),
    /// What an open file says.
    #[error(transparent)]
    Terrain(#[from] terrane_codec::Error),
    /// What a raster says.
    #[error(transparent)]
    Raster(#[from] terrane_geo::Error),
    /// A fault of this library.
    #[error(transparent)]
    Fault(#[from] library::Fault),
}

/// The result of what stands behind a C function.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Where an error's text goes; NULL where the caller does not want it.
pub(crate) type ErrorText = *mut *mut c_char;
