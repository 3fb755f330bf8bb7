//! Codecs that overstep the error they are given.

/// How often a codec that exceeds a bound is given a smaller one.
const TRIES: usize = 60;

/// What a codec makes within a bound; `None` where it cannot.
///
/// Heights as 32-bit floats make some codecs exceed their bound, so they are given a slightly smaller one. A try is given
/// the bound that it may use, and returns the maximum error with what it made.
pub(crate) fn within_bound<T, E>(
    bound_m: f64,
    mut attempt: impl FnMut(f64) -> Result<Option<(f64, T)>, E>,
) -> Result<Option<T>, E> {
    let mut level_m = bound_m;
    for _ in 0..TRIES {
        let Some((max_error_m, made)) = attempt(level_m)? else {
            return Ok(None);
        };
        let over_m = max_error_m - bound_m;
        if over_m <= 0.0 {
            return Ok(Some(made));
        }
        level_m = (level_m - over_m * 1.05).min(level_m * (1.0 - 1e-7));
        if level_m <= 0.0 {
            break;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A codec whose error is by so much larger than it should be.
    fn reached(over_m: f64) -> Option<f64> {
        let made: Result<_, ()> =
            within_bound(0.1, |level_m| Ok(Some((level_m + over_m, level_m))));
        made.unwrap()
    }

    #[test]
    fn a_codec_that_oversteps_is_given_less() {
        assert_eq!(reached(0.0), Some(0.1));
        let level_m = reached(1e-3).unwrap();
        assert!((0.098..0.0991).contains(&level_m), "{level_m}");
        assert_eq!(reached(0.2), None);
    }
}
