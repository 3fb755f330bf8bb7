//! What brings a layer's heights within an error bound: smooth bumps on two grids, and single pixels.
//!
//! Errors of a wavelet's coarse levels stretch over several pixels, so that one bump mends what would take a pixel
//! each. A bump's place says less than a pixel's, and so costs fewer bits.
#![expect(
    clippy::cast_precision_loss,
    reason = "a total is a small number unless the bytes are damaged"
)]

use crate::Result;
use crate::bytes::Cursor;
use crate::coder::{AdaptiveBit, Decoder, Encoder};

/// Grids of bumps.
pub const GRIDS: usize = 2;
/// Pixels from one bump of a grid to the next.
pub const SPACINGS: [usize; GRIDS] = [4, 2];
/// A bump's profile along either axis, in parts of [`PROFILE_ONE`]; it reaches half a spacing beyond its cell.
pub const PROFILES: [&[i64]; GRIDS] = [&[1, 10, 23, 32, 32, 23, 10, 1], &[7, 32, 32, 7]];
/// The unit of a profile.
pub const PROFILE_ONE: i64 = 32;
/// Heights are stored in parts of a step.
pub const PARTS: i64 = 128;
/// Parts of a step that totals are counted in.
const UNIT: i64 = PROFILE_ONE * PROFILE_ONE * PARTS;

/// Corrections of a tile.
#[derive(Debug, Clone, PartialEq)]
pub struct Corrections {
    /// Metres per step: twice the bound or less.
    pub step_m: f32,
    /// The height of each grid's bumps, in [`PARTS`] of a step.
    pub heights: [u8; GRIDS],
    /// What the first unit of a pixel stands for, in [`PARTS`] of a step; every further unit is a step.
    pub first: u8,
    /// How many bumps stand on every place of each grid, row by row.
    pub bumps: [Vec<i64>; GRIDS],
    /// One integer per pixel, row by row; 0 where a pixel is missing.
    pub pixels: Vec<i64>,
}

/// Places of a grid across and down, for a tile of a size.
pub fn grid_size(grid: usize, [width, height]: [usize; 2]) -> [usize; 2] {
    [width, height].map(|side| side.div_ceil(SPACINGS[grid]))
}

/// Bits to a stream, or from it.
trait Stream {
    /// A bit with its adaptive probability; a reader takes no notice of the value.
    fn bit(&mut self, bit: &mut AdaptiveBit, value: bool) -> bool;
    /// The lowest bits of a number, all equally likely.
    fn raw(&mut self, value: u64, count: u32) -> u64;
}

impl Stream for Encoder {
    fn bit(&mut self, bit: &mut AdaptiveBit, value: bool) -> bool {
        Self::bit(self, bit, value);
        value
    }

    fn raw(&mut self, value: u64, count: u32) -> u64 {
        Self::raw(self, value, count);
        value & ((1 << count) - 1)
    }
}

impl Stream for Decoder<'_> {
    fn bit(&mut self, bit: &mut AdaptiveBit, _: bool) -> bool {
        Self::bit(self, bit)
    }

    fn raw(&mut self, _: u64, count: u32) -> u64 {
        Self::raw(self, count)
    }
}

/// Classes of what coarser grids say, sums of neighbours that are not 0, and bits of a size.
const CLASSES: usize = 4;
const SUMS: usize = 7;
const SIZES: usize = 62;

/// The adaptive bits of a plane.
struct Contexts {
    zero: [[AdaptiveBit; SUMS]; CLASSES],
    sign: [[AdaptiveBit; 9]; 3],
    size: [AdaptiveBit; SIZES],
}

impl Contexts {
    fn new() -> Self {
        // Nearly all are 0, and of the others nearly all are 1.
        Self {
            zero: [[AdaptiveBit::starting(62_000, 4); SUMS]; CLASSES],
            sign: [[AdaptiveBit::starting(1 << 15, 2); 9]; 3],
            size: [AdaptiveBit::starting(2_000, 4); SIZES],
        }
    }
}

/// Writes or reads the integers of a plane, row by row; those of missing pixels are left out. `coarser` gives the class
/// and a number whose sign is that of the coarser grids, at a column and row.
fn code_plane(
    stream: &mut impl Stream,
    values: &mut [i64],
    width: usize,
    missing: Option<&[bool]>,
    coarser: impl Fn(usize, usize) -> (usize, i64),
) {
    let mut contexts = Contexts::new();
    let sign = |value: i64| match value.signum() {
        -1 => 0,
        0 => 1,
        _ => 2,
    };
    for index in 0..values.len() {
        if missing.is_some_and(|missing| missing[index]) {
            continue;
        }
        let (row, column) = (index / width, index % width);
        let at = |is_there: bool, back: usize| {
            if is_there { values[index - back] } else { 0 }
        };
        let west = at(column > 0, 1);
        let north = at(row > 0, width);
        let north_west = at(row > 0 && column > 0, width + 1);
        let north_east = at(row > 0 && column + 1 < width, width.wrapping_sub(1));
        let there = |value: i64| usize::from(value != 0);
        let sum = 2 * there(west) + 2 * there(north) + there(north_west) + there(north_east);
        let (class, parent) = coarser(column, row);
        let value = values[index];
        values[index] = if stream.bit(&mut contexts.zero[class][sum], value == 0) {
            0
        } else {
            let signs = 3 * sign(west) + sign(north);
            let is_negative = stream.bit(&mut contexts.sign[sign(parent)][signs], value < 0);
            let magnitude = code_magnitude(stream, &mut contexts.size, value.unsigned_abs());
            let magnitude = magnitude.cast_signed();
            if is_negative {
                magnitude.wrapping_neg()
            } else {
                magnitude
            }
        };
    }
}

/// A number from 1 to 2^63 − 1: the bits below its highest in unary, then these bits.
fn code_magnitude(stream: &mut impl Stream, size: &mut [AdaptiveBit; SIZES], value: u64) -> u64 {
    let top = value.checked_ilog2().unwrap_or(0);
    let mut bits = 0;
    for (index, bit) in (0..).zip(size.iter_mut()) {
        if !stream.bit(bit, index < top) {
            break;
        }
        bits += 1;
    }
    1 << bits | stream.raw(value, bits)
}

impl Corrections {
    /// Appends what is stored.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>, width: usize, missing: Option<&[bool]>) {
        bytes.extend(self.step_m.to_le_bytes());
        bytes.extend(self.heights);
        bytes.push(self.first);
        let height = self.pixels.len().checked_div(width).unwrap_or(0);
        let mut encoder = Encoder::default();
        self.clone().code(&mut encoder, [width, height], missing);
        bytes.extend(encoder.finish());
    }

    /// Reads what is left of a record.
    pub(crate) fn read(
        cursor: &mut Cursor,
        size: [usize; 2],
        missing: Option<&[bool]>,
    ) -> Result<Self> {
        let step_m = cursor.f32()?;
        if !(step_m > 0.0 && step_m.is_finite()) {
            return Err(cursor.malformed("the step of its corrections is no number of metres"));
        }
        let mut corrections = Self {
            step_m,
            heights: [cursor.u8()?, cursor.u8()?],
            first: cursor.u8()?,
            bumps: std::array::from_fn(|grid| vec![0; grid_size(grid, size).iter().product()]),
            pixels: vec![0; size.iter().product()],
        };
        let mut decoder = Decoder::new(cursor.rest());
        corrections.code(&mut decoder, size, missing);
        decoder.end()?;
        Ok(corrections)
    }

    /// Writes all integers, or reads them; those of coarser grids tell something of the finer ones.
    fn code(&mut self, stream: &mut impl Stream, size: [usize; 2], missing: Option<&[bool]>) {
        let [coarse, fine] = &mut self.bumps;
        let [coarse_width, fine_width] = [0, 1].map(|grid| grid_size(grid, size)[0]);
        code_plane(stream, coarse, coarse_width, None, |_, _| (0, 0));
        code_plane(stream, fine, fine_width, None, |column, row| {
            let parent = coarse[row / 2 * coarse_width + column / 2];
            (usize::from(parent != 0), parent)
        });
        code_plane(stream, &mut self.pixels, size[0], missing, |column, row| {
            let fine = fine[row / 2 * fine_width + column / 2];
            let coarse = coarse[row / 4 * coarse_width + column / 4];
            let class = usize::from(coarse != 0) + 2 * usize::from(fine != 0);
            (class, if fine == 0 { coarse } else { fine })
        });
    }

    /// Metres to add to every pixel of a tile of a width.
    pub fn metres(&self, width: usize) -> Vec<f64> {
        let mut totals: Vec<i64> = self.pixels.iter().map(|&value| self.pixel(value)).collect();
        let height = totals.len().checked_div(width).unwrap_or(0);
        for (grid, bumps) in self.bumps.iter().enumerate() {
            let (spacing, profile) = (SPACINGS[grid], PROFILES[grid]);
            let before = (profile.len() - spacing) / 2;
            let across = width.div_ceil(spacing).max(1);
            let scale = i64::from(self.heights[grid]);
            for (place, &count) in bumps.iter().enumerate().filter(|(_, count)| **count != 0) {
                let (row, column) = (place / across * spacing, place % across * spacing);
                let peak = count.wrapping_mul(scale);
                for (down, &a) in profile.iter().enumerate() {
                    for (right, &b) in profile.iter().enumerate() {
                        let row = (row + down).wrapping_sub(before);
                        let column = (column + right).wrapping_sub(before);
                        if row < height && column < width {
                            let total = &mut totals[row * width + column];
                            *total = total.wrapping_add(peak.wrapping_mul(a * b));
                        }
                    }
                }
            }
        }
        let unit_m = f64::from(self.step_m) / UNIT as f64;
        totals.iter().map(|&total| total as f64 * unit_m).collect()
    }

    /// What a pixel's own integer stands for.
    fn pixel(&self, value: i64) -> i64 {
        if value == 0 {
            return 0;
        }
        let further = value.wrapping_sub(value.signum()).wrapping_mul(UNIT);
        let first = value.signum() * i64::from(self.first) * (UNIT / PARTS);
        further.wrapping_add(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corrections(width: usize, height: usize) -> Corrections {
        let some = |count: usize, every: usize| {
            (0..count)
                .map(|index| match index % every {
                    1 => 1,
                    4 => -1,
                    _ => 0,
                })
                .collect::<Vec<i64>>()
        };
        Corrections {
            step_m: 0.2,
            heights: [25, 45],
            first: 90,
            bumps: std::array::from_fn(|grid| {
                let [across, down] = grid_size(grid, [width, height]);
                some(across * down, 7 + grid)
            }),
            pixels: some(width * height, 31),
        }
    }

    #[test]
    fn corrections_come_back() {
        for [width, height] in [[1, 1], [9, 7], [64, 33]] {
            let source = corrections(width, height);
            let mut bytes = Vec::new();
            source.write(&mut bytes, width, None);
            let mut cursor = Cursor::new(&bytes, "tile");
            let back = Corrections::read(&mut cursor, [width, height], None).unwrap();
            assert_eq!(back, source);
            assert_eq!(back.metres(width).len(), width * height);
        }
    }

    #[test]
    fn bumps_and_pixels_add_up() {
        let mut tile = corrections(12, 8);
        tile.bumps.iter_mut().for_each(|bumps| bumps.fill(0));
        tile.pixels.fill(0);
        tile.pixels[0] = -3;
        // The second place of the coarse grid covers columns 4 to 7, and fades out beyond.
        tile.bumps[0][1] = 2;
        let metres = tile.metres(12);
        let step = f64::from(0.2_f32);
        assert!((metres[0] + step * (2.0 + 90.0 / 128.0)).abs() < 1e-12);
        let peak = 2.0 * step * 25.0 / 128.0;
        assert!((metres[12 + 5] - peak).abs() < 1e-12);
        assert!((metres[12 + 9] - peak / 32.0).abs() < 1e-12);
        assert!((metres[11]).abs() < 1e-12);
    }

    #[test]
    fn any_bytes_can_be_read() {
        let mut bytes = Vec::new();
        corrections(9, 7).write(&mut bytes, 9, None);
        for offset in 0..bytes.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[offset] = value;
                let mut cursor = Cursor::new(&damaged, "tile");
                if let Ok(read) = Corrections::read(&mut cursor, [9, 7], None) {
                    read.metres(9);
                }
            }
        }
    }
}
