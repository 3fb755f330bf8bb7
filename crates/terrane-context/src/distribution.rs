//! How likely each symbol is: a table of integer frequencies for every mean, scale and shape that the network can output.
//!
//! Scales grow by a sixth of an octave. Means are multiples of a quarter of the scale; one below 0 is that above 0
//! mirrored, and one beyond three scales is a number of steps and a mean near 0. A shape says how heavy the tails are. A table is small, so that a lookup is one comparison of all its
//! entries at once. Where the scale is beyond the tables, the lowest bits of a symbol are stored as they are and
//! the rest at a scale that many octaves lower.

use terrane_format::coder::{Decoder, Encoder, GROUP, Lookup, PROBABILITY_BITS};

#[cfg(target_arch = "x86_64")]
use crate::simd::{self, Machine};
use crate::{Error, Result};

/// Scales that have tables.
pub const SCALES: usize = 38;
/// Means that have tables, from 0.
pub const MEANS: usize = 13;
/// Shapes that have tables.
pub const SHAPES: usize = 4;
/// Tables: by shape, then scale, then mean.
pub const TABLES: usize = SHAPES * SCALES * MEANS;
/// How much of each shape is a wider logistic distribution.
pub const TAILS: [f64; SHAPES] = [0.0, 0.08, 0.2, 0.4];
/// How much wider that is.
pub const TAIL_RATIO: f64 = 4.0;
/// That in scales.
const TAIL_SCALES: usize = 2 * PER_OCTAVE;
/// The largest scale of each shape whose tables are used: beyond it, escapes cost more than lowest bits as they are.
const LARGEST: [i32; SHAPES] = [37, 36, 33, 31];
/// The largest mean, in quarters of the scale.
const MAX_MEAN: i32 = 255;
/// The largest mean in scales, as the trainer sees it.
pub const FARTHEST_MEAN: f64 = MAX_MEAN as f64 / 4.0;
/// Scales that have tables in parts of 2^12 of a step, and what divides by each: parts of 2^20.
const SCALE_PARTS: [i32; SCALES] = [
    164, 184, 206, 232, 260, 292, 328, 368, 413, 463, 520, 584, 655, 736, 826, 927, 1040, 1168,
    1311, 1471, 1651, 1854, 2081, 2335, 2621, 2942, 3303, 3707, 4161, 4671, 5243, 5885, 6606, 7415,
    8323, 9342, 10_486, 11_770,
];
const SCALE_DIVISORS: [i32; SCALES] = [
    6394, 5699, 5090, 4520, 4033, 3591, 3197, 2849, 2539, 2265, 2016, 1796, 1601, 1425, 1269, 1131,
    1008, 898, 800, 713, 635, 566, 504, 449, 400, 356, 317, 283, 252, 224, 200, 178, 159, 141, 126,
    112, 100, 89,
];
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
    // Not `exp2`: its table is four kilobytes of a decoder for browsers, which has this function for other things.
    SMALLEST * 2_f64.powf(index / PER_OCTAVE as f64)
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
    /// What is added to the table's symbols, before their lowest bits.
    pub offset: i16,
}

impl Context {
    /// From the network's three sums.
    #[inline(always)]
    pub fn new(mean: i32, scale: i32, shape: i32) -> Self {
        let context = Self::near(mean, scale, shape);
        if Self::is_far(mean) {
            context.with_far_mean(mean)
        } else {
            context
        }
    }

    /// Whether a mean is beyond those that have tables.
    #[inline(always)]
    pub(crate) fn is_far(mean: i32) -> bool {
        quarters(mean).abs() >= MEANS as i32
    }

    /// As [`Context::new`] where the mean has a table; else that of the nearest one.
    #[inline(always)]
    pub(crate) fn near(mean: i32, scale: i32, shape: i32) -> Self {
        const LAST: i32 = LARGEST[SHAPES - 1] + (PER_OCTAVE * MAX_SHIFT) as i32;
        let mean = quarters(mean).clamp(1 - MEANS as i32, MEANS as i32 - 1);
        let scale = (MIDDLE + (scale.saturating_add(128) >> 8)).clamp(0, LAST);
        let shape = (2 + (shape.saturating_add(512) >> 10)).clamp(0, SHAPES as i32 - 1) as usize;
        let beyond = (scale - LARGEST[shape]).max(0) as u32;
        let shift = beyond.div_ceil(PER_OCTAVE as u32);
        let scale = scale as u32 - shift * PER_OCTAVE as u32;
        let row = shape as u32 * SCALES as u32 + scale;
        Self {
            table: (row * MEANS as u32 + mean.unsigned_abs()) as u16,
            shift: shift as u8,
            is_mirrored: mean < 0,
            offset: 0,
        }
    }

    /// The same with a mean that has no table: the nearest number of steps, and the table of the rest.
    pub(crate) fn with_far_mean(self, mean: i32) -> Self {
        let row = usize::from(self.table) / MEANS;
        let (parts, divisor) = (SCALE_PARTS[row % SCALES], SCALE_DIVISORS[row % SCALES]);
        // In parts of 2^14 of a step.
        let mean = quarters(mean).clamp(-MAX_MEAN, MAX_MEAN) * parts;
        let steps = (mean + (1 << 13)) >> 14;
        let rest = (mean - (steps << 14)) * divisor;
        let rest = ((rest + (1 << 19)) >> 20).clamp(1 - MEANS as i32, MEANS as i32 - 1);
        Self {
            table: (row * MEANS) as u16 + rest.unsigned_abs() as u16,
            is_mirrored: rest < 0,
            offset: steps as i16,
            ..self
        }
    }
}

/// A mean in quarters of the scale.
#[inline(always)]
fn quarters(mean: i32) -> i32 {
    mean.saturating_add(256) >> 9
}

/// Shape, and index of the scale, of a table.
fn shape_and_scale(table: usize) -> (usize, usize) {
    (table / MEANS / SCALES, table / MEANS % SCALES)
}

/// Lowest bits of a number beyond a table that are stored as they are.
fn escape_bits(table: usize) -> u32 {
    let (shape, scale) = shape_and_scale(table);
    let tail = if shape > 0 { TAIL_SCALES } else { 0 };
    ((scale + tail).saturating_sub(30) / PER_OCTAVE) as u32
}

/// Entries that a table has room for.
const ENTRIES: usize = 32;
/// Where the symbols of a table begin, after an escape below them and one above them.
const ESCAPES: usize = 2;
/// The largest radius of a table's support: the last entry stays free.
const MAX_RADIUS: u8 = ((ENTRIES - ESCAPES) / 2 - 1) as u8;

/// The cumulative frequency of every entry of a table less 1, of a total of 2^16: so that of all without a symbol is the
/// largest number, which no other is beyond.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
struct Bounds([u16; ENTRIES]);

impl Bounds {
    /// The entry that covers a cumulative frequency: how many bounds lie below it.
    #[inline(always)]
    fn find(&self, target: u16) -> usize {
        let mut entry = 0;
        for half in [16, 8, 4, 2, 1] {
            let is_beyond = self.0[(entry + half) % ENTRIES] < target;
            entry += if is_beyond { half } else { 0 };
        }
        entry
    }

    /// The same, all at once.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    fn find_with_avx2(&self, target: u16) -> usize {
        use std::arch::x86_64::{
            __m256i, _mm256_cmpeq_epi16, _mm256_load_si256, _mm256_max_epu16, _mm256_movemask_epi8,
            _mm256_packs_epi16, _mm256_set1_epi16,
        };
        let halves: *const __m256i = self.0.as_ptr().cast();
        #[expect(unsafe_code, reason = "registers are loaded through pointers")]
        // SAFETY: the bounds are 64 bytes, aligned to as many.
        let (low, high) = unsafe { (_mm256_load_si256(halves), _mm256_load_si256(halves.add(1))) };
        let target = _mm256_set1_epi16(target.cast_signed());
        // A bound that is as large as the larger of the two is not below the target.
        let low = _mm256_cmpeq_epi16(_mm256_max_epu16(low, target), low);
        let high = _mm256_cmpeq_epi16(_mm256_max_epu16(high, target), high);
        let others = _mm256_movemask_epi8(_mm256_packs_epi16(low, high));
        others.count_zeros() as usize % ENTRIES
    }

    /// Cumulative frequency and frequency of an entry.
    #[inline(always)]
    fn of(&self, entry: usize) -> (u16, u32) {
        let bound = self.0[entry];
        let next = self.0[(entry + 1) % ENTRIES];
        (bound.wrapping_add(1), next.wrapping_sub(bound).into())
    }
}

/// All tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Distributions {
    bounds: Vec<Bounds>,
    /// What the first entry of each table would be if it were a symbol like those after the escapes.
    first: Vec<i32>,
    /// Entries of each table.
    entries: Vec<u8>,
    /// The cost in bits of every entry of every table.
    costs: Vec<[f32; ENTRIES]>,
}

/// Centre and radius of a table's support: the symbols that need no escape.
pub fn support(table: usize) -> (i64, i64) {
    let (shape, index) = shape_and_scale(table);
    let scale = scale(index as f64);
    let mean = scale * (table % MEANS) as f64 / 4.0;
    let widest = if shape > 0 { scale * TAIL_RATIO } else { scale };
    let radius = ((widest * 6.0).ceil() as i64 + 1).clamp(2, MAX_RADIUS.into());
    (mean.round() as i64, radius)
}

/// Where a table's entry is among the frequencies that a model holds, which have the escapes first and last.
fn stored(entry: usize, entries: usize) -> usize {
    match entry {
        0 => 0,
        1 => entries - 1,
        _ => entry - 1,
    }
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
        if radii.iter().any(|&radius| radius > MAX_RADIUS) {
            return Err(Error::Missing {
                what: format!("table whose radius is at most {MAX_RADIUS}"),
            });
        }
        let entries: Vec<u8> = radii.iter().map(|radius| 2 * radius + 3).collect();
        let expected = entries.iter().map(|&count| usize::from(count)).sum();
        if frequencies.len() != expected {
            return Err(Error::Shape {
                expected,
                found: frequencies.len(),
            });
        }
        let total_bits = f32::from(PROBABILITY_BITS as u8);
        let mut bounds = Vec::with_capacity(TABLES);
        let mut costs = Vec::with_capacity(TABLES);
        let mut rest = frequencies;
        for &count in &entries {
            let count = usize::from(count);
            let (frequencies, after) = rest.split_at(count);
            rest = after;
            let mut bound = Bounds([u16::MAX; ENTRIES]);
            let mut cost = [0.0; ENTRIES];
            let mut sum = 0_u32;
            for entry in 0..count {
                let frequency = frequencies[stored(entry, count)];
                bound.0[entry] = (sum as u16).wrapping_sub(1);
                cost[entry] = total_bits - f32::from(frequency).log2();
                sum += u32::from(frequency);
            }
            if frequencies.contains(&0) || sum != 1 << PROBABILITY_BITS {
                return Err(Error::Missing {
                    what: "table whose frequencies sum to 2^16".into(),
                });
            }
            bounds.push(bound);
            costs.push(cost);
        }
        let first = centres
            .iter()
            .zip(radii)
            .map(|(centre, &radius)| centre.saturating_sub(i32::from(radius) + ESCAPES as i32))
            .collect();
        Ok(Self {
            bounds,
            first,
            entries,
            costs,
        })
    }

    /// Tables of their shapes alone, as of a model that has counted nothing.
    pub fn logistic() -> Result<Self> {
        let (centres, radii, frequencies) = crate::model::tables_of(&[]);
        Self::new(&centres, &radii, &frequencies)
    }

    /// The entry of a table that holds a number, and how far beyond the table it lies.
    #[inline(always)]
    fn find(&self, table: usize, value: i64) -> (usize, Option<u64>) {
        let entries = i64::from(self.entries[table]);
        let entry = value - i64::from(self.first[table]);
        if entry < ESCAPES as i64 {
            (0, Some((ESCAPES as i64 - 1 - entry) as u64))
        } else if entry >= entries {
            (1, Some((entry - entries) as u64))
        } else {
            (entry as usize, None)
        }
    }

    /// Counts of 0 for every symbol of every table.
    pub fn no_counts(&self) -> Vec<Vec<u64>> {
        self.entries
            .iter()
            .map(|&entries| vec![0; entries.into()])
            .collect()
    }

    /// Counts a symbol where its table counts it.
    pub fn count(&self, context: Context, symbol: i64, counts: &mut [Vec<u64>]) {
        let table = usize::from(context.table);
        let (high, _) = split_bits(centred(symbol, context), context.shift);
        let (entry, _) = self.find(table, high);
        counts[table][stored(entry, self.entries[table].into())] += 1;
    }

    /// Bits that a symbol takes.
    #[inline(always)]
    pub fn cost(&self, context: Context, symbol: i64) -> f32 {
        let table = usize::from(context.table);
        let (high, _) = split_bits(centred(symbol, context), context.shift);
        let (entry, beyond) = self.find(table, high);
        let escape = beyond.map_or(0, |beyond| {
            let lowest = escape_bits(table);
            lowest + 1 + 2 * ((beyond >> lowest) + 1).ilog2()
        });
        self.costs[table][entry % ENTRIES] + (u32::from(context.shift) + escape) as f32
    }

    /// Writes symbols in groups of at most [`GROUP`]: the entries of their tables, then lowest bits that are stored as they
    /// are, then what lies beyond tables.
    pub fn write_group(&self, encoder: &mut Encoder, contexts: &[Context], symbols: &[i64]) {
        for (contexts, symbols) in contexts.chunks(GROUP).zip(symbols.chunks(GROUP)) {
            let mut shift = 0;
            let mut escapes = Vec::new();
            for (place, (&context, &symbol)) in contexts.iter().zip(symbols).enumerate() {
                let table = usize::from(context.table);
                let (high, _) = split_bits(centred(symbol, context), context.shift);
                let (entry, beyond) = self.find(table, high);
                let (cumulative, frequency) = self.bounds[table].of(entry);
                encoder.encode_at(place, cumulative, frequency);
                shift = shift.max(context.shift);
                escapes.extend(beyond.map(|beyond| (table, beyond)));
            }
            for start in (0..shift).step_by(RAW_BITS) {
                for (place, (&context, &symbol)) in contexts.iter().zip(symbols).enumerate() {
                    let (_, low) = split_bits(centred(symbol, context), context.shift);
                    let bits = raw_bits(context, start);
                    if bits > 0 {
                        encoder.raw_at(place, (low >> start) as u16, bits);
                    }
                }
            }
            for (table, beyond) in escapes {
                write_beyond(encoder, beyond, escape_bits(table));
            }
        }
    }

    /// Reads symbols as [`Distributions::write_group`] writes them, none larger than any that is written.
    pub fn read_group(&self, decoder: &mut Decoder, contexts: &[Context], symbols: &mut [i64]) {
        for (contexts, symbols) in contexts.chunks(GROUP).zip(symbols.chunks_mut(GROUP)) {
            #[cfg(target_arch = "x86_64")]
            if simd::machine() >= Machine::Avx2 {
                #[expect(unsafe_code, reason = "the only way to reach wider registers")]
                // SAFETY: the machine has what the function was compiled for.
                unsafe {
                    self.read_with_avx2(decoder, contexts, symbols);
                }
                continue;
            }
            self.read_plainly(decoder, contexts, symbols);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2,popcnt")]
    fn read_with_avx2(&self, decoder: &mut Decoder, contexts: &[Context], symbols: &mut [i64]) {
        // A closure has the registers of the function around it.
        let find = |bounds: &Bounds, target: u16| bounds.find_with_avx2(target);
        self.read_by(find, decoder, contexts, symbols);
    }

    fn read_plainly(&self, decoder: &mut Decoder, contexts: &[Context], symbols: &mut [i64]) {
        self.read_by(Bounds::find, decoder, contexts, symbols);
    }

    /// Reads a group, with a function that finds entries.
    #[inline(always)]
    fn read_by(
        &self,
        find: impl Fn(&Bounds, u16) -> usize,
        decoder: &mut Decoder,
        contexts: &[Context],
        symbols: &mut [i64],
    ) {
        let count = contexts.len().min(symbols.len()).min(GROUP);
        let (contexts, symbols) = (&contexts[..count], &mut symbols[..count]);
        let mut lookup = Lookups {
            find,
            tables: self,
            contexts,
            symbols,
            lowest: ENTRIES,
        };
        decoder.group(count, &mut lookup);
        let lowest = lookup.lowest;
        let shift = contexts
            .iter()
            .fold(0, |shift, context| shift | context.shift);
        if lowest < ESCAPES || shift > 0 {
            self.read_rest(decoder, contexts, symbols);
            return;
        }
        for (symbol, &context) in symbols.iter_mut().zip(contexts) {
            *symbol = mirrored(*symbol, context) + i64::from(context.offset);
        }
    }

    /// Adds what does not come from tables.
    fn read_rest(&self, decoder: &mut Decoder, contexts: &[Context], symbols: &mut [i64]) {
        let mut lows = [0_u64; GROUP];
        let shift = contexts.iter().map(|context| context.shift).max();
        for start in (0..shift.unwrap_or(0)).step_by(RAW_BITS) {
            let mut lookup = LowestBits {
                contexts,
                start,
                found: &mut lows,
            };
            decoder.group(contexts.len(), &mut lookup);
        }
        for ((symbol, &context), low) in symbols.iter_mut().zip(contexts).zip(lows) {
            let table = usize::from(context.table);
            let mut high = *symbol;
            let entry = high - i64::from(self.first[table]);
            if entry < ESCAPES as i64 {
                let beyond = read_beyond(decoder, escape_bits(table)) as i64;
                high = if entry == 0 {
                    (high + (ESCAPES as i64 - 1)).wrapping_sub(beyond)
                } else {
                    (high - 1 + i64::from(self.entries[table])).wrapping_add(beyond)
                };
            }
            let value = (high << context.shift)
                .wrapping_add(low.cast_signed())
                .wrapping_sub(1 << context.shift >> 1);
            *symbol = mirrored(value, context)
                .wrapping_add(i64::from(context.offset) << context.shift)
                .clamp(-MAX_SYMBOL, MAX_SYMBOL);
        }
    }
}

/// Looks the entries of a group's tables up.
struct Lookups<'a, F> {
    find: F,
    tables: &'a Distributions,
    contexts: &'a [Context],
    symbols: &'a mut [i64],
    /// The lowest entry: whether there is any escape.
    lowest: usize,
}

impl<F: Fn(&Bounds, u16) -> usize> Lookup for Lookups<'_, F> {
    #[inline(always)]
    fn find(&mut self, place: usize, target: u16) -> (u16, u32) {
        let table = usize::from(self.contexts[place].table);
        let bounds = &self.tables.bounds[table];
        let entry = (self.find)(bounds, target);
        self.lowest = self.lowest.min(entry);
        self.symbols[place] = i64::from(self.tables.first[table]) + entry as i64;
        bounds.of(entry)
    }
}

/// Takes lowest bits that are stored as they are.
struct LowestBits<'a> {
    contexts: &'a [Context],
    /// The first bit of this go.
    start: u8,
    found: &'a mut [u64; GROUP],
}

impl Lookup for LowestBits<'_> {
    #[inline(always)]
    fn find(&mut self, place: usize, target: u16) -> (u16, u32) {
        let spare = PROBABILITY_BITS - raw_bits(self.contexts[place], self.start);
        let bits = u32::from(target) >> spare;
        self.found[place] |= u64::from(bits) << self.start;
        ((bits << spare) as u16, 1 << spare)
    }
}

/// Bits of a symbol that are stored as they are in one go.
const RAW_BITS: usize = 16;

/// How many of a symbol's lowest bits are stored in the go that starts at a bit.
#[inline(always)]
fn raw_bits(context: Context, start: u8) -> u32 {
    u32::from(context.shift.saturating_sub(start)).min(RAW_BITS as u32)
}

/// Writes how far a number lies beyond a table: the size in bits of what is above its lowest bits, and the bits.
fn write_beyond(encoder: &mut Encoder, beyond: u64, lowest: u32) {
    let high = (beyond >> lowest) + 1;
    for _ in 0..high.ilog2() {
        encoder.raw(1, 1);
    }
    encoder.raw(0, 1);
    encoder.raw(high, high.ilog2());
    encoder.raw(beyond, lowest);
}

/// Reads what [`write_beyond`] wrote.
fn read_beyond(decoder: &mut Decoder, lowest: u32) -> u64 {
    let mut bits = 0;
    while bits < MAX_BEYOND_BITS && decoder.raw(1) == 1 {
        bits += 1;
    }
    let high = (1 << bits | decoder.raw(bits)) - 1;
    high << lowest | decoder.raw(lowest)
}

/// More bits than any symbol has: a damaged stream ends here.
const MAX_BEYOND_BITS: u32 = 48;

/// A symbol as its table has it.
#[inline(always)]
fn centred(symbol: i64, context: Context) -> i64 {
    mirrored(
        symbol - (i64::from(context.offset) << context.shift),
        context,
    )
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

/// A table of its shape alone: what a model starts from before it has counted anything.
pub(crate) fn logistic_counts(table: usize) -> Vec<f64> {
    let (centre, radius) = support(table);
    let (shape, index) = shape_and_scale(table);
    let scale = scale(index as f64);
    let mean = scale * (table % MEANS) as f64 / 4.0;
    let below = |value: f64| {
        let logistic = |scale: f64| 1.0 / (1.0 + (-(value - mean) / scale).exp());
        let tail = TAILS[shape];
        (1.0 - tail) * logistic(scale) + tail * logistic(scale * TAIL_RATIO)
    };
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
        Distributions::logistic().unwrap()
    }

    const SYMBOLS: [i64; 14] = [
        0,
        1,
        -1,
        2,
        5,
        -7,
        14,
        -15,
        40,
        -300,
        100_000,
        -1 << 35,
        MAX_SYMBOL,
        -MAX_SYMBOL,
    ];

    fn contexts() -> Vec<Context> {
        let means = (-8000..8000)
            .step_by(997)
            .chain((-140_000..140_000).step_by(39_119));
        means
            .flat_map(|mean| {
                let scales = (-6000..64_000).step_by(1591);
                scales.flat_map(move |scale| {
                    (-3000..3000)
                        .step_by(1024)
                        .map(move |shape| Context::new(mean, scale, shape))
                })
            })
            .collect()
    }

    #[test]
    fn symbols_come_back() {
        let tables = logistic();
        let mut contexts = contexts();
        let mut symbols: Vec<i64> = SYMBOLS
            .iter()
            .copied()
            .cycle()
            .take(contexts.len())
            .collect();
        // In an order where groups with and without escapes and shifts alternate.
        contexts.extend(vec![Context::new(0, 0, -9999); 1000]);
        symbols.extend(vec![0; 1000]);
        let mut encoder = Encoder::grouped();
        for group in [1, 3, 64, 200, 64, 5].into_iter().cycle().take(40) {
            let start = group * 7;
            let range = start..start + group;
            tables.write_group(&mut encoder, &contexts[range.clone()], &symbols[range]);
        }
        tables.write_group(&mut encoder, &contexts, &symbols);
        let bytes = encoder.finish();
        for is_plain in [false, true] {
            let mut decoder = Decoder::grouped(&bytes);
            let mut read = |contexts: &[Context], symbols: &mut [i64]| {
                if is_plain {
                    for (contexts, symbols) in contexts.chunks(64).zip(symbols.chunks_mut(64)) {
                        tables.read_plainly(&mut decoder, contexts, symbols);
                    }
                } else {
                    tables.read_group(&mut decoder, contexts, symbols);
                }
            };
            for group in [1, 3, 64, 200, 64, 5].into_iter().cycle().take(40) {
                let range = group * 7..group * 7 + group;
                let mut found = vec![0; group];
                read(&contexts[range.clone()], &mut found);
                assert_eq!(found, symbols[range]);
            }
            let mut found = vec![0; symbols.len()];
            read(&contexts, &mut found);
            assert_eq!(found, symbols);
            decoder.end().unwrap();
        }
    }

    #[test]
    fn a_cost_is_what_a_symbol_takes() {
        let tables = logistic();
        let contexts = contexts();
        let mut state = 7_u64;
        let noise: Vec<u8> = (0..40_000)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        // What noise decodes to is as likely as its contexts say.
        let mut symbols = vec![0; contexts.len()];
        tables.read_group(&mut Decoder::grouped(&noise), &contexts, &mut symbols);
        let mut encoder = Encoder::grouped();
        tables.write_group(&mut encoder, &contexts, &symbols);
        let bits = encoder.finish().len() as f64 * 8.0;
        let cost = contexts
            .iter()
            .zip(&symbols)
            .map(|(&context, &symbol)| f64::from(tables.cost(context, symbol)));
        let cost: f64 = cost.sum();
        assert!((bits / cost - 1.0).abs() < 0.003, "{bits} {cost}");
    }

    #[test]
    fn scales_beyond_the_tables_are_shifted() {
        let lightest = -2 * 1024;
        let last = Context::new(0, 17 * 256, lightest);
        assert_eq!((last.table, last.shift), (37 * 13, 0));
        let next = Context::new(0, 18 * 256, lightest);
        assert_eq!((next.table, next.shift), (32 * 13, 1));
        let heaviest = Context::new(0, 18 * 256, 1024);
        assert_eq!((heaviest.table, heaviest.shift), ((3 * 38 + 26) * 13, 2));
        assert!(Context::new(-512, 0, 0).is_mirrored);
        for extreme in [i32::MIN, i32::MAX] {
            let context = Context::new(extreme, extreme, extreme);
            assert!(usize::from(context.table) < TABLES && usize::from(context.shift) <= MAX_SHIFT);
        }
    }

    #[test]
    fn means_beyond_the_tables_are_steps_and_a_rest() {
        for (index, (&parts, &divisor)) in SCALE_PARTS.iter().zip(&SCALE_DIVISORS).enumerate() {
            let exact = scale(index as f64) * 4096.0;
            assert_eq!(f64::from(parts), exact.round());
            assert_eq!(
                f64::from(divisor),
                (f64::from(1 << 20) / exact.round()).round()
            );
        }
        for index in 0..38 {
            for mean in -300..=300_i32 {
                let context = Context::new(mean << 9, (index - MIDDLE) << 8, -4096);
                assert_eq!(usize::from(context.table) / MEANS, index as usize);
                let rest = f64::from(context.table % MEANS as u16) * scale(f64::from(index)) / 4.0;
                let sign = if context.is_mirrored { -1.0 } else { 1.0 };
                let found = f64::from(context.offset) + sign * rest;
                let asked =
                    f64::from(mean.clamp(-MAX_MEAN, MAX_MEAN)) * scale(f64::from(index)) / 4.0;
                // Where a scale is small, a rest of half a step is beyond its tables.
                let error = (found - asked).abs();
                let within = scale(f64::from(index)) / 8.0 + 0.01;
                assert!(
                    error <= within.max(0.51 - 3.0 * scale(f64::from(index))),
                    "{index} {mean}: {found} {asked}"
                );
                assert!(context.offset == 0 || mean.abs() > 12);
            }
        }
    }

    #[test]
    fn any_bytes_can_be_read() {
        let tables = logistic();
        let contexts = contexts();
        for bytes in [&[][..], &[0xff; 40], &[0x35; 3000], &[0xfe; 9000]] {
            let mut symbols = vec![0; contexts.len()];
            tables.read_group(&mut Decoder::grouped(bytes), &contexts, &mut symbols);
            assert!(symbols.iter().all(|symbol| symbol.abs() <= MAX_SYMBOL));
        }
    }
}
