//! Lines made fit for a tile: cut, and without the points that nobody sees.

use crate::contour::Point;

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
pub(super) fn simplify(points: &mut Vec<Point>, tolerance: f64) {
    if points.len() < 3 {
        return;
    }
    let mut is_kept = vec![false; points.len()];
    is_kept[0] = true;
    is_kept[points.len() - 1] = true;
    let mut spans = vec![(0, points.len() - 1)];
    while let Some((first, last)) = spans.pop() {
        let (a, b) = (points[first], points[last]);
        let farthest = (first + 1..last)
            .map(|index| (distance(points[index], a, b), index))
            .max_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((_, index)) = farthest.filter(|(off, _)| *off > tolerance) {
            is_kept[index] = true;
            spans.extend([(first, index), (index, last)]);
        }
    }
    let mut kept = is_kept.into_iter();
    points.retain(|_| kept.next().unwrap_or(true));
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

    #[test]
    fn simplified_lines_stay_near() {
        let mut points: Vec<Point> = (0..200)
            .map(|step| {
                let angle = f64::from(step) / 60.0;
                [50.0 * angle.cos(), 50.0 * angle.sin()]
            })
            .collect();
        let all = points.clone();
        simplify(&mut points, 0.25);
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
