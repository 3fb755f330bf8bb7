//! Water of a tile: areas of one height, which come back at that height in every tile that they touch.

use terrane_format::Flats;

use super::encoder::{Candidate, Rate, TileEncoder};
use super::heights::{STEPS_M, TileHeights};

/// The water of a tile.
#[derive(Debug, Clone)]
pub(crate) struct Water {
    flats: Flats,
    /// Whether heights are the same that are so in 32 bits.
    is_f32: bool,
}

/// Whether heights are the same as the source stores them.
fn is_same(a: f64, b: f64, is_f32: bool) -> bool {
    a == b || is_f32 && a as f32 == b as f32
}

impl TileEncoder {
    /// The height of flat ground in a file. Heights of 32 bits may be rounded decimals, which trees of whole steps have as
    /// decimals: so has all water, whichever tree it is in.
    pub(crate) fn flat_height(&self, height: f64) -> f64 {
        let most = match self.rate {
            _ if !self.is_f32 => return height,
            Rate::Lossless => return height,
            Rate::MaxError(bound) => bound,
            _ => f64::INFINITY,
        };
        let decimals = STEPS_M.iter().map(|step| (height / step).round() * step);
        let mut same = decimals
            .filter(|decimal| *decimal as f32 == height as f32 && (decimal - height).abs() <= most);
        same.next().unwrap_or(height)
    }

    /// The water of a tile, whose pixels are known.
    pub(crate) fn water(&self, tile: &TileHeights, is_water: &[bool]) -> Option<Water> {
        let pixels = tile.heights.iter().zip(is_water);
        let heights: Vec<f64> = pixels
            .map(|(&height, &is_water)| {
                if is_water {
                    self.flat_height(height)
                } else {
                    f64::NAN
                }
            })
            .collect();
        let flats = Flats::new(&heights, tile.window.width)?;
        let is_f32 = self.is_f32;
        Some(Water { flats, is_f32 })
    }

    /// Whether a decoded height is that of flat ground.
    pub(crate) fn is_flat_height(&self, decoded: f64, height: f64) -> bool {
        match self.rate {
            Rate::Lossless => decoded.to_bits() == height.to_bits(),
            _ => is_same(decoded, height, self.is_f32),
        }
    }
}

impl TileHeights {
    /// Gives water its height.
    pub(crate) fn flatten(&self, heights: &mut [f64]) {
        if let Some(water) = &self.water {
            water.flats.apply(heights);
        }
    }

    /// Makes what is said of water not a number.
    pub(crate) fn clear_water(&self, values: &mut [f64]) {
        if let Some(water) = &self.water {
            water.flats.clear(values);
        }
    }

    /// Bytes that its water takes at most.
    pub(super) fn water_bytes(&self) -> f64 {
        let water = self.water.as_ref();
        water.map_or(0.0, |water| {
            water.flats.to_bytes(self.window.width).len() as f64
        })
    }
}

impl Candidate {
    /// Gives water its height, where it has another.
    pub(crate) fn flatten(&mut self, tile: &TileHeights) {
        self.flats = tile.water.as_ref().and_then(|water| {
            let is_same = |decoded, height| is_same(decoded, height, water.is_f32);
            water.flats.missed_by(&self.heights, is_same)
        });
        if let Some(flats) = &self.flats {
            flats.apply(&mut self.heights);
        }
    }
}
