//! What can be seen from a point: the line from an eye above the ground to every pixel, against the heights under it.

use rayon::prelude::*;

use super::ground::Ground;

/// Height of the eye above the ground in metres.
const EYE_M: f64 = 2.0;
/// Pixels farther away than this, in columns or rows, are not asked for: the time grows with the third power of it.
pub(super) const REACH: usize = 512;
/// Where the eyes are, as parts of width and height.
pub(super) const EYES: [(f64, f64); 5] = [
    (0.5, 0.5),
    (0.25, 0.25),
    (0.75, 0.25),
    (0.25, 0.75),
    (0.75, 0.75),
];

/// The pixels that are seen from each of the eyes.
#[derive(Debug)]
pub(super) struct Viewsheds(Vec<Vec<bool>>);

impl Viewsheds {
    /// Those of a ground; an eye without data under it sees nothing.
    pub(super) fn of(ground: &Ground) -> Self {
        Self(EYES.map(|eye| viewshed(ground, eye)).to_vec())
    }

    /// Pixels that are seen in both over those that are seen in either, the mean over the eyes that see anything; NaN where
    /// none does.
    pub(super) fn agreement(&self, decoded: &Self) -> f64 {
        let of = |(source, decoded): (&Vec<bool>, &Vec<bool>)| {
            let pairs = || source.iter().zip(decoded);
            let both = pairs().filter(|&(&a, &b)| a && b).count();
            let either = pairs().filter(|&(&a, &b)| a || b).count();
            (either > 0).then(|| both as f64 / either as f64)
        };
        let parts: Vec<f64> = self.0.iter().zip(&decoded.0).filter_map(of).collect();
        parts.iter().sum::<f64>() / parts.len() as f64
    }
}

/// The pixels that are seen from an eye.
fn viewshed(ground: &Ground, (across, down): (f64, f64)) -> Vec<bool> {
    let eye = (
        (across * ground.width as f64) as usize,
        (down * ground.height as f64) as usize,
    );
    let eye_m = ground.heights[eye.1 * ground.width + eye.0] + EYE_M;
    let pixels = (0..ground.heights.len()).into_par_iter();
    pixels
        .with_min_len(ground.width)
        .map(|pixel| {
            let target = (pixel % ground.width, pixel / ground.width);
            is_seen(ground, eye, eye_m, target)
        })
        .collect()
}

/// Whether a pixel is seen. Between the two the line is looked at wherever it crosses a column, or a row where it runs along
/// them; the ground there lies between the heights of two pixels. The scale of distances does not matter to that.
fn is_seen(ground: &Ground, eye: (usize, usize), eye_m: f64, target: (usize, usize)) -> bool {
    let pixel = |(column, row): (usize, usize)| row * ground.width + column;
    let across = (eye.0.abs_diff(target.0), stride(eye.0, target.0, 1));
    let down = (
        eye.1.abs_diff(target.1),
        stride(eye.1, target.1, ground.width),
    );
    let ((steps, long), (side_steps, short)) = if across.0 >= down.0 {
        (across, down)
    } else {
        (down, across)
    };
    let rise_m = ground.heights[pixel(target)] - eye_m;
    if steps > REACH || rise_m.is_nan() {
        return false;
    }
    let part_of_step = (steps as f64).recip();
    let mut on_long = pixel(eye);
    for step in 1..steps {
        on_long = on_long.wrapping_add_signed(long);
        let part = step as f64 * part_of_step;
        let aside = side_steps as f64 * part;
        // What is not below zero is rounded down.
        let whole = aside as usize;
        let pixel = on_long.wrapping_add_signed(short * whole as isize);
        let mut height_m = ground.heights[pixel];
        let between = aside - whole as f64;
        if between > 0.0 {
            let beside = ground.heights[pixel.wrapping_add_signed(short)];
            height_m += between * (beside - height_m);
        }
        // A gap hides nothing: it compares as false.
        if height_m - eye_m > rise_m * part {
            return false;
        }
    }
    true
}

/// Pixels from one to the next on the way from a column or row to another.
fn stride(from: usize, to: usize, pixels: usize) -> isize {
    if to < from {
        -(pixels as isize)
    } else {
        pixels as isize
    }
}

#[cfg(test)]
mod tests {
    use super::super::ground::tests::{ground, surface};
    use super::*;

    fn seen(heights: &[f64], width: usize) -> Vec<bool> {
        viewshed(&ground(width, heights), EYES[0])
    }

    #[test]
    fn all_of_a_plane_is_seen_from_above_it() {
        for plane in [
            surface(31, 31, |_, _| 7.0),
            surface(31, 31, |column, row| 3.0 * column - 2.0 * row),
        ] {
            assert!(seen(&plane, 31).iter().all(|&is_seen| is_seen));
        }
    }

    #[test]
    fn a_wall_throws_a_shadow_as_long_as_it_must() {
        // The eye is at column 20 and 2 m high, the wall at column 25 and 1 m: the line over it meets the ground at 30.
        let wall = surface(40, 41, |column, _| f64::from(u8::from(column == 25.0)));
        let seen = seen(&wall, 40);
        let row = &seen[20 * 40..21 * 40];
        let hidden: Vec<usize> = (0..40).filter(|&column| !row[column]).collect();
        assert_eq!(hidden, [26, 27, 28, 29]);
        // Along a diagonal, too, columns count.
        assert!(!seen[28 * 40 + 28] && seen[31 * 40 + 31]);
    }

    #[test]
    fn from_the_foot_of_a_cone_its_far_side_is_hidden() {
        let cone = surface(61, 61, |column, row| {
            (20.0 - (column - 45.0).hypot(row - 30.0)).max(0.0)
        });
        let seen = seen(&cone, 61);
        assert!(seen[30 * 61 + 40] && seen[30 * 61 + 45]);
        assert!(!seen[30 * 61 + 47] && !seen[30 * 61 + 60]);
    }

    #[test]
    fn agreement_is_intersection_over_union() {
        let sheds = |columns: usize| {
            let row = (0..10).map(|column| column < columns);
            Viewsheds(vec![row.collect(), vec![false; 10]])
        };
        assert!((sheds(8).agreement(&sheds(6)) - 0.75).abs() < 1e-12);
        assert!(sheds(0).agreement(&sheds(0)).is_nan());
    }

    #[test]
    fn gaps_hide_nothing_and_are_not_seen() {
        let mut plane = surface(31, 31, |_, _| 7.0);
        plane[15 * 31 + 18] = f64::NAN;
        let seen = seen(&plane, 31);
        assert!(!seen[15 * 31 + 18] && seen[15 * 31 + 25]);
        plane[15 * 31 + 15] = f64::NAN;
        let blind = viewshed(&ground(31, &plane), EYES[0]);
        assert!(blind.iter().all(|&is_seen| !is_seen));
    }
}
