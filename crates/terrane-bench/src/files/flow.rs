//! Where water flows: sinks are filled, and every pixel drains into the steepest of its eight neighbours (D8).
//!
//! Sinks are filled by a priority flood from the edges of the data (Barnes, Lehman and Mulla 2014), each pixel at least the
//! least possible step above the one that it was reached from, so that what was filled drains too.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::ground::Ground;

/// Columns and rows to the eight neighbours, clockwise from the east.
pub(super) const NEIGHBOURS: [(isize, isize); 8] = [
    (1, 0),
    (1, 1),
    (0, 1),
    (-1, 1),
    (-1, 0),
    (-1, -1),
    (0, -1),
    (1, -1),
];

/// Where the water of a pixel goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// To one of [`NEIGHBOURS`].
    Neighbour(u8),
    /// Out of the data, at whose edge it lies.
    Out,
    /// There is no data.
    Missing,
}

/// Directions of flow and what they gather.
#[derive(Debug)]
pub(super) struct Flow {
    /// Columns.
    pub width: usize,
    /// Where each pixel drains.
    pub directions: Vec<Direction>,
    /// Pixels that drain through each, itself among them.
    pub upstream: Vec<u32>,
}

/// A pixel that the flood has reached; the lowest comes first, and the first reached of those of one height.
#[derive(PartialEq)]
struct Reached {
    height_m: f64,
    order: usize,
    pixel: usize,
}

impl Eq for Reached {}

impl Ord for Reached {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_height = self.height_m.total_cmp(&other.height_m);
        by_height.then(self.order.cmp(&other.order))
    }
}

impl PartialOrd for Reached {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Flow {
    /// The flow over a ground.
    pub(super) fn of(ground: &Ground) -> Self {
        let (filled, order) = flood(ground);
        let directions: Vec<Direction> = (0..filled.len())
            .map(|pixel| direction(ground, &filled, pixel))
            .collect();
        // Every pixel drains into a lower one, which the flood reached before it.
        let mut upstream = vec![1_u32; filled.len()];
        for &pixel in order.iter().rev() {
            if let Direction::Neighbour(way) = directions[pixel]
                && let Some(next) = neighbour(ground, pixel, usize::from(way))
            {
                upstream[next] += upstream[pixel];
            }
        }
        Self {
            width: ground.width,
            directions,
            upstream,
        }
    }

    /// The part of the pixels within the data that drain the same way.
    pub(super) fn agreement(&self, decoded: &Self) -> f64 {
        let pairs = self.directions.iter().zip(&decoded.directions);
        let inner = pairs.filter(|(source, _)| matches!(source, Direction::Neighbour(_)));
        let (same, all) = inner.fold((0_usize, 0_usize), |(same, all), (source, decoded)| {
            (same + usize::from(source == decoded), all + 1)
        });
        same as f64 / all as f64
    }
}

/// The pixel beside another.
pub(super) fn neighbour(ground: &Ground, pixel: usize, way: usize) -> Option<usize> {
    let (across, down) = NEIGHBOURS[way];
    let column = (pixel % ground.width).checked_add_signed(across)?;
    let row = (pixel / ground.width).checked_add_signed(down)?;
    (column < ground.width && row < ground.height).then(|| row * ground.width + column)
}

/// Whether a pixel lies at the edge of the data: beside a gap or the border.
fn is_edge(ground: &Ground, pixel: usize) -> bool {
    (0..NEIGHBOURS.len())
        .any(|way| neighbour(ground, pixel, way).is_none_or(|next| ground.heights[next].is_nan()))
}

/// Heights without sinks, and the pixels in the order in which the flood reached them.
fn flood(ground: &Ground) -> (Vec<f64>, Vec<usize>) {
    let mut filled = ground.heights.to_vec();
    let mut is_reached: Vec<bool> = filled.iter().map(|height| height.is_nan()).collect();
    let mut heap = BinaryHeap::new();
    let mut count = 0;
    let mut reach = |heap: &mut BinaryHeap<_>, height_m, pixel| {
        count += 1;
        heap.push(Reverse(Reached {
            height_m,
            order: count,
            pixel,
        }));
    };
    for pixel in 0..filled.len() {
        if !is_reached[pixel] && is_edge(ground, pixel) {
            is_reached[pixel] = true;
            reach(&mut heap, filled[pixel], pixel);
        }
    }
    let mut order = Vec::with_capacity(filled.len());
    while let Some(Reverse(Reached {
        height_m, pixel, ..
    })) = heap.pop()
    {
        order.push(pixel);
        for next in (0..NEIGHBOURS.len()).filter_map(|way| neighbour(ground, pixel, way)) {
            if !is_reached[next] {
                is_reached[next] = true;
                filled[next] = filled[next].max(height_m.next_up());
                reach(&mut heap, filled[next], next);
            }
        }
    }
    (filled, order)
}

fn direction(ground: &Ground, filled: &[f64], pixel: usize) -> Direction {
    if filled[pixel].is_nan() {
        return Direction::Missing;
    }
    if is_edge(ground, pixel) {
        return Direction::Out;
    }
    let mut steepest = (f64::NEG_INFINITY, 0);
    for (way, (across, down)) in NEIGHBOURS.into_iter().enumerate() {
        if let Some(next) = neighbour(ground, pixel, way) {
            let distance_m = (across as f64 * ground.cell.x_m).hypot(down as f64 * ground.cell.y_m);
            let fall = (filled[pixel] - filled[next]) / distance_m;
            if fall > steepest.0 {
                steepest = (fall, way as u8);
            }
        }
    }
    Direction::Neighbour(steepest.1)
}

#[cfg(test)]
mod tests {
    use super::super::ground::tests::{ground, surface};
    use super::*;

    #[test]
    fn a_plane_drains_along_its_fall() {
        let east = surface(9, 7, |column, _| -column);
        let flow = Flow::of(&ground(9, &east));
        for row in 1..6 {
            for column in 1..8 {
                assert_eq!(flow.directions[row * 9 + column], Direction::Neighbour(0));
                assert_eq!(flow.upstream[row * 9 + column], column as u32);
            }
        }
        // Diagonal falls are longer, and as steep.
        let south_east = surface(9, 7, |column, row| -(column + row));
        let flow = Flow::of(&ground(9, &south_east));
        assert_eq!(flow.directions[3 * 9 + 4], Direction::Neighbour(1));
        assert_eq!(Flow::of(&ground(9, &east)).agreement(&flow), 0.0);
    }

    #[test]
    fn a_cone_drains_from_its_top_to_all_sides() {
        let cone = surface(21, 21, |column, row| -(column - 10.0).hypot(row - 10.0));
        let flow = Flow::of(&ground(21, &cone));
        for (way, (across, down)) in NEIGHBOURS.into_iter().enumerate() {
            let at = |middle: usize, step: isize| middle.checked_add_signed(5 * step).unwrap();
            let pixel = at(10, down) * 21 + at(10, across);
            assert_eq!(flow.directions[pixel], Direction::Neighbour(way as u8));
        }
    }

    #[test]
    fn a_pit_is_filled_and_drains() {
        let mut plane = surface(9, 7, |column, _| -column);
        plane[3 * 9 + 4] = -1000.0;
        let flow = Flow::of(&ground(9, &plane));
        let ends: u32 = flow
            .directions
            .iter()
            .zip(&flow.upstream)
            .filter(|(direction, _)| **direction == Direction::Out)
            .map(|(_, upstream)| upstream)
            .sum();
        assert_eq!(ends, 63, "all of the water leaves");
        let bowl = surface(11, 11, |column, row| (column - 5.0).hypot(row - 5.0));
        let flow = Flow::of(&ground(11, &bowl));
        assert!(
            flow.directions
                .iter()
                .all(|direction| *direction != Direction::Missing)
        );
    }

    #[test]
    fn water_leaves_into_gaps() {
        let mut plane = surface(9, 7, |column, _| column);
        plane[3 * 9 + 4] = f64::NAN;
        let flow = Flow::of(&ground(9, &plane));
        assert_eq!(flow.directions[3 * 9 + 4], Direction::Missing);
        assert_eq!(flow.directions[3 * 9 + 5], Direction::Out);
        assert_eq!(flow.agreement(&flow), 1.0);
    }

    #[test]
    fn agreement_counts_the_pixels_that_turned() {
        let plane = surface(12, 12, |column, _| -column);
        let flow = Flow::of(&ground(12, &plane));
        let mut turned = Flow::of(&ground(12, &plane));
        for pixel in [13, 14, 15, 16, 17] {
            turned.directions[pixel] = Direction::Neighbour(2);
        }
        assert!((flow.agreement(&turned) - 0.95).abs() < 1e-12);
    }
}
