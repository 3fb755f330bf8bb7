//! A record back to heights.

use terrane_format::record::{Layer, Record};
use terrane_format::{ErrorBound, Window};

use super::{Tile, integers, residual};
use crate::Error;
use crate::model::FileModel;

/// Memory that decoding takes per pixel of a tile, as measured.
const DECODING_BYTES: u64 = 96;

/// Decodes the tiles of a file.
#[derive(Debug, Clone)]
pub struct TileDecoder {
    /// The model, or none where there are integers alone.
    pub model: Option<FileModel>,
    /// Whether every height is a 32-bit float that was kept without loss.
    pub as_f32: bool,
}

impl TileDecoder {
    /// The decoder of files with an error bound.
    pub fn new(model: Option<FileModel>, bound: ErrorBound) -> Self {
        Self {
            model,
            as_f32: bound == ErrorBound::Lossless { as_f32: true },
        }
    }

    /// Decodes a record.
    pub fn decode(&self, record: &Record, window: Window) -> Result<Tile, Error> {
        let mut tokens = None;
        let missing = record.missing.as_deref();
        let heights = match &record.layer {
            Layer::Integers(layer) => integers::decode(layer, missing, window.width, self.as_f32),
            Layer::Wavelet(layer) => {
                let mut heights = self.decode_wavelet(layer, window)?;
                if let Some(residual) = &record.residual {
                    residual::add(&mut heights, residual);
                }
                heights
            }
            Layer::Tokens(bytes) => {
                let (heights, decoded) =
                    self.decode_tokens(bytes, record.residual.as_ref(), window)?;
                tokens = Some(decoded);
                heights
            }
        };
        Ok(Tile {
            window,
            heights,
            missing: record.missing.clone(),
            statistics: record.statistics,
            tokens,
        })
    }

    /// Memory that the decoding of a tile takes.
    pub(crate) fn decoding_bytes(&self, side: usize) -> u64 {
        let model = self.model.as_ref();
        DECODING_BYTES * (side * side) as u64 + model.map_or(0, FileModel::working_bytes)
    }
}
