//! One tile: coefficients to bytes and back.

use terrane_format::coder::{Decoder, Encoder};
use terrane_format::integers::{self, Prediction};

use crate::compand::{Compander, UNIT};
use crate::distribution::{Context, MOST_SYMBOL};
use crate::grid::Grid;
use crate::model::Model;
use crate::network::Scratch;
use crate::planes::{LANES, PHASES, Planes, Tap, dequantiser_taps, head_taps, trunk_taps};
use crate::simd::{self, Work};
use crate::wavelet::{BANDS, Split, join_53, join_97, split_53, split_97, split_sizes};
use crate::{Error, Result};

/// Levels go on until neither side is longer than this.
const COARSEST: usize = 8;

/// How heights become coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// CDF 9/7; coefficients are rounded to steps.
    Lossy,
    /// The reversible 5/3 of whole numbers.
    Lossless,
}

/// How symbols are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// What a bit is worth, in squares of a step; 0 rounds to the nearest.
    pub bit_worth: f64,
    /// Part of a step by which rounding is moved towards 0.
    pub dead_zone: f64,
}

/// A tile in steps: its coefficients, coarsest picture first.
#[derive(Debug, Clone, PartialEq)]
pub struct Tile {
    /// Size of the tile.
    pub width: usize,
    /// Size of the tile.
    pub height: usize,
    /// How it was made.
    pub transform: Transform,
    /// The coarsest picture, in steps.
    pub coarsest: Grid<f64>,
    /// Bands of details in steps, finest level first.
    pub levels: Vec<[Grid<f64>; BANDS]>,
}

/// Sizes of all levels' bands, finest first, and of the coarsest picture.
fn level_sizes(width: usize, height: usize) -> (Vec<[[usize; 2]; BANDS]>, [usize; 2]) {
    let mut low = [width, height];
    let mut levels = Vec::new();
    while low[0].max(low[1]) > COARSEST {
        let (next, bands) = split_sizes(low[0], low[1]);
        levels.push(bands);
        low = next;
    }
    (levels, low)
}

impl Tile {
    /// Transforms heights in steps; `None` where they are not finite or too large.
    pub fn lossy(heights: &Grid<f64>) -> Option<Self> {
        let limit = (MOST_SYMBOL >> 12) as f64;
        if heights.values.iter().any(|value| !(value.abs() < limit)) {
            return None;
        }
        let mut low = heights.clone();
        let mut levels = Vec::new();
        while low.width.max(low.height) > COARSEST {
            let split = split_97(&low);
            low = split.low;
            levels.push(split.bands);
        }
        Some(Self {
            width: heights.width,
            height: heights.height,
            transform: Transform::Lossy,
            coarsest: low,
            levels,
        })
    }

    /// Transforms whole numbers; `None` where they are too large.
    pub fn lossless(heights: &Grid<i64>) -> Option<Self> {
        if heights
            .values
            .iter()
            .any(|value| value.abs() > MOST_SYMBOL >> 12)
        {
            return None;
        }
        let mut low = heights.clone();
        let mut levels = Vec::new();
        let floats = |grid: Grid<i64>| Grid {
            width: grid.width,
            height: grid.height,
            values: grid
                .values
                .iter()
                .map(|&value| value as f64)
                .collect::<Vec<_>>(),
        };
        while low.width.max(low.height) > COARSEST {
            let split = split_53(&low);
            low = split.low;
            levels.push(split.bands.map(floats));
        }
        Some(Self {
            width: heights.width,
            height: heights.height,
            transform: Transform::Lossless,
            coarsest: floats(low),
            levels,
        })
    }
}

/// Where symbols come from: bytes, or coefficients that go to bytes.
trait Stream {
    /// Whether a band has any symbol but 0.
    fn is_empty(&mut self, level: usize, band: usize) -> bool;
    /// The next symbol.
    fn symbol(&mut self, model: &Model, context: Context, band: usize, place: usize) -> i64;
}

struct Reading<'a> {
    decoder: Decoder<'a>,
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

struct Writing<'a> {
    encoder: Encoder,
    tile: &'a Tile,
    effort: Effort,
    level: usize,
    /// Where symbols are counted too.
    counts: Option<&'a mut Vec<Vec<u64>>>,
}

impl Writing<'_> {
    /// The nearest symbol, a little towards 0.
    fn nearest(&self, value: f64) -> i64 {
        let magnitude = (value.abs() + 0.5 - self.effort.dead_zone).floor();
        magnitude.copysign(value) as i64
    }
}

impl Stream for Writing<'_> {
    fn is_empty(&mut self, level: usize, band: usize) -> bool {
        self.level = level;
        let values = &self.tile.levels[level][band].values;
        let is_empty = values.iter().all(|&value| self.nearest(value) == 0);
        self.encoder.raw(is_empty.into(), 1);
        is_empty
    }

    #[inline(always)]
    fn symbol(&mut self, model: &Model, context: Context, band: usize, place: usize) -> i64 {
        let value = self.tile.levels[self.level][band].values[place];
        let mut symbol = self.nearest(value);
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

/// A model with everything that coding needs.
#[derive(Debug)]
pub struct Codec {
    model: Model,
    trunk: Vec<Tap>,
    heads: Vec<Vec<Tap>>,
    dequantiser: Vec<Tap>,
}

impl Codec {
    /// Codes with a model.
    pub fn new(model: Model) -> Self {
        let heads = (0..BANDS)
            .flat_map(|band| (0..PHASES.len()).map(move |phase| head_taps(band, phase)))
            .collect();
        Self {
            trunk: trunk_taps(model.network.widths.reach),
            heads,
            dequantiser: dequantiser_taps(),
            model,
        }
    }

    /// Its model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Codes a tile, and gives back what a decoder makes of it, in 1/64 steps (in whole steps where nothing is lost).
    pub fn encode(&self, tile: &Tile, effort: Effort) -> (Vec<u8>, Grid<i64>) {
        self.encode_counting(tile, effort, None)
    }

    /// Counts the symbols of a tile, for tables; `counts` as from [`Distributions::no_counts`].
    ///
    /// [`Distributions::no_counts`]: crate::Distributions::no_counts
    pub fn count(&self, tile: &Tile, effort: Effort, counts: &mut Vec<Vec<u64>>) {
        self.encode_counting(tile, effort, Some(counts));
    }

    fn encode_counting(
        &self,
        tile: &Tile,
        effort: Effort,
        counts: Option<&mut Vec<Vec<u64>>>,
    ) -> (Vec<u8>, Grid<i64>) {
        let effort = match tile.transform {
            Transform::Lossy => effort,
            Transform::Lossless => Effort {
                bit_worth: 0.0,
                dead_zone: 0.0,
            },
        };
        let mut encoder = Encoder::default();
        let coarsest: Vec<i64> = tile
            .coarsest
            .values
            .iter()
            .map(|value| value.round() as i64)
            .collect();
        let width = tile.coarsest.width;
        integers::encode_to(&mut encoder, &coarsest, width, Prediction::Median, None);
        let mut writing = Writing {
            encoder,
            tile,
            effort,
            level: 0,
            counts,
        };
        let decoded = self.code(
            &mut writing,
            [tile.width, tile.height],
            tile.transform,
            coarsest,
            0,
        );
        (writing.encoder.finish(), decoded)
    }

    /// Decodes a tile of a size, in 1/64 steps (whole steps where nothing was lost), leaving out so many of its finest
    /// levels.
    pub fn decode(
        &self,
        bytes: &[u8],
        [width, height]: [usize; 2],
        transform: Transform,
        skip: usize,
    ) -> Result<Grid<i64>> {
        let (_, [low_w, low_h]) = level_sizes(width, height);
        let mut decoder = Decoder::new(bytes);
        let coarsest =
            integers::decode_from(&mut decoder, low_w, low_w * low_h, Prediction::Median, None);
        if coarsest
            .iter()
            .any(|value| value.unsigned_abs() > MOST_SYMBOL as u64)
        {
            return Err(Error::Payload {
                reason: "its coarsest picture is out of range",
            });
        }
        let mut reading = Reading { decoder };
        let decoded = self.code(&mut reading, [width, height], transform, coarsest, skip);
        if skip == 0 {
            reading.decoder.end()?;
        }
        Ok(decoded)
    }

    fn code<S: Stream>(
        &self,
        stream: &mut S,
        [width, height]: [usize; 2],
        transform: Transform,
        coarsest: Vec<i64>,
        skip: usize,
    ) -> Grid<i64> {
        let (sizes, [low_w, low_h]) = level_sizes(width, height);
        let unit = match transform {
            Transform::Lossy => UNIT,
            Transform::Lossless => 1,
        };
        let mut low = Grid {
            width: low_w,
            height: low_h,
            values: coarsest.iter().map(|value| value * unit).collect(),
        };
        let mut decoded = low.clone();
        let mut scratch = Scratch::new(&self.model.network);
        let mut parents: Option<[Grid<i64>; BANDS]> = None;
        for (level, sizes) in sizes.iter().enumerate().skip(skip).rev() {
            let seen = match transform {
                Transform::Lossy => None,
                Transform::Lossless => Some(Grid {
                    width: low.width,
                    height: low.height,
                    values: low
                        .values
                        .iter()
                        .map(|value| value.wrapping_mul(UNIT))
                        .collect(),
                }),
            };
            let seen = seen.as_ref().unwrap_or(&low);
            let mut bands: [Grid<i64>; BANDS] =
                sizes.map(|[width, height]| Grid::new(width, height));
            // Planes and trunk are only needed where a band has symbols.
            let mut context: Option<(Planes, [Vec<f32>; 4])> = None;
            for (band, symbols) in bands.iter_mut().enumerate() {
                if symbols.values.is_empty() || stream.is_empty(level, band) {
                    continue;
                }
                let scratch = &mut scratch;
                let (planes, trunks) = context.get_or_insert_with(|| {
                    let planes = Planes::new(seen, parents.as_ref(), level);
                    let trunks = simd::run(Trunk {
                        codec: self,
                        planes: &planes,
                        scratch,
                    });
                    (planes, trunks)
                });
                simd::run(Band {
                    codec: self,
                    stream,
                    scratch,
                    planes,
                    trunks,
                    band,
                    symbols,
                });
            }
            if transform == Transform::Lossy {
                let details: [Grid<i64>; BANDS] = bands.each_ref().map(|band| Grid {
                    width: band.width,
                    height: band.height,
                    values: band.values.iter().map(|symbol| symbol * UNIT).collect(),
                });
                let mut finer = details.clone();
                if let Some((planes, trunks)) = &context {
                    simd::run(Offsets {
                        codec: self,
                        scratch: &mut scratch,
                        planes,
                        trunks,
                        details: &mut finer,
                    });
                }
                decoded = simd::run(Join(
                    Split {
                        low: decoded,
                        bands: finer,
                    },
                    true,
                ));
                if level > skip {
                    low = simd::run(Join(
                        Split {
                            low,
                            bands: details,
                        },
                        true,
                    ));
                }
            } else {
                low = simd::run(Join(
                    Split {
                        low,
                        bands: bands.clone(),
                    },
                    false,
                ));
            }
            parents = Some(bands);
        }
        match transform {
            Transform::Lossy => decoded,
            Transform::Lossless => low,
        }
    }
}

struct Join(Split<i64>, bool);

impl Work for Join {
    type Output = Grid<i64>;
    #[inline(always)]
    fn run<const FUSED: bool>(self) -> Grid<i64> {
        if self.1 {
            join_97(self.0)
        } else {
            join_53(self.0)
        }
    }
}

/// The trunk at all places of a level, phase by phase, in blocks of [`LANES`].
struct Trunk<'a> {
    codec: &'a Codec,
    planes: &'a Planes,
    scratch: &'a mut Scratch,
}

impl Work for Trunk<'_> {
    type Output = [Vec<f32>; 4];

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> Self::Output {
        let network = &self.codec.model.network;
        let width = network.widths.trunk * LANES;
        let bias = network.trunk_bias(&self.planes.constants);
        let stretch = self.planes.stretch();
        let mut trunks = [const { Vec::new() }; 4];
        for (phase, out) in trunks.iter_mut().enumerate() {
            out.reserve(stretch.len().div_ceil(LANES) * width);
            for start in stretch.clone().step_by(LANES) {
                self.planes
                    .gather(&self.codec.trunk, phase, start, self.scratch.inputs());
                out.extend_from_slice(network.trunk::<FUSED>(&bias, self.scratch));
            }
        }
        trunks
    }
}

/// One band of a level.
struct Band<'a, S> {
    codec: &'a Codec,
    stream: &'a mut S,
    scratch: &'a mut Scratch,
    planes: &'a mut Planes,
    trunks: &'a [Vec<f32>; 4],
    band: usize,
    symbols: &'a mut Grid<i64>,
}

impl<S: Stream> Work for Band<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let compander = Compander::get();
        let model = &self.codec.model;
        let width = model.network.widths.trunk * LANES;
        let stretch = self.planes.stretch();
        for (phase, trunks) in self.trunks.iter().enumerate() {
            let head = self.band * PHASES.len() + phase;
            let taps = &self.codec.heads[head];
            for (start, trunk) in stretch
                .clone()
                .step_by(LANES)
                .zip(trunks.chunks_exact(width))
            {
                let inputs = self.scratch.inputs();
                inputs[..width].copy_from_slice(trunk);
                self.planes.gather(taps, phase, start, &mut inputs[width..]);
                let sums = model.network.head::<FUSED>(head, self.scratch);
                let mut contexts = [Context::default(); LANES];
                for (lane, context) in contexts.iter_mut().enumerate() {
                    *context = Context::new(sums[lane], sums[LANES + lane]);
                }
                let end = stretch.end.min(start + LANES);
                for (index, &context) in (start..end).zip(&contexts) {
                    let Some([column, row]) = self.planes.place(phase, index) else {
                        continue;
                    };
                    if column >= self.symbols.width || row >= self.symbols.height {
                        continue;
                    }
                    let place = row * self.symbols.width + column;
                    let symbol = self.stream.symbol(model, context, self.band, place);
                    if symbol != 0 {
                        self.symbols.values[place] = symbol;
                        let seen = compander.whole(symbol);
                        self.planes.set_symbol(self.band, phase, index, seen);
                    }
                }
            }
        }
    }
}

/// What is to be added to the symbols of a level, in 1/64 steps.
struct Offsets<'a> {
    codec: &'a Codec,
    scratch: &'a mut Scratch,
    planes: &'a Planes,
    trunks: &'a [Vec<f32>; 4],
    details: &'a mut [Grid<i64>; BANDS],
}

impl Work for Offsets<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let network = &self.codec.model.network;
        let width = network.widths.trunk * LANES;
        let stretch = self.planes.stretch();
        for (phase, trunks) in self.trunks.iter().enumerate() {
            for (start, trunk) in stretch
                .clone()
                .step_by(LANES)
                .zip(trunks.chunks_exact(width))
            {
                let inputs = self.scratch.inputs();
                inputs[..width].copy_from_slice(trunk);
                let taps = &self.codec.dequantiser;
                self.planes.gather(taps, phase, start, &mut inputs[width..]);
                let Some(sums) = network.dequantiser::<FUSED>(self.scratch) else {
                    return;
                };
                for index in start..stretch.end.min(start + LANES) {
                    let Some([column, row]) = self.planes.place(phase, index) else {
                        continue;
                    };
                    for (band, details) in self.details.iter_mut().enumerate() {
                        if column < details.width && row < details.height {
                            let place = row * details.width + column;
                            details.values[place] += offset(sums[band * LANES + index - start]);
                        }
                    }
                }
            }
        }
    }
}

/// The dequantiser's offset in 1/64 steps, at most half a step.
#[inline(always)]
fn offset(sum: f32) -> i64 {
    ((sum as i32 + 16) >> 5).clamp(-32, 32).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LayerWeights, to_bytes};
    use crate::network::Widths;

    /// A network of random weights.
    fn codec() -> Codec {
        let widths = Widths {
            reach: 1,
            stem: 12,
            trunk: 9,
            hidden: 10,
            last: 7,
            dequantiser: 6,
        };
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let layers: Vec<LayerWeights> = widths
            .layers()
            .iter()
            .map(|shape| LayerWeights {
                weights: (0..shape.inputs * shape.outputs)
                    .map(|_| random(41) as i8 - 20)
                    .collect(),
                bias: (0..shape.outputs)
                    .map(|_| random(2001) as i32 - 1000)
                    .collect(),
            })
            .collect();
        Codec::new(Model::from_bytes(&to_bytes("test", &widths, &layers, &[]).unwrap()).unwrap())
    }

    fn hills(width: usize, height: usize) -> Grid<f64> {
        let values = (0..width * height)
            .map(|index| {
                let (x, y) = ((index % width) as f64, (index / width) as f64);
                40.0 * (x / 17.0).sin() * (y / 11.0).cos() + 3.0 * (x * 1.7 + y * y * 0.3).sin()
            })
            .collect();
        Grid::from_values(width, height, values).unwrap()
    }

    const ROUNDED: Effort = Effort {
        bit_worth: 0.0,
        dead_zone: 0.0,
    };

    #[test]
    fn tiles_of_all_sizes_come_back() {
        let codec = codec();
        for [width, height] in [[1, 1], [1, 40], [9, 9], [64, 64], [100, 37], [130, 7]] {
            let heights = hills(width, height);
            let tile = Tile::lossy(&heights).unwrap();
            for effort in [
                ROUNDED,
                Effort {
                    bit_worth: 0.1,
                    dead_zone: 0.1,
                },
            ] {
                let (bytes, encoded) = codec.encode(&tile, effort);
                let decoded = codec
                    .decode(&bytes, [width, height], Transform::Lossy, 0)
                    .unwrap();
                assert_eq!(decoded, encoded);
                for (&units, height) in decoded.values.iter().zip(&heights.values) {
                    assert!((units as f64 / 64.0 - height).abs() < 3.5);
                }
            }
            let whole = Grid {
                width,
                height,
                values: heights
                    .values
                    .iter()
                    .map(|height| height.round() as i64)
                    .collect(),
            };
            let (bytes, _) = codec.encode(&Tile::lossless(&whole).unwrap(), ROUNDED);
            let decoded = codec
                .decode(&bytes, [width, height], Transform::Lossless, 0)
                .unwrap();
            assert_eq!(decoded, whole);
        }
    }

    #[test]
    fn coarser_levels_are_coarser_pictures() {
        let codec = codec();
        let heights = hills(128, 96);
        let (bytes, _) = codec.encode(&Tile::lossy(&heights).unwrap(), ROUNDED);
        let half = codec
            .decode(&bytes, [128, 96], Transform::Lossy, 1)
            .unwrap();
        assert_eq!((half.width, half.height), (64, 48));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn no_bit_depends_on_the_width_of_registers() {
        let codec = codec();
        let tile = Tile::lossy(&hills(120, 77)).unwrap();
        let all: Vec<_> = simd::limit::ALL
            .iter()
            .map(|&limit| {
                simd::limit::set(limit);
                codec.encode(&tile, ROUNDED)
            })
            .collect();
        simd::limit::set(simd::limit::AVX512);
        assert_eq!(all[0], all[1]);
        assert_eq!(all[0], all[2]);
    }

    #[test]
    fn damaged_bytes_do_not_panic() {
        let codec = codec();
        let (bytes, _) = codec.encode(&Tile::lossy(&hills(40, 40)).unwrap(), ROUNDED);
        for place in 0..bytes.len() {
            for value in [0, 0xff, bytes[place] ^ 1] {
                let mut damaged = bytes.clone();
                damaged[place] = value;
                let _ = codec.decode(&damaged, [40, 40], Transform::Lossy, 0);
            }
        }
        let _ = codec.decode(&[], [40, 40], Transform::Lossy, 0);
    }
}
