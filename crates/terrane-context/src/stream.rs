//! Symbols from bytes, or from coefficients to bytes: one order, two ways.

use terrane_format::coder::{Decoder, Encoder};

use crate::distribution::{Context, MOST_SYMBOL};
use crate::model::Model;
use crate::tile::Tile;

/// How symbols are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// What a bit is worth, in squares of a step; 0 rounds to the nearest.
    pub bit_worth: f64,
    /// Part of a step by which rounding is moved towards 0.
    pub dead_zone: f64,
}

impl Effort {
    /// Every coefficient to its nearest symbol.
    pub const NONE: Self = Self {
        bit_worth: 0.0,
        dead_zone: 0.0,
    };

    /// The nearest symbol, a little towards 0.
    #[inline(always)]
    pub fn nearest(&self, value: f64) -> i64 {
        let magnitude = (value.abs() + 0.5 - self.dead_zone).floor();
        magnitude.copysign(value) as i64
    }
}

/// Where symbols come from: bytes, or coefficients that go to bytes.
pub(crate) trait Stream {
    /// Whether a band has any symbol but 0.
    fn is_empty(&mut self, level: usize, band: usize) -> bool;
    /// The next symbol.
    fn symbol(&mut self, model: &Model, context: Context, band: usize, place: usize) -> i64;
}

pub(crate) struct Reading<'a> {
    pub(crate) decoder: Decoder<'a>,
}

impl Stream for Reading<'_> {
    fn is_empty(&mut self, _: usize, _: usize) -> bool {
        self.decoder.raw(1) == 1
    }

    #[inline(always)]
    fn symbol(&mut self, model: &Model, context: Context, _: usize, _: usize) -> i64 {
        let symbol = model.distributions.read(&mut self.decoder, context);
        symbol.clamp(-MOST_SYMBOL, MOST_SYMBOL)
    }
}

pub(crate) struct Writing<'a> {
    pub(crate) encoder: Encoder,
    pub(crate) tile: &'a Tile,
    pub(crate) effort: Effort,
    pub(crate) level: usize,
    /// Where symbols are counted too.
    pub(crate) counts: Option<&'a mut Vec<Vec<u64>>>,
}

impl Stream for Writing<'_> {
    fn is_empty(&mut self, level: usize, band: usize) -> bool {
        self.level = level;
        let values = &self.tile.levels[level][band].values;
        let is_empty = values.iter().all(|&value| self.effort.nearest(value) == 0);
        self.encoder.raw(is_empty.into(), 1);
        is_empty
    }

    #[inline(always)]
    fn symbol(&mut self, model: &Model, context: Context, band: usize, place: usize) -> i64 {
        let value = self.tile.levels[self.level][band].values[place];
        let mut symbol = self.effort.nearest(value);
        if self.effort.bit_worth > 0.0 && symbol != 0 {
            let price = |symbol: i64| {
                let error = value - symbol as f64;
                error * error
                    + self.effort.bit_worth * f64::from(model.distributions.cost(context, symbol))
            };
            let lower = symbol - symbol.signum();
            if price(lower) < price(symbol) {
                symbol = lower;
            }
        }
        model
            .distributions
            .write(&mut self.encoder, context, symbol);
        if let Some(counts) = &mut self.counts {
            model.distributions.count(context, symbol, counts);
        }
        symbol
    }
}
