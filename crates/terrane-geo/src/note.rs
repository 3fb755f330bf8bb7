//! What should be said of a raster before it is trusted.

use std::path::PathBuf;

/// Something that was decided about a raster, which a user may have meant otherwise.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Note {
    /// What was given counts before what the file states.
    #[error("{path}: states {what} {stated}; {given} is taken instead, as was asked for")]
    Overridden {
        /// The file.
        path: PathBuf,
        /// What is stated.
        what: &'static str,
        /// What the file states.
        stated: String,
        /// What was given.
        given: String,
    },
    /// The coordinates are in a unit of length other than metres, and nothing states that of the heights.
    #[error(
        "{path}: its coordinates have the unit {coordinates}, and nothing states that of its heights, which are taken for \
         metres; if they are not, give `vertical_unit`"
    )]
    UnitAssumed {
        /// The file.
        path: PathBuf,
        /// The unit of its coordinates.
        coordinates: String,
    },
}
