//! Numbers as readers want them: fixed digits, grouped thousands, powers of ten where zeros would hide the value.

/// What stands where there is no value.
pub(super) const MISSING: &str = "–";

/// From here on digits no longer tell how large a number is.
const HUGE: f64 = 1e12;

/// A number with this many digits after the point; a power of ten where that would be all zeros or too long.
pub(super) fn fixed(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return MISSING.to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "-∞" }.to_owned();
    }
    let size = value.abs();
    let hidden = size > 0.0 && size < 0.5 * 10f64.powi(-(digits as i32));
    if hidden || size >= HUGE {
        return scientific(value, 1);
    }
    // Adding zero turns minus zero into zero.
    grouped(&format!("{:.digits$}", value + 0.0))
}

/// A number with three significant digits, for labels.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || size == 0.0 {
        return fixed(value, 0);
    }
    if !(1e-3..1e6).contains(&size) {
        return scientific(value, 1);
    }
    let digits = (2 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    grouped(text)
}

/// A number as a power of ten times a factor with at most this many digits after the point.
pub(super) fn scientific(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let (factor, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let factor = if factor.contains('.') {
        factor.trim_end_matches('0').trim_end_matches('.')
    } else {
        factor
    };
    let power = power(exponent.parse().unwrap_or(0));
    match factor {
        "1" => power,
        "-1" => format!("-{power}"),
        _ => format!("{factor}×{power}"),
    }
}

/// Ten to the power of an exponent.
pub(super) fn power(exponent: i32) -> String {
    let raised = exponent.to_string();
    let raised = raised.chars().map(|digit| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    });
    format!("10{}", raised.collect::<String>())
}

/// Digits in groups of three, from five of them before the point on: years and sizes of tiles stay as they are.
pub(super) fn grouped(text: &str) -> String {
    let sign = usize::from(text.starts_with('-'));
    let point = text.find('.').unwrap_or(text.len());
    if point - sign < 5 {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 4);
    for (index, digit) in text.char_indices() {
        if index > sign && index < point && (point - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_fixed() {
        assert_eq!(fixed(58.0, 2), "58.00");
        assert_eq!(fixed(-0.0, 1), "0.0");
        assert_eq!(fixed(120_156_048.4, 0), "120,156,048");
        assert_eq!(fixed(-12_345.678, 1), "-12,345.7");
        assert_eq!(fixed(2019.0, 0), "2019");
    }

    #[test]
    fn no_value_is_shown_as_zero_that_is_not() {
        assert_eq!(fixed(0.000_031, 2), "3.1×10⁻⁵");
        assert_eq!(fixed(-0.001, 2), "-10⁻³");
        assert_eq!(fixed(1e300, 2), "10³⁰⁰");
        assert_eq!(fixed(f64::MIN_POSITIVE, 2), "2.2×10⁻³⁰⁸");
    }

    #[test]
    fn what_is_not_a_number_has_a_sign() {
        assert_eq!(fixed(f64::NAN, 2), "–");
        assert_eq!(fixed(f64::INFINITY, 2), "∞");
        assert_eq!(short(f64::NEG_INFINITY), "-∞");
    }

    #[test]
    fn labels_have_three_significant_digits() {
        assert_eq!(short(0.061_27), "0.0613");
        assert_eq!(short(58.2499), "58.2");
        assert_eq!(short(12_345.0), "12,345");
        assert_eq!(short(2.0), "2");
        assert_eq!(short(0.0), "0");
        assert_eq!(short(5e-7), "5×10⁻⁷");
    }
}
