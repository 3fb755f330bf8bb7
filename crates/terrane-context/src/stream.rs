//! Symbols from bytes, or from coefficients to bytes: one order, two ways.

use terrane_format::coder::{Decoder, Encoder};

use crate::distribution::Context;
use crate::matrix::Matrix;
use crate::model::ProbabilityModel;
use crate::quantiser::Quantiser;
use crate::wavelet::BANDS;

/// Where symbols come from: bytes, or coefficients that go to bytes.
pub(crate) trait Stream {
    /// Whether a band has any symbol but 0.
    fn is_empty(&mut self, level: usize, band: usize) -> bool;
    /// The next group of symbols, [`GROUP`] at most, each with its index in the band.
    ///
    /// [`GROUP`]: terrane_format::coder::GROUP
    fn symbols(
        &mut self,
        model: &ProbabilityModel,
        band: usize,
        indices: &[u32],
        contexts: &[Context],
        symbols: &mut [i64],
    );
}

pub(crate) struct Reading<'a> {
    pub(crate) decoder: Decoder<'a>,
}

impl Stream for Reading<'_> {
    fn is_empty(&mut self, _: usize, _: usize) -> bool {
        self.decoder.raw(1) == 1
    }

    fn symbols(
        &mut self,
        model: &ProbabilityModel,
        _: usize,
        _: &[u32],
        contexts: &[Context],
        symbols: &mut [i64],
    ) {
        let decoder = &mut self.decoder;
        model.distributions.read_group(decoder, contexts, symbols);
    }
}

/// Bands without symbols.
pub(crate) struct Nothing;

impl Stream for Nothing {
    fn is_empty(&mut self, _: usize, _: usize) -> bool {
        true
    }

    fn symbols(
        &mut self,
        _: &ProbabilityModel,
        _: usize,
        _: &[u32],
        _: &[Context],
        symbols: &mut [i64],
    ) {
        symbols.fill(0);
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

/// The symbols that a quantiser chooses for coefficients of a band.
fn choose_all(
    quantiser: &Quantiser,
    model: &ProbabilityModel,
    values: &[f64],
    indices: &[u32],
    contexts: &[Context],
    symbols: &mut [i64],
) {
    for ((symbol, &index), &context) in symbols.iter_mut().zip(indices).zip(contexts) {
        *symbol = choose(quantiser, model, context, values[index as usize]);
    }
}

/// Notes the contexts of a group.
fn note(noted: &mut Matrix<Context>, indices: &[u32], contexts: &[Context]) {
    for (&index, &context) in indices.iter().zip(contexts) {
        noted.values[index as usize] = context;
    }
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

    fn symbols(
        &mut self,
        model: &ProbabilityModel,
        band: usize,
        indices: &[u32],
        contexts: &[Context],
        symbols: &mut [i64],
    ) {
        let values = &self.levels[self.level][band].values;
        choose_all(&self.quantiser, model, values, indices, contexts, symbols);
        let encoder = &mut self.encoder;
        model.distributions.write_group(encoder, contexts, symbols);
        if let Some(counts) = &mut self.counts {
            for (&context, &symbol) in contexts.iter().zip(&*symbols) {
                model.distributions.count(context, symbol, counts);
            }
        }
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

    fn symbols(
        &mut self,
        model: &ProbabilityModel,
        band: usize,
        indices: &[u32],
        contexts: &[Context],
        symbols: &mut [i64],
    ) {
        note(&mut self.contexts[band], indices, contexts);
        let values = &self.bands[band].values;
        choose_all(&self.quantiser, model, values, indices, contexts, symbols);
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

    fn symbols(
        &mut self,
        model: &ProbabilityModel,
        band: usize,
        indices: &[u32],
        contexts: &[Context],
        symbols: &mut [i64],
    ) {
        note(&mut self.contexts[band], indices, contexts);
        for (symbol, &index) in symbols.iter_mut().zip(indices) {
            *symbol = self.symbols[band].values[index as usize];
        }
        let encoder = &mut self.encoder;
        model.distributions.write_group(encoder, contexts, symbols);
    }
}
