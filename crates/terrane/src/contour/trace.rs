//! Lines through a block of cells.

use std::collections::HashMap;
use std::ops::Range;

use super::vertex::{add_between, crossing, saddle};
use super::{Cells, Field, Levels, Point};

/// Points nearer to the one before, in pixels, are left out.
const MIN_DISTANCE: f64 = 1e-3;

/// Where a line crosses the edge of a cell, which it does once at each height.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Crossing {
    /// The node that the edge starts from.
    column: usize,
    row: usize,
    /// Whether it leads down a column of nodes, or along a row.
    is_down: bool,
    /// The number of the height.
    number: i64,
}

/// How a chain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It goes on in another block.
    Open(Crossing),
    /// At the edge of the part, or of the data.
    Edge,
    /// Nowhere: it is a ring.
    Ring,
}

/// A part of a line within a block.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// The number of its height.
    pub number: i64,
    /// Its points, of a ring the first one again at the end.
    pub points: Vec<Point>,
    /// Where it starts.
    pub start: End,
    /// Where it ends.
    pub end: End,
}

/// From one edge of a cell to another, with the higher ground on the right.
struct Segment {
    from: Crossing,
    to: Crossing,
}

/// The lines of a block of cells.
pub fn trace<F: Field>(
    field: &F,
    cells: &Cells,
    columns: Range<usize>,
    rows: Range<usize>,
    levels: &Levels,
) -> Result<Vec<Chain>, F::Error> {
    let block = Block::new(field, cells, columns, rows)?;
    let segments = block.segments(levels)?;
    let next: HashMap<Crossing, usize> = segments
        .iter()
        .enumerate()
        .map(|(index, segment)| (segment.from, index))
        .collect();
    let mut is_led_to = vec![false; segments.len()];
    for segment in &segments {
        if let Some(&following) = next.get(&segment.to) {
            is_led_to[following] = true;
        }
    }
    let mut is_used = vec![false; segments.len()];
    let mut chains = Vec::new();
    // Lines that enter the block first: what is left then are rings.
    let entering = (0..segments.len()).filter(|&index| !is_led_to[index]);
    for first in entering.chain(0..segments.len()) {
        if is_used[first] {
            continue;
        }
        let start = segments[first].from;
        let height = levels.height(start.number);
        let mut points = vec![block.point(start, height)?];
        let mut index = first;
        let end = loop {
            is_used[index] = true;
            let end = segments[index].to;
            let to = if end == start {
                points[0]
            } else {
                block.point(end, height)?
            };
            let from = points[points.len() - 1];
            add_between(field, height, from, to, &mut points)?;
            match next.get(&end) {
                Some(&following) if !is_used[following] => index = following,
                _ => break end,
            }
        };
        thin(&mut points);
        let is_ring = end == start;
        let end_of = |crossing| {
            if is_ring {
                End::Ring
            } else if block.goes_on(crossing) {
                End::Open(crossing)
            } else {
                End::Edge
            }
        };
        chains.push(Chain {
            number: start.number,
            points,
            start: end_of(start),
            end: end_of(end),
        });
    }
    Ok(chains)
}

/// Leaves out points that are hardly farther than the one before; the first and the last stay.
fn thin(points: &mut Vec<Point>) {
    let Some(&last) = points.last() else {
        return;
    };
    let is_near = |a: Point, b: Point| (a[0] - b[0]).hypot(a[1] - b[1]) < MIN_DISTANCE;
    points.dedup_by(|next, kept| is_near(*next, *kept));
    while points.len() > 1 && points.last().is_some_and(|&point| is_near(point, last)) {
        points.pop();
    }
    points.push(last);
}

/// A block of cells with the heights of its nodes, and of those around it.
struct Block<'a, F> {
    field: &'a F,
    cells: &'a Cells,
    columns: Range<usize>,
    rows: Range<usize>,
    /// The first node whose height is here, and how many there are in a row.
    first: (usize, usize),
    width: usize,
    /// NaN where there is no data.
    heights: Vec<f64>,
}

impl<'a, F: Field> Block<'a, F> {
    fn new(
        field: &'a F,
        cells: &'a Cells,
        columns: Range<usize>,
        rows: Range<usize>,
    ) -> Result<Self, F::Error> {
        // The cells around the block say whether lines go on there.
        let nodes = |block: &Range<usize>, all: Range<usize>| {
            block.start.saturating_sub(1).max(all.start)..(block.end + 2).min(all.end + 1)
        };
        let node_columns = nodes(&columns, cells.columns());
        let node_rows = nodes(&rows, cells.rows());
        let mut heights = Vec::with_capacity(node_columns.len() * node_rows.len());
        for row in node_rows.clone() {
            for column in node_columns.clone() {
                let height = match cells.pixel(column, row) {
                    Some(pixel) => field.centre(pixel)?,
                    None => field.height(cells.node(column, row))?,
                };
                heights.push(height.unwrap_or(f64::NAN));
            }
        }
        Ok(Self {
            field,
            cells,
            columns,
            rows,
            first: (node_columns.start, node_rows.start),
            width: node_columns.len(),
            heights,
        })
    }

    fn height(&self, column: usize, row: usize) -> f64 {
        self.heights[(row - self.first.1) * self.width + column - self.first.0]
    }

    /// Heights of a cell's corners, clockwise from the first; `None` where one has no data.
    fn corners(&self, column: usize, row: usize) -> Option<[f64; 4]> {
        let corners = [(0, 0), (1, 0), (1, 1), (0, 1)];
        let heights = corners.map(|(x, y)| self.height(column + x, row + y));
        (!heights.iter().any(|height| height.is_nan())).then_some(heights)
    }

    fn segments(&self, levels: &Levels) -> Result<Vec<Segment>, F::Error> {
        let mut segments = Vec::new();
        for row in self.rows.clone() {
            for column in self.columns.clone() {
                let Some(corners) = self.corners(column, row) else {
                    continue;
                };
                let low = corners.into_iter().fold(f64::INFINITY, f64::min);
                let high = corners.into_iter().fold(f64::NEG_INFINITY, f64::max);
                let mut saddle = None;
                for number in levels.between(low, high) {
                    let height = levels.height(number);
                    let above = corners.map(|corner| corner >= height);
                    // The four edges, clockwise from the upper one.
                    let edge = |side: usize| {
                        let (x, y, is_down) =
                            [(0, 0, false), (1, 0, true), (0, 1, false), (0, 0, true)][side % 4];
                        Crossing {
                            column: column + x,
                            row: row + y,
                            is_down,
                            number,
                        }
                    };
                    // Going around clockwise, a line starts where the way leads down and ends where it leads up.
                    let starts = (0..4).filter(|&side| above[side] && !above[(side + 1) % 4]);
                    let is_saddle = above[0] == above[2] && above[1] == above[3];
                    for start in starts {
                        let end = if is_saddle {
                            let middle = match saddle {
                                Some(middle) => middle,
                                None => self.saddle(column, row)?,
                            };
                            saddle = Some(middle);
                            // Around the low corner after the start, or around the high one before it.
                            if middle >= height {
                                start + 1
                            } else {
                                start + 3
                            }
                        } else {
                            (1..4)
                                .map(|side| start + side)
                                .find(|side| !above[side % 4] && above[(side + 1) % 4])
                                .unwrap_or(start)
                        };
                        segments.push(Segment {
                            from: edge(start),
                            to: edge(end),
                        });
                    }
                }
            }
        }
        Ok(segments)
    }

    fn saddle(&self, column: usize, row: usize) -> Result<f64, F::Error> {
        let (low, high) = (
            self.cells.node(column, row),
            self.cells.node(column + 1, row + 1),
        );
        Ok(saddle(self.field, low, high)?.unwrap_or(f64::NAN))
    }

    /// Where a line crosses an edge; a function of the surface along it alone.
    fn point(&self, crossing_at: Crossing, height: f64) -> Result<Point, F::Error> {
        let Crossing {
            column,
            row,
            is_down,
            ..
        } = crossing_at;
        let end = if is_down {
            (column, row + 1)
        } else {
            (column + 1, row)
        };
        let node = |(column, row)| (self.cells.node(column, row), self.height(column, row));
        crossing(self.field, height, node((column, row)), node(end))
    }

    /// Whether a line that leaves the block at an edge goes on behind it.
    fn goes_on(&self, crossing: Crossing) -> bool {
        let Crossing {
            column,
            row,
            is_down,
            ..
        } = crossing;
        let (columns, rows) = (self.cells.columns(), self.cells.rows());
        let has_data = |column: Option<usize>, row: Option<usize>| {
            let cell = column.zip(row);
            cell.is_some_and(|(column, row)| {
                columns.contains(&column)
                    && rows.contains(&row)
                    && self.corners(column, row).is_some()
            })
        };
        // A line ends in this block only where the cell behind the edge has no data, or lies in another block.
        if is_down {
            has_data(column.checked_sub(1), Some(row)) && has_data(Some(column), Some(row))
        } else {
            has_data(Some(column), row.checked_sub(1)) && has_data(Some(column), Some(row))
        }
    }
}
