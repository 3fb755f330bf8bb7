//! A record back to heights.

use terrane_format::record::Record;
use terrane_format::{ErrorBound, LevelTile, Method, Pyramid, TileId, Window};

use super::Tile;
use crate::Error;
use crate::model::FileModel;
use crate::tree::Place;

/// Memory that decoding takes per pixel of a tile beside what the model sees of it, as measured.
const DECODING_BYTES: u64 = 60;

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
        let pyramid = alone(window)?;
        let id = TileId { column: 0, row: 0 };
        let place = Place::of(&pyramid, LevelTile { level: 0, id })?;
        let branch = self.branch(&place, Some(bytes), None, true)?;
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
        DECODING_BYTES * (side * side) as u64 + model.map_or(0, |model| model.working_bytes(side))
    }
}

/// The one tile of a file of its own.
pub(super) fn alone(window: Window) -> Result<Pyramid, Error> {
    let side = window.width.max(window.height).next_multiple_of(2).max(16);
    let size = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let side = u16::try_from(side).unwrap_or(u16::MAX);
    Ok(Pyramid::new(
        size(window.width),
        size(window.height),
        side,
        1,
    )?)
}
