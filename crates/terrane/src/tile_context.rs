//! A tile by the context codec: the step that gives a rate, and what the wavelet leaves over.

use terrane_context::{Codec, Coefficients, Matrix, Quantiser, Transform};
use terrane_format::Window;
use terrane_format::record::{Layer, Record, Residual, TileStatistics, WaveletLayer};

use crate::Error;
use crate::file_model::FileModel;
use crate::fill::fill;
use crate::tile_codec::{FLOAT_MARGIN, Rate, TileCodec, add_residual};
use crate::tile_source::{Source, rounded};

/// How often a step is corrected.
const SEARCHES: usize = 9;
/// What part of an error or of a size is aimed at, and how far off it may be: never above the target.
const AIM_RMSE: (f64, f64) = (0.996, 0.004);
const AIM_SIZE: (f64, f64) = (0.991, 0.009);

/// A coded tile: its record, the heights that come back, and the bytes of its parts.
struct Coded {
    record: Record,
    heights: Vec<f64>,
    bytes: usize,
}

impl TileCodec {
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
    pub(crate) fn encode_context(
        &self,
        source: &Source,
        codec: &Codec,
    ) -> Option<(Record, Vec<f64>)> {
        let mut filled = source.heights.to_vec();
        if source.missing.is_some() {
            fill(&mut filled, source.window.width);
        }
        let tile = Filled {
            source,
            codec,
            heights: &filled,
        };
        let coded = match self.rate {
            Rate::Lossless => {
                let step_m = source.exact_step(self.is_f32);
                (step_m > 0.0)
                    .then(|| tile.lossless(step_m, self.is_f32))
                    .flatten()
            }
            Rate::MaxError(bound) => self.within(&tile, bound),
            Rate::Rmse(target) => self.at(&tile, target, |coded| {
                source.rmse(&source.differences(&coded.heights), None)
            }),
            Rate::Bpp(target) => {
                let pixels = source.heights.len() as f64;
                self.at(&tile, target, |coded| coded.bytes as f64 * 8.0 / pixels)
            }
            Rate::Step(step_m) => tile.lossy(step_m, self.choice(), None),
            Rate::Tokens | Rate::Overview { .. } => None,
        }?;
        // What defeats a wavelet (noise, spikes) may be shorter as integers.
        if matches!(self.rate, Rate::Lossless | Rate::MaxError(_)) {
            let mut best = (coded.bytes, coded.record, coded.heights);
            for step_m in self.integer_steps(source) {
                let (record, heights) = self.encode_integers(source, step_m);
                let bytes = size(&record, source);
                if bytes < best.0 {
                    best = (bytes, record, heights);
                }
            }
            return Some((best.1, best.2));
        }
        Some((coded.record, coded.heights))
    }

    /// Steps of integers that are worth a try: the coarsest, and the source's own where it is hardly finer.
    fn integer_steps(&self, source: &Source) -> Vec<f64> {
        let step_m = self.integer_step(source);
        let own = source.exact_step(self.is_f32);
        let mut steps = vec![step_m];
        if own < step_m && own >= step_m / 2.0 {
            steps.push(own);
        }
        steps
    }

    /// The shortest of what keeps a bound: a wavelet with what it leaves over (steps as multiples of the bound, as they
    /// were best on the training tiles), or heights rounded to the bound.
    fn within(&self, tile: &Filled, bound: f64) -> Option<Coded> {
        let margin = FLOAT_MARGIN * (tile.source.greatest() + bound);
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
            .min_by_key(|coded| coded.bytes)
    }

    /// The step at which something measured reaches a target.
    fn at(&self, tile: &Filled, target: f64, measure: impl Fn(&Coded) -> f64) -> Option<Coded> {
        let effort = self.choice();
        let is_rate = matches!(self.rate, Rate::Bpp(_));
        let (aim, near) = if is_rate { AIM_SIZE } else { AIM_RMSE };
        let target = target * aim;
        let mut step = if is_rate {
            tile.roughness() * (2.0 - target).clamp(-8.0, 3.0).exp2()
        } else {
            target * 3.0
        };
        let mut best: Option<(f64, Coded)> = None;
        // Logarithms of steps and of what they gave: the last two tell where to go.
        let mut last: Option<(f64, f64)> = None;
        for _ in 0..SEARCHES {
            let coded = tile.lossy(step, effort, None)?;
            let reached = measure(&coded).max(1e-12);
            let miss = (reached / target).ln();
            // Above the target only where nothing below was found.
            let distance = if miss > near { 10.0 + miss } else { -miss };
            if best.as_ref().is_none_or(|(least, _)| distance < *least) {
                best = Some((distance, coded));
            }
            if miss.abs() <= near {
                break;
            }
            let slope = last.map_or(if is_rate { -0.6 } else { 0.8 }, |(at, value)| {
                (reached.ln() - value) / (step.ln() - at)
            });
            let limits = if is_rate { (-4.0, -0.15) } else { (0.15, 3.0) };
            let slope = if slope.is_finite() { slope } else { limits.1 };
            last = Some((step.ln(), reached.ln()));
            step *= (-miss / slope.clamp(limits.0, limits.1))
                .clamp(-3.0, 3.0)
                .exp();
        }
        best.map(|(_, coded)| coded)
    }

    /// Heights from coefficients.
    pub(crate) fn decode_context(
        &self,
        details: &WaveletLayer,
        window: Window,
    ) -> Result<Vec<f64>, Error> {
        let codec = self.model.as_ref().and_then(FileModel::context);
        let codec = codec.ok_or(Error::NoModel)?;
        let size = [window.width, window.height];
        let decoded = codec.decode(&details.bytes, size, transform(details), 0);
        let decoded = decoded.map_err(crate::model::ModelError::from)?;
        // What may be off is not rounded: an overview of a lossless file is.
        let as_f32 = details.is_lossless && self.rate == Rate::Lossless && self.is_f32;
        Ok(heights(details, &decoded, as_f32))
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

fn size(record: &Record, source: &Source) -> usize {
    record.to_bytes(0, source.window.width).len()
}

/// A tile whose gaps are filled.
struct Filled<'a> {
    source: &'a Source<'a>,
    codec: &'a Codec,
    heights: &'a [f64],
}

impl Filled<'_> {
    fn coded(&self, details: WaveletLayer, heights: Vec<f64>, residual: Option<Residual>) -> Coded {
        let mut heights = heights;
        if let Some(residual) = &residual {
            add_residual(&mut heights, residual);
        }
        let record = Record {
            statistics: TileStatistics::default(),
            missing: self.source.missing.clone(),
            layer: Layer::Wavelet(details),
            residual,
        };
        Coded {
            bytes: size(&record, self.source),
            record,
            heights,
        }
    }

    /// The middle of the heights in whole steps; `None` where that is too far out for the step.
    fn offset(&self, step_m: f64) -> Option<f64> {
        let (low, high) = self.heights.iter().fold(
            (f64::INFINITY, f64::NEG_INFINITY),
            |(low, high), &height| (low.min(height), high.max(height)),
        );
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
    fn lossy(&self, step_m: f64, effort: Quantiser, within: Option<f64>) -> Option<Coded> {
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
            is_needed.then(|| Residual {
                step_m: 2.0 * within,
                values: rounded(&differences, 2.0 * within),
            })
        });
        Some(self.coded(details, heights, residual))
    }

    /// Rounded to whole steps, and these without loss.
    fn lossless(&self, step_m: f64, as_f32: bool) -> Option<Coded> {
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
        Some(self.coded(details, heights, None))
    }
}
