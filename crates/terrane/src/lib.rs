//! Neural terrain: heights to tensors and back.
//!
//! A [`Normalisation`] maps the heights of one tile to [0, 1] and back; [`batch`] puts normalised tiles into one tensor.

#![forbid(unsafe_code)]

mod batch;
pub mod blocks;
pub mod cost;
pub mod dinov3;
pub mod distillation;
mod error;
pub mod init;
pub mod methods;
mod normalise;
pub mod quantise;
pub mod random;
pub mod released;
pub mod tape;
pub mod weights;

pub use batch::batch;
pub use error::Error;
pub use normalise::Normalisation;
