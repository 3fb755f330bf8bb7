//! Lines from the chains of blocks.

use std::collections::{HashMap, VecDeque};

use super::trace::{Chain, Crossing, End};
use super::{Levels, Point};

/// A ring around a corner of cells that has its height keeps one gap from it, so that it is two across; and a little
/// for rounding.
const AROUND_A_POINT: f64 = 2.001;

/// A contour line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The number of its height, that of the base being 0.
    pub number: i64,
    /// Its height in metres.
    pub height: f64,
    /// Its points; of a closed line the last is the first.
    pub points: Vec<Point>,
}

impl Line {
    /// Whether it is closed; an open line ends at the edge of the part or of the data.
    pub fn is_closed(&self) -> bool {
        self.points.len() > 3 && self.points.first() == self.points.last()
    }
}

/// Puts chains together, in whatever order they come.
#[derive(Debug)]
pub struct Joiner {
    levels: Levels,
    gap: f64,
    /// Lines that go on somewhere.
    open: HashMap<usize, Open>,
    starts: HashMap<Crossing, usize>,
    ends: HashMap<Crossing, usize>,
    next: usize,
    points: usize,
}

#[derive(Debug)]
struct Open {
    number: i64,
    points: VecDeque<Point>,
    start: End,
    end: End,
}

impl Joiner {
    /// Nothing yet; lines were traced so many pixels from each other.
    pub fn new(levels: Levels, gap: f64) -> Self {
        Self {
            levels,
            gap,
            open: HashMap::new(),
            starts: HashMap::new(),
            ends: HashMap::new(),
            next: 0,
            points: 0,
        }
    }

    /// Points of lines that go on.
    pub fn open_points(&self) -> usize {
        self.points
    }

    /// Adds a chain; a line that is complete now is returned.
    pub fn add(&mut self, chain: Chain) -> Option<Line> {
        let mut line = Open {
            number: chain.number,
            points: chain.points.into(),
            start: chain.start,
            end: chain.end,
        };
        if let End::Open(crossing) = line.start
            && let Some(id) = self.ends.remove(&crossing)
            && let Some(before) = self.take(id)
        {
            line = joined(before, line);
        }
        if let End::Open(crossing) = line.end
            && let Some(id) = self.starts.remove(&crossing)
            && let Some(after) = self.take(id)
        {
            line = joined(line, after);
        }
        if let (End::Open(start), End::Open(end)) = (line.start, line.end)
            && start == end
        {
            (line.start, line.end) = (End::Ring, End::Ring);
        }
        let is_open = matches!(line.start, End::Open(_)) || matches!(line.end, End::Open(_));
        if !is_open {
            return self.finished(line);
        }
        let id = self.next;
        self.next += 1;
        if let End::Open(crossing) = line.start {
            self.starts.insert(crossing, id);
        }
        if let End::Open(crossing) = line.end {
            self.ends.insert(crossing, id);
        }
        self.points += line.points.len();
        self.open.insert(id, line);
        None
    }

    /// Takes out an open line, with what leads to it.
    fn take(&mut self, id: usize) -> Option<Open> {
        let line = self.open.remove(&id)?;
        self.points -= line.points.len();
        if let End::Open(crossing) = line.start {
            self.starts.remove(&crossing);
        }
        if let End::Open(crossing) = line.end {
            self.ends.remove(&crossing);
        }
        Some(line)
    }

    /// The lines that still go on somewhere: none, once every block was added.
    pub fn rest(mut self) -> Vec<Line> {
        let mut open: Vec<(usize, Open)> = self.open.drain().collect();
        open.sort_unstable_by_key(|(id, _)| *id);
        open.into_iter()
            .filter_map(|(_, line)| self.finished(line))
            .collect()
    }

    /// A complete line; `None` where all of it lies around one point, as around a summit that has the height itself.
    fn finished(&self, line: Open) -> Option<Line> {
        let points = Vec::from(line.points);
        let first = *points.first()?;
        let is_near = |point: &Point| {
            (0..2).all(|axis| (point[axis] - first[axis]).abs() <= AROUND_A_POINT * self.gap)
        };
        (!points.iter().all(is_near)).then(|| Line {
            number: line.number,
            height: self.levels.height(line.number),
            points,
        })
    }
}

/// Two lines, the second of which starts where the first ends; the shorter one moves.
fn joined(mut first: Open, mut second: Open) -> Open {
    let points = if first.points.len() >= second.points.len() {
        first.points.extend(second.points.drain(1..));
        first.points
    } else {
        first.points.pop_back();
        for point in first.points.into_iter().rev() {
            second.points.push_front(point);
        }
        second.points
    };
    Open {
        number: first.number,
        points,
        start: first.start,
        end: second.end,
    }
}
