//! Land under erosion by streams and creeping soil, on any number of threads with the same result.
//!
//! A step fills the hollows, adds up the area that drains through each cell, and lowers each cell towards those it
//! drains to. What becomes of a cell follows from its neighbours, whichever of them was worked on first. So bands of
//! rows are worked on at once: each goes as far as it can and says which cells of others can go on, in rounds.

use std::f32::consts::SQRT_2;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::Frame;
use super::brinks::{Brinks, key};
use super::noise::Noise;

/// The least fall of water from a cell to the next, in metres.
const FALL_M: f32 = 0.001;
/// Below this many cells a round is not worth other threads.
const FEW: usize = 512;
/// As many numbers to be copied or compared are worth a thread of their own.
const WORTHWHILE: usize = 1 << 16;
/// Distances of the neighbours of a cell, in cells.
const DISTANCE: [f32; 8] = [1.0, 1.0, 1.0, 1.0, SQRT_2, SQRT_2, SQRT_2, SQRT_2];
/// Which neighbour of its neighbour a cell is.
const OPPOSITE: [usize; 8] = [1, 0, 3, 2, 7, 6, 5, 4];

/// Heights on a grid, some of them held.
pub(super) struct Land {
    pub(super) frame: Frame,
    pub(super) heights: Vec<f32>,
    held: Vec<bool>,
}

impl Land {
    /// Land of given heights; each row is made by a function of its own.
    pub(super) fn new<F: FnMut(usize) -> f32>(
        frame: Frame,
        height_m: impl Fn() -> F + Sync,
    ) -> Self {
        let mut heights = vec![0.0; frame.len()];
        frame.by_rows(&mut heights, |first, line| {
            let mut height_m = height_m();
            for (cell, height) in (first..).zip(line) {
                *height = height_m(cell);
            }
        });
        Self {
            frame,
            heights,
            held: vec![false; frame.len()],
        }
    }

    /// Raises the ground above a height, but never below it; each row by a function of its own.
    pub(super) fn raise<F: FnMut(usize) -> f64>(
        &mut self,
        above_m: f32,
        raise_m: impl Fn() -> F + Sync,
    ) {
        self.frame.by_rows(&mut self.heights, |first, line| {
            let mut raise_m = raise_m();
            for (cell, height_m) in (first..).zip(line) {
                if *height_m > above_m {
                    *height_m = (*height_m + raise_m(cell) as f32).max(above_m + 0.05);
                }
            }
        });
    }

    /// Changes the heights near a course, given the cell, its height, its distance and the value.
    pub(super) fn shape(
        &mut self,
        near: Vec<[f32; 2]>,
        mut to: impl FnMut(usize, f32, f32, f64) -> f32,
    ) {
        for (cell, [distance, value]) in near.into_iter().enumerate() {
            if distance < f32::INFINITY {
                self.heights[cell] = to(cell, self.heights[cell], distance, f64::from(value));
            }
        }
    }

    /// Holds the edges as they are and the heights that are fixed.
    pub(super) fn hold(&mut self, fixed_m: impl Fn(usize, f32) -> Option<f64> + Sync) {
        let (width, height) = (self.frame.width, self.frame.height);
        let heights = self.heights.par_chunks_mut(width);
        let rows = heights.zip(self.held.par_chunks_mut(width)).enumerate();
        let rows = rows.with_min_len(self.frame.worthwhile_rows());
        rows.for_each(|(y, (heights, held))| {
            for (x, (height_m, held)) in heights.iter_mut().zip(held).enumerate() {
                let fixed_m = fixed_m(y * width + x, *height_m);
                *height_m = fixed_m.map_or(*height_m, |m| m as f32);
                let edge = x == 0 || y == 0 || x + 1 == width || y + 1 == height;
                *held = edge || fixed_m.is_some();
            }
        });
    }

    /// One step of uplift, of streams (Braun and Willett 2013, m = 1/2, n = 1) and of soil creep.
    pub(super) fn step(&mut self, time: f64, uplift_m: f64, creep_m2: f64) {
        let frame = self.frame;
        let flow = Flow::new(frame, &self.heights, &self.held);
        let (rounds, area) = flow.areas();
        let heights = shared(&self.heights);
        let cell_m = frame.cell_m as f32;
        let lower = |&cell: &u32| {
            let cell = cell as usize;
            let power = time as f32 * (area[cell].sqrt() - 2.0).max(0.0) / cell_m;
            let (mut pull, mut below) = (0.0, 0.0);
            for (index, to) in frame.neighbours(cell).into_iter().enumerate() {
                let weight = share(flow.level[cell], flow.level[to], index) / DISTANCE[index];
                pull += weight;
                below += weight * load(&heights[to]);
            }
            let total = flow.total[cell];
            let raised = load(&heights[cell]) + (uplift_m * time) as f32;
            let lowered = (raised + power * below / total) / (1.0 + power * pull / total);
            store(&heights[cell], lowered);
        };
        // The area of a cell was added up before those it drains to; it is lowered after them.
        for bands in rounds.iter().rev() {
            if bands.iter().map(Vec::len).sum::<usize>() < FEW {
                bands
                    .iter()
                    .flat_map(|cells| cells.iter().rev())
                    .for_each(lower);
            } else {
                bands
                    .par_iter()
                    .for_each(|cells| cells.iter().rev().for_each(lower));
            }
        }
        self.heights = values(&heights);
        self.creep(creep_m2 * time / (frame.cell_m * frame.cell_m));
    }

    /// Spreads the heights, at a rate in cells.
    fn creep(&mut self, rate: f64) {
        let (frame, held) = (self.frame, &self.held);
        let row = frame.width;
        let rounds = (5.0 * rate).ceil();
        let share = (rate / rounds) as f32;
        let mut old = self.heights.clone();
        for _ in 0..rounds as usize {
            std::mem::swap(&mut old, &mut self.heights);
            frame.by_rows(&mut self.heights, |first, line| {
                let last = first + row;
                let (middle, held) = (&old[first..last], &held[first..last]);
                line.copy_from_slice(middle);
                // The edges are held.
                if first == 0 || last == old.len() {
                    return;
                }
                let (upper, lower) = (&old[first - row..first], &old[last..last + row]);
                for x in 1..row - 1 {
                    if !held[x] {
                        let sides = middle[x - 1] + middle[x + 1] + upper[x] + lower[x];
                        line[x] += share * (sides - 4.0 * middle[x]);
                    }
                }
            });
        }
    }

    /// The same land on another grid, a little bent so that no valley stays straight.
    pub(super) fn resample(&self, frame: Frame) -> Self {
        let old = self.frame;
        let split = |position: f64, count: usize, bend: f64| {
            let position = position - old.origin_m / old.cell_m + 4.5 * bend;
            let position = position.clamp(0.0, count as f64 - 1.001);
            (position as usize, (position - position.floor()) as f32)
        };
        Self::new(frame, || {
            let mut bends = [1, 2].map(Noise::new);
            move |cell| {
                let [x, y] = frame.scaled(cell, old.cell_m);
                let [right, down] = bends.each_mut().map(|bend| bend.at([x / 16.0, y / 16.0]));
                let (left, across) = split(x, old.width, right);
                let (top, down) = split(y, old.height, down);
                let line = |start: usize| {
                    let ends = &self.heights[start..start + 2];
                    ends[0] + across * (ends[1] - ends[0])
                };
                let start = top * old.width + left;
                line(start) + down * (line(start + old.width) - line(start))
            }
        })
    }
}

/// Where water goes.
struct Flow {
    frame: Frame,
    /// Heights without hollows.
    level: Vec<f32>,
    /// The sum of the shares of a cell's neighbours; 0 for a cell that is held.
    total: Vec<f32>,
    /// Which neighbours drain into a cell, and into which it drains, a bit each; those held are left out.
    from: Vec<u8>,
    into: Vec<u8>,
}

impl Flow {
    fn new(frame: Frame, heights: &[f32], held: &[bool]) -> Self {
        let (width, cells) = (frame.width, frame.len());
        let level = filled(&frame, heights, held);
        let mut total = vec![0.0; cells];
        let (mut from, mut into) = (vec![0; cells], vec![0; cells]);
        let masks = from.par_chunks_mut(width).zip(into.par_chunks_mut(width));
        let rows = total.par_chunks_mut(width).zip(masks).enumerate();
        let rows = rows.with_min_len(frame.worthwhile_rows());
        rows.for_each(|(row, (total, (from, into)))| {
            let first = row * width;
            for x in (0..width).filter(|x| !held[first + x]) {
                let own = level[first + x];
                for (index, to) in frame.neighbours(first + x).into_iter().enumerate() {
                    let (other, is_free) = (level[to], !held[to]);
                    total[x] += share(own, other, index);
                    from[x] |= u8::from(other > own && is_free) << index;
                    into[x] |= u8::from(other < own && is_free) << index;
                }
            }
        });
        Self {
            frame,
            level,
            total,
            from,
            into,
        }
    }

    /// The area that drains through each cell, and the cells by round and band as they were added up.
    fn areas(&self) -> (Vec<Vec<Vec<u32>>>, Vec<f32>) {
        let frame = self.frame;
        let area = shared(&vec![0.0; frame.len()]);
        // The neighbours that drain into a cell and are still to be added up.
        let mut waits = self.from.clone();
        let rounds = in_rounds(&frame, &mut waits, |first, waits, arrived| {
            let (mut order, mut open, mut sent) = (Vec::new(), Vec::new(), Vec::new());
            let mut spread = |waits: &mut [u8], start: usize| {
                open.push(start);
                while let Some(cell) = open.pop() {
                    order.push(cell as u32);
                    store(&area[cell], self.area(cell, &area));
                    let neighbours = frame.neighbours(cell);
                    for index in bits(self.into[cell]) {
                        let (to, index) = (neighbours[index], OPPOSITE[index]);
                        match waits.get_mut(to.wrapping_sub(first)) {
                            Some(waits) => {
                                *waits &= !(1 << index);
                                if *waits == 0 {
                                    open.push(to);
                                }
                            }
                            None => sent.push((to as u32, index as u8)),
                        }
                    }
                }
            };
            if let Some(arrived) = arrived {
                for &(cell, index) in arrived {
                    let cell = cell as usize;
                    waits[cell - first] &= !(1 << index);
                    if waits[cell - first] == 0 {
                        spread(waits, cell);
                    }
                }
            } else {
                let own = first..first + waits.len();
                for cell in own.filter(|&cell| self.from[cell] == 0 && self.total[cell] > 0.0) {
                    spread(waits, cell);
                }
            }
            (order, sent)
        });
        (rounds, values(&area))
    }

    /// The area of a cell: its own, and its share of those that drain into it, from the highest down.
    fn area(&self, cell: usize, area: &[AtomicU32]) -> f32 {
        let neighbours = self.frame.neighbours(cell);
        let (mut keys, mut parts, mut count) = ([0; 8], [0.0; 8], 0);
        for index in bits(self.from[cell]) {
            let donor = neighbours[index];
            let share = share(self.level[donor], self.level[cell], index);
            keys[count] = key(self.level[donor], donor);
            parts[count] = load(&area[donor]) * share / self.total[donor];
            count += 1;
        }
        let mut sorted = [0.0; 8];
        for (part, own) in parts.iter().zip(keys).take(count) {
            let before = keys[..count].iter().filter(|&&other| other > own);
            sorted[before.count()] = *part;
        }
        let cell_m = self.frame.cell_m as f32;
        let parts = sorted[..count].iter();
        parts.fold(cell_m * cell_m, |sum, part| sum + part)
    }
}

/// The share of a cell's water that goes to a neighbour, before division by the sum of them. Water leaves by every lower
/// neighbour: by the lowest alone, valleys would follow the grid.
fn share(level: f32, to: f32, index: usize) -> f32 {
    let distance = DISTANCE[index];
    let share = (level - to).max(0.0) / (distance * distance);
    share * share
}

/// The numbers of the bits that are set.
fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = mask.trailing_zeros() as usize;
        (mask != 0).then(|| {
            mask &= mask - 1;
            index
        })
    })
}

/// Heights without hollows: each cell as high as it is, or a little higher than the lowest of its neighbours.
///
/// Cells with a way down are found from the held ones upwards; the others are filled from the lowest brink (Barnes et al.
/// 2014), and what lies above them is found in the same way.
fn filled(frame: &Frame, heights: &[f32], held: &[bool]) -> Vec<f32> {
    const UNKNOWN: f32 = f32::INFINITY;
    let mut level = vec![UNKNOWN; frame.len()];
    in_rounds(frame, &mut level, |first, level, arrived| {
        let (mut open, mut sent) = (Vec::new(), Vec::new());
        let mut spread = |level: &mut [f32], start: usize| {
            level[start - first] = heights[start];
            open.push(start);
            while let Some(cell) = open.pop() {
                let least_m = level[cell - first] + FALL_M;
                for to in frame.neighbours(cell) {
                    // Beside an edge lies nothing or another edge, and those are held.
                    if heights.get(to).is_none_or(|&m| m < least_m) || held[to] {
                        continue;
                    }
                    match level.get_mut(to.wrapping_sub(first)) {
                        Some(level) if *level == UNKNOWN => {
                            *level = heights[to];
                            open.push(to);
                        }
                        Some(_) => {}
                        None => sent.push((to as u32, 0)),
                    }
                }
            }
        };
        if let Some(arrived) = arrived {
            for cell in arrived.iter().map(|&(cell, _)| cell as usize) {
                if level[cell - first] == UNKNOWN {
                    spread(level, cell);
                }
            }
        } else {
            let own = first..first + level.len();
            own.filter(|&cell| held[cell])
                .for_each(|cell| spread(level, cell));
        }
        ((), sent)
    });

    let is_unknown = |cell: &usize| level.get(*cell) == Some(&UNKNOWN);
    let is_brink =
        |cell: &usize| !is_unknown(cell) && frame.neighbours(*cell).iter().any(is_unknown);
    let cells = (0..level.len()).into_par_iter().with_min_len(WORTHWHILE);
    let found: Vec<usize> = cells.filter(is_brink).collect();
    let all = || heights.par_iter().with_min_len(WORTHWHILE).copied();
    let lowest_m = all().reduce(|| f32::INFINITY, f32::min);
    let highest_m = all().reduce(|| f32::NEG_INFINITY, f32::max);
    let mut brinks = Brinks::new(lowest_m, highest_m);
    for cell in found {
        brinks.add(level[cell], cell);
    }
    let mut open = Vec::new();
    while let Some(brink) = brinks.lowest() {
        for hollow in frame.neighbours(brink) {
            if level.get(hollow) != Some(&UNKNOWN) {
                continue;
            }
            level[hollow] = heights[hollow].max(level[brink] + FALL_M);
            open.push(hollow);
            while let Some(cell) = open.pop() {
                let least_m = level[cell] + FALL_M;
                let mut is_brink = false;
                for to in frame.neighbours(cell) {
                    if level[to] != UNKNOWN {
                        continue;
                    }
                    if heights[to] < least_m {
                        is_brink = true;
                    } else {
                        level[to] = heights[to];
                        open.push(to);
                    }
                }
                if is_brink {
                    brinks.add(level[cell], cell);
                }
            }
        }
    }
    level
}

/// A cell of another band, and a number to go with it.
type Message = (u32, u8);

/// Works on bands of rows in rounds, until no band sends anything. A band is given the number of its first cell, what is
/// kept of its cells, and what others sent it in the last round, in the first one `None`; it returns its result and what
/// it sends. The results come by round; a band without anything to do has none.
fn in_rounds<S: Send, T: Send>(
    frame: &Frame,
    cells: &mut [S],
    work: impl Fn(usize, &mut [S], Option<&[Message]>) -> (T, Vec<Message>) + Sync,
) -> Vec<Vec<T>> {
    let rows = frame.height.div_ceil(4 * rayon::current_num_threads());
    let band = rows.max(frame.worthwhile_rows()) * frame.width;
    let bands = cells.par_chunks_mut(band).enumerate();
    let first = bands.map(|(index, cells)| work(index * band, cells, None));
    let mut done: Vec<(T, Vec<Message>)> = first.collect();
    let mut rounds = Vec::new();
    loop {
        let mut arrived = vec![Vec::new(); frame.len().div_ceil(band)];
        let mut results = Vec::with_capacity(done.len());
        let mut count = 0;
        for (result, sent) in done {
            results.push(result);
            count += sent.len();
            for message in sent {
                arrived[message.0 as usize / band].push(message);
            }
        }
        rounds.push(results);
        if count == 0 {
            return rounds;
        }
        let bands = cells.chunks_mut(band).zip(arrived).enumerate();
        let waiting: Vec<_> = bands
            .filter(|(_, (_, arrived))| !arrived.is_empty())
            .map(|(index, (cells, arrived))| (index * band, cells, arrived))
            .collect();
        let next = |(first, cells, arrived): (usize, &mut [S], Vec<Message>)| {
            work(first, cells, Some(&arrived))
        };
        done = if count < FEW {
            waiting.into_iter().map(next).collect()
        } else {
            waiting.into_par_iter().map(next).collect()
        };
    }
}

/// Numbers that one band writes while others may read, though never the same number.
fn shared(numbers: &[f32]) -> Vec<AtomicU32> {
    let numbers = numbers.par_iter().with_min_len(WORTHWHILE);
    numbers
        .map(|number| AtomicU32::new(number.to_bits()))
        .collect()
}

/// The numbers when they are all written.
fn values(numbers: &[AtomicU32]) -> Vec<f32> {
    numbers
        .par_iter()
        .with_min_len(WORTHWHILE)
        .map(load)
        .collect()
}

fn load(number: &AtomicU32) -> f32 {
    f32::from_bits(number.load(Ordering::Relaxed))
}

fn store(number: &AtomicU32, value: f32) {
    number.store(value.to_bits(), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::synthetic::noise::unit;

    /// Rough land with many hollows, flat ground and held cells inside it.
    fn rough(width: usize, height: usize, seed: u64) -> Land {
        let frame = Frame::new(width, height, 2.0, 0.0);
        let mut land = Land::new(frame, || {
            move |cell| {
                let (x, y) = ((cell % width) as f64, (cell / width) as f64);
                let noise = (8.0 * unit(seed ^ cell as u64)).floor();
                (500.0 + 0.05 * x + 0.02 * y + noise) as f32
            }
        });
        land.hold(|cell, _| (unit(!seed ^ cell as u64) < 0.01).then_some(430.0));
        land
    }

    /// The lowest first, one cell at a time, as it is defined.
    fn filled_one_by_one(land: &Land) -> Vec<f32> {
        let mut level = land.heights.clone();
        let mut seen = land.held.clone();
        let held = (0..level.len()).filter(|&cell| seen[cell]);
        let mut open: BTreeSet<u64> = held.map(|cell| key(level[cell], cell)).collect();
        while let Some(lowest) = open.pop_first() {
            let cell = (lowest & 0xffff_ffff) as usize;
            for to in land.frame.neighbours(cell) {
                if seen.get(to) == Some(&false) {
                    seen[to] = true;
                    level[to] = level[to].max(level[cell] + FALL_M);
                    open.insert(key(level[to], to));
                }
            }
        }
        level
    }

    #[test]
    fn hollows_are_filled_as_they_are_one_cell_at_a_time() {
        for (width, height, seed) in [(90, 70, 1), (33, 200, 2), (3, 3, 3), (64, 16, 4)] {
            let land = rough(width, height, seed);
            let level = filled(&land.frame, &land.heights, &land.held);
            assert!(level == filled_one_by_one(&land), "{width}x{height}");
        }
    }

    #[test]
    fn all_water_reaches_the_cells_that_are_held() {
        let land = rough(90, 70, 5);
        let flow = Flow::new(land.frame, &land.heights, &land.held);
        let (rounds, area) = flow.areas();
        let free = land.held.iter().filter(|&&held| !held).count();
        let mut order: Vec<u32> = rounds.into_iter().flatten().flatten().collect();
        assert_eq!(order.len(), free);
        order.sort_unstable();
        order.dedup();
        assert_eq!(order.len(), free);
        // What flows out of the cells that are free is the area of all of them.
        let out = |cell: usize| {
            let to_held = |(index, &to): (usize, &usize)| {
                let share = share(flow.level[cell], flow.level[to], index);
                if land.held[to] {
                    share / flow.total[cell]
                } else {
                    0.0
                }
            };
            let neighbours = land.frame.neighbours(cell);
            area[cell] * neighbours.iter().enumerate().map(to_held).sum::<f32>()
        };
        let sum: f32 = order.iter().map(|&cell| out(cell as usize)).sum();
        assert!((sum / (4 * free) as f32 - 1.0).abs() < 1e-3, "{sum}");
    }

    #[test]
    fn the_number_of_threads_does_not_matter() {
        let eroded = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap().install(|| {
                let mut land = rough(150, 240, 6);
                for _ in 0..3 {
                    land.step(0.1, 2.0, 20.0);
                }
                land.heights
            })
        };
        let one = eroded(1);
        assert!(one.iter().all(|height_m| height_m.is_finite()));
        assert!(one == eroded(2) && one == eroded(7));
    }
}
