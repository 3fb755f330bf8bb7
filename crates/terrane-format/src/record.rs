//! One tile in the file: its mask, its layer of symbols, and the residual of that layer.
//!
//! A tile of a tree of wavelets holds what the tile above it does not: the details of one level, and where its mask differs.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a step that may lose something was rounded to 32 bits when it was chosen"
)]

use crate::bytes::{Cursor, Put};
use crate::checksum::{crc32c, crc32c_append};
use crate::corrections::Corrections;
use crate::integers::{self, Prediction};
use crate::mask::{self, ParentMask};
use crate::{Error, Flats, Method, Result, Stored, Window};

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

/// The picture of a root as wavelet coefficients, which only a context model can read.
#[derive(Debug, Clone, PartialEq)]
pub struct WaveletLayer {
    /// Whether every height comes back as an integer number of steps.
    pub is_lossless: bool,
    /// Metres per step of the whole tree; a 32-bit float where something may be lost.
    pub step_m: f64,
    /// Steps that are added to all heights of the tree.
    pub offset: i64,
    /// The coded coefficients.
    pub bytes: Vec<u8>,
}

/// The details of a tile below another: three subbands of one level.
#[derive(Debug, Clone, PartialEq)]
pub struct Details {
    /// By how many 16ths of the tree's step its own is longer.
    pub coarser: u16,
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
    /// Wavelet coefficients of a picture.
    Wavelet(WaveletLayer),
    /// Wavelet coefficients of one level.
    Details(Details),
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
    /// Pixels without data, where there are some.
    pub missing: Option<Vec<bool>>,
    /// Areas that are flat whatever the layer says, where there are some.
    pub flats: Option<Flats>,
    /// The method's part.
    pub layer: Layer,
    /// The residual of that part.
    pub residual: Option<Residual>,
    /// What brings a wavelet within an error bound, instead of a residual.
    pub corrections: Option<Corrections>,
}

const KIND_INTEGERS: u8 = 0;
const KIND_TOKENS: u8 = 1;
const KIND_WAVELET: u8 = 2;
const KIND_DETAILS: u8 = 3;
const KIND: u8 = 3;
const HAS_MASK: u8 = 4;
const HAS_RESIDUAL: u8 = 8;
const HAS_FLATS: u8 = 16;
const HAS_CORRECTIONS: u8 = 32;
/// What may follow a layer.
const HAS_MORE: u8 = HAS_RESIDUAL | HAS_CORRECTIONS;
/// Bytes of the checksum before a record.
const CRC: usize = 4;
/// Where a record says its kind.
const KIND_OFFSET: u64 = CRC as u64;

/// A record whose symbols are coded, without its checksum.
#[derive(Debug, Clone)]
pub struct CodedRecord {
    bytes: Vec<u8>,
    parts: RecordParts,
}

/// What the layer of a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// Heights as integers.
    Integers,
    /// Tokens.
    Tokens,
    /// The picture of a root.
    Root,
    /// The details of one level.
    Details,
}

impl LayerKind {
    /// That of a record.
    pub fn of(bytes: &[u8]) -> Result<Self> {
        Ok(match split(bytes)?.kind {
            KIND_INTEGERS => Self::Integers,
            KIND_TOKENS => Self::Tokens,
            KIND_WAVELET => Self::Root,
            _ => Self::Details,
        })
    }
}

/// Where the bytes of records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordParts {
    /// Checksums, kinds and lengths.
    pub framing: u64,
    /// Masks.
    pub mask: u64,
    /// Flat areas.
    pub flats: u64,
    /// Layers.
    pub layer: u64,
    /// Residuals and corrections.
    pub residual: u64,
}

impl RecordParts {
    /// The parts of a record.
    pub fn of(bytes: &[u8]) -> Result<Self> {
        Ok(split(bytes)?.parts)
    }

    /// Bytes of all.
    pub fn total(&self) -> u64 {
        self.framing + self.mask + self.flats + self.layer + self.residual
    }

    /// Adds those of another record.
    pub fn add(&mut self, other: &Self) {
        self.framing += other.framing;
        self.mask += other.mask;
        self.flats += other.flats;
        self.layer += other.layer;
        self.residual += other.residual;
    }
}

impl CodedRecord {
    /// Its bytes in a file.
    #[expect(clippy::len_without_is_empty, reason = "no record is empty")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Where its bytes are.
    pub fn parts(&self) -> RecordParts {
        self.parts
    }

    /// The record as it is written; its checksum covers its number too, so that a tile at another's index is noticed.
    pub fn seal(self, number: u64) -> Vec<u8> {
        let mut bytes = self.bytes;
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
            Self::Wavelet(_) | Self::Details(_) => Stored::Wavelet,
        }
    }
}

/// The parts of a record, as bytes.
struct Split<'a> {
    kind: u8,
    mask: Option<&'a [u8]>,
    flats: Option<&'a [u8]>,
    layer: &'a [u8],
    residual: Option<&'a [u8]>,
    corrections: Option<&'a [u8]>,
    parts: RecordParts,
}

fn split(bytes: &[u8]) -> Result<Split<'_>> {
    let mut cursor = Cursor::new(bytes, "tile");
    cursor.take(CRC)?;
    let kind = cursor.u8()?;
    if kind & !(KIND | HAS_MASK | HAS_FLATS | HAS_MORE) != 0 || kind & HAS_MORE == HAS_MORE {
        return Err(Error::Unsupported {
            what: "kind of tile",
            value: kind.to_string(),
        });
    }
    let mut block = |flag: u8| match kind & flag {
        0 => Ok(None),
        _ => cursor.block().map(Some),
    };
    let (mask, flats) = (block(HAS_MASK)?, block(HAS_FLATS)?);
    let (layer, more) = match kind & HAS_MORE {
        0 => (cursor.rest(), None),
        _ => (cursor.block()?, Some(cursor.rest())),
    };
    let length = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len) as u64;
    let mut parts = RecordParts {
        framing: 0,
        mask: length(mask),
        flats: length(flats),
        layer: layer.len() as u64,
        residual: length(more),
    };
    parts.framing = bytes.len() as u64 - parts.total();
    Ok(Split {
        kind: kind & KIND,
        mask,
        flats,
        layer,
        residual: more.filter(|_| kind & HAS_RESIDUAL != 0),
        corrections: more.filter(|_| kind & HAS_CORRECTIONS != 0),
        parts,
    })
}

impl Record {
    /// Metres per unit of its layer, or of the residual of tokens; `None` where it has neither.
    pub fn step_m(&self) -> Option<f64> {
        match &self.layer {
            Layer::Integers(Integers {
                scale: IntegerScale::Step { step_m, .. },
                ..
            })
            | Layer::Wavelet(WaveletLayer { step_m, .. }) => Some(*step_m),
            Layer::Tokens(_) => self.residual.as_ref().map(|residual| residual.step_m),
            Layer::Integers(_) | Layer::Details(_) => None,
        }
    }

    /// The record as bytes, as [`CodedRecord::seal`] makes them.
    pub fn to_bytes(&self, number: u64, width: usize, parent: Option<&ParentMask>) -> Vec<u8> {
        self.code(width, parent).seal(number)
    }

    /// Codes everything but the checksum; `parent` is the mask of the tile above, in a tree.
    pub fn code(&self, width: usize, parent: Option<&ParentMask>) -> CodedRecord {
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
            Layer::Details(details) => {
                let mut bytes = Vec::with_capacity(details.bytes.len() + 1);
                bytes.put_varint(details.coarser.into());
                bytes.extend_from_slice(&details.bytes);
                (KIND_DETAILS, bytes)
            }
        };
        let inherited = parent
            .zip(missing)
            .and_then(|(parent, missing)| parent.inherited(width, missing.len() / width.max(1)));
        let has_mask = missing.is_some() && inherited.as_deref() != missing;
        let mut bytes = vec![0; CRC];
        bytes.push(
            kind + u8::from(has_mask) * HAS_MASK
                + u8::from(self.residual.is_some()) * HAS_RESIDUAL
                + u8::from(self.flats.is_some()) * HAS_FLATS
                + u8::from(self.corrections.is_some()) * HAS_CORRECTIONS,
        );
        let mut parts = RecordParts {
            layer: layer.len() as u64,
            ..RecordParts::default()
        };
        if let Some(missing) = missing.filter(|_| has_mask) {
            let mask = mask::encode(missing, width, parent);
            parts.mask = mask.len() as u64;
            bytes.put_block(&mask);
        }
        if let Some(flats) = &self.flats {
            let flats = flats.to_bytes(width);
            parts.flats = flats.len() as u64;
            bytes.put_block(&flats);
        }
        if let Some(residual) = &self.residual {
            bytes.put_block(&layer);
            let start = bytes.len();
            bytes.extend(residual.step_m.to_le_bytes());
            bytes.extend(integers::encode(
                &residual.values,
                width,
                Prediction::Zero,
                missing,
            ));
            parts.residual = (bytes.len() - start) as u64;
        } else if let Some(corrections) = &self.corrections {
            bytes.put_block(&layer);
            let start = bytes.len();
            corrections.write(&mut bytes, width, missing);
            parts.residual = (bytes.len() - start) as u64;
        } else {
            bytes.extend_from_slice(&layer);
        }
        parts.framing = bytes.len() as u64 - parts.total();
        CodedRecord { bytes, parts }
    }

    /// Reads the record of a tile that covers a window; `parent` is the mask of the tile above, in a tree.
    pub fn parse(
        bytes: &[u8],
        number: u64,
        window: Window,
        parent: Option<&ParentMask>,
    ) -> Result<Self> {
        check(bytes, number)?;
        let split = split(bytes)?;
        let (width, height) = (window.width, window.height);
        let missing = match split.mask {
            Some(mask) => Some(mask::decode(mask, width, height, parent)?),
            None => parent.and_then(|parent| parent.inherited(width, height)),
        };
        let flats = split.flats.map(|flats| Flats::parse(flats, width, height));
        let flats = flats.transpose()?;
        let layer = match split.kind {
            KIND_INTEGERS => {
                let mut cursor = Cursor::new(split.layer, "tile's integers");
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
            KIND_TOKENS => Layer::Tokens(split.layer.to_vec()),
            KIND_WAVELET => Layer::Wavelet(parse_wavelet(split.layer)?),
            _ => {
                let mut cursor = Cursor::new(split.layer, "tile's details");
                let coarser = cursor.varint()?;
                let coarser = u16::try_from(coarser)
                    .map_err(|_| cursor.malformed("its step is no number of metres"))?;
                let bytes = cursor.rest().to_vec();
                Layer::Details(Details { coarser, bytes })
            }
        };
        let is_wavelet = layer.stored() == Stored::Wavelet;
        let residual = match split.residual {
            None => None,
            Some(bytes) => {
                let mut cursor = Cursor::new(bytes, "tile's residual");
                let step_m = cursor.f64()?;
                if !(step_m > 0.0 && step_m.is_finite()) {
                    return Err(cursor.malformed("its step is no number of metres"));
                }
                if layer.stored() != Stored::Tokens {
                    return Err(cursor.malformed("its layer leaves none"));
                }
                let missing = missing.as_deref();
                let coded = cursor.rest();
                let values =
                    integers::decode(coded, width, width * height, Prediction::Zero, missing)?;
                Some(Residual { step_m, values })
            }
        };
        let corrections = match split.corrections {
            None => None,
            Some(bytes) => {
                let mut cursor = Cursor::new(bytes, "tile's corrections");
                if !is_wavelet {
                    return Err(cursor.malformed("its layer needs none"));
                }
                let missing = missing.as_deref();
                Some(Corrections::read(&mut cursor, [width, height], missing)?)
            }
        };
        Ok(Self {
            missing,
            flats,
            layer,
            residual,
            corrections,
        })
    }

    /// Refuses a record that does not belong to a method: one that its codec leaves alone is stored as integers.
    pub fn check_method(&self, method: Method) -> Result<()> {
        if [Stored::Integers, method.stored()].contains(&self.layer.stored()) {
            return Ok(());
        }
        Err(Error::Malformed {
            what: "tile",
            offset: KIND_OFFSET,
            reason: "its kind does not belong to the file's method",
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
            missing: Some(missing),
            flats: None,
            layer: Layer::Tokens(vec![1, 2, 3, 4, 5]),
            residual: Some(Residual {
                step_m: 0.1,
                values,
            }),
            corrections: None,
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
            Record::parse(&record.to_bytes(7, 12, None), 7, WINDOW, None).unwrap(),
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
                residual: None,
                ..record.clone()
            };
            let bytes = record.to_bytes(3, 12, None);
            assert_eq!(Record::parse(&bytes, 3, WINDOW, None).unwrap(), record);
        }
        let details = Details {
            coarser: 300,
            bytes: vec![1, 2],
        };
        let below = Record {
            flats: Flats::new(&[3.5; 12 * 7], 12),
            layer: Layer::Details(details),
            residual: None,
            corrections: Some(Corrections {
                step_m: 0.2,
                heights: [20, 30],
                first: 100,
                bumps: [vec![0, 1, 0, 0, -1, 0], vec![0; 24]],
                pixels: (0..84).map(|index| i64::from(index == 13)).collect(),
            }),
            ..record.clone()
        };
        let bytes = below.to_bytes(3, 12, None);
        assert_eq!(Record::parse(&bytes, 3, WINDOW, None).unwrap(), below);
        let parts = RecordParts::of(&bytes).unwrap();
        assert_eq!((parts.total(), parts.layer), (bytes.len() as u64, 4));
        assert_eq!(below.code(12, None).parts(), parts);
        assert_eq!(LayerKind::of(&bytes).unwrap(), LayerKind::Details);
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
            let bytes = record.to_bytes(1, 12, None);
            assert_eq!(Record::parse(&bytes, 1, WINDOW, None).unwrap(), record);
        }
    }

    #[test]
    fn no_flipped_bit_and_no_cut_goes_unnoticed() {
        let bytes = record().to_bytes(7, 12, None);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::parse(&flipped, 7, WINDOW, None).is_err());
        }
        for cut in 0..bytes.len() {
            assert!(Record::parse(&bytes[..cut], 7, WINDOW, None).is_err());
        }
        assert!(Record::parse(&bytes, 8, WINDOW, None).is_err());
    }

    #[test]
    fn a_mask_that_follows_from_the_tile_above_is_not_stored() {
        let above: Vec<bool> = (0..10 * 5).map(|index| index % 10 > 6).collect();
        let parent = ParentMask {
            missing: Some(&above),
            width: 10,
            column: 2,
            row: 1,
        };
        let record = Record {
            missing: parent.inherited(12, 7),
            residual: None,
            ..record()
        };
        assert!(record.missing.is_some());
        let bytes = record.to_bytes(7, 12, Some(&parent));
        assert_eq!(RecordParts::of(&bytes).unwrap().mask, 0);
        let back = Record::parse(&bytes, 7, WINDOW, Some(&parent)).unwrap();
        assert_eq!(back, record);
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
        let bytes = record().to_bytes(7, 12, None);
        for offset in CRC..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[offset] = value;
                let crc = checksum(&changed, 7);
                changed[..CRC].copy_from_slice(&crc.to_le_bytes());
                let _ = Record::parse(&changed, 7, WINDOW, None);
            }
        }
    }
}
