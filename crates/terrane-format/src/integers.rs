//! Rows of integers coded by prediction and adaptive bits: exact heights, and what a method left over.
//!
//! Each integer is predicted from its neighbours or taken as it is. What remains is coded as: is it nought, its sign, its
//! size in bits, the bit below the highest, the rest raw. The probabilities depend on how large the neighbours' remains were.
#![expect(
    clippy::cast_possible_truncation,
    reason = "signs and classes are small numbers"
)]

use crate::Result;
use crate::coder::{Bit, Decoder, Encoder};

/// How an integer is guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prediction {
    /// As 0: for what another layer left over.
    Nought,
    /// From the left, upper and upper-left neighbours by the median edge detector of JPEG-LS: for heights.
    Median,
}

const ACTIVITIES: usize = 20;
const SIZES: usize = 64;

struct Model {
    nought: [Bit; ACTIVITIES],
    sign: [Bit; 9],
    size: Vec<[Bit; SIZES]>,
    second: [[Bit; SIZES]; 2],
}

impl Model {
    fn new() -> Self {
        Self {
            nought: [Bit::default(); ACTIVITIES],
            sign: [Bit::default(); 9],
            size: vec![[Bit::default(); SIZES]; ACTIVITIES],
            second: [[Bit::default(); SIZES]; 2],
        }
    }
}

/// What was coded around the next integer: its prediction, and the probabilities to use.
struct Place {
    prediction: i64,
    activity: usize,
    signs: usize,
}

/// The last two rows of values and of remains.
struct Rows<'a> {
    width: usize,
    prediction: Prediction,
    missing: Option<&'a [bool]>,
    values: Vec<i64>,
    remains: Vec<i64>,
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
            remains: Vec::with_capacity(count),
        }
    }

    fn is_missing(&self, index: usize) -> bool {
        self.missing.is_some_and(|missing| missing[index])
    }

    fn place(&self, index: usize) -> Place {
        let (row, column) = (index / self.width, index % self.width);
        let has = |columns_back: isize, rows_back: usize| {
            let column = column.cast_signed() - columns_back;
            (rows_back <= row && column >= 0 && column < self.width.cast_signed())
                .then(|| (row - rows_back) * self.width + column.cast_unsigned())
        };
        let (west, north) = (has(1, 0), has(0, 1));
        let (north_west, north_east) = (has(1, 1), has(-1, 1));
        let size =
            |place: Option<usize>| place.map_or(0, |place| self.remains[place].unsigned_abs());
        let sum = size(west)
            .saturating_mul(2)
            .saturating_add(size(north).saturating_mul(2))
            .saturating_add(size(north_west))
            .saturating_add(size(north_east));
        let sign = |place: Option<usize>| {
            place.map_or(1, |place| (self.remains[place].signum() + 1) as usize)
        };
        let prediction = match self.prediction {
            Prediction::Nought => 0,
            Prediction::Median => {
                let at = |place: Option<usize>| place.map(|place| self.values[place]);
                match (at(west), at(north), at(north_west)) {
                    (Some(west), Some(north), Some(corner)) => {
                        median(west, north, west.wrapping_add(north).wrapping_sub(corner))
                    }
                    (Some(one), ..) | (_, Some(one), _) => one,
                    _ => 0,
                }
            }
        };
        Place {
            prediction,
            activity: activity(sum),
            signs: 3 * sign(west) + sign(north),
        }
    }

    fn push(&mut self, value: i64, remains: i64) {
        self.values.push(value);
        self.remains.push(remains);
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
    let mut model = Model::new();
    let mut rows = Rows::new(width, values.len(), prediction, missing);
    for (index, &value) in values.iter().enumerate() {
        let place = rows.place(index);
        if rows.is_missing(index) {
            rows.push(place.prediction, 0);
            continue;
        }
        let remains = value.wrapping_sub(place.prediction);
        write(encoder, &mut model, &place, remains);
        rows.push(value, remains);
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
    let mut model = Model::new();
    let mut rows = Rows::new(width, count, prediction, missing);
    for index in 0..count {
        let place = rows.place(index);
        if rows.is_missing(index) {
            rows.push(place.prediction, 0);
            continue;
        }
        let remains = read(decoder, &mut model, &place);
        rows.push(place.prediction.wrapping_add(remains), remains);
    }
    rows.values
}

fn write(encoder: &mut Encoder, model: &mut Model, place: &Place, remains: i64) {
    encoder.bit(&mut model.nought[place.activity], remains == 0);
    if remains == 0 {
        return;
    }
    encoder.bit(&mut model.sign[place.signs], remains < 0);
    // From 1: a size of n bits has n − 1 below its highest.
    let magnitude = remains.unsigned_abs();
    let top = magnitude.ilog2();
    for bits in 0..top {
        encoder.bit(&mut model.size[place.activity][bits as usize], true);
    }
    if top < 63 {
        encoder.bit(&mut model.size[place.activity][top as usize], false);
    }
    if top > 0 {
        let second = magnitude >> (top - 1) & 1 == 1;
        encoder.bit(
            &mut model.second[usize::from(place.activity > ACTIVITIES / 2)][top as usize],
            second,
        );
        encoder.raw(magnitude, top - 1);
    }
}

fn read(decoder: &mut Decoder, model: &mut Model, place: &Place) -> i64 {
    if decoder.bit(&mut model.nought[place.activity]) {
        return 0;
    }
    let is_negative = decoder.bit(&mut model.sign[place.signs]);
    let mut top = 0_u32;
    while top < 63 && decoder.bit(&mut model.size[place.activity][top as usize]) {
        top += 1;
    }
    let mut magnitude = 1_u64;
    if top > 0 {
        let second = decoder
            .bit(&mut model.second[usize::from(place.activity > ACTIVITIES / 2)][top as usize]);
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
        for prediction in [Prediction::Nought, Prediction::Median] {
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
    fn a_plane_costs_next_to_nothing_and_noise_what_it_tells() {
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
        let bytes = round_trip(&noise, 256, Prediction::Nought, None);
        assert!(bytes as f64 <= 32_768.0 * 1.06, "{bytes}");
    }
}
