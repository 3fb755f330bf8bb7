//! What the network sees of a level: maps of small integers.
//!
//! A channel is a number from 0 to 127 at every position. Four channels stand side by side in one word, a group; a map holds a
//! group at every position of a [`Grid`].

use crate::compand::{Compander, FAR, SUBSTEPS};
use crate::grid::{Area, Grid, MARGIN, PHASES};
use crate::matrix::Matrix;
use crate::simd::{self, Work};
use crate::wavelet::BANDS;

/// Channels of a group.
pub(crate) const GROUP: usize = 4;
/// Features of the coarser image.
const FEATURES: usize = 6;
/// Channels that are known before a level's symbols: two for every feature and parent, and two that are always 0.
pub const CHANNELS: usize = 20;
/// Maps of those channels.
pub(crate) const INPUT_MAPS: usize = CHANNELS / GROUP;
/// The map of the first parents, after the features.
const PARENT_MAP: usize = 2 * FEATURES / GROUP;
/// The maps of a level's own symbols: HL and LH in the first, HH in the second.
pub(crate) const SYMBOL_MAP: usize = INPUT_MAPS;
/// All ones where there is a position, 0 elsewhere.
pub(crate) const MASK_MAP: usize = SYMBOL_MAP + 2;
/// Maps of a level that every network has.
pub(crate) const MAPS: usize = MASK_MAP + 1;

const LEVEL_CLASSES: usize = 6;
/// Constants: the level's class; the mean magnitude of each band's parents; whether there are none; whether the transform is
/// lossless; the mean magnitude of each feature.
const PARENT_MEAN: usize = LEVEL_CLASSES;
const NO_PARENTS: usize = PARENT_MEAN + BANDS;
const LOSSLESS: usize = NO_PARENTS + 1;
const FEATURE_MEAN: usize = LOSSLESS + 1;
/// Numbers that hold for a whole level.
pub const CONSTANTS: usize = FEATURE_MEAN + FEATURES;
/// The value of a constant that is there.
const PRESENT: u8 = 64;

/// Map and lowest bit of a band's symbols.
pub(crate) const fn symbol_place(band: usize) -> (usize, u32) {
    (SYMBOL_MAP + band / 2, 16 * (band as u32 % 2))
}

/// The maps of a level.
#[derive(Debug, Clone)]
pub struct Planes {
    pub(crate) grid: Grid,
    /// All maps one after another, and what room there is after them.
    pub(crate) values: Vec<u32>,
    /// Numbers from 0 to 127 that hold for the whole level.
    pub constants: [u8; CONSTANTS],
}

impl Planes {
    /// The maps of a level before any of its symbols is known: from the part of an image that it refines (in 1/64
    /// steps), the symbols of the coarser level of that image, and how many levels are finer than this one. What lies
    /// around the part is seen too.
    pub fn new(
        image: &Matrix<i64>,
        area: Area,
        parents: Option<&[Matrix<i64>; BANDS]>,
        finer: usize,
        is_lossless: bool,
    ) -> Self {
        let seen = Seen {
            image,
            unit: 1,
            area,
            parents,
            finer,
            is_lossless,
        };
        let length = MAPS * Self::map_length(&seen);
        Self::with_room(seen, vec![0; length])
    }

    /// The same in other words.
    pub(crate) fn copied(&self, mut words: Vec<u32>) -> Self {
        words.clear();
        words.extend_from_slice(&self.values);
        Self {
            values: words,
            ..*self
        }
    }

    /// Words of a map.
    pub(crate) fn map_length(seen: &Seen) -> usize {
        Grid::new(seen.image, seen.area).map_length()
    }

    /// As [`Planes::new`], in words that are all 0 and at least as many as the maps need.
    pub(crate) fn with_room(seen: Seen, values: Vec<u32>) -> Self {
        let grid = Grid::new(seen.image, seen.area);
        let mut planes = Self {
            grid,
            values,
            constants: [0; CONSTANTS],
        };
        planes.constants[seen.finer.min(LEVEL_CLASSES - 1)] = PRESENT;
        if seen.is_lossless {
            planes.constants[LOSSLESS] = PRESENT;
        }
        planes.set_mask();
        simd::run(SetImage {
            planes: &mut planes,
            image: seen.image,
            unit: seen.unit,
            area: seen.area,
        });
        if let Some(parents) = seen.parents {
            planes.set_parents(parents, seen.area);
        } else {
            planes.constants[NO_PARENTS] = PRESENT;
        }
        planes
    }

    /// Columns of the part.
    pub fn width(&self) -> usize {
        self.grid.width()
    }

    /// Rows of the part.
    pub fn height(&self) -> usize {
        self.grid.height()
    }

    /// A channel at a column and row of the part, or at most two beyond it; 0 where nothing is.
    pub fn input(&self, channel: usize, column: isize, row: isize) -> u8 {
        self.byte(channel / GROUP, channel % GROUP, column, row)
    }

    /// A channel of the symbols that are known: the positive and negative parts of HL, LH and HH.
    pub fn symbol(&self, channel: usize, column: isize, row: isize) -> u8 {
        let map = SYMBOL_MAP + channel / GROUP;
        self.byte(map, channel % GROUP, column, row)
    }

    fn byte(&self, map: usize, byte: usize, column: isize, row: isize) -> u8 {
        self.values[self.grid.at(map, column, row)].to_le_bytes()[byte]
    }

    /// Whether the part, or the picture within two positions around it, has a position.
    pub fn is_valid(&self, column: isize, row: isize) -> bool {
        self.grid.is_valid(column, row)
    }

    /// Makes all symbols of the level known, as a trainer has them.
    pub fn set_symbols(&mut self, bands: &[Matrix<i64>; BANDS]) {
        let compander = Compander::get();
        for (band, symbols) in bands.iter().enumerate() {
            let (map, shift) = symbol_place(band);
            for row in 0..symbols.height {
                for (column, &symbol) in symbols.row(row).iter().enumerate() {
                    let at = self.grid.at(map, column as isize, row as isize);
                    self.values[at] |= u32::from(compander.coarse(symbol)) << shift;
                }
            }
        }
    }

    fn set_mask(&mut self) {
        for phase in 0..PHASES.len() {
            let rectangle = self.grid.valid(phase);
            let first = self.grid.phase(MASK_MAP, phase);
            for row in rectangle.rows {
                let line = &mut self.values[first + row * self.grid.stride()..];
                line[rectangle.columns.clone()].fill(u32::MAX);
            }
        }
    }

    /// Sets the parents and their means. Each stands for two by two positions.
    fn set_parents(&mut self, parents: &[Matrix<i64>; BANDS], area: Area) {
        let compander = Compander::get();
        let mut has_parents = [false; BANDS];
        for (band, parent) in parents.iter().enumerate() {
            if let Some(mean) = mean_magnitude(parent, area) {
                has_parents[band] = true;
                self.constants[PARENT_MEAN + band] = compander.fine(mean) as u8;
            }
        }
        let first = (area.column - self.grid.left()) / 2;
        let end = (area.column - self.grid.left() + self.grid.valid_width()).div_ceil(2);
        // Parents of a row: HL and LH in one word, HH in the other.
        let mut lines = [const { Vec::new() }; 2];
        for row in self.grid.valid_rows() {
            let parent_row = area.row.wrapping_add_signed(row) / 2;
            let is_new = row == self.grid.valid_rows().start
                || parent_row != area.row.wrapping_add_signed(row - 1) / 2;
            if is_new {
                for line in &mut lines {
                    line.clear();
                    line.resize(end - first, 0_u32);
                }
                for (band, parent) in parents.iter().enumerate() {
                    if !has_parents[band] {
                        continue;
                    }
                    let parents = parent.row(parent_row.min(parent.height - 1));
                    let shift = 16 * (band % 2);
                    let there = &parents[first.min(parents.len() - 1)..];
                    let (inside, beyond) =
                        lines[band / 2].split_at_mut(there.len().min(end - first));
                    for (word, &parent) in inside.iter_mut().zip(there) {
                        *word |= u32::from(compander.coarse(parent)) << shift;
                    }
                    let last = compander.coarse(parents[parents.len() - 1]);
                    for word in beyond {
                        *word |= u32::from(last) << shift;
                    }
                }
            }
            for (line, map) in lines.iter().zip(PARENT_MAP..) {
                for parity in 0..2 {
                    let start = self.grid.first_column(parity);
                    let start = area.column.wrapping_add_signed(start) / 2 - first;
                    let place = self.grid.row(map, row, parity);
                    let length = place.len();
                    self.values[place].copy_from_slice(&line[start..start + length]);
                }
            }
        }
    }
}

/// What the maps of a level are made from.
pub(crate) struct Seen<'a> {
    pub(crate) image: &'a Matrix<i64>,
    /// How many 1/64 steps the image's numbers count.
    pub(crate) unit: i64,
    pub(crate) area: Area,
    pub(crate) parents: Option<&'a [Matrix<i64>; BANDS]>,
    pub(crate) finer: usize,
    pub(crate) is_lossless: bool,
}

/// The mean magnitude of the parents of a part, in 1/64 steps; `None` where it has none.
fn mean_magnitude(parent: &Matrix<i64>, area: Area) -> Option<i64> {
    let halves = |start: usize, size: usize, end: usize| {
        (start / 2).min(end)..(start + size).div_ceil(2).min(end)
    };
    let rows = halves(area.row, area.height, parent.height);
    let columns = halves(area.column, area.width, parent.width);
    let count = rows.len() * columns.len();
    let sum: u64 = rows
        .flat_map(|row| &parent.row(row)[columns.clone()])
        .fold(0_u64, |sum, value| sum.saturating_add(value.unsigned_abs()));
    let mean = sum
        .saturating_mul(SUBSTEPS as u64)
        .checked_div(count as u64)?;
    Some(i64::try_from(mean).unwrap_or(i64::MAX))
}

/// Derives the features of an image, and their means.
struct SetImage<'a> {
    planes: &'a mut Planes,
    image: &'a Matrix<i64>,
    unit: i64,
    area: Area,
}

impl Work for SetImage<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        if self.is_narrow() {
            self.run_in::<i32>();
        } else {
            self.run_in::<i64>();
        }
    }
}

impl SetImage<'_> {
    /// Whether all features fit into 32 bits.
    #[inline(always)]
    fn is_narrow(&self) -> bool {
        let Self { image, area, .. } = self;
        if area.width == 0 || area.height == 0 {
            return true;
        }
        let near = |first: usize, size: usize, end: usize| {
            first.saturating_sub(MARGIN + 1)..(first + size + MARGIN + 2).min(end)
        };
        let columns = near(area.column, area.width, image.width);
        let rows = near(area.row, area.height, image.height);
        let middle = image.row(rows.start)[columns.start];
        // The bits of all differences from one pixel, but those that tell the sign.
        let mut bits = 0;
        for row in rows {
            for &value in &image.row(row)[columns.clone()] {
                let difference = value.wrapping_sub(middle);
                bits |= difference ^ (difference >> 63);
            }
        }
        // The largest feature, before its shift, is eight times the difference of two pixels.
        bits < (1 << 27) / self.unit
    }

    #[inline(always)]
    fn run_in<N: Number>(self) {
        let Self {
            planes,
            image,
            unit,
            area,
        } = self;
        let compander = Compander::get();
        let grid = planes.grid;
        let (width, left) = (grid.valid_width(), grid.left());
        let first = area.column - left;
        // With one more, so that columns come in pairs.
        let room = (width + 1).next_multiple_of(CHUNK);
        let around = |row: isize| {
            let row = row.saturating_add_unsigned(area.row);
            image.row(row.clamp(0, image.height as isize - 1) as usize)
        };
        let mut lines: [Vec<N>; 4] = std::array::from_fn(|_| vec![N::truncated(0); room + 3]);
        let rows = grid.valid_rows();
        for (line, row) in lines.iter_mut().zip(rows.start - 1..) {
            set_line(line, around(row), first, width, unit);
        }
        let mut features: [Vec<u32>; FEATURES] = std::array::from_fn(|_| vec![0; room]);
        let mut sums = [0_u64; FEATURES];
        for row in rows {
            features_of(&lines, &mut features);
            if (0..grid.height() as isize).contains(&row) {
                for (sum, feature) in sums.iter_mut().zip(&features) {
                    *sum += feature[left..left + grid.width()]
                        .iter()
                        .map(|&raised| u64::from(raised.abs_diff(FAR as u32)))
                        .sum::<u64>();
                }
            }
            for (map, [a, b]) in features.as_chunks::<2>().0.iter().enumerate() {
                for parity in 0..2 {
                    let start = grid.first_column(parity).saturating_add_unsigned(left) as usize;
                    let out = &mut planes.values[grid.row(map, row, parity)];
                    let (a, b) = (a[start..].as_chunks::<2>().0, b[start..].as_chunks::<2>().0);
                    for ((word, [a, _]), [b, _]) in out.iter_mut().zip(a).zip(b) {
                        *word = compander.raised(*a) | compander.raised(*b) << 16;
                    }
                }
            }
            lines.rotate_left(1);
            set_line(&mut lines[3], around(row + 3), first, width, unit);
        }
        let count = (grid.width() * grid.height()) as u64;
        for (constant, sum) in planes.constants[FEATURE_MEAN..].iter_mut().zip(sums) {
            let mean = sum.checked_div(count).unwrap_or(0);
            *constant = compander.fine(mean.cast_signed()) as u8;
        }
    }
}

/// Some pixels of a row with the nearest ones beyond both ends: one before, two after.
#[inline(always)]
fn set_line<N: Number>(line: &mut [N], row: &[i64], first: usize, width: usize, unit: i64) {
    let number = |value: i64| N::truncated(value.wrapping_mul(unit));
    line[0] = number(row[first.saturating_sub(1)]);
    for (pixel, &value) in line[1..=width].iter_mut().zip(&row[first..first + width]) {
        *pixel = number(value);
    }
    for (pixel, column) in line[1 + width..3 + width].iter_mut().zip(first + width..) {
        *pixel = number(row[column.min(row.len() - 1)]);
    }
}

/// An integer that features are computed in; it wraps.
trait Number: Copy {
    fn truncated(value: i64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, factor: i8) -> Self;
    fn halved(self, times: u32) -> Self;
    /// Clamped to −[`FAR`] and [`FAR`], and raised by that.
    fn raised(self) -> u32;
}

macro_rules! number {
    ($number:ty) => {
        impl Number for $number {
            #[inline(always)]
            fn truncated(value: i64) -> Self {
                value as Self
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn times(self, factor: i8) -> Self {
                self.wrapping_mul(factor.into())
            }
            #[inline(always)]
            fn halved(self, times: u32) -> Self {
                self >> times
            }
            #[inline(always)]
            fn raised(self) -> u32 {
                (self.clamp(-(FAR as Self), FAR as Self) + FAR as Self) as u32
            }
        }
    };
}
number!(i32);
number!(i64);

/// Pixels whose features are derived at once.
const CHUNK: usize = 16;

/// Numbers of a line from a place on.
#[inline(always)]
fn chunk<N: Number>(line: &[N], from: usize) -> [N; CHUNK] {
    let mut chunk = [N::truncated(0); CHUNK];
    chunk.copy_from_slice(&line[from..from + CHUNK]);
    chunk
}

/// The features of a row, clamped and raised by [`FAR`], from the rows around it: one above, itself and two below.
#[inline(always)]
fn features_of<N: Number>(
    [above, here, below, after]: &[Vec<N>; 4],
    out: &mut [Vec<u32>; FEATURES],
) {
    for first in (0..out[0].len()).step_by(CHUNK) {
        // The pixel itself is one on, because of the one before.
        let [a, b, c] = [0, 1, 2].map(|right| chunk(above, first + right));
        let [d, m, e, far] = [0, 1, 2, 3].map(|right| chunk(here, first + right));
        let [f, g, h] = [0, 1, 2].map(|right| chunk(below, first + right));
        let deep = chunk(after, first + 1);
        let mut features = [[0; CHUNK]; FEATURES];
        for i in 0..CHUNK {
            let (across, down) = (d[i].plus(e[i]), b[i].plus(g[i]));
            let corners = a[i].plus(c[i]).plus(f[i]).plus(h[i]);
            let ring = corners.plus(across).plus(down);
            let (twice, thrice) = (m[i].times(2), m[i].times(3));
            let change =
                |far: N, near: N, before: N| far.minus(near.times(3)).plus(thrice).minus(before);
            // How far it stands out of its neighbours; its curvatures and twist; and how the slope changes where the odd
            // samples lie, half a position on.
            features[0][i] = m[i].times(8).minus(ring).halved(3).raised();
            features[1][i] = across.minus(twice).raised();
            features[2][i] = down.minus(twice).raised();
            let twist = a[i].minus(c[i]).minus(f[i]).plus(h[i]);
            features[3][i] = twist.halved(2).raised();
            features[4][i] = change(far[i], e[i], d[i]).raised();
            features[5][i] = change(deep[i], g[i], b[i]).raised();
        }
        for (out, feature) in out.iter_mut().zip(&features) {
            out[first..first + CHUNK].copy_from_slice(feature);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Matrix<i64> {
        Matrix {
            width: 40,
            height: 36,
            values: (0..40 * 36)
                .map(|index| index * index % 977 * index % 9001)
                .collect(),
        }
    }

    fn parents() -> [Matrix<i64>; BANDS] {
        std::array::from_fn(|band| Matrix {
            width: 20,
            height: 18,
            values: (0..20 * 18)
                .map(|index| (index * (band as i64 + 3)) % 23 - 11)
                .collect(),
        })
    }

    #[test]
    fn a_part_sees_what_the_whole_sees() {
        let (image, bands) = (image(), parents());
        let whole = Planes::new(&image, Area::whole(&image), Some(&bands), 1, false);
        for [column, row, width, height] in [[20, 18, 20, 18], [3, 1, 11, 9], [0, 5, 40, 1]] {
            let area = Area {
                column,
                row,
                width,
                height,
            };
            let part = Planes::new(&image, area, Some(&bands), 1, false);
            for y in -2..height as isize + 2 {
                for x in -2..width as isize + 2 {
                    let (across, down) = (x + column as isize, y + row as isize);
                    let is_valid = (0..40).contains(&across) && (0..36).contains(&down);
                    assert_eq!(part.is_valid(x, y), is_valid);
                    for channel in 0..CHANNELS {
                        let value = part.input(channel, x, y);
                        let expected = if is_valid {
                            whole.input(channel, across, down)
                        } else {
                            0
                        };
                        assert_eq!(value, expected, "{channel} {x} {y}");
                    }
                }
            }
        }
    }

    #[test]
    fn channels_are_the_features_and_the_parents() {
        let (image, bands) = (image(), parents());
        let planes = Planes::new(&image, Area::whole(&image), Some(&bands), 3, true);
        let compander = Compander::get();
        let mut sums = [0; FEATURES];
        for row in 0..36_isize {
            for column in 0..40_isize {
                let at = |right: isize, down: isize| image.clamped(column + right, row + down);
                let middle = at(0, 0);
                let ring: i64 = (-1..=1)
                    .flat_map(|down| (-1..=1).map(move |right| at(right, down)))
                    .sum();
                let features = [
                    (9 * middle - ring) >> 3,
                    at(-1, 0) - 2 * middle + at(1, 0),
                    at(0, -1) - 2 * middle + at(0, 1),
                    (at(-1, -1) - at(1, -1) - at(-1, 1) + at(1, 1)) >> 2,
                    at(2, 0) - 3 * at(1, 0) + 3 * middle - at(-1, 0),
                    at(0, 2) - 3 * at(0, 1) + 3 * middle - at(0, -1),
                ];
                for (index, feature) in features.into_iter().enumerate() {
                    sums[index] += feature.abs();
                    let parts = [0, 1].map(|part| planes.input(2 * index + part, column, row));
                    assert_eq!(parts, compander.fine(feature).to_le_bytes());
                }
                for (band, parent) in bands.iter().enumerate() {
                    let parent = parent.row(row as usize / 2)[column as usize / 2];
                    let parts = [0, 1].map(|part| planes.input(12 + 2 * band + part, column, row));
                    assert_eq!(parts, compander.coarse(parent).to_le_bytes());
                }
                assert_eq!(planes.input(18, column, row), 0);
            }
        }
        assert_eq!(planes.constants[3], 64);
        assert_eq!(planes.constants[9..11], [0, 64]);
        for (index, sum) in sums.into_iter().enumerate() {
            let mean = compander.fine(sum / (40 * 36)) as u8;
            assert_eq!(planes.constants[11 + index], mean);
        }
    }

    /// Heights far apart do not fit into the narrow numbers, and are seen as the others are.
    #[test]
    fn large_differences_are_seen_as_small_ones_are() {
        let image = image();
        let mut tall = image.clone();
        // Too far from the others to change what they see.
        tall.values[40 * 36 - 1] += 1 << 40;
        for unit in [1, 64] {
            let area = Area {
                column: 0,
                row: 0,
                width: 30,
                height: 28,
            };
            let [low, high] = [&image, &tall].map(|image| {
                let image = &image.map(|value| value << 12);
                let planes = Planes::new(image, area, None, 0, false);
                let whole = Area::whole(image);
                let all = Planes::new(&image.map(|value| value * unit), whole, None, 0, false);
                (planes, all)
            });
            assert_eq!(low.0.values, high.0.values);
            for row in 0..28 {
                for column in 0..30 {
                    for channel in 0..12 {
                        let [low, high] =
                            [&low.1, &high.1].map(|planes| planes.input(channel, column, row));
                        assert_eq!(low, high);
                    }
                }
            }
        }
    }

    #[test]
    fn symbols_are_seen_where_they_are() {
        let image = image();
        let mut planes = Planes::new(&image, Area::whole(&image), None, 0, false);
        assert_eq!(planes.constants[NO_PARENTS], PRESENT);
        let bands = [[40, 36], [40, 35], [39, 35]].map(|[width, height]: [usize; 2]| Matrix {
            width,
            height,
            values: (0..width * height)
                .map(|index| index as i64 * 7 % 23 - 11)
                .collect(),
        });
        planes.set_symbols(&bands);
        for (band, symbols) in bands.iter().enumerate() {
            for (row, column) in [(0, 0), (7, 8), (34, 38)] {
                let symbol = symbols.row(row)[column];
                let parts = [0, 1]
                    .map(|part| planes.symbol(2 * band + part, column as isize, row as isize));
                assert_eq!(parts, Compander::get().coarse(symbol).to_le_bytes());
            }
        }
        assert_eq!(planes.symbol(4, 39, 0), 0);
    }
}
