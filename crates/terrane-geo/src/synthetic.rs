//! A generated terrain, for tests, examples and pictures: eroded hills, a river, a lake, a road.
//!
//! Only `+ - * /`, square roots and rounding take part, which IEEE 754 fixes to the bit, in one
//! order on one thread: a recipe gives the same bytes on every machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::f32::consts::SQRT_2;

/// What the terrain is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// Pixels in a row; from 64 on there is room for every feature.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Size of a pixel in metres.
    pub pixel_m: f64,
    /// Chooses one terrain among all of this kind.
    pub seed: u64,
    /// Relief of a square kilometre; smaller terrains have less of it, larger ones more.
    pub relief_m: f64,
    /// Whether one corner lies outside the survey.
    pub nodata_corner: bool,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            width: 1024,
            height: 768,
            pixel_m: 1.0,
            seed: 8,
            relief_m: 90.0,
            nodata_corner: true,
        }
    }
}

/// A generated terrain.
#[derive(Clone, Debug)]
pub struct Terrain {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Heights in metres, row by row from the north, NaN where there is no data.
    pub heights: Vec<f32>,
    /// Whether each pixel is water, of the level lake or of the river.
    pub water: Vec<bool>,
}

/// Generates the terrain of a recipe.
pub fn generate(recipe: &Recipe) -> Terrain {
    let (width, height, seed) = (recipe.width, recipe.height, mix(recipe.seed));
    let valley = Valley::new(recipe);
    let frame = Frame::new(width, height, recipe.pixel_m, 0.0);
    let grain_m = frame.cell_m.max(1.0);
    let mut land = erode(recipe, &valley).resample(frame);
    land.raise(|cell| 2.0 * grain_m.sqrt() * fractal(frame.scaled(cell, 60.0 * grain_m), seed, 4));
    land.hold(|_, height_m| (height_m <= LAKE_M as f32).then_some(LAKE_M));
    land.step(0.12, 0.0, 10.0 * grain_m);
    land.step(0.12, 0.0, 10.0 * grain_m);
    land.raise(|cell| texture(&frame, cell, seed));
    let mut water = valley.cut_river(&mut land);
    valley.build_road(&mut land, &water);
    let mut heights = land.heights;
    for (water, height_m) in water.iter_mut().zip(&heights) {
        *water |= height_m.total_cmp(&(LAKE_M as f32)).is_eq();
    }
    if recipe.nodata_corner {
        cut_corner(&frame, &mut heights, seed);
    }
    Terrain {
        width,
        height,
        heights,
        water,
    }
}

/// A grid of square cells, the first at `origin_m` on both axes.
#[derive(Clone, Copy)]
struct Frame {
    width: usize,
    height: usize,
    cell_m: f64,
    origin_m: f64,
}

/// Distances of the neighbours of a cell, in cells.
const DISTANCE: [f32; 8] = [1.0, 1.0, 1.0, 1.0, SQRT_2, SQRT_2, SQRT_2, SQRT_2];

impl Frame {
    fn new(width: usize, height: usize, cell_m: f64, origin_m: f64) -> Self {
        Self {
            width,
            height,
            cell_m,
            origin_m,
        }
    }

    fn len(&self) -> usize {
        self.width * self.height
    }

    /// The place of a cell, in units of `unit_m`.
    fn scaled(&self, cell: usize, unit_m: f64) -> [f64; 2] {
        let place = |index: usize| (self.origin_m + index as f64 * self.cell_m) / unit_m;
        [place(cell % self.width), place(cell / self.width)]
    }

    /// The neighbours of a cell; those of an edge may lie on another edge or nowhere.
    fn neighbours(&self, cell: usize) -> [usize; 8] {
        let row = self.width as isize;
        let steps = [-1, 1, -row, row, -row - 1, 1 - row, row - 1, row + 1];
        steps.map(|step| cell.wrapping_add_signed(step))
    }
}

/// Distance to a course `[x, y, value]`, infinite beyond reach, and the value there, for each cell.
fn near(course: &[[f64; 3]], frame: &Frame, reach_m: f64) -> Vec<[f32; 2]> {
    let mut near = vec![[f32::INFINITY, 0.0]; frame.len()];
    let cells = |a: f64, b: f64, count: usize| {
        let place = |m: f64| ((m - frame.origin_m) / frame.cell_m).max(0.0) as usize;
        place(a.min(b) - reach_m).min(count)..(place(a.max(b) + reach_m) + 2).min(count)
    };
    for pair in course.windows(2) {
        let ([ax, ay, from], [bx, by, to]) = (pair[0], pair[1]);
        let (dx, dy) = (bx - ax, by - ay);
        for y in cells(ay, by, frame.height) {
            for x in cells(ax, bx, frame.width) {
                let cell = y * frame.width + x;
                let [px, py] = frame.scaled(cell, 1.0);
                let share = ((px - ax) * dx + (py - ay) * dy) / (dx * dx + dy * dy + 1e-9);
                let share = share.clamp(0.0, 1.0);
                let (ex, ey) = (px - ax - share * dx, py - ay - share * dy);
                let distance = (ex * ex + ey * ey).sqrt();
                if distance <= reach_m && distance < f64::from(near[cell][0]) {
                    near[cell] = [distance, from + share * (to - from)].map(|m| m as f32);
                }
            }
        }
    }
    near
}

/// The main valley by its axis; heights in it go with the square root of the span of the picture.
struct Valley {
    seed: u64,
    span_m: f64,
    root: f64,
    /// Points with the length so far.
    axis: Vec<[f64; 3]>,
    lake_along_m: f64,
}

/// Height of the lake; before the river is cut, all other ground lies higher.
const LAKE_M: f64 = 420.0;
/// How far erosion is followed beyond the picture; this and the next three in spans.
const PAD: f64 = 0.22;
const FLOOR: f64 = 0.035;
const LAKE_LENGTH: f64 = 0.12;
const LAKE_WIDTH: f64 = 0.06;
/// Height of the floor above the river, in roots of the span.
const BANK: f64 = 0.06;

impl Valley {
    fn new(recipe: &Recipe) -> Self {
        let seed = mix(recipe.seed);
        let draw = |key: u64, low: f64, high: f64| low + (high - low) * unit(seed ^ key);
        let size_m = [recipe.width, recipe.height].map(|count| count as f64 * recipe.pixel_m);
        let span_m = (size_m[0] * size_m[1]).sqrt();
        let long = usize::from(size_m[1] > size_m[0]);
        let (from, to) = (draw(1, 0.2, 0.8), draw(2, 0.2, 0.8));
        let point = |index: i32| {
            let share = f64::from(index) / 160.0;
            let mut point = [share * (size_m[long] + 2.0 * PAD * span_m) - PAD * span_m; 3];
            let bend = 0.4 * fractal([point[long] / span_m, 0.5], seed ^ 1, 2);
            point[1 - long] = size_m[1 - long] * (from + (to - from) * share + bend);
            point
        };
        let mut axis: Vec<[f64; 3]> = (0..=160).map(point).collect();
        if draw(3, 0.0, 1.0) < 0.5 {
            axis.reverse();
        }
        axis[0][2] = 0.0;
        for index in 1..axis.len() {
            let ([ax, ay, length], [bx, by, _]) = (axis[index - 1], axis[index]);
            axis[index][2] = length + ((bx - ax) * (bx - ax) + (by - ay) * (by - ay)).sqrt();
        }
        Self {
            seed,
            span_m,
            root: span_m.sqrt(),
            lake_along_m: axis[160][2] * draw(4, 0.4, 0.6),
            axis,
        }
    }

    /// Height of the water at a length along the axis: falling, but level through the lake.
    fn water_m(&self, along_m: f64) -> f64 {
        let past = (along_m - self.lake_along_m) / self.span_m;
        LAKE_M - 0.08 * self.root * (past - past.clamp(-0.8 * LAKE_LENGTH, 0.8 * LAKE_LENGTH))
    }

    /// Height of the flat floor of the valley or of the bottom of the lake, where there is either.
    fn floor_m(&self, frame: &Frame, cell: usize, [distance, along]: [f32; 2]) -> Option<f64> {
        let (distance, along) = (f64::from(distance) / self.span_m, f64::from(along));
        let wobble = fractal(frame.scaled(cell, 0.24 * self.span_m), self.seed ^ 2, 3);
        let past = (along - self.lake_along_m) / (LAKE_LENGTH * self.span_m);
        let aside = distance / LAKE_WIDTH;
        let outside = past * past + aside * aside + 1.1 * wobble;
        if outside < 1.0 {
            return Some(LAKE_M - 0.28 * self.root * (1.5 - 0.5 * outside));
        }
        let floor_m = self.water_m(along) + self.root * (BANK + 0.24 * distance);
        (distance < FLOOR * (1.0 + 0.9 * wobble)).then_some(floor_m)
    }

    /// The point `[along, across]` metres from a length along the axis.
    fn place(&self, along_m: f64, aside: [f64; 2]) -> [f64; 3] {
        let along = along_m + aside[0];
        let after = self.axis.partition_point(|point| point[2] <= along);
        let (a, b) = (
            self.axis[after.clamp(1, 160) - 1],
            self.axis[after.clamp(1, 160)],
        );
        let (dx, dy, length) = (b[0] - a[0], b[1] - a[1], b[2] - a[2]);
        let (share, across) = ((along - a[2]) / length, aside[1] / length);
        let (x, y) = (a[0] + share * dx, a[1] + share * dy);
        [x - across * dy, y + across * dx, along_m]
    }

    /// A course beside the axis, smoothed in rounds.
    fn beside(&self, rounds: usize, aside: impl Fn(f64) -> [f64; 2]) -> Vec<[f64; 3]> {
        let step_m = 0.12 * self.root;
        let count = (self.axis[160][2] / step_m) as usize;
        let lengths = (0..count).map(|step| step as f64 * step_m);
        let mut points: Vec<_> = lengths.map(|m| self.place(m, aside(m))).collect();
        for index in (0..rounds).flat_map(|_| 1..count - 1) {
            for axis in [0, 1] {
                let sides = points[index - 1][axis] + points[index + 1][axis];
                points[index][axis] = (2.0 * points[index][axis] + sides) / 4.0;
            }
        }
        points
    }

    /// Cuts the courses that the river has left and its own into the floor, and marks the river.
    fn cut_river(&self, land: &mut Land) -> Vec<bool> {
        let wave_m = 3.8 * self.root;
        let half_m = (0.175 * self.root).max(land.frame.cell_m) as f32;
        let mut river = vec![false; land.heights.len()];
        for (age, depth, slope) in [(2, 0.01, 0.15), (1, 0.017, 0.15), (0, BANK, 0.5)] {
            let seed = self.seed ^ (16 + age);
            let course = self.beside(16, |along| {
                let turn = along / wave_m + 1.5 * fractal([along / (6.0 * wave_m), 0.3], seed, 2);
                let swing = 0.6 + 0.6 * noise([along / (2.5 * wave_m), 0.7], seed ^ 1);
                let shift = -0.16 * wave_m * swing * wave(2.0 * turn + 0.1);
                [shift, 0.8 * FLOOR * self.span_m * swing * wave(turn)]
            });
            let near = near(&course, &land.frame, self.root);
            land.shape(near, |cell, height_m, distance, along| {
                let outside = (distance - half_m).max(0.0);
                let bed_m = self.water_m(along) + self.root * (BANK - depth);
                let bank_m = bed_m as f32 + outside * (slope + 0.05 * outside);
                let lake = height_m.total_cmp(&(LAKE_M as f32)).is_eq();
                river[cell] = age == 0 && distance < half_m && !lake;
                if lake { height_m } else { height_m.min(bank_m) }
            });
        }
        river
    }

    /// Builds a road along the foot of one side, in cuts and on banks.
    fn build_road(&self, land: &mut Land, river: &[bool]) {
        let frame = land.frame;
        let side = if unit(self.seed ^ 9) < 0.5 { 1.0 } else { -1.0 };
        let deck_m = |along: f64| {
            let climb = noise([along / (0.4 * self.span_m), 0.9], self.seed ^ 4);
            self.water_m(along) + self.root * (BANK + 0.04 + 0.05 * climb)
        };
        let ground_m = |[x, y, _]: [f64; 3]| {
            let index = |m: f64, count: usize| ((m / frame.cell_m) as usize).min(count - 1);
            f64::from(land.heights[index(y, frame.height) * frame.width + index(x, frame.width)])
        };
        let course = self.beside(130, |along| {
            let offset = |step: i32| [0.0, side * self.span_m * 0.004 * f64::from(step)];
            let foot_m = deck_m(along) + 1.0;
            let foot = (10..30).find(|&step| ground_m(self.place(along, offset(step))) > foot_m);
            offset(foot.unwrap_or(30) - 2)
        });
        let half_m = 3.5_f64.max(frame.cell_m) as f32;
        let near = near(&course, &frame, 2.0 * self.root);
        land.shape(near, |cell, height_m, distance, along| {
            let (deck_m, outside) = (deck_m(along) as f32, (distance - half_m).max(0.0));
            let cut_m = 0.9 * (outside - 1.5).max(0.0);
            let fill_m = outside * (0.65 + 0.01 * outside);
            let built_m = height_m.min(deck_m + cut_m).max(deck_m - fill_m);
            if river[cell] { height_m } else { built_m }
        });
    }
}

/// Land under erosion: heights on a grid, some of them held.
struct Land {
    frame: Frame,
    heights: Vec<f32>,
    held: Vec<bool>,
}

/// Erodes a rolling upland around the valley, on coarse cells first and then on finer ones.
fn erode(recipe: &Recipe, valley: &Valley) -> Land {
    let (span_m, pixel_m) = (valley.span_m, recipe.pixel_m);
    let (grain_m, kilometres) = (pixel_m.max(1.0), span_m / 1000.0);
    let growth = kilometres.sqrt() * (kilometres.min(1.0) * grain_m).sqrt().sqrt();
    let relief_m = 1.15 * growth * recipe.relief_m;
    let levels = 2 + usize::from(recipe.width.min(recipe.height) >= 256);
    let mut cell_m = pixel_m * f64::from(1 << levels);
    let [width, height] = [recipe.width, recipe.height]
        .map(|count| ((count as f64 * pixel_m + 2.0 * PAD * span_m) / cell_m) as usize + 2);
    let origin_m = -PAD * span_m;
    let frame = Frame::new(width, height, cell_m, origin_m);
    let far = near(&valley.axis, &frame, 3.0 * span_m);
    let height_m = |cell: usize| {
        let far = f64::from(far[cell][0]) / span_m;
        let rough = fractal(frame.scaled(cell, 0.8 * span_m), valley.seed ^ 6, 6);
        let share = 0.05 + 0.8 * far / (far + 0.35) + 0.6 * rough;
        (LAKE_M + relief_m * share.max(0.02)) as f32
    };
    let mut land = Land::new(frame, height_m);
    for (rounds, time) in [(90, 0.1), (15, 0.05), (5, 0.05)].into_iter().take(levels) {
        let frame = land.frame;
        let near = near(&valley.axis, &frame, 0.1 * span_m);
        land.hold(|cell, _| valley.floor_m(&frame, cell, near[cell]));
        for _ in 0..rounds {
            // Coarse pixels are for larger landforms.
            land.step(time, 0.05 * relief_m, 80.0 * grain_m);
        }
        cell_m /= 2.0;
        let (width, height) = (2 * frame.width - 1, 2 * frame.height - 1);
        land = land.resample(Frame::new(width, height, cell_m, origin_m));
    }
    land
}

impl Land {
    fn new(frame: Frame, height_m: impl Fn(usize) -> f32) -> Self {
        Self {
            frame,
            heights: (0..frame.len()).map(height_m).collect(),
            held: vec![false; frame.len()],
        }
    }

    /// Raises the ground, but not the lake.
    fn raise(&mut self, raise_m: impl Fn(usize) -> f64) {
        for (cell, height_m) in self.heights.iter_mut().enumerate() {
            if *height_m > LAKE_M as f32 {
                *height_m = (*height_m + raise_m(cell) as f32).max(LAKE_M as f32 + 0.05);
            }
        }
    }

    /// Changes the heights near a course, given the cell, its height, its distance and the value.
    fn shape(&mut self, near: Vec<[f32; 2]>, mut to: impl FnMut(usize, f32, f32, f64) -> f32) {
        for (cell, [distance, value]) in near.into_iter().enumerate() {
            if distance < f32::INFINITY {
                self.heights[cell] = to(cell, self.heights[cell], distance, f64::from(value));
            }
        }
    }

    /// Holds the edges as they are and the heights that are fixed.
    fn hold(&mut self, fixed_m: impl Fn(usize, f32) -> Option<f64>) {
        let (width, height) = (self.frame.width, self.frame.height);
        for cell in 0..self.frame.len() {
            let (x, y) = (cell % width, cell / width);
            let fixed_m = fixed_m(cell, self.heights[cell]);
            self.heights[cell] = fixed_m.map_or(self.heights[cell], |m| m as f32);
            let edge = x == 0 || y == 0 || x + 1 == width || y + 1 == height;
            self.held[cell] = edge || fixed_m.is_some();
        }
    }

    /// One step of uplift, of streams (Braun and Willett 2013, m = 1/2, n = 1) and of soil creep.
    fn step(&mut self, time: f64, uplift_m: f64, creep_m2: f64) {
        let (frame, heights, held) = (self.frame, &mut self.heights, &self.held);
        let (order, level) = route(&frame, heights, held);
        // Water leaves by every lower neighbour: by the lowest alone, valleys would follow the grid.
        let shares = |cell: usize| {
            let neighbours = frame.neighbours(cell);
            std::array::from_fn::<_, 8, _>(|index| {
                let (to, distance) = (neighbours[index], DISTANCE[index]);
                let share = (level[cell] - level[to]).max(0.0) / (distance * distance);
                (to, share * share, share * share / distance)
            })
        };
        let cell_m = frame.cell_m as f32;
        let mut area = vec![cell_m * cell_m; frame.len()];
        for &cell in order.iter().rev().filter(|&&cell| !held[cell]) {
            let total: f32 = shares(cell).iter().map(|share| share.1).sum();
            for (to, share, _) in shares(cell) {
                area[to] += area[cell] * share / total;
            }
        }
        for &cell in order.iter().filter(|&&cell| !held[cell]) {
            let power = time as f32 * (area[cell].sqrt() - 2.0).max(0.0) / cell_m;
            let (mut total, mut pull, mut below) = (0.0, 0.0, 0.0);
            for (to, share, weight) in shares(cell) {
                total += share;
                pull += weight;
                below += weight * heights[to];
            }
            let raised = heights[cell] + (uplift_m * time) as f32;
            heights[cell] = (raised + power * below / total) / (1.0 + power * pull / total);
        }
        let (rate, row) = (creep_m2 * time / (frame.cell_m * frame.cell_m), frame.width);
        let rounds = (5.0 * rate).ceil();
        for _ in 0..rounds as usize {
            let old = heights.clone();
            for cell in (0..old.len()).filter(|&cell| !held[cell]) {
                let sides = old[cell - 1] + old[cell + 1] + old[cell - row] + old[cell + row];
                heights[cell] += (rate / rounds) as f32 * (sides - 4.0 * old[cell]);
            }
        }
    }

    /// The same land on another grid, a little bent so that no valley stays straight.
    fn resample(&self, frame: Frame) -> Self {
        let old = self.frame;
        let split = |place: f64, count: usize, bend: f64| {
            let place = place - old.origin_m / old.cell_m + 4.5 * bend;
            let place = place.clamp(0.0, count as f64 - 1.001);
            (place as usize, (place - place.floor()) as f32)
        };
        Self::new(frame, |cell| {
            let [x, y] = frame.scaled(cell, old.cell_m);
            let bend = |seed: u64| noise([x / 16.0, y / 16.0], seed);
            let (left, across) = split(x, old.width, bend(1));
            let (top, down) = split(y, old.height, bend(2));
            let line = |start: usize| {
                let ends = &self.heights[start..start + 2];
                ends[0] + across * (ends[1] - ends[0])
            };
            let start = top * old.width + left;
            line(start) + down * (line(start + old.width) - line(start))
        })
    }
}

/// Floods the land from the cells held (Barnes et al. 2014): an order in which cells come after those
/// they drain to, and heights without hollows.
fn route(frame: &Frame, heights: &[f32], held: &[bool]) -> (Vec<usize>, Vec<f32>) {
    // Heights are positive, so their bits sort as they do.
    let entry = |m: f32, cell: usize| Reverse((u64::from(m.to_bits()) << 32) | cell as u64);
    let (mut level, mut seen) = (heights.to_vec(), held.to_vec());
    let mut order = Vec::with_capacity(level.len());
    let edges = (0..level.len()).filter(|&cell| held[cell]);
    let mut open: BinaryHeap<_> = edges.map(|cell| entry(level[cell], cell)).collect();
    while let Some(Reverse(lowest)) = open.pop() {
        let cell = (lowest & 0xffff_ffff) as usize;
        order.push(cell);
        for neighbour in frame.neighbours(cell) {
            if seen.get(neighbour) == Some(&false) {
                seen[neighbour] = true;
                level[neighbour] = level[neighbour].max(level[cell] + 0.001);
                open.push(entry(level[neighbour], neighbour));
            }
        }
    }
    (order, level)
}

/// What a survey shows at its finest: hummocks, rougher under trees, and its own noise.
fn texture(frame: &Frame, cell: usize, seed: u64) -> f64 {
    let grain_m = frame.cell_m.max(1.0);
    let wood = fractal(frame.scaled(cell, 260.0 * grain_m.sqrt()), seed ^ 8, 3);
    let wood = (0.5 + 1.5 * wood).clamp(0.0, 1.0);
    let hummocks = fractal(frame.scaled(cell, 28.0 * grain_m), seed ^ 9, 4);
    let noise = |part: u64| unit(seed ^ mix(3 * cell as u64 + part)) - 0.5;
    (0.14 + 0.26 * wood) * grain_m.sqrt() * hummocks
        + (0.035 + 0.035 * wood) * (noise(0) + noise(1) + noise(2))
}

/// Takes away the corner with the highest ground, along a ragged edge.
fn cut_corner(frame: &Frame, heights: &mut [f32], seed: u64) {
    let (width, last) = (frame.width, heights.len() - 1);
    let corners = [0, width - 1, last + 1 - width, last];
    let higher = |a: usize, b: usize| if heights[b] > heights[a] { b } else { a };
    let highest = corners.into_iter().fold(0, higher);
    let side = frame.width.min(frame.height) as f64;
    for (cell, height_m) in heights.iter_mut().enumerate() {
        let across = (cell % width).abs_diff(highest % width) as f64;
        let down = (cell / width).abs_diff(highest / width) as f64;
        let away = (0.8 * across + down) / side + 0.02 * unit(cell as u64 / 3);
        if away < 0.24 - 0.12 * fractal(frame.scaled(cell, 0.3 * side * frame.cell_m), seed, 5) {
            *height_m = f32::NAN;
        }
    }
}

/// A wave of period 1 between -1 and 1, close to a sine.
fn wave(turn: f64) -> f64 {
    let t = turn - turn.floor();
    10.4 * t * (1.0 - t) * (1.0 - 2.0 * t)
}

/// Gradient noise (Perlin 2002), rarely beyond ±0.7.
fn noise([x, y]: [f64; 2], seed: u64) -> f64 {
    let (left, top) = (x.floor(), y.floor());
    let (u, v) = (x - left, y - top);
    let corner = |dx: f64, dy: f64| {
        let bits = mix(seed ^ mix((left + dx) as i64 as u64 ^ mix((top + dy) as i64 as u64)));
        let slope = |bits: u64| (bits & 0xffff) as f64 / 32768.0 - 1.0;
        slope(bits) * (u - dx) + slope(bits >> 16) * (v - dy)
    };
    let fade = |t: f64| t * t * t * (t * (6.0 * t - 15.0) + 10.0);
    let blend = |a: f64, b: f64, t: f64| a + fade(t) * (b - a);
    let upper = blend(corner(0.0, 0.0), corner(1.0, 0.0), u);
    blend(upper, blend(corner(0.0, 1.0), corner(1.0, 1.0), u), v)
}

/// Octaves of noise, the first of half the unit, each turned so that no two lattices line up.
fn fractal(mut place: [f64; 2], seed: u64, octaves: u64) -> f64 {
    let (mut sum, mut weight) = (0.0, 1.0);
    for octave in 0..octaves {
        let [x, y] = place;
        place = [1.6 * x - 1.2 * y + 0.37, 1.2 * x + 1.6 * y + 0.71];
        sum += weight * noise(place, seed.wrapping_add(octave << 32));
        weight *= 0.5;
    }
    sum
}

/// `SplitMix64` (Steele et al. 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A number from 0 to below 1.
fn unit(key: u64) -> f64 {
    (mix(key) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(seed: u64, pixel_m: f64, nodata_corner: bool) -> Terrain {
        let mut recipe = Recipe::default();
        (recipe.width, recipe.height, recipe.seed) = (96, 72, seed);
        (recipe.pixel_m, recipe.nodata_corner) = (pixel_m, nodata_corner);
        generate(&recipe)
    }

    fn count(terrain: &Terrain, is: impl Fn(f32, bool) -> bool) -> usize {
        let pixels = terrain.heights.iter().zip(&terrain.water);
        pixels.filter(|(m, water)| is(**m, **water)).count()
    }

    #[test]
    fn a_recipe_gives_the_same_bytes_on_every_machine() {
        let hash = |hash: u64, m: &f32| mix(hash ^ u64::from(m.to_bits()));
        let first = small(1, 4.0, true).heights.iter().fold(0, hash);
        let second = small(2, 4.0, true).heights.iter().fold(0, hash);
        assert_eq!((first, first == second), (7_442_159_924_230_574_737, false));
    }

    #[test]
    fn data_is_missing_in_the_corner_alone() {
        let (whole, cut) = (small(3, 4.0, false), small(3, 4.0, true));
        assert_eq!(count(&whole, |m, _| m.is_finite()), 96 * 72);
        let gaps = count(&cut, |m, _| m.is_nan());
        assert!(gaps > 70 && gaps < 700, "{gaps}");
        let corners = [0, 95, 71 * 96, 72 * 96 - 1].map(|cell| cut.heights[cell].is_nan());
        assert_eq!(corners.iter().filter(|&&gap| gap).count(), 1);
    }

    #[test]
    fn the_lake_is_level_and_the_river_falls() {
        let terrain = small(4, 4.0, false);
        assert!(count(&terrain, |m, water| water && m.total_cmp(&420.0).is_eq()) > 60);
        assert!(count(&terrain, |m, water| water && m < 419.9) > 10);
        assert!(count(&terrain, |m, water| water && m > 420.1) > 10);
    }

    #[test]
    fn relief_grows_with_the_extent() {
        let (near, far) = (small(5, 1.0, false), small(5, 12.0, false));
        assert!(count(&near, |m, _| m > 425.0) > 0 && count(&near, |m, _| m > 435.0) == 0);
        assert!(count(&far, |m, _| m > 460.0) > 0 && count(&far, |m, _| m > 530.0) == 0);
    }
}
