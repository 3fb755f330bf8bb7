//! The heights that lines are drawn at.

use std::ops::RangeInclusive;

/// From the deepest sea to the highest summit metre by metre; a hostile file or a slip of the hand would need more.
const MAX_LEVELS: f64 = 2e4;

/// What is wrong with heights of lines.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LevelsError {
    /// An interval that is none.
    #[error("`interval` must be above 0, not {interval}")]
    Interval {
        /// What was asked for.
        interval: f64,
    },
    /// A base that is no height.
    #[error("`base` must be a height in metres, not {base}")]
    Base {
        /// What was asked for.
        base: f64,
    },
    /// More lines above each other than anybody can use.
    #[error(
        "an `interval` of {interval} m gives {count:.0} heights from {lowest} to {highest} m, and {MAX_LEVELS} are the most"
    )]
    TooMany {
        /// What was asked for.
        interval: f64,
        /// How many there would be.
        count: f64,
        /// The lowest height in metres.
        lowest: f64,
        /// The highest height in metres.
        highest: f64,
    },
}

/// Heights an interval apart, each with its number; that of the base is 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    base: f64,
    interval: f64,
    numbers: RangeInclusive<i64>,
}

impl Levels {
    /// The heights between two others, both included.
    pub fn new(base: f64, interval: f64, [lowest, highest]: [f64; 2]) -> Result<Self, LevelsError> {
        if !(interval > 0.0 && interval.is_finite()) {
            return Err(LevelsError::Interval { interval });
        }
        if !base.is_finite() {
            return Err(LevelsError::Base { base });
        }
        let number = |height: f64| (height - base) / interval;
        let count = number(highest) - number(lowest);
        // Beyond this, numbers are not exact any more; not a number is too many as well.
        let is_exact = number(highest).abs().max(number(lowest).abs()) < 1e15;
        if !(count <= MAX_LEVELS && is_exact) {
            return Err(LevelsError::TooMany {
                interval,
                count,
                lowest,
                highest,
            });
        }
        Ok(Self {
            base,
            interval,
            numbers: number(lowest).floor() as i64..=number(highest).ceil() as i64,
        })
    }

    /// The height of a number.
    pub fn height(&self, number: i64) -> f64 {
        self.base + number as f64 * self.interval
    }

    /// The number of the highest of them that is not above a height, so that ground that has a level's height exactly
    /// counts as above it; one less than the first where all are above.
    pub fn number_below(&self, height: f64) -> i64 {
        // A quotient may be rounded across a number.
        let guess = ((height - self.base) / self.interval).floor() as i64;
        let number = (guess.saturating_sub(1)..=guess.saturating_add(1))
            .rev()
            .find(|&number| self.height(number) <= height);
        number
            .unwrap_or(guess)
            .clamp(self.numbers.start().saturating_sub(1), *self.numbers.end())
    }
}

/// The number of the form 1, 2 or 5 times a power of ten that is nearest to another by its ratio.
pub fn round_interval(value: f64) -> f64 {
    let power = value.log10().floor();
    let candidates = [1.0, 2.0, 5.0, 10.0].map(|digit: f64| {
        // Negative powers of ten are not exact, and a quotient of two exact numbers is the nearest there is.
        if power < 0.0 {
            digit / 10_f64.powf(-power)
        } else {
            digit * 10_f64.powf(power)
        }
    });
    let distance = |candidate: f64| (candidate / value).ln().abs();
    candidates
        .into_iter()
        .min_by(|a, b| distance(*a).total_cmp(&distance(*b)))
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_height_on_a_level_is_above_it() {
        let levels = Levels::new(0.0, 0.1, [-50.0, 50.0]).unwrap();
        for number in -400..400 {
            let height = levels.height(number);
            assert_eq!(levels.number_below(height - 0.05), number - 1);
            assert_eq!(levels.number_below(height), number);
            assert_eq!(levels.number_below(height + 0.05), number);
        }
    }

    #[test]
    fn intervals_are_round() {
        for (value, expected) in [
            (1.0, 1.0),
            (1.3, 1.0),
            (0.15, 0.2),
            (33.0, 50.0),
            (8.0, 10.0),
            (0.0071, 0.01),
        ] {
            assert_eq!(round_interval(value), expected, "{value}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for interval in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let levels = Levels::new(0.0, interval, [0.0, 1.0]);
            assert!(matches!(levels, Err(LevelsError::Interval { .. })));
        }
        assert!(matches!(
            Levels::new(f64::NAN, 1.0, [0.0, 1.0]),
            Err(LevelsError::Base { .. })
        ));
        for range in [[0.0, 1e6], [f64::NEG_INFINITY, 0.0], [1e18, 1e18]] {
            let levels = Levels::new(0.0, 1.0, range);
            assert!(matches!(levels, Err(LevelsError::TooMany { .. })));
        }
    }
}
