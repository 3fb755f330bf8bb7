//! A range coder: symbols with integer probabilities to bytes and back, bit-exact on every machine.
//!
//! It is our own rather than a library's because it is part of the specification: forty lines that somebody can write
//! again in any language, with adaptive bits and fixed tables in one stream. Carries run back through the bytes that
//! were held (as in LZMA), so no probability is lost to them.
#![expect(
    clippy::cast_possible_truncation,
    reason = "parts of a probability are masked to their width before they are narrowed"
)]

use crate::{Error, Result};

/// Bits of a probability: all symbols of a table share 2^16.
pub const PROBABILITY_BITS: u32 = 16;
/// Below this the range is widened by a byte.
const BOTTOM: u32 = 1 << 24;
/// Raw bits are coded so many at a time.
const RAW_AT_ONCE: u32 = 16;

/// Writes symbols.
#[derive(Debug)]
pub struct Encoder {
    low: u64,
    range: u32,
    /// The byte that waits for a carry, and how many bytes of 255 follow it.
    held: u8,
    follow: u64,
    is_first: bool,
    bytes: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            low: 0,
            range: u32::MAX,
            held: 0,
            follow: 0,
            is_first: true,
            bytes: Vec::new(),
        }
    }
}

impl Encoder {
    /// Writes the symbol that has `size` of 2^16 parts, after `start` parts of others.
    #[inline]
    pub fn encode(&mut self, start: u16, size: u32) {
        let part = self.range >> PROBABILITY_BITS;
        self.low += u64::from(part) * u64::from(start);
        self.range = part * size;
        while self.range < BOTTOM {
            self.range <<= 8;
            self.shift();
        }
    }

    /// Writes a yes or no, and lets its probability learn.
    pub fn bit(&mut self, bit: &mut Bit, value: bool) {
        let split = bit.yes();
        if value {
            self.encode(0, split);
        } else {
            self.encode(split as u16, (1 << PROBABILITY_BITS) - split);
        }
        bit.learn(value);
    }

    /// Writes the lowest `count` bits of a number, all equally likely.
    pub fn raw(&mut self, value: u64, mut count: u32) {
        while count > 0 {
            let now = count.min(RAW_AT_ONCE);
            count -= now;
            let part = (value >> count) & ((1 << now) - 1);
            self.encode(
                (part << (PROBABILITY_BITS - now)) as u16,
                1 << (PROBABILITY_BITS - now),
            );
        }
    }

    fn shift(&mut self) {
        let carry = (self.low >> 32) as u8;
        if self.low < 0xff00_0000 || carry == 1 {
            if !self.is_first {
                self.bytes.push(self.held.wrapping_add(carry));
            }
            self.is_first = false;
            for _ in 0..self.follow {
                self.bytes.push(0xff_u8.wrapping_add(carry));
            }
            self.follow = 0;
            self.held = ((self.low >> 24) & 0xff) as u8;
        } else {
            self.follow += 1;
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
    place: usize,
    code: u32,
    range: u32,
}

impl<'a> Decoder<'a> {
    /// Starts reading.
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self {
            bytes,
            place: 0,
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
        let byte = self.bytes.get(self.place).copied().unwrap_or(0);
        self.place += 1;
        u32::from(byte)
    }

    /// Where in the 2^16 parts the next symbol lies.
    #[inline]
    pub fn peek(&self) -> u16 {
        let part = self.range >> PROBABILITY_BITS;
        (self.code / part).min(0xffff) as u16
    }

    /// Goes on after a symbol of `size` parts after `start`.
    #[inline]
    pub fn skip(&mut self, start: u16, size: u32) {
        let part = self.range >> PROBABILITY_BITS;
        self.code = self.code.wrapping_sub(part.wrapping_mul(u32::from(start)));
        self.range = part * size;
        while self.range < BOTTOM {
            self.range <<= 8;
            self.code = self.code << 8 | self.byte();
        }
    }

    /// Goes on after the symbol of `size` parts after `start` if it is the next one: [`Decoder::peek`] and
    /// [`Decoder::skip`] without a division.
    #[inline]
    pub fn skip_if(&mut self, start: u16, size: u32) -> bool {
        let part = self.range >> PROBABILITY_BITS;
        let above = self.code.wrapping_sub(part.wrapping_mul(u32::from(start)));
        let range = part * size;
        if above >= range {
            return false;
        }
        self.code = above;
        self.range = range;
        while self.range < BOTTOM {
            self.range <<= 8;
            self.code = self.code << 8 | self.byte();
        }
        true
    }

    /// Reads a yes or no, and lets its probability learn.
    pub fn bit(&mut self, bit: &mut Bit) -> bool {
        let split = bit.yes();
        let value = u32::from(self.peek()) < split;
        if value {
            self.skip(0, split);
        } else {
            self.skip(split as u16, (1 << PROBABILITY_BITS) - split);
        }
        bit.learn(value);
        value
    }

    /// Reads `count` raw bits, 64 at most.
    pub fn raw(&mut self, mut count: u32) -> u64 {
        let mut value = 0;
        while count > 0 {
            let now = count.min(RAW_AT_ONCE);
            count -= now;
            let part = self.peek() >> (PROBABILITY_BITS - now);
            self.skip(
                part << (PROBABILITY_BITS - now),
                1 << (PROBABILITY_BITS - now),
            );
            value = value << now | u64::from(part);
        }
        value
    }

    /// Nothing may be left over.
    pub fn end(&self) -> Result<()> {
        if self.place < self.bytes.len() || self.bytes.last() == Some(&0) {
            return Err(Error::Malformed {
                what: "coded stream",
                offset: self.place as u64,
                reason: "there is more than its symbols need",
            });
        }
        Ok(())
    }
}

/// The probability of a yes that learns: the mean of a quick and a slow estimate, both quick at first.
#[derive(Debug, Clone, Copy)]
pub struct Bit {
    quick: u16,
    slow: u16,
    seen: u8,
}

/// After so many, an estimate moves no less than by its share of the rest.
const QUICK: u8 = 40;
const SLOW: u8 = 250;

impl Default for Bit {
    fn default() -> Self {
        Self {
            quick: 1 << 15,
            slow: 1 << 15,
            seen: 0,
        }
    }
}

impl Bit {
    /// Parts of 2^16, at least 32 and at most 2^16 − 32.
    fn yes(self) -> u32 {
        let sum = u32::from(self.quick) + u32::from(self.slow);
        (sum / 2).clamp(32, (1 << PROBABILITY_BITS) - 32)
    }

    fn learn(&mut self, value: bool) {
        let target = if value { u32::from(u16::MAX) } else { 0 };
        for (estimate, most) in [(&mut self.quick, QUICK), (&mut self.slow, SLOW)] {
            let weight = u32::from(self.seen.min(most)) + 2;
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
        let mut bits = [Bit::default(); 2];
        for &value in &values {
            encoder.bit(&mut bits[0], value % 50 == 0);
            encoder.bit(&mut bits[1], value % 3 == 0);
            encoder.raw(value, (value % 65) as u32);
        }
        let bytes = encoder.finish();
        let mut decoder = Decoder::new(&bytes);
        let mut bits = [Bit::default(); 2];
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
    fn carries_run_through_any_number_of_bytes() {
        // The last of 2^16 parts again and again drives `low` against its upper end.
        for tail in [0_u16, 1, 0xffff] {
            let mut encoder = Encoder::default();
            for _ in 0..100 {
                encoder.encode(0xffff, 1);
            }
            encoder.encode(tail, 1);
            let bytes = encoder.finish();
            let mut decoder = Decoder::new(&bytes);
            for _ in 0..100 {
                assert_eq!(decoder.peek(), 0xffff);
                decoder.skip(0xffff, 1);
            }
            assert_eq!(decoder.peek(), tail);
        }
    }

    #[test]
    fn a_rare_bit_costs_what_it_tells() {
        let mut encoder = Encoder::default();
        let mut bit = Bit::default();
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
            let mut bit = Bit::default();
            for count in 0..200 {
                decoder.bit(&mut bit);
                decoder.raw(count % 64);
            }
        }
    }
}
