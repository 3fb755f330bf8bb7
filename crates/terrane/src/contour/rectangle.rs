//! A rectangle that lines pass straight through, or that is cut in two.
//!
//! Straight lines between points on the border of a convex figure cross if and only if the points alternate along it.
//! Every side is crossed once by each level between the heights of its ends, in the order of their heights; so lines
//! of one level never alternate with those of another, and two of one level are joined so that they do not. Lines in a
//! rectangle are therefore simple, and never cross or touch. Where a line bends too much for a straight one, the
//! rectangle is cut through the middle of it, and the cut is crossed in just the same way: the lines of both halves
//! have the same property, whatever the surface is like.

use super::Point;

/// Cuts, one in another, at most.
pub(super) const MAX_CUTS: u8 = 12;

/// Crossings of a side that follow each other, clockwise.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Side {
    pub(super) first: usize,
    pub(super) count: usize,
    /// Whether the first of them clockwise is the one with the highest index.
    pub(super) is_reversed: bool,
}

impl Side {
    /// The index of a crossing.
    pub(super) fn at(self, place: usize) -> usize {
        if self.is_reversed {
            self.first + self.count - 1 - place
        } else {
            self.first + place
        }
    }

    /// The same side, the other way around.
    pub(super) fn reversed(self) -> Self {
        Self {
            is_reversed: !self.is_reversed,
            ..self
        }
    }

    /// Its first crossings, and the others.
    fn split(self, place: usize) -> [Self; 2] {
        let (start, end) = if self.is_reversed {
            (self.first + self.count - place, self.first)
        } else {
            (self.first, self.first + place)
        };
        [(start, place), (end, self.count - place)].map(|(first, count)| Self {
            first,
            count,
            ..self
        })
    }
}

/// A cell, or a part of one. Corners and sides are counted clockwise, from the upper left corner and the upper side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rectangle {
    pub(super) low: Point,
    pub(super) high: Point,
    /// Of each corner the number of the highest level that is not above it.
    pub(super) numbers: [i64; 4],
    pub(super) sides: [Side; 4],
    /// Cuts that led to it.
    pub(super) cuts: u8,
}

/// A cut from one side of a rectangle to the one across.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// The side that it starts from.
    side: usize,
    /// Crossings before it on that side and on the one across, clockwise.
    places: [usize; 2],
    pub(super) ends: [Point; 2],
    /// The numbers of its ends.
    pub(super) numbers: [i64; 2],
}

impl Rectangle {
    /// Whether any line passes.
    pub(super) fn is_crossed(&self) -> bool {
        self.numbers.iter().any(|number| *number != self.numbers[0])
    }

    /// Adds the lines, each from a crossing to a crossing with the higher ground on the right; `saddle` is asked for the
    /// number of the middle where lines may pass either way.
    pub(super) fn add_lines<E>(
        &self,
        lines: &mut Vec<(i64, [usize; 2])>,
        saddle: impl FnOnce() -> Result<i64, E>,
    ) -> Result<(), E> {
        let corners = self.numbers;
        let lowest = corners.into_iter().min().unwrap_or_default();
        let highest = corners.into_iter().max().unwrap_or_default();
        // Two corners across each other above both others.
        let is_saddle = corners[0].min(corners[2]) > corners[1].max(corners[3])
            || corners[1].min(corners[3]) > corners[0].max(corners[2]);
        let middle = if is_saddle { saddle()? } else { lowest };
        for number in lowest + 1..=highest {
            let is_above = corners.map(|corner| corner >= number);
            let leads_down = |side: usize| is_above[side % 4] && !is_above[(side + 1) % 4];
            let leads_up = |side: usize| !is_above[side % 4] && is_above[(side + 1) % 4];
            let crossing = |side: usize| {
                let side = side % 4;
                let place = if is_above[side] {
                    corners[side] - number
                } else {
                    number - corners[side] - 1
                };
                self.sides[side].at(place as usize)
            };
            // Going around clockwise, a line starts where the way leads down and ends where it leads up.
            for start in (0..4).filter(|&side| leads_down(side)) {
                let end = if leads_up(start + 1) && leads_up(start + 3) {
                    // Around the low corner after the start, or around the high one before it.
                    if middle >= number {
                        start + 1
                    } else {
                        start + 3
                    }
                } else {
                    let ends = start + 1..start + 4;
                    ends.into_iter()
                        .find(|&side| leads_up(side))
                        .unwrap_or(start)
                };
                lines.push((number, [crossing(start), crossing(end)]));
            }
        }
        Ok(())
    }

    /// The cut across an axis at a position; `None` where it would meet a side nearer than `gap` to a crossing.
    pub(super) fn cut(
        &self,
        axis: usize,
        position: f64,
        gap: f64,
        points: &[Point],
    ) -> Option<Cut> {
        // Across columns from the upper side down, across rows from the left side to the right.
        let side = if axis == 0 { 0 } else { 3 };
        let across = (side + 2) % 4;
        let before = |side: usize| {
            // The upper side and the right one run along their axes, the others against them.
            let runs_on = side < 2;
            let crossings = self.sides[side];
            let mut place = 0;
            for index in 0..crossings.count {
                let off = points[crossings.at(index)][axis] - position;
                if off.abs() < gap {
                    return None;
                }
                place += usize::from((off < 0.0) == runs_on);
            }
            Some(place)
        };
        let places = [before(side)?, before(across)?];
        let number = |side: usize, place: usize| {
            let (from, to) = (self.numbers[side], self.numbers[(side + 1) % 4]);
            from + (to - from).signum() * place as i64
        };
        let mut ends = [self.low, self.high];
        for end in &mut ends {
            end[axis] = position;
        }
        Some(Cut {
            side,
            places,
            ends,
            numbers: [number(side, places[0]), number(across, places[1])],
        })
    }

    /// Both halves, given the crossings of the cut from its start to its end.
    pub(super) fn halves(&self, cut: &Cut, crossings: Side) -> [Self; 2] {
        let Cut {
            side,
            places,
            ends,
            numbers,
        } = *cut;
        let [opposite, next, last] = [(side + 2) % 4, (side + 1) % 4, (side + 3) % 4];
        let [before, after] = self.sides[side].split(places[0]);
        let [far_before, far_after] = self.sides[opposite].split(places[1]);
        let cuts = self.cuts + 1;
        let (mut first, mut second) = (Self { cuts, ..*self }, Self { cuts, ..*self });
        // The first half has the start of the side and the end of the one across.
        first.numbers[next] = numbers[0];
        first.numbers[opposite] = numbers[1];
        first.sides[side] = before;
        first.sides[next] = crossings;
        first.sides[opposite] = far_after;
        second.numbers[side] = numbers[0];
        second.numbers[last] = numbers[1];
        second.sides[side] = after;
        second.sides[opposite] = far_before;
        second.sides[last] = crossings.reversed();
        // Columns from left to right, rows from below.
        if side == 0 {
            first.high[0] = ends[0][0];
            second.low[0] = ends[0][0];
        } else {
            first.low[1] = ends[0][1];
            second.high[1] = ends[0][1];
        }
        [first, second]
    }
}
