//! Rasters to neural terrain files and back: what the command and the Python package share.
//!
//! [`Settings`] say how a raster is encoded, [`encode()`] does it, [`Decoding`] goes back, [`verify()`] compares.
//! [`query()`] gives heights and slopes at points, a [`Derivation`] slopes and the like as a raster. A [`Plan`] divides an encoding into shards that are made apart ([`Plan::encode`]) and become the same file in the end
//! ([`Plan::merge`]).

#![forbid(unsafe_code)]

mod decode;
mod derive;
mod describe;
mod encode;
mod error;
mod input;
mod open;
pub mod placement;
mod plan;
mod query;
mod settings;
mod shards;
mod verify;

pub use decode::{Decoded, Decoding, View, pixel_window};
pub use derive::{Derivation, DeriveMode, UnknownMode};
pub use describe::describe;
pub use encode::{Destination, Encoded, encode};
pub use error::{Error, Result};
pub use input::Checks;
pub use open::{MODELS, ModelFile, OpenOptions, open, open_reader, open_with, read_model};
pub use plan::{Plan, Split};
pub use query::{GroundSample, GroundSurface, PointReport, query};
pub use settings::{Prepared, Settings, Target};
pub use shards::{Merged, ShardReport, shard_path};
pub use verify::{Verification, is_damage, verify};
