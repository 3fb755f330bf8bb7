//! Where the positions of a level lie in memory: phase by phase, so that a neighbour of many positions side by side is again many
//! positions side by side.
//!
//! The phases are the positions with even and odd rows and columns, counted from the part's first. Around the part lies a
//! margin of positions that the network sees too, as far as the picture has them; everything else is 0.

use std::ops::Range;

use crate::matrix::Matrix;

/// Positions worked on at once.
pub(crate) const LANES: usize = 64;
/// Positions around a part that the network sees, where the picture has them.
pub const MARGIN: usize = 2;
/// The phases in the order in which they are coded, each with its row and column: both even; both odd; then the two between.
pub const PHASES: [[usize; 2]; 4] = [[0, 0], [1, 1], [0, 1], [1, 0]];
/// The phase of an even or odd row and column.
pub(crate) const PHASE_OF: [[usize; 2]; 2] = [[0, 2], [3, 1]];

/// A part of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// Its first column.
    pub column: usize,
    /// Its first row.
    pub row: usize,
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Area {
    /// All of an image.
    pub fn whole<T>(image: &Matrix<T>) -> Self {
        Self {
            column: 0,
            row: 0,
            width: image.width,
            height: image.height,
        }
    }
}

/// One axis of a part: its positions, and how far the margin reaches on either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    size: usize,
    before: usize,
    after: usize,
}

impl Axis {
    fn new(first: usize, size: usize, end: usize) -> Self {
        Self {
            size,
            before: first.min(MARGIN),
            after: end.saturating_sub(first + size).min(MARGIN),
        }
    }

    /// Positions of a phase's axis.
    fn halves(self) -> usize {
        self.size.div_ceil(2)
    }

    /// The part's own positions of a phase, counted from one before the first, where the margin starts.
    fn own(self, phase: usize) -> Range<usize> {
        1..1 + (self.size - phase.min(self.size)).div_ceil(2)
    }

    /// Those and the margin's.
    fn valid(self, phase: usize) -> Range<usize> {
        let first = 1 - ((self.before + phase) >> 1);
        let last = self.size + self.after;
        first..1 + (last - phase.min(last)).div_ceil(2)
    }

    fn is_valid(self, position: isize) -> bool {
        position >= -(self.before as isize) && position < (self.size + self.after) as isize
    }
}

/// How the positions of a level lie in memory.
///
/// A map holds a number for every position: its four phases one after another. The position of a phase is counted from the one
/// before its first row and column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    columns: Axis,
    rows: Axis,
    /// From a row of a phase to the next: its columns, those of the margins, and one that is always 0.
    stride: usize,
    /// Numbers of a phase.
    phase_length: usize,
}

/// The rectangle of a phase that something is done with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
}

impl Grid {
    /// Of a part of an image.
    pub(crate) fn new<T>(image: &Matrix<T>, area: Area) -> Self {
        Self::of_axes(
            Axis::new(area.column, area.width, image.width),
            Axis::new(area.row, area.height, image.height),
        )
    }

    /// Of a part of a size, whatever lies around it.
    pub(crate) fn of_size([width, height]: [usize; 2]) -> Self {
        Self::of_axes(Axis::new(0, width, width), Axis::new(0, height, height))
    }

    fn of_axes(columns: Axis, rows: Axis) -> Self {
        let stride = columns.halves() + 3;
        let length = (rows.halves() + 2) * stride + 2 * (stride + 1) + LANES;
        Self {
            columns,
            rows,
            stride,
            phase_length: length.next_multiple_of(16),
        }
    }

    /// Columns of the part.
    pub(crate) fn width(&self) -> usize {
        self.columns.size
    }

    /// Rows of the part.
    pub(crate) fn height(&self) -> usize {
        self.rows.size
    }

    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Numbers of a map.
    pub(crate) fn map_length(&self) -> usize {
        PHASES.len() * self.phase_length
    }

    /// Where the positions of a phase of a map start.
    pub(crate) fn phase(&self, map: usize, phase: usize) -> usize {
        // Neighbours reach a row and a column before the first position.
        (map * PHASES.len() + phase) * self.phase_length + self.stride + 1
    }

    /// Where a neighbour of the positions of a phase starts.
    pub(crate) fn neighbour(&self, map: usize, phase: usize, [down, right]: [isize; 2]) -> usize {
        let [row, column] = PHASES[phase];
        let (down, right) = (row as isize + down, column as isize + right);
        let source = PHASE_OF[(down & 1) as usize][(right & 1) as usize];
        let shift = (down >> 1) * self.stride as isize + (right >> 1);
        self.phase(map, source).wrapping_add_signed(shift)
    }

    /// Where a position lies in a map; it is at most two beyond the part.
    pub(crate) fn at(&self, map: usize, column: isize, row: isize) -> usize {
        let phase = PHASE_OF[(row & 1) as usize][(column & 1) as usize];
        let shift = ((row >> 1) + 1) * self.stride as isize + (column >> 1) + 1;
        self.phase(map, phase).wrapping_add_signed(shift)
    }

    /// Whether there is something at a position: whether the part or its margin has it.
    pub(crate) fn is_valid(&self, column: isize, row: isize) -> bool {
        self.columns.is_valid(column) && self.rows.is_valid(row)
    }

    /// Columns of the margin before the part.
    pub(crate) fn left(&self) -> usize {
        self.columns.before
    }

    /// Columns with the margin's.
    pub(crate) fn valid_width(&self) -> usize {
        self.columns.before + self.columns.size + self.columns.after
    }

    /// Rows with the margin's, from that of the part.
    pub(crate) fn valid_rows(&self) -> Range<isize> {
        -(self.rows.before as isize)..(self.rows.size + self.rows.after) as isize
    }

    /// The first column with the margin's that is even or odd, from that of the part.
    pub(crate) fn first_column(&self, parity: usize) -> isize {
        2 * self.columns.valid(parity).start as isize - 2 + parity as isize
    }

    /// Where the even or odd columns of a row lie in a map, with the margin's.
    pub(crate) fn row(&self, map: usize, row: isize, parity: usize) -> Range<usize> {
        let phase = PHASE_OF[(row & 1) as usize][parity];
        let start = self.phase(map, phase) + ((row >> 1) + 1) as usize * self.stride;
        let columns = self.columns.valid(parity);
        start + columns.start..start + columns.end
    }

    /// A phase's positions in the part.
    pub(crate) fn own(&self, phase: usize) -> Rectangle {
        let [row, column] = PHASES[phase];
        Rectangle {
            rows: self.rows.own(row),
            columns: self.columns.own(column),
        }
    }

    /// Those and the margin's.
    pub(crate) fn valid(&self, phase: usize) -> Rectangle {
        let [row, column] = PHASES[phase];
        Rectangle {
            rows: self.rows.valid(row),
            columns: self.columns.valid(column),
        }
    }

    /// From the first to after the last position of a rectangle.
    pub(crate) fn span(&self, rectangle: &Rectangle) -> Range<usize> {
        let Rectangle { rows, columns } = rectangle;
        if rows.is_empty() || columns.is_empty() {
            return 0..0;
        }
        rows.start * self.stride + columns.start..(rows.end - 1) * self.stride + columns.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_hold_what_is_there_and_every_position_has_its_place() {
        let image = Matrix::<i64>::new(23, 20);
        for area in [
            Area::whole(&image),
            Area {
                column: 1,
                row: 2,
                width: 9,
                height: 16,
            },
            Area {
                column: 10,
                row: 7,
                width: 13,
                height: 1,
            },
        ] {
            let grid = Grid::new(&image, area);
            let mut seen = vec![0; grid.map_length()];
            for phase in 0..PHASES.len() {
                for is_own in [false, true] {
                    let rectangle = if is_own {
                        grid.own(phase)
                    } else {
                        grid.valid(phase)
                    };
                    for row in rectangle.rows {
                        for column in rectangle.columns.clone() {
                            seen[grid.phase(0, phase) + row * grid.stride() + column] += 1;
                        }
                    }
                }
            }
            let (width, height) = (area.width as isize, area.height as isize);
            let mut count = 0;
            for row in -2..height + 2 {
                for column in -2..width + 2 {
                    let is_own = (0..width).contains(&column) && (0..height).contains(&row);
                    let (x, y) = (column + area.column as isize, row + area.row as isize);
                    let is_valid = (0..23).contains(&x) && (0..20).contains(&y);
                    assert_eq!(grid.is_valid(column, row), is_valid);
                    let times = seen[grid.at(0, column, row)];
                    assert_eq!(times, i32::from(is_own) + i32::from(is_valid));
                    count += times;
                }
            }
            assert_eq!(seen.iter().sum::<i32>(), count);
        }
    }

    #[test]
    fn neighbours_lie_side_by_side() {
        let image = Matrix::<i64>::new(30, 31);
        let grid = Grid::new(&image, Area::whole(&image));
        for (phase, [row, column]) in PHASES.into_iter().enumerate() {
            for down in -2..=2 {
                for right in -2..=2 {
                    let start = grid.neighbour(3, phase, [down, right]);
                    for (y, x) in [(0, 0), (4, 5), (14, 2)] {
                        let at = start + (y + 1) * grid.stride() + x + 1;
                        let (y, x) = ((2 * y + row) as isize, (2 * x + column) as isize);
                        assert_eq!(at, grid.at(3, x + right, y + down));
                    }
                }
            }
        }
    }
}
