//! What the network sees of a level: planes of small integers, each cut into its four phases.
//!
//! The phases are the positions with even and odd rows and columns. A whole phase is decoded at once, so its positions
//! lie side by side; a neighbour of all of them is then one shifted span of another phase.

use std::num::Wrapping;

use crate::grid::Area;
use crate::matrix::Matrix;
use crate::old_compand::{Compander, SUBSTEPS};
use crate::wavelet::BANDS;

/// Positions worked on at once.
pub(crate) const LANES: usize = 64;
/// Features of the coarser image.
const IMAGE: usize = 6;
/// First plane of the parents, and of the bands themselves.
const PARENT: usize = IMAGE;
const BAND: usize = IMAGE + BANDS;
/// First plane of the bands' magnitudes.
const MAGNITUDE: usize = BAND + BANDS;
/// All planes.
const PLANES: usize = MAGNITUDE + BANDS;
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
}

/// Inputs of the trunk: neighbourhoods of a radius on the coarser image and on the parents.
pub(crate) fn trunk_taps(radius: usize) -> Vec<Tap> {
    let radius = radius as isize;
    (0..BAND).flat_map(|plane| window(plane, radius)).collect()
}

/// Inputs of the head for one phase of a band, beside the trunk: the bands before it, and of its own the phases before.
pub(crate) fn head_taps(band: usize, phase: usize) -> Vec<Tap> {
    let mut taps = Vec::new();
    for sibling in 0..band {
        taps.extend(window(BAND + sibling, 1));
        taps.extend(window(MAGNITUDE + sibling, 1));
    }
    let [row, column] = PHASES[phase];
    for plane in [BAND + band, MAGNITUDE + band] {
        taps.extend(window(plane, 1).filter(|tap| {
            let neighbour = [
                (row as isize + tap.down) as usize & 1,
                (column as isize + tap.right) as usize & 1,
            ];
            PHASES[..phase].contains(&neighbour)
        }));
    }
    taps
}

/// Inputs of the dequantiser, beside the trunk: all bands.
pub(crate) fn dequantiser_taps() -> Vec<Tap> {
    (0..BANDS).flat_map(|band| window(BAND + band, 1)).collect()
}

/// All lists of inputs of a network.
#[derive(Debug)]
pub struct Taps {
    /// Of the trunk.
    pub trunk: Vec<Tap>,
    /// Of the heads beside the trunk, band by band and phase by phase.
    pub heads: Vec<Vec<Tap>>,
    /// Of the dequantiser beside the trunk.
    pub dequantiser: Vec<Tap>,
}

impl Taps {
    /// Those of a network whose trunk sees neighbourhoods of a radius.
    pub fn new(radius: usize) -> Self {
        let heads = (0..BANDS)
            .flat_map(|band| (0..PHASES.len()).map(move |phase| head_taps(band, phase)))
            .collect();
        Self {
            trunk: trunk_taps(radius),
            heads,
            dequantiser: dequantiser_taps(),
        }
    }
}

fn window(plane: usize, radius: isize) -> impl Iterator<Item = Tap> {
    (-radius..=radius)
        .flat_map(move |down| (-radius..=radius).map(move |right| Tap { plane, down, right }))
}

/// One plane in four phases, with a border of zeros.
#[derive(Debug, Clone)]
struct Phased {
    phases: [Vec<f32>; 4],
}

/// The planes of a level.
#[derive(Debug, Clone)]
pub struct Planes {
    /// Positions of a phase across and down.
    width: usize,
    height: usize,
    all: Vec<Phased>,
    /// Numbers that hold for the whole level.
    pub constants: [f32; CONSTANTS],
}

impl Area {
    /// Indices of an axis of the image with the borders that planes have on either side, as far as the image reaches.
    fn with_border(start: usize, size: usize, end: usize) -> std::ops::Range<usize> {
        start.saturating_sub(2)..(start + size.next_multiple_of(2) + 2).min(end)
    }

    fn columns(&self, end: usize) -> std::ops::Range<usize> {
        Self::with_border(self.column, self.width, end)
    }

    fn rows(&self, end: usize) -> std::ops::Range<usize> {
        Self::with_border(self.row, self.height, end)
    }
}

impl Planes {
    /// The planes of a level before any of its symbols is known: from the part of an image that it refines (in 1/64
    /// steps), the symbols of the coarser level of that image, and how many levels are finer than this one. What lies
    /// around the part is seen too.
    pub fn new(
        image: &Matrix<i64>,
        area: Area,
        parents: Option<&[Matrix<i64>; BANDS]>,
        finer: usize,
    ) -> Self {
        let (width, height) = (area.width.div_ceil(2), area.height.div_ceil(2));
        let length = (width + 2) * (height + 2) + LANES;
        let plane = Phased {
            phases: std::array::from_fn(|_| vec![0.0; length]),
        };
        let mut planes = Self {
            width,
            height,
            all: vec![plane; PLANES],
            constants: [0.0; CONSTANTS],
        };
        planes.constants[finer.min(LEVEL_CLASSES - 1)] = PRESENT;
        planes.set_image(image, area);
        if let Some(parents) = parents {
            planes.set_parents(parents, image, area);
        } else {
            planes.constants[CONSTANTS - 1] = PRESENT;
        }
        planes
    }

    fn stride(&self) -> usize {
        self.width + 2
    }

    /// The indices of a phase's positions, with the borders between rows.
    pub fn span(&self) -> std::ops::Range<usize> {
        let first = self.stride() + 1;
        first..first + (self.height - 1) * self.stride() + self.width
    }

    /// The [`LANES`] positions of a phase from an index on: lane, column and row in the band. Borders are left out.
    #[inline(always)]
    pub(crate) fn positions(
        &self,
        phase: usize,
        start: usize,
    ) -> impl Iterator<Item = [usize; 3]> + use<> {
        let [row_phase, column_phase] = PHASES[phase];
        let (stride, width) = (self.stride(), self.width);
        let end = self.span().end.min(start + LANES) - start;
        let (mut row, mut column) = (start / stride - 1, start % stride);
        (0..end).filter_map(move |lane| {
            let position = [
                lane,
                (2 * column + column_phase).wrapping_sub(2),
                2 * row + row_phase,
            ];
            let is_inside = (1..=width).contains(&column);
            column += 1;
            if column == stride {
                (row, column) = (row + 1, 0);
            }
            is_inside.then_some(position)
        })
    }

    fn at(&self, column: usize, row: usize) -> (usize, usize) {
        let phase = PHASE_OF[row % 2][column % 2];
        (phase, (row / 2 + 1) * self.stride() + column / 2 + 1)
    }

    /// Phase and index of a column and row that are counted from two before the first, where the border starts.
    fn at_border(&self, column: usize, row: usize) -> (usize, usize) {
        let phase = PHASE_OF[row % 2][column % 2];
        (phase, row / 2 * self.stride() + column / 2)
    }

    /// Makes a symbol of a band known.
    #[inline(always)]
    pub fn set_symbol(&mut self, band: usize, phase: usize, index: usize, companded: f32) {
        self.all[BAND + band].phases[phase][index] = companded;
        self.all[MAGNITUDE + band].phases[phase][index] = companded.abs();
    }

    /// Makes all symbols of the level known, as a trainer has them.
    pub fn set_symbols(&mut self, bands: &[Matrix<i64>; BANDS]) {
        let compander = Compander::get();
        for (band, grid) in bands.iter().enumerate() {
            for row in 0..grid.height {
                for (column, &symbol) in grid.row(row).iter().enumerate() {
                    let (phase, index) = self.at(column, row);
                    self.set_symbol(band, phase, index, compander.coarse(symbol));
                }
            }
        }
    }

    /// One input at a column and row of the band.
    pub fn input(&self, tap: &Tap, [column, row]: [usize; 2]) -> f32 {
        // From 2 positions up and left, so that no coordinate is below 0; that is one position of any phase.
        let (row, column) = (
            (row + 2).wrapping_add_signed(tap.down),
            (column + 2).wrapping_add_signed(tap.right),
        );
        let (phase, index) = self.at(column, row);
        self.all[tap.plane].phases[phase][index - self.stride() - 1]
    }

    fn set_image(&mut self, image: &Matrix<i64>, area: Area) {
        let compander = Compander::get();
        let (columns, rows) = (area.columns(image.width), area.rows(image.height));
        // Rows with the nearest pixels beyond both ends: one before, two after.
        let around = |row: isize, line: &mut Vec<Wrapping<i64>>| {
            let row = image.row(row.clamp(0, image.height as isize - 1) as usize);
            let last = image.width - 1;
            line.clear();
            line.push(Wrapping(row[columns.start.saturating_sub(1)]));
            line.extend(row[columns.clone()].iter().map(|&value| Wrapping(value)));
            line.extend([0, 1].map(|after| Wrapping(row[(columns.end + after).min(last)])));
        };
        let mut lines: [Vec<Wrapping<i64>>; 4] = Default::default();
        for (line, row) in lines.iter_mut().zip(rows.start as isize - 1..) {
            around(row, line);
        }
        let (two, three, eight) = (Wrapping(2), Wrapping(3), Wrapping(8));
        for row in rows {
            let [above, here, below, after] = &lines;
            for column in columns.clone() {
                let at = column - columns.start;
                // The pixel itself is one on, because of the one before.
                let [a, b, c] = [0, 1, 2].map(|right| above[at + right]);
                let [d, middle, e, far] = [0, 1, 2, 3].map(|right| here[at + right]);
                let [f, g, h] = [0, 1, 2].map(|right| below[at + right]);
                let deep = after[at + 1];
                let features = [
                    // How far it stands out of its neighbours; its curvatures and twist; and how the slope changes
                    // where the odd samples lie, half a position on.
                    (eight * middle - (a + b + c + d + e + f + g + h)) >> 3,
                    d - two * middle + e,
                    b - two * middle + g,
                    (a - c - f + h) >> 2,
                    far - three * e + three * middle - d,
                    deep - three * g + three * middle - b,
                ];
                let (phase, index) = self.at_border(column + 2 - area.column, row + 2 - area.row);
                for (plane, feature) in features.into_iter().enumerate() {
                    self.all[plane].phases[phase][index] = compander.fine(feature.0);
                }
            }
            lines.rotate_left(1);
            around(row as isize + 3, &mut lines[3]);
        }
    }

    fn set_parents(&mut self, parents: &[Matrix<i64>; BANDS], image: &Matrix<i64>, area: Area) {
        let compander = Compander::get();
        for (band, parent) in parents.iter().enumerate() {
            let end = |start: usize, size: usize, end: usize| (start + size).div_ceil(2).min(end);
            let own = (area.row / 2).min(parent.height)..end(area.row, area.height, parent.height);
            let across =
                (area.column / 2).min(parent.width)..end(area.column, area.width, parent.width);
            let count = own.len() * across.len();
            if count == 0 {
                continue;
            }
            let sum: u64 = own
                .flat_map(|row| &parent.row(row)[across.clone()])
                .fold(0_u64, |sum, value| sum.saturating_add(value.unsigned_abs()));
            let mean = sum.saturating_mul(SUBSTEPS as u64) / count as u64;
            self.constants[LEVEL_CLASSES + band] =
                compander.fine(i64::try_from(mean).unwrap_or(i64::MAX));
            for row in area.rows(image.height) {
                let line = parent.row((row / 2).min(parent.height - 1));
                for column in area.columns(image.width) {
                    let value = compander.coarse(line[(column / 2).min(parent.width - 1)]);
                    let (phase, index) =
                        self.at_border(column + 2 - area.column, row + 2 - area.row);
                    self.all[PARENT + band].phases[phase][index] = value;
                }
            }
        }
    }

    /// An input for [`LANES`] positions of a phase side by side, from an index on.
    #[inline(always)]
    pub(crate) fn lanes(&self, tap: &Tap, phase: usize, index: usize) -> &[f32; LANES] {
        let [row, column] = PHASES[phase];
        let (down, right) = (row as isize + tap.down, column as isize + tap.right);
        let source = PHASE_OF[(down & 1) as usize][(right & 1) as usize];
        let shift = (down >> 1) * self.stride() as isize + (right >> 1);
        let start = index.wrapping_add_signed(shift);
        self.all[tap.plane].phases[source][start..start + LANES]
            .try_into()
            .expect("a slice has its length")
    }
}

/// The phase of an even or odd row and column.
const PHASE_OF: [[usize; 2]; 2] = [[0, 2], [3, 1]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_sees_what_the_whole_sees() {
        let image = Matrix {
            width: 40,
            height: 36,
            values: (0..40 * 36).map(|index| index * index % 977).collect(),
        };
        let bands: [Matrix<i64>; BANDS] = std::array::from_fn(|band| Matrix {
            width: 20,
            height: 18,
            values: (0..20 * 18)
                .map(|index| (index * (band as i64 + 3)) % 23 - 11)
                .collect(),
        });
        let whole = Planes::new(&image, Area::whole(&image), Some(&bands), 1);
        let area = Area {
            column: 20,
            row: 18,
            width: 20,
            height: 18,
        };
        let part = Planes::new(&image, area, Some(&bands), 1);
        for tap in trunk_taps(2) {
            for row in 0..18 {
                for column in 0..20 {
                    let (a, b) = (
                        part.input(&tap, [column, row]),
                        whole.input(&tap, [column + 20, row + 18]),
                    );
                    assert_eq!(a, b, "{tap:?} {column} {row}");
                }
            }
        }
    }

    #[test]
    fn one_input_and_many_side_by_side_are_the_same() {
        let ll = Matrix {
            width: 21,
            height: 14,
            values: (0..21 * 14).map(|index| index * index % 977).collect(),
        };
        let bands = [[20, 14], [21, 13], [20, 13]].map(|[width, height]: [usize; 2]| Matrix {
            width,
            height,
            values: (0..width * height)
                .map(|index| index as i64 * 7 % 23 - 11)
                .collect(),
        });
        let mut planes = Planes::new(&ll, Area::whole(&ll), Some(&bands), 1);
        planes.set_symbols(&bands);
        let mut taps = trunk_taps(2);
        taps.extend(head_taps(2, 3));
        let mut seen = 0;
        for phase in 0..PHASES.len() {
            for start in planes.span().step_by(LANES) {
                for [lane, column, row] in planes.positions(phase, start) {
                    seen += 1;
                    for tap in &taps {
                        let many = planes.lanes(tap, phase, start)[lane];
                        assert_eq!(many, planes.input(tap, [column, row]), "{tap:?}");
                    }
                }
            }
        }
        // Phases are as large as the largest of them.
        assert_eq!(seen, 22 * 14);
    }
}
