//! Gaps that are filled smoothly from what lies around them, so that what has no data costs a codec little.

use terrane_format::halve;

/// Replaces every NaN of a grid by means of what lies around it, from coarse to fine; an empty grid becomes 0.
///
/// Each coarser grid has the means of the valid among two by two; from the coarsest down, a gap takes the value of the
/// pixel above it. What is valid stays as it is.
pub fn fill(grid: &mut [f64], width: usize) {
    let height = grid.len() / width.max(1);
    if !grid.iter().any(|value| value.is_nan()) {
        return;
    }
    if width <= 1 && height <= 1 {
        grid.iter_mut()
            .filter(|value| value.is_nan())
            .for_each(|value| *value = 0.0);
        return;
    }
    let half_width = width.div_ceil(2);
    let mut coarse = halve(grid, width);
    fill(&mut coarse, half_width);
    for row in 0..height {
        for column in 0..width {
            let value = &mut grid[row * width + column];
            if value.is_nan() {
                *value = coarse[row / 2 * half_width + column / 2];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_take_what_lies_around_them() {
        let mut grid = vec![f64::NAN; 7 * 5];
        grid[0] = 3.0;
        grid[34] = 5.0;
        fill(&mut grid, 7);
        assert_eq!((grid[0], grid[1], grid[33], grid[34]), (3.0, 3.0, 5.0, 5.0));
        assert!(grid.iter().all(|value| (3.0..=5.0).contains(value)));
        let mut empty = vec![f64::NAN; 6];
        fill(&mut empty, 3);
        assert_eq!(empty, [0.0; 6]);
    }
}
