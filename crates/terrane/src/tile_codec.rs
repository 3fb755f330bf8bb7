//! One tile: heights to a record of the file, and back.

use std::sync::OnceLock;

use burn::tensor::{Device, Tensor, TensorData};
use half::f16;
use terrane_format::record::{IntegerScale, Integers, Layer, Record, Residual, TileStatistics};
use terrane_format::tokens::{Coding, Tokens};
use terrane_format::{Window, integers};

use crate::field::{Field, RIM};
use crate::file_model::FileModel;
use crate::fill::fill;
use crate::measured::Measured;
use crate::methods::{Method, Precision};
use crate::model::TrainedModel;
use crate::quantise::{Quantised, quantise};
use crate::tile_source::{Source, integer_heights, rounded, search_rmse, search_size};
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
    /// The context codec's step in metres in every tile, and so the least error for the bits of the whole file.
    Step(f64),
    /// Every height as it was.
    Lossless,
    /// An overview of a file with a promise, which holds at full resolution alone: within so many metres, or what the eye
    /// and the source's own step allow where that is more.
    Overview {
        /// The promise, as much coarser as the pixels are larger; 0 where nothing may be lost at full resolution.
        bound_m: f64,
        /// The level.
        level: u8,
    },
}

/// Half a centimetre is enough for the first overview of any survey, and twice as much for the next.
const OVERVIEW_M: f64 = 0.005;
/// An overview is at least so much finer than the range of a tile.
const OVERVIEW_PARTS: f64 = 2048.0;
/// Bytes that a tile takes at the least, whatever its pixels: one whose share of a rate is below cannot reach it.
const LEAST_BYTES: f64 = 64.0;
/// How far above its rate a tile may end.
const NEAR: f64 = 1.02;
/// Memory that encoding and decoding take per pixel of a tile, as measured.
const ENCODING_BYTES: u64 = 160;
pub(crate) const DECODING_BYTES: u64 = 96;

/// Part of a tile's range that two machines may differ by in a network's output: far above what was ever seen (a few
/// parts in a million), so that a promise holds everywhere.
const MACHINE_MARGIN: f64 = 1.0 / 16_384.0;
/// A height as a 32-bit float is off by at most this part of it.
pub(crate) const FLOAT_MARGIN: f64 = 1.0 / 16_777_216.0;
/// Integers beyond this do not count all steps as 64-bit floats.
const MOST_STEPS: f64 = 2_251_799_813_685_248.0;
/// Codes tiles with one method at one rate.
#[derive(Debug, Clone)]
pub struct TileCodec {
    /// The model, or none for integers alone.
    pub model: Option<FileModel>,
    /// Bits of a token's symbol.
    pub bits: u8,
    /// How symbols are stored.
    pub coding: Coding,
    /// What is promised.
    pub rate: Rate,
    /// Whether the source holds 32-bit floats, which a lossless file gives back as such.
    pub is_f32: bool,
    /// Metres from one height that the source can hold to the next, where it holds integers; 0 where it holds floats.
    pub source_step_m: f64,
    /// How hard the context codec tries, from 0 to 3; decoding does not depend on it.
    pub effort: u8,
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
    residual: Vec<f64>,
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
        let model = codec.model.as_ref()?.network()?;
        let field = decoded
            .field
            .get_or_init(|| model.network.field(tensor(&decoded.tokens, model)));
        field
            .as_ref()
            .map(|field| (field, decoded.map, &decoded.residual[..]))
    }
}

fn tensor(tokens: &[f32], model: &TrainedModel) -> Tensor<3> {
    let [count, channels] = model.token_shape();
    let shape = [1, count, channels];
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
        if let Rate::Overview { bound_m, level } = self.rate {
            let rate = Rate::MaxError(self.overview_bound(&source, bound_m, level));
            let codec = Self {
                rate,
                ..self.clone()
            };
            return codec.encode(heights, window);
        }
        if let Some(height) = source.flat() {
            // Water stays flat, at its height, at any rate.
            return Ok(Some(flat(&source, height)));
        }
        let coded = match &self.model {
            Some(FileModel::Network(model))
                if self.rate != Rate::Lossless && !self.is_scrap(model, window) =>
            {
                self.encode_tokens(&source, model)?
            }
            Some(FileModel::Context(model)) => self.encode_context(&source, &model.codec),
            _ => None,
        };
        let (mut record, decoded) =
            coded.unwrap_or_else(|| self.encode_integers(&source, self.integer_step(&source)));
        let mut measured = Measured::default();
        for (index, (&height, &decoded)) in heights.iter().zip(&decoded).enumerate() {
            if !source.is_missing(index) {
                measured.add(height, decoded);
            }
        }
        record.statistics = measured.of_tile();
        Ok(Some((record, measured)))
    }

    /// Refuses a tile that does not reach a rate of its own; `bytes` is its record.
    pub(crate) fn check_reached(&self, bytes: &[u8], window: Window) -> Result<(), Error> {
        let Rate::Bpp(target) = self.rate else {
            return Ok(());
        };
        let pixels = (window.width * window.height) as f64;
        let reached = bytes.len() as f64 * 8.0 / pixels;
        if reached <= target * NEAR || target * pixels / 8.0 < LEAST_BYTES {
            return Ok(());
        }
        Err(Error::Unreachable {
            column: window.column,
            row: window.row,
            target,
            reached,
        })
    }

    /// How far an overview may be off.
    fn overview_bound(&self, source: &Source, bound_m: f64, level: u8) -> f64 {
        let (low, high) = source.range();
        let enough = OVERVIEW_M * f64::from(level.saturating_sub(1)).exp2();
        bound_m
            .max(self.source_step_m / 2.0)
            .max(enough.min((high - low) / OVERVIEW_PARTS))
            // No finer than the floats that a decoded raster holds.
            .max(4.0 * FLOAT_MARGIN * source.greatest())
    }

    /// Whether tiles go through a network of floats.
    pub(crate) fn has_network(&self) -> bool {
        matches!(self.model, Some(FileModel::Network(_)))
    }

    /// Memory that the encoding of a tile takes.
    pub(crate) fn encoding_bytes(&self, side: usize) -> u64 {
        let model = self.model.as_ref();
        ENCODING_BYTES * (side * side) as u64 + model.map_or(0, FileModel::working_bytes)
    }

    /// Whether a tile at the raster's edge has so few pixels that tokens, which cost the same for any, are a waste.
    fn is_scrap(&self, model: &TrainedModel, window: Window) -> bool {
        self.rate != Rate::Tokens && window.width * window.height * 4 < model.config.side().pow(2)
    }

    /// The codec of an overview: what is promised holds for full resolution, and an overview may be as much coarser in
    /// height as its pixels are larger. Otherwise overviews take half of a file.
    #[must_use]
    pub fn for_level(&self, level: u8) -> Self {
        let factor = f64::from(level).exp2();
        let rate = match self.rate {
            rate if level == 0 => rate,
            Rate::MaxError(bound) => Rate::Overview {
                bound_m: bound * factor,
                level,
            },
            Rate::Lossless => Rate::Overview {
                bound_m: 0.0,
                level,
            },
            Rate::Rmse(target) => Rate::Rmse(target * factor),
            Rate::Step(step_m) => Rate::Step(step_m * factor),
            rate @ (Rate::Tokens | Rate::Bpp(_) | Rate::Overview { .. }) => rate,
        };
        Self {
            rate,
            ..self.clone()
        }
    }

    /// Decodes a record.
    pub fn decode(&self, record: &Record, window: Window) -> Result<Tile, Error> {
        let mut tokens = None;
        let heights = match &record.layer {
            Layer::Integers(integers) => {
                let mut heights = self.integer_heights(integers);
                if let Some(missing) = &record.missing {
                    // Their integers mean nothing, and a surface beside them should not fall to them.
                    for (height, _) in heights
                        .iter_mut()
                        .zip(missing)
                        .filter(|(_, missing)| **missing)
                    {
                        *height = f64::NAN;
                    }
                    fill(&mut heights, window.width);
                }
                heights
            }
            Layer::Wavelet(details) => {
                let mut heights = self.decode_context(details, window)?;
                if let Some(residual) = &record.residual {
                    add_residual(&mut heights, residual);
                }
                heights
            }
            Layer::Tokens(bytes) => {
                let model = self.model.as_ref().and_then(FileModel::network);
                let model = model.ok_or(Error::NoModel)?;
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
                let mut heights = token_heights(&values, map, model, window)?;
                let residual = record.residual.as_ref();
                let residual =
                    residual.map_or_else(Vec::new, |residual| add_residual(&mut heights, residual));
                tokens = Some(DecodedTokens {
                    tokens: values,
                    map,
                    residual,
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
        let map = model.normalise.map(&heights);
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
        let base = token_heights(&quantised.tokens(), map, model, source.window)?;
        if base.iter().any(|height| !height.is_finite()) {
            return Ok(None);
        }
        let differences = source.differences(&base);
        let residual = match self.rate {
            Rate::Tokens | Rate::Lossless | Rate::Overview { .. } => None,
            Rate::Step(step_m) => source
                .valid(&differences)
                .any(|difference| difference.abs() > step_m / 2.0)
                .then_some(step_m),
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
                    let values = rounded(&differences, step);
                    integers::encode(
                        &values,
                        width,
                        integers::Prediction::Zero,
                        source.missing.as_deref(),
                    )
                    .len() as f64
                })
            }
        };
        let residual = residual.map(|step_m| Residual {
            step_m,
            values: rounded(&differences, step_m),
        });
        let mut heights = base;
        if let Some(residual) = &residual {
            add_residual(&mut heights, residual);
        }
        let record = Record {
            statistics: TileStatistics::default(),
            missing: source.missing.clone(),
            layer: Layer::Tokens(bytes),
            residual,
        };
        Ok(Some((record, heights)))
    }

    /// The coarsest step of integers that gives the rate.
    pub(crate) fn integer_step(&self, source: &Source) -> f64 {
        let width = source.window.width;
        let greatest = source.greatest();
        match self.rate {
            Rate::MaxError(bound) => {
                let step_m = 2.0 * (bound - FLOAT_MARGIN * (greatest + bound));
                // A source that is coarser than its bound is kept as it is.
                step_m.max(source.exact_step(self.is_f32))
            }
            Rate::Rmse(target) => search_rmse(target, |step| source.rmse(source.heights, step))
                .unwrap_or(greatest.max(1.0)),
            Rate::Bpp(target) => {
                let budget = target * source.heights.len() as f64 / 8.0;
                let size = |step| {
                    let values = rounded(source.heights, step);
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
            Rate::Step(step_m) => step_m,
            Rate::Tokens | Rate::Lossless | Rate::Overview { .. } => source.exact_step(self.is_f32),
        }
    }

    /// Heights as integers of a step, or as their bits where there is none; always possible.
    pub(crate) fn encode_integers(&self, source: &Source, step_m: f64) -> (Record, Vec<f64>) {
        let greatest = source.greatest();
        let is_countable = step_m > 0.0 && greatest / step_m < MOST_STEPS;
        let integers = if is_countable {
            Integers {
                scale: IntegerScale::Step {
                    origin_m: 0.0,
                    step_m,
                },
                values: rounded(source.heights, step_m),
            }
        } else {
            source.as_bits()
        };
        let heights = self.integer_heights(&integers);
        let record = Record {
            statistics: TileStatistics::default(),
            missing: source.missing.clone(),
            layer: Layer::Integers(integers),
            residual: None,
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

/// The record of a tile whose heights are all the same.
fn flat(source: &Source, height: f64) -> (Record, Measured) {
    let mut measured = Measured::default();
    for _ in source.valid(source.heights) {
        measured.add(height, height);
    }
    let record = Record {
        statistics: measured.of_tile(),
        missing: source.missing.clone(),
        layer: Layer::Integers(Integers {
            scale: IntegerScale::Step {
                origin_m: height,
                step_m: 1.0,
            },
            values: vec![0; source.heights.len()],
        }),
        residual: None,
    };
    (record, measured)
}

/// Heights of a window from tokens, patches passing into each other along their borders.
fn token_heights(
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
    let values: Vec<f64> = match model.network.decode_rims(tensor.clone(), RIM) {
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

/// What the remains stand for, in metres, added to heights and given back.
pub(crate) fn add_residual(heights: &mut [f64], residual: &Residual) -> Vec<f64> {
    let metres: Vec<f64> = residual
        .values
        .iter()
        .map(|&value| value as f64 * residual.step_m)
        .collect();
    for (height, metres) in heights.iter_mut().zip(&metres) {
        *height += metres;
    }
    metres
}
