//! Which pixels of a tile have no data, coded in the context of their neighbours.
//!
//! In a tree the tile above says the most: where it has no data there is none below, and where it has some, at least one of
//! the four pixels below has too. What follows from that is not coded.

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

/// The mask of the tile above, as seen from a tile.
#[derive(Debug, Clone, Copy)]
pub struct ParentMask<'a> {
    /// Its pixels without data, where it has some.
    pub missing: Option<&'a [bool]>,
    /// Its columns.
    pub width: usize,
    /// The column of it where this tile starts.
    pub column: usize,
    /// The row of it where this tile starts.
    pub row: usize,
}

impl ParentMask<'_> {
    /// Whether the pixel above a pixel of the tile has no data.
    fn is_missing(&self, column: usize, row: usize) -> bool {
        let index = (self.row + row / 2) * self.width + self.column + column / 2;
        self.missing
            .is_some_and(|missing| missing.get(index).copied().unwrap_or(true))
    }

    /// The mask that follows from the tile above alone: of a tile that says nothing of its own.
    pub fn inherited(&self, width: usize, height: usize) -> Option<Vec<bool>> {
        self.missing?;
        let missing: Vec<bool> = (0..width * height)
            .map(|index| self.is_missing(index % width, index / width))
            .collect();
        missing.contains(&true).then_some(missing)
    }
}

/// What a pixel must be, because of the tile above and the pixels before it; `None` where it is coded.
fn implied(
    missing: &[bool],
    [width, height]: [usize; 2],
    index: usize,
    parent: Option<&ParentMask>,
) -> Option<bool> {
    let parent = parent?;
    let (row, column) = (index / width, index % width);
    if parent.is_missing(column, row) {
        return Some(true);
    }
    // The last of the pixels below one with data has data where no other has.
    let is_last = (row % 2 == 1 || row + 1 == height) && (column % 2 == 1 || column + 1 == width);
    let (top, left) = (row / 2 * 2, column / 2 * 2);
    let mut others = (top..=row)
        .flat_map(|row| (left..=column).map(move |column| row * width + column))
        .filter(|&other| other != index);
    (is_last && others.all(|other| missing[other])).then_some(false)
}

/// Codes a mask row by row; `true` is a pixel without data.
pub fn encode(missing: &[bool], width: usize, parent: Option<&ParentMask>) -> Vec<u8> {
    let mut encoder = Encoder::default();
    let mut bits = [AdaptiveBit::default(); 1 << NEIGHBOURS.len()];
    let size = [width, missing.len() / width.max(1)];
    for (index, &value) in missing.iter().enumerate() {
        if implied(missing, size, index, parent).is_none() {
            encoder.bit(&mut bits[context(missing, width, index)], value);
        }
    }
    encoder.finish()
}

/// Reads a mask of `width` × `height` pixels.
pub fn decode(
    bytes: &[u8],
    width: usize,
    height: usize,
    parent: Option<&ParentMask>,
) -> Result<Vec<bool>> {
    let count = width.checked_mul(height).ok_or(Error::LimitExceeded {
        what: "pixels of a mask",
        value: u64::MAX,
        limit: crate::limits::TILE_PIXELS as u64,
    })?;
    let mut decoder = Decoder::new(bytes);
    let mut bits = [AdaptiveBit::default(); 1 << NEIGHBOURS.len()];
    let mut missing = Vec::with_capacity(count);
    for index in 0..count {
        let value = implied(&missing, [width, height], index, parent).unwrap_or_else(|| {
            let context = context(&missing, width, index);
            decoder.bit(&mut bits[context])
        });
        missing.push(value);
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
            let bytes = encode(&mask, width, None);
            assert!(bytes.len() <= limit, "{}", bytes.len());
            let height = mask.len() / width;
            assert_eq!(decode(&bytes, width, height, None).unwrap(), mask);
        }
    }

    #[test]
    fn a_mask_below_another_costs_what_is_new() {
        // A disc that ends in the right half, of which the tile is the lower right quarter.
        let (width, height) = (61, 45);
        let is_missing = |column: usize, row: usize| {
            (column.cast_signed() - 20).pow(2) + (row.cast_signed() - 9).pow(2) < 300
        };
        let mask: Vec<bool> = (0..width * height)
            .map(|index| is_missing(index % width, index / width))
            .collect();
        let (wide, high) = (40 + width.div_ceil(2), 30 + height.div_ceil(2));
        let above: Vec<bool> = (0..wide * high)
            .map(|index| {
                let (column, row) = (index % wide, index / wide);
                column >= 40
                    && row >= 30
                    && (0..4).all(|part| {
                        let (column, row) =
                            (2 * (column - 40) + part % 2, 2 * (row - 30) + part / 2);
                        column >= width || row >= height || is_missing(column, row)
                    })
            })
            .collect();
        let parent = ParentMask {
            missing: Some(&above),
            width: wide,
            column: 40,
            row: 30,
        };
        let (alone, below) = (
            encode(&mask, width, None),
            encode(&mask, width, Some(&parent)),
        );
        assert!(below.len() < alone.len(), "{} {}", below.len(), alone.len());
        let back = decode(&below, width, height, Some(&parent)).unwrap();
        assert_eq!(back, mask);
        let inherited = parent.inherited(width, height).unwrap();
        assert!(
            inherited
                .iter()
                .zip(&mask)
                .all(|(&above, &own)| own || !above)
        );
    }
}
