//! Symbols from bytes, or from coefficients to bytes: one order, two ways.

use terrane_format::coder::{Decoder, Encoder};

use crate::distribution::{Context, MAX_SYMBOL};
use crate::matrix::Matrix;
use crate::model::ProbabilityModel;
use crate::quantiser::Quantiser;
use crate::wavelet::BANDS;

/// Where symbols come from: bytes, or coefficients that go to bytes.
pub(crate) trait Stream {
    /// Whether a band has any symbol but 0.
    fn is_empty(&mut self, level: usize, band: usize) -> bool;
    /// The next symbol.
    fn symbol(
        &mut self,
        model: &ProbabilityModel,
        context: Context,
        band: usize,
        index: usize,
    ) -> i64;

    /// The next symbols, at most 64: with their contexts, at these indices of a band.
    #[inline(always)]
    fn symbols(
        &mut self,
        model: &ProbabilityModel,
        band: usize,
        indices: &[u32],
        contexts: &[Context],
        symbols: &mut [i64],
    ) {
        for ((symbol, &context), &index) in symbols.iter_mut().zip(contexts).zip(indices) {
            *symbol = self.symbol(model, context, band, index as usize);
        }
    }
}

pub(crate) struct Reading<'a> {
    pub(crate) decoder: Decoder<'a>,
}

impl Stream for Reading<'_> {
    fn is_empty(&mut self, _: usize, _: usize) -> bool {
        self.decoder.raw(1) == 1
    }

    #[inline(always)]
    fn symbol(&mut self, model: &ProbabilityModel, context: Context, _: usize, _: usize) -> i64 {
        let symbol = model.distributions.read(&mut self.decoder, context);
        symbol.clamp(-MAX_SYMBOL, MAX_SYMBOL)
    }
}

/// Bands without symbols.
pub(crate) struct Nothing;

impl Stream for Nothing {
    fn is_empty(&mut self, _: usize, _: usize) -> bool {
        true
    }

    fn symbol(&mut self, _: &ProbabilityModel, _: Context, _: usize, _: usize) -> i64 {
        0
    }
}

pub(crate) struct Writing<'a> {
    pub(crate) encoder: Encoder,
    /// Coefficients of all levels, finest first.
    pub(crate) levels: &'a [[Matrix<f64>; BANDS]],
    pub(crate) quantiser: Quantiser,
    pub(crate) level: usize,
    /// Whether there was any band that is not empty.
    pub(crate) has_symbols: bool,
    /// Where symbols are counted too.
    pub(crate) counts: Option<&'a mut Vec<Vec<u64>>>,
}

/// The symbol that a quantiser chooses for a coefficient.
#[inline(always)]
fn choose(quantiser: &Quantiser, model: &ProbabilityModel, context: Context, value: f64) -> i64 {
    let symbol = quantiser.nearest(value);
    if quantiser.lambda > 0.0 && symbol != 0 {
        let cost = |symbol: i64| {
            let error = value - symbol as f64;
            error * error + quantiser.lambda * f64::from(model.distributions.cost(context, symbol))
        };
        let lower = symbol - symbol.signum();
        if cost(lower) < cost(symbol) {
            return lower;
        }
    }
    symbol
}

impl Stream for Writing<'_> {
    fn is_empty(&mut self, level: usize, band: usize) -> bool {
        self.level = level;
        let values = &self.levels[level][band].values;
        let is_empty = values
            .iter()
            .all(|&value| self.quantiser.nearest(value) == 0);
        self.encoder.raw(is_empty.into(), 1);
        self.has_symbols |= !is_empty;
        is_empty
    }

    #[inline(always)]
    fn symbol(
        &mut self,
        model: &ProbabilityModel,
        context: Context,
        band: usize,
        index: usize,
    ) -> i64 {
        let value = self.levels[self.level][band].values[index];
        let symbol = choose(&self.quantiser, model, context, value);
        model
            .distributions
            .write(&mut self.encoder, context, symbol);
        if let Some(counts) = &mut self.counts {
            model.distributions.count(context, symbol, counts);
        }
        symbol
    }
}

/// Chooses the symbols of one level and notes their contexts; nothing is written.
pub(crate) struct Recording<'a> {
    pub(crate) quantiser: Quantiser,
    pub(crate) bands: &'a [Matrix<f64>; BANDS],
    pub(crate) contexts: [Matrix<Context>; BANDS],
}

impl Stream for Recording<'_> {
    fn is_empty(&mut self, _: usize, _: usize) -> bool {
        false
    }

    #[inline(always)]
    fn symbol(
        &mut self,
        model: &ProbabilityModel,
        context: Context,
        band: usize,
        index: usize,
    ) -> i64 {
        self.contexts[band].values[index] = context;
        choose(
            &self.quantiser,
            model,
            context,
            self.bands[band].values[index],
        )
    }
}

/// Writes symbols of one level that were chosen before, and notes their contexts.
pub(crate) struct Rewriting<'a> {
    pub(crate) encoder: Encoder,
    pub(crate) symbols: &'a [Matrix<i64>; BANDS],
    pub(crate) contexts: [Matrix<Context>; BANDS],
}

impl Stream for Rewriting<'_> {
    fn is_empty(&mut self, _: usize, band: usize) -> bool {
        let is_empty = self.symbols[band].values.iter().all(|&symbol| symbol == 0);
        self.encoder.raw(is_empty.into(), 1);
        is_empty
    }

    #[inline(always)]
    fn symbol(
        &mut self,
        model: &ProbabilityModel,
        context: Context,
        band: usize,
        index: usize,
    ) -> i64 {
        let symbol = self.symbols[band].values[index];
        self.contexts[band].values[index] = context;
        model
            .distributions
            .write(&mut self.encoder, context, symbol);
        symbol
    }
}
