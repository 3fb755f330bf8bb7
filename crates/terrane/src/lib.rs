//! Neural terrain: heights to tensors and back.
//!
//! A [`Normalisation`] maps the heights of one tile to [0, 1] and back; [`batch`] puts normalised tiles into one tensor.

#![forbid(unsafe_code)]

mod address;
mod batch;
pub mod blocks;
mod cascade;
pub mod cost;
pub mod dinov3;
pub mod distillation;
pub mod division;
pub mod encode;
mod error;
pub mod field;
mod file_model;
mod fill;
pub mod init;
pub mod journal;
pub mod kernel;
#[cfg(feature = "libtorch")]
mod libtorch;
mod measured;
pub mod merge;
pub mod methods;
pub mod model;
mod normalise;
mod outline;
pub mod parallel;
pub mod quantise;
pub mod random;
pub mod released;
#[cfg(feature = "remote")]
mod remote;
pub mod resample;
mod resources;
pub mod shard;
pub mod surface;
pub mod tape;
mod terrain;
pub mod tile_codec;
mod tile_context;
mod tile_source;
pub mod tiling;
mod wave;
pub mod weights;

pub use address::{RemoteOptions, public_address, shown, without_secrets};
pub use batch::batch;
pub use error::Error;
pub use file_model::{ContextModel, FileModel, Profile};
pub use fill::fill;
pub use measured::Measured;
pub use model::TrainedModel;
pub use normalise::{Normalisation, Normalise};
pub use outline::ArrayShape;
#[cfg(feature = "remote")]
pub use remote::RemoteFile;
pub use resources::Resources;
pub use surface::{InverseTransform, Sample, Surface};
pub use terrain::{Terrain, hexadecimal, open, source, source_with};
pub use terrane_context as context;
pub use terrane_format as format;
pub use tile_codec::{Rate, TileCodec};
