//! How likely each symbol is: a table of integer frequencies for every mean and scale that the network can output.
//!
//! Scales grow by a sixth of an octave. Means are multiples of a quarter of the scale; one below 0 is that above 0
//! mirrored. Where the scale is beyond the tables, the lowest bits of a symbol are stored as they are and
//! the rest at a scale that many octaves lower.

use terrane_format::coder::{Decoder, Encoder, PROBABILITY_BITS};

use crate::{Error, Result};

/// Scales that have tables.
pub const SCALES: usize = 48;
/// Means that have tables, from 0.
pub const MEANS: usize = 13;
/// Tables.
pub const TABLES: usize = SCALES * MEANS;
/// Scales per octave.
const PER_OCTAVE: usize = 6;
/// Octaves beyond the tables.
const MAX_SHIFT: usize = 36;
/// The scale's index at an output of 0.
const MIDDLE: i32 = 20;
/// Symbols beyond this are not written.
pub(crate) const MAX_SYMBOL: i64 = 1 << 40;

/// The smallest scale.
const SMALLEST: f64 = 0.04;

/// The logistic scale of an index, in steps.
pub fn scale(index: f64) -> f64 {
    SMALLEST * (index / PER_OCTAVE as f64).exp2()
}

/// The index of a scale that the network's output stands for, as the trainer sees it: with fractions.
pub const SCALE_PER_UNIT: f64 = 8.0;
/// The index of a scale at an output of 0.
pub const SCALE_AT_ZERO: f64 = MIDDLE as f64;

/// What the network predicts of one symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    /// Which table.
    pub table: u16,
    /// Lowest bits that are stored as they are.
    pub shift: u8,
    /// Whether the table is mirrored: its symbols change sign.
    pub is_mirrored: bool,
}

impl Context {
    /// From the network's three sums; tables have one shape so far.
    #[inline(always)]
    pub fn new(mean: i32, scale: i32, _shape: i32) -> Self {
        let mean = (mean.saturating_add(256) >> 9).clamp(1 - MEANS as i32, MEANS as i32 - 1);
        let last = (SCALES - 1 + PER_OCTAVE * MAX_SHIFT) as i32;
        let scale = (MIDDLE + (scale.saturating_add(128) >> 8)).clamp(0, last) as usize;
        let shift = (scale + 1).saturating_sub(SCALES).div_ceil(PER_OCTAVE);
        let scale = scale - shift * PER_OCTAVE;
        Self {
            table: (scale * MEANS) as u16 + mean.unsigned_abs() as u16,
            shift: shift as u8,
            is_mirrored: mean < 0,
        }
    }
}

/// One table: symbols around a centre, and an escape at either end. Small, so that all of them stay in the cache.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SymbolTable {
    /// The symbol after the lower escape.
    first: i32,
    /// The index of its first symbol among those of all tables.
    offset: u32,
    /// Symbols with both escapes.
    count: u16,
    /// The most probable symbol, which a reader tries first, with its cumulative frequency and frequency.
    likely: u16,
    cumulative: u16,
    frequency: u32,
}

/// All tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Distributions {
    tables: Vec<SymbolTable>,
    /// The cumulative frequency of each symbol.
    cumulative: Vec<u16>,
    /// Its frequency, of a total of 2^16.
    frequencies: Vec<u16>,
    /// Its cost in bits.
    costs: Vec<f32>,
}

/// Centre and radius of a table's support: the symbols that need no escape.
pub fn support(table: usize) -> (i64, i64) {
    let scale = scale((table / MEANS) as f64);
    let mean = scale * (table % MEANS) as f64 / 4.0;
    let radius = ((scale * 6.0).ceil() as i64 + 1).clamp(2, 40);
    (mean.round() as i64, radius)
}

impl Distributions {
    /// From what a model holds: centre and radius of every table, and the frequencies of all their symbols one after
    /// another, escapes first and last.
    pub fn new(centres: &[i32], radii: &[u8], frequencies: &[u16]) -> Result<Self> {
        if centres.len() != TABLES || radii.len() != TABLES {
            return Err(Error::Shape {
                expected: TABLES,
                found: centres.len().min(radii.len()),
            });
        }
        let expected: usize = radii
            .iter()
            .map(|&radius| 2 * usize::from(radius) + 3)
            .sum();
        if frequencies.len() != expected {
            return Err(Error::Shape {
                expected,
                found: frequencies.len(),
            });
        }
        let mut tables = Vec::with_capacity(TABLES);
        let mut cumulative = Vec::with_capacity(expected);
        for (&first, &radius) in centres.iter().zip(radii) {
            let offset = cumulative.len();
            let count = 2 * usize::from(radius) + 3;
            let frequencies = &frequencies[offset..offset + count];
            let mut sum = 0_u32;
            for &frequency in frequencies {
                cumulative.push(sum as u16);
                sum += u32::from(frequency);
            }
            if frequencies.contains(&0) || sum != 1 << PROBABILITY_BITS {
                return Err(Error::Missing {
                    what: "table whose frequencies sum to 2^16".into(),
                });
            }
            let likely = (0..count)
                .max_by_key(|&index| frequencies[index])
                .unwrap_or(0);
            tables.push(SymbolTable {
                first: first.saturating_sub(radius.into()),
                offset: offset as u32,
                count: count as u16,
                likely: likely as u16,
                cumulative: cumulative[offset + likely],
                frequency: frequencies[likely].into(),
            });
        }
        let total_bits = f32::from(PROBABILITY_BITS as u8);
        let costs = frequencies
            .iter()
            .map(|&frequency| total_bits - f32::from(frequency).log2())
            .collect();
        Ok(Self {
            tables,
            cumulative,
            frequencies: frequencies.to_vec(),
            costs,
        })
    }

    /// The symbol of a table that holds a number, and how far beyond the table it lies.
    #[inline(always)]
    fn find(table: &SymbolTable, value: i64) -> (usize, Option<u64>) {
        let last = usize::from(table.count) - 1;
        let distance = value - i64::from(table.first);
        if distance < 0 {
            (0, Some((-distance - 1) as u64))
        } else if distance as u64 >= last as u64 - 1 {
            (last, Some((distance - (last as i64 - 1)) as u64))
        } else {
            (distance as usize + 1, None)
        }
    }

    /// Counts of 0 for every symbol of every table.
    pub fn no_counts(&self) -> Vec<Vec<u64>> {
        self.tables
            .iter()
            .map(|table| vec![0; table.count.into()])
            .collect()
    }

    /// Counts a symbol where its table counts it.
    pub fn count(&self, context: Context, symbol: i64, counts: &mut [Vec<u64>]) {
        let index = usize::from(context.table);
        let (high, _) = split_bits(mirrored(symbol, context), context.shift);
        counts[index][Self::find(&self.tables[index], high).0] += 1;
    }

    /// Bits that a symbol takes.
    #[inline(always)]
    pub fn cost(&self, context: Context, symbol: i64) -> f32 {
        let table = &self.tables[usize::from(context.table)];
        let (high, _) = split_bits(mirrored(symbol, context), context.shift);
        let (index, beyond) = Self::find(table, high);
        let escape = beyond.map_or(0.0, |beyond| 6.0 + (beyond + 1).ilog2() as f32);
        self.costs[table.offset as usize + index] + f32::from(context.shift) + escape
    }

    /// Writes a symbol.
    pub fn write(&self, encoder: &mut Encoder, context: Context, symbol: i64) {
        let table = &self.tables[usize::from(context.table)];
        let (high, low) = split_bits(mirrored(symbol, context), context.shift);
        let (index, beyond) = Self::find(table, high);
        let index = table.offset as usize + index;
        encoder.encode(self.cumulative[index], self.frequencies[index].into());
        if let Some(beyond) = beyond {
            let bits = (beyond + 1).ilog2();
            encoder.raw(bits.into(), 6);
            encoder.raw(beyond + 1, bits);
        }
        if context.shift > 0 {
            encoder.raw(low, context.shift.into());
        }
    }

    /// Reads a symbol.
    #[inline(always)]
    pub fn read(&self, decoder: &mut Decoder, context: Context) -> i64 {
        let table = &self.tables[usize::from(context.table)];
        let mut index = usize::from(table.likely);
        if !decoder.consume_if(table.cumulative, table.frequency) {
            let target = decoder.decode_target();
            let count = usize::from(table.count);
            let cumulative = &self.cumulative[table.offset as usize..][..count];
            index = cumulative.partition_point(|&below| below <= target) - 1;
            let frequency = self.frequencies[table.offset as usize + index];
            decoder.consume(cumulative[index], frequency.into());
        }
        let last = usize::from(table.count) - 1;
        let first = i64::from(table.first);
        let mut high = first + index as i64 - 1;
        if index == 0 || index == last {
            let bits = decoder.raw(6) as u32;
            let beyond = (1_u64 << bits.min(62) | decoder.raw(bits.min(62))) as i64 - 1;
            high = if index == 0 {
                first.wrapping_sub(beyond).wrapping_sub(1)
            } else {
                high.wrapping_add(beyond)
            };
        }
        let low = match context.shift {
            0 => 0,
            shift => decoder.raw(shift.into()) as i64,
        };
        let value = match context.shift {
            0 => high,
            shift => (high << shift)
                .wrapping_add(low)
                .wrapping_sub(1 << (shift - 1)),
        };
        mirrored(value, context)
    }
}

#[inline(always)]
fn mirrored(value: i64, context: Context) -> i64 {
    if context.is_mirrored {
        value.wrapping_neg()
    } else {
        value
    }
}

/// The high and the low part of a number; the high one is rounded.
#[inline(always)]
fn split_bits(value: i64, shift: u8) -> (i64, u64) {
    if shift == 0 {
        return (value, 0);
    }
    let raised = value + (1 << (shift - 1));
    (
        raised >> shift,
        (raised - ((raised >> shift) << shift)) as u64,
    )
}

/// Tables of pure logistic distributions: what a model starts from before it has counted anything.
pub(crate) fn logistic_counts(table: usize) -> Vec<f64> {
    let (centre, radius) = support(table);
    let scale = scale((table / MEANS) as f64);
    let mean = scale * (table % MEANS) as f64 / 4.0;
    let below = |value: f64| 1.0 / (1.0 + (-(value - mean) / scale).exp());
    let edge = |index: i64| below((centre - radius + index) as f64 - 0.5);
    let inside = (0..=2 * radius).map(|index| edge(index + 1) - edge(index));
    [edge(0)]
        .into_iter()
        .chain(inside)
        .chain([1.0 - edge(2 * radius + 1)])
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Tables of logistic distributions.
    pub(crate) fn logistic() -> Distributions {
        let (centres, radii, frequencies) = crate::model::tables_of(&[]);
        Distributions::new(&centres, &radii, &frequencies).unwrap()
    }

    #[test]
    fn symbols_come_back_at_their_cost() {
        let tables = logistic();
        let symbols = [
            0,
            1,
            -1,
            2,
            5,
            -7,
            40,
            -300,
            100_000,
            -1 << 35,
            MAX_SYMBOL,
            -MAX_SYMBOL,
        ];
        let mut written = Vec::new();
        let mut encoder = Encoder::default();
        let mut cost = 0.0;
        for mean in (-8000..8000_i16).step_by(997) {
            for scale in (-6000..20_000_i16).step_by(991) {
                let context = Context::new(mean.into(), scale.into(), 0);
                for symbol in symbols {
                    tables.write(&mut encoder, context, symbol);
                    cost += f64::from(tables.cost(context, symbol));
                    written.push((context, symbol));
                }
            }
        }
        let bytes = encoder.finish();
        assert!((bytes.len() as f64 * 8.0 / cost - 1.0).abs() < 0.01);
        let mut decoder = Decoder::new(&bytes);
        for (context, symbol) in written {
            assert_eq!(tables.read(&mut decoder, context), symbol, "{context:?}");
        }
        decoder.end().unwrap();
    }

    #[test]
    fn scales_beyond_the_tables_are_shifted() {
        let last = Context::new(0, 27 * 256, 0);
        assert_eq!((last.table, last.shift), (47 * 13, 0));
        let next = Context::new(0, 28 * 256, 0);
        assert_eq!((next.table, next.shift), (42 * 13, 1));
        assert!(Context::new(-512, 0, 0).is_mirrored);
    }
}
