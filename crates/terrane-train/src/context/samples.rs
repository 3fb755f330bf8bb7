//! Windows of terrain to learn from: their levels on a canvas, exactly as the codec sees them.

use std::ops::Range;
use std::sync::LazyLock;

use terrane_codec::random::Random;
use terrane_codec::{FileModel, Profile};
use terrane_context::{
    Area, BANDS, CHANNELS, CONSTANTS, Coefficients, Matrix, Planes, Quantiser, SUBSTEPS, Subbands,
    Transform, seen_symbol,
};

use crate::context::canvas::{MARGIN, PLACES, POSITIONS, Place, WIDTH};
use crate::context::config::{DataConfig, RateConfig};
use crate::data::Orientation;

/// Windows of this side have whole levels on the canvas, as a tile without others above it has them.
const WHOLE: usize = 256;
/// What a bit is worth where symbols are chosen, in squared steps: about what encoders say.
const WORTH: Range<f64> = 0.06..0.14;
/// Symbols beyond this teach nothing more.
const MAX_SYMBOL: i64 = 32_000;
/// Numbers with a sign are kept as bytes from this on.
const ZERO: u8 = 128;
/// Parts of a step that residuals are counted in.
pub(crate) const RESIDUAL_UNIT: f32 = 127.0;

/// Inputs of the network with a sign: half its channels.
pub(crate) const SIGNED: usize = CHANNELS / 2;
/// Bytes of a position: the inputs, the symbols as they are seen, the residuals, whether it is seen at all, which of its
/// symbols are coded, and which get an offset.
pub(crate) const SEEN: usize = SIGNED;
pub(crate) const RESIDUALS: usize = SEEN + BANDS;
pub(crate) const VALID: usize = RESIDUALS + BANDS;
pub(crate) const OWN: usize = VALID + 1;
pub(crate) const OFFSET: usize = OWN + BANDS;
pub(crate) const BYTES: usize = OFFSET + BANDS;

/// A window in the steps of a random rate.
pub(crate) struct Drawn {
    /// Coefficients in steps.
    pub(crate) tile: Coefficients,
    /// How they are rounded.
    pub(crate) effort: Quantiser,
    /// Whether its levels are seen where they end.
    is_at_edge: bool,
}

impl Drawn {
    /// The symbols of all levels, finest first.
    fn symbols(&self) -> Vec<[Matrix<i64>; BANDS]> {
        static QUICK: LazyLock<FileModel> = LazyLock::new(|| Profile::Fast.model());
        if self.effort.lambda > 0.0
            && let Some(quick) = QUICK.context()
        {
            return quick.choose(&self.tile, self.effort);
        }
        let nearest = |band: &Matrix<f64>| band.map(|value| self.effort.nearest(value));
        let levels = self.tile.levels.iter();
        levels.map(|bands| bands.each_ref().map(nearest)).collect()
    }
}

/// Turns and scales a window by chance.
pub(crate) fn draw(
    heights: &[f32],
    side: usize,
    data: &DataConfig,
    rate: &RateConfig,
    random: &mut Random,
) -> Option<Drawn> {
    let turned = if data.augment {
        Orientation::draw(random).apply(heights, side)
    } else {
        heights.to_vec()
    };
    let is_at_edge = random.below(2) == 0;
    let size = if is_at_edge && side > WHOLE && random.below(2) == 0 {
        WHOLE
    } else {
        side
    };
    let [left, top] = [(); 2].map(|()| random.below(side - size + 1));
    let cut: Vec<f64> = (0..size)
        .flat_map(|row| {
            turned[(row + top) * side + left..][..size]
                .iter()
                .map(|&height| f64::from(height))
        })
        .collect();
    let (low, high) = cut.iter().fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(low, high), &height| (low.min(height), high.max(height)),
    );
    let range = (high - low).max(1e-3);
    let is_lossless = random.unit() < rate.lossless;
    let between = |random: &mut Random, low: f64, high: f64| {
        (low.ln() + (high / low).ln() * random.unit()).exp()
    };
    let mean = f64::midpoint(low, high);
    let tile = if is_lossless {
        let step = between(random, 1e-3, 5e-2).max(range / 1e5);
        let values = cut
            .iter()
            .map(|height| ((height - mean) / step).round() as i64)
            .collect();
        Coefficients::lossless(&Matrix::from_values(size, size, values)?)?
    } else {
        let step = range * between(random, rate.finest, rate.coarsest);
        let values = cut.iter().map(|height| (height - mean) / step).collect();
        Coefficients::lossy(&Matrix::from_values(size, size, values)?)?
    };
    let dead_zone = if is_lossless {
        0.0
    } else {
        rate.dead_zone * random.unit()
    };
    let effort = if !is_lossless && random.unit() < rate.chosen {
        Quantiser {
            lambda: WORTH.start + (WORTH.end - WORTH.start) * random.unit(),
            dead_zone: 0.0,
        }
    } else {
        Quantiser {
            dead_zone,
            ..Quantiser::ROUNDING
        }
    };
    Some(Drawn {
        tile,
        effort,
        is_at_edge,
    })
}

/// What one step learns from.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Windows.
    pub(crate) count: usize,
    /// [`BYTES`] of every position of every canvas.
    pub(crate) bytes: Vec<u8>,
    /// The symbols of every position.
    pub(crate) symbols: Vec<i16>,
    /// The constants of every level.
    pub(crate) constants: Vec<u8>,
    /// What a bit of each window is worth.
    pub(crate) worth: Vec<f32>,
    /// What the square error of an offset is worth.
    pub(crate) offset_worth: Vec<f32>,
    /// The part that each of its bits has in the mean of bits per pixel.
    pub(crate) share: Vec<f32>,
}

impl Batch {
    /// Room for some windows.
    pub(crate) fn new(count: usize) -> Self {
        let mut position = [ZERO; BYTES];
        position[VALID..].fill(0);
        let bytes = position.repeat(count * POSITIONS);
        Self {
            count,
            bytes,
            symbols: vec![0; count * POSITIONS * BANDS],
            constants: vec![0; count * PLACES.len() * CONSTANTS],
            worth: vec![0.0; count],
            offset_worth: vec![0.0; count],
            share: vec![0.0; count],
        }
    }

    /// Puts a window on a canvas.
    pub(crate) fn set(&mut self, window: usize, drawn: &Drawn, random: &mut Random) {
        let tile = &drawn.tile;
        let mut canvas = Canvas {
            bytes: &mut self.bytes[window * POSITIONS * BYTES..][..POSITIONS * BYTES],
            symbols: &mut self.symbols[window * POSITIONS * BANDS..][..POSITIONS * BANDS],
            bits: 0.0,
        };
        let unit = tile.transform.substeps();
        let is_lossless = tile.transform == Transform::Lossless;
        let mut low = tile.ll.map(|value| value.round() as i64 * unit);
        let mut parents: Option<[Matrix<i64>; BANDS]> = None;
        let mut pixels = 0;
        let levels = tile.levels.iter().zip(drawn.symbols());
        for (finer, (bands, symbols)) in levels.enumerate().rev() {
            if let Some(place) = PLACES.get(finer) {
                let area = crop(&low, place, drawn.is_at_edge, random);
                let scaled = (unit != SUBSTEPS).then(|| low.map(|value| value * (SUBSTEPS / unit)));
                let seen = scaled.as_ref().unwrap_or(&low);
                let planes = Planes::new(seen, area, parents.as_ref(), finer, is_lossless);
                let first = (window * PLACES.len() + finer) * CONSTANTS;
                self.constants[first..first + CONSTANTS].copy_from_slice(&planes.constants);
                canvas.set_inputs(place, &planes, area);
                canvas.set_symbols(place, area, bands, &symbols);
                // The finest is the last.
                pixels = 4 * area.width * area.height;
            }
            if finer > 0 {
                let subbands = Subbands {
                    ll: low,
                    bands: symbols
                        .each_ref()
                        .map(|band| band.map(|symbol| symbol * unit)),
                };
                low = tile.transform.inverse(subbands);
                parents = Some(symbols);
            } else {
                break;
            }
        }
        let pixels = pixels.max(1) as f64;
        let guess = canvas.bits / pixels;
        let share = 1.0 / (pixels * self.count as f64);
        // A tenth fewer bits is worth as much at any rate, so that few bits count for more each.
        let worth = share / (guess + 0.05).powf(0.6);
        self.share[window] = share as f32;
        self.worth[window] = worth as f32;
        self.offset_worth[window] = if is_lossless { 0.0 } else { worth as f32 };
    }
}

/// The part of a level that lies on the canvas: at an even offset, and at a corner where the level is to be seen to its end.
fn crop(image: &Matrix<i64>, place: &Place, is_at_edge: bool, random: &mut Random) -> Area {
    let mut axis = |size: usize| {
        let own = size.min(place.side);
        let offsets = (size - own) / 2 + 1;
        let offset = if is_at_edge {
            (offsets - 1) * random.below(2)
        } else {
            random.below(offsets)
        };
        (2 * offset, own)
    };
    let (column, width) = axis(image.width);
    let (row, height) = axis(image.height);
    Area {
        column,
        row,
        width,
        height,
    }
}

/// One window's canvas.
struct Canvas<'a> {
    bytes: &'a mut [u8],
    symbols: &'a mut [i16],
    /// A guess of the bits that it takes.
    bits: f64,
}

impl Canvas<'_> {
    fn set_inputs(&mut self, place: &Place, planes: &Planes, area: Area) {
        let margin = MARGIN as isize;
        for row in -margin..area.height as isize + margin {
            let line = place.row.wrapping_add_signed(row) * WIDTH;
            for column in -margin..area.width as isize + margin {
                if !planes.is_valid(column, row) {
                    continue;
                }
                let position = line + place.column.wrapping_add_signed(column);
                let bytes = &mut self.bytes[position * BYTES..][..BYTES];
                for (input, byte) in bytes[..SIGNED].iter_mut().enumerate() {
                    let [positive, negative] =
                        [0, 1].map(|part| planes.input(2 * input + part, column, row));
                    *byte = ZERO + positive - negative;
                }
                bytes[VALID] = 1;
            }
        }
    }

    fn set_symbols(
        &mut self,
        place: &Place,
        area: Area,
        bands: &[Matrix<f64>; BANDS],
        symbols: &[Matrix<i64>; BANDS],
    ) {
        let within = |symbols: &Matrix<i64>| {
            let rows = area.row..(area.row + area.height).min(symbols.height);
            let columns = area.column..(area.column + area.width).min(symbols.width);
            (rows, columns)
        };
        // A band without symbols takes one bit; a level without any has no offsets.
        let is_coded = symbols.each_ref().map(|symbols| {
            let (mut rows, columns) = within(symbols);
            rows.any(|row| {
                symbols.row(row)[columns.clone()]
                    .iter()
                    .any(|&symbol| symbol != 0)
            })
        });
        if !is_coded.contains(&true) {
            return;
        }
        for (band, (values, symbols)) in bands.iter().zip(symbols).enumerate() {
            let (rows, columns) = within(symbols);
            for row in rows {
                let first = (place.row + row - area.row) * WIDTH + place.column;
                let line = values.row(row)[columns.clone()].iter();
                let line = line.zip(&symbols.row(row)[columns.clone()]);
                for (position, (&value, &symbol)) in (first..).zip(line) {
                    let bytes = &mut self.bytes[position * BYTES..][..BYTES];
                    let [positive, negative] = seen_symbol(symbol);
                    bytes[SEEN + band] = ZERO + positive - negative;
                    let residual = (value - symbol as f64) as f32 * RESIDUAL_UNIT;
                    let residual = residual.round().clamp(-RESIDUAL_UNIT, RESIDUAL_UNIT);
                    bytes[RESIDUALS + band] = (f32::from(ZERO) + residual) as u8;
                    bytes[OWN + band] = is_coded[band].into();
                    bytes[OFFSET + band] = 1;
                    self.symbols[position * BANDS + band] =
                        symbol.clamp(-MAX_SYMBOL, MAX_SYMBOL) as i16;
                    if symbol != 0 {
                        self.bits += 3.5 + (symbol.unsigned_abs() as f64).log2();
                    }
                }
            }
        }
    }
}
