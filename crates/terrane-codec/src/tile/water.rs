//! Water of a tile: areas of one height, which come back at that height in every tile that they touch.

use terrane_format::Flats;

use super::encoder::{Candidate, Rate, TileEncoder};
use super::heights::{STEPS_M, TileHeights};

/// How far two products of the same decimal are apart at most, as a part of it.
const PRODUCTS: f64 = 4.0 * f64::EPSILON;

/// The water of a tile.
#[derive(Debug, Clone)]
pub(crate) struct Water {
    flats: Flats,
    /// By what part of its height decoded water may differ: by the last bits of decimals, where the source rounds them
    /// to 32 bits, and by nothing else.
    near: f64,
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
        let near = if self.is_f32 { PRODUCTS } else { 0.0 };
        let flats = Flats::new(&heights, tile.window.width)?;
        Some(Water { flats, near })
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
            let is_same =
                |decoded: f64, height: f64| (decoded - height).abs() <= water.near * height.abs();
            water.flats.missed_by(&self.heights, is_same)
        });
        if let Some(flats) = &self.flats {
            flats.apply(&mut self.heights);
        }
    }
}
