//! A model's file made smaller for the way to a browser, and made whole again, byte for byte.
//!
//! Most of a model are its tables, and these lie near the shapes that they started from: what differs is coded, as the
//! integers of a file are. Weights are coded likewise, as they are.
//!
//! ```text
//! "trnmodel"  8 bytes
//! checksum    CRC-32C of the safetensors file, u32
//! header      length u32, then so many bytes: those of the safetensors file before its arrays
//! arrays      number u16; of each its kind u8, the length of its rows u16 and its numbers u32
//! numbers     of all arrays, one stream
//! ```

use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensorError, SafeTensors};
use terrane_format::coder::{Decoder, Encoder};
use terrane_format::crc32c;
use terrane_format::integers::{Prediction, decode_from, encode_to};

use crate::model::{CENTRES, FREQUENCIES, RADII, tables_of};
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"trnmodel";
/// Numbers of a model at most, sixteen times those of the largest of ours. A few bytes may stand for so many, and each takes 16 for a moment.
const MAX_NUMBERS: usize = 1 << 23;
/// Numbers of a row of frequencies: a table, its middle in the middle.
const FREQUENCY_ROW: usize = 32;

/// What an array holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Weights,
    Biases,
    Centres,
    Radii,
    Frequencies,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Weights,
        Self::Biases,
        Self::Centres,
        Self::Radii,
        Self::Frequencies,
    ];

    fn of(name: &str, dtype: Dtype) -> Option<Self> {
        match (name, dtype) {
            (CENTRES, Dtype::I32) => Some(Self::Centres),
            (RADII, Dtype::U8) => Some(Self::Radii),
            (FREQUENCIES, Dtype::U16) => Some(Self::Frequencies),
            (_, Dtype::I8) => Some(Self::Weights),
            (_, Dtype::I32) => Some(Self::Biases),
            _ => None,
        }
    }

    /// Bytes of a number.
    fn size(self) -> usize {
        match self {
            Self::Weights | Self::Radii => 1,
            Self::Frequencies => 2,
            Self::Biases | Self::Centres => 4,
        }
    }

    fn read(self, bytes: &[u8]) -> i64 {
        match (self, bytes) {
            (Self::Weights, &[byte]) => byte.cast_signed().into(),
            (_, &[byte]) => byte.into(),
            (_, &[a, b]) => u16::from_le_bytes([a, b]).into(),
            (_, &[a, b, c, d]) => i32::from_le_bytes([a, b, c, d]).into(),
            _ => 0,
        }
    }
}

/// One array: its kind, the length of its rows, and its numbers.
struct Array {
    kind: Kind,
    row: usize,
    count: usize,
}

/// What tables are before anything was counted.
struct Prior {
    centres: Vec<i64>,
    radii: Vec<i64>,
    frequencies: Vec<i64>,
    /// Where in its row each frequency stands.
    places: Vec<usize>,
}

impl Prior {
    fn new() -> Self {
        let (centres, radii, frequencies) = tables_of(&[]);
        let row = |(table, &radius): (usize, &u8)| {
            let start = table * FREQUENCY_ROW + FREQUENCY_ROW / 2 - usize::from(radius) - 1;
            start..start + 2 * usize::from(radius) + 3
        };
        Self {
            places: radii.iter().enumerate().flat_map(row).collect(),
            centres: centres.into_iter().map(i64::from).collect(),
            radii: radii.into_iter().map(i64::from).collect(),
            frequencies: frequencies.into_iter().map(i64::from).collect(),
        }
    }

    /// What numbers of a kind are expected to be; `None` where nothing is.
    fn of(&self, kind: Kind) -> Option<&[i64]> {
        match kind {
            Kind::Centres => Some(&self.centres),
            Kind::Radii => Some(&self.radii),
            Kind::Frequencies => Some(&self.frequencies),
            Kind::Weights | Kind::Biases => None,
        }
    }

    /// Which places of the rows of frequencies hold none.
    fn gaps(&self) -> Vec<bool> {
        let mut gaps = vec![true; self.radii.len() * FREQUENCY_ROW];
        for &place in &self.places {
            gaps[place] = false;
        }
        gaps
    }
}

/// A model's file in the small form.
pub fn pack(bytes: &[u8]) -> Result<Vec<u8>> {
    let damaged = |source: SafeTensorError| Error::Safetensors {
        reason: source.to_string(),
    };
    let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
    let start = bytes.len()
        - file
            .iter()
            .map(|(_, view)| view.data().len())
            .sum::<usize>();
    let mut arrays: Vec<_> = file.iter().collect();
    arrays.sort_by_key(|(_, view)| view.data().as_ptr());
    let numbers = |view: &TensorView| view.shape().iter().product::<usize>();
    if arrays.iter().map(|(_, view)| numbers(view)).sum::<usize>() > MAX_NUMBERS {
        return Err(Error::Missing {
            what: format!("packed form of more than {MAX_NUMBERS} numbers"),
        });
    }
    let prior = Prior::new();
    let mut head = MAGIC.to_vec();
    head.extend(crc32c(bytes).to_le_bytes());
    head.extend((start as u32).to_le_bytes());
    head.extend(&bytes[..start]);
    head.extend((arrays.len() as u16).to_le_bytes());
    let mut encoder = Encoder::default();
    for (name, view) in arrays {
        let unknown = || Error::Missing {
            what: format!("packed form of the array {name}"),
        };
        let kind = Kind::of(name, view.dtype()).ok_or_else(unknown)?;
        let numbers = view.data().chunks_exact(kind.size());
        let mut numbers: Vec<i64> = numbers.map(|number| kind.read(number)).collect();
        let row = view.shape().last().copied().unwrap_or(1).max(1);
        let row = u16::try_from(row).unwrap_or(1);
        head.push(kind as u8);
        head.extend(row.to_le_bytes());
        head.extend((numbers.len() as u32).to_le_bytes());
        if let Some(expected) = prior.of(kind) {
            if expected.len() != numbers.len() {
                return Err(unknown());
            }
            for (number, expected) in numbers.iter_mut().zip(expected) {
                *number -= expected;
            }
        }
        if kind == Kind::Frequencies {
            let gaps = prior.gaps();
            let mut rows = vec![0; gaps.len()];
            for (&place, number) in prior.places.iter().zip(numbers) {
                rows[place] = number;
            }
            encode_to(
                &mut encoder,
                &rows,
                FREQUENCY_ROW,
                Prediction::Zero,
                Some(&gaps),
            );
        } else {
            encode_to(&mut encoder, &numbers, row.into(), Prediction::Zero, None);
        }
    }
    head.extend(encoder.finish());
    Ok(head)
}

/// The model's file of bytes that may be its small form; others are returned as they are.
pub fn unpack(bytes: Vec<u8>) -> Result<Vec<u8>> {
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Ok(bytes);
    };
    read(rest).ok_or_else(|| Error::Missing {
        what: "whole packed form".into(),
    })
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(taken)
}

fn read(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let checksum = u32::from_le_bytes(*take(&mut bytes)?);
    let length = u32::from_le_bytes(*take(&mut bytes)?) as usize;
    let (header, rest) = bytes.split_at_checked(length)?;
    bytes = rest;
    let mut whole = header.to_vec();
    let mut arrays = Vec::new();
    for _ in 0..u16::from_le_bytes(*take(&mut bytes)?) {
        let [kind] = *take(&mut bytes)?;
        let row = u16::from_le_bytes(*take(&mut bytes)?).into();
        let count = u32::from_le_bytes(*take(&mut bytes)?) as usize;
        let kind = *Kind::ALL.get(usize::from(kind))?;
        arrays.push(Array { kind, row, count });
    }
    let total = arrays
        .iter()
        .map(|array| array.count)
        .try_fold(0, usize::checked_add);
    if total? > MAX_NUMBERS || arrays.iter().any(|array| array.row == 0) {
        return None;
    }
    let prior = Prior::new();
    let mut decoder = Decoder::new(bytes);
    for Array { kind, row, count } in arrays {
        let expected = prior.of(kind);
        if expected.is_some_and(|expected| expected.len() != count) {
            return None;
        }
        let mut numbers = if kind == Kind::Frequencies {
            let gaps = prior.gaps();
            let rows = decode_from(
                &mut decoder,
                FREQUENCY_ROW,
                gaps.len(),
                Prediction::Zero,
                Some(&gaps),
            );
            prior.places.iter().map(|&place| rows[place]).collect()
        } else {
            decode_from(&mut decoder, row, count, Prediction::Zero, None)
        };
        for (number, expected) in numbers.iter_mut().zip(expected.unwrap_or(&[])) {
            *number = number.wrapping_add(*expected);
        }
        // Little-endian: the first bytes are the lowest.
        whole.extend(
            numbers
                .iter()
                .flat_map(|number| number.to_le_bytes().into_iter().take(kind.size())),
        );
    }
    decoder.end().ok()?;
    // A stream that is cut off can end as a whole one does.
    (crc32c(&whole) == checksum).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &[u8] = include_bytes!("../../../conformance/context.safetensors");

    #[test]
    fn a_model_comes_back_byte_for_byte() {
        let packed = pack(MODEL).unwrap();
        assert!(
            packed.len() < MODEL.len() / 2,
            "{} of {}",
            packed.len(),
            MODEL.len()
        );
        assert_eq!(unpack(packed).unwrap(), MODEL);
        // What is not packed stays.
        assert_eq!(unpack(MODEL.to_vec()).unwrap(), MODEL);
        assert!(pack(b"no model").is_err());
    }

    #[test]
    fn a_few_bytes_do_not_stand_for_much_memory() {
        // One array of weights, of so many numbers.
        let of = |count: usize| {
            let mut bytes = [MAGIC.as_slice(), &[0; 8], &[1, 0], &[0, 0, 1]].concat();
            bytes.extend((count as u32).to_le_bytes());
            bytes.extend([0; 24]);
            bytes
        };
        let clock = std::time::Instant::now();
        for count in [MAX_NUMBERS + 1, u32::MAX as usize] {
            assert!(unpack(of(count)).is_err());
        }
        assert!(clock.elapsed().as_secs() < 5, "refused before it is read");
    }

    #[test]
    fn damage_is_an_error() {
        let packed = pack(MODEL).unwrap();
        for length in (0..packed.len()).step_by(packed.len() / 40) {
            let cut = unpack(packed[..length].to_vec());
            assert!(length < MAGIC.len() || cut.is_err(), "{length}");
        }
        let head = packed.len() / 3;
        for at in (MAGIC.len()..head).step_by(97).chain(head..head + 20) {
            let mut broken = packed.clone();
            broken[at] ^= 0x81;
            assert!(unpack(broken).is_err(), "{at}");
        }
    }
}
