//! Heights at half the resolution: how one level of a pyramid is made of the one below it.

/// A grid at half the resolution, each pixel the mean of the valid ones among its two by two; NaN is not valid.
pub fn halve(heights: &[f64], width: usize) -> Vec<f64> {
    let rows: Vec<&[f64]> = heights.chunks_exact(width.max(1)).collect();
    rows.chunks(2)
        .flat_map(|pair| halve_rows(pair[0], pair.get(1).copied().unwrap_or_default()))
        .collect()
}

/// Two rows (the lower one may be empty) as one of half the width.
pub fn halve_rows(upper: &[f64], lower: &[f64]) -> Vec<f64> {
    (0..upper.len().div_ceil(2))
        .map(|column| {
            let pair = 2 * column..(2 * column + 2).min(upper.len());
            let lower = lower.get(pair.clone()).unwrap_or_default();
            let (sum, count) = upper[pair]
                .iter()
                .chain(lower)
                .filter(|height| !height.is_nan())
                .fold((0.0, 0_u32), |(sum, count), height| {
                    (sum + height, count + 1)
                });
            if count == 0 {
                f64::NAN
            } else {
                sum / f64::from(count)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_skips_what_is_missing_and_keeps_ragged_edges() {
        let nan = f64::NAN;
        let half = halve(&[1.0, 3.0, 5.0, nan, 5.0, nan, 2.0, nan, nan], 3);
        assert_eq!(half[..3], [3.0, 5.0, 2.0]);
        assert!(half.len() == 4 && half[3].is_nan());
    }
}
