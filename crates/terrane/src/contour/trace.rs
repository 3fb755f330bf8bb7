//! Lines through a block of cells.

use std::ops::Range;

use super::rectangle::{Cut, MAX_CUTS, Rectangle, Side};
use super::vertex::{Node, add_crossings, is_bent, saddle};
use super::{Cells, Field, Levels, Point};

/// Where to cut a rectangle through a chord that bends too much, in parts of the chord: nearest to its middle first.
const CUTS: [f64; 5] = [0.5, 0.4, 0.6, 0.3, 0.7];
/// What follows the last point of a chain.
const NOTHING: usize = usize::MAX;

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

/// What lines are traced of.
#[derive(Debug)]
pub struct Tracing<'a, F> {
    /// The surface.
    pub field: &'a F,
    /// The cells of its part.
    pub cells: &'a Cells,
    /// The heights of the lines.
    pub levels: &'a Levels,
    /// Pixels that lines keep from each other and from the corners of cells.
    pub gap: f64,
}

impl<F: Field> Tracing<'_, F> {
    /// The lines of a block of cells. `may_hold` is told of every so many points more before they are found; `None`
    /// where it said no.
    pub fn block(
        &self,
        columns: Range<usize>,
        rows: Range<usize>,
        may_hold: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Option<Vec<Chain>>, F::Error> {
        let mut block = Block::new(self, columns, rows, may_hold)?;
        Ok(block.trace()?.then(|| block.chains()))
    }
}

/// The edge of a cell, with as many crossings as there are levels between its ends.
struct Edge {
    column: usize,
    row: usize,
    is_down: bool,
    /// The index of its first crossing.
    first: usize,
    /// The numbers of its ends.
    numbers: [i64; 2],
}

impl Edge {
    fn count(&self) -> usize {
        self.numbers[0].abs_diff(self.numbers[1]) as usize
    }

    fn crossing(&self, place: usize) -> Crossing {
        let [from, to] = self.numbers;
        let place = place as i64;
        Crossing {
            column: self.column,
            row: self.row,
            is_down: self.is_down,
            number: if from < to {
                from + 1 + place
            } else {
                from - place
            },
        }
    }
}

/// A block of cells with the heights of its nodes, and of those around it.
struct Block<'a, 'b, F> {
    tracing: &'a Tracing<'a, F>,
    columns: Range<usize>,
    rows: Range<usize>,
    /// The first node whose height is here, and how many there are in a row.
    first: (usize, usize),
    width: usize,
    /// Heights with their numbers; NaN where there is no data.
    nodes: Vec<(f64, i64)>,
    may_hold: &'b mut dyn FnMut(usize) -> bool,
    /// Edges of cells that lines cross, in the order of their crossings.
    edges: Vec<Edge>,
    /// All crossings, of edges and of cuts.
    points: Vec<Point>,
    /// The index of the crossing that follows each, and whether one leads to it.
    next: Vec<usize>,
    is_led_to: Vec<bool>,
}

impl<'a, 'b, F: Field> Block<'a, 'b, F> {
    fn new(
        tracing: &'a Tracing<'a, F>,
        columns: Range<usize>,
        rows: Range<usize>,
        may_hold: &'b mut dyn FnMut(usize) -> bool,
    ) -> Result<Self, F::Error> {
        let Tracing {
            field,
            cells,
            levels,
            ..
        } = tracing;
        // The cells around the block say whether lines go on there.
        let around = |block: &Range<usize>, all: Range<usize>| {
            block.start.saturating_sub(1).max(all.start)..(block.end + 2).min(all.end + 1)
        };
        let node_columns = around(&columns, cells.columns());
        let node_rows = around(&rows, cells.rows());
        let mut nodes = Vec::with_capacity(node_columns.len() * node_rows.len());
        for row in node_rows.clone() {
            for column in node_columns.clone() {
                let height = match cells.pixel(column, row) {
                    Some(pixel) => field.centre(pixel)?,
                    None => field.height(cells.node(column, row))?,
                };
                let height = height.unwrap_or(f64::NAN);
                nodes.push((height, levels.number_below(height)));
            }
        }
        Ok(Self {
            tracing,
            columns,
            rows,
            first: (node_columns.start, node_rows.start),
            width: node_columns.len(),
            nodes,
            may_hold,
            edges: Vec::new(),
            points: Vec::new(),
            next: Vec::new(),
            is_led_to: Vec::new(),
        })
    }

    fn node(&self, column: usize, row: usize) -> Node {
        let (height, number) =
            self.nodes[(row - self.first.1) * self.width + column - self.first.0];
        Node {
            at: self.tracing.cells.node(column, row),
            height,
            number,
        }
    }

    /// Whether all corners of a cell, which is in the block or beside it, have data.
    fn has_data(&self, column: usize, row: usize) -> bool {
        let first = (row - self.first.1) * self.width + column - self.first.0;
        let corners = [first, first + 1, first + self.width, first + self.width + 1];
        !corners.iter().any(|&corner| self.nodes[corner].0.is_nan())
    }

    /// Finds all crossings and joins them; whether all of them may be held.
    fn trace(&mut self) -> Result<bool, F::Error> {
        let columns = self.columns.clone();
        let is_inside = |column: usize| columns.contains(&column);
        let mut above = Vec::new();
        for row in self.rows.start..=self.rows.end {
            let (has_above, has_below) = (row > self.rows.start, row < self.rows.end);
            let mut below = Vec::with_capacity(columns.len());
            for column in columns.clone() {
                let is_used = has_above && self.has_data(column, row - 1)
                    || has_below && self.has_data(column, row);
                let Some(side) = self.edge(column, row, false, is_used)? else {
                    return Ok(false);
                };
                below.push(side);
            }
            // The cells above these edges.
            if has_above {
                let row = row - 1;
                let mut left = Side::default();
                for column in columns.start..=columns.end {
                    let has_left = column > columns.start && self.has_data(column - 1, row);
                    let has_right = is_inside(column) && self.has_data(column, row);
                    let Some(right) = self.edge(column, row, true, has_left || has_right)? else {
                        return Ok(false);
                    };
                    if has_left {
                        let place = column - 1 - columns.start;
                        let below = below[place];
                        let sides = [above[place], right, below.reversed(), left.reversed()];
                        if !self.cell(column - 1, row, sides)? {
                            return Ok(false);
                        }
                    }
                    left = right;
                }
            }
            above = below;
        }
        Ok(true)
    }

    /// Finds the crossings of an edge; `None` where they may not be held.
    fn edge(
        &mut self,
        column: usize,
        row: usize,
        is_down: bool,
        is_used: bool,
    ) -> Result<Option<Side>, F::Error> {
        if !is_used {
            return Ok(Some(Side::default()));
        }
        let end = (column + usize::from(!is_down), row + usize::from(is_down));
        let ends = [self.node(column, row), self.node(end.0, end.1)];
        let side = self.crossings(ends)?;
        if side.is_some_and(|side| side.count > 0) {
            self.edges.push(Edge {
                column,
                row,
                is_down,
                first: self.points.len() - side.map_or(0, |side| side.count),
                numbers: ends.map(|end| end.number),
            });
        }
        Ok(side)
    }

    /// Finds the crossings between two nodes; `None` where they may not be held.
    fn crossings(&mut self, ends: [Node; 2]) -> Result<Option<Side>, F::Error> {
        let first = self.points.len();
        let count = ends[0].number.abs_diff(ends[1].number) as usize;
        if count > 0 {
            if !(self.may_hold)(count) {
                return Ok(None);
            }
            let Tracing {
                field, levels, gap, ..
            } = *self.tracing;
            add_crossings(field, levels, gap, ends, &mut self.points)?;
            self.next.resize(first + count, NOTHING);
            self.is_led_to.resize(first + count, false);
        }
        Ok(Some(Side {
            first,
            count,
            is_reversed: false,
        }))
    }

    /// Joins the crossings of a cell; whether all that takes may be held.
    fn cell(&mut self, column: usize, row: usize, sides: [Side; 4]) -> Result<bool, F::Error> {
        let nodes = [(0, 0), (1, 0), (1, 1), (0, 1)].map(|(x, y)| self.node(column + x, row + y));
        let cell = Rectangle {
            low: nodes[0].at,
            high: nodes[2].at,
            numbers: nodes.map(|node| node.number),
            sides,
            cuts: 0,
        };
        if !cell.is_crossed() {
            return Ok(true);
        }
        let mut rectangles = vec![cell];
        let mut lines = Vec::new();
        while let Some(rectangle) = rectangles.pop() {
            if !rectangle.is_crossed() {
                continue;
            }
            let Tracing { field, levels, .. } = *self.tracing;
            lines.clear();
            rectangle.add_lines(&mut lines, || {
                let height = saddle(field, rectangle.low, rectangle.high)?;
                Ok::<_, F::Error>(levels.number_below(height.unwrap_or(f64::NAN)))
            })?;
            match self.cut(&rectangle, &lines)? {
                Some((cut, ends)) => {
                    let Some(crossings) = self.crossings(ends)? else {
                        return Ok(false);
                    };
                    rectangles.extend(rectangle.halves(&cut, crossings));
                }
                None => {
                    for &(_, [from, to]) in &lines {
                        self.next[from] = to;
                        self.is_led_to[to] = true;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Where to cut a rectangle in which a line bends, with the ends of the cut; `None` where none does, or where the
    /// surface at every cut's end is not between the levels that its place on the side says.
    fn cut(
        &self,
        rectangle: &Rectangle,
        lines: &[(i64, [usize; 2])],
    ) -> Result<Option<(Cut, [Node; 2])>, F::Error> {
        if rectangle.cuts == MAX_CUTS {
            return Ok(None);
        }
        let Tracing {
            field, levels, gap, ..
        } = *self.tracing;
        for &(number, ends) in lines {
            let [from, to] = ends.map(|index| self.points[index]);
            if !is_bent(field, levels.height(number), from, to)? {
                continue;
            }
            let chord = [0, 1].map(|axis| to[axis] - from[axis]);
            let axis = usize::from(chord[0].abs() < chord[1].abs());
            for part in CUTS {
                let position = from[axis] + part * chord[axis];
                let Some(cut) = rectangle.cut(axis, position, 4.0 * gap, &self.points) else {
                    continue;
                };
                let node = |end: usize| {
                    let (at, number) = (cut.ends[end], cut.numbers[end]);
                    let height = field.height(at)?;
                    let is_between = |height: &f64| levels.number_below(*height) == number;
                    Ok(height
                        .filter(is_between)
                        .map(|height| Node { at, height, number }))
                };
                if let (Some(start), Some(end)) = (node(0)?, node(1)?) {
                    return Ok(Some((cut, [start, end])));
                }
            }
        }
        Ok(None)
    }

    /// The chains of all crossings: those that enter the block first; what is left then are rings.
    fn chains(&mut self) -> Vec<Chain> {
        let mut chains = Vec::new();
        let edges = std::mem::take(&mut self.edges);
        for is_entering in [true, false] {
            for edge in &edges {
                for place in 0..edge.count() {
                    let first = edge.first + place;
                    if self.next[first] == NOTHING || is_entering && self.is_led_to[first] {
                        continue;
                    }
                    let mut points = vec![self.points[first]];
                    let mut last = first;
                    while self.next[last] != NOTHING {
                        last = std::mem::replace(&mut self.next[last], NOTHING);
                        points.push(self.points[last]);
                    }
                    points.dedup();
                    let start = edge.crossing(place);
                    let end_of = |crossing| {
                        if last == first {
                            End::Ring
                        } else if self.goes_on(crossing) {
                            End::Open(crossing)
                        } else {
                            End::Edge
                        }
                    };
                    // A chain that is no ring ends at an edge of a cell: inside, whatever crosses a cut goes on.
                    let edge = &edges[edges.partition_point(|edge| edge.first <= last) - 1];
                    chains.push(Chain {
                        number: start.number,
                        points,
                        start: end_of(start),
                        end: end_of(edge.crossing(last - edge.first)),
                    });
                }
            }
        }
        chains
    }

    /// Whether a line that leaves the block at an edge goes on behind it.
    fn goes_on(&self, crossing: Crossing) -> bool {
        let Crossing {
            column,
            row,
            is_down,
            ..
        } = crossing;
        let (columns, rows) = (self.tracing.cells.columns(), self.tracing.cells.rows());
        let has_data = |column: Option<usize>, row: Option<usize>| {
            let cell = column.zip(row);
            cell.is_some_and(|(column, row)| {
                columns.contains(&column) && rows.contains(&row) && self.has_data(column, row)
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
