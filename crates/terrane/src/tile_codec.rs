//! One tile: heights to a record of the file, and back.

use std::sync::OnceLock;

use burn::tensor::{Device, Tensor, TensorData};
use half::f16;
use terrane_format::record::{Integers, Layer, Record, Remains, TileStatistics};
use terrane_format::tokens::{Coding, Tokens};
use terrane_format::{Window, integers};

use crate::field::{BLEND, Field};
use crate::fill::fill;
use crate::methods::{Method, MethodConfig, Precision};
use crate::model::{Normalise, TrainedModel};
use crate::quantise::{Quantised, quantise};
use crate::{Error, Normalisation};

/// What a file is to hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// The tokens of the method alone, whatever their error.
    Tokens,
    /// No valid pixel farther off than so many metres.
    MaxError(f64),
    /// A root mean square error of so many metres in every tile.
    Rmse(f64),
    /// So many bits per pixel in every tile.
    Bpp(f64),
    /// Every height as it was.
    Lossless,
}

/// Part of a tile's range that two machines may differ by in a network's output: far above what was ever seen (a few
/// parts in a million), so that a promise holds everywhere.
const MACHINE_MARGIN: f64 = 1.0 / 16_384.0;
/// A height as a 32-bit float is off by at most this part of it.
const FLOAT_MARGIN: f64 = 1.0 / 16_777_216.0;
/// Integers beyond this do not count all steps as 64-bit floats.
const MOST_STEPS: f64 = 2_251_799_813_685_248.0;
/// Steps that surveys store heights in, tried from the coarsest.
const STEPS_M: [f64; 14] = [
    1.0, 0.5, 0.25, 0.2, 0.1, 0.0625, 0.05, 0.03125, 0.02, 0.01, 0.0078125, 0.005, 0.001, 0.0001,
];
/// Halvings of a search for a rate.
const SEARCHES: u32 = 14;

/// Codes tiles with one method at one rate.
#[derive(Debug, Clone)]
pub struct TileCodec {
    /// The model, or none for integers alone.
    pub model: Option<TrainedModel>,
    /// Bits of a token's symbol.
    pub bits: u8,
    /// How symbols are stored.
    pub coding: Coding,
    /// What is promised.
    pub rate: Rate,
    /// Whether the source holds 32-bit floats, which a lossless file gives back as such.
    pub is_f32: bool,
}

/// A decoded tile.
#[derive(Debug)]
pub struct Tile {
    /// Its pixels in the raster.
    pub window: Window,
    /// Heights in metres, row by row; a missing pixel has one that continues its neighbours.
    pub heights: Vec<f64>,
    /// Pixels without data.
    pub missing: Option<Vec<bool>>,
    /// What the record says of it.
    pub statistics: TileStatistics,
    tokens: Option<DecodedTokens>,
}

#[derive(Debug)]
struct DecodedTokens {
    tokens: Vec<f32>,
    map: Normalisation,
    /// What the tokens left over, in metres.
    remains: Vec<f64>,
    field: OnceLock<Option<Field>>,
}

impl Tile {
    /// Whether a pixel, counted from the tile's corner, has no data.
    pub fn is_missing(&self, column: usize, row: usize) -> bool {
        self.missing
            .as_ref()
            .is_some_and(|missing| missing[row * self.window.width + column])
    }

    /// Heights with NaN where there is no data.
    pub fn valid_heights(&self) -> Vec<f64> {
        match &self.missing {
            Some(missing) => self
                .heights
                .iter()
                .zip(missing)
                .map(|(&height, &missing)| if missing { f64::NAN } else { height })
                .collect(),
            None => self.heights.clone(),
        }
    }

    /// The analytic surface of its tokens, the map of its heights, and what the tokens left over.
    pub(crate) fn field(&self, codec: &TileCodec) -> Option<(&Field, Normalisation, &[f64])> {
        let decoded = self.tokens.as_ref()?;
        let model = codec.model.as_ref()?;
        let field = decoded
            .field
            .get_or_init(|| model.network.field(tensor(&decoded.tokens, model)));
        field
            .as_ref()
            .map(|field| (field, decoded.map, &decoded.remains[..]))
    }
}

fn tensor(tokens: &[f32], model: &TrainedModel) -> Tensor<3> {
    let [count, channels] = model.token_shape();
    // Functa's latent is one token to the network.
    let shape = if matches!(model.config, MethodConfig::Functa(_)) {
        [1, 1, count]
    } else {
        [1, count, channels]
    };
    Tensor::from_data(TensorData::new(tokens.to_vec(), shape), &Device::flex())
}

impl TileCodec {
    /// Codes the heights of a window, NaN where there is no data, and measures what comes back; `None` where there is
    /// no data at all.
    pub fn encode(
        &self,
        heights: &[f64],
        window: Window,
    ) -> Result<Option<(Record, Measured)>, Error> {
        if let Some(index) = heights.iter().position(|height| height.is_infinite()) {
            return Err(Error::NotAHeight {
                row: window.row + index / window.width,
                column: window.column + index % window.width,
            });
        }
        let missing: Vec<bool> = heights.iter().map(|height| height.is_nan()).collect();
        if missing.iter().all(|&missing| missing) {
            return Ok(None);
        }
        let source = Source {
            heights,
            missing: missing.iter().any(|&missing| missing).then_some(missing),
            window,
        };
        let coded = match &self.model {
            Some(model) if self.rate != Rate::Lossless && !self.is_scrap(model, window) => {
                self.encode_tokens(&source, model)?
            }
            _ => None,
        };
        let (mut record, decoded) = coded.unwrap_or_else(|| self.encode_integers(&source));
        let mut measured = Measured::default();
        for (index, (&height, &decoded)) in heights.iter().zip(&decoded).enumerate() {
            if !source.is_missing(index) {
                measured.add(height, decoded);
            }
        }
        record.statistics = measured.of_tile();
        Ok(Some((record, measured)))
    }

    /// Whether a tile at the raster's edge has so few pixels that tokens, which cost the same for any, are a waste.
    fn is_scrap(&self, model: &TrainedModel, window: Window) -> bool {
        self.rate != Rate::Tokens && window.width * window.height * 4 < model.config.side().pow(2)
    }

    /// Decodes a record.
    pub fn decode(&self, record: &Record, window: Window) -> Result<Tile, Error> {
        let mut tokens = None;
        let heights = match &record.layer {
            Layer::Integers(integers) => self.integer_heights(integers),
            Layer::Tokens(bytes) => {
                let model = self.model.as_ref().ok_or(Error::NoModel)?;
                let [count, channels] = model.token_shape();
                let coded = Tokens::parse(bytes, &model.tables, count * channels)?;
                let map = Normalisation {
                    low_m: coded.lowest_m,
                    range_m: coded.range_m,
                };
                let steps = coded
                    .steps
                    .iter()
                    .map(|&bits| f16::from_bits(bits))
                    .collect();
                let values = Quantised {
                    steps,
                    symbols: coded.symbols,
                }
                .tokens();
                let mut heights = self.token_heights(&values, map, model, window)?;
                let remains = record.remains.as_ref();
                let remains =
                    remains.map_or_else(Vec::new, |remains| add_remains(&mut heights, remains));
                tokens = Some(DecodedTokens {
                    tokens: values,
                    map,
                    remains,
                    field: OnceLock::new(),
                });
                heights
            }
        };
        Ok(Tile {
            window,
            heights,
            missing: record.missing.clone(),
            statistics: record.statistics,
            tokens,
        })
    }

    /// Heights of a window from tokens, patches passing into each other along their borders.
    fn token_heights(
        &self,
        tokens: &[f32],
        map: Normalisation,
        model: &TrainedModel,
        window: Window,
    ) -> Result<Vec<f64>, Error> {
        let side = model.config.side();
        if window.width > side || window.height > side {
            return Err(Error::TileSize {
                side,
                found: window.width * window.height,
            });
        }
        let tensor = tensor(tokens, model);
        let read = |tensor: Tensor<3>| {
            tensor
                .into_data()
                .convert::<f32>()
                .try_to_vec::<f32>()
                .map_err(|_| Error::Device)
        };
        let values: Vec<f64> = match model.network.decode_rims(tensor.clone(), BLEND as usize) {
            Some(rims) => rims.blend(side),
            None => read(model.network.decode(tensor, Precision::Full))?
                .into_iter()
                .map(f64::from)
                .collect(),
        };
        let (low, range) = (f64::from(map.low_m), f64::from(map.range_m));
        Ok((0..window.height)
            .flat_map(|row| {
                values[row * side..][..window.width]
                    .iter()
                    .map(|value| low + range * value)
            })
            .collect())
    }

    /// Tokens and what they leave over; `None` where a promise cannot be kept with them.
    fn encode_tokens(
        &self,
        source: &Source,
        model: &TrainedModel,
    ) -> Result<Option<(Record, Vec<f64>)>, Error> {
        let side = model.config.side();
        let Window { width, height, .. } = source.window;
        if width > side || height > side {
            return Err(Error::TileSize {
                side,
                found: width * height,
            });
        }
        let mut square = vec![f64::NAN; side * side];
        for (row, heights) in source.heights.chunks(width).enumerate() {
            square[row * side..][..width].copy_from_slice(heights);
        }
        fill(&mut square, side);
        let heights: Vec<f32> = square.iter().map(|&height| height as f32).collect();
        let map = match model.normalise {
            Normalise::MinMax => Normalisation::of(&heights),
            Normalise::ZScore => Normalisation::z_score(&heights),
        };
        if !map.range_m.is_finite() || !map.low_m.is_finite() {
            return Ok(None);
        }
        let values: Vec<f32> = heights
            .iter()
            .map(|&height| map.normalise(height))
            .collect();
        let tile = Tensor::from_data(TensorData::new(values, [1, side, side]), &Device::flex());
        let tokens = model.network.encode(tile, Precision::Full);
        let tokens: Vec<f32> = tokens
            .into_data()
            .convert::<f32>()
            .try_to_vec()
            .map_err(|_| Error::Device)?;
        let [_, channels] = model.token_shape();
        let quantised = quantise(&tokens, channels, self.bits.into());
        let coded = Tokens {
            lowest_m: map.low_m,
            range_m: map.range_m,
            bits: self.bits,
            steps: quantised.steps.iter().map(|step| step.to_bits()).collect(),
            symbols: quantised.symbols.clone(),
        };
        let bytes = coded.to_bytes(&model.tables, self.coding)?;
        let base = self.token_heights(&quantised.tokens(), map, model, source.window)?;
        if base.iter().any(|height| !height.is_finite()) {
            return Ok(None);
        }
        let differences: Vec<f64> = source
            .heights
            .iter()
            .zip(&base)
            .map(|(height, base)| height - base)
            .collect();
        let remains = match self.rate {
            Rate::Tokens | Rate::Lossless => None,
            Rate::MaxError(bound) => {
                let margin = MACHINE_MARGIN * f64::from(map.range_m)
                    + FLOAT_MARGIN * (source.greatest() + bound);
                if bound <= 2.0 * margin {
                    return Ok(None);
                }
                let step_m = 2.0 * (bound - margin);
                source
                    .valid(&differences)
                    .any(|difference| difference.abs() > bound - margin)
                    .then_some(step_m)
            }
            Rate::Rmse(target) => search_rmse(target, |step| source.rmse(&differences, step)),
            Rate::Bpp(target) => {
                let budget = target * (width * height) as f64 / 8.0 - bytes.len() as f64;
                search_size(budget, source.rmse(&differences, None), |step| {
                    let values = source.rounded(&differences, step);
                    integers::encode(
                        &values,
                        width,
                        integers::Prediction::Nought,
                        source.missing.as_deref(),
                    )
                    .len() as f64
                })
            }
        };
        let remains = remains.map(|step_m| Remains {
            step_m,
            values: source.rounded(&differences, step_m),
        });
        let mut heights = base;
        if let Some(remains) = &remains {
            add_remains(&mut heights, remains);
        }
        let record = Record {
            statistics: TileStatistics::default(),
            missing: source.missing.clone(),
            layer: Layer::Tokens(bytes),
            remains,
        };
        Ok(Some((record, heights)))
    }

    /// Heights as integers; always possible.
    fn encode_integers(&self, source: &Source) -> (Record, Vec<f64>) {
        let width = source.window.width;
        let greatest = source.greatest();
        let step_m = match self.rate {
            Rate::MaxError(bound) => 2.0 * (bound - FLOAT_MARGIN * (greatest + bound)),
            Rate::Rmse(target) => search_rmse(target, |step| source.rmse(source.heights, step))
                .unwrap_or(greatest.max(1.0)),
            Rate::Bpp(target) => {
                let budget = target * source.heights.len() as f64 / 8.0;
                let size = |step| {
                    let values = source.rounded(source.heights, step);
                    integers::encode(
                        &values,
                        width,
                        integers::Prediction::Median,
                        source.missing.as_deref(),
                    )
                    .len() as f64
                };
                search_size(budget, greatest, size).unwrap_or(greatest.max(1.0))
            }
            Rate::Tokens | Rate::Lossless => source.exact_step(self.is_f32),
        };
        let is_countable = step_m > 0.0 && greatest / step_m < MOST_STEPS;
        let integers = if is_countable {
            Integers {
                origin_m: 0.0,
                step_m,
                values: source.rounded(source.heights, step_m),
            }
        } else {
            source.as_bits()
        };
        let heights = self.integer_heights(&integers);
        let record = Record {
            statistics: TileStatistics::default(),
            missing: source.missing.clone(),
            layer: Layer::Integers(integers),
            remains: None,
        };
        (record, heights)
    }

    fn integer_heights(&self, integers: &Integers) -> Vec<f64> {
        let mut heights = integer_heights(integers);
        if self.rate == Rate::Lossless && self.is_f32 {
            for height in &mut heights {
                *height = f64::from(*height as f32);
            }
        }
        heights
    }
}

/// What the remains stand for, in metres, added to heights and given back.
fn add_remains(heights: &mut [f64], remains: &Remains) -> Vec<f64> {
    let metres: Vec<f64> = remains
        .values
        .iter()
        .map(|&value| value as f64 * remains.step_m)
        .collect();
    for (height, metres) in heights.iter_mut().zip(&metres) {
        *height += metres;
    }
    metres
}

/// Errors of valid heights, summed up.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Valid pixels.
    pub pixels: u64,
    /// Sum of squares.
    pub squares: f64,
    /// Greatest error.
    pub max_error_m: f64,
    /// Lowest decoded height.
    pub lowest_m: f64,
    /// Highest.
    pub highest_m: f64,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            pixels: 0,
            squares: 0.0,
            max_error_m: 0.0,
            lowest_m: f64::INFINITY,
            highest_m: f64::NEG_INFINITY,
        }
    }
}

impl Measured {
    /// Counts one pixel.
    pub fn add(&mut self, height: f64, decoded: f64) {
        let error = (height - decoded).abs();
        self.pixels += 1;
        self.squares += error * error;
        self.max_error_m = self.max_error_m.max(error);
        self.lowest_m = self.lowest_m.min(decoded);
        self.highest_m = self.highest_m.max(decoded);
    }

    /// Joins the counts of another part.
    pub fn join(&mut self, other: &Self) {
        self.pixels += other.pixels;
        self.squares += other.squares;
        self.max_error_m = self.max_error_m.max(other.max_error_m);
        self.lowest_m = self.lowest_m.min(other.lowest_m);
        self.highest_m = self.highest_m.max(other.highest_m);
    }

    /// Root of the mean square error.
    pub fn rmse_m(&self) -> f64 {
        (self.squares / self.pixels.max(1) as f64).sqrt()
    }

    fn of_tile(&self) -> TileStatistics {
        TileStatistics {
            rmse_m: self.rmse_m() as f32,
            // Rounded up: what is stated is never below what was measured.
            max_error_m: (self.max_error_m as f32).next_up(),
            // And the range is never narrower than it is.
            lowest_m: (self.lowest_m as f32).next_down(),
            highest_m: (self.highest_m as f32).next_up(),
        }
    }
}

struct Source<'a> {
    heights: &'a [f64],
    missing: Option<Vec<bool>>,
    window: Window,
}

impl Source<'_> {
    fn is_missing(&self, index: usize) -> bool {
        self.missing.as_ref().is_some_and(|missing| missing[index])
    }

    fn valid<'b>(&'b self, values: &'b [f64]) -> impl Iterator<Item = f64> + 'b {
        values
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.is_missing(*index))
            .map(|(_, &value)| value)
    }

    fn greatest(&self) -> f64 {
        self.valid(self.heights)
            .fold(0.0, |greatest, height| greatest.max(height.abs()))
    }

    fn rounded(&self, values: &[f64], step_m: f64) -> Vec<i64> {
        values
            .iter()
            .map(|value| {
                if value.is_nan() {
                    0
                } else {
                    (value / step_m).round() as i64
                }
            })
            .collect()
    }

    /// Error of values that are rounded to a step, or left out altogether.
    fn rmse(&self, values: &[f64], step_m: Option<f64>) -> f64 {
        let (sum, count) = self.valid(values).fold((0.0, 0.0), |(sum, count), value| {
            let kept = step_m.map_or(0.0, |step| (value / step).round() * step);
            (sum + (value - kept).powi(2), count + 1.0)
        });
        (sum / count).sqrt()
    }

    /// The coarsest step that gives every height back, or 0.
    fn exact_step(&self, is_f32: bool) -> f64 {
        let is_exact = |step: f64| {
            self.valid(self.heights).all(|height| {
                let back = (height / step).round() * step;
                back == height || (is_f32 && back as f32 == height as f32)
            })
        };
        STEPS_M
            .into_iter()
            .find(|&step| is_exact(step))
            .unwrap_or(0.0)
    }

    /// The bits of heights as integers in the order of the heights.
    fn as_bits(&self) -> Integers {
        let is_f32 = self
            .valid(self.heights)
            .all(|height| f64::from(height as f32) == height);
        let values = self
            .heights
            .iter()
            .map(|&height| match (height.is_nan(), is_f32) {
                (true, _) => 0,
                (_, true) => ordered(
                    i64::from((height as f32).to_bits().cast_signed()),
                    i64::from(i32::MAX),
                ),
                _ => ordered(height.to_bits().cast_signed(), i64::MAX),
            });
        Integers {
            origin_m: 0.0,
            step_m: if is_f32 { 0.0 } else { -1.0 },
            values: values.collect(),
        }
    }
}

/// Bits of a float as an integer that grows with it, and back: a negative one counts down from −1.
fn ordered(bits: i64, magnitude: i64) -> i64 {
    if bits < 0 { !(bits & magnitude) } else { bits }
}

fn integer_heights(integers: &Integers) -> Vec<f64> {
    let Integers {
        origin_m,
        step_m,
        values,
    } = integers;
    if *step_m > 0.0 {
        return values
            .iter()
            .map(|&value| origin_m + value as f64 * step_m)
            .collect();
    }
    values
        .iter()
        .map(|&value| {
            if *step_m == 0.0 {
                let bits = if value < 0 {
                    (!value as u32) | 1 << 31
                } else {
                    value as u32
                };
                f64::from(f32::from_bits(bits))
            } else {
                f64::from_bits(if value < 0 {
                    (!value).cast_unsigned() | 1 << 63
                } else {
                    value.cast_unsigned()
                })
            }
        })
        .collect()
}

/// The coarsest step whose error is no more than the target; `None` where nothing needs to be kept.
fn search_rmse(target: f64, rmse: impl Fn(Option<f64>) -> f64) -> Option<f64> {
    if rmse(None) <= target {
        return None;
    }
    // A step of √12 times the error is right for small steps; coarser ones may do where most is nought.
    let (mut fine, mut coarse) = (target, target * 64.0);
    for _ in 0..SEARCHES {
        let middle = (fine * coarse).sqrt();
        if rmse(Some(middle)) <= target {
            fine = middle;
        } else {
            coarse = middle;
        }
    }
    Some(fine)
}

/// The finest step whose bytes fit a budget; `None` where nothing fits.
fn search_size(budget: f64, largest: f64, size: impl Fn(f64) -> f64) -> Option<f64> {
    let (mut fine, mut coarse) = (1e-5, 4.0 * largest.max(1e-3));
    if size(coarse) > budget {
        return None;
    }
    for _ in 0..SEARCHES {
        let middle = (fine * coarse).sqrt();
        if size(middle) <= budget {
            coarse = middle;
        } else {
            fine = middle;
        }
    }
    Some(coarse)
}
