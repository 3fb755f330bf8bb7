//! The context codec: a wavelet, and a small integer network that predicts the probabilities of its coefficients.
//!
//! A picture becomes an LL band and the subbands HL, LH and HH of each level, finest last; a picture whose LL band is part of
//! another is coded by its three subbands alone. Every coefficient is an integer
//! number of steps, coded with the probabilities that the network derives from everything coded before it: the coarser
//! image, the coarser subbands, and the positions already known. All of that is integer arithmetic, so every machine
//! derives the same probabilities and the same heights.

#![expect(
    clippy::inline_always,
    reason = "what runs with wider registers must be inlined into a function that has them"
)]
#![expect(
    clippy::many_single_char_names,
    reason = "rows that are worked on together, and a pixel's neighbours"
)]

mod arrays;
mod bounded;
mod codec;
mod coefficients;
mod compand;
mod distribution;
mod draft;
mod error;
mod grid;
mod json;
mod kernel;
mod level;
mod matrix;
mod model;
mod network;
mod packed;
mod picture;
mod planes;
mod quantiser;
#[cfg(test)]
mod reference;
pub mod simd;
mod stream;
pub mod timing;
mod wavelet;
mod widths;

pub use bounded::{Bumps, FinestSymbols, Penalty, search};
pub use codec::Codec;
pub use coefficients::{Coefficients, Transform};
pub use compand::{SUBSTEPS, seen_symbol};
pub use distribution::{
    Context, Distributions, FARTHEST_MEAN, MEANS, SCALE_AT_ZERO, SCALE_PER_UNIT, SCALES, SHAPES,
    TABLES, TAIL_RATIO, TAILS, scale, support,
};
pub use draft::{Draft, Finest};
pub use error::{Error, Result};
pub use grid::{Area, MARGIN, PHASES};
pub use matrix::Matrix;
pub use model::{LayerWeights, ProbabilityModel, WIDTHS_KEY, to_bytes};
pub use network::{MAX_MAGNITUDE, Network, WEIGHT_UNIT};
pub use packed::{pack, unpack};
pub use picture::{Part, Picture};
pub use planes::{CHANNELS, CONSTANTS, GROUP, Planes};
pub use quantiser::Quantiser;
pub use wavelet::{BANDS, GROWTH, Subbands};
pub use widths::{LayerShape, MAX_BLOCKS, MAX_REACH, MAX_WIDTH, SUMS, SymbolTap, WINDOW, Widths};
