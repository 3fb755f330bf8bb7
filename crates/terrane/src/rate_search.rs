//! The step of a whole file at a rate: tried until what is measured of the file is near its target.
//!
//! A rate is nearly a power of the step, but it may jump: symbols that are chosen by their cost in bits become zeros all at
//! once where the ground is noise, for then zeros are what their neighbours announce. Where no step comes near its target
//! the search goes on without such a choice, as `effort` 0 does, where a rate goes down step by step.

use terrane_codec::encode::Report;
use terrane_codec::format::{Stored, Window};
use terrane_codec::step_search::{Slope, StepSearch};
use terrane_codec::{Measured, Rate, exact_step};
use terrane_geo::RasterSource;

use crate::encode::{Encoded, Job, Made};
use crate::{Error, Result};

/// How near a rate comes to what is aimed at: the first tries, later ones below it, and what is returned at all.
const NEAR: f64 = 0.0015;
const FIRST_TRIES: usize = 5;
const NEAR_BELOW: f64 = 0.01;
const WITHIN: f64 = 0.02;
/// What is aimed at, as a part of the target: what is near it is not above the target.
const AIM: f64 = 1.0 - NEAR;
/// How often a step is tried with one effort.
const MAX_TRIES: usize = 24;
/// Steps of fewer of the source's own may take more bytes than all heights as they are.
const OWN_STEPS: f64 = 2.0;
/// The same in units of the last place, where heights have no step.
const LAST_PLACES: f64 = 4.0;
/// A step of more than so many times the range of heights leaves nothing of them.
const RANGES: f64 = 4.0;
/// The finest step, as a part of the highest height.
const FINEST: f64 = 1.0 / 68_719_476_736.0;
/// Windows on each axis in which a source's own step is looked for, and their side.
const WINDOWS: usize = 3;
const WINDOW_SIDE: usize = 64;

/// How a file stands to the rate or the error that it was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reached {
    /// It has what was asked for.
    #[default]
    Target,
    /// It has no error at all, which takes no more bytes than what was asked for.
    Lossless,
    /// It has less error than was asked for, and no file of the raster is smaller.
    Smallest,
}

impl Reached {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Lossless => "lossless",
            Self::Smallest => "smallest",
        }
    }

    /// What a user should know of it.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::Target => None,
            Self::Lossless => {
                Some("the file is lossless, which takes no more bytes than what was asked for")
            }
            Self::Smallest => Some(
                "the error is smaller than what was asked for: no file of this raster is smaller",
            ),
        }
    }
}

/// What the whole file is to have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// Bits per pixel.
    Bpp(f64),
    /// A root mean square error in metres.
    Rmse(f64),
}

impl Goal {
    fn target(self) -> f64 {
        match self {
            Self::Bpp(target) | Self::Rmse(target) => target,
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Bpp(_) => "rate (with head and overviews)",
            Self::Rmse(_) => "root mean square error",
        }
    }

    fn measure(self, encoded: &Encoded) -> f64 {
        match self {
            Self::Bpp(_) => encoded.bytes as f64 * 8.0 / encoded.measured.pixels.max(1) as f64,
            Self::Rmse(_) => encoded.measured.rmse_m(),
        }
    }

    /// The first step to try, of heights that their source holds in steps of so many metres, or 0.
    fn first_m(self, source_step_m: f64) -> f64 {
        match self {
            Self::Bpp(_) => (4.0 * source_step_m).max(0.1),
            Self::Rmse(target) => 3.0 * target,
        }
    }

    fn steps(self, first_m: f64) -> StepSearch {
        let first: f64 = match self {
            Self::Bpp(_) => -0.6,
            Self::Rmse(_) => 0.8,
        };
        let slope = Slope {
            first,
            min: 0.1,
            max: 4.0,
            contradicted: first.abs(),
        };
        StepSearch::new(first_m, self.target() * AIM, slope)
    }
}

/// A file that was tried.
#[derive(Debug, Clone, Copy)]
struct Try {
    rate: Rate,
    effort: u8,
    value: f64,
    bytes: u64,
}

/// A search for a file, with what was found so far.
pub(crate) struct RateSearch<'a> {
    job: &'a Job<'a>,
    goal: Goal,
    tries: Vec<Try>,
    /// Below this step the lossless file may take fewer bytes; known after the first try.
    own_m: Option<f64>,
    /// The finest and the coarsest step.
    limits: [f64; 2],
}

impl<'a> RateSearch<'a> {
    pub(crate) fn new(job: &'a Job<'a>, goal: Goal) -> Self {
        Self {
            job,
            goal,
            tries: Vec::new(),
            own_m: None,
            limits: [0.0, f64::INFINITY],
        }
    }

    /// The file whose measure is nearest its target; an error where none comes near.
    pub(crate) fn run(mut self, progress: &mut Report) -> Result<Made> {
        let prepared = self.job.prepared;
        let (_, encoder) = prepared.start(self.job.raster.info(), prepared.rate)?;
        let has_choice = prepared.method.stored() == Stored::Wavelet && encoder.effort > 0;
        let mut first_m = self.goal.first_m(encoder.source_step_m);
        for effort in [Some(encoder.effort), has_choice.then_some(0)]
            .into_iter()
            .flatten()
        {
            let mut steps = self.goal.steps(first_m);
            for turn in 1..=MAX_TRIES {
                let step_m = steps.step();
                if let Some(made) = self.lossless_above(step_m, progress)? {
                    return Ok(made);
                }
                let made = self.attempt(Rate::Step(step_m), effort, progress)?;
                let measured = made.encoded.measured;
                if measured.pixels == 0 {
                    return Ok(made);
                }
                self.learn(&measured, encoder.source_step_m, encoder.is_f32)?;
                let [finest, coarsest] = self.limits;
                steps.limit(finest, coarsest);
                let value = self.goal.measure(&made.encoded);
                let miss = steps.miss(value);
                let below = if turn > FIRST_TRIES { NEAR_BELOW } else { NEAR };
                let is_near = (-below..=NEAR).contains(&miss);
                if self.may_be_lossless(&made, step_m, is_near) {
                    drop(made);
                    if let Some(made) = self.lossless(progress)? {
                        return Ok(made);
                    }
                    if is_near {
                        return self.job.run(Rate::Step(step_m), effort, progress);
                    }
                } else if is_near {
                    return Ok(made);
                }
                if !steps.correct(value) {
                    break;
                }
            }
            if let Some(found) = self.nearest_within() {
                return self.again(found, progress);
            }
            let [below, above] = self.nearest();
            let is_past_the_smallest = match self.goal {
                Goal::Bpp(_) => below.is_none(),
                Goal::Rmse(_) => above.is_none(),
            };
            if is_past_the_smallest {
                break;
            }
            first_m = steps.step();
        }
        self.finish(progress)
    }

    /// What there is to have where no step comes near the target.
    fn finish(&mut self, progress: &mut Report) -> Result<Made> {
        if self.lossless_try().is_none()
            && let Some(made) = self.lossless(progress)?
        {
            return Ok(made);
        }
        if let Some((found, reached)) = self.instead() {
            let mut made = self.again(found, progress)?;
            made.encoded.reached = reached;
            return Ok(made);
        }
        let [below, above] = self.nearest();
        Err(Error::Unreachable {
            what: self.goal.what(),
            target: self.goal.target(),
            below: below.map(|found| found.value),
            above: above.map(|found| found.value),
        })
    }

    /// What is no worse than what was asked for, where that is not there.
    fn instead(&self) -> Option<(Try, Reached)> {
        let lossless = self.lossless_try();
        if let Goal::Bpp(_) = self.goal {
            // The lossless file, which takes hardly more.
            return Some((self.nearest_within()?, Reached::Lossless));
        }
        let [below, above] = self.nearest();
        let below = below?;
        match lossless {
            Some(lossless) if lossless.bytes <= below.bytes => Some((lossless, Reached::Lossless)),
            _ => above.is_none().then_some((below, Reached::Smallest)),
        }
    }

    /// Makes a file again that was tried.
    fn again(&self, found: Try, progress: &mut Report) -> Result<Made> {
        let mut made = self.job.run(found.rate, found.effort, progress)?;
        if found.rate == Rate::Lossless {
            made.encoded.reached = Reached::Lossless;
        }
        Ok(made)
    }

    fn attempt(&mut self, rate: Rate, effort: u8, progress: &mut Report) -> Result<Made> {
        let made = self.job.run(rate, effort, progress)?;
        self.tries.push(Try {
            rate,
            effort,
            value: self.goal.measure(&made.encoded),
            bytes: made.encoded.bytes,
        });
        Ok(made)
    }

    /// Sees from the first file how fine and how coarse steps may be.
    fn learn(&mut self, measured: &Measured, source_step_m: f64, is_f32: bool) -> Result<()> {
        if self.own_m.is_some() {
            return Ok(());
        }
        let Measured {
            lowest_m,
            highest_m,
            max_error_m,
            ..
        } = *measured;
        let highest = lowest_m.abs().max(highest_m.abs()) + max_error_m;
        let range = highest_m - lowest_m + 2.0 * max_error_m;
        self.limits = [FINEST * highest, RANGES * range];
        let own_m = if source_step_m > 0.0 {
            source_step_m
        } else {
            own_step(self.job.raster, is_f32)?
        };
        let last_place = if is_f32 {
            f64::from(f32::EPSILON)
        } else {
            f64::EPSILON
        };
        self.own_m = Some(if own_m > 0.0 {
            OWN_STEPS * own_m
        } else {
            LAST_PLACES * last_place * highest
        });
        Ok(())
    }

    /// The lossless file, before a step is tried that may take more bytes than it.
    fn lossless_above(&mut self, step_m: f64, progress: &mut Report) -> Result<Option<Made>> {
        if self.own_m.is_some_and(|own_m| step_m < own_m) && self.lossless_try().is_none() {
            return self.lossless(progress);
        }
        Ok(None)
    }

    /// Whether the lossless file may be better than one that was made with a step.
    fn may_be_lossless(&self, made: &Made, step_m: f64, is_near: bool) -> bool {
        let is_exact = made.encoded.measured.max_error_m == 0.0;
        match self.lossless_try() {
            None => is_exact || is_near && self.own_m.is_some_and(|own_m| step_m < own_m),
            Some(lossless) => is_near && lossless.bytes <= made.encoded.bytes,
        }
    }

    fn lossless_try(&self) -> Option<Try> {
        let mut tries = self.tries.iter().copied();
        tries.find(|tried| tried.rate == Rate::Lossless)
    }

    /// The lossless file, where the method has one and it takes no more bytes than what was asked for.
    fn lossless(&mut self, progress: &mut Report) -> Result<Option<Made>> {
        let prepared = self.job.prepared;
        if prepared.method.has_tokens() {
            return Ok(None);
        }
        let mut made = self.attempt(Rate::Lossless, prepared.effort(), progress)?;
        made.encoded.reached = Reached::Lossless;
        let is_better = self.is_no_larger(made.encoded.bytes, self.goal.measure(&made.encoded));
        Ok(is_better.then_some(made))
    }

    /// Whether the lossless file takes no more bytes than what was asked for, as far as that is known.
    fn is_no_larger(&self, bytes: u64, value: f64) -> bool {
        let mut others = self
            .tries
            .iter()
            .filter(|tried| tried.rate != Rate::Lossless);
        match self.goal {
            Goal::Bpp(target) => value <= target,
            // A file with more error takes no more bytes than one with the error that was asked for.
            Goal::Rmse(target) => {
                others.any(|tried| tried.value >= target * (1.0 - WITHIN) && tried.bytes >= bytes)
            }
        }
    }

    /// The nearest that there are on both sides of the target.
    fn nearest(&self) -> [Option<Try>; 2] {
        let target = self.goal.target();
        let (below, above): (Vec<Try>, _) =
            self.tries.iter().partition(|tried| tried.value <= target);
        [
            below.into_iter().max_by(|a, b| a.value.total_cmp(&b.value)),
            above.into_iter().min_by(|a, b| a.value.total_cmp(&b.value)),
        ]
    }

    /// The nearest that is near enough, rather one that is not above the target.
    fn nearest_within(&self) -> Option<Try> {
        let target = self.goal.target();
        let mut nearest = self.nearest().into_iter().flatten();
        nearest.find(|tried| (tried.value / target - 1.0).abs() <= WITHIN)
    }
}

/// The step in which a source holds its heights, where it has one: the finest of some places with data; or 0.
fn own_step(raster: &dyn RasterSource, is_f32: bool) -> Result<f64> {
    let (width, height) = (raster.info().width(), raster.info().height());
    let starts = |size: usize| {
        let last = size.saturating_sub(WINDOW_SIDE);
        (0..WINDOWS).map(move |index| last * index / (WINDOWS - 1))
    };
    let mut own: Option<f64> = None;
    for row in starts(height) {
        for column in starts(width) {
            let window = Window {
                column,
                row,
                width: WINDOW_SIDE.min(width),
                height: WINDOW_SIDE.min(height),
            };
            let heights = raster.read(0, window)?.heights;
            let valid = heights.iter().copied().filter(|height| !height.is_nan());
            if valid.clone().next().is_some() {
                let step = exact_step(valid, is_f32);
                own = Some(own.map_or(step, |own| own.min(step)));
            }
        }
    }
    Ok(own.unwrap_or_default())
}

#[cfg(test)]
mod tests;
