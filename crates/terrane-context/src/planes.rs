//! What the network sees of a level: twelve planes of small integers, each cut into its four phases.
//!
//! The phases are the places with even and odd rows and columns. A whole phase is decoded at once, so its places lie
//! side by side; a neighbour of all of them is then one shifted stretch of another phase.

use std::num::Wrapping;

use crate::compand::{Compander, UNIT};
use crate::grid::Grid;
use crate::wavelet::BANDS;

/// Places worked on at once.
pub const LANES: usize = 64;
/// Features of the coarser picture.
const PICTURE: usize = 6;
/// First plane of the parents, and of the bands themselves.
const PARENT: usize = PICTURE;
const BAND: usize = PICTURE + BANDS;
/// All planes.
const PLANES: usize = PICTURE + 2 * BANDS;
/// Numbers that hold for a whole level.
pub const CONSTANTS: usize = LEVEL_CLASSES + BANDS + 1;
const LEVEL_CLASSES: usize = 6;
/// The value of a constant that is there.
const PRESENT: f32 = 64.0;

/// The phases in the order in which they are coded: both even; both odd; then the two between.
pub const PHASES: [[usize; 2]; 4] = [[0, 0], [1, 1], [0, 1], [1, 0]];

/// Where an input of the network comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tap {
    plane: usize,
    down: isize,
    right: isize,
    /// Without its sign.
    is_magnitude: bool,
}

/// Inputs of the trunk: the coarser picture and the parents, so many places around.
pub fn trunk_taps(reach: usize) -> Vec<Tap> {
    let reach = reach as isize;
    (0..BAND)
        .flat_map(|plane| window(plane, reach, false))
        .collect()
}

/// Inputs of the head for one phase of a band, beside the trunk: the bands before it, and of its own the phases before.
pub fn head_taps(band: usize, phase: usize) -> Vec<Tap> {
    let mut taps = Vec::new();
    for sibling in 0..band {
        for is_magnitude in [false, true] {
            taps.extend(window(BAND + sibling, 1, is_magnitude));
        }
    }
    let [row, column] = PHASES[phase];
    for is_magnitude in [false, true] {
        taps.extend(window(BAND + band, 1, is_magnitude).filter(|tap| {
            let place = [
                (row as isize + tap.down) as usize & 1,
                (column as isize + tap.right) as usize & 1,
            ];
            PHASES[..phase].contains(&place)
        }));
    }
    taps
}

/// Inputs of the dequantiser, beside the trunk: all bands.
pub fn dequantiser_taps() -> Vec<Tap> {
    (0..BANDS)
        .flat_map(|band| window(BAND + band, 1, false))
        .collect()
}

fn window(plane: usize, reach: isize, is_magnitude: bool) -> impl Iterator<Item = Tap> {
    (-reach..=reach).flat_map(move |down| {
        (-reach..=reach).map(move |right| Tap {
            plane,
            down,
            right,
            is_magnitude,
        })
    })
}

/// One plane in four phases, with a rim of noughts.
#[derive(Debug, Clone)]
struct Phased {
    phases: [Vec<f32>; 4],
}

/// The planes of a level.
#[derive(Debug)]
pub struct Planes {
    /// Places of a phase across and down.
    width: usize,
    height: usize,
    planes: Vec<Phased>,
    /// Numbers that hold for the whole level.
    pub constants: [f32; CONSTANTS],
}

impl Planes {
    /// The planes of a level before any of its symbols is known, from the picture that it refines (in 1/64 steps), the
    /// symbols of the coarser level, and how many levels are finer than this one.
    pub fn new(low: &Grid<i64>, parents: Option<&[Grid<i64>; BANDS]>, finer: usize) -> Self {
        let (width, height) = (low.width.div_ceil(2), low.height.div_ceil(2));
        let length = (width + 2) * (height + 2) + LANES;
        let plane = Phased {
            phases: std::array::from_fn(|_| vec![0.0; length]),
        };
        let mut planes = Self {
            width,
            height,
            planes: vec![plane; PLANES],
            constants: [0.0; CONSTANTS],
        };
        planes.constants[finer.min(LEVEL_CLASSES - 1)] = PRESENT;
        planes.set_picture(low);
        if let Some(parents) = parents {
            planes.set_parents(parents, low);
        } else {
            planes.constants[CONSTANTS - 1] = PRESENT;
        }
        planes
    }

    fn stride(&self) -> usize {
        self.width + 2
    }

    /// Where the places of a phase lie: the first, and how many with the rims between rows.
    pub fn stretch(&self) -> std::ops::Range<usize> {
        let first = self.stride() + 1;
        first..first + (self.height - 1) * self.stride() + self.width
    }

    /// Column and row in the band of a place of a phase; `None` for a rim.
    pub fn place(&self, phase: usize, index: usize) -> Option<[usize; 2]> {
        let (row, column) = (index / self.stride() - 1, index % self.stride());
        if column == 0 || column > self.width {
            return None;
        }
        let [row_phase, column_phase] = PHASES[phase];
        Some([2 * (column - 1) + column_phase, 2 * row + row_phase])
    }

    fn at(&self, column: usize, row: usize) -> (usize, usize) {
        let phase = match (row % 2, column % 2) {
            (0, 0) => 0,
            (1, 1) => 1,
            (0, _) => 2,
            _ => 3,
        };
        (phase, (row / 2 + 1) * self.stride() + column / 2 + 1)
    }

    fn set(&mut self, plane: usize, column: usize, row: usize, value: f32) {
        let (phase, index) = self.at(column, row);
        self.planes[plane].phases[phase][index] = value;
    }

    /// Makes a symbol of a band known.
    #[inline(always)]
    pub fn set_symbol(&mut self, band: usize, phase: usize, index: usize, companded: f32) {
        self.planes[BAND + band].phases[phase][index] = companded;
    }

    /// Makes all symbols of the level known, as a trainer has them.
    pub fn set_symbols(&mut self, bands: &[Grid<i64>; BANDS]) {
        let compander = Compander::get();
        for (band, grid) in bands.iter().enumerate() {
            for row in 0..grid.height {
                for (column, &symbol) in grid.row(row).iter().enumerate() {
                    self.set(BAND + band, column, row, compander.whole(symbol));
                }
            }
        }
    }

    /// One input at a column and row of the band.
    pub fn input(&self, tap: &Tap, [column, row]: [usize; 2]) -> f32 {
        // From 2 places up and left, so that no coordinate is below 0; that is one place of any phase.
        let (row, column) = (
            (row + 2).wrapping_add_signed(tap.down),
            (column + 2).wrapping_add_signed(tap.right),
        );
        let (phase, index) = self.at(column, row);
        let value = self.planes[tap.plane].phases[phase][index - self.stride() - 1];
        if tap.is_magnitude { value.abs() } else { value }
    }

    fn set_picture(&mut self, low: &Grid<i64>) {
        let compander = Compander::get();
        for row in 0..low.height {
            for column in 0..low.width {
                let at = |right: isize, down: isize| {
                    Wrapping(low.clamped(column as isize + right, row as isize + down))
                };
                let (two, three, eight) = (Wrapping(2), Wrapping(3), Wrapping(8));
                let middle = at(0, 0);
                let around = at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1);
                let corners = [at(-1, -1), at(1, -1), at(-1, 1), at(1, 1)];
                let features = [
                    // How far it stands out of its neighbours; its curvatures and twist; and how the slope changes
                    // where the details lie, half a place on.
                    (eight * middle - around - corners.iter().sum::<Wrapping<i64>>()) >> 3,
                    at(-1, 0) - two * middle + at(1, 0),
                    at(0, -1) - two * middle + at(0, 1),
                    (corners[0] - corners[1] - corners[2] + corners[3]) >> 2,
                    at(2, 0) - three * at(1, 0) + three * middle - at(-1, 0),
                    at(0, 2) - three * at(0, 1) + three * middle - at(0, -1),
                ];
                for (plane, feature) in features.into_iter().enumerate() {
                    self.set(plane, column, row, compander.fine(feature.0));
                }
            }
        }
    }

    fn set_parents(&mut self, parents: &[Grid<i64>; BANDS], low: &Grid<i64>) {
        let compander = Compander::get();
        for (band, parent) in parents.iter().enumerate() {
            if parent.values.is_empty() {
                continue;
            }
            let sum: u64 = parent
                .values
                .iter()
                .fold(0_u64, |sum, value| sum.saturating_add(value.unsigned_abs()));
            let mean = sum.saturating_mul(UNIT as u64) / parent.values.len() as u64;
            self.constants[LEVEL_CLASSES + band] =
                compander.fine(i64::try_from(mean).unwrap_or(i64::MAX));
            for row in 0..low.height {
                for column in 0..low.width {
                    let value = parent.clamped(column as isize / 2, row as isize / 2);
                    self.set(PARENT + band, column, row, compander.whole(value));
                }
            }
        }
    }

    /// Gathers inputs for so many places of a phase side by side, a row of [`LANES`] per tap.
    #[inline(always)]
    pub fn gather(&self, taps: &[Tap], phase: usize, index: usize, inputs: &mut [f32]) {
        let [row, column] = PHASES[phase];
        for (tap, inputs) in taps.iter().zip(inputs.chunks_exact_mut(LANES)) {
            let (down, right) = (row as isize + tap.down, column as isize + tap.right);
            let source = match (down & 1, right & 1) {
                (0, 0) => 0,
                (1, 1) => 1,
                (0, _) => 2,
                _ => 3,
            };
            let shift = (down >> 1) * self.stride() as isize + (right >> 1);
            let start = index.wrapping_add_signed(shift);
            let values = &self.planes[tap.plane].phases[source][start..start + LANES];
            if tap.is_magnitude {
                for (input, value) in inputs.iter_mut().zip(values) {
                    *input = value.abs();
                }
            } else {
                inputs.copy_from_slice(values);
            }
        }
    }
}
