//! Map tiles of a file: pictures of the Web Mercator square, drawn from the continuous surface.
//!
//! A tile goes through these files: `warp` finds the positions of its pixels in the raster, `patch` puts together the
//! heights around them from decoded `blocks` and lays the continuous surface through them, `render` asks the surface
//! for what the [`Layer`] shows, `colour` and `picture` make an image of it. No seam can show: every pixel is a function
//! of its position on the ground alone. `contours` traces lines in the same patches, and `mvt` writes them.

mod before;
mod blocks;
mod bounds;
mod cache;
mod colour;
mod contours;
mod deadline;
mod error;
mod height_code;
mod info;
mod layer;
mod map_tiles;
mod mercator;
mod mvt;
mod patch;
mod picture;
mod profile;
mod render;
mod simplify;
mod warp;

pub use before::Before;
pub(crate) use bounds::{bounds, middle, parts, unwrapped};
pub use cache::BlockCache;
pub use colour::{Legend, legend};
pub use deadline::Deadline;
pub use error::TileError;
pub use height_code::{HeightCode, HeightEncoding};
pub use layer::Layer;
pub use map_tiles::{HeightRange, MapTiles};
pub use mercator::{MAX_ZOOM, MapTile, degrees, position};
pub use picture::{Format, Picture};
pub use profile::{Degrees, Profile, ProfilePoint};
pub use render::{Nodata, TileRequest};
