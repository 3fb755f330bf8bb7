//! A tile as integers of a step, or as the bits of its heights: always possible.

use terrane_format::integers::Prediction;
use terrane_format::record::{IntegerScale, Integers, Layer, Record};

use super::encoder::{Candidate, FLOAT_MARGIN, Rate, TileEncoder};
use super::heights::{TileHeights, rounded};
use super::residual::{step_for_bytes, step_for_rmse};
use crate::fill::fill;

/// Integers beyond this do not count all steps as 64-bit floats.
const MAX_STEPS: f64 = 2_251_799_813_685_248.0;

/// Bytes of origin and step.
pub(crate) const SCALE_BYTES: f64 = 16.0;

impl TileEncoder {
    /// The coarsest step of integers that gives the rate.
    pub(crate) fn integer_step(&self, tile: &TileHeights, rate: Rate) -> f64 {
        let max = tile.max_abs();
        let exact = || tile.exact_step(self.is_f32);
        match rate {
            Rate::MaxError(bound) => {
                let step_m = 2.0 * (bound - FLOAT_MARGIN * (max + bound));
                // A source that is coarser than its bound is kept as it is.
                step_m.max(exact())
            }
            Rate::Rmse(target) => step_for_rmse(target, |step| tile.rmse(&tile.heights, step))
                .unwrap_or(max.max(1.0))
                .max(exact()),
            Rate::Bpp(target) => {
                // Where there is room for all heights as they are, nothing is lost: a finer step only takes more.
                let all = target * tile.heights.len() as f64 / 8.0;
                let own = exact();
                let is_room = |step| self.encode_integers(tile, step).bytes(tile) as f64 <= all;
                if own > 0.0 && is_room(own) {
                    return own;
                }
                // All but the integers, whatever their step.
                let other = self.encode_integers(tile, f64::MAX).record(tile, None);
                let other = other.map_or(0, |record| record.len() as u64 - record.parts().layer);
                let budget = all - other as f64 - SCALE_BYTES;
                step_for_bytes(tile, &tile.heights, Prediction::Median, (budget, max))
                    .unwrap_or(max.max(1.0))
            }
            Rate::Step(step_m) => step_m,
            Rate::Lossless if tile.has_negative_zero() => 0.0,
            Rate::Tokens | Rate::Lossless | Rate::Overview { .. } => exact(),
        }
    }

    /// Heights as integers of a step, or as their bits where there is none.
    pub(crate) fn encode_integers(&self, tile: &TileHeights, step_m: f64) -> Candidate {
        let is_countable = step_m > 0.0 && tile.max_abs() / step_m < MAX_STEPS;
        let integers = if is_countable {
            Integers {
                scale: IntegerScale::Step {
                    origin_m: 0.0,
                    step_m,
                },
                values: rounded(&tile.heights, step_m),
            }
        } else {
            as_bits(tile)
        };
        let mut heights = metres(&integers);
        if self.rate == Rate::Lossless {
            self.round_to_source(&mut heights);
        }
        let mut candidate = Candidate::new(Layer::Integers(integers), None, heights);
        candidate.flatten(tile);
        candidate
    }

    /// A tile as integers of the step that gives the rate, or without loss where that is no longer: rounding to another
    /// step adds noise.
    pub(super) fn shortest_integers(&self, tile: &TileHeights, rate: Rate) -> Candidate {
        let step_m = self.integer_step(tile, rate);
        let mut best = self.encode_integers(tile, step_m);
        let own = self.integer_step(tile, Rate::Lossless);
        if own != step_m && (own > 0.0 || step_m < 4.0 * self.float_step(tile.max_abs())) {
            let exact = self.encode_integers(tile, own);
            if exact.bytes(tile) <= best.bytes(tile) {
                best = exact;
            }
        }
        match rate {
            // Below what decimals of 32 bits differ from their floats.
            Rate::MaxError(bound) if tile.measure(&best.heights).max_error_m > bound => {
                self.encode_integers(tile, 0.0)
            }
            _ => best,
        }
    }

    /// Metres from a height to the next float of the source: where steps are much longer, bits are too.
    pub(crate) fn float_step(&self, height: f64) -> f64 {
        let part = if self.is_f32 {
            f64::from(f32::EPSILON)
        } else {
            f64::EPSILON
        };
        height * part
    }

    /// Steps of integers that are worth a try: the coarsest, and the source's own where it is hardly finer.
    pub(crate) fn integer_steps(&self, source: &TileHeights, rate: Rate) -> Vec<f64> {
        let step_m = self.integer_step(source, rate);
        let own = self.integer_step(source, Rate::Lossless);
        let mut steps = vec![step_m];
        if own < step_m && own >= step_m / 2.0 {
            steps.push(own);
        }
        steps
    }

    /// A tile whose heights are all the same.
    pub(crate) fn encode_flat(&self, tile: &TileHeights, height: f64) -> Candidate {
        let height = self.flat_height(height);
        let integers = if tile.has_negative_zero() {
            as_bits(tile)
        } else {
            Integers {
                scale: IntegerScale::Step {
                    origin_m: height,
                    step_m: 1.0,
                },
                values: vec![0; tile.heights.len()],
            }
        };
        let heights = vec![height; tile.heights.len()];
        Candidate::new(Layer::Integers(integers), None, heights)
    }

    /// Rounds heights that lost nothing to the source's floats.
    pub(crate) fn round_to_source(&self, heights: &mut [f64]) {
        if self.is_f32 {
            round_to_f32(heights);
        }
    }
}

/// Heights from the integers of a record; those of missing pixels continue their neighbours.
pub(super) fn decode(integers: &Integers, record: &Record, width: usize, as_f32: bool) -> Vec<f64> {
    let mut heights = metres(integers);
    if let Some(flats) = &record.flats {
        flats.apply(&mut heights);
    }
    if as_f32 {
        round_to_f32(&mut heights);
    }
    if let Some(missing) = &record.missing {
        // Their integers mean nothing, and a surface beside them should not fall to them.
        for (height, _) in heights
            .iter_mut()
            .zip(missing)
            .filter(|(_, missing)| **missing)
        {
            *height = f64::NAN;
        }
        fill(&mut heights, width);
    }
    heights
}

pub(crate) fn round_to_f32(heights: &mut [f64]) {
    for height in heights {
        *height = f64::from(*height as f32);
    }
}

/// The bits of heights as integers in the order of the heights.
fn as_bits(tile: &TileHeights) -> Integers {
    let is_f32 = tile
        .valid(&tile.heights)
        .all(|height| f64::from(height as f32) == height);
    let values = tile
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
        scale: if is_f32 {
            IntegerScale::F32Bits
        } else {
            IntegerScale::F64Bits
        },
        values: values.collect(),
    }
}

/// Bits of a float as an integer that grows with it: a negative one counts down from −1.
fn ordered(bits: i64, magnitude: i64) -> i64 {
    if bits < 0 { !(bits & magnitude) } else { bits }
}

fn metres(integers: &Integers) -> Vec<f64> {
    let values = integers.values.iter();
    match integers.scale {
        IntegerScale::Step { origin_m, step_m } => values
            .map(|&value| origin_m + value as f64 * step_m)
            .collect(),
        IntegerScale::F32Bits => values
            .map(|&value| {
                let bits = if value < 0 {
                    (!value as u32) | 1 << 31
                } else {
                    value as u32
                };
                f64::from(f32::from_bits(bits))
            })
            .collect(),
        IntegerScale::F64Bits => values
            .map(|&value| {
                f64::from_bits(if value < 0 {
                    (!value).cast_unsigned() | 1 << 63
                } else {
                    value.cast_unsigned()
                })
            })
            .collect(),
    }
}
