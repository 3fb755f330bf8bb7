//! A generated terrain, for tests, examples and pictures: eroded hills, a river, a lake, a road.
//!
//! Only `+ - * /`, square roots and rounding take part, which IEEE 754 fixes to the bit, for each
//! pixel in one order whatever the number of threads: a recipe gives the same bytes on every machine.

mod brinks;
mod erosion;
mod noise;

use rayon::prelude::*;

use erosion::Land;
use noise::{Fractal, Noise, mix, unit, wave};

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

impl Recipe {
    /// How many times its short side doubles 1024 pixels. Each time erosion begins on cells of twice the size, and the
    /// finest ones are worked on less: time would else grow faster than the picture.
    fn doublings(&self) -> usize {
        let short = self.width.min(self.height);
        (short.max(1).ilog2() as usize).saturating_sub(10)
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
    // Among the threads from the beginning: to go there for each of many small tasks would cost more than they do.
    rayon::scope(|_| make(recipe))
}

fn make(recipe: &Recipe) -> Terrain {
    let (width, height, seed) = (recipe.width, recipe.height, mix(recipe.seed));
    let valley = Valley::new(recipe);
    let frame = Frame::new(width, height, recipe.pixel_m, 0.0);
    let grain_m = frame.cell_m.max(1.0);
    let mut land = erode(recipe, &valley).resample(frame);
    land.raise(LAKE_M as f32, || {
        let mut hills = Fractal::new(seed, 4);
        move |cell| 2.0 * grain_m.sqrt() * hills.at(frame.scaled(cell, 60.0 * grain_m))
    });
    land.hold(|_, height_m| (height_m <= LAKE_M as f32).then_some(LAKE_M));
    let times: &[f64] = if recipe.doublings() == 0 {
        &[0.12, 0.12]
    } else {
        &[0.24]
    };
    for &time in times {
        land.step(time, 0.0, 10.0 * grain_m);
    }
    land.raise(LAKE_M as f32, || texture(frame, seed));
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

    /// The position of a cell, in units of `unit_m`.
    fn scaled(&self, cell: usize, unit_m: f64) -> [f64; 2] {
        let position = |index: usize| (self.origin_m + index as f64 * self.cell_m) / unit_m;
        [position(cell % self.width), position(cell / self.width)]
    }

    /// The neighbours of a cell; those of an edge may lie on another edge or nowhere.
    fn neighbours(&self, cell: usize) -> [usize; 8] {
        let (left, right) = (cell.wrapping_sub(1), cell.wrapping_add(1));
        let up = |cell: usize| cell.wrapping_sub(self.width);
        let down = |cell: usize| cell.wrapping_add(self.width);
        let [upper, lower] = [up(cell), down(cell)];
        [
            left,
            right,
            upper,
            lower,
            up(left),
            up(right),
            down(left),
            down(right),
        ]
    }

    /// How many rows are worth a thread of their own.
    fn worthwhile_rows(&self) -> usize {
        (1_usize << 14).div_ceil(self.width)
    }

    /// Works on each row by itself, given its first cell.
    fn by_rows<T: Send>(&self, cells: &mut [T], work: impl Fn(usize, &mut [T]) + Sync) {
        let rows = cells.par_chunks_mut(self.width).enumerate();
        let rows = rows.with_min_len(self.worthwhile_rows());
        rows.for_each(|(row, line)| work(row * self.width, line));
    }
}

/// Distance to a course `[x, y, value]`, infinite beyond the radius, and the value there, for each cell.
fn near(course: &[[f64; 3]], frame: &Frame, radius_m: f64) -> Vec<[f32; 2]> {
    let mut near = vec![[f32::INFINITY, 0.0]; frame.len()];
    let cells = |a: f64, b: f64, count: usize| {
        let index = |m: f64| ((m - frame.origin_m) / frame.cell_m).max(0.0) as usize;
        index(a.min(b) - radius_m).min(count)..(index(a.max(b) + radius_m) + 2).min(count)
    };
    frame.by_rows(&mut near, |first, line| {
        let y = first / frame.width;
        for pair in course.windows(2) {
            let ([ax, ay, from], [bx, by, to]) = (pair[0], pair[1]);
            if !cells(ay, by, frame.height).contains(&y) {
                continue;
            }
            let (dx, dy) = (bx - ax, by - ay);
            for x in cells(ax, bx, frame.width) {
                let [px, py] = frame.scaled(first + x, 1.0);
                let share = ((px - ax) * dx + (py - ay) * dy) / (dx * dx + dy * dy + 1e-9);
                let share = share.clamp(0.0, 1.0);
                let (ex, ey) = (px - ax - share * dx, py - ay - share * dy);
                let distance = (ex * ex + ey * ey).sqrt();
                if distance <= radius_m && distance < f64::from(line[x][0]) {
                    line[x] = [distance, from + share * (to - from)].map(|m| m as f32);
                }
            }
        }
    });
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
            let bend = 0.4 * Fractal::new(seed ^ 1, 2).at([point[long] / span_m, 0.5]);
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
        if distance == f32::INFINITY {
            return None;
        }
        let (distance, along) = (f64::from(distance) / self.span_m, f64::from(along));
        let wobble = Fractal::new(self.seed ^ 2, 3).at(frame.scaled(cell, 0.24 * self.span_m));
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
    fn point(&self, along_m: f64, aside: [f64; 2]) -> [f64; 3] {
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
        let mut points: Vec<_> = lengths.map(|m| self.point(m, aside(m))).collect();
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
                let drift = Fractal::new(seed, 2).at([along / (6.0 * wave_m), 0.3]);
                let turn = along / wave_m + 1.5 * drift;
                let swing = 0.6 + 0.6 * Noise::new(seed ^ 1).at([along / (2.5 * wave_m), 0.7]);
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
            let climb = Noise::new(self.seed ^ 4).at([along / (0.4 * self.span_m), 0.9]);
            self.water_m(along) + self.root * (BANK + 0.04 + 0.05 * climb)
        };
        let ground_m = |[x, y, _]: [f64; 3]| {
            let index = |m: f64, count: usize| ((m / frame.cell_m) as usize).min(count - 1);
            f64::from(land.heights[index(y, frame.height) * frame.width + index(x, frame.width)])
        };
        let course = self.beside(130, |along| {
            let offset = |step: i32| [0.0, side * self.span_m * 0.004 * f64::from(step)];
            let foot_m = deck_m(along) + 1.0;
            let foot = (10..30).find(|&step| ground_m(self.point(along, offset(step))) > foot_m);
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

/// Erodes a rolling upland around the valley, on coarse cells first and then on finer ones.
fn erode(recipe: &Recipe, valley: &Valley) -> Land {
    let (span_m, pixel_m) = (valley.span_m, recipe.pixel_m);
    let (grain_m, kilometres) = (pixel_m.max(1.0), span_m / 1000.0);
    let growth = kilometres.sqrt() * (kilometres.min(1.0) * grain_m).sqrt().sqrt();
    let relief_m = 1.15 * growth * recipe.relief_m;
    let levels = 2 + usize::from(recipe.width.min(recipe.height) >= 256) + recipe.doublings();
    let mut cell_m = pixel_m * f64::from(1 << levels);
    let [width, height] = [recipe.width, recipe.height]
        .map(|count| ((count as f64 * pixel_m + 2.0 * PAD * span_m) / cell_m) as usize + 2);
    let origin_m = -PAD * span_m;
    let frame = Frame::new(width, height, cell_m, origin_m);
    let far = near(&valley.axis, &frame, 3.0 * span_m);
    let far = &far;
    let mut land = Land::new(frame, || {
        let mut rough = Fractal::new(valley.seed ^ 6, 6);
        move |cell| {
            let far = f64::from(far[cell][0]) / span_m;
            let rough = rough.at(frame.scaled(cell, 0.8 * span_m));
            let share = 0.05 + 0.8 * far / (far + 0.35) + 0.6 * rough;
            (LAKE_M + relief_m * share.max(0.02)) as f32
        }
    });
    let rounds = [(90, 0.1), (15, 0.05), (5, 0.05), (2, 0.05)].into_iter();
    for (rounds, time) in rounds.chain(std::iter::repeat((1, 0.05))).take(levels) {
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

/// What a survey shows at its finest: hummocks, rougher under trees, and its own noise.
fn texture(frame: Frame, seed: u64) -> impl FnMut(usize) -> f64 {
    let grain_m = frame.cell_m.max(1.0);
    let (mut woods, mut hummocks) = (Fractal::new(seed ^ 8, 3), Fractal::new(seed ^ 9, 4));
    move |cell| {
        let wood = woods.at(frame.scaled(cell, 260.0 * grain_m.sqrt()));
        let wood = (0.5 + 1.5 * wood).clamp(0.0, 1.0);
        let hummocks = hummocks.at(frame.scaled(cell, 28.0 * grain_m));
        let noise = |part: u64| unit(seed ^ mix(3 * cell as u64 + part)) - 0.5;
        (0.14 + 0.26 * wood) * grain_m.sqrt() * hummocks
            + (0.035 + 0.035 * wood) * (noise(0) + noise(1) + noise(2))
    }
}

/// Takes away the corner with the highest ground, along a ragged edge.
fn cut_corner(frame: &Frame, heights: &mut [f32], seed: u64) {
    let (width, last) = (frame.width, heights.len() - 1);
    let corners = [0, width - 1, last + 1 - width, last];
    let higher = |a: usize, b: usize| if heights[b] > heights[a] { b } else { a };
    let highest = corners.into_iter().fold(0, higher);
    let side = frame.width.min(frame.height) as f64;
    frame.by_rows(heights, |first, line| {
        let mut edge = Fractal::new(seed, 5);
        for (cell, height_m) in (first..).zip(line) {
            let across = (cell % width).abs_diff(highest % width) as f64;
            let down = (cell / width).abs_diff(highest / width) as f64;
            let away = (0.8 * across + down) / side + 0.02 * unit(cell as u64 / 3);
            // Noise never reaches 4.
            if away < 0.72
                && away < 0.24 - 0.12 * edge.at(frame.scaled(cell, 0.3 * side * frame.cell_m))
            {
                *height_m = f32::NAN;
            }
        }
    });
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
        let recipe = Recipe {
            width: 300,
            height: 260,
            ..Recipe::default()
        };
        let large = generate(&recipe).heights.iter().fold(0, hash);
        assert_eq!(large, 1_155_338_226_322_259_049);
    }

    #[test]
    fn only_large_pictures_begin_on_larger_cells() {
        let doublings = |width, height| {
            let recipe = Recipe {
                width,
                height,
                ..Recipe::default()
            };
            recipe.doublings()
        };
        assert_eq!(doublings(1024, 768), 0);
        assert_eq!(doublings(9000, 2047), 0);
        assert_eq!(doublings(2048, 2048), 1);
        assert_eq!(doublings(8192, 4096), 2);
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
