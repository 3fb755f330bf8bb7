//! One tile in the file: what is known of it, its mask, its layer of symbols, and the residual of that layer.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a step that may lose something was rounded to 32 bits when it was chosen"
)]

use crc32c::{crc32c, crc32c_append};

use crate::bytes::{Cursor, Put};
use crate::integers::{self, Prediction};
use crate::{Error, Result, Stored, Window, mask};

/// What is known of the valid heights of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TileStatistics {
    /// Root of the mean square error.
    pub rmse_m: f32,
    /// Largest error.
    pub max_error_m: f32,
    /// Lowest decoded height.
    pub lowest_m: f32,
    /// Highest.
    pub highest_m: f32,
}

/// What an integer means as a height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IntegerScale {
    /// `origin_m + step_m · integer`.
    Step {
        /// The height of 0.
        origin_m: f64,
        /// Metres per unit, above 0.
        step_m: f64,
    },
    /// The bits of a 32-bit float, in the order of the heights.
    F32Bits,
    /// The bits of a 64-bit float, in the order of the heights.
    F64Bits,
}

impl IntegerScale {
    /// Origin and step as they are stored: steps that no grid has stand for bits.
    fn to_stored(self) -> [f64; 2] {
        match self {
            Self::Step { origin_m, step_m } => [origin_m, step_m],
            Self::F32Bits => [0.0, 0.0],
            Self::F64Bits => [0.0, -1.0],
        }
    }

    /// The scale of a stored origin and step; `None` where they have no meaning.
    fn from_stored([origin_m, step_m]: [f64; 2]) -> Option<Self> {
        if !origin_m.is_finite() {
            return None;
        }
        if step_m == 0.0 {
            Some(Self::F32Bits)
        } else if step_m == -1.0 {
            Some(Self::F64Bits)
        } else {
            let is_step = step_m > 0.0 && step_m.is_finite();
            is_step.then_some(Self::Step { origin_m, step_m })
        }
    }
}

/// The heights of a tile as integers.
#[derive(Debug, Clone, PartialEq)]
pub struct Integers {
    /// What they mean.
    pub scale: IntegerScale,
    /// One integer per pixel, row by row; that of a missing pixel has no meaning.
    pub values: Vec<i64>,
}

/// The heights of a tile as wavelet coefficients, which only a context model can read.
#[derive(Debug, Clone, PartialEq)]
pub struct WaveletLayer {
    /// Whether every height comes back as an integer number of steps.
    pub is_lossless: bool,
    /// Metres per step; a 32-bit float where something may be lost.
    pub step_m: f64,
    /// Steps that are added to all heights.
    pub offset: i64,
    /// The coded coefficients.
    pub bytes: Vec<u8>,
}

/// What the method made of the tile.
#[derive(Debug, Clone, PartialEq)]
pub enum Layer {
    /// Heights as integers.
    Integers(Integers),
    /// Coded tokens, which only the model's tables can read.
    Tokens(Vec<u8>),
    /// Wavelet coefficients.
    Wavelet(WaveletLayer),
}

/// The residual of the layer, in steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Residual {
    /// Metres per unit.
    pub step_m: f64,
    /// One integer per pixel, row by row; 0 where a pixel is missing.
    pub values: Vec<i64>,
}

/// A tile with data.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// What is known of it.
    pub statistics: TileStatistics,
    /// Pixels without data, where there are some.
    pub missing: Option<Vec<bool>>,
    /// The method's part.
    pub layer: Layer,
    /// The residual of that part.
    pub residual: Option<Residual>,
}

const KIND_INTEGERS: u8 = 0;
const KIND_TOKENS: u8 = 1;
const KIND_WAVELET: u8 = 2;
const HAS_MASK: u8 = 1;
const HAS_RESIDUAL: u8 = 2;
/// Bytes of the checksum before a record.
const CRC: usize = 4;
/// Where the statistics lie: behind the checksum, the kind and the flags.
const STATISTICS_OFFSET: usize = CRC + 2;
/// Bytes of the statistics.
const STATISTICS: usize = 4 * 4;
/// Where a record says its kind.
pub(crate) const KIND_OFFSET: u64 = CRC as u64;

/// A record whose symbols are coded, without its statistics and its checksum.
#[derive(Debug, Clone)]
pub struct CodedRecord(Vec<u8>);

impl CodedRecord {
    /// Its bytes in a file.
    #[expect(clippy::len_without_is_empty, reason = "no record is empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The record as it is written; its checksum covers its number too, so that a tile at another's index is noticed.
    pub fn seal(self, statistics: TileStatistics, number: u64) -> Vec<u8> {
        let Self(mut bytes) = self;
        let s = &statistics;
        let values = [s.rmse_m, s.max_error_m, s.lowest_m, s.highest_m];
        for (slot, value) in bytes[STATISTICS_OFFSET..].chunks_exact_mut(4).zip(values) {
            slot.copy_from_slice(&value.to_le_bytes());
        }
        let crc = checksum(&bytes, number);
        bytes[..CRC].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

impl Layer {
    /// What it stores.
    pub fn stored(&self) -> Stored {
        match self {
            Self::Integers(_) => Stored::Integers,
            Self::Tokens(_) => Stored::Tokens,
            Self::Wavelet(_) => Stored::Wavelet,
        }
    }
}

impl Record {
    /// The record as bytes, as [`CodedRecord::seal`] makes them.
    pub fn to_bytes(&self, number: u64, width: usize) -> Vec<u8> {
        self.code(width).seal(self.statistics, number)
    }

    /// Codes everything but the statistics, which are known only when a candidate has been chosen.
    pub fn code(&self, width: usize) -> CodedRecord {
        let missing = self.missing.as_deref();
        let (kind, layer) = match &self.layer {
            Layer::Integers(integers) => {
                let mut bytes = Vec::new();
                for value in integers.scale.to_stored() {
                    bytes.extend(value.to_le_bytes());
                }
                bytes.extend(integers::encode(
                    &integers.values,
                    width,
                    Prediction::Median,
                    missing,
                ));
                (KIND_INTEGERS, bytes)
            }
            Layer::Tokens(bytes) => (KIND_TOKENS, bytes.clone()),
            Layer::Wavelet(wavelet) => {
                let mut bytes = vec![u8::from(wavelet.is_lossless)];
                if wavelet.is_lossless {
                    bytes.extend(wavelet.step_m.to_le_bytes());
                } else {
                    bytes.extend((wavelet.step_m as f32).to_le_bytes());
                }
                bytes.put_varint(zigzag(wavelet.offset));
                bytes.extend_from_slice(&wavelet.bytes);
                (KIND_WAVELET, bytes)
            }
        };
        let mut bytes = vec![0; CRC];
        bytes.push(kind);
        bytes.push(
            u8::from(missing.is_some()) * HAS_MASK
                + u8::from(self.residual.is_some()) * HAS_RESIDUAL,
        );
        bytes.extend([0; STATISTICS]);
        if let Some(missing) = missing {
            bytes.put_block(&mask::encode(missing, width));
        }
        bytes.put_block(&layer);
        if let Some(residual) = &self.residual {
            bytes.extend(residual.step_m.to_le_bytes());
            bytes.extend(integers::encode(
                &residual.values,
                width,
                Prediction::Zero,
                missing,
            ));
        }
        CodedRecord(bytes)
    }

    /// Reads the record of a tile that covers a window.
    pub fn parse(bytes: &[u8], number: u64, window: Window) -> Result<Self> {
        check(bytes, number)?;
        let mut cursor = Cursor::new(bytes, "tile");
        cursor.take(CRC)?;
        let kind = cursor.u8()?;
        let flags = cursor.u8()?;
        if flags & !(HAS_MASK | HAS_RESIDUAL) != 0 {
            return Err(Error::Unsupported {
                what: "tile flags",
                value: flags.to_string(),
            });
        }
        let [rmse_m, max_error_m, lowest_m, highest_m] =
            [cursor.f32()?, cursor.f32()?, cursor.f32()?, cursor.f32()?];
        let (width, height) = (window.width, window.height);
        let missing = match flags & HAS_MASK {
            0 => None,
            _ => Some(mask::decode(cursor.block()?, width, height)?),
        };
        let coded = cursor.block()?;
        let layer = match kind {
            KIND_INTEGERS => {
                let mut cursor = Cursor::new(coded, "tile's integers");
                let scale = IntegerScale::from_stored([cursor.f64()?, cursor.f64()?])
                    .ok_or_else(|| cursor.malformed("its step or origin is no number of metres"))?;
                let values = integers::decode(
                    cursor.rest(),
                    width,
                    width * height,
                    Prediction::Median,
                    missing.as_deref(),
                )?;
                Layer::Integers(Integers { scale, values })
            }
            KIND_TOKENS => Layer::Tokens(coded.to_vec()),
            KIND_WAVELET => Layer::Wavelet(parse_wavelet(coded)?),
            other => {
                return Err(Error::Unsupported {
                    what: "kind of tile",
                    value: other.to_string(),
                });
            }
        };
        let residual = if flags & HAS_RESIDUAL == 0 {
            None
        } else {
            let step_m = cursor.f64()?;
            if !(step_m > 0.0 && step_m.is_finite()) {
                return Err(cursor.malformed("the step of its residual is no number of metres"));
            }
            let is_lossy = match &layer {
                Layer::Integers(_) => false,
                Layer::Tokens(_) => true,
                Layer::Wavelet(wavelet) => !wavelet.is_lossless,
            };
            if !is_lossy {
                return Err(cursor.malformed("its layer leaves no residual"));
            }
            let coded = cursor.rest();
            let values = integers::decode(
                coded,
                width,
                width * height,
                Prediction::Zero,
                missing.as_deref(),
            )?;
            Some(Residual { step_m, values })
        };
        cursor.end()?;
        Ok(Self {
            statistics: TileStatistics {
                rmse_m,
                max_error_m,
                lowest_m,
                highest_m,
            },
            missing,
            layer,
            residual,
        })
    }
}

fn parse_wavelet(bytes: &[u8]) -> Result<WaveletLayer> {
    let mut cursor = Cursor::new(bytes, "tile's wavelet layer");
    let is_lossless = match cursor.u8()? {
        0 => false,
        1 => true,
        other => {
            return Err(Error::Unsupported {
                what: "transform of a tile",
                value: other.to_string(),
            });
        }
    };
    let step_m = if is_lossless {
        cursor.f64()?
    } else {
        f64::from(cursor.f32()?)
    };
    if !(step_m > 0.0 && step_m.is_finite()) {
        return Err(cursor.malformed("its step is no number of metres"));
    }
    let coded = cursor.varint()?;
    Ok(WaveletLayer {
        is_lossless,
        step_m,
        offset: (coded >> 1).cast_signed() ^ -(coded & 1).cast_signed(),
        bytes: cursor.rest().to_vec(),
    })
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The bytes of a tile under another number, for another container.
pub fn renumber(mut bytes: Vec<u8>, from: u64, to: u64) -> Result<Vec<u8>> {
    check(&bytes, from)?;
    let crc = checksum(&bytes, to);
    bytes[..CRC].copy_from_slice(&crc.to_le_bytes());
    Ok(bytes)
}

/// The checksum that a record has as the tile of a number: of all but its first four bytes, where it stands.
fn checksum(bytes: &[u8], number: u64) -> u32 {
    let rest = bytes.get(CRC..).unwrap_or_default();
    crc32c_append(crc32c(&number.to_le_bytes()), rest)
}

/// Checks that the bytes are those of the tile of a number.
pub fn check(bytes: &[u8], number: u64) -> Result<()> {
    let mut cursor = Cursor::new(bytes, "tile");
    let expected = cursor.u32()?;
    let found = checksum(bytes, number);
    if expected == found {
        Ok(())
    } else {
        Err(Error::Checksum {
            what: "tile",
            expected,
            found,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let missing: Vec<bool> = (0..12 * 7).map(|index| index % 12 > 9).collect();
        let values = (0..12 * 7)
            .map(|index| {
                if index % 12 > 9 {
                    0
                } else {
                    index * index % 17
                }
            })
            .collect::<Vec<i64>>();
        Record {
            statistics: TileStatistics {
                rmse_m: 0.25,
                max_error_m: 0.5,
                lowest_m: -3.0,
                highest_m: 9.0,
            },
            missing: Some(missing),
            layer: Layer::Tokens(vec![1, 2, 3, 4, 5]),
            residual: Some(Residual {
                step_m: 0.1,
                values,
            }),
        }
    }

    const WINDOW: Window = Window {
        column: 0,
        row: 0,
        width: 12,
        height: 7,
    };

    #[test]
    fn records_come_back() {
        let record = record();
        assert_eq!(
            Record::parse(&record.to_bytes(7, 12), 7, WINDOW).unwrap(),
            record
        );
        for (is_lossless, step_m) in [(false, 0.25), (true, 0.01)] {
            let wavelet = WaveletLayer {
                is_lossless,
                step_m,
                offset: -41_237,
                bytes: vec![9, 0, 7],
            };
            let record = Record {
                layer: Layer::Wavelet(wavelet),
                residual: record.residual.clone().filter(|_| !is_lossless),
                ..record.clone()
            };
            let bytes = record.to_bytes(3, 12);
            assert_eq!(Record::parse(&bytes, 3, WINDOW).unwrap(), record);
        }
        let integers = Integers {
            scale: IntegerScale::Step {
                origin_m: 400.0,
                step_m: 0.01,
            },
            values: (0..84).map(|value| value * 3 - 40).collect(),
        };
        for scale in [integers.scale, IntegerScale::F32Bits, IntegerScale::F64Bits] {
            let integers = Integers {
                scale,
                ..integers.clone()
            };
            let record = Record {
                missing: None,
                layer: Layer::Integers(integers),
                residual: None,
                ..record.clone()
            };
            let bytes = record.to_bytes(1, 12);
            assert_eq!(Record::parse(&bytes, 1, WINDOW).unwrap(), record);
        }
    }

    #[test]
    fn no_flipped_bit_and_no_cut_goes_unnoticed() {
        let bytes = record().to_bytes(7, 12);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::parse(&flipped, 7, WINDOW).is_err());
        }
        for cut in 0..bytes.len() {
            assert!(Record::parse(&bytes[..cut], 7, WINDOW).is_err());
        }
        assert!(Record::parse(&bytes, 8, WINDOW).is_err());
    }

    #[test]
    fn a_scale_is_its_stored_origin_and_step() {
        for (stored, expected) in [
            ([0.0, 0.0], Some(IntegerScale::F32Bits)),
            ([7.0, -0.0], Some(IntegerScale::F32Bits)),
            ([0.0, -1.0], Some(IntegerScale::F64Bits)),
            ([0.0, -2.0], None),
            ([0.0, f64::INFINITY], None),
            ([0.0, f64::NAN], None),
            ([f64::NAN, 0.0], None),
            ([f64::INFINITY, 1.0], None),
        ] {
            assert_eq!(IntegerScale::from_stored(stored), expected, "{stored:?}");
        }
    }

    #[test]
    fn checksums_are_those_of_the_specification() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(checksum(&[0; CRC + 1], 7), 0x7c85_a6b9);
    }

    #[test]
    fn bytes_with_a_right_checksum_are_still_not_trusted() {
        let bytes = record().to_bytes(7, 12);
        for offset in CRC..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[offset] = value;
                let crc = checksum(&changed, 7);
                changed[..CRC].copy_from_slice(&crc.to_le_bytes());
                let _ = Record::parse(&changed, 7, WINDOW);
            }
        }
    }
}
