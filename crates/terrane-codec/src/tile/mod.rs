//! One tile: heights to a record of the file, and back.
//!
//! A codec of tiles is one file here: how heights become its layer, and how they come back. [`encoder`] chooses among
//! them by the model, [`decoder`] by the layer that a record holds.

mod decoder;
mod encoder;
mod heights;
mod integers;
mod residual;
mod tokens;
mod wavelet;

use std::sync::OnceLock;

use terrane_format::record::TileStatistics;
use terrane_format::{Record, Window};

pub use decoder::TileDecoder;
pub(crate) use decoder::DECODING_BYTES;
pub use encoder::{Rate, TileEncoder};

use crate::kernel::PixelJet;
use tokens::DecodedTokens;

/// A decoded tile.
#[derive(Debug)]
pub struct Tile {
    /// Its pixels in the raster.
    pub window: Window,
    /// Heights in metres, row by row; a missing pixel has one that continues its neighbours.
    pub heights: Vec<f64>,
    /// Pixels without data.
    pub missing: Option<Vec<bool>>,
    /// What the record says of it.
    pub statistics: TileStatistics,
    tokens: Option<DecodedTokens>,
}
