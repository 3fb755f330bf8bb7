//! A tree: a tile of a storey's coarsest level and all tiles below it.
//!
//! In a file of the context codec a tile holds what the tile above it does not: the three subbands of one level of the wavelet,
//! and where its mask differs. Its overviews are the coarse pictures of the same wavelet, so they are stored once. In other files a
//! tree is a number of tiles that are stored together.

mod bounded;
mod branch;
mod encoder;
mod overview;
mod rates;
mod source;

pub(crate) use branch::{Branch, Place};
pub(crate) use encoder::{EncodedTree, TreeEncoder};
