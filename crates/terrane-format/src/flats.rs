//! Water: connected pixels of a tile that all have one height, and have it again exactly.

use crate::bytes::{Cursor, Put};
use crate::{Result, mask};

/// The flat areas of a tile.
#[derive(Debug, Clone, PartialEq)]
pub struct Flats {
    /// Their pixels, row by row.
    mask: Vec<bool>,
    /// The height of each area, in the order of their first pixels.
    heights_m: Vec<f64>,
}

impl Flats {
    /// The areas of at least so many pixels that share one height; NaN is none. `None` where there is no such area. Of
    /// two that touch, the second is left out.
    pub fn find(heights: &[f64], width: usize, least: usize) -> Option<Self> {
        let same = |a: usize, b: usize| heights[a].to_bits() == heights[b].to_bits();
        let mut mask = vec![false; heights.len()];
        let mut seen = vec![false; heights.len()];
        for start in 0..heights.len() {
            if seen[start] || heights[start].is_nan() {
                continue;
            }
            let area = area(start, width, &mut seen, same);
            if area.len() >= least {
                for &pixel in &area {
                    // Touching areas would be taken for one.
                    let touches = neighbours(pixel, width, heights.len())
                        .any(|other| mask[other] && !same(pixel, other));
                    if touches {
                        for &pixel in &area {
                            mask[pixel] = false;
                        }
                        break;
                    }
                    mask[pixel] = true;
                }
            }
        }
        let first = areas(&mask, width)
            .iter()
            .map(|area| heights[area[0]])
            .collect();
        mask.contains(&true).then_some(Self {
            mask,
            heights_m: first,
        })
    }

    /// Makes what is said of the areas' pixels not a number.
    pub fn clear(&self, values: &mut [f64]) {
        for (value, _) in values.iter_mut().zip(&self.mask).filter(|(_, is)| **is) {
            *value = f64::NAN;
        }
    }

    /// Gives the areas their heights.
    pub fn apply(&self, heights: &mut [f64], width: usize) {
        for (area, &height) in areas(&self.mask, width).iter().zip(&self.heights_m) {
            for &pixel in area {
                if let Some(value) = heights.get_mut(pixel) {
                    *value = height;
                }
            }
        }
    }

    pub(crate) fn to_bytes(&self, width: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_block(&mask::encode(&self.mask, width, None));
        for height in &self.heights_m {
            bytes.extend(height.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn parse(bytes: &[u8], width: usize, height: usize) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, "tile's flat areas");
        let mask = mask::decode(cursor.block()?, width, height, None)?;
        let heights_m = areas(&mask, width)
            .iter()
            .map(|_| cursor.f64())
            .collect::<Result<Vec<_>>>()?;
        cursor.end()?;
        if heights_m.iter().any(|height| !height.is_finite()) {
            return Err(cursor.malformed("one has no height"));
        }
        Ok(Self { mask, heights_m })
    }
}

/// The pixels above, left, right and below of a pixel.
fn neighbours(pixel: usize, width: usize, count: usize) -> impl Iterator<Item = usize> {
    let column = pixel % width;
    [
        pixel.checked_sub(width),
        (column > 0).then(|| pixel - 1),
        (column + 1 < width).then(|| pixel + 1),
        Some(pixel + width).filter(|&below| below < count),
    ]
    .into_iter()
    .flatten()
}

/// The pixels that hang together with one, which is the first of them.
fn area(
    start: usize,
    width: usize,
    seen: &mut [bool],
    same: impl Fn(usize, usize) -> bool,
) -> Vec<usize> {
    let mut area = vec![start];
    seen[start] = true;
    let mut next = 0;
    while let Some(&pixel) = area.get(next) {
        next += 1;
        for other in neighbours(pixel, width, seen.len()) {
            if !seen[other] && same(pixel, other) {
                seen[other] = true;
                area.push(other);
            }
        }
    }
    area
}

/// The areas of a mask, in the order of their first pixels.
fn areas(mask: &[bool], width: usize) -> Vec<Vec<usize>> {
    let mut seen: Vec<bool> = mask.iter().map(|&inside| !inside).collect();
    let mut areas = Vec::new();
    for start in 0..mask.len() {
        if !seen[start] {
            areas.push(area(start, width, &mut seen, |_, _| true));
        }
    }
    areas
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lakes on a slope, a pond that is too small, and one lake right beside another.
    fn ground() -> Vec<f64> {
        (0..40 * 30)
            .map(|index| {
                let (column, row) = (index % 40, index / 40);
                match (column, row) {
                    (2..=9, 3..=11) => 412.5,
                    (20..=33, 15..=24) => 399.25,
                    (34..=36, 15..=24) => 399.0,
                    (15, 2..=4) => 400.0,
                    _ => f64::from(index) * 0.37,
                }
            })
            .collect()
    }

    #[test]
    fn lakes_are_found_and_come_back_flat() {
        let heights = ground();
        let flats = Flats::find(&heights, 40, 20).unwrap();
        let back = Flats::parse(&flats.to_bytes(40), 40, 30).unwrap();
        assert_eq!(back, flats);
        let mut decoded: Vec<f64> = heights.iter().map(|height| height + 0.01).collect();
        back.apply(&mut decoded, 40);
        let at = |column: usize, row: usize| decoded[row * 40 + column];
        assert_eq!((at(5, 5), at(33, 24)), (412.5, 399.25));
        assert_eq!(at(15, 3), 400.01);
        // The second of two that touch is left as it is.
        assert_eq!(at(35, 20), 399.01);
        assert!(Flats::find(&heights, 40, 1000).is_none());
    }

    #[test]
    fn bytes_are_not_trusted() {
        let bytes = Flats::find(&ground(), 40, 20).unwrap().to_bytes(40);
        for cut in 0..bytes.len() {
            let _ = Flats::parse(&bytes[..cut], 40, 30);
        }
        for offset in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[offset] = value;
                let _ = Flats::parse(&changed, 40, 30);
            }
        }
    }
}
