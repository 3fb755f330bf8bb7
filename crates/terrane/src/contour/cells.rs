//! The cells that lines are traced in: between the centres of pixels, and up to the edges of a part of a raster.

use std::ops::Range;

use super::Point;

/// The cells of a part of a raster. Node `n` of an axis is the centre of pixel `n − 1`, or the edge of the part where
/// that lies beyond it; cell `n` reaches from node `n` to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cells {
    low: Point,
    high: Point,
}

impl Cells {
    /// All cells of a raster.
    pub fn whole(width: usize, height: usize) -> Self {
        Self::part([0.0; 2], [width as f64, height as f64])
    }

    /// The cells between two corners, which lie inside the raster.
    pub fn part(low: Point, high: Point) -> Self {
        Self { low, high }
    }

    /// Cells along columns.
    pub fn columns(&self) -> Range<usize> {
        self.along(0)
    }

    /// Cells along rows.
    pub fn rows(&self) -> Range<usize> {
        self.along(1)
    }

    fn along(&self, axis: usize) -> Range<usize> {
        let first = (self.low[axis] + 0.5).floor() as usize;
        first..((self.high[axis] + 0.5).ceil() as usize).max(first)
    }

    /// Where a node lies.
    pub fn node(&self, column: usize, row: usize) -> Point {
        let at =
            |node: usize, axis: usize| (node as f64 - 0.5).max(self.low[axis]).min(self.high[axis]);
        [at(column, 0), at(row, 1)]
    }

    /// The pixel that a node is the centre of; `None` at the edge of the part.
    pub fn pixel(&self, column: usize, row: usize) -> Option<(usize, usize)> {
        let pixel = |node: usize, axis: usize| {
            let centre = node as f64 - 0.5;
            let is_inside = centre >= self.low[axis] && centre <= self.high[axis];
            node.checked_sub(1).filter(|_| is_inside)
        };
        Some((pixel(column, 0)?, pixel(row, 1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_reach_from_edge_to_edge() {
        let cells = Cells::whole(3, 2);
        assert_eq!((cells.columns(), cells.rows()), (0..4, 0..3));
        let columns: Vec<f64> = (0..5).map(|node| cells.node(node, 0)[0]).collect();
        assert_eq!(columns, [0.0, 0.5, 1.5, 2.5, 3.0]);
        assert_eq!(cells.pixel(0, 1), None);
        assert_eq!(cells.pixel(1, 1), Some((0, 0)));
        assert_eq!(cells.pixel(3, 2), Some((2, 1)));
        assert_eq!(cells.pixel(4, 2), None);
        // Parts that share an edge share its nodes.
        let (left, right) = (
            Cells::part([0.0; 2], [1.2, 2.0]),
            Cells::part([1.2, 0.0], [3.0, 2.0]),
        );
        assert_eq!(left.node(left.columns().end, 1), [1.2, 0.5]);
        assert_eq!(right.node(right.columns().start, 1), [1.2, 0.5]);
        let exact = Cells::part([1.5, 0.0], [2.5, 2.0]);
        assert_eq!(exact.columns(), 2..3);
    }
}
