//! Rows of integers coded by prediction and adaptive bits: exact heights, and the residual of another layer.
//!
//! Each integer is predicted from its neighbours or taken as it is. Its residual is coded as: is it zero, its sign, its
//! size in bits, the bit below the highest, the rest raw. The contexts are classes of the neighbours' residuals.
#![expect(
    clippy::cast_possible_truncation,
    reason = "signs and classes are small numbers"
)]

use crate::Result;
use crate::coder::{AdaptiveBit, Decoder, Encoder};

/// How an integer is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prediction {
    /// As 0: for the residual of another layer.
    Zero,
    /// From the left, upper and upper-left neighbours by the median edge detector of JPEG-LS: for heights.
    Median,
}

const ACTIVITIES: usize = 20;
const SIZES: usize = 64;

/// The adaptive bits of a stream, by context.
struct Contexts {
    zero: [AdaptiveBit; ACTIVITIES],
    sign: [AdaptiveBit; 9],
    size: Vec<[AdaptiveBit; SIZES]>,
    second: [[AdaptiveBit; SIZES]; 2],
}

impl Contexts {
    fn new() -> Self {
        Self {
            zero: [AdaptiveBit::default(); ACTIVITIES],
            sign: [AdaptiveBit::default(); 9],
            size: vec![[AdaptiveBit::default(); SIZES]; ACTIVITIES],
            second: [[AdaptiveBit::default(); SIZES]; 2],
        }
    }
}

/// What is known around the next integer: its prediction, and the contexts to use.
struct Neighbourhood {
    prediction: i64,
    activity: usize,
    signs: usize,
}

/// The values and residuals so far.
struct Rows<'a> {
    width: usize,
    prediction: Prediction,
    missing: Option<&'a [bool]>,
    values: Vec<i64>,
    residuals: Vec<i64>,
}

impl<'a> Rows<'a> {
    fn new(
        width: usize,
        count: usize,
        prediction: Prediction,
        missing: Option<&'a [bool]>,
    ) -> Self {
        Self {
            width,
            prediction,
            missing,
            values: Vec::with_capacity(count),
            residuals: Vec::with_capacity(count),
        }
    }

    fn is_missing(&self, index: usize) -> bool {
        self.missing.is_some_and(|missing| missing[index])
    }

    fn neighbourhood(&self, index: usize) -> Neighbourhood {
        let (row, column) = (index / self.width, index % self.width);
        let has = |columns_back: isize, rows_back: usize| {
            let column = column.cast_signed() - columns_back;
            (rows_back <= row && column >= 0 && column < self.width.cast_signed())
                .then(|| (row - rows_back) * self.width + column.cast_unsigned())
        };
        let (west, north) = (has(1, 0), has(0, 1));
        let (north_west, north_east) = (has(1, 1), has(-1, 1));
        let size = |at: Option<usize>| at.map_or(0, |at| self.residuals[at].unsigned_abs());
        let sum = size(west)
            .saturating_mul(2)
            .saturating_add(size(north).saturating_mul(2))
            .saturating_add(size(north_west))
            .saturating_add(size(north_east));
        let sign =
            |at: Option<usize>| at.map_or(1, |at| (self.residuals[at].signum() + 1) as usize);
        let prediction = match self.prediction {
            Prediction::Zero => 0,
            Prediction::Median => {
                let value = |at: Option<usize>| at.map(|at| self.values[at]);
                match (value(west), value(north), value(north_west)) {
                    (Some(west), Some(north), Some(corner)) => {
                        median(west, north, west.wrapping_add(north).wrapping_sub(corner))
                    }
                    (Some(one), ..) | (_, Some(one), _) => one,
                    _ => 0,
                }
            }
        };
        Neighbourhood {
            prediction,
            activity: activity(sum),
            signs: 3 * sign(west) + sign(north),
        }
    }

    fn push(&mut self, value: i64, residual: i64) {
        self.values.push(value);
        self.residuals.push(residual);
    }
}

fn median(a: i64, b: i64, c: i64) -> i64 {
    a.max(b).min(a.min(b).max(c))
}

/// Classes of the neighbours' size: 0, 1, 2, …, 7 and then two to each doubling.
fn activity(sum: u64) -> usize {
    let class = if sum < 8 {
        sum
    } else {
        let top = u64::from(sum.ilog2());
        2 + 2 * top + (sum >> (top - 1) & 1)
    };
    (class as usize).min(ACTIVITIES - 1)
}

/// Codes integers row by row; those of missing pixels are left out.
pub fn encode(
    values: &[i64],
    width: usize,
    prediction: Prediction,
    missing: Option<&[bool]>,
) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encode_to(&mut encoder, values, width, prediction, missing);
    encoder.finish()
}

/// As [`encode`], into a stream that holds more.
pub fn encode_to(
    encoder: &mut Encoder,
    values: &[i64],
    width: usize,
    prediction: Prediction,
    missing: Option<&[bool]>,
) {
    let mut contexts = Contexts::new();
    let mut rows = Rows::new(width, values.len(), prediction, missing);
    for (index, &value) in values.iter().enumerate() {
        let around = rows.neighbourhood(index);
        if rows.is_missing(index) {
            rows.push(around.prediction, 0);
            continue;
        }
        let residual = value.wrapping_sub(around.prediction);
        write(encoder, &mut contexts, &around, residual);
        rows.push(value, residual);
    }
}

/// Reads `count` integers; a missing pixel has its prediction.
pub fn decode(
    bytes: &[u8],
    width: usize,
    count: usize,
    prediction: Prediction,
    missing: Option<&[bool]>,
) -> Result<Vec<i64>> {
    let mut decoder = Decoder::new(bytes);
    let values = decode_from(&mut decoder, width, count, prediction, missing);
    decoder.end()?;
    Ok(values)
}

/// As [`decode`], from a stream that holds more.
pub fn decode_from(
    decoder: &mut Decoder,
    width: usize,
    count: usize,
    prediction: Prediction,
    missing: Option<&[bool]>,
) -> Vec<i64> {
    let mut contexts = Contexts::new();
    let mut rows = Rows::new(width, count, prediction, missing);
    for index in 0..count {
        let around = rows.neighbourhood(index);
        if rows.is_missing(index) {
            rows.push(around.prediction, 0);
            continue;
        }
        let residual = read(decoder, &mut contexts, &around);
        rows.push(around.prediction.wrapping_add(residual), residual);
    }
    rows.values
}

fn write(encoder: &mut Encoder, contexts: &mut Contexts, around: &Neighbourhood, residual: i64) {
    encoder.bit(&mut contexts.zero[around.activity], residual == 0);
    if residual == 0 {
        return;
    }
    encoder.bit(&mut contexts.sign[around.signs], residual < 0);
    // From 1: a size of n bits has n − 1 below its highest.
    let magnitude = residual.unsigned_abs();
    let top = magnitude.ilog2();
    for bits in 0..top {
        encoder.bit(&mut contexts.size[around.activity][bits as usize], true);
    }
    if top < 63 {
        encoder.bit(&mut contexts.size[around.activity][top as usize], false);
    }
    if top > 0 {
        let second = magnitude >> (top - 1) & 1 == 1;
        encoder.bit(
            &mut contexts.second[usize::from(around.activity > ACTIVITIES / 2)][top as usize],
            second,
        );
        encoder.raw(magnitude, top - 1);
    }
}

fn read(decoder: &mut Decoder, contexts: &mut Contexts, around: &Neighbourhood) -> i64 {
    if decoder.bit(&mut contexts.zero[around.activity]) {
        return 0;
    }
    let is_negative = decoder.bit(&mut contexts.sign[around.signs]);
    let mut top = 0_u32;
    while top < 63 && decoder.bit(&mut contexts.size[around.activity][top as usize]) {
        top += 1;
    }
    let mut magnitude = 1_u64;
    if top > 0 {
        let second = decoder
            .bit(&mut contexts.second[usize::from(around.activity > ACTIVITIES / 2)][top as usize]);
        magnitude = magnitude << 1 | u64::from(second);
        magnitude = magnitude << (top - 1) | decoder.raw(top - 1);
    }
    let magnitude = magnitude.cast_signed();
    if is_negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(
        values: &[i64],
        width: usize,
        prediction: Prediction,
        missing: Option<&[bool]>,
    ) -> usize {
        let bytes = encode(values, width, prediction, missing);
        let back = decode(&bytes, width, values.len(), prediction, missing).unwrap();
        for (index, (a, b)) in values.iter().zip(&back).enumerate() {
            assert!(
                a == b || missing.is_some_and(|missing| missing[index]),
                "{index}: {a} {b}"
            );
        }
        bytes.len()
    }

    #[test]
    fn all_integers_come_back() {
        let extremes = [
            0,
            1,
            -1,
            i64::MAX,
            i64::MIN,
            i64::MIN + 1,
            255,
            -256,
            1 << 40,
            7,
        ];
        for prediction in [Prediction::Zero, Prediction::Median] {
            round_trip(&extremes, 5, prediction, None);
            round_trip(&extremes, 1, prediction, None);
            round_trip(
                &extremes,
                10,
                prediction,
                Some(&[
                    true, false, true, false, false, true, false, false, true, true,
                ]),
            );
        }
    }

    #[test]
    fn a_plane_costs_next_to_nothing_and_noise_its_entropy() {
        let plane: Vec<i64> = (0..256 * 256)
            .map(|index| 5 * (index % 256) - 3 * (index / 256))
            .collect();
        assert!(round_trip(&plane, 256, Prediction::Median, None) < 400);
        let mut state = 88_172_645_463_325_252_u64;
        let noise: Vec<i64> = (0..65_536)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 60).cast_signed() - 8
            })
            .collect();
        // Four bits each, and what −8 without an 8 costs.
        let bytes = round_trip(&noise, 256, Prediction::Zero, None);
        assert!(bytes as f64 <= 32_768.0 * 1.06, "{bytes}");
    }
}
