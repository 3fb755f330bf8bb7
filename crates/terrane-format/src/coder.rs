//! An entropy coder (rANS): symbols with integer probabilities to bytes and back, bit-exact on every machine.
//!
//! It is our own rather than a library's because it is part of the specification: a few lines that somebody can write
//! again in any language, with adaptive bits and fixed tables in one stream. The reader holds a number, its state: the
//! lowest 16 bits say which symbol is next, and taking it out leaves a smaller state, which a word of 16 bits
//! fills up again. The writer does the same backwards, last symbol first, so it keeps symbols until the end.
//!
//! A long stream has several states, lanes, that share its words. Symbols of a group take them in turn, so
//! that a processor works on several symbols at once.
#![expect(
    clippy::cast_possible_truncation,
    reason = "frequencies are masked to their width before they are narrowed"
)]
#![expect(
    clippy::inline_always,
    reason = "groups are read by a caller's function, which must be inlined to be compiled for its machine"
)]

use crate::{Error, Result};

/// Frequencies are parts of this total, 2^16, as a power of two.
pub const PROBABILITY_BITS: u32 = 16;
/// A state below this takes a word, as a power of two: two bits more than a symbol covers, so that next to nothing is lost
/// to rounding.
const LOWEST_BITS: u32 = 18;
const LOWEST: u64 = 1 << LOWEST_BITS;
/// Raw bits are coded in groups of at most this many.
const RAW_GROUP: u32 = 16;
/// Symbols of a group at most.
pub const GROUP: usize = 64;
/// Lanes of a stream of groups at most.
const MAX_LANES: usize = 4;
/// Bytes from which a stream of groups has two lanes, and four: where those cost a five hundredth of it at most.
const TWO_FROM: usize = 2048;
const FOUR_FROM: usize = 5120;

/// Lanes of a stream of groups of so many bytes.
fn lanes(length: usize) -> usize {
    match length {
        ..TWO_FROM => 1,
        TWO_FROM..FOUR_FROM => 2,
        FOUR_FROM.. => MAX_LANES,
    }
}

/// The state that a writer starts from and a reader ends with. A lane alone starts empty: its reader is short of words
/// only at the end, where there are none. Lanes that share their words must always be filled.
fn first_state(lanes: usize) -> u64 {
    if lanes == 1 { 0 } else { LOWEST }
}

/// A symbol that is not written yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    cumulative: u16,
    /// Its frequency less 1.
    frequency: u16,
    /// Its place in its group.
    place: u8,
}

/// Writes symbols.
#[derive(Debug, Clone, Default)]
pub struct Encoder {
    pending: Vec<Pending>,
    is_grouped: bool,
}

impl Encoder {
    /// For a stream with groups of symbols, which [`Decoder::grouped`] reads.
    pub fn grouped() -> Self {
        Self {
            is_grouped: true,
            ..Self::default()
        }
    }

    /// Writes a symbol by its cumulative frequency and its frequency, of a total of 2^16.
    #[inline]
    pub fn encode(&mut self, cumulative: u16, frequency: u32) {
        self.encode_at(0, cumulative, frequency);
    }

    /// Writes the symbol at a place of a group.
    #[inline]
    pub fn encode_at(&mut self, place: usize, cumulative: u16, frequency: u32) {
        self.pending.push(Pending {
            cumulative,
            frequency: frequency.wrapping_sub(1) as u16,
            place: (place % GROUP) as u8,
        });
    }

    /// Writes a bit with its adaptive probability, and updates that.
    pub fn bit(&mut self, bit: &mut AdaptiveBit, value: bool) {
        let split = bit.p_one();
        if value {
            self.encode(0, split);
        } else {
            self.encode(split as u16, (1 << PROBABILITY_BITS) - split);
        }
        bit.update(value);
    }

    /// Writes the lowest `count` bits of a number, all equally likely.
    pub fn raw(&mut self, value: u64, mut count: u32) {
        while count > 0 {
            let group = count.min(RAW_GROUP);
            count -= group;
            self.raw_at(0, (value >> count) as u16, group);
        }
    }

    /// Writes the lowest `count` bits of a number, 16 at most, at a place of a group.
    #[inline]
    pub fn raw_at(&mut self, place: usize, value: u16, count: u32) {
        let frequency = 1_u32 << (PROBABILITY_BITS - count);
        let cumulative = (u32::from(value) * frequency) as u16;
        self.encode_at(place, cumulative, frequency);
    }

    /// The bytes.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        // A symbol takes a word at most.
        if !self.is_grouped || 2 * self.pending.len() + 8 < TWO_FROM {
            return self.bytes::<1>();
        }
        // Most lanes first: they are the quickest to write, and their length tells how many there are to be.
        let four = self.bytes::<MAX_LANES>();
        if four.len() >= FOUR_FROM {
            return four;
        }
        let two = (four.len() >= TWO_FROM).then(|| self.bytes::<2>());
        if two.as_ref().is_none_or(|two| two.len() < TWO_FROM) {
            let one = self.bytes::<1>();
            if one.len() < TWO_FROM {
                return one;
            }
        }
        let two = two.unwrap_or_else(|| self.bytes::<2>());
        if two.len() < FOUR_FROM {
            at_least(two, TWO_FROM)
        } else {
            at_least(four, FOUR_FROM)
        }
    }

    /// The bytes of a stream of N lanes.
    fn bytes<const N: usize>(&self) -> Vec<u8> {
        // Backwards: it is turned round at the end.
        let mut bytes = Vec::with_capacity(self.pending.len() / 4 + 8 * N);
        let mut states = [first_state(N); N];
        for symbol in self.pending.iter().rev() {
            let state = &mut states[usize::from(symbol.place) % N];
            let frequency = u64::from(symbol.frequency) + 1;
            if *state >> LOWEST_BITS >= frequency {
                bytes.extend((*state as u16).to_be_bytes());
                *state >>= 16;
            }
            let (quotient, rest) = (*state / frequency, *state % frequency);
            *state = (quotient << PROBABILITY_BITS) + rest + u64::from(symbol.cumulative);
        }
        for state in states.iter_mut().rev() {
            while *state > 0 {
                bytes.extend((*state as u16).to_be_bytes());
                *state >>= 16;
            }
        }
        bytes.reverse();
        // The first word may be a byte: an odd length shows it.
        if bytes.get(1) == Some(&0) {
            bytes.remove(1);
        }
        bytes
    }
}

/// A stream of lanes that is long enough for them: words that nobody reads fill it up. Lanes make a stream longer, so
/// that none is known that needs them.
fn at_least(mut bytes: Vec<u8>, length: usize) -> Vec<u8> {
    while bytes.len() < length {
        bytes.extend([0, 0]);
    }
    bytes
}

/// Reads symbols.
#[derive(Debug)]
pub struct Decoder<'a> {
    states: [u64; MAX_LANES],
    lanes: usize,
    /// What is left of the words.
    words: &'a [u8],
    length: usize,
    /// Whether the first word has no more bytes than it needs.
    is_shortest: bool,
}

impl<'a> Decoder<'a> {
    /// Starts reading.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::with_lanes(bytes, 1)
    }

    /// Starts reading a stream with groups of symbols.
    pub fn grouped(bytes: &'a [u8]) -> Self {
        Self::with_lanes(bytes, lanes(bytes.len()))
    }

    fn with_lanes(bytes: &'a [u8], lanes: usize) -> Self {
        let (first, words) = bytes.split_at(bytes.len() % 2);
        let mut decoder = Self {
            states: [0; MAX_LANES],
            lanes,
            words,
            length: bytes.len(),
            is_shortest: bytes.get(1 - first.len()) != Some(&0),
        };
        decoder.states[0] = first.first().copied().unwrap_or(0).into();
        for lane in 0..lanes {
            while decoder.states[lane] < LOWEST && decoder.fill(lane) {}
        }
        decoder
    }

    /// Fills a lane with a word, where there is one.
    #[inline(always)]
    fn fill(&mut self, lane: usize) -> bool {
        let Some((word, rest)) = self.words.split_first_chunk() else {
            return false;
        };
        self.states[lane] = self.states[lane] << 16 | u64::from(u16::from_le_bytes(*word));
        self.words = rest;
        true
    }

    /// The cumulative frequency that the next symbol covers.
    #[inline]
    pub fn decode_target(&self) -> u16 {
        self.states[0] as u16
    }

    /// Consumes the symbol with this cumulative frequency and frequency.
    #[inline]
    pub fn consume(&mut self, cumulative: u16, frequency: u32) {
        self.states[0] = without(self.states[0], cumulative, frequency);
        if self.states[0] < LOWEST {
            self.fill(0);
        }
    }

    /// Reads a group of at most [`GROUP`] symbols.
    #[inline(always)]
    pub fn group(&mut self, count: usize, lookup: &mut impl Lookup) {
        match self.lanes {
            1 => self.group_in::<1>(count, lookup),
            2 => self.group_in::<2>(count, lookup),
            _ => self.group_in::<MAX_LANES>(count, lookup),
        }
    }

    #[inline(always)]
    fn group_in<const N: usize>(&mut self, count: usize, lookup: &mut impl Lookup) {
        let count = count.min(GROUP);
        let mut states = [0; N];
        states.copy_from_slice(&self.states[..N]);
        // A symbol takes one word at most.
        let mut ending = [0; 2 * GROUP];
        let mut window = if let Some(bytes) = self.words.first_chunk() {
            Window {
                bytes,
                available: GROUP,
                taken: 0,
            }
        } else {
            ending[..self.words.len()].copy_from_slice(self.words);
            Window {
                bytes: &ending,
                available: self.words.len() / 2,
                taken: 0,
            }
        };
        let whole = count - count % N;
        for start in (0..whole).step_by(N) {
            for (lane, state) in states.iter_mut().enumerate() {
                *state = window.step(*state, start + lane, lookup);
            }
        }
        // A copy, so that the states above stay in registers.
        self.states[..N].copy_from_slice(&states);
        for place in whole..count {
            let state = &mut self.states[place % N];
            *state = window.step(*state, place, lookup);
        }
        self.words = &self.words[2 * window.taken..];
    }

    /// Reads a bit with its adaptive probability, and updates that.
    pub fn bit(&mut self, bit: &mut AdaptiveBit) -> bool {
        let split = bit.p_one();
        let value = u32::from(self.decode_target()) < split;
        if value {
            self.consume(0, split);
        } else {
            self.consume(split as u16, (1 << PROBABILITY_BITS) - split);
        }
        bit.update(value);
        value
    }

    /// Reads `count` raw bits, 64 at most.
    pub fn raw(&mut self, mut count: u32) -> u64 {
        let mut value = 0;
        while count > 0 {
            let group = count.min(RAW_GROUP);
            count -= group;
            let bits = self.decode_target() >> (PROBABILITY_BITS - group);
            self.consume(
                bits << (PROBABILITY_BITS - group),
                1 << (PROBABILITY_BITS - group),
            );
            value = value << group | u64::from(bits);
        }
        value
    }

    /// Refuses a stream that does not end here: its states are then those that its writer started from.
    pub fn end(&self) -> Result<()> {
        let lanes = &self.states[..self.lanes];
        let is_at_end = lanes.iter().all(|&state| state == first_state(self.lanes));
        // Unread words are those that make a stream long enough for its lanes.
        let is_filled_up = self.lanes > 1
            && [TWO_FROM, FOUR_FROM].contains(&(self.length & !1))
            && self.words.iter().all(|&byte| byte == 0);
        if is_at_end && self.is_shortest && (self.words.is_empty() || is_filled_up) {
            return Ok(());
        }
        Err(Error::Malformed {
            what: "coded stream",
            offset: (self.length - self.words.len()) as u64,
            reason: "it does not end with its last symbol",
        })
    }
}

/// Where symbols of a group are looked up. What implements it is to be inlined, or lanes gain nothing.
pub trait Lookup {
    /// Takes the symbol at a place that covers a cumulative frequency, and gives its cumulative frequency and frequency.
    fn find(&mut self, place: usize, target: u16) -> (u16, u32);
}

/// The words that the symbols of a group may take.
struct Window<'a> {
    bytes: &'a [u8; 2 * GROUP],
    available: usize,
    taken: usize,
}

impl Window<'_> {
    /// A lane's state after the symbol at a place.
    #[inline(always)]
    #[expect(
        clippy::needless_bitwise_bool,
        reason = "whether a symbol needs a word is hard to foresee: no branch may depend on it"
    )]
    fn step(&mut self, state: u64, place: usize, lookup: &mut impl Lookup) -> u64 {
        let (cumulative, frequency) = lookup.find(place, state as u16);
        let rest = without(state, cumulative, frequency);
        let at = self.taken % GROUP * 2;
        let word = u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]);
        let filled = rest << 16 | u64::from(word);
        let is_filled = (rest < LOWEST) & (self.taken < self.available);
        self.taken += usize::from(is_filled);
        if is_filled { filled } else { rest }
    }
}

/// A state without its next symbol.
#[inline(always)]
fn without(state: u64, cumulative: u16, frequency: u32) -> u64 {
    let rest = (state as u16).wrapping_sub(cumulative);
    u64::from(frequency)
        .wrapping_mul(state >> PROBABILITY_BITS)
        .wrapping_add(rest.into())
}

/// A bit with an adaptive probability: the mean of a fast and a slow estimate, both fast at first.
#[derive(Debug, Clone, Copy)]
pub struct AdaptiveBit {
    fast: u16,
    slow: u16,
    seen: u8,
}

/// Bits after which the fast and the slow estimate adapt no slower.
const FAST: u8 = 40;
const SLOW: u8 = 250;

impl Default for AdaptiveBit {
    fn default() -> Self {
        Self {
            fast: 1 << 15,
            slow: 1 << 15,
            seen: 0,
        }
    }
}

impl AdaptiveBit {
    /// One that starts with a frequency of ones, of 2^16, as if it had been seen so often.
    pub(crate) fn starting(p_one: u16, seen: u8) -> Self {
        Self {
            fast: p_one,
            slow: p_one,
            seen,
        }
    }

    /// The frequency of a one, from 32 to 2^16 − 32.
    fn p_one(self) -> u32 {
        let sum = u32::from(self.fast) + u32::from(self.slow);
        (sum / 2).clamp(32, (1 << PROBABILITY_BITS) - 32)
    }

    fn update(&mut self, value: bool) {
        let target = if value { u32::from(u16::MAX) } else { 0 };
        for (estimate, limit) in [(&mut self.fast, FAST), (&mut self.slow, SLOW)] {
            let weight = u32::from(self.seen.min(limit)) + 2;
            // Rounded towards the old estimate, so that it stays within its 16 bits.
            *estimate = if value {
                *estimate + ((target - u32::from(*estimate)) / weight) as u16
            } else {
                *estimate - (u32::from(*estimate) / weight) as u16
            };
        }
        self.seen = self.seen.saturating_add(1).min(SLOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without an order, the same every time.
    pub(crate) fn noise(count: usize) -> Vec<u64> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        (0..count)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            })
            .collect()
    }

    #[test]
    fn bits_and_raw_numbers_come_back() {
        let values = noise(5000);
        let mut encoder = Encoder::default();
        let mut bits = [AdaptiveBit::default(); 2];
        for &value in &values {
            encoder.bit(&mut bits[0], value % 50 == 0);
            encoder.bit(&mut bits[1], value % 3 == 0);
            encoder.raw(value, (value % 65) as u32);
        }
        let bytes = encoder.finish();
        let mut decoder = Decoder::new(&bytes);
        let mut bits = [AdaptiveBit::default(); 2];
        for &value in &values {
            assert_eq!(decoder.bit(&mut bits[0]), value % 50 == 0);
            assert_eq!(decoder.bit(&mut bits[1]), value % 3 == 0);
            let count = (value % 65) as u32;
            let expected = if count == 64 {
                value
            } else {
                value & ((1 << count) - 1)
            };
            assert_eq!(decoder.raw(count), expected);
        }
        decoder.end().unwrap();
    }

    /// Symbols of a table with 2, 3, … parts in 2^16 each but the last, at places of groups.
    fn symbols(count: usize) -> Vec<(usize, u16, u32)> {
        let frequencies: Vec<u32> = (0..40_u32).map(|index| index * index * 2 + 2).collect();
        noise(count)
            .iter()
            .enumerate()
            .map(|(index, &value)| {
                let target = (value >> 20) as u16;
                let mut below = 0;
                for &frequency in &frequencies {
                    if u32::from(target) < below + frequency {
                        return (index % GROUP, below as u16, frequency);
                    }
                    below += frequency;
                }
                (index % GROUP, below as u16, (1 << 16) - below)
            })
            .collect()
    }

    /// Looks symbols up that are known.
    struct Known<'a> {
        symbols: &'a [(usize, u16, u32)],
        is_equal: bool,
    }

    impl Lookup for Known<'_> {
        fn find(&mut self, place: usize, target: u16) -> (u16, u32) {
            let (_, cumulative, frequency) = self.symbols[place];
            let distance = u32::from(target).wrapping_sub(cumulative.into());
            self.is_equal &= distance < frequency;
            (cumulative, frequency)
        }
    }

    /// Whether bytes are those symbols and nothing else.
    fn holds(bytes: &[u8], symbols: &[(usize, u16, u32)]) -> bool {
        let mut decoder = Decoder::grouped(bytes);
        let is_equal = symbols.chunks(GROUP).all(|symbols| {
            let mut known = Known {
                symbols,
                is_equal: true,
            };
            decoder.group(symbols.len(), &mut known);
            known.is_equal
        });
        is_equal && decoder.end().is_ok()
    }

    fn written(symbols: &[(usize, u16, u32)]) -> Vec<u8> {
        let mut encoder = Encoder::grouped();
        for &(place, cumulative, frequency) in symbols {
            encoder.encode_at(place, cumulative, frequency);
        }
        encoder.finish()
    }

    #[test]
    fn groups_come_back_with_and_without_lanes() {
        let symbols = symbols(20_000);
        let mut lengths = Vec::new();
        for count in (0..200).chain((2000..9000).step_by(17)).chain([20_000]) {
            let bytes = written(&symbols[..count]);
            lengths.push(bytes.len());
            assert!(holds(&bytes, &symbols[..count]), "{count}");
        }
        for count in [1, 2, MAX_LANES] {
            assert!(lengths.iter().any(|&length| lanes(length) == count));
        }
    }

    #[test]
    fn a_stream_that_is_longer_or_shorter_is_refused() {
        let symbols = symbols(9000);
        for count in [1, 2, 3, 10, 100, 9000] {
            let bytes = written(&symbols[..count]);
            let is_read = |bytes: &[u8]| holds(bytes, &symbols[..count]);
            assert!(is_read(&bytes));
            for extra in [[0, 0], [0, 1], [7, 0]] {
                assert!(!is_read(&[&bytes[..], &extra].concat()), "{count}");
                assert!(!is_read(&[&bytes[..], &extra[..1]].concat()));
            }
            assert!(!is_read(&bytes[..bytes.len() - 1]));
            let mut changed = bytes.clone();
            changed[bytes.len() / 2] ^= 4;
            assert!(!is_read(&changed));
        }
    }

    #[test]
    fn a_stream_too_short_for_its_lanes_is_filled_up() {
        let symbols = symbols(4000);
        let mut encoder = Encoder::grouped();
        for &(place, cumulative, frequency) in &symbols[..1000] {
            encoder.encode_at(place, cumulative, frequency);
        }
        let bytes = at_least(encoder.bytes::<2>(), TWO_FROM);
        let is_read = |bytes: &[u8]| holds(bytes, &symbols[..1000]);
        assert!(is_read(&bytes));
        assert!(!is_read(&[&bytes[..], &[0, 0]].concat()));
        assert!(!is_read(&[&bytes[..bytes.len() - 1], &[1]].concat()));
    }

    #[test]
    fn rare_and_certain_symbols_cost_what_they_should() {
        for tail in [0_u16, 1, 0xffff] {
            let mut encoder = Encoder::default();
            for _ in 0..100 {
                encoder.encode(0xffff, 1);
                encoder.encode(0, 1 << 16);
            }
            encoder.encode(tail, 1);
            let bytes = encoder.finish();
            assert!(bytes.len() <= 202);
            let mut decoder = Decoder::new(&bytes);
            for _ in 0..100 {
                assert_eq!(decoder.decode_target(), 0xffff);
                decoder.consume(0xffff, 1);
                decoder.consume(0, 1 << 16);
            }
            assert_eq!(decoder.decode_target(), tail);
            decoder.consume(tail, 1);
            decoder.end().unwrap();
        }
        assert!(Encoder::default().finish().is_empty());
        Decoder::new(&[]).end().unwrap();
    }

    #[test]
    fn a_rare_bit_costs_its_entropy() {
        let mut encoder = Encoder::default();
        let mut bit = AdaptiveBit::default();
        for index in 0..100_000 {
            encoder.bit(&mut bit, index % 100 == 99);
        }
        let bits = encoder.finish().len() as f64 * 8.0;
        // Entropy 0.0808 bits each; adapting costs something.
        assert!(bits / 1e5 < 0.0808 * 1.12, "{}", bits / 1e5);
    }

    #[test]
    fn any_bytes_can_be_read() {
        for bytes in [&[][..], &[0xff; 40], &[0x00, 0x01], &[0x80; 7], &[1; 5000]] {
            let mut decoder = Decoder::grouped(bytes);
            let mut bit = AdaptiveBit::default();
            let mut known = Known {
                symbols: &symbols(50),
                is_equal: true,
            };
            for count in 0..200 {
                decoder.bit(&mut bit);
                decoder.raw(count % 64);
                decoder.group(count as usize % 50, &mut known);
            }
        }
    }
}
