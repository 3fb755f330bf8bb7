//! Maps and the ground: metres per map unit, and points from one coordinate system to another.

mod distance;
mod epsg;
mod error;
mod projection;
mod scale;

pub use distance::distance_m;
pub use epsg::{define, definition, is_geographic, parse_epsg, unit_m};
pub use error::GeodesyError;
pub use projection::Projection;
pub use scale::{GroundScale, METRES_PER_DEGREE};
