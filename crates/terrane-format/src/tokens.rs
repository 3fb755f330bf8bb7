//! The symbols of a tile's tokens as bytes: by the tables of their model, adaptively, or in a fixed width.

use crate::bytes::Cursor;
use crate::coder::{Decoder, Encoder};
use crate::integers::{self, Prediction};
use crate::{Error, FrequencyTable, Result};

/// Widths of a symbol in bits that have tables.
pub const WIDTHS: [u8; 4] = [2, 4, 8, 16];
/// Symbols of 16 bits are coded by their upper half; the lower is as good as random.
const WIDE_LOW_BITS: u32 = 8;

/// A model's tables: for each width one table per channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenTables {
    tables: [Vec<FrequencyTable>; WIDTHS.len()],
}

/// Tokens of a tile as integers.
#[derive(Debug, Clone, PartialEq)]
pub struct Tokens {
    /// The height that a normalised 0 stands for.
    pub lowest_m: f32,
    /// Metres from a normalised 0 to 1.
    pub range_m: f32,
    /// Bits of a symbol: 2, 4, 8 or 16.
    pub bits: u8,
    /// The step of each channel, as the bits of a 16-bit float.
    pub steps: Vec<u16>,
    /// Symbols, channels fastest, each within ±(2^(bits−1) − 1).
    pub symbols: Vec<i16>,
}

/// How symbols are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "snake_case")
)]
pub enum Coding {
    /// By tables or adaptively, whichever is shorter.
    Shortest,
    /// By the model's tables.
    Tables,
    /// Each symbol in its width: what papers call uncompressed.
    Fixed,
}

const BY_TABLES: u8 = 0;
const ADAPTIVE: u8 = 1;
const FIXED: u8 = 2;

fn max_symbol(bits: u8) -> i32 {
    (1 << (bits - 1)) - 1
}

/// Number of symbols in a table.
pub fn alphabet(bits: u8) -> usize {
    if bits == 16 {
        256
    } else {
        2 * max_symbol(bits) as usize + 1
    }
}

/// The index of a symbol in the table of its width.
pub fn symbol_index(symbol: i16, bits: u8) -> usize {
    if bits == 16 {
        ((i32::from(symbol) + 32_768) >> WIDE_LOW_BITS) as usize
    } else {
        (i32::from(symbol) + max_symbol(bits)).max(0) as usize
    }
}

impl TokenTables {
    /// Tables from how often each index was seen: `counts(bits, channel)` has an entry per index.
    pub fn from_counts(channels: usize, counts: impl Fn(u8, usize) -> Vec<u64>) -> Result<Self> {
        let of = |bits: u8| {
            (0..channels)
                .map(|channel| FrequencyTable::from_counts(&counts(bits, channel)))
                .collect::<Result<Vec<_>>>()
        };
        Ok(Self {
            tables: [of(2)?, of(4)?, of(8)?, of(16)?],
        })
    }

    /// Tables from the frequencies of their symbols, one list per channel.
    pub fn from_frequencies(channels: usize, frequencies: impl Fn(u8) -> Vec<u16>) -> Result<Self> {
        let of = |bits: u8| {
            let all = frequencies(bits);
            let alphabet = alphabet(bits);
            if all.len() != channels * alphabet {
                return Err(Error::Malformed {
                    what: "table",
                    offset: 0,
                    reason: "it does not have a list per channel",
                });
            }
            all.chunks(alphabet)
                .map(FrequencyTable::from_frequencies)
                .collect::<Result<Vec<_>>>()
        };
        Ok(Self {
            tables: [of(2)?, of(4)?, of(8)?, of(16)?],
        })
    }

    /// The tables of a width, one per channel.
    pub fn of(&self, bits: u8) -> Option<&[FrequencyTable]> {
        WIDTHS
            .iter()
            .position(|&width| width == bits)
            .map(|index| &self.tables[index][..])
    }

    /// Bits that these tables give to symbols, not counting what a coder adds.
    pub fn ideal_bits(&self, tokens: &Tokens) -> Option<f64> {
        let tables = self.of(tokens.bits)?;
        let raw = if tokens.bits == 16 {
            f64::from(WIDE_LOW_BITS)
        } else {
            0.0
        };
        let frequencies: Vec<Vec<u32>> = tables
            .iter()
            .map(|table| table.frequencies().collect())
            .collect();
        let bits = tokens.symbols.iter().enumerate().map(|(index, &symbol)| {
            let of_channel = &frequencies[index % frequencies.len()];
            let frequency = of_channel[symbol_index(symbol, tokens.bits)];
            raw + (65_536.0 / f64::from(frequency)).log2()
        });
        Some(bits.sum())
    }
}

impl Tokens {
    /// The tokens as bytes.
    pub fn to_bytes(&self, tables: &TokenTables, coding: Coding) -> Result<Vec<u8>> {
        let unsupported = || Error::Unsupported {
            what: "bits per symbol",
            value: self.bits.to_string(),
        };
        let tables = tables.of(self.bits).ok_or_else(unsupported)?;
        let (how, coded) = match coding {
            Coding::Fixed => (FIXED, self.fixed()),
            Coding::Tables => (BY_TABLES, self.by_tables(tables)),
            Coding::Shortest => {
                let by_tables = self.by_tables(tables);
                let adaptive = integers::encode(
                    &self.by_channel(),
                    self.symbols.len() / self.steps.len().max(1),
                    Prediction::Zero,
                    None,
                );
                if adaptive.len() < by_tables.len() {
                    (ADAPTIVE, adaptive)
                } else {
                    (BY_TABLES, by_tables)
                }
            }
        };
        let mut bytes = vec![how, self.bits];
        bytes.extend(self.lowest_m.to_le_bytes());
        bytes.extend(self.range_m.to_le_bytes());
        bytes.extend(self.steps.iter().flat_map(|step| step.to_le_bytes()));
        bytes.extend(coded);
        Ok(bytes)
    }

    /// Reads `count` symbols of as many channels as the tables have.
    pub fn parse(bytes: &[u8], tables: &TokenTables, count: usize) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, "tile's tokens");
        let (how, bits) = (cursor.u8()?, cursor.u8()?);
        let tables = tables
            .of(bits)
            .ok_or_else(|| cursor.malformed("a symbol has neither 2, 4, 8 nor 16 bits"))?;
        let [lowest_m, range_m] = [cursor.f32()?, cursor.f32()?];
        let steps = tables
            .iter()
            .map(|_| cursor.u16())
            .collect::<Result<Vec<_>>>()?;
        // An exponent of all ones is infinite or no number.
        let is_finite = |step: &u16| step & 0x7c00 != 0x7c00;
        if !lowest_m.is_finite() || !range_m.is_finite() || !steps.iter().all(is_finite) {
            return Err(cursor.malformed("a step or a height is no number"));
        }
        let channels = steps.len();
        if channels == 0 || !count.is_multiple_of(channels) {
            return Err(cursor.malformed("its symbols do not fit its channels"));
        }
        let limit = max_symbol(bits);
        let narrow = |value: i64| {
            i16::try_from(value)
                .ok()
                .filter(|&symbol| i32::from(symbol).abs() <= limit)
                .ok_or(Error::Malformed {
                    what: "tile's tokens",
                    offset: 0,
                    reason: "a symbol is too large",
                })
        };
        let coded = cursor.rest();
        let symbols = match how {
            BY_TABLES => {
                let mut decoder = Decoder::new(coded);
                let symbols = (0..count)
                    .map(|index| {
                        let found = tables[index % channels].decode(&mut decoder) as i64;
                        narrow(if bits == 16 {
                            (found << WIDE_LOW_BITS | decoder.raw(WIDE_LOW_BITS).cast_signed())
                                - 32_768
                        } else {
                            found - i64::from(limit)
                        })
                    })
                    .collect::<Result<_>>()?;
                decoder.end()?;
                symbols
            }
            ADAPTIVE => {
                let rows =
                    integers::decode(coded, count / channels, count, Prediction::Zero, None)?;
                (0..count)
                    .map(|index| {
                        narrow(rows[index % channels * (count / channels) + index / channels])
                    })
                    .collect::<Result<_>>()?
            }
            FIXED => {
                let needed = (count * usize::from(bits)).div_ceil(8);
                if coded.len() != needed {
                    return Err(Error::Malformed {
                        what: "tile's tokens",
                        offset: 0,
                        reason: "it does not have a symbol per number",
                    });
                }
                (0..count)
                    .map(|index| narrow(fixed_at(coded, index, bits)))
                    .collect::<Result<_>>()?
            }
            other => {
                return Err(Error::Unsupported {
                    what: "coding of symbols",
                    value: other.to_string(),
                });
            }
        };
        Ok(Self {
            lowest_m,
            range_m,
            bits,
            steps,
            symbols,
        })
    }

    fn by_tables(&self, tables: &[FrequencyTable]) -> Vec<u8> {
        let mut encoder = Encoder::default();
        for (index, &symbol) in self.symbols.iter().enumerate() {
            tables[index % tables.len()].encode(&mut encoder, symbol_index(symbol, self.bits));
            if self.bits == 16 {
                encoder.raw(u64::from(symbol.cast_unsigned() & 0xff), WIDE_LOW_BITS);
            }
        }
        encoder.finish()
    }

    /// Symbols with channels slowest: neighbours within a channel are more alike.
    fn by_channel(&self) -> Vec<i64> {
        let channels = self.steps.len();
        (0..channels)
            .flat_map(|channel| {
                self.symbols
                    .iter()
                    .skip(channel)
                    .step_by(channels)
                    .map(|&symbol| i64::from(symbol))
            })
            .collect()
    }

    fn fixed(&self) -> Vec<u8> {
        let width = usize::from(self.bits);
        let mut bytes = vec![0_u8; (self.symbols.len() * width).div_ceil(8)];
        for (index, &symbol) in self.symbols.iter().enumerate() {
            let value = symbol.cast_unsigned();
            for bit in 0..width {
                let at = index * width + bit;
                bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
            }
        }
        bytes
    }
}

/// The symbol at an index among symbols of fixed width, lowest bit first, negative ones as their complement.
fn fixed_at(bytes: &[u8], index: usize, bits: u8) -> i64 {
    let width = usize::from(bits);
    let value = (0..width).fold(0_i64, |value, bit| {
        let at = index * width + bit;
        value | i64::from(bytes[at / 8] >> (at % 8) & 1) << bit
    });
    if value >> (width - 1) == 1 {
        value - (1 << width)
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(channels: usize) -> TokenTables {
        TokenTables::from_counts(channels, |bits, channel| {
            let middle = alphabet(bits) as i64 / 2;
            (0..alphabet(bits) as i64)
                .map(|index| {
                    (100_000 >> ((index - middle).abs() / (1 + channel as i64)).min(20))
                        .cast_unsigned_u64()
                })
                .collect()
        })
        .unwrap()
    }

    trait Unsigned {
        fn cast_unsigned_u64(self) -> u64;
    }

    impl Unsigned for i64 {
        fn cast_unsigned_u64(self) -> u64 {
            self.cast_unsigned()
        }
    }

    fn tokens(bits: u8, channels: usize) -> Tokens {
        let limit = i64::from(max_symbol(bits));
        let symbols = (0..257 * channels as i64)
            .map(|index| {
                i16::try_from((index * 7919 % 10_007) * (2 * limit + 1) / 10_007 - limit).unwrap()
            })
            .collect();
        Tokens {
            lowest_m: 412.5,
            range_m: 31.25,
            bits,
            steps: (0..channels)
                .map(|channel| u16::try_from(channel).unwrap() * 100)
                .collect(),
            symbols,
        }
    }

    #[test]
    fn tokens_of_every_width_come_back_in_every_coding() {
        let tables = tables(5);
        for bits in WIDTHS {
            let tokens = tokens(bits, 5);
            for coding in [Coding::Shortest, Coding::Tables, Coding::Fixed] {
                let bytes = tokens.to_bytes(&tables, coding).unwrap();
                assert_eq!(
                    Tokens::parse(&bytes, &tables, 257 * 5).unwrap(),
                    tokens,
                    "{bits} {coding:?}"
                );
            }
            let by_tables = tokens.by_tables(tables.of(bits).unwrap());
            let ideal = tables.ideal_bits(&tokens).unwrap() / 8.0;
            assert!(
                (by_tables.len() as f64) < ideal * 1.001 + 4.0,
                "{bits}: {} {ideal}",
                by_tables.len()
            );
        }
    }

    #[test]
    fn a_fixed_width_has_the_rate_of_the_paper() {
        let bytes = tokens(8, 32).to_bytes(&tables(32), Coding::Fixed).unwrap();
        assert_eq!(bytes.len() - 10, 257 * 32 + 32 * 2);
    }
}
