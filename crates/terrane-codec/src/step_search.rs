//! Searches for the step that gives a rate or an error.
//!
//! Where a try is cheap and its outcome monotone, `bisect` halves an interval. Where a try is a whole encoding,
//! [`StepSearch`] follows the slope of the last two tries in logarithms.

use crate::portable;

/// Halvings of an interval.
const HALVINGS: u32 = 14;
/// A step changes by no more than this in one correction, in natural logarithms.
const MAX_CORRECTION: f64 = 3.0;

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

/// A search that corrects a step until what is measured is near its target.
#[derive(Debug, Clone, Copy)]
pub struct StepSearch {
    step: f64,
    target: f64,
    slope: Slope,
    /// Logarithms of the last step and of what it gave.
    last: Option<(f64, f64)>,
}

impl StepSearch {
    /// Starts at a step.
    pub fn new(step: f64, target: f64, slope: Slope) -> Self {
        Self {
            step,
            target,
            slope,
            last: None,
        }
    }

    /// The step to try.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// How far above its target a measure is, in natural logarithms; negative where it is below.
    pub fn miss(&self, reached: f64) -> f64 {
        portable::ln(reached.max(1e-12) / self.target)
    }

    /// Whether the last correction changed nothing.
    pub fn is_stuck(&self, reached: f64) -> bool {
        self.last
            .is_some_and(|(_, value)| value == portable::ln(reached.max(1e-12)))
    }

    /// Corrects the step by what it gave.
    pub fn correct(&mut self, reached: f64) {
        let Slope {
            first,
            min,
            max,
            contradicted,
        } = self.slope;
        let (step, value) = (portable::ln(self.step), portable::ln(reached.max(1e-12)));
        let steep = match self.last.map(|(at, last)| (value - last) / (step - at)) {
            None => first.abs(),
            Some(found) if found.is_finite() && found * first > 0.0 => found.abs(),
            Some(_) => contradicted,
        };
        let steep = steep.clamp(min, max).copysign(first);
        let correction = -self.miss(reached) / steep;
        self.last = Some((step, value));
        self.step *= portable::exp(correction.clamp(-MAX_CORRECTION, MAX_CORRECTION));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_halved_around_the_border() {
        let (fine, coarse) = bisect(0.01, 100.0, |step| step <= 2.5);
        assert!(fine <= 2.5 && coarse > 2.5 && coarse / fine < 1.001);
    }

    #[test]
    fn a_power_law_is_found_in_a_few_tries() {
        // What is measured falls with the step, as a rate does.
        let measure = |step: f64| 3.0 * step.powf(-0.8);
        let slope = Slope {
            first: -0.6,
            min: 0.1,
            max: 4.0,
            contradicted: 0.6,
        };
        let mut search = StepSearch::new(0.1, 1.0, slope);
        let tries = (0..100).find(|_| {
            let reached = measure(search.step());
            let is_near = search.miss(reached).abs() < 1e-3;
            search.correct(reached);
            is_near
        });
        assert!(tries.is_some_and(|tries| tries < 6));
    }

    #[test]
    fn a_measure_that_does_not_move_is_stuck() {
        let slope = Slope {
            first: 0.8,
            min: 0.1,
            max: 4.0,
            contradicted: 0.6,
        };
        let mut search = StepSearch::new(1.0, 2.0, slope);
        assert!(!search.is_stuck(5.0));
        search.correct(5.0);
        assert!(search.is_stuck(5.0) && !search.is_stuck(4.0));
    }
}
