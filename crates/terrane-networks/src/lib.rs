//! The neural representations of terrain: TransINR, Functa, HUVR and HUVR+SIREN.
//!
//! A [`methods::MethodConfig`] makes a network; a [`TrainedModel`] is one with weights and tables, which codes the tiles
//! of files as a [`terrane_codec::TokenModel`]. [`NETWORKS`] reads such models for [`terrane_codec::Models`].

#![cfg_attr(not(feature = "libtorch"), forbid(unsafe_code))]

pub mod blocks;
pub mod cost;
#[cfg(feature = "libtorch")]
pub mod cuda;
pub mod dinov3;
pub mod distillation;
pub mod field;
mod fused;
pub mod init;
#[cfg(feature = "libtorch")]
mod libtorch;
pub mod methods;
pub mod model;
mod outline;
mod precision;
pub mod released;
pub mod tape;
mod wave;
pub mod weights;

pub use model::{NETWORKS, NetworkError, TrainedModel};
pub use outline::ArrayShape;
