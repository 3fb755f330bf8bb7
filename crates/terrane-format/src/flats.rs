//! Water: connected pixels of a tile that all have one height, and have it again exactly.
//!
//! A mask separates areas that do not touch. Areas of different heights that touch (locks, weirs, terraced ponds) lie in
//! different layers, each with a mask of its own. Which areas touch is a planar graph, and in any part of a planar graph one
//! node has at most five neighbours: taking such nodes away one after another, and giving them layers in the opposite
//! order, never needs more than six.

use std::collections::BTreeSet;

use crate::bytes::{Cursor, Put};
use crate::{Result, mask};

/// Layers of a tile, at most.
const MAX_LAYERS: usize = 6;

/// The flat areas of a tile.
#[derive(Debug, Clone, PartialEq)]
pub struct Flats {
    /// Pixels of the tile.
    pixels: usize,
    /// Areas that do not touch, in the order of their first pixels.
    layers: Vec<Vec<Area>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Area {
    height_m: f64,
    /// Counted row by row; the first comes first.
    pixels: Vec<usize>,
}

impl Flats {
    /// The areas of a tile with the heights of what is to be flat, NaN elsewhere; `None` where there is no such pixel.
    pub fn new(heights: &[f64], width: usize) -> Option<Self> {
        let is_flat: Vec<bool> = heights.iter().map(|height| !height.is_nan()).collect();
        let areas: Vec<Area> = areas(&is_flat, width, |a, b| heights[a] == heights[b])
            .into_iter()
            .map(|pixels| Area {
                // One zero for both.
                height_m: heights[pixels[0]] + 0.0,
                pixels,
            })
            .collect();
        let of_areas = layers_of(&touching(&areas, heights.len(), width));
        let mut layers = vec![Vec::new(); of_areas.iter().max()? + 1];
        for (area, layer) in areas.into_iter().zip(of_areas) {
            layers[layer].push(area);
        }
        Some(Self {
            pixels: heights.len(),
            layers,
        })
    }

    fn areas(&self) -> impl Iterator<Item = &Area> {
        self.layers.iter().flatten()
    }

    /// Those that have a pixel with another height among decoded ones; `None` where none has.
    #[must_use]
    pub fn missed_by(&self, decoded: &[f64], is_same: impl Fn(f64, f64) -> bool) -> Option<Self> {
        let is_missed = |area: &&Area| {
            let mut decoded = area.pixels.iter().map(|&pixel| decoded[pixel]);
            decoded.any(|decoded| !is_same(decoded, area.height_m))
        };
        let layers = self.layers.iter();
        let layers: Vec<Vec<Area>> = layers
            .map(|layer| layer.iter().filter(is_missed).cloned().collect())
            .filter(|layer: &Vec<Area>| !layer.is_empty())
            .collect();
        (!layers.is_empty()).then_some(Self {
            pixels: self.pixels,
            layers,
        })
    }

    /// Makes what is said of the areas' pixels not a number.
    pub fn clear(&self, values: &mut [f64]) {
        for &pixel in self.areas().flat_map(|area| &area.pixels) {
            values[pixel] = f64::NAN;
        }
    }

    /// Gives the areas their heights.
    pub fn apply(&self, heights: &mut [f64]) {
        for area in self.areas() {
            for &pixel in &area.pixels {
                if let Some(value) = heights.get_mut(pixel) {
                    *value = area.height_m;
                }
            }
        }
    }

    /// The areas of a tile of a width as bytes.
    pub fn to_bytes(&self, width: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for layer in &self.layers {
            let mut mask = vec![false; self.pixels];
            for &pixel in layer.iter().flat_map(|area| &area.pixels) {
                mask[pixel] = true;
            }
            bytes.put_block(&mask::encode(&mask, width, None));
            for area in layer {
                bytes.extend(area.height_m.to_le_bytes());
            }
        }
        bytes
    }

    pub(crate) fn parse(bytes: &[u8], width: usize, height: usize) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, "tile's flat areas");
        let mut layers = Vec::new();
        while layers.is_empty() || cursor.remaining() > 0 {
            if layers.len() == MAX_LAYERS {
                return Err(cursor.malformed("more than six layers"));
            }
            let mask = mask::decode(cursor.block()?, width, height, None)?;
            let layer = areas(&mask, width, |_, _| true)
                .into_iter()
                .map(|pixels| {
                    let height_m = cursor.f64()?;
                    Ok(Area { height_m, pixels })
                })
                .collect::<Result<Vec<Area>>>()?;
            if layer.is_empty() {
                return Err(cursor.malformed("a layer has no area"));
            }
            if layer.iter().any(|area| !area.height_m.is_finite()) {
                return Err(cursor.malformed("one has no height"));
            }
            layers.push(layer);
        }
        Ok(Self {
            pixels: width * height,
            layers,
        })
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

/// The areas of a mask in the order of their first pixels: pixels that hang together and are alike.
fn areas(mask: &[bool], width: usize, alike: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut seen: Vec<bool> = mask.iter().map(|&inside| !inside).collect();
    let mut areas = Vec::new();
    for start in 0..mask.len() {
        if seen[start] {
            continue;
        }
        let mut area = vec![start];
        seen[start] = true;
        let mut next = 0;
        while let Some(&pixel) = area.get(next) {
            next += 1;
            for other in neighbours(pixel, width, mask.len()) {
                if !seen[other] && alike(pixel, other) {
                    seen[other] = true;
                    area.push(other);
                }
            }
        }
        areas.push(area);
    }
    areas
}

/// Which areas touch each area of a tile of so many pixels.
fn touching(areas: &[Area], pixels: usize, width: usize) -> Vec<BTreeSet<usize>> {
    let mut numbers = vec![usize::MAX; pixels];
    for (number, area) in areas.iter().enumerate() {
        for &pixel in &area.pixels {
            numbers[pixel] = number;
        }
    }
    let others = |(number, area): (usize, &Area)| {
        let pixels = area.pixels.iter();
        let others = pixels.flat_map(|&pixel| neighbours(pixel, width, numbers.len()));
        let others = others.map(|pixel| numbers[pixel]);
        others
            .filter(|&other| other != usize::MAX && other != number)
            .collect()
    };
    areas.iter().enumerate().map(others).collect()
}

/// A layer for each area, another than those of the areas that touch it.
fn layers_of(touching: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut left: Vec<usize> = touching.iter().map(BTreeSet::len).collect();
    let mut free: Vec<usize> = (0..left.len())
        .filter(|&area| left[area] < MAX_LAYERS)
        .collect();
    // The first areas come last and so get the first layers.
    free.reverse();
    let mut next = 0;
    while let Some(&area) = free.get(next) {
        next += 1;
        for &other in &touching[area] {
            left[other] -= 1;
            if left[other] + 1 == MAX_LAYERS {
                free.push(other);
            }
        }
    }
    let mut layers = vec![usize::MAX; left.len()];
    for &area in free.iter().rev() {
        let taken: BTreeSet<usize> = touching[area].iter().map(|&other| layers[other]).collect();
        layers[area] = (0..)
            .find(|layer| !taken.contains(layer))
            .unwrap_or_default();
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lake, two that touch with a third between them and the ground, and slopes.
    fn ground() -> Vec<f64> {
        (0..40 * 30)
            .map(|index| {
                let (column, row) = (index % 40, index / 40);
                match (column, row) {
                    (2..=9, 3..=11) => 412.5,
                    (20..=33, 15..=24) => 399.25,
                    (34..=36, 15..=24) => 399.0,
                    (30..=36, 25..=27) => 398.5,
                    _ => f64::from(index) * 0.37,
                }
            })
            .collect()
    }

    fn flats() -> Flats {
        let lakes = [412.5, 399.25, 399.0, 398.5];
        let mut heights = ground();
        for height in heights.iter_mut().filter(|height| !lakes.contains(height)) {
            *height = f64::NAN;
        }
        Flats::new(&heights, 40).unwrap()
    }

    #[test]
    fn lakes_come_back_flat_beside_each_other_too() {
        let (heights, flats) = (ground(), flats());
        assert_eq!(flats.layers.len(), 3);
        let back = Flats::parse(&flats.to_bytes(40), 40, 30).unwrap();
        assert_eq!(back, flats);
        let raised: Vec<f64> = heights.iter().map(|height| height + 0.01).collect();
        let mut decoded = raised.clone();
        back.apply(&mut decoded);
        for (index, (decoded, height)) in decoded.iter().zip(&heights).enumerate() {
            let is_lake = [412.5, 399.25, 399.0, 398.5].contains(height);
            let expected = if is_lake { *height } else { raised[index] };
            assert_eq!(*decoded, expected, "{index}");
        }
        assert!(Flats::new(&[f64::NAN; 40 * 30], 40).is_none());
    }

    #[test]
    fn an_area_that_decodes_to_its_height_needs_no_word() {
        let flats = flats();
        let mut decoded = ground();
        assert_eq!(flats.missed_by(&decoded, |a, b| a == b), None);
        // One pixel of the second lake.
        decoded[20 * 40 + 25] += 0.1;
        let missed = flats.missed_by(&decoded, |a, b| a == b).unwrap();
        let heights: Vec<f64> = missed.areas().map(|area| area.height_m).collect();
        assert_eq!(heights, [399.25]);
    }

    #[test]
    fn zeros_of_both_signs_are_one_area() {
        let flats = Flats::new(&[-0.0, 0.0, -0.0, 0.0], 2).unwrap();
        assert_eq!(flats.areas().count(), 1);
        let mut decoded = [1.0; 4];
        flats.apply(&mut decoded);
        assert!(decoded.iter().all(|height| height.to_bits() == 0));
    }

    #[test]
    fn six_layers_are_enough() {
        // Every shape of areas that pixels of so many heights make.
        let mut state = 7_u64;
        for (width, heights) in [(31, 2), (31, 3), (30, 5), (64, 40), (17, 250)] {
            for _ in 0..20 {
                let heights: Vec<f64> = (0..width * 40)
                    .map(|_| {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(11);
                        ((state >> 33) % heights) as f64
                    })
                    .collect();
                let flats = Flats::new(&heights, width).unwrap();
                assert!(flats.layers.len() <= MAX_LAYERS);
                let mut laid = vec![f64::NAN; heights.len()];
                let bytes = flats.to_bytes(width);
                Flats::parse(&bytes, width, 40).unwrap().apply(&mut laid);
                assert_eq!(laid, heights);
            }
        }
    }

    #[test]
    fn bytes_are_not_trusted() {
        let bytes = flats().to_bytes(40);
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
        // A layer without an area, and one too many.
        let mut empty = Vec::new();
        empty.put_block(&mask::encode(&[false; 40 * 30], 40, None));
        assert!(Flats::parse(&empty, 40, 30).is_err());
        let one = Flats::new(&[3.5; 4], 2).unwrap();
        let one = one.to_bytes(2);
        assert!(Flats::parse(&one.repeat(MAX_LAYERS), 2, 2).is_ok());
        assert!(Flats::parse(&one.repeat(MAX_LAYERS + 1), 2, 2).is_err());
    }
}
