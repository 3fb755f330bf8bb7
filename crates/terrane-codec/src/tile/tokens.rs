//! A tile as the tokens of a network, and what they leave over.

use std::sync::OnceLock;

use half::f16;
use terrane_format::Window;
use terrane_format::integers::Prediction;
use terrane_format::record::{Layer, Record};
use terrane_format::tokens::{Coding, Tokens};

use super::decoder::TileDecoder;
use super::encoder::{Candidate, FLOAT_MARGIN, Rate, TileEncoder};
use super::heights::TileHeights;
use super::residual::{self, residual, step_for_bytes, step_for_rmse};
use crate::Error;
use crate::fill::fill;
use crate::kernel::{PixelJet, interpolate};
use crate::model::{FileModel, TokenModel, TokenSurface};
use crate::normalise::Normalisation;
use crate::quantise::{Quantised, quantise};

/// Part of a tile's range that two machines may differ by in a network's output: far above what was ever seen (a few
/// parts in a million), so that an error bound holds everywhere.
const MACHINE_MARGIN: f64 = 1.0 / 16_384.0;

/// A square tile as symbols: what is stored of it where its tokens are.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenTile {
    /// The map of its heights to the network's numbers.
    pub map: Normalisation,
    /// Its tokens, rounded.
    pub quantised: Quantised,
    bits: u8,
}

impl TokenTile {
    /// Puts the heights of a tile, row by row, through a network and rounds its tokens to symbols of so many bits; `None`
    /// where their range is beyond floats.
    pub fn encode(
        model: &dyn TokenModel,
        heights: &[f32],
        bits: u8,
    ) -> Result<Option<Self>, Error> {
        let map = model.normalise().map(heights);
        if !map.range_m.is_finite() || !map.low_m.is_finite() {
            return Ok(None);
        }
        let values = heights.iter().map(|&height| map.normalise(height));
        let tokens = model.encode(values.collect())?;
        let [_, channels] = model.token_shape();
        let quantised = quantise(&tokens, channels, bits.into());
        Ok(Some(Self {
            map,
            quantised,
            bits,
        }))
    }

    /// The bytes of its layer.
    pub fn to_bytes(&self, model: &dyn TokenModel, coding: Coding) -> Result<Vec<u8>, Error> {
        let steps = self.quantised.steps.iter().map(|step| step.to_bits());
        let tokens = Tokens {
            lowest_m: self.map.low_m,
            range_m: self.map.range_m,
            bits: self.bits,
            steps: steps.collect(),
            symbols: self.quantised.symbols.clone(),
        };
        Ok(tokens.to_bytes(model.tables(), coding)?)
    }
}

/// The tokens of a decoded tile, from which its continuous surface is made when somebody asks for it.
#[derive(Debug)]
pub(super) struct DecodedTokens {
    tokens: Vec<f32>,
    map: Normalisation,
    /// What the tokens left over, in metres; empty where nothing was kept.
    residual: Vec<f64>,
    surface: OnceLock<Option<Box<dyn TokenSurface>>>,
}

impl DecodedTokens {
    /// The surface at a point in pixels from the corner of a tile of a window's size, which may lie a little outside;
    /// `None` where the method has no surface of its own.
    pub(super) fn jet(
        &self,
        model: &dyn TokenModel,
        window: Window,
        x: f64,
        y: f64,
    ) -> Option<PixelJet> {
        let surface = self.surface.get_or_init(|| model.surface(&self.tokens));
        let mut jet = surface.as_ref()?.jet(x, y).scaled(self.map.range_m.into());
        jet.value += f64::from(self.map.low_m);
        if self.residual.is_empty() {
            return Some(jet);
        }
        // Beyond its border a tile's residual goes on as it ends: that of the next belongs to other tokens.
        let clamp =
            |index: isize, size: usize| index.clamp(0, size.cast_signed() - 1).cast_unsigned();
        let left_over = interpolate(x - 0.5, y - 0.5, |column, row| {
            self.residual[clamp(row, window.height) * window.width + clamp(column, window.width)]
        });
        Some(jet.plus(left_over))
    }
}

impl TileEncoder {
    /// Tokens and what they leave over; `None` where another codec must take the tile: because nothing may be lost,
    /// because tokens are a waste, or because the error bound cannot be kept with them.
    pub(super) fn encode_tokens(
        &self,
        tile: &TileHeights,
        rate: Rate,
    ) -> Result<Option<Candidate>, Error> {
        let model = self.model.as_ref().and_then(FileModel::tokens);
        let model = model.ok_or(Error::NoModel)?;
        if rate == Rate::Lossless || is_too_small_for_tokens(rate, model, tile.window) {
            return Ok(None);
        }
        let (side, width) = (model.side(), tile.window.width);
        check_size(side, tile.window)?;
        let mut square = vec![f64::NAN; side * side];
        for (row, heights) in tile.heights.chunks(width).enumerate() {
            square[row * side..][..width].copy_from_slice(heights);
        }
        fill(&mut square, side);
        let heights: Vec<f32> = square.iter().map(|&height| height as f32).collect();
        let Some(coded) = TokenTile::encode(model, &heights, self.bits)? else {
            return Ok(None);
        };
        let map = coded.map;
        let bytes = coded.to_bytes(model, self.coding)?;
        let base = heights_of(&coded.quantised.tokens(), map, model, tile.window)?;
        if base.iter().any(|height| !height.is_finite()) {
            return Ok(None);
        }
        // What water takes needs no residual.
        let mut flat = base.clone();
        tile.flatten(&mut flat);
        let differences = tile.differences(&flat);
        let any_above = |limit: f64| {
            tile.valid(&differences)
                .any(|difference| difference.abs() > limit)
        };
        let step_m = match rate {
            Rate::Tokens | Rate::Lossless | Rate::Overview { .. } => None,
            Rate::Step(step_m) => any_above(step_m / 2.0).then_some(step_m),
            Rate::MaxError(bound) => {
                let margin = MACHINE_MARGIN * f64::from(map.range_m)
                    + FLOAT_MARGIN * (tile.max_abs() + bound);
                if bound <= 2.0 * margin {
                    return Ok(None);
                }
                any_above(bound - margin).then_some(2.0 * (bound - margin))
            }
            Rate::Rmse(target) => step_for_rmse(target, |step| tile.rmse(&differences, step)),
            Rate::Bpp(target) => {
                let budget = target * tile.heights.len() as f64 / 8.0
                    - bytes.len() as f64
                    - tile.water_bytes();
                let largest = tile.rmse(&differences, None);
                step_for_bytes(tile, &differences, Prediction::Zero, (budget, largest))
            }
        };
        let residual = step_m.map(|step_m| residual(&differences, step_m));
        let mut candidate = Candidate::new(Layer::Tokens(bytes), residual, base);
        candidate.flatten(tile);
        Ok(Some(candidate))
    }
}

impl TileDecoder {
    /// Heights of a window from coded tokens, what they left over, and flat areas.
    pub(super) fn decode_tokens(
        &self,
        bytes: &[u8],
        record: &Record,
        window: Window,
    ) -> Result<(Vec<f64>, DecodedTokens), Error> {
        let model = self.model.as_ref().and_then(FileModel::tokens);
        let model = model.ok_or(Error::NoModel)?;
        let [count, channels] = model.token_shape();
        let coded = Tokens::parse(bytes, model.tables(), count * channels)?;
        let map = Normalisation {
            low_m: coded.lowest_m,
            range_m: coded.range_m,
        };
        let steps = coded.steps.iter().map(|&bits| f16::from_bits(bits));
        let quantised = Quantised {
            steps: steps.collect(),
            symbols: coded.symbols,
        };
        let tokens = quantised.tokens();
        let mut heights = heights_of(&tokens, map, model, window)?;
        let of_tokens = heights.clone();
        if let Some(layer) = &record.residual {
            residual::add(&mut heights, layer);
        }
        if let Some(flats) = &record.flats {
            flats.apply(&mut heights);
        }
        let residual = if record.residual.is_some() || record.flats.is_some() {
            let pairs = heights.iter().zip(&of_tokens);
            pairs.map(|(height, tokens)| height - tokens).collect()
        } else {
            Vec::new()
        };
        let decoded = DecodedTokens {
            tokens,
            map,
            residual,
            surface: OnceLock::new(),
        };
        Ok((heights, decoded))
    }
}

/// Whether a tile at the raster's edge has so few pixels that tokens, which cost the same for any, are a waste.
fn is_too_small_for_tokens(rate: Rate, model: &dyn TokenModel, window: Window) -> bool {
    rate != Rate::Tokens && window.width * window.height * 4 < model.side().pow(2)
}

fn check_size(side: usize, window: Window) -> Result<(), Error> {
    if window.width > side || window.height > side {
        return Err(Error::TileSize {
            side,
            found: window.width * window.height,
        });
    }
    Ok(())
}

/// Heights of a window from tokens.
fn heights_of(
    tokens: &[f32],
    map: Normalisation,
    model: &dyn TokenModel,
    window: Window,
) -> Result<Vec<f64>, Error> {
    let side = model.side();
    check_size(side, window)?;
    let values = model.decode(tokens)?;
    let (low, range) = (f64::from(map.low_m), f64::from(map.range_m));
    Ok((0..window.height)
        .flat_map(|row| {
            values[row * side..][..window.width]
                .iter()
                .map(|value| low + range * value)
        })
        .collect())
}
