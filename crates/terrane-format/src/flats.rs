//! Water: connected pixels of a tile that all have one height, and have it again exactly.
//!
//! A mask separates areas that do not touch. Areas of different heights that touch (locks, weirs, terraced ponds) lie in
//! different layers, each with a mask of its own. Which areas touch is a planar graph, and in any part of a planar graph one
//! node has at most five neighbours: taking such nodes away one after another, and giving them layers in the opposite
//! order, never needs more than six.

use std::collections::BTreeSet;
use std::ops::Range;

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
    /// Its pixels, counted row by row: parts of rows, in their order.
    runs: Vec<Range<usize>>,
}

impl Flats {
    /// The areas of a tile with the heights of what is to be flat, NaN elsewhere; `None` where there is no such pixel.
    pub fn new(heights: &[f64], width: usize) -> Option<Self> {
        let is_flat: Vec<bool> = heights.iter().map(|height| !height.is_nan()).collect();
        let same = |a: usize, b: usize| heights[a] == heights[b];
        let runs = runs(&is_flat, width, same);
        let pairs = touching(&runs, width);
        let areas = joined(&runs, &pairs, same);
        let count = areas.iter().max()? + 1;
        let mut touching = vec![BTreeSet::new(); count];
        for [a, b] in pairs.into_iter().map(|pair| pair.map(|run| areas[run])) {
            if a != b {
                touching[a].insert(b);
                touching[b].insert(a);
            }
        }
        let of_areas = layers_of(&touching);
        // One zero for both.
        let areas = grouped(runs, &areas, |pixel| heights[pixel] + 0.0);
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
            let mut decoded = area.runs.iter().flat_map(|run| &decoded[run.clone()]);
            decoded.any(|&decoded| !is_same(decoded, area.height_m))
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
        for run in self.areas().flat_map(|area| &area.runs) {
            values[run.clone()].fill(f64::NAN);
        }
    }

    /// Gives the areas their heights.
    pub fn apply(&self, heights: &mut [f64]) {
        for area in self.areas() {
            for run in &area.runs {
                if let Some(heights) = heights.get_mut(run.clone()) {
                    heights.fill(area.height_m);
                }
            }
        }
    }

    /// The areas of a tile of a width as bytes.
    pub fn to_bytes(&self, width: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for layer in &self.layers {
            let mut mask = vec![false; self.pixels];
            for run in layer.iter().flat_map(|area| &area.runs) {
                mask[run.clone()].fill(true);
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
            let runs = runs(&mask, width, |_, _| true);
            let areas = joined(&runs, &touching(&runs, width), |_, _| true);
            let mut layer = grouped(runs, &areas, |_| 0.0);
            for area in &mut layer {
                area.height_m = cursor.f64()?;
            }
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

/// The pixels of a mask as parts of rows that are alike.
fn runs(mask: &[bool], width: usize, alike: impl Fn(usize, usize) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for pixel in (0..mask.len()).filter(|&pixel| mask[pixel]) {
        match runs.last_mut() {
            Some(run) if run.end == pixel && pixel % width > 0 && alike(pixel - 1, pixel) => {
                run.end += 1;
            }
            _ => runs.push(pixel..pixel + 1),
        }
    }
    runs
}

/// Which runs touch: one after another in a row, and one below another.
fn touching(runs: &[Range<usize>], width: usize) -> Vec<[usize; 2]> {
    let mut pairs = Vec::new();
    let mut below = 0;
    for (index, run) in runs.iter().enumerate() {
        let next = runs.get(index + 1);
        if next.is_some_and(|next| next.start == run.end && run.end % width > 0) {
            pairs.push([index, index + 1]);
        }
        let place = run.start + width..run.end + width;
        while runs
            .get(below)
            .is_some_and(|other| other.end <= place.start)
        {
            below += 1;
        }
        let others = (below..runs.len()).take_while(|&other| runs[other].start < place.end);
        pairs.extend(others.map(|other| [index, other]));
    }
    pairs
}

/// The number of each run's area, in the order of their first pixels: runs that touch and are alike.
fn joined(
    runs: &[Range<usize>],
    pairs: &[[usize; 2]],
    alike: impl Fn(usize, usize) -> bool,
) -> Vec<usize> {
    // An earlier run of the same area, or the run itself.
    let mut before: Vec<usize> = (0..runs.len()).collect();
    let first = |before: &mut [usize], mut run: usize| {
        while before[run] != run {
            before[run] = before[before[run]];
            run = before[run];
        }
        run
    };
    for &[a, b] in pairs {
        if alike(runs[a].start, runs[b].start) {
            let [a, b] = [a, b].map(|run| first(&mut before, run));
            before[a.max(b)] = a.min(b);
        }
    }
    let mut areas: Vec<usize> = Vec::with_capacity(runs.len());
    let mut count = 0;
    for run in 0..runs.len() {
        let first = first(&mut before, run);
        if first == run {
            areas.push(count);
            count += 1;
        } else {
            areas.push(areas[first]);
        }
    }
    areas
}

/// The areas of runs, whose heights are those of their first pixels.
fn grouped(runs: Vec<Range<usize>>, areas: &[usize], height_m: impl Fn(usize) -> f64) -> Vec<Area> {
    let mut grouped: Vec<Area> = Vec::new();
    for (run, &area) in runs.into_iter().zip(areas) {
        if area == grouped.len() {
            grouped.push(Area {
                height_m: height_m(run.start),
                runs: Vec::new(),
            });
        }
        grouped[area].runs.push(run);
    }
    grouped
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
        let other = |layer: &usize| !taken.contains(layer);
        layers[area] = (0..MAX_LAYERS).find(other).unwrap_or_default();
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
    fn bytes_are_those_of_the_specification() {
        let [a, b, none] = [412.5, 399.25, f64::NAN];
        let apart = [a, a, none, none, a, none, none, b, none, none, b, b];
        let touching = [a, a, b, b, a, a, a, b, none, none, none, b];
        let hex = |heights: &[f64]| {
            let bytes = Flats::new(heights, 4).unwrap().to_bytes(4);
            let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            bytes.join(" ")
        };
        assert_eq!(
            hex(&apart),
            "04 B6 01 00 00 00 00 00 00 00 C8 79 40 00 00 00 00 00 F4 78 40"
        );
        assert_eq!(
            hex(&touching),
            "04 C6 07 00 00 00 00 00 00 00 C8 79 40 04 70 05 52 DF 00 00 00 00 00 F4 78 40"
        );
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
