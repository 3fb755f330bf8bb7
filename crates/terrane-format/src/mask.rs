//! Which pixels of a tile have no data, coded in the context of their neighbours.

use crate::coder::{AdaptiveBit, Decoder, Encoder};
use crate::{Error, Result};

/// Pixels that form the context of the next, as (columns, rows) back.
const NEIGHBOURS: [(isize, isize); 10] = [
    (1, 0),
    (2, 0),
    (3, 0),
    (-2, 1),
    (-1, 1),
    (0, 1),
    (1, 1),
    (2, 1),
    (-1, 2),
    (0, 2),
];

/// Codes a mask row by row; `true` is a pixel without data.
pub fn encode(missing: &[bool], width: usize) -> Vec<u8> {
    let mut encoder = Encoder::default();
    let mut bits = [AdaptiveBit::default(); 1 << NEIGHBOURS.len()];
    for (index, &value) in missing.iter().enumerate() {
        encoder.bit(&mut bits[context(missing, width, index)], value);
    }
    encoder.finish()
}

/// Reads a mask of `width` × `height` pixels.
pub fn decode(bytes: &[u8], width: usize, height: usize) -> Result<Vec<bool>> {
    let count = width.checked_mul(height).ok_or(Error::LimitExceeded {
        what: "pixels of a mask",
        value: u64::MAX,
        limit: crate::limits::TILE_PIXELS as u64,
    })?;
    let mut decoder = Decoder::new(bytes);
    let mut bits = [AdaptiveBit::default(); 1 << NEIGHBOURS.len()];
    let mut missing = Vec::with_capacity(count);
    for index in 0..count {
        let context = context(&missing, width, index);
        missing.push(decoder.bit(&mut bits[context]));
    }
    decoder.end()?;
    Ok(missing)
}

fn context(missing: &[bool], width: usize, index: usize) -> usize {
    let (row, column) = ((index / width).cast_signed(), (index % width).cast_signed());
    NEIGHBOURS.iter().fold(0, |context, &(columns, rows)| {
        let (column, row) = (column - columns, row - rows);
        let is_inside = row >= 0 && column >= 0 && column < width.cast_signed();
        let value = is_inside && missing[row.cast_unsigned() * width + column.cast_unsigned()];
        context << 1 | usize::from(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_come_back_and_smooth_ones_are_small() {
        let disc: Vec<bool> = (0..256 * 200)
            .map(|index| (index % 256_i32 - 90).pow(2) + (index / 256 - 70).pow(2) < 3000)
            .collect();
        let speckled: Vec<bool> = (0..7 * 31).map(|index| index * index % 7 < 2).collect();
        for (mask, width, limit) in [
            (disc, 256, 200),
            (speckled, 7, 80),
            (vec![true], 1, 2),
            (vec![false; 65_536], 256, 60),
        ] {
            let bytes = encode(&mask, width);
            assert!(bytes.len() <= limit, "{}", bytes.len());
            assert_eq!(decode(&bytes, width, mask.len() / width).unwrap(), mask);
        }
    }
}
