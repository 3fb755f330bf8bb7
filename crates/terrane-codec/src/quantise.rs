//! The border between tokens and symbols: after training, each channel of a tile is rounded to its own step.
//!
//! A channel's step is its maximum magnitude divided by the maximum symbol, rounded to a 16-bit float, because that is
//! what is stored. Symbols are integers within ±(2^(bits−1) − 1).

use half::f16;

/// Bits per stored step.
const STEP_BITS: f64 = 16.0;

/// The symbols of a tile with the step of each channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantised {
    /// One step per channel.
    pub steps: Vec<f16>,
    /// One symbol per number, channels fastest.
    pub symbols: Vec<i16>,
}

/// The maximum symbol of a width in bits, from 2 to 16.
pub fn max_symbol(bits: u32) -> i16 {
    ((1_i32 << (bits.clamp(2, 16) - 1)) - 1) as i16
}

/// Rounds tokens `[count, channels]` of one tile to symbols of so many bits.
pub fn quantise(tokens: &[f32], channels: usize, bits: u32) -> Quantised {
    let max = f32::from(max_symbol(bits));
    let steps: Vec<f16> = (0..channels)
        .map(|channel| {
            let most = tokens
                .iter()
                .skip(channel)
                .step_by(channels)
                .fold(0.0_f32, |most, value| most.max(value.abs()));
            // A step that is too large for a 16-bit float is the largest there is.
            f16::from_f32(most / max).min(f16::MAX)
        })
        .collect();
    let symbols = tokens
        .iter()
        .enumerate()
        .map(|(index, value)| {
            let step = steps[index % channels].to_f32();
            // A channel of zeros, or one too small for a 16-bit float, has no step: its symbols are 0.
            if step == 0.0 {
                0
            } else {
                (value / step).round_ties_even().clamp(-max, max) as i16
            }
        })
        .collect();
    Quantised { steps, symbols }
}

impl Quantised {
    /// The tokens that the symbols stand for.
    pub fn tokens(&self) -> Vec<f32> {
        let channels = self.steps.len();
        self.symbols
            .iter()
            .enumerate()
            .map(|(index, &symbol)| f32::from(symbol) * self.steps[index % channels].to_f32())
            .collect()
    }

    /// Bits of the tile at a fixed width, steps included.
    pub fn fixed_bits(&self, bits: u32) -> f64 {
        self.symbols.len() as f64 * f64::from(bits) + self.steps.len() as f64 * STEP_BITS
    }

    /// Shannon's bound on the bits of the tile, steps included: each channel by the frequencies of its own symbols.
    ///
    /// It does not pay for these frequencies, so no coder reaches it.
    pub fn shannon_bits(&self) -> f64 {
        let channels = self.steps.len();
        let symbols: f64 = (0..channels)
            .map(|channel| {
                let mut counts = std::collections::BTreeMap::new();
                for symbol in self.symbols.iter().skip(channel).step_by(channels) {
                    *counts.entry(symbol).or_insert(0_u32) += 1;
                }
                let total: f64 = counts.values().map(|&count| f64::from(count)).sum();
                counts
                    .values()
                    .map(|&count| f64::from(count) * (total / f64::from(count)).log2())
                    .sum::<f64>()
            })
            .sum();
        symbols + channels as f64 * STEP_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// As many tokens as a tile of the paper has: 257 of 32 numbers.
    fn tokens() -> Vec<f32> {
        let mut random = Random::new(4, 0);
        (0..257 * 32)
            .map(|index| (random.normal() * (1.0 + f64::from(index % 32))) as f32)
            .collect()
    }

    #[test]
    fn fixed_widths_give_the_rates_of_the_paper() {
        for (bits, rate) in [(16, 2.0156), (8, 1.0117), (4, 0.5098), (2, 0.2588)] {
            let bpp = quantise(&tokens(), 32, bits).fixed_bits(bits) / 65_536.0;
            assert!((bpp - rate).abs() < 5e-5, "{bits}: {bpp}");
        }
    }

    #[test]
    fn the_bound_is_within_what_so_many_symbols_can_tell() {
        for bits in [16, 8, 4, 2] {
            let quantised = quantise(&tokens(), 32, bits);
            let per_symbol = (quantised.shannon_bits() - 32.0 * 16.0) / (257.0 * 32.0);
            let most = f64::from(2 * i32::from(max_symbol(bits)) + 1)
                .min(257.0)
                .log2();
            assert!(
                per_symbol > 0.0 && per_symbol <= most + 1e-12,
                "{bits}: {per_symbol} of {most}"
            );
        }
    }

    #[test]
    fn tokens_come_back_within_half_a_step() {
        let tokens = tokens();
        for bits in [16, 8, 4] {
            let quantised = quantise(&tokens, 32, bits);
            for (index, (before, after)) in tokens.iter().zip(quantised.tokens()).enumerate() {
                let step = quantised.steps[index % 32].to_f32();
                // A step rounded down clips the max value by a little more.
                let slack = before.abs() * 2_f32.powi(-11);
                assert!(
                    (before - after).abs() <= 0.5 * step + slack,
                    "{bits}: {before} {after}"
                );
            }
        }
    }

    #[test]
    fn a_channel_of_zeros_and_one_too_small_stay_nought() {
        let quantised = quantise(&[0.0, 1e-12, 0.0, -1e-12], 2, 8);
        assert_eq!(quantised.symbols, [0; 4]);
        assert_eq!(quantised.tokens(), [0.0; 4]);
        // Halves go to the even symbol.
        let quantised = quantise(&[127.0, 0.5, 1.5, -2.5], 1, 8);
        assert_eq!(quantised.symbols, [127, 0, 2, -2]);
    }
}
