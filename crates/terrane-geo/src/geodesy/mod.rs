//! Maps and the ground: metres per map unit, and points from one coordinate system to another.

mod distance;
mod ellipsoid;
mod epsg;
mod error;
mod geo_keys;
mod lattice;
mod projection;
mod scale;
mod shift;
mod system;
#[cfg(feature = "definitions")]
mod table;

pub use distance::distance_m;
pub use epsg::{WGS_84, define, definition, is_geographic, parse_epsg};
pub use error::GeodesyError;
pub use projection::Projection;
pub use scale::{Ground, GroundScale};
pub use system::System;
