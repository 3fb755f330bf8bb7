//! What a codec of the comparison must do, and the tiles that it is given.

use terrane_train::measure::{MIN_RANGE_M, TileMeasures, measure};

use super::CodecError;

/// Bytes of an offset and a scale as 32-bit floats, for codecs that store integers and nothing else.
pub(super) const OFFSET_AND_SCALE: usize = 8;
/// Bytes of a tile's offset and length in a TIFF.
pub(super) const TIFF_INDEX: usize = 16;

/// A square tile of finite heights that are not all the same.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tile {
    /// Side in pixels.
    pub side: usize,
    /// Heights in metres, row by row.
    pub heights: Vec<f32>,
    /// Minimum height.
    pub low_m: f64,
    /// Range of heights.
    pub range_m: f64,
}

impl Tile {
    /// Checks heights; `None` where the tile is flat, since its qualities and its peak would be zero.
    pub(crate) fn new(heights: Vec<f32>, side: usize) -> Result<Option<Self>, CodecError> {
        if side < 3 || side.checked_mul(side) != Some(heights.len()) {
            let found = heights.len();
            return Err(CodecError::TileSize { side, found });
        }
        if let Some(index) = heights.iter().position(|height| !height.is_finite()) {
            return Err(CodecError::NotAHeight { index });
        }
        let fold = |start, of: fn(f64, f64) -> f64| {
            let values = heights.iter().map(|&height| f64::from(height));
            values.fold(start, of)
        };
        let low_m = fold(f64::INFINITY, f64::min);
        let range_m = fold(f64::NEG_INFINITY, f64::max) - low_m;
        Ok((range_m > MIN_RANGE_M).then_some(Self {
            side,
            heights,
            low_m,
            range_m,
        }))
    }

    /// The tile with heights rounded to whole steps; `None` where that makes it flat.
    pub(crate) fn rounded(&self, step_m: f64) -> Result<Option<Self>, CodecError> {
        let heights = self.whole_steps(step_m);
        let heights = heights.map(|steps| (steps * step_m) as f32).collect();
        Self::new(heights, self.side)
    }

    /// Heights in whole steps.
    pub(super) fn whole_steps(&self, step_m: f64) -> impl Iterator<Item = f64> {
        let steps = self.heights.iter();
        steps.map(move |&height| (f64::from(height) / step_m).round_ties_even())
    }

    /// Bits per pixel of so many bytes.
    pub(crate) fn bpp(&self, bytes: usize) -> f64 {
        bytes as f64 * 8.0 / self.heights.len() as f64
    }

    /// Measures of what came back.
    pub(super) fn measure(&self, coded: &Coded) -> Result<TileMeasures, CodecError> {
        Ok(measure(
            &self.heights,
            &coded.heights,
            self.side,
            self.side,
        )?)
    }
}

/// What a codec is to keep of a tile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goal {
    /// One of the codec's own qualities.
    Quality(f64),
    /// No height farther off than so many metres; rounding to 32-bit floats may overstep it a little.
    Bound(f64),
    /// Every height, all of which are whole steps of so many metres.
    Lossless(f64),
}

/// A tile that was coded and decoded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Coded {
    /// All that a decoder needs for this tile.
    pub bytes: usize,
    /// The heights that come back.
    pub heights: Vec<f32>,
}

/// A way to store a tile.
pub(super) trait Codec: Sync {
    /// Its name in tables.
    fn name(&self) -> String;

    /// Whether it stands beside a better known or better variant of itself, and so is in tables only.
    fn is_variant(&self) -> bool {
        false
    }

    /// The qualities of its curve, from coarse to fine.
    fn qualities(&self) -> Vec<f64>;

    /// Codes and decodes a tile; `None` where the codec has no such goal, or cannot reach it on this tile.
    fn code(&self, tile: &Tile, goal: Goal) -> Result<Option<Coded>, CodecError>;
}

/// So many values from one to another, each the same multiple of the one before.
pub(super) fn geometric(from: f64, to: f64, count: usize) -> Vec<f64> {
    let ratio = (to / from).ln() / (count - 1) as f64;
    (0..count)
        .map(|index| from * (ratio * index as f64).exp())
        .collect()
}

/// Maximum errors as parts of a tile's range, for the codecs that take one.
pub(super) fn relative_errors() -> Vec<f64> {
    geometric(6e-2, 1e-5, 24)
}

/// The maximum error in metres that a codec is given; `None` for heights without loss.
pub(super) fn error_m(tile: &Tile, goal: Goal) -> Option<f64> {
    match goal {
        Goal::Quality(part) => Some(part * tile.range_m),
        Goal::Bound(bound_m) => Some(bound_m),
        Goal::Lossless(_) => None,
    }
}

/// Codes a tile so that no height that comes back is farther off than a bound.
pub(super) fn within(
    codec: &dyn Codec,
    tile: &Tile,
    bound_m: f64,
) -> Result<Option<(Coded, TileMeasures)>, CodecError> {
    super::within_bound(bound_m, |level_m| {
        let Some(coded) = codec.code(tile, Goal::Bound(level_m))? else {
            return Ok(None);
        };
        let measures = tile.measure(&coded)?;
        Ok(Some((measures.max_error_m, (coded, measures))))
    })
}
