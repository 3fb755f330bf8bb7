//! Terrain files without a network library: tiles to records and back, open files, their continuous surface, and
//! encoding in parts.
//!
//! [`TileEncoder`] and [`TileDecoder`] work on one tile. [`encode::Encoding`] makes a file of a raster that is read by
//! strips, [`shard`] and [`merge`] do so in pieces, and [`Terrain`] reads one: tiles, windows, its [`Surface`].
//!
//! Files of the context codec and of integers need nothing else. A file of tokens needs a network, which comes from
//! another crate as a [`TokenModel`].

#![forbid(unsafe_code)]

mod address;
pub mod division;
pub mod encode;
mod error;
mod fill;
pub mod journal;
mod kept;
pub mod kernel;
mod measured;
pub mod merge;
mod model;
mod normalise;
pub mod parallel;
pub mod pixels;
pub mod portable;
mod pyramid_builder;
pub mod quantise;
pub mod random;
mod read_ahead;
pub mod remake;
#[cfg(feature = "remote")]
mod remote;
pub mod resample;
mod resources;
pub mod shard;
pub mod step_search;
pub mod surface;
mod terrain;
pub mod tile;
pub mod tiling;
mod time_limit;
mod tree;
mod water;

pub use address::{RemoteOptions, public_address, shown, without_secrets};
pub use error::Error;
pub use fill::fill;
pub use kept::{Found, Kept};
pub use measured::{Measured, psnr_db};
pub use model::{
    BuiltInNetwork, ContextModel, FileModel, ModelError, Models, Networks, Profile, TokenModel,
    TokenSurface, UnknownProfile,
};
pub use normalise::{Normalisation, Normalise};
pub use read_ahead::ReadAhead;
#[cfg(feature = "remote")]
pub use remote::RemoteFile;
pub use resources::Resources;
pub use surface::{InverseTransform, Sample, Surface};
pub use terrain::{Terrain, TerrainOptions, source};
pub use terrane_context as context;
pub use terrane_format as format;
pub use tile::{Rate, TileDecoder, TileEncoder, exact_step};
