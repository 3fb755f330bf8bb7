//! Lines that never cross or touch.

use std::collections::HashMap;

use terrane_codec::pixels::Pixels;
use terrane_codec::tiling::Tiling;

use super::super::{Cells, Field, Levels, Line, Point, Tracing};
use super::{GAP, lines, pixels};

/// No two segments have a point in common but the one between neighbours of a line. Coordinates are taken as whole numbers
/// of 2⁻³⁰ pixels, in which that is decided exactly.
pub(super) fn check_apart(lines: &[Line]) {
    let whole = |point: &Point| point.map(|at| (at * f64::from(1 << 30)).round() as i128);
    let mut segments = Vec::new();
    let mut places: HashMap<[i64; 2], Vec<usize>> = HashMap::new();
    for (number, line) in lines.iter().enumerate() {
        let points: Vec<[i128; 2]> = line.points.iter().map(whole).collect();
        for (index, ends) in points.windows(2).enumerate() {
            assert_ne!(ends[0], ends[1]);
            let at = |axis: usize| {
                let square = |place: f64| place.floor() as i64;
                let [a, b] = [0, 1].map(|end| line.points[index + end][axis]);
                square(a.min(b))..=square(a.max(b))
            };
            for place in at(1).flat_map(|row| at(0).map(move |column| [column, row])) {
                places.entry(place).or_default().push(segments.len());
            }
            segments.push((number, index, [ends[0], ends[1]]));
        }
    }
    let side = |[a, b]: [[i128; 2]; 2], c: [i128; 2]| {
        ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])).signum()
    };
    for place in places.values() {
        for (&first, &second) in place.iter().flat_map(|a| place.iter().map(move |b| (a, b))) {
            if first >= second {
                continue;
            }
            let ((line, one_index, one), (other_line, other_index, other)) =
                (segments[first], segments[second]);
            let between = |ends: [[i128; 2]; 2], point: [i128; 2]| {
                side(ends, point) == 0
                    && (0..2).all(|axis| {
                        point[axis] >= ends[0][axis].min(ends[1][axis])
                            && point[axis] <= ends[0][axis].max(ends[1][axis])
                    })
            };
            let cross = side(one, other[0]) * side(one, other[1]) < 0
                && side(other, one[0]) * side(other, one[1]) < 0;
            let touches = [
                (one, other[0]),
                (one, other[1]),
                (other, one[0]),
                (other, one[1]),
            ]
            .into_iter()
            .filter(|(ends, point)| between(*ends, *point))
            .count();
            let last = lines[line].points.len() - 2;
            let are_neighbours = line == other_line
                && (other_index == one_index + 1
                    || lines[line].is_closed() && (one_index, other_index) == (0, last));
            // Neighbours have a point in common, which is an end of both.
            let allowed = if are_neighbours { 2 } else { 0 };
            assert!(
                !cross && touches == allowed,
                "{} and {}: {one:?} {other:?}",
                lines[line].height,
                lines[other_line].height
            );
        }
    }
}

/// Numbers without an order, below a bound.
fn noise(column: f64, row: f64, bound: u64) -> f64 {
    let seed = (column as u64) << 20 | row as u64;
    let mixed = (seed ^ 0x5bd1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed >> 32) % bound) as f64
}

#[test]
fn lines_of_noise_never_cross() {
    // Steep and rough, with many lines in every cell.
    let rough = pixels(48, 40, |column, row| 0.01 * noise(column, row, 10_000));
    assert!(checked_apart(&rough, 10.0) > 100);
    assert!(checked_apart(&rough, 1.0) > 1000);
}

#[test]
fn lines_through_whole_metres_never_touch() {
    // Plateaus, ridges and saddles of whole metres, as in files of whole numbers: every corner lies on a level.
    for bound in [2, 3, 5] {
        let steps = pixels(64, 64, |column, row| noise(column, row, bound));
        assert!(checked_apart(&steps, 1.0) > 20);
        let large = pixels(64, 64, |column, row| {
            noise(column / 3.0, row / 3.0, bound) + (column / 9.0).floor()
        });
        assert!(checked_apart(&large, 1.0) > 20);
    }
    let hills = pixels(64, 64, |column, row| {
        (9.0 * (column / 7.0).sin() * (row / 5.0).cos() + 0.2 * row).round()
    });
    assert!(checked_apart(&hills, 1.0) > 20);
    // A plane of a metre a pixel: every line passes through centres.
    let plane = pixels(40, 40, |column, row| column.floor() - row.floor());
    assert!(checked_apart(&plane, 1.0) > 20);
}

#[test]
fn lines_that_are_too_many_stop_where_they_are() {
    let rough = pixels(64, 64, |column, row| noise(column, row, 1000));
    let (cells, levels) = (
        Cells::whole(64, 64),
        Levels::new(0.0, 0.1, [-1e3, 1e3]).unwrap(),
    );
    let tracing = Tracing {
        field: &rough,
        cells: &cells,
        levels: &levels,
        gap: GAP,
    };
    let mut held = 0;
    let Ok(chains) = tracing.block(0..65, 0..65, &mut |count| {
        held += count;
        held <= 50_000
    });
    // One edge further than what was allowed, of the seven million there would be.
    assert!(chains.is_none() && held < 80_000, "{held}");
}

/// How many lines there are, none of which cross or touch whatever the blocks; all are on the surface to 1 mm, or what
/// the gap makes of it on the slope there.
fn checked_apart(pixels: &Pixels<f64>, interval: f64) -> usize {
    let Tiling { width, height, .. } = pixels.tiling();
    let cells = Cells::whole(width, height);
    let all = lines(pixels, &cells, interval, 1 << 20);
    check_apart(&all);
    check_apart(&lines(pixels, &cells, interval, 5));
    for line in &all {
        for &point in &line.points {
            let Ok(jet) = Field::jet(pixels, point);
            let jet = jet.unwrap();
            // Curvature may take it a little further.
            let across = 2.0
                * GAP
                * (jet.x.hypot(jet.y) + GAP * (jet.xx.abs() + jet.xy.abs() + jet.yy.abs()));
            assert!(
                (jet.value - line.height).abs() < 1e-3 + across,
                "{point:?}: {jet:?} at {}",
                line.height
            );
        }
    }
    all.len()
}
