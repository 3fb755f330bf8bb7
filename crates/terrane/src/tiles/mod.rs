//! Map tiles of a file: pictures of the Web Mercator square, drawn from the continuous surface.
//!
//! A tile goes through these files: `warp` finds the positions of its pixels in the raster, `patch` puts together the
//! heights around them from decoded `blocks` and lays the continuous surface through them, `render` asks the surface
//! for what the [`Layer`] shows, `colour` and `picture` make an image of it. No seam can show: every pixel is a function
//! of its position on the ground alone.

mod before;
mod blocks;
mod cache;
mod colour;
mod deadline;
mod error;
mod height_code;
mod layer;
mod map_tiles;
mod mercator;
mod patch;
mod picture;
mod render;
mod warp;

pub use before::Before;
pub use cache::BlockCache;
pub use colour::{Legend, legend};
pub use deadline::Deadline;
pub use error::TileError;
pub use height_code::{HeightCode, HeightEncoding};
pub use layer::Layer;
pub use map_tiles::{HeightRange, MapTiles};
pub use mercator::{MAX_ZOOM, MapTile, degrees, position};
pub use picture::{Format, Picture};
pub use render::{Nodata, TileRequest};
