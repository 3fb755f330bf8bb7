//! What can go wrong with a report.

use std::path::PathBuf;

/// An error of a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A report would write over files that are none of it.
    #[error("{path}: is there already, and was not written by this program; name another folder")]
    NoReport {
        /// The file.
        path: PathBuf,
    },
    /// A table or figure cannot be a file of a report.
    #[error("`{name}` cannot name a file of the report: {reason}")]
    ReportName {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An output could not be created or put in place.
    #[error(transparent)]
    Output(#[from] terrane_geo::Error),
    /// A file could not be read or written.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// The result of work on a report.
pub type Result<T> = std::result::Result<T, Error>;
