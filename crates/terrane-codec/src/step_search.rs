//! Searches for the step that gives a rate or an error.
//!
//! Where a try is cheap and its outcome monotone, `bisect` halves an interval. Where a try is a whole encoding, a
//! [`StepSearch`] follows the slope of the last two tries in logarithms, in which a rate is nearly straight, but never
//! leaves the interval between a step that is too fine and one that is too coarse, and halves it where the slope leads
//! nowhere (Brent 1973, chapter 4). A rate may jump: symbols that are chosen by their cost in the context of their
//! neighbours become zeros all at once. An interval over which the measure is steeper than any such law is the end of a
//! search.

use crate::portable;

/// Halvings of an interval.
const HALVINGS: u32 = 14;
/// A step changes by no more than this in one correction, in natural logarithms.
const MAX_CORRECTION: f64 = 3.0;
/// A measure that is steeper than this in logarithms jumps: its laws have slopes from −1 to 1.
const JUMP: f64 = 20.0;
/// Steps that are nearer than this in natural logarithms are the same.
const SAME: f64 = 1e-4;

/// Halves an interval of steps by their geometric means; `is_fine` tells whether a step may be coarser.
pub(crate) fn bisect(fine: f64, coarse: f64, is_fine: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut fine, mut coarse) = (fine, coarse);
    for _ in 0..HALVINGS {
        let middle = (fine * coarse).sqrt();
        if is_fine(middle) {
            fine = middle;
        } else {
            coarse = middle;
        }
    }
    (fine, coarse)
}

/// How the logarithm of what is measured follows that of the step.
#[derive(Debug, Clone, Copy)]
pub struct Slope {
    /// Before anything was tried; its sign holds for all tries.
    pub first: f64,
    /// The flattest that is believed.
    pub min: f64,
    /// The steepest that is believed.
    pub max: f64,
    /// What is taken where two tries contradict each other, as a magnitude.
    pub contradicted: f64,
}

/// A try, in natural logarithms.
#[derive(Debug, Clone, Copy)]
struct Try {
    /// The step.
    at: f64,
    /// What it gave, above the target.
    miss: f64,
}

/// A search that corrects a step until what is measured is near its target.
#[derive(Debug, Clone, Copy)]
pub struct StepSearch {
    /// The logarithm of the step to try.
    next: f64,
    target: f64,
    slope: Slope,
    last: Option<Try>,
    /// The coarsest of the steps that are too fine, and the finest of those that are too coarse.
    fine: Option<Try>,
    coarse: Option<Try>,
    /// The last two corrections.
    moves: [f64; 2],
    /// The finest and the coarsest step that differ from others.
    limits: [f64; 2],
}

impl StepSearch {
    /// Starts at a step.
    pub fn new(step: f64, target: f64, slope: Slope) -> Self {
        Self {
            next: portable::ln(step),
            target,
            slope,
            last: None,
            fine: None,
            coarse: None,
            moves: [f64::INFINITY; 2],
            limits: [f64::NEG_INFINITY, f64::INFINITY],
        }
    }

    /// Leaves out steps that are finer or coarser than these: nothing new comes of them.
    pub fn limit(&mut self, finest: f64, coarsest: f64) {
        self.limits = [portable::ln(finest), portable::ln(coarsest)];
    }

    /// The step to try.
    pub fn step(&self) -> f64 {
        portable::exp(self.next)
    }

    /// How far above its target a measure is, in natural logarithms; negative where it is below.
    pub fn miss(&self, reached: f64) -> f64 {
        portable::ln(reached.max(1e-12) / self.target)
    }

    /// Corrects the step by what it gave; false where there is none left to try, because the measure jumps over the
    /// target or ends before it.
    #[must_use]
    pub fn correct(&mut self, reached: f64) -> bool {
        let miss = self.miss(reached);
        let tried = Try {
            at: self.next,
            miss,
        };
        if miss * self.slope.first > 0.0 {
            self.coarse = Some(tried);
        } else {
            self.fine = Some(tried);
        }
        let next = match (self.fine, self.coarse) {
            (Some(fine), Some(coarse)) => self.between(tried, fine, coarse),
            _ => self.beyond(tried),
        };
        self.last = Some(tried);
        let Some(next) = next else {
            return false;
        };
        self.moves = [self.moves[1], (next - tried.at).abs()];
        self.next = next;
        true
    }

    /// The slope from the try before to this one, where its sign is right.
    fn found_slope(&self, tried: Try) -> Option<f64> {
        let last = self.last?;
        let found = (tried.miss - last.miss) / (tried.at - last.at);
        (found.is_finite() && found * self.slope.first > 0.0).then_some(found)
    }

    /// A step farther on, as long as all were too fine or all too coarse.
    fn beyond(&self, tried: Try) -> Option<f64> {
        let Slope {
            first,
            min,
            max,
            contradicted,
        } = self.slope;
        let steep = match self.found_slope(tried) {
            Some(found) => found.abs(),
            None if self.last.is_none() => first.abs(),
            None => contradicted,
        };
        let steep = steep.clamp(min, max).copysign(first);
        let correction = (-tried.miss / steep).clamp(-MAX_CORRECTION, MAX_CORRECTION);
        let [finest, coarsest] = self.limits;
        let next = (tried.at + correction).min(coarsest).max(finest);
        // Beyond its limits the step that was tried was the last.
        let goes_on = (next - tried.at) * correction > 0.0;
        (goes_on && (next - tried.at).abs() > SAME).then_some(next)
    }

    /// A step between one that is too fine and one that is too coarse.
    fn between(&self, tried: Try, fine: Try, coarse: Try) -> Option<f64> {
        let width = coarse.at - fine.at;
        let gap = (coarse.miss - fine.miss).abs();
        if width <= SAME || gap > JUMP * width {
            return None;
        }
        let by_slope = self.found_slope(tried).map(|slope| -tried.miss / slope);
        let is_inside = |correction: &f64| {
            let at = tried.at + correction;
            at > fine.at && at < coarse.at && correction.abs() <= self.moves[0] / 2.0
        };
        let middle = f64::midpoint(fine.at, coarse.at);
        Some(match by_slope.filter(is_inside) {
            Some(correction) => tried.at + correction,
            None => middle,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a rate does.
    const FALLING: Slope = Slope {
        first: -0.6,
        min: 0.1,
        max: 4.0,
        contradicted: 0.6,
    };

    /// Tries until a measure is so near its target, or there is nothing left to try.
    fn tries(search: &mut StepSearch, near: f64, measure: impl Fn(f64) -> f64) -> (usize, bool) {
        for turn in 1..100 {
            let reached = measure(search.step());
            if search.miss(reached).abs() < near {
                return (turn, true);
            }
            if !search.correct(reached) {
                return (turn, false);
            }
        }
        panic!("it does not end");
    }

    #[test]
    fn an_interval_is_halved_around_the_border() {
        let (fine, coarse) = bisect(0.01, 100.0, |step| step <= 2.5);
        assert!(fine <= 2.5 && coarse > 2.5 && coarse / fine < 1.001);
    }

    #[test]
    fn a_power_law_is_found_in_a_few_tries() {
        let mut search = StepSearch::new(0.1, 1.0, FALLING);
        let (count, is_near) = tries(&mut search, 1e-3, |step| 3.0 * step.powf(-0.8));
        assert!(is_near && count < 6, "{count}");
    }

    #[test]
    fn a_law_that_bends_is_found_in_a_few_tries() {
        // Bits of a Laplacian source, roughly, and a head.
        for target in [0.05, 0.3, 1.0, 3.0, 9.0] {
            let mut search = StepSearch::new(0.1, target, FALLING);
            let measure = |step: f64| 0.02 + (1.0 + 1.0 / step).log2();
            let (count, is_near) = tries(&mut search, 1e-3, measure);
            assert!(is_near && count < 9, "{count} for {target}");
        }
    }

    #[test]
    fn a_jump_is_found_and_both_its_sides() {
        for border in [0.011, 0.7, 55.0] {
            let measure = |step: f64| if step < border { 1.6 } else { 0.2 } * step.powf(-0.01);
            let mut search = StepSearch::new(0.1, 0.8, FALLING);
            let (count, is_near) = tries(&mut search, 1e-3, measure);
            assert!(!is_near && count < 16, "{count} for {border}");
            let (fine, coarse) = (
                search.fine.unwrap().at.exp(),
                search.coarse.unwrap().at.exp(),
            );
            assert!(fine < border && border <= coarse && coarse < 1.2 * fine);
        }
    }

    #[test]
    fn what_lies_beyond_all_steps_ends_the_search() {
        let mut search = StepSearch::new(1.0, 2.0, FALLING);
        search.limit(0.01, 1000.0);
        let (count, is_near) = tries(&mut search, 1e-3, |_| 5.0);
        assert!(!is_near && count < 9, "{count}");
        assert!((search.step() - 1000.0).abs() < 1e-9);
    }
}
