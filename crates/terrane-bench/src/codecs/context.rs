//! Our own codec.

use terrane_codec::format::{Coding, Method, Window};
use terrane_codec::{Profile, Rate, TileEncoder};

use super::CodecError;
use super::codec::{Codec, Coded, Goal, Tile, geometric};

/// As the command encodes where nothing else is said.
const EFFORT: u8 = 1;

/// The context codec with one of its profiles; every byte of a tile's record counts.
pub(super) struct Context(pub(super) Profile);

impl Codec for Context {
    fn name(&self) -> String {
        format!("context, {}", self.0.name())
    }

    fn qualities(&self) -> Vec<f64> {
        geometric(1.2e-1, 1.2e-4, 24)
    }

    fn code(&self, tile: &Tile, goal: Goal) -> Result<Option<Coded>, CodecError> {
        let encoder = TileEncoder {
            method: Method::Context,
            model: Some(self.0.model()),
            bits: 8,
            coding: Coding::Shortest,
            rate: match goal {
                Goal::Quality(part) => Rate::Step(part * tile.range_m),
                Goal::Bound(bound_m) => Rate::MaxError(bound_m),
                Goal::Lossless(_) => Rate::Lossless,
            },
            source_step_m: 0.0,
            is_f32: true,
            effort: EFFORT,
        };
        let window = Window::whole(tile.side, tile.side);
        let heights: Vec<f64> = tile.heights.iter().map(|&height| height.into()).collect();
        let failed = |source| CodecError::failed(&self.name(), source);
        let Some(coded) = encoder.encode(&heights, window).map_err(failed)? else {
            return Ok(None);
        };
        let decoded = encoder
            .decoder()
            .decode_alone(&coded.bytes, window)
            .map_err(failed)?
            .heights;
        Ok(Some(Coded {
            bytes: coded.bytes.len(),
            heights: decoded.iter().map(|&height| height as f32).collect(),
        }))
    }
}
