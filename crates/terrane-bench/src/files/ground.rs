//! Heights with the size of their pixels on the ground.

use terrane_geo::Cell;

/// Heights on a grid, row by row from the top; NaN where there is no data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ground<'a> {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Heights in metres.
    pub heights: &'a [f64],
    /// Size of a pixel.
    pub cell: Cell,
}

impl Ground<'_> {
    /// The least and the greatest height; `None` without data.
    pub(super) fn range(&self) -> Option<(f64, f64)> {
        let valid = self.heights.iter().filter(|height| !height.is_nan());
        valid.fold(None, |range, &height| {
            let (low, high) = range.unwrap_or((height, height));
            Some((height.min(low), height.max(high)))
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Heights of a function of column and row, to make a [`Ground`] of.
    pub(in crate::files) fn surface(
        width: usize,
        height: usize,
        of: impl Fn(f64, f64) -> f64,
    ) -> Vec<f64> {
        (0..width * height)
            .map(|pixel| of((pixel % width) as f64, (pixel / width) as f64))
            .collect()
    }

    /// Square pixels of two metres.
    pub(in crate::files) fn ground(width: usize, heights: &[f64]) -> Ground<'_> {
        Ground {
            width,
            height: heights.len() / width,
            heights,
            cell: Cell::square(2.0),
        }
    }

    #[test]
    fn gaps_have_no_part_in_the_range() {
        let heights = [f64::NAN, 3.0, -1.0, f64::NAN];
        assert_eq!(ground(2, &heights).range(), Some((-1.0, 3.0)));
        assert_eq!(ground(1, &[f64::NAN]).range(), None);
    }
}
