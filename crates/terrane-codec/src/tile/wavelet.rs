//! A tile by the context codec: the step that gives a rate, and what the wavelet leaves over.

use terrane_context::{Codec, Coefficients, Matrix, Quantiser, Transform};
use terrane_format::Window;
use terrane_format::record::{Layer, Residual, WaveletLayer};

use super::decoder::TileDecoder;
use super::encoder::{Candidate, FLOAT_MARGIN, Rate, TileEncoder};
use super::heights::{TileHeights, range};
use super::residual::{self, residual};
use crate::Error;
use crate::fill::fill;
use crate::model::FileModel;
use crate::step_search::{Slope, StepSearch};

/// How often a step is tried.
const MAX_TRIES: usize = 9;

impl TileEncoder {
    /// How symbols are chosen where the mean square error counts.
    fn choice(&self) -> Quantiser {
        match self.effort {
            0 => Quantiser {
                lambda: 0.0,
                dead_zone: 0.12,
            },
            _ => Quantiser {
                lambda: 0.12,
                dead_zone: 0.0,
            },
        }
    }

    /// Coefficients at the rate; `None` where integers are shorter or the heights are beyond a wavelet.
    pub(super) fn encode_wavelet(
        &self,
        tile: &TileHeights,
        rate: Rate,
    ) -> Result<Option<Candidate>, Error> {
        let codec = self.model.as_ref().and_then(FileModel::context);
        let codec = codec.ok_or(Error::NoModel)?;
        Ok(self.encode_with(codec, tile, rate))
    }

    fn encode_with(&self, codec: &Codec, source: &TileHeights, rate: Rate) -> Option<Candidate> {
        let mut filled = source.heights.to_vec();
        if source.missing.is_some() {
            fill(&mut filled, source.window.width);
        }
        let tile = Filled {
            source,
            codec,
            heights: &filled,
        };
        let coded = match rate {
            Rate::Lossless => {
                let step_m = source.exact_step(self.is_f32);
                (step_m > 0.0)
                    .then(|| tile.lossless(step_m, self.is_f32))
                    .flatten()
            }
            Rate::MaxError(bound) => self.within(&tile, bound),
            Rate::Rmse(target) => {
                let target = target * 0.996;
                let slope = Slope {
                    first: 0.8,
                    min: 0.15,
                    max: 3.0,
                    contradicted: 0.15,
                };
                let steps = StepSearch::new(target * 3.0, target, slope);
                self.search(&tile, steps, 0.004, |coded| {
                    source.rmse(&source.differences(&coded.heights), None)
                })
            }
            Rate::Bpp(target) => {
                let target = target * 0.991;
                let slope = Slope {
                    first: -0.6,
                    min: 0.15,
                    max: 4.0,
                    contradicted: 0.15,
                };
                let first = tile.roughness() * (2.0 - target).clamp(-8.0, 3.0).exp2();
                let steps = StepSearch::new(first, target, slope);
                let pixels = source.heights.len() as f64;
                self.search(&tile, steps, 0.009, |coded| {
                    coded.bytes() as f64 * 8.0 / pixels
                })
            }
            Rate::Step(step_m) => tile.lossy(step_m, self.choice(), None),
            Rate::Tokens | Rate::Overview { .. } => None,
        }?;
        if !matches!(rate, Rate::Lossless | Rate::MaxError(_)) {
            return Some(coded);
        }
        // What defeats a wavelet (noise, spikes) may be shorter as integers.
        let integers = self.integer_steps(source, rate).into_iter();
        let integers = integers.map(|step_m| self.encode_integers(source, rate, step_m));
        std::iter::once(coded)
            .chain(integers)
            .min_by_key(Candidate::bytes)
    }

    /// Steps of integers that are worth a try: the coarsest, and the source's own where it is hardly finer.
    fn integer_steps(&self, source: &TileHeights, rate: Rate) -> Vec<f64> {
        let step_m = self.integer_step(source, rate);
        let own = source.exact_step(self.is_f32);
        let mut steps = vec![step_m];
        if own < step_m && own >= step_m / 2.0 {
            steps.push(own);
        }
        steps
    }

    /// The shortest of what keeps a bound: a wavelet with what it leaves over (steps as multiples of the bound, as they
    /// were best on the training tiles), or heights rounded to the bound.
    fn within(&self, tile: &Filled, bound: f64) -> Option<Candidate> {
        let margin = FLOAT_MARGIN * (tile.source.max_abs() + bound);
        let within = bound - margin;
        if within <= 0.0 {
            return None;
        }
        let (steps, worths): (&[f64], &[f64]) = match self.effort {
            0 => (&[2.2], &[0.0]),
            1 => (&[2.2], &[0.1]),
            2 => (&[1.8, 2.2, 2.7], &[0.1]),
            _ => (&[1.8, 2.2, 2.7], &[0.06, 0.1, 0.15]),
        };
        let efforts = worths.iter().map(|&lambda| Quantiser {
            lambda,
            dead_zone: if lambda > 0.0 { 0.0 } else { 0.1 },
        });
        let wavelets = efforts.flat_map(|effort| {
            let code = move |step: &f64| tile.lossy(step * bound, effort, Some(within));
            steps.iter().filter_map(code)
        });
        let whole = tile.lossless(2.0 * within, false);
        // A source that is as coarse as its bound is shortest as it is: rounding to another step adds noise.
        let own = tile.source.exact_step(self.is_f32);
        let own = (own >= within && own != 2.0 * within)
            .then(|| tile.lossless(own, false))
            .flatten();
        wavelets
            .chain(whole)
            .chain(own)
            .min_by_key(Candidate::bytes)
    }

    /// Coefficients of the step at which what is measured reaches its target; `near` is how far off it may be, in natural
    /// logarithms.
    fn search(
        &self,
        tile: &Filled,
        mut steps: StepSearch,
        near: f64,
        measure: impl Fn(&Candidate) -> f64,
    ) -> Option<Candidate> {
        let effort = self.choice();
        let mut best: Option<(f64, Candidate)> = None;
        for _ in 0..MAX_TRIES {
            let coded = tile.lossy(steps.step(), effort, None)?;
            let reached = measure(&coded);
            let miss = steps.miss(reached);
            // Above the target only where nothing below was found.
            let distance = if miss > near { 10.0 + miss } else { -miss };
            if best.as_ref().is_none_or(|(least, _)| distance < *least) {
                best = Some((distance, coded));
            }
            if miss.abs() <= near {
                break;
            }
            steps.correct(reached);
        }
        best.map(|(_, coded)| coded)
    }
}

impl TileDecoder {
    /// Heights from coefficients.
    pub(super) fn decode_wavelet(
        &self,
        layer: &WaveletLayer,
        residual: Option<&Residual>,
        window: Window,
    ) -> Result<Vec<f64>, Error> {
        let codec = self.model.as_ref().and_then(FileModel::context);
        let codec = codec.ok_or(Error::NoModel)?;
        let size = [window.width, window.height];
        let decoded = codec.decode(&layer.bytes, size, transform(layer), 0);
        let decoded = decoded.map_err(crate::model::ModelError::from)?;
        // What may be off is not rounded: an overview of a lossless file is.
        let as_f32 = layer.is_lossless && self.as_f32;
        let mut heights = heights(layer, &decoded, as_f32);
        if let Some(residual) = residual {
            residual::add(&mut heights, residual);
        }
        Ok(heights)
    }
}

fn transform(details: &WaveletLayer) -> Transform {
    if details.is_lossless {
        Transform::Lossless
    } else {
        Transform::Lossy
    }
}

/// Metres from what the codec gives back.
fn heights(details: &WaveletLayer, decoded: &Matrix<i64>, as_f32: bool) -> Vec<f64> {
    let unit = transform(details).substeps();
    let offset = details.offset.wrapping_mul(unit);
    let step_m = details.step_m / unit as f64;
    decoded
        .values
        .iter()
        .map(|&value| {
            let height = value.wrapping_add(offset) as f64 * step_m;
            if as_f32 {
                f64::from(height as f32)
            } else {
                height
            }
        })
        .collect()
}

/// A tile whose gaps are filled.
struct Filled<'a> {
    source: &'a TileHeights<'a>,
    codec: &'a Codec,
    heights: &'a [f64],
}

impl Filled<'_> {
    /// The middle of the heights in whole steps; `None` where that is too far out for the step.
    fn offset(&self, step_m: f64) -> Option<f64> {
        let (low, high) = range(self.heights.iter().copied());
        let offset = ((low / 2.0 + high / 2.0) / step_m).round();
        (step_m.is_normal() && offset.abs() < 1e12).then_some(offset)
    }

    /// A typical difference of neighbours from a plane: the scale of what a low rate loses.
    fn roughness(&self) -> f64 {
        let width = self.source.window.width;
        let bends = self.heights.chunks(width).flat_map(|row| row.windows(3));
        let (sum, count) = bends.fold((0.0, 0.0), |(sum, count), three| {
            let bend = three[0] - 2.0 * three[1] + three[2];
            (sum + bend * bend, count + 1.0)
        });
        let bend: f64 = sum / f64::max(count, 1.0);
        bend.sqrt().max(1e-4)
    }

    /// With a step, within a bound where one is given.
    fn lossy(&self, step_m: f64, effort: Quantiser, within: Option<f64>) -> Option<Candidate> {
        // As it will be stored.
        let step_m = f64::from(step_m as f32);
        let offset = self.offset(step_m)?;
        let Window { width, height, .. } = self.source.window;
        let values = self
            .heights
            .iter()
            .map(|height| height / step_m - offset)
            .collect();
        let tile = Coefficients::lossy(&Matrix::from_values(width, height, values)?)?;
        let (bytes, decoded) = self.codec.encode(&tile, effort);
        let details = WaveletLayer {
            is_lossless: false,
            step_m,
            offset: offset as i64,
            bytes,
        };
        let heights = heights(&details, &decoded, false);
        let residual = within.and_then(|within| {
            let differences = self.source.differences(&heights);
            let is_needed = self
                .source
                .valid(&differences)
                .any(|difference| difference.abs() > within);
            is_needed.then(|| residual(&differences, 2.0 * within))
        });
        let layer = Layer::Wavelet(details);
        Some(Candidate::new(self.source, layer, residual, heights))
    }

    /// Rounded to whole steps, and these without loss.
    fn lossless(&self, step_m: f64, as_f32: bool) -> Option<Candidate> {
        let offset = self.offset(step_m)?;
        let Window { width, height, .. } = self.source.window;
        let values = self
            .heights
            .iter()
            .map(|height| (height / step_m).round() as i64 - offset as i64)
            .collect();
        let tile = Coefficients::lossless(&Matrix::from_values(width, height, values)?)?;
        let (bytes, decoded) = self.codec.encode(&tile, Quantiser::ROUNDING);
        let details = WaveletLayer {
            is_lossless: true,
            step_m,
            offset: offset as i64,
            bytes,
        };
        let heights = heights(&details, &decoded, as_f32);
        let layer = Layer::Wavelet(details);
        Some(Candidate::new(self.source, layer, None, heights))
    }
}
