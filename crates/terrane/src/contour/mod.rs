//! Contour lines: lines of equal height of the continuous surface.
//!
//! Lines are found on [`Cells`] between pixel centres, by which corners lie above a height ([`Tracing`]). Where a line
//! crosses the edge of a cell is found on the surface itself (`vertex`), in the order of heights, and lines of a cell are
//! straight between such points, or the cell is cut where they bend (`rectangle`): so no line crosses or touches itself or
//! another, whatever the surface is like. A raster is traced block by block; where a line leaves a block it is a function
//! of the surface at that edge alone, so both sides find the same point, and [`Joiner`] puts them together. Higher ground
//! lies on the right of every line, as `gdal_contour` has it.

mod cells;
mod contouring;
mod field;
mod flat_geobuf;
mod geo_json;
mod joiner;
mod levels;
mod rectangle;
mod strips;
#[cfg(test)]
mod tests;
mod trace;
mod vertex;
mod writer;

pub use cells::Cells;
pub use contouring::{ContourLine, Contouring};
pub use field::Field;
pub use joiner::{Joiner, Line};
pub use levels::{Levels, LevelsError, round_interval};
pub use trace::{Chain, Crossing, End, Tracing};
pub use writer::{ContourReport, LineCrs, LineFormat};

/// A position in pixels: the first pixel reaches from 0 to 1.
pub type Point = [f64; 2];
