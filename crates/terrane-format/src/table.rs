//! Fixed integer probabilities of a small alphabet.
#![expect(clippy::cast_possible_truncation, reason = "starts lie below 2^16")]

use crate::coder::{Decoder, Encoder, PROBABILITY_BITS};
use crate::{Error, Result};

const TOTAL: u64 = 1 << PROBABILITY_BITS;

/// Probabilities of the symbols 0, 1, 2, … in parts of 2^16; each has one part at least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Where each symbol starts, and 2^16 at the end.
    starts: Vec<u32>,
}

impl Table {
    /// Probabilities in proportion to counts; a symbol that was never seen has one part.
    ///
    /// At most 2^15 symbols, so that the seen ones keep half of all parts.
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
        // Starts are rounded from running sums, so that the parts sum to 2^16 by themselves.
        let mut starts = Vec::with_capacity(counts.len() + 1);
        let mut sum = 0_u128;
        for (index, &count) in counts.iter().enumerate() {
            starts.push((sum * spare / total) as u32 + index as u32);
            sum += u128::from(count);
        }
        starts.push(TOTAL as u32);
        Ok(Self { starts })
    }

    /// From the sizes of all symbols, which must sum to 2^16.
    pub fn from_sizes(sizes: &[u16]) -> Result<Self> {
        let mut starts = vec![0_u32];
        for &size in sizes {
            let next = starts.last().copied().unwrap_or(0) + u32::from(size);
            if size == 0 || u64::from(next) > TOTAL {
                return Err(Error::Malformed {
                    what: "table",
                    offset: 0,
                    reason: "a symbol has no part of the whole",
                });
            }
            starts.push(next);
        }
        if starts.last().copied().map(u64::from) != Some(TOTAL) || sizes.len() < 2 {
            return Err(Error::Malformed {
                what: "table",
                offset: 0,
                reason: "its parts do not sum to the whole",
            });
        }
        Ok(Self { starts })
    }

    /// The parts of every symbol.
    pub fn sizes(&self) -> impl Iterator<Item = u32> {
        self.starts.windows(2).map(|pair| pair[1] - pair[0])
    }

    /// Number of symbols.
    pub fn symbols(&self) -> usize {
        self.starts.len() - 1
    }

    /// Writes a symbol, which must be one of the table's.
    pub fn encode(&self, encoder: &mut Encoder, symbol: usize) {
        let (start, end) = (self.starts[symbol], self.starts[symbol + 1]);
        encoder.encode(start as u16, end - start);
    }

    /// Reads a symbol.
    pub fn decode(&self, decoder: &mut Decoder) -> usize {
        let place = u32::from(decoder.peek());
        let symbol = self.starts.partition_point(|&start| start <= place) - 1;
        let (start, end) = (self.starts[symbol], self.starts[symbol + 1]);
        decoder.skip(start as u16, end - start);
        symbol
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_has_a_part_and_all_sum_to_the_whole() {
        for counts in [
            vec![0, 0],
            vec![1, 0, 1_000_000_000_000, 3],
            vec![5; 300],
            vec![0; 32_768],
        ] {
            let table = Table::from_counts(&counts).unwrap();
            assert_eq!(table.sizes().map(u64::from).sum::<u64>(), TOTAL);
            assert!(table.sizes().all(|size| size > 0));
            let sizes: Vec<u16> = table.sizes().map(|size| size as u16).collect();
            assert_eq!(Table::from_sizes(&sizes).unwrap(), table);
        }
        assert!(Table::from_counts(&[]).is_err() && Table::from_counts(&vec![1; 40_000]).is_err());
        assert!(Table::from_sizes(&[1, 2]).is_err() && Table::from_sizes(&[0, 65_535, 1]).is_err());
    }

    #[test]
    fn symbols_come_back_at_the_price_of_their_table() {
        let counts: Vec<u64> = (0..64_u64).map(|symbol| 4000 >> (symbol / 8)).collect();
        let table = Table::from_counts(&counts).unwrap();
        let sizes: Vec<f64> = table.sizes().map(f64::from).collect();
        let mut encoder = Encoder::default();
        let mut symbols = Vec::new();
        let mut state = 1_u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let place = (state >> 48) as f64;
            let mut sum = 0.0;
            let symbol = sizes
                .iter()
                .position(|size| {
                    sum += size;
                    place < sum
                })
                .unwrap();
            symbols.push(symbol);
            table.encode(&mut encoder, symbol);
        }
        let bytes = encoder.finish();
        let ideal: f64 = symbols
            .iter()
            .map(|&symbol| (65_536.0 / sizes[symbol]).log2())
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
