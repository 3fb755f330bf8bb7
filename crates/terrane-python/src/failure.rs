//! Errors as Python sees them.

use std::error::Error as _;
use std::fmt::Display;
use std::io::ErrorKind;
use std::str::FromStr;

use pyo3::create_exception;
use pyo3::exceptions::{
    PyException, PyFileExistsError, PyFileNotFoundError, PyIndexError, PyMemoryError,
    PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;
use terrane::Fault;
use terrane_codec::format::Error as FormatError;

create_exception!(
    pyterrane,
    TerraneError,
    PyException,
    "A raster or a file that cannot be converted, with one sentence that says why."
);

/// Any error on its way to Python.
pub(crate) enum Failure {
    Convert(terrane::Error),
    /// A value that an argument cannot have.
    Argument(String),
    /// A panic.
    Fault(Fault),
}

/// Runs work without Python's lock; a panic becomes an exception as any error.
pub(crate) fn detach<T: Send>(py: Python, work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
    py.detach(|| Fault::catch(work)).map_err(Failure::Fault)?
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl<E: Into<terrane::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Convert(error.into())
    }
}

/// An argument that cannot be.
pub(crate) fn refuse<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(Failure::Argument(reason.into()))
}

/// What a name stands for, by the library's own tables.
pub(crate) fn parse<T: FromStr<Err: Display>>(name: &str) -> Outcome<T> {
    let unknown = |error: T::Err| Failure::Argument(error.to_string());
    name.parse().map_err(unknown)
}

fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        // A transparent error says the same as its source.
        if !text.ends_with(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        cause = error.source();
    }
    text
}

/// The kind of an input or output error below, where there is one.
fn io_kind(error: &terrane::Error) -> Option<ErrorKind> {
    // These are transparent: their cause is not among the sources.
    if let terrane::Error::Terrain(below) | terrane::Error::Open { source: below, .. } = error
        && let terrane_codec::Error::Format(FormatError::Io(source)) = below
    {
        return Some(source.kind());
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        use terrane::Error;
        let error = match failure {
            Failure::Argument(reason) => return PyValueError::new_err(reason),
            Failure::Fault(fault) => return PyRuntimeError::new_err(fault.to_string()),
            Failure::Convert(error) => error,
        };
        let text = sentence(&error);
        match &error {
            Error::Raster(terrane_geo::Error::Exists { .. }) => PyFileExistsError::new_err(text),
            Error::NoShard { .. } | Error::NoLevel { .. } => PyIndexError::new_err(text),
            Error::MissingShard { .. } => PyFileNotFoundError::new_err(text),
            Error::NotPositive { .. }
            | Error::NotWhole { .. }
            | Error::RasterOption(_)
            | Error::Levels(_)
            | Error::Effort { .. }
            | Error::Bits { .. }
            | Error::NoTokens
            | Error::NoModel { .. }
            | Error::NoBuiltIn
            | Error::LossyNetwork
            | Error::TileOfModel { .. }
            | Error::WholeRate
            | Error::TileSide { .. }
            | Error::Raster(
                terrane_geo::Error::IsInput { .. }
                | terrane_geo::Error::OtherEnding { .. }
                | terrane_geo::Error::NotReplaceable { .. },
            )
            | Error::Terrain(terrane_codec::Error::Setting { .. }) => PyValueError::new_err(text),
            Error::Memory(_)
            | Error::Terrain(
                terrane_codec::Error::Memory(_)
                | terrane_codec::Error::Format(FormatError::Memory(_)),
            )
            | Error::Open {
                source:
                    terrane_codec::Error::Memory(_)
                    | terrane_codec::Error::Format(FormatError::Memory(_)),
                ..
            } => PyMemoryError::new_err(text),
            _ if io_kind(&error) == Some(ErrorKind::NotFound) => PyFileNotFoundError::new_err(text),
            _ => TerraneError::new_err(text),
        }
    }
}
