//! A range coder: symbols with integer probabilities to bytes and back, bit-exact on every machine.
//!
//! It is our own rather than a library's because it is part of the specification: forty lines that somebody can write
//! again in any language, with adaptive bits and fixed tables in one stream. Carries propagate back through
//! cached bytes (as in LZMA), so no probability is lost to them.
#![expect(
    clippy::cast_possible_truncation,
    reason = "frequencies are masked to their width before they are narrowed"
)]

use crate::{Error, Result};

/// Frequencies are parts of this total, 2^16, as a power of two.
pub const PROBABILITY_BITS: u32 = 16;
/// Below this the range is renormalised by a byte.
const MIN_RANGE: u32 = 1 << 24;
/// Raw bits are coded in groups of at most this many.
const RAW_GROUP: u32 = 16;

/// Writes symbols.
#[derive(Debug, Clone)]
pub struct Encoder {
    low: u64,
    range: u32,
    /// The byte that may still get a carry, and how many bytes of 255 are pending after it.
    cache: u8,
    pending: u64,
    is_first: bool,
    bytes: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            low: 0,
            range: u32::MAX,
            cache: 0,
            pending: 0,
            is_first: true,
            bytes: Vec::new(),
        }
    }
}

impl Encoder {
    /// Writes a symbol by its cumulative frequency and its frequency, of a total of 2^16.
    #[inline]
    pub fn encode(&mut self, cumulative: u16, frequency: u32) {
        let scale = self.range >> PROBABILITY_BITS;
        self.low += u64::from(scale) * u64::from(cumulative);
        self.range = scale * frequency;
        while self.range < MIN_RANGE {
            self.range <<= 8;
            self.shift();
        }
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
            let bits = (value >> count) & ((1 << group) - 1);
            self.encode(
                (bits << (PROBABILITY_BITS - group)) as u16,
                1 << (PROBABILITY_BITS - group),
            );
        }
    }

    fn shift(&mut self) {
        let carry = (self.low >> 32) as u8;
        if self.low < 0xff00_0000 || carry == 1 {
            if !self.is_first {
                self.bytes.push(self.cache.wrapping_add(carry));
            }
            self.is_first = false;
            for _ in 0..self.pending {
                self.bytes.push(0xff_u8.wrapping_add(carry));
            }
            self.pending = 0;
            self.cache = ((self.low >> 24) & 0xff) as u8;
        } else {
            self.pending += 1;
        }
        self.low = (self.low & 0x00ff_ffff) << 8;
    }

    /// The bytes; those at the end that a reader takes for 0 anyway are left out.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        for _ in 0..5 {
            self.shift();
        }
        while self.bytes.last() == Some(&0) {
            self.bytes.pop();
        }
        self.bytes
    }
}

/// Reads symbols.
#[derive(Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    offset: usize,
    code: u32,
    range: u32,
}

impl<'a> Decoder<'a> {
    /// Starts reading.
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self {
            bytes,
            offset: 0,
            code: 0,
            range: u32::MAX,
        };
        for _ in 0..4 {
            decoder.code = decoder.code << 8 | decoder.byte();
        }
        decoder
    }

    #[inline]
    fn byte(&mut self) -> u32 {
        let byte = self.bytes.get(self.offset).copied().unwrap_or(0);
        self.offset += 1;
        u32::from(byte)
    }

    /// The cumulative frequency that the next symbol covers.
    #[inline]
    pub fn decode_target(&self) -> u16 {
        let scale = self.range >> PROBABILITY_BITS;
        (self.code / scale).min(0xffff) as u16
    }

    /// Consumes the symbol with this cumulative frequency and frequency.
    #[inline]
    pub fn consume(&mut self, cumulative: u16, frequency: u32) {
        let scale = self.range >> PROBABILITY_BITS;
        let below = scale.wrapping_mul(u32::from(cumulative));
        self.code = self.code.wrapping_sub(below);
        self.range = scale * frequency;
        while self.range < MIN_RANGE {
            self.range <<= 8;
            self.code = self.code << 8 | self.byte();
        }
    }

    /// Consumes a symbol if it is the next one: [`Decoder::decode_target`] and [`Decoder::consume`] without a division.
    #[inline]
    pub fn consume_if(&mut self, cumulative: u16, frequency: u32) -> bool {
        let scale = self.range >> PROBABILITY_BITS;
        let below = scale.wrapping_mul(u32::from(cumulative));
        let above = self.code.wrapping_sub(below);
        let range = scale * frequency;
        if above >= range {
            return false;
        }
        self.code = above;
        self.range = range;
        while self.range < MIN_RANGE {
            self.range <<= 8;
            self.code = self.code << 8 | self.byte();
        }
        true
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

    /// Refuses bytes that no symbol needed.
    pub fn end(&self) -> Result<()> {
        if self.offset < self.bytes.len() || self.bytes.last() == Some(&0) {
            return Err(Error::Malformed {
                what: "coded stream",
                offset: self.offset as u64,
                reason: "there is more than its symbols need",
            });
        }
        Ok(())
    }
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

    #[test]
    fn carries_propagate_through_any_number_of_bytes() {
        // The last of all frequencies again and again drives `low` against its upper end.
        for tail in [0_u16, 1, 0xffff] {
            let mut encoder = Encoder::default();
            for _ in 0..100 {
                encoder.encode(0xffff, 1);
            }
            encoder.encode(tail, 1);
            let bytes = encoder.finish();
            let mut decoder = Decoder::new(&bytes);
            for _ in 0..100 {
                assert_eq!(decoder.decode_target(), 0xffff);
                decoder.consume(0xffff, 1);
            }
            assert_eq!(decoder.decode_target(), tail);
        }
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
        for bytes in [&[][..], &[0xff; 40], &[0x00, 0x01], &[0x80; 7]] {
            let mut decoder = Decoder::new(bytes);
            let mut bit = AdaptiveBit::default();
            for count in 0..200 {
                decoder.bit(&mut bit);
                decoder.raw(count % 64);
            }
        }
    }
}
