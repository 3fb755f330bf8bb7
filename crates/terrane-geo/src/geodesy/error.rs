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
    /// A system for whose datum no shift is published.
    #[error(
        "{system} cannot be placed on the Earth: no shift of its datum to WGS 84 is known{}; give points in the file's own system",
        grid.as_ref().map_or(String::new(), |grid| format!(" but the grid {grid}, which is in no folder of PROJ_DATA"))
    )]
    NoShift {
        /// Its name.
        system: String,
        /// The grid that would shift it.
        grid: Option<String>,
    },
    /// A system whose projection is not implemented.
    #[error("{system} cannot be used here: {reason}")]
    Unsupported {
        /// Its name.
        system: String,
        /// Why.
        reason: String,
    },
    /// A file that states no system.
    #[error(
        "the file states no coordinate system: give points in its own coordinates, or encode it with one"
    )]
    NoSystem,
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
