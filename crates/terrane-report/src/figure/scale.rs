//! Rulers: where a value stands on an axis, and which round values are written beside it.

use super::Scale;
use crate::number::{grouped, power, scientific};

/// Values beyond these are drawn at them: their differences would overflow.
const LARGEST: f64 = 1e300;
const SMALLEST: f64 = 1e-300;
/// Share of the axis left free at each end, so that marks are not cut.
const MARGIN: f64 = 0.04;
/// A range that reaches this close to zero, as a share of itself, starts at zero.
const NEAR_ZERO: f64 = 0.35;

/// A round value on an axis; without a label it is only a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

/// One axis: its range and its round values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
    pub(super) ticks: Vec<Tick>,
}

impl Ruler {
    /// A ruler that holds all values it can show, with about `most` labels at the most.
    pub(super) fn around(scale: Scale, values: impl Iterator<Item = f64>, most: usize) -> Self {
        let shown = values
            .filter(|&value| showable(scale, value))
            .map(|value| value.clamp(-LARGEST, LARGEST));
        let range = shown.fold(None, |range: Option<(f64, f64)>, value| {
            Some(range.map_or((value, value), |(low, high)| {
                (low.min(value), high.max(value))
            }))
        });
        match scale {
            Scale::Linear => {
                let (low, high) = padded(range.unwrap_or((0.0, 1.0)));
                Self::linear(low, high, most)
            }
            Scale::Logarithmic => {
                let (low, high) = range.unwrap_or((1.0, 10.0));
                let (low, high) = (low.max(SMALLEST).log10(), high.max(SMALLEST).log10());
                let margin = if high - low < 0.1 {
                    0.3
                } else {
                    MARGIN * (high - low)
                };
                Self::logarithmic(low - margin, high + margin, most)
            }
        }
    }

    /// A ruler for lengths, such as bars, which start at zero or, by factors, at a power of ten below the shortest.
    pub(super) fn of_lengths(
        scale: Scale,
        values: impl Iterator<Item = f64> + Clone,
        most: usize,
    ) -> Self {
        match scale {
            Scale::Linear => {
                let shown = values.filter(|value| value.is_finite());
                let (low, high) = shown.fold((0.0f64, 0.0f64), |(low, high), value| {
                    let value = value.clamp(-LARGEST, LARGEST);
                    (low.min(value), high.max(value))
                });
                let high = if high - low < SMALLEST {
                    low + 1.0
                } else {
                    high
                };
                Self::linear(low, high, most)
            }
            Scale::Logarithmic => {
                let ruler = Self::around(scale, values, most);
                let low = (ruler.low - 0.15).floor();
                Self::logarithmic(low, ruler.high, most)
            }
        }
    }

    /// A ruler from exactly one value to another.
    pub(super) fn exactly(low: f64, high: f64, most: usize) -> Self {
        let (low, high) = if distinct(low, high) {
            (low, high)
        } else {
            padded((low, high))
        };
        Self::linear(low, high, most)
    }

    fn linear(low: f64, high: f64, most: usize) -> Self {
        Self {
            scale: Scale::Linear,
            low,
            high,
            ticks: linear_ticks(low, high, most),
        }
    }

    /// From one exponent of ten to another.
    fn logarithmic(low: f64, high: f64, most: usize) -> Self {
        Self {
            scale: Scale::Logarithmic,
            low,
            high,
            ticks: logarithmic_ticks(low, high, most),
        }
    }

    /// Where a value stands from 0 to 1, if it can be shown.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        if !showable(self.scale, value) {
            return None;
        }
        let value = value.clamp(-LARGEST, LARGEST);
        let value = match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.max(SMALLEST).log10(),
        };
        Some(((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0))
    }

    /// Where lengths start from 0 to 1.
    pub(super) fn origin(&self) -> f64 {
        match self.scale {
            Scale::Linear => self.position(0.0).unwrap_or(0.0),
            Scale::Logarithmic => 0.0,
        }
    }
}

/// Whether an axis can show a value.
pub(super) fn showable(scale: Scale, value: f64) -> bool {
    value.is_finite() && (scale == Scale::Linear || value > 0.0)
}

/// Whether two values are far enough apart for an axis between them.
fn distinct(low: f64, high: f64) -> bool {
    let span = high - low;
    span > SMALLEST && span > 1e-12 * low.abs().max(high.abs())
}

fn padded((low, high): (f64, f64)) -> (f64, f64) {
    if !distinct(low, high) {
        let margin = (0.1 * low.abs()).max(SMALLEST);
        let margin = if low.abs() < SMALLEST { 1.0 } else { margin };
        return (low - margin, high + margin);
    }
    let span = high - low;
    let near = NEAR_ZERO * span;
    let padded_low = if (0.0..near).contains(&low) {
        0.0
    } else {
        low - MARGIN * span
    };
    let padded_high = if high <= 0.0 && -high < near {
        0.0
    } else {
        high + MARGIN * span
    };
    (padded_low, padded_high)
}

/// The smallest of 1, 2 and 5 times a power of ten that divides a span into `most` steps or fewer.
fn round_step(span: f64, most: usize) -> f64 {
    let rough = span / most.max(1) as f64;
    let decade = 10f64.powf(rough.log10().floor());
    let factors = [1.0, 2.0, 5.0];
    let factor = factors
        .into_iter()
        .find(|factor| factor * decade >= rough * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * decade
}

fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<Tick> {
    let step = round_step(high - low, most);
    let first = (low / step - 1e-9).ceil();
    let count = ((high / step + 1e-9).floor() - first).max(0.0) as usize;
    let largest = low.abs().max(high.abs());
    (0..=count.min(4 * most))
        .map(|index| first + index as f64)
        .map(|number| Tick {
            at: number * step,
            label: linear_label(number * step, step, largest),
        })
        .filter(|tick| tick.at.is_finite())
        .collect()
}

/// As many digits as the step needs; powers of ten where zeros would fill the label.
fn linear_label(value: f64, step: f64, largest: f64) -> String {
    if value.abs() < 0.5 * step {
        return "0".to_owned();
    }
    let step_exponent = (step.log10() + 1e-9).floor();
    if !(1e-3..1e6).contains(&largest) {
        let digits = (value.abs().log10() + 1e-9).floor() - step_exponent;
        return minus(&scientific(value, digits.clamp(0.0, 12.0) as usize));
    }
    let digits = (-step_exponent).clamp(0.0, 12.0) as usize;
    minus(&grouped(&format!("{value:.digits$}")))
}

fn logarithmic_ticks(low: f64, high: f64, most: usize) -> Vec<Tick> {
    const ONE: &[f64] = &[1.0];
    const SOME: &[f64] = &[1.0, 2.0, 5.0];
    const ALL: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    let decades = high - low;
    let inside = |value: f64| (low - 1e-9..=high + 1e-9).contains(&value.log10());
    let at = |exponent: i32, factor: f64| factor * 10f64.powi(exponent);
    let exponents = low.floor() as i32..=high.ceil() as i32;
    let round = |factors: &'static [f64]| {
        let all = exponents
            .clone()
            .flat_map(move |exponent| factors.iter().map(move |&factor| at(exponent, factor)));
        all.filter(move |&value| inside(value))
    };
    if round(SOME).count() < 3 {
        // Less than a decade: equal steps say more than a single round value.
        let mut ticks = linear_ticks(10f64.powf(low), 10f64.powf(high), most);
        ticks.retain(|tick| tick.at > 0.0);
        return ticks;
    }
    let plain = low >= -4.0 && high < 5.0;
    let labelled: &[f64] = if round(SOME).count() <= most {
        SOME
    } else {
        ONE
    };
    let every = (decades / most.max(1) as f64).ceil().max(1.0) as i32;
    let drawn = if decades <= 6.0 { ALL } else { ONE };
    round(drawn)
        .map(|value| {
            let exponent = (value.log10() + 1e-9).floor();
            let factor = (value / 10f64.powf(exponent)).round();
            let label = labelled.contains(&factor) && (exponent as i32).rem_euclid(every) == 0;
            Tick {
                at: value,
                label: if label {
                    factor_label(factor, exponent as i32, plain)
                } else {
                    String::new()
                },
            }
        })
        .filter(|tick| every == 1 || !tick.label.is_empty())
        .collect()
}

/// In full where all labels of the axis can be, else as a power of ten.
fn factor_label(factor: f64, exponent: i32, plain: bool) -> String {
    if plain || (-1..=2).contains(&exponent) {
        let digits = (-exponent).max(0) as usize;
        return grouped(&format!("{:.digits$}", factor * 10f64.powi(exponent)));
    }
    if factor == 1.0 {
        power(exponent)
    } else {
        format!("{factor}×{}", power(exponent))
    }
}

/// A label with a true minus sign.
pub(super) fn minus(label: &str) -> String {
    label.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ruler: &Ruler) -> Vec<&str> {
        let labels = ruler.ticks.iter().map(|tick| tick.label.as_str());
        labels.filter(|label| !label.is_empty()).collect()
    }

    fn linear(values: &[f64]) -> Ruler {
        Ruler::around(Scale::Linear, values.iter().copied(), 6)
    }

    fn logarithmic(values: &[f64]) -> Ruler {
        Ruler::around(Scale::Logarithmic, values.iter().copied(), 6)
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(labels(&linear(&[41.0, 58.3])), ["45", "50", "55"]);
        assert_eq!(
            labels(&linear(&[0.03, 0.99])),
            ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            labels(&linear(&[-1.0, 1.0])),
            ["−1.0", "−0.5", "0", "0.5", "1.0"]
        );
        assert_eq!(
            labels(&linear(&[0.0, 25_000.0])),
            ["0", "5000", "10,000", "15,000", "20,000", "25,000"]
        );
    }

    #[test]
    fn huge_and_tiny_values_have_powers_of_ten() {
        assert_eq!(
            labels(&linear(&[0.0, 2e9])),
            ["0", "5×10⁸", "10⁹", "1.5×10⁹", "2×10⁹"]
        );
        assert_eq!(
            labels(&linear(&[0.0, 3e-7])),
            ["0", "10⁻⁷", "2×10⁻⁷", "3×10⁻⁷"]
        );
        assert_eq!(labels(&logarithmic(&[1e-9, 1e12])).len(), 6);
    }

    #[test]
    fn decades_and_their_parts_are_labelled_where_they_fit() {
        assert_eq!(labels(&logarithmic(&[0.2, 3.0])), ["0.2", "0.5", "1", "2"]);
        assert_eq!(
            labels(&logarithmic(&[0.01, 100.0])),
            ["0.01", "0.1", "1", "10", "100"]
        );
        assert_eq!(
            labels(&logarithmic(&[40.0, 60.0])),
            ["40", "45", "50", "55", "60"]
        );
    }

    #[test]
    fn what_a_logarithmic_axis_cannot_show_has_no_position() {
        let ruler = logarithmic(&[0.0, -1.0, f64::NAN, 1.0, 100.0]);
        assert_eq!((ruler.position(0.0), ruler.position(-1.0)), (None, None));
        assert!(ruler.position(1.0).unwrap() < 0.1 && ruler.position(100.0).unwrap() > 0.9);
    }

    #[test]
    fn any_values_make_a_ruler() {
        let extremes = [
            f64::NAN,
            f64::INFINITY,
            f64::MAX,
            -f64::MAX,
            5e-324,
            0.0,
            1.0,
            1.0 + f64::EPSILON,
        ];
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for first in extremes {
                for second in extremes {
                    for most in [0, 1, 6] {
                        let values = [first, second].into_iter();
                        let rulers = [
                            Ruler::around(scale, values.clone(), most),
                            Ruler::of_lengths(scale, values, most),
                        ];
                        for ruler in rulers {
                            assert!(ruler.low < ruler.high, "{first} {second} {ruler:?}");
                            assert!(ruler.ticks.len() < 100, "{first} {second} {ruler:?}");
                            for value in [first, second] {
                                let position = ruler.position(value);
                                assert_eq!(position.is_some(), showable(scale, value));
                                assert!(
                                    position.is_none_or(|position| (0.0..=1.0).contains(&position))
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}
