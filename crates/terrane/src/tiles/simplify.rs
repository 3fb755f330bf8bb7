//! Lines made fit for a tile: cut, and without the points that nobody sees.

use crate::contour::{Chain, Point};

use super::mvt::{EXTENT, Grid};

/// The part of a segment inside a tile and so many units around it, on the grid; `None` where none is.
pub(super) fn clip(from: Point, to: Point, beyond: Grid) -> Option<[[Grid; 2]; 2]> {
    let (low, high) = (f64::from(-beyond), f64::from(EXTENT + beyond));
    let (mut first, mut last) = (0.0_f64, 1.0_f64);
    for axis in 0..2 {
        let step = to[axis] - from[axis];
        let (near, far) = if step >= 0.0 {
            (low, high)
        } else {
            (high, low)
        };
        if step == 0.0 {
            if from[axis] < low || from[axis] > high {
                return None;
            }
        } else {
            first = first.max((near - from[axis]) / step);
            last = last.min((far - from[axis]) / step);
        }
    }
    // Ends inside stay as they are, to the last bit.
    let at = |part: f64| {
        [0, 1].map(|axis| (from[axis] + part * (to[axis] - from[axis])).round() as Grid)
    };
    (first <= last).then(|| [at(first), at(last)])
}

/// Leaves out points that lie within a tolerance of what is left, by the method of Douglas and Peucker; the ends stay.
///
/// Lines that do not cross do not do so afterwards: what is left out is only what has no point of another line, or of
/// another part of the same, between it and the segment that replaces it, or very near to that segment.
pub(super) fn simplify(chains: &mut [Chain], tolerance: f64) {
    let places = Places::of(chains);
    for (number, chain) in chains.iter_mut().enumerate() {
        let points = &mut chain.points;
        let mut is_kept = vec![false; points.len()];
        let last = points.len().saturating_sub(1);
        let mut spans = vec![(0, last)];
        while let Some((first, last)) = spans.pop() {
            is_kept[first] = true;
            is_kept[last] = true;
            let (a, b) = (points[first], points[last]);
            let farthest = (first + 1..last)
                .map(|index| (distance(points[index], a, b), index))
                .max_by(|one, other| one.0.total_cmp(&other.0));
            if let Some((off, index)) = farthest
                && (off > tolerance
                    || places.any_between(number, first, &points[first..=last], tolerance / 8.0))
            {
                spans.extend([(first, index), (index, last)]);
            }
        }
        let mut kept = is_kept.into_iter();
        points.retain(|_| kept.next().unwrap_or(true));
    }
}

/// The points of all chains of a block, by the squares of a grid that they lie in.
struct Places {
    low: [isize; 2],
    size: [usize; 2],
    /// Of each square the first of its points, and the end of the last.
    starts: Vec<usize>,
    /// Each with the number of its chain, and its index there.
    points: Vec<(Point, usize, usize)>,
}

impl Places {
    fn of(chains: &[Chain]) -> Self {
        let all = || chains.iter().flat_map(|chain| &chain.points);
        let [low, high] = squares(all());
        let size = [0, 1].map(|axis| (high[axis] + 1 - low[axis]).max(0).cast_unsigned());
        let mut places = Self {
            low,
            size,
            starts: vec![0; size[0] * size[1] + 1],
            points: Vec::new(),
        };
        for point in all() {
            let square = places.square(square(point));
            places.starts[square + 1] += 1;
        }
        for index in 1..places.starts.len() {
            places.starts[index] += places.starts[index - 1];
        }
        let mut ends = places.starts.clone();
        places.points = vec![([0.0; 2], 0, 0); all().count()];
        for (number, chain) in chains.iter().enumerate() {
            for (index, &point) in chain.points.iter().enumerate() {
                let square = places.square(square(&point));
                places.points[ends[square]] = (point, number, index);
                ends[square] += 1;
            }
        }
        places
    }

    fn square(&self, at: [isize; 2]) -> usize {
        let [column, row] = [0, 1].map(|axis| (at[axis] - self.low[axis]).cast_unsigned());
        row * self.size[0] + column
    }

    /// Whether another point lies between a span of a chain and the segment from its first point to its last, or nearer
    /// than `margin` to that segment.
    fn any_between(&self, number: usize, first: usize, span: &[Point], margin: f64) -> bool {
        let (from, to) = (span[0], span[span.len() - 1]);
        let last = first + span.len() - 1;
        let [low, high] = squares(span.iter());
        // A margin is far smaller than a square.
        let rows = (low[1] - 1).max(self.low[1])
            ..(high[1] + 2).min(self.low[1] + self.size[1].cast_signed());
        let columns = (low[0] - 1).max(self.low[0])
            ..(high[0] + 2).min(self.low[0] + self.size[0].cast_signed());
        rows.into_iter().any(|row| {
            columns.clone().any(|column| {
                let square = self.square([column, row]);
                let points = &self.points[self.starts[square]..self.starts[square + 1]];
                points.iter().any(|&(point, chain, index)| {
                    let is_own = chain == number && (first..=last).contains(&index);
                    // A ring ends where it starts, and the points beside the span are near to its ends.
                    let is_beside = chain == number && (index + 1 == first || index == last + 1);
                    !is_own
                        && point != from
                        && point != to
                        && (is_inside(point, span)
                            || !is_beside && distance(point, from, to) < margin)
                })
            })
        })
    }
}

fn square(point: &Point) -> [isize; 2] {
    point.map(|at| at.floor() as isize)
}

/// The lowest and the highest squares of some points; of none, the highest is below the lowest.
fn squares<'a>(points: impl Iterator<Item = &'a Point>) -> [[isize; 2]; 2] {
    points.fold([[0; 2], [-1; 2]], |[low, high], point| {
        let at = square(point);
        if low[0] > high[0] {
            return [at, at];
        }
        [
            [low[0].min(at[0]), low[1].min(at[1])],
            [high[0].max(at[0]), high[1].max(at[1])],
        ]
    })
}

/// Whether a point is inside a polygon, whose last point is joined to its first.
fn is_inside(point: Point, polygon: &[Point]) -> bool {
    let mut before = polygon[polygon.len() - 1];
    let mut is_inside = false;
    for &after in polygon {
        if (before[1] > point[1]) != (after[1] > point[1]) {
            let part = (point[1] - before[1]) / (after[1] - before[1]);
            if point[0] < before[0] + part * (after[0] - before[0]) {
                is_inside = !is_inside;
            }
        }
        before = after;
    }
    is_inside
}

/// How far a point is from a segment.
fn distance(point: Point, from: Point, to: Point) -> f64 {
    let along = [to[0] - from[0], to[1] - from[1]];
    let off = [point[0] - from[0], point[1] - from[1]];
    let length = along[0] * along[0] + along[1] * along[1];
    let part = if length > 0.0 {
        ((off[0] * along[0] + off[1] * along[1]) / length).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (off[0] - part * along[0]).hypot(off[1] - part * along[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contour::End;

    /// Chains simplified by a quarter of a pixel.
    fn simplified<const COUNT: usize>(chains: [Vec<Point>; COUNT]) -> [Vec<Point>; COUNT] {
        let mut chains = chains.map(|points| Chain {
            number: 0,
            points,
            start: End::Edge,
            end: End::Edge,
        });
        simplify(&mut chains, 0.25);
        chains.map(|chain| chain.points)
    }

    #[test]
    fn simplified_lines_stay_near() {
        let points: Vec<Point> = (0..200)
            .map(|step| {
                let angle = f64::from(step) / 60.0;
                [50.0 * angle.cos(), 50.0 * angle.sin()]
            })
            .collect();
        let all = points.clone();
        let [points] = simplified([points]);
        assert!(points.len() < 40 && points[0] == all[0] && points.last() == all.last());
        for point in all {
            let off = points
                .windows(2)
                .map(|ends| distance(point, ends[0], ends[1]))
                .fold(f64::INFINITY, f64::min);
            assert!(off <= 0.25);
        }
    }

    #[test]
    fn simplified_lines_stay_on_their_sides() {
        // A bend of a fifth of a pixel, with a line in it that ends there, and one that is far enough away.
        let bend = vec![[0.0, 5.0], [4.0, 5.2], [8.0, 5.0]];
        let tip = |y: f64| vec![[4.0, 0.0], [4.0, y]];
        assert_eq!(simplified([bend.clone(), tip(5.1)])[0], bend);
        assert_eq!(simplified([bend.clone(), tip(4.9)])[0].len(), 2);
        // Very near to the segment that would be left.
        assert_eq!(simplified([bend.clone(), tip(4.99)])[0], bend);
        // A line's own end.
        let mut hook = bend.clone();
        hook.extend([[9.0, 5.0], [9.0, 2.0], [4.0, 2.0], [4.0, 5.1]]);
        assert!(simplified([hook])[0].contains(&bend[1]));
    }

    #[test]
    fn what_lies_outside_is_cut_off() {
        let clip = |from, to| clip(from, to, 64);
        assert_eq!(clip([5.0, 6.0], [7.0, 8.0]), Some([[5, 6], [7, 8]]));
        assert_eq!(
            clip([-100.0, 50.0], [100.0, 50.0]),
            Some([[-64, 50], [100, 50]])
        );
        assert_eq!(
            clip([5000.0, 4160.0], [0.0, 4160.0]),
            Some([[4160, 4160], [0, 4160]])
        );
        assert_eq!(clip([-100.0, 0.0], [-65.0, 4096.0]), None);
        assert_eq!(clip([-100.0, 4100.0], [0.0, 4300.0]), None);
    }
}
