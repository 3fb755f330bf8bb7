//! How a tree reaches what is asked of it: its step, its transform, and what its finest tiles add.

use terrane_context::{Quantiser, Transform};
use terrane_format::ParentMask;
use terrane_format::record::Layer;

use super::bounded::{self, Search};
use super::branch::{Branch, Place};
use super::encoder::{CodedTile, CodedTree, Leaves, Plan, TreeEncoder, record_of};
use super::source::TreeSource;
use crate::Error;
use crate::measured::Measured;
use crate::portable;
use crate::step_search::{Slope, StepSearch};
use crate::tile::{Candidate, FLOAT_MARGIN, Rate, SCALE_BYTES, TileHeights, residual};

/// How often a step is tried.
const MAX_TRIES: usize = 9;
/// The step of a tree with an error bound, in bounds: the best on the training tiles.
const BOUND_STEP: f64 = 2.6;
/// Above so many bits per pixel a tree with an error bound may be shorter as rounded heights without loss.
const ROUNDED_BPP: f64 = 1.7;
/// What heights without loss take at the least, as a part of what prediction from neighbours takes.
const LEAST_LOSSLESS: f64 = 0.6;
/// Floats without a step are worth a try as they are where a bound is below so many steps from one to the next.
const FLOATS: f64 = 64.0;
/// The longest step of a tile, in 16ths more than its tree's.
const MAX_COARSER: u16 = 16 * 63;
/// How much shorter the step of a tree is than one for all of it, so that its tiles find theirs above it.
const FINER: f64 = 1.4;
/// How far a finest tile may end below its target.
const NEAR: f64 = 0.01;
/// A finest tile's first guess of its step, in 16ths more than its tree's, and how much farther the next ones are.
const FIRST_COARSER: u16 = 6;
const FARTHER: u16 = 3;
/// How often a way between two quantisers is halved.
const HALVINGS: u32 = 6;
/// Symbols by their cost in bits and in error.
const BY_COST: Quantiser = Quantiser {
    lambda: 0.12,
    dead_zone: 0.0,
};
/// The nearest symbols: what costs more, and has no rates that it jumps over.
const NEAREST: Quantiser = Quantiser {
    lambda: 0.0,
    dead_zone: 0.12,
};

/// A part of the way from one quantiser to the nearest symbols.
fn towards_nearest(from: Quantiser, part: f64) -> Quantiser {
    Quantiser {
        lambda: from.lambda + part * (NEAREST.lambda - from.lambda),
        dead_zone: from.dead_zone + part * (NEAREST.dead_zone - from.dead_zone),
    }
}

impl TreeEncoder<'_> {
    /// How symbols are chosen where the mean square error counts.
    fn choice(&self) -> Quantiser {
        match self.encoder.effort {
            0 => NEAREST,
            _ => BY_COST,
        }
    }

    /// A tree by a wavelet at the encoder's rate; `None` where heights are beyond a wavelet.
    pub(super) fn code_wavelet(&self, source: &TreeSource) -> Result<Option<CodedTree>, Error> {
        if let Some(height) = flat(source) {
            // One step from nought: flat ground is exact at every level, at any rate.
            let height = self.encoder.flat_height(height);
            let step_m = if height == 0.0 { 1.0 } else { height.abs() };
            return self.rounded(source, step_m, Leaves::Free);
        }
        let first = self.pyramid.storey(source.root.level);
        let coded = match self.encoder.rate_of_storey(first, source.heights()) {
            Rate::Step(step_m) => self.lossy(source, step_m, self.choice(), Leaves::Free)?,
            Rate::MaxError(bound) => return self.within(source, bound),
            Rate::Lossless => return self.lossless(source),
            Rate::Rmse(target) => self.rmse(source, target)?,
            Rate::Bpp(target) => self.bpp(source, target)?,
            Rate::Tokens | Rate::Overview { .. } => None,
        };
        let bytes = coded.as_ref().map_or(usize::MAX, CodedTree::bytes);
        if first > 0 || !self.may_be_shorter(source, bytes)? {
            return Ok(coded);
        }
        // All heights without loss, where that is no longer.
        let exact = self.lossless(source)?;
        let is_reached = match &exact {
            Some(exact) => self.is_reached(source, exact)?,
            None => false,
        };
        Ok(shorter(exact.filter(|_| is_reached), coded))
    }

    /// Whether the finest tiles of a tree reach a rate of their own.
    fn is_reached(&self, source: &TreeSource, coded: &CodedTree) -> Result<bool, Error> {
        let finest = source.tiles(0);
        let first = coded.tiles.len() - finest.len();
        for (tile, coded) in finest.into_iter().zip(&coded.tiles[first..]) {
            if !self
                .encoder
                .is_reached(coded.bytes(), self.pyramid.window(tile)?)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn lossy(
        &self,
        source: &TreeSource,
        step_m: f64,
        quantiser: Quantiser,
        leaves: Leaves,
    ) -> Result<Option<CodedTree>, Error> {
        self.lossy_within(source, step_m, quantiser, leaves, Search::NONE)
    }

    fn lossy_within(
        &self,
        source: &TreeSource,
        step_m: f64,
        quantiser: Quantiser,
        leaves: Leaves,
        search: Search,
    ) -> Result<Option<CodedTree>, Error> {
        // As it will be stored.
        let step_m = f64::from(step_m as f32);
        let Some(scale) = Self::scale(source, Transform::Lossy, step_m) else {
            return Ok(None);
        };
        let plan = Plan {
            scale,
            quantiser,
            leaves,
            search,
        };
        self.code_plan(source, &plan)
    }

    /// Heights rounded to a step, and these without loss.
    fn rounded(
        &self,
        source: &TreeSource,
        step_m: f64,
        leaves: Leaves,
    ) -> Result<Option<CodedTree>, Error> {
        let Some(scale) = Self::scale(source, Transform::Lossless, step_m) else {
            return Ok(None);
        };
        let plan = Plan {
            scale,
            quantiser: Quantiser::ROUNDING,
            leaves,
            search: Search::NONE,
        };
        self.code_plan(source, &plan)
    }

    /// The finest of the steps that give tiles of the tree back, each by itself; 0 where none is.
    fn own_step(&self, source: &TreeSource) -> Result<f64, Error> {
        let mut own = 0.0_f64;
        for tile in source.tiles(0) {
            if let Some(heights) = source.tile(tile)? {
                let step = heights.exact_step(self.encoder.is_f32);
                if step > 0.0 && (own == 0.0 || step < own) {
                    own = step;
                }
            }
        }
        Ok(own)
    }

    fn lossless(&self, source: &TreeSource) -> Result<Option<CodedTree>, Error> {
        let own = self.own_step(source)?;
        if own > 0.0
            && let Some(coded) = self.rounded(source, own, Leaves::Within(0.0))?
        {
            return Ok(Some(coded));
        }
        // Floats without a step: their overviews are those of a lossy tree, and the heights themselves are kept as bits.
        let bound = self.encoder.overview_bound(source.heights(), 0.0, 1);
        self.lossy(
            source,
            BOUND_STEP * bound,
            self.choice(),
            Leaves::Within(0.0),
        )
    }

    /// The shortest of what keeps a bound: a wavelet with what it leaves over, or rounded heights without loss.
    fn within(&self, source: &TreeSource, bound: f64) -> Result<Option<CodedTree>, Error> {
        let max = source
            .valid()
            .fold(0.0_f64, |max, height| max.max(height.abs()));
        let within = bound - FLOAT_MARGIN * (max + bound);
        if within <= 0.0 {
            // A bound below what floats tell apart.
            return self.lossless(source);
        }
        let (steps, searches, rounds): (&[f64], usize, usize) = match self.encoder.effort {
            0 => (&[BOUND_STEP], 0, 1),
            1 => (&[BOUND_STEP], 1, 2),
            2 => (&[BOUND_STEP], 3, 3),
            _ => (&[2.0, BOUND_STEP, 3.2], 4, 4),
        };
        let search = Search { searches, rounds };
        let quantiser = match self.encoder.effort {
            0 => Quantiser {
                lambda: 0.0,
                dead_zone: 0.1,
            },
            _ => Quantiser {
                lambda: 0.1,
                dead_zone: 0.0,
            },
        };
        let leaves = Leaves::Within(within);
        let mut best = None;
        for &step in steps {
            let coded = self.lossy_within(source, step * bound, quantiser, leaves, search)?;
            best = shorter(best, coded);
        }
        let bytes = best.as_ref().map_or(usize::MAX, CodedTree::bytes);
        // A source that is as coarse as its bound is shortest as it is: rounding to another step adds noise.
        let own = self.own_step(source)?;
        let is_fine = own > 0.0 || within < FLOATS * self.encoder.float_step(max);
        let tries_exact = own >= within || is_fine && self.may_be_shorter(source, bytes)?;
        let pixels = source.valid().count();
        if bytes as f64 * 8.0 > ROUNDED_BPP * pixels as f64 && own != 2.0 * within {
            best = shorter(best, self.rounded(source, 2.0 * within, leaves)?);
        }
        if tries_exact {
            let exact = if own > 0.0 {
                self.rounded(source, own, leaves)?
            } else {
                self.lossless(source)?
            };
            best = shorter(exact, best);
        }
        Ok(best)
    }

    /// Whether heights without loss may take no more bytes than a tree does.
    fn may_be_shorter(&self, source: &TreeSource, bytes: usize) -> Result<bool, Error> {
        let mut sum = 0.0;
        for tile in source.tiles(0) {
            // A tile of one height takes next to nothing.
            let heights = source.tile(tile)?;
            if let Some(heights) = heights.filter(|heights| heights.flat().is_none()) {
                let step_m = self.encoder.integer_step(&heights, Rate::Lossless);
                let integers = self.encoder.encode_integers(&heights, step_m);
                let record = integers.record(&heights, None);
                let layer = record.map_or(0, |record| record.parts().layer) as f64;
                sum += if step_m > 0.0 {
                    LEAST_LOSSLESS * (layer - SCALE_BYTES)
                } else {
                    // Without a step, there is nothing but the bits of heights.
                    layer
                };
                if sum > bytes as f64 {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The tree at the step at which what is measured reaches its target; `near` is how far off it may be, in natural
    /// logarithms. Also gives the step.
    fn search(
        &self,
        source: &TreeSource,
        (mut first_m, target, slope): (f64, f64, Slope),
        near: f64,
        measure: impl Fn(&CodedTree) -> f64,
    ) -> Result<Option<(f64, CodedTree)>, Error> {
        let mut best: Option<(f64, f64, CodedTree)> = None;
        let own = self.choice();
        // Where the rate jumps over the target, the nearest symbols are chosen.
        let others = (own != NEAREST).then_some(NEAREST);
        for quantiser in [own].into_iter().chain(others) {
            let mut steps = StepSearch::new(first_m, target, slope);
            for _ in 0..MAX_TRIES {
                let step_m = steps.step();
                let Some(coded) = self.lossy(source, step_m, quantiser, Leaves::Free)? else {
                    return Ok(best.map(|(_, step_m, coded)| (step_m, coded)));
                };
                let reached = measure(&coded);
                let miss = steps.miss(reached);
                // Above the target only where nothing below was found.
                let distance = if miss > near { 10.0 + miss } else { miss.abs() };
                if best.as_ref().is_none_or(|(least, ..)| distance < *least) {
                    best = Some((distance, step_m, coded));
                }
                if miss.abs() <= near || !steps.correct(reached) {
                    break;
                }
            }
            match &best {
                Some((distance, step_m, _)) if *distance > near => first_m = *step_m,
                _ => break,
            }
        }
        Ok(best.map(|(_, step_m, coded)| (step_m, coded)))
    }

    /// A root mean square error in every finest tile.
    fn rmse(&self, source: &TreeSource, target: f64) -> Result<Option<CodedTree>, Error> {
        let aim = target * 0.996;
        let slope = Slope {
            first: 0.8,
            min: 0.15,
            max: 3.0,
            contradicted: 0.15,
        };
        let is_alone = source.depth() == 0;
        let near = if is_alone { 0.004 } else { 0.05 };
        let finest = finest_tiles(source);
        let found = self.search(source, (aim * 3.0, aim, slope), near, |coded| {
            rmse(coded.tiles.iter().rev().take(finest))
        })?;
        let Some((mut step_m, coded)) = found else {
            return Ok(None);
        };
        if is_alone {
            return Ok(Some(coded));
        }
        let mut best = None;
        for _ in 0..MAX_TRIES {
            step_m /= FINER;
            best = self.lossy(source, step_m, self.choice(), Leaves::Rmse(aim))?;
            let worst = best
                .iter()
                .flat_map(|coded| coded.tiles.iter().rev().take(finest));
            if worst.map(|tile| tile.measured.rmse_m()).fold(0.0, f64::max) <= target {
                break;
            }
        }
        Ok(best)
    }

    /// Bits per pixel in every finest tile, with its share of the tiles above it.
    fn bpp(&self, source: &TreeSource, target: f64) -> Result<Option<CodedTree>, Error> {
        let aim = target * 0.991;
        let slope = Slope {
            first: -0.6,
            min: 0.15,
            max: 4.0,
            contradicted: 0.15,
        };
        let first = roughness(source) * portable::exp2((2.0 - aim).clamp(-8.0, 3.0));
        let pixels = source.heights().len() as f64;
        // Where there is room for all heights as they are, nothing is lost.
        let room = (target * pixels / 8.0) as usize;
        let first_level = self.pyramid.storey(source.root.level);
        let exact = if first_level > 0 {
            // Overviews are no finer than those of a file without loss.
            let step_m = 2.0
                * self
                    .encoder
                    .overview_bound(source.heights(), 0.0, first_level);
            self.lossy(source, step_m, self.choice(), Leaves::Free)?
        } else if self.may_be_shorter(source, room)? {
            self.lossless(source)?
        } else {
            None
        };
        if let Some(exact) = exact
            && exact.bytes() <= room
            && (first_level > 0 || self.is_reached(source, &exact)?)
        {
            return Ok(Some(exact));
        }
        let bpp = |coded: &CodedTree| coded.bytes() as f64 * 8.0 / pixels;
        let is_alone = source.depth() == 0;
        let near = if is_alone { 0.009 } else { 0.05 };
        let found = self.search(source, (first, aim, slope), near, bpp)?;
        let Some((first, coded)) = found else {
            return Ok(None);
        };
        if is_alone {
            return Ok(Some(coded));
        }
        // The finer the tree's step is, the more tiles find theirs above it, and the less the tiles above leave to them.
        let finer: f64 = FINER;
        let mut best: Option<(f64, CodedTree)> = None;
        for finer in [finer, finer * finer, finer.sqrt(), finer.sqrt().sqrt()] {
            let step_m = first / finer;
            let Some(free) = self.lossy(source, step_m, self.choice(), Leaves::Free)? else {
                continue;
            };
            let above = free.tiles.len() - finest_tiles(source);
            let above: usize = free.tiles[..above].iter().map(CodedTile::bytes).sum();
            // The finest tiles end below what they aim at, by up to a hundredth.
            let own = target * 0.999 - above as f64 * 8.0 / pixels;
            if own > 0.0
                && let Some(coded) = self.lossy(source, step_m, self.choice(), Leaves::Bpp(own))?
                && coded.bytes() <= room
            {
                // Where the tree's step is too long for a tile, it stays short of its rate.
                let least = self.least_bpp(source, &coded)?;
                if least >= own * (1.0 - 2.0 * NEAR) {
                    return Ok(Some(coded));
                }
                if best.as_ref().is_none_or(|(most, _)| least > *most) {
                    best = Some((least, coded));
                }
            }
        }
        if let Some((_, coded)) = best {
            return Ok(Some(coded));
        }
        // One step for all.
        let found = self.search(source, (first, aim, slope), 0.009, bpp)?;
        Ok(found.map(|(_, coded)| coded))
    }

    /// The least bits per pixel that a finest tile takes.
    fn least_bpp(&self, source: &TreeSource, coded: &CodedTree) -> Result<f64, Error> {
        let finest = source.tiles(0);
        let first = coded.tiles.len() - finest.len();
        let mut least = f64::INFINITY;
        for (tile, coded) in finest.into_iter().zip(&coded.tiles[first..]) {
            let window = self.pyramid.window(tile)?;
            let pixels = (window.width * window.height) as f64;
            least = least.min(coded.bytes() as f64 * 8.0 / pixels);
        }
        Ok(least)
    }

    /// The step of its own at which a finest tile reaches what it must, and where steps of 16ths leave it short of that, a
    /// quantiser between its own and the nearest symbols.
    pub(super) fn search_leaf(
        leaves: Leaves,
        place: &Place,
        own: Quantiser,
        code: impl Fn(u16, Quantiser) -> Option<CodedTile>,
    ) -> Option<CodedTile> {
        let pixels = (place.window.width * place.window.height) as f64;
        // As a part of the target.
        let reached = |coded: &CodedTile| match leaves {
            Leaves::Rmse(target) => coded.measured.rmse_m() / target,
            Leaves::Bpp(target) => coded.bytes() as f64 * 8.0 / pixels / target,
            Leaves::Free | Leaves::Within(_) => 1.0,
        };
        let is_within = |coded: &CodedTile| reached(coded) <= 1.0;
        // Whether a longer step is still right, or needed.
        let is_rate = matches!(leaves, Leaves::Bpp(_));
        let may_be_longer = |coded: &CodedTile| is_within(coded) != is_rate;
        // What is farthest within the target; the nearest where none is.
        let better = |a: CodedTile, b: CodedTile| {
            let is_better = match (is_within(&a), is_within(&b)) {
                (true, true) => reached(&b) > reached(&a),
                (false, false) => reached(&b) < reached(&a),
                (_, is_within) => is_within,
            };
            if is_better { b } else { a }
        };
        let mut best = code(0, own)?;
        let (mut low, mut high) = (0, 0);
        if may_be_longer(&best) {
            let mut next = FIRST_COARSER;
            while low < MAX_COARSER && high == 0 {
                let coded = code(next, own)?;
                if may_be_longer(&coded) {
                    low = next;
                    next = (FARTHER * next).min(MAX_COARSER);
                } else {
                    high = next;
                }
                best = better(best, coded);
            }
            if high == 0 {
                return Some(best);
            }
        }
        while high > low + 1 {
            // By the geometric mean of the steps.
            let [a, b] = [low, high].map(|coarser| f64::from(coarser) + 16.0);
            let middle = ((a * b).sqrt() - 16.0).round() as u16;
            let middle = middle.clamp(low + 1, high - 1);
            let coded = code(middle, own)?;
            if may_be_longer(&coded) {
                low = middle;
            } else {
                high = middle;
            }
            best = better(best, coded);
        }
        let is_near = |coded: &CodedTile| is_within(coded) && reached(coded) >= 1.0 - NEAR;
        let (mut least, mut most) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            if own == NEAREST || is_near(&best) {
                break;
            }
            let middle = f64::midpoint(least, most);
            let coded = code(high, towards_nearest(own, middle))?;
            // Nearer symbols take more bits and have less error.
            if is_within(&coded) == is_rate {
                least = middle;
            } else {
                most = middle;
            }
            best = better(best, coded);
        }
        Some(best)
    }

    /// A finest tile, or its heights as integers without loss where these are no longer.
    pub(super) fn or_exact(
        &self,
        heights: &TileHeights,
        coded: CodedTile,
        mask: &ParentMask,
    ) -> CodedTile {
        let step_m = self.encoder.integer_step(heights, Rate::Lossless);
        let exact = self.encoder.encode_integers(heights, step_m);
        let exact = CodedTile {
            record: record_of(heights, &exact, Some(mask)),
            measured: heights.measure(&exact.heights),
        };
        if exact.bytes() <= coded.bytes() {
            exact
        } else {
            coded
        }
    }

    /// A finest tile: what its layer decodes to, and what is added to that; or integers where they are shorter or
    /// nothing else gives it back.
    pub(super) fn leaf(
        &self,
        heights: &TileHeights,
        layer: Option<Layer>,
        branch: &Branch,
        plan: &Plan,
        mask: Option<&ParentMask>,
    ) -> CodedTile {
        let is_lossy = plan.scale.transform == Transform::Lossy;
        let rate = self.encoder.rate;
        let mut coded = Candidate::of_layer(layer, branch.tile.heights.clone());
        if !is_lossy && rate == Rate::Lossless {
            self.encoder.round_to_source(&mut coded.heights);
        }
        let within = match plan.leaves {
            Leaves::Within(within) => within,
            Leaves::Free | Leaves::Rmse(_) | Leaves::Bpp(_) => f64::INFINITY,
        };
        if is_lossy && within > 0.0 && within.is_finite() {
            // What water takes needs no corrections.
            let mut flat = coded.heights.clone();
            heights.flatten(&mut flat);
            let rounds = plan.search.rounds;
            coded.corrections = bounded::corrections(heights, &flat, within, rounds);
            if let Some(corrections) = &coded.corrections {
                residual::correct(&mut coded.heights, corrections, heights.window.width);
            }
        }
        coded.flatten(heights);
        let finish = |candidate: &Candidate| {
            let record = record_of(heights, candidate, mask);
            let measured = heights.measure(&candidate.heights);
            CodedTile { record, measured }
        };
        if let Some(height) = heights.flat() {
            // Water stays flat, at its height, at any rate.
            let level = self.encoder.flat_height(height);
            let is_flat = heights
                .valid(&coded.heights)
                .all(|decoded| self.encoder.is_flat_height(decoded, level));
            let flat = finish(&self.encoder.encode_flat(heights, height));
            let own = finish(&coded);
            return if is_flat && own.bytes() < flat.bytes() {
                own
            } else {
                flat
            };
        }
        let is_exact = within == 0.0;
        if is_exact && heights.has_negative_zero() {
            return finish(&self.encoder.encode_integers(heights, 0.0));
        }
        let mut best = finish(&coded);
        if within.is_infinite() {
            return best;
        }
        let floats = if self.encoder.is_f32 && rate != Rate::Lossless {
            FLOAT_MARGIN * heights.max_abs()
        } else {
            0.0
        };
        let limit = match rate {
            Rate::MaxError(bound) if is_exact => bound.min(floats),
            Rate::MaxError(bound) => bound,
            _ => floats,
        };
        let mut holds = best.measured.max_error_m <= if is_exact { limit } else { within };
        // What defeats a wavelet (noise, spikes) may be shorter as integers.
        let exact_step = self.encoder.integer_step(heights, Rate::Lossless);
        let mut steps = if is_exact {
            vec![exact_step]
        } else {
            self.encoder.integer_steps(heights, rate)
        };
        if !is_lossy {
            // Where a tree keeps the source's own step, so may its tiles.
            for step_m in [plan.scale.step_m, exact_step] {
                if !steps.contains(&step_m) {
                    steps.push(step_m);
                }
            }
        }
        for step_m in steps {
            let integers = finish(&self.encoder.encode_integers(heights, step_m));
            let is_within = integers.measured.max_error_m <= limit;
            if is_within && (!holds || integers.bytes() < best.bytes()) {
                (holds, best) = (true, integers);
            }
        }
        if !holds && is_exact {
            // A bound below what decimals of 32 bits differ from their floats.
            best = finish(&self.encoder.encode_integers(heights, 0.0));
        }
        best
    }
}

/// The height of all valid pixels of a tree, where it is one.
fn flat(source: &TreeSource) -> Option<f64> {
    let mut valid = source.valid();
    let first = valid.next()?;
    valid
        .all(|height| height.to_bits() == first.to_bits())
        .then_some(first)
}

/// The shorter of two trees; the first where both are as long.
fn shorter(first: Option<CodedTree>, second: Option<CodedTree>) -> Option<CodedTree> {
    first.into_iter().chain(second).min_by_key(CodedTree::bytes)
}

/// How many finest tiles a tree has; they come last.
fn finest_tiles(source: &TreeSource) -> usize {
    source.tiles(0).len()
}

fn rmse<'a>(tiles: impl Iterator<Item = &'a CodedTile>) -> f64 {
    let mut measured = Measured::default();
    for tile in tiles {
        measured.join(&tile.measured);
    }
    measured.rmse_m()
}

/// A typical difference of neighbours from a plane: the scale of what a low rate loses.
fn roughness(source: &TreeSource) -> f64 {
    let rows = source.heights().chunks(source.window(0).width);
    let (sum, count) = rows
        .flat_map(|row| row.windows(3))
        .map(|three| three[0] - 2.0 * three[1] + three[2])
        .filter(|bend| !bend.is_nan())
        .fold((0.0, 0.0), |(sum, count), bend| {
            (sum + bend * bend, count + 1.0)
        });
    let bend: f64 = sum / f64::max(count, 1.0);
    bend.sqrt().max(1e-4)
}
