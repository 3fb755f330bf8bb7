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

use terrane_format::Window;
use terrane_format::record::TileStatistics;

pub use decoder::TileDecoder;
pub use encoder::{CodedTile, Rate, TileEncoder};

use crate::kernel::PixelJet;
use crate::model::TokenModel;
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

impl Tile {
    /// Whether a pixel, counted from the tile's corner, has no data.
    pub fn is_missing(&self, column: usize, row: usize) -> bool {
        self.missing
            .as_ref()
            .is_some_and(|missing| missing[row * self.window.width + column])
    }

    /// Heights with NaN where there is no data.
    pub fn valid_heights(&self) -> Vec<f64> {
        match &self.missing {
            Some(missing) => self
                .heights
                .iter()
                .zip(missing)
                .map(|(&height, &missing)| if missing { f64::NAN } else { height })
                .collect(),
            None => self.heights.clone(),
        }
    }

    /// The surface of its tokens at a point in pixels from its corner, which may lie a little outside; `None` where it
    /// has no tokens or their method has no surface of its own.
    pub(crate) fn token_jet(&self, model: &dyn TokenModel, x: f64, y: f64) -> Option<PixelJet> {
        self.tokens.as_ref()?.jet(model, self.window, x, y)
    }
}
