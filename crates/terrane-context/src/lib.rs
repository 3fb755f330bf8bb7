//! The context codec: a wavelet, and a small network in integers that says how likely each coefficient is.
//!
//! A tile becomes a coarse picture and bands of details, finest last. Every detail is a whole number of steps, coded
//! with the probabilities that the network derives from everything coded before it: the coarser picture, the
//! coarser details, the bands and the places already known. All of that is integer arithmetic, so every machine derives
//! the same probabilities and the same heights.

#![expect(
    clippy::inline_always,
    reason = "what runs with wider registers must be inlined into a function that has them"
)]
#![expect(
    clippy::many_single_char_names,
    reason = "rows that are worked on together, and a pixel's neighbours"
)]

mod codec;
mod compand;
mod distribution;
mod error;
mod grid;
mod level;
mod model;
mod network;
mod planes;
pub mod simd;
mod stream;
mod tile;
mod wavelet;

pub use codec::Codec;
pub use compand::UNIT;
pub use distribution::{
    Context, Distributions, MEANS, SCALE_AT_NOUGHT, SCALE_PER_UNIT, SCALES, TABLES, extent, scale,
};
pub use error::{Error, Result};
pub use grid::Grid;
pub use model::{LayerWeights, Model, WIDTHS_KEY, to_bytes};
pub use network::{GREATEST, LayerShape, MOST_WIDTH, Network, WEIGHT_UNIT, Widths};
pub use planes::{CONSTANTS, PHASES, Planes, Tap, Taps};
pub use stream::Effort;
pub use tile::{Tile, Transform};
pub use wavelet::{BANDS, Split};
