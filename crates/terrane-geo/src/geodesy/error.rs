//! What can be wrong with a coordinate system or a point.

/// An error of geodesy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GeodesyError {
    /// A text that is no code.
    #[error("a code is needed, such as EPSG:4326")]
    NotACode,
    /// A map unit that is not known.
    #[error("the map unit EPSG:{code} is not known")]
    UnknownUnit {
        /// Its code.
        code: u16,
    },
    /// A system that is not known.
    #[error("EPSG:{epsg} is not known here")]
    UnknownSystem {
        /// Its code.
        epsg: u16,
    },
    /// A system whose shift of datum would be wrong.
    #[error("EPSG:{epsg} would be converted wrongly here: give points in the file's own system")]
    Inexact {
        /// Its code.
        epsg: u16,
    },
    /// A system whose projection is not implemented.
    #[error("EPSG:{epsg} cannot be used here: {reason}")]
    Unsupported {
        /// Its code.
        epsg: u16,
        /// Why.
        reason: String,
    },
    /// A file whose system has no code.
    #[error("the file's system has no EPSG code: give points in the file's own system")]
    NoCode,
    /// A point outside the domain of a projection.
    #[error("{x}, {y} cannot be converted: {reason}")]
    Point {
        /// Its first coordinate.
        x: f64,
        /// Its second coordinate.
        y: f64,
        /// Why.
        reason: String,
    },
}
