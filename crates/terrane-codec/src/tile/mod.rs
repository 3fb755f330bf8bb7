//! One tile by itself: heights to a record of the file, and back.
//!
//! A codec of tiles is one file here, with an arm in `TileEncoder::encode_layer` and one in
//! `TileDecoder::decode_layer`: how heights become its layer, and how they come back. The wavelet's tiles are not by
//! themselves: they are in `tree`.

mod decoder;
mod encoder;
mod heights;
mod integers;
pub(crate) mod residual;
mod tokens;
mod water;

use terrane_format::record::{Layer, Record};
use terrane_format::{Stored, Window};

pub use decoder::TileDecoder;
pub(crate) use encoder::{Candidate, FLOAT_MARGIN};
pub use encoder::{CodedTile, Rate, TileEncoder};
pub use heights::exact_step;
pub(crate) use heights::{TileHeights, range};
pub(crate) use integers::{SCALE_BYTES, round_to_f32};
pub use tokens::TokenTile;

use crate::Error;
use crate::kernel::PixelJet;
use crate::model::TokenModel;
use tokens::DecodedTokens;

impl TileEncoder {
    /// The layer of the method's codec; `None` where it leaves a tile to integers.
    fn encode_layer(&self, tile: &TileHeights, rate: Rate) -> Result<Option<Candidate>, Error> {
        match self.method.stored() {
            Stored::Integers | Stored::Wavelet => Ok(None),
            Stored::Tokens => self.encode_tokens(tile, rate),
        }
    }
}

impl TileDecoder {
    /// Heights of a record's layer, its residual and its flat areas, with the tokens where it has some.
    fn decode_layer(
        &self,
        record: &Record,
        window: Window,
    ) -> Result<(Vec<f64>, Option<DecodedTokens>), Error> {
        Ok(match &record.layer {
            Layer::Integers(layer) => {
                let heights = integers::decode(layer, record, window.width, self.as_f32);
                (heights, None)
            }
            Layer::Wavelet(_) | Layer::Details(_) => return Err(Error::NoModel),
            Layer::Tokens(bytes) => {
                let (heights, tokens) = self.decode_tokens(bytes, record, window)?;
                (heights, Some(tokens))
            }
        })
    }
}

/// A decoded tile.
#[derive(Debug)]
pub struct Tile {
    /// Its pixels in the raster.
    pub window: Window,
    /// Heights in metres, row by row; a missing pixel has one that continues its neighbours.
    pub heights: Vec<f64>,
    /// Pixels without data.
    pub missing: Option<Vec<bool>>,
    tokens: Option<DecodedTokens>,
}

impl Tile {
    pub(crate) fn of_heights(
        window: Window,
        heights: Vec<f64>,
        missing: Option<Vec<bool>>,
    ) -> Self {
        Self {
            window,
            heights,
            missing,
            tokens: None,
        }
    }

    /// The same pixels again; tiles with tokens have nobody below them who would ask.
    pub(crate) fn copied(&self) -> Self {
        Self::of_heights(self.window, self.heights.clone(), self.missing.clone())
    }

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
