//! How far contour lines lie from each other.
//!
//! Lines are made of one segment for each square of four pixels that they cross, between points that lie between two
//! pixels as the height between theirs.

use super::ground::Ground;

/// Parts of the range of heights between one line and the next.
pub(super) const INTERVALS: usize = 20;
/// A line without one of its height within so many pixels counts as so far away.
pub(super) const MAX_PX: f64 = 16.0;

/// The mean distance in pixels between the contour lines of two grounds, both ways and along all of their length; lines
/// are a twentieth of the source's range apart. NaN where there are none.
pub(super) fn distance_px(source: &Ground, decoded: &Ground) -> f64 {
    let Some((low, high)) = source.range() else {
        return f64::NAN;
    };
    let interval_m = (high - low) / INTERVALS as f64;
    let mut sum = Sum::default();
    for number in 1..INTERVALS {
        let level_m = low + interval_m * number as f64;
        let [source, decoded] = [source, decoded].map(|ground| Line::of(ground, level_m));
        sum.add(&source, &decoded);
        sum.add(&decoded, &source);
    }
    sum.distance_px / sum.length_px
}

/// Distances times the length of what lies so far away, summed up.
#[derive(Default)]
struct Sum {
    distance_px: f64,
    length_px: f64,
}

impl Sum {
    /// Adds a line, seen from the middles of its segments.
    fn add(&mut self, line: &Line, other: &Line) {
        for segment in &line.segments {
            let length = segment.length();
            self.distance_px += length * other.distance(segment.middle());
            self.length_px += length;
        }
    }
}

/// A position in columns and rows from the middle of the first pixel.
type Position = (f64, f64);

/// A straight part of a line.
#[derive(Debug, Clone, Copy)]
struct Segment(Position, Position);

impl Segment {
    fn length(&self) -> f64 {
        (self.1.0 - self.0.0).hypot(self.1.1 - self.0.1)
    }

    fn middle(&self) -> Position {
        (
            f64::midpoint(self.0.0, self.1.0),
            f64::midpoint(self.0.1, self.1.1),
        )
    }

    fn distance(&self, (x, y): Position) -> f64 {
        let (along_x, along_y) = (self.1.0 - self.0.0, self.1.1 - self.0.1);
        let square = along_x * along_x + along_y * along_y;
        let part = if square > 0.0 {
            ((x - self.0.0) * along_x + (y - self.0.1) * along_y) / square
        } else {
            0.0
        };
        let part = part.clamp(0.0, 1.0);
        (self.0.0 + part * along_x - x).hypot(self.0.1 + part * along_y - y)
    }
}

/// All lines of one height.
struct Line {
    /// Squares of four pixels in a row, and rows of them.
    columns: usize,
    rows: usize,
    segments: Vec<Segment>,
    /// The first segment of each square, and of what comes after the last.
    starts: Vec<usize>,
}

impl Line {
    fn of(ground: &Ground, level_m: f64) -> Self {
        let (columns, rows) = (
            ground.width.saturating_sub(1),
            ground.height.saturating_sub(1),
        );
        let mut segments = Vec::new();
        let mut starts = Vec::with_capacity(columns * rows + 1);
        for row in 0..rows {
            for column in 0..columns {
                starts.push(segments.len());
                cross(ground, level_m, (column, row), &mut segments);
            }
        }
        starts.push(segments.len());
        Self {
            columns,
            rows,
            segments,
            starts,
        }
    }

    /// How far a position is from the nearest segment, at most [`MAX_PX`].
    fn distance(&self, position: Position) -> f64 {
        let mut nearest = MAX_PX;
        // Squares in rings around that of the position: those of a ring are at least its number less one away.
        let mut ring = 0;
        while nearest > f64::from(ring) - 1.0 {
            for square in self.ring(position, ring as isize) {
                let segments = &self.segments[self.starts[square]..self.starts[square + 1]];
                let distances = segments.iter().map(|segment| segment.distance(position));
                nearest = distances.fold(nearest, f64::min);
            }
            ring += 1;
        }
        nearest
    }

    /// The squares so many columns or rows from that of a position.
    fn ring(&self, (x, y): Position, ring: isize) -> impl Iterator<Item = usize> {
        let (column, row) = (x as isize, y as isize);
        (-ring..=ring).flat_map(move |down| {
            let step = if down.abs() == ring { 1 } else { 2 * ring };
            let columns = (-ring..=ring).step_by(step.max(1) as usize);
            columns.filter_map(move |across| {
                let column = usize::try_from(column + across).ok()?;
                let row = usize::try_from(row + down).ok()?;
                (column < self.columns && row < self.rows).then(|| row * self.columns + column)
            })
        })
    }
}

/// Adds the segments of a line in the square right and below of a pixel.
fn cross(
    ground: &Ground,
    level_m: f64,
    (column, row): (usize, usize),
    segments: &mut Vec<Segment>,
) {
    // Clockwise from the pixel itself.
    let corners = [(0, 0), (1, 0), (1, 1), (0, 1)].map(|(across, down)| {
        let (column, row) = (column + across, row + down);
        let height_m = ground.heights[row * ground.width + column];
        (height_m, (column as f64, row as f64))
    });
    let is_above = corners.map(|(height_m, _)| height_m >= level_m);
    if is_above == [true; 4] || is_above == [false; 4] {
        return;
    }
    if corners.iter().any(|(height_m, _)| height_m.is_nan()) {
        return;
    }
    let point = |side: usize| {
        let ((from_m, from), (to_m, to)) = (corners[side], corners[(side + 1) % 4]);
        let part = (level_m - from_m) / (to_m - from_m);
        (
            from.0 + part * (to.0 - from.0),
            from.1 + part * (to.1 - from.1),
        )
    };
    let sides = (0..4).filter(|&side| is_above[side] != is_above[(side + 1) % 4]);
    if let [one, other] = sides.collect::<Vec<usize>>()[..] {
        segments.push(Segment(point(one), point(other)));
        return;
    }
    // A saddle: its middle says which corners belong together.
    let middle_m = corners.iter().map(|(height_m, _)| height_m).sum::<f64>() / 4.0;
    let first = if (middle_m >= level_m) == is_above[0] {
        0
    } else {
        3
    };
    for side in [first, (first + 2) % 4] {
        segments.push(Segment(point(side), point((side + 1) % 4)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::ground::tests::{ground, surface};
    use super::*;

    #[test]
    fn lines_of_a_plane_lie_as_far_apart_as_it_was_moved() {
        let plane = |moved: f64| surface(61, 30, move |column, _| 0.5 * (column + moved));
        let distance = |moved: f64| {
            let (source, decoded) = (plane(0.0), plane(moved));
            distance_px(&ground(61, &source), &ground(61, &decoded))
        };
        assert_eq!(distance(0.0), 0.0);
        for moved in [0.3, -0.7, 1.4] {
            let found = distance(moved);
            assert!((found - moved.abs()).abs() < 1e-9, "{moved}: {found}");
        }
    }

    #[test]
    fn a_slanting_plane_is_measured_across_its_lines() {
        let plane = |raised: f64| surface(60, 60, move |column, row| column + row + raised);
        let (source, decoded) = (plane(0.0), plane(1.0));
        let found = distance_px(&ground(60, &source), &ground(60, &decoded));
        // Near the corners lines end, and their ends are the nearest.
        assert!((found - 0.5_f64.sqrt()).abs() < 0.01, "{found}");
    }

    #[test]
    fn circles_of_a_cone_move_outwards() {
        let cone = |raised: f64| {
            surface(101, 101, move |column, row| {
                (40.0 - (column - 50.0).hypot(row - 50.0)).max(0.0) + raised
            })
        };
        let (source, decoded) = (cone(0.0), cone(0.5));
        let found = distance_px(&ground(101, &source), &ground(101, &decoded));
        assert!((found - 0.5).abs() < 0.01, "{found}");
    }

    #[test]
    fn a_line_that_is_lost_counts_as_far_away() {
        let source = surface(61, 61, |column, _| column);
        let flat = surface(61, 61, |_, _| -5.0);
        let found = distance_px(&ground(61, &source), &ground(61, &flat));
        assert_eq!(found, MAX_PX);
        let nothing = distance_px(&ground(61, &flat), &ground(61, &flat));
        assert!(nothing.is_nan());
    }

    #[test]
    fn a_saddle_is_cut_in_two() {
        let heights = [1.0, 0.0, 0.0, 1.0];
        let line = Line::of(&ground(2, &heights), 0.4);
        // The middle is above, so that each low corner is cut off.
        assert_eq!(line.segments.len(), 2);
        assert!(line.segments.iter().all(|segment| {
            let (x, y) = segment.middle();
            (x - y).abs() > 0.3
        }));
        let line = Line::of(&ground(2, &heights), 0.6);
        assert!(line.segments.iter().all(|segment| {
            let (x, y) = segment.middle();
            (x + y - 1.0).abs() > 0.3
        }));
    }
}
