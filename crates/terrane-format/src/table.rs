//! Fixed integer frequencies of a small alphabet.
#![expect(
    clippy::cast_possible_truncation,
    reason = "cumulative frequencies lie below 2^16"
)]

use crate::coder::{Decoder, Encoder, PROBABILITY_BITS};
use crate::{Error, Result};

const TOTAL: u64 = 1 << PROBABILITY_BITS;

/// Frequencies of the symbols 0, 1, 2, …, each at least 1, with a total of 2^16.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrequencyTable {
    /// The cumulative frequency of each symbol, and 2^16 at the end.
    cumulative: Vec<u32>,
}

impl FrequencyTable {
    /// Frequencies in proportion to counts; a symbol that was never seen has a frequency of 1.
    ///
    /// At most 2^15 symbols, so that the seen ones keep half of the total.
    pub fn from_counts(counts: &[u64]) -> Result<Self> {
        let symbols = counts.len() as u64;
        if symbols == 0 || symbols > TOTAL / 2 {
            return Err(Error::LimitExceeded {
                what: "symbols of a table",
                value: symbols,
                limit: TOTAL / 2,
            });
        }
        let total: u128 = counts
            .iter()
            .map(|&count| u128::from(count))
            .sum::<u128>()
            .max(1);
        let spare = u128::from(TOTAL - symbols);
        // Cumulative frequencies are rounded from running sums, so that the total comes out as 2^16.
        let mut cumulative = Vec::with_capacity(counts.len() + 1);
        let mut sum = 0_u128;
        for (index, &count) in counts.iter().enumerate() {
            cumulative.push((sum * spare / total) as u32 + index as u32);
            sum += u128::from(count);
        }
        cumulative.push(TOTAL as u32);
        Ok(Self { cumulative })
    }

    /// From the frequencies of all symbols, which must sum to 2^16.
    pub fn from_frequencies(frequencies: &[u16]) -> Result<Self> {
        let mut cumulative = vec![0_u32];
        for &frequency in frequencies {
            let next = cumulative.last().copied().unwrap_or(0) + u32::from(frequency);
            if frequency == 0 || u64::from(next) > TOTAL {
                return Err(Error::Malformed {
                    what: "table",
                    offset: 0,
                    reason: "a symbol has a frequency of 0",
                });
            }
            cumulative.push(next);
        }
        if cumulative.last().copied().map(u64::from) != Some(TOTAL) || frequencies.len() < 2 {
            return Err(Error::Malformed {
                what: "table",
                offset: 0,
                reason: "its frequencies do not sum to 2^16",
            });
        }
        Ok(Self { cumulative })
    }

    /// The frequency of every symbol.
    pub fn frequencies(&self) -> impl Iterator<Item = u32> {
        self.cumulative.windows(2).map(|pair| pair[1] - pair[0])
    }

    /// Number of symbols.
    pub fn symbols(&self) -> usize {
        self.cumulative.len() - 1
    }

    /// Writes a symbol, which must be one of the table's.
    pub fn encode(&self, encoder: &mut Encoder, symbol: usize) {
        let (low, high) = (self.cumulative[symbol], self.cumulative[symbol + 1]);
        encoder.encode(low as u16, high - low);
    }

    /// Reads a symbol.
    pub fn decode(&self, decoder: &mut Decoder) -> usize {
        let target = u32::from(decoder.decode_target());
        let symbol = self.cumulative.partition_point(|&low| low <= target) - 1;
        let (low, high) = (self.cumulative[symbol], self.cumulative[symbol + 1]);
        decoder.consume(low as u16, high - low);
        symbol
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_has_a_frequency_and_all_sum_to_the_total() {
        for counts in [
            vec![0, 0],
            vec![1, 0, 1_000_000_000_000, 3],
            vec![5; 300],
            vec![0; 32_768],
        ] {
            let table = FrequencyTable::from_counts(&counts).unwrap();
            assert_eq!(table.frequencies().map(u64::from).sum::<u64>(), TOTAL);
            assert!(table.frequencies().all(|frequency| frequency > 0));
            let frequencies: Vec<u16> = table
                .frequencies()
                .map(|frequency| frequency as u16)
                .collect();
            assert_eq!(
                FrequencyTable::from_frequencies(&frequencies).unwrap(),
                table
            );
        }
        assert!(
            FrequencyTable::from_counts(&[]).is_err()
                && FrequencyTable::from_counts(&vec![1; 40_000]).is_err()
        );
        assert!(
            FrequencyTable::from_frequencies(&[1, 2]).is_err()
                && FrequencyTable::from_frequencies(&[0, 65_535, 1]).is_err()
        );
    }

    #[test]
    fn symbols_come_back_at_the_price_of_their_table() {
        let counts: Vec<u64> = (0..64_u64).map(|symbol| 4000 >> (symbol / 8)).collect();
        let table = FrequencyTable::from_counts(&counts).unwrap();
        let frequencies: Vec<f64> = table.frequencies().map(f64::from).collect();
        let mut encoder = Encoder::default();
        let mut symbols = Vec::new();
        let mut state = 1_u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let target = (state >> 48) as f64;
            let mut sum = 0.0;
            let symbol = frequencies
                .iter()
                .position(|frequency| {
                    sum += frequency;
                    target < sum
                })
                .unwrap();
            symbols.push(symbol);
            table.encode(&mut encoder, symbol);
        }
        let bytes = encoder.finish();
        let ideal: f64 = symbols
            .iter()
            .map(|&symbol| (65_536.0 / frequencies[symbol]).log2())
            .sum::<f64>()
            / 8.0;
        assert!(
            bytes.len() as f64 <= ideal * 1.001 + 4.0,
            "{} {ideal}",
            bytes.len()
        );
        let mut decoder = Decoder::new(&bytes);
        assert!(
            symbols
                .iter()
                .all(|&symbol| table.decode(&mut decoder) == symbol)
        );
        decoder.end().unwrap();
    }
}
