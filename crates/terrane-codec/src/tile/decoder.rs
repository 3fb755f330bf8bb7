//! A record back to heights.

use terrane_format::record::Record;
use terrane_format::{ErrorBound, Method, Window};

use super::Tile;
use crate::Error;
use crate::model::FileModel;
use crate::tree::Place;

/// Memory that decoding takes per pixel of a tile, as measured.
const DECODING_BYTES: u64 = 96;

/// Decodes the tiles of a file.
#[derive(Debug, Clone)]
pub struct TileDecoder {
    /// The method of the file.
    pub method: Method,
    /// The model, or none where there are integers alone.
    pub model: Option<FileModel>,
    /// Whether every height is a 32-bit float that was kept without loss.
    pub as_f32: bool,
}

impl TileDecoder {
    /// The decoder of files of a method with an error bound.
    pub fn new(method: Method, model: Option<FileModel>, bound: ErrorBound) -> Self {
        Self {
            method,
            model,
            as_f32: bound == ErrorBound::Lossless { as_f32: true },
        }
    }

    /// Decodes the bytes of a tile that is alone in its file, as [`TileEncoder::encode`] makes them.
    ///
    /// [`TileEncoder::encode`]: super::TileEncoder::encode
    pub fn decode_alone(&self, bytes: &[u8], window: Window) -> Result<Tile, Error> {
        let place = Place {
            number: 0,
            window,
            depth: 0,
        };
        let branch = self.branch(&place, Some(bytes), None)?;
        branch.map(|branch| branch.tile).ok_or(Error::NoModel)
    }

    /// Decodes a record that needs no tile above it.
    pub(crate) fn decode(&self, record: &Record, window: Window) -> Result<Tile, Error> {
        let (heights, tokens) = self.decode_layer(record, window)?;
        Ok(Tile {
            window,
            heights,
            missing: record.missing.clone(),
            tokens,
        })
    }

    /// Memory that the decoding of a tile takes.
    pub(crate) fn decoding_bytes(&self, side: usize) -> u64 {
        let model = self.model.as_ref();
        DECODING_BYTES * (side * side) as u64 + model.map_or(0, FileModel::working_bytes)
    }
}
