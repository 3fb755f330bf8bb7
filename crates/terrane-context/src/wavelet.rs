//! Two wavelets by lifting: CDF 9/7 for what may lose something, and the reversible 5/3 for what may not.
//!
//! The encoder's 9/7 runs in floats, because it only proposes symbols. The decoder's runs in integers of 1/64 of a
//! quantisation step, so that every machine gets the same heights to the last bit.
//!
//! A line of n samples has ⌈n/2⌉ even and ⌊n/2⌋ odd ones; where a neighbour is missing, the nearest one of its kind
//! stands in. A line of one sample is left as it is.

use crate::grid::Grid;

/// The three bands of details of a level.
pub const BANDS: usize = 3;

/// One level: what is left, and the details, named by axis of their high frequencies: across, down, both.
#[derive(Debug, Clone, PartialEq)]
pub struct Split<T> {
    /// The coarser picture.
    pub low: Grid<T>,
    /// Details across, down and both.
    pub bands: [Grid<T>; BANDS],
}

/// Sizes of a split of a picture: that of `low`, and of the bands.
pub(crate) fn split_sizes(width: usize, height: usize) -> ([usize; 2], [[usize; 2]; BANDS]) {
    let (low_w, low_h) = (width.div_ceil(2), height.div_ceil(2));
    let (high_w, high_h) = (width / 2, height / 2);
    (
        [low_w, low_h],
        [[high_w, low_h], [low_w, high_h], [high_w, high_h]],
    )
}

/// Steps that change one half of a line by its neighbours in the other.
trait Lifting {
    type Number: Copy + Default;
    const STEPS: usize;
    /// Whether a step changes the odd half.
    fn changes_odd(step: usize) -> bool;
    /// The new value of a sample with two neighbours.
    fn update(step: usize, value: Self::Number, a: Self::Number, b: Self::Number) -> Self::Number;
}

/// The numbers of the 9/7 in parts of 2^16. The encoder uses the same, so that nothing but rounding is lost.
const FIXED: [i64; 4] = [-103_949, -3_472, 57_862, 29_066];
/// By what the coarser picture is divided and the band of both is multiplied, so that energies are kept.
const FIXED_LOW: i64 = 49_589;
const FIXED_BOTH: i64 = 86_612;
const WHOLE: f64 = 65_536.0;

/// A product with a number in parts of 2^16, rounded half up.
#[inline(always)]
fn times(factor: i64, value: i64) -> i64 {
    (factor.wrapping_mul(value).wrapping_add(1 << 15)) >> 16
}

struct Forward97;
impl Lifting for Forward97 {
    type Number = f64;
    const STEPS: usize = 4;
    #[inline(always)]
    fn changes_odd(step: usize) -> bool {
        step.is_multiple_of(2)
    }
    #[inline(always)]
    fn update(step: usize, value: f64, a: f64, b: f64) -> f64 {
        value + FIXED[step] as f64 / WHOLE * (a + b)
    }
}

struct Inverse97;
impl Lifting for Inverse97 {
    type Number = i64;
    const STEPS: usize = 4;
    #[inline(always)]
    fn changes_odd(step: usize) -> bool {
        step % 2 == 1
    }
    #[inline(always)]
    fn update(step: usize, value: i64, a: i64, b: i64) -> i64 {
        value.wrapping_sub(times(FIXED[3 - step], a.wrapping_add(b)))
    }
}

struct Forward53;
impl Lifting for Forward53 {
    type Number = i64;
    const STEPS: usize = 2;
    #[inline(always)]
    fn changes_odd(step: usize) -> bool {
        step == 0
    }
    #[inline(always)]
    fn update(step: usize, value: i64, a: i64, b: i64) -> i64 {
        let sum = a.wrapping_add(b);
        match step {
            0 => value.wrapping_sub(sum >> 1),
            _ => value.wrapping_add(sum.wrapping_add(2) >> 2),
        }
    }
}

struct Inverse53;
impl Lifting for Inverse53 {
    type Number = i64;
    const STEPS: usize = 2;
    #[inline(always)]
    fn changes_odd(step: usize) -> bool {
        step == 1
    }
    #[inline(always)]
    fn update(step: usize, value: i64, a: i64, b: i64) -> i64 {
        let sum = a.wrapping_add(b);
        match step {
            0 => value.wrapping_sub(sum.wrapping_add(2) >> 2),
            _ => value.wrapping_add(sum >> 1),
        }
    }
}

/// All steps between the halves of one line.
#[inline(always)]
fn lift_line<L: Lifting>(even: &mut [L::Number], odd: &mut [L::Number]) {
    let Some(last) = odd.len().checked_sub(1) else {
        return;
    };
    for step in 0..L::STEPS {
        if L::changes_odd(step) {
            for index in 0..last {
                odd[index] = L::update(step, odd[index], even[index], even[index + 1]);
            }
            let next = even[(last + 1).min(even.len() - 1)];
            odd[last] = L::update(step, odd[last], even[last], next);
        } else {
            even[0] = L::update(step, even[0], odd[0], odd[0]);
            for index in 1..=last {
                even[index] = L::update(step, even[index], odd[index - 1], odd[index]);
            }
            if even.len() > odd.len() {
                even[last + 1] = L::update(step, even[last + 1], odd[last], odd[last]);
            }
        }
    }
}

/// All steps between the even and the odd rows of a picture, column by column.
#[inline(always)]
fn lift_rows<L: Lifting>(even: &mut Grid<L::Number>, odd: &mut Grid<L::Number>) {
    let Some(last) = odd.height.checked_sub(1) else {
        return;
    };
    for step in 0..L::STEPS {
        let (target, other) = if L::changes_odd(step) {
            (&mut *odd, &*even)
        } else {
            (&mut *even, &*odd)
        };
        for row in 0..target.height {
            let (a, b) = if L::changes_odd(step) {
                (row, (row + 1).min(other.height - 1))
            } else {
                (row.saturating_sub(1).min(last), row.min(last))
            };
            let (a, b) = (other.row(a), other.row(b));
            for ((value, &a), &b) in target.row_mut(row).iter_mut().zip(a).zip(b) {
                *value = L::update(step, *value, a, b);
            }
        }
    }
}

/// Splits a picture; the 9/7 keeps energies.
#[inline(always)]
fn split<L: Lifting>(picture: &Grid<L::Number>) -> Split<L::Number> {
    let (width, height) = (picture.width, picture.height);
    let ([low_w, low_h], _) = split_sizes(width, height);
    let (high_w, high_h) = (width - low_w, height - low_h);
    let mut low = [Grid::new(low_w, low_h), Grid::new(low_w, high_h)];
    let mut high = [Grid::new(high_w, low_h), Grid::new(high_w, high_h)];
    for row in 0..height {
        let (low, high) = (
            low[row % 2].row_mut(row / 2),
            high[row % 2].row_mut(row / 2),
        );
        let mut pairs = picture.row(row).chunks_exact(2);
        for ((low, high), pair) in low.iter_mut().zip(high.iter_mut()).zip(&mut pairs) {
            (*low, *high) = (pair[0], pair[1]);
        }
        if let ([value], Some(low)) = (pairs.remainder(), low.last_mut()) {
            *low = *value;
        }
        lift_line::<L>(low, high);
    }
    let ([mut ll, mut lh], [mut hl, mut hh]) = (low, high);
    lift_rows::<L>(&mut ll, &mut lh);
    lift_rows::<L>(&mut hl, &mut hh);
    Split {
        low: ll,
        bands: [hl, lh, hh],
    }
}

#[inline(always)]
fn join<L: Lifting>(split: Split<L::Number>) -> Grid<L::Number> {
    let mut ll = split.low;
    let [mut hl, mut lh, mut hh] = split.bands;
    lift_rows::<L>(&mut ll, &mut lh);
    lift_rows::<L>(&mut hl, &mut hh);
    let mut picture = Grid::new(ll.width + hl.width, ll.height + lh.height);
    for row in 0..picture.height {
        let (low, high) = match row % 2 {
            0 => (ll.row_mut(row / 2), hl.row_mut(row / 2)),
            _ => (lh.row_mut(row / 2), hh.row_mut(row / 2)),
        };
        lift_line::<L>(low, high);
        let line = picture.row_mut(row);
        let mut pairs = line.chunks_exact_mut(2);
        for ((pair, &low), &high) in (&mut pairs).zip(&*low).zip(&*high) {
            (pair[0], pair[1]) = (low, high);
        }
        if let ([value], Some(&low)) = (pairs.into_remainder(), low.last()) {
            *value = low;
        }
    }
    picture
}

/// One level of the 9/7.
pub(crate) fn split_97(picture: &Grid<f64>) -> Split<f64> {
    let mut split = split::<Forward97>(picture);
    if picture.width > 1 && picture.height > 1 {
        scale(&mut split.low, |value| value * (WHOLE / FIXED_LOW as f64));
        scale(&mut split.bands[2], |value| {
            value * (WHOLE / FIXED_BOTH as f64)
        });
    }
    split
}

/// One level of the 9/7 back, in integers.
#[inline(always)]
pub(crate) fn join_97(mut split: Split<i64>) -> Grid<i64> {
    if split.low.width + split.bands[0].width > 1 && split.low.height + split.bands[1].height > 1 {
        scale(&mut split.low, |value| times(FIXED_LOW, value));
        scale(&mut split.bands[2], |value| times(FIXED_BOTH, value));
    }
    join::<Inverse97>(split)
}

/// One level of the reversible 5/3.
pub(crate) fn split_53(picture: &Grid<i64>) -> Split<i64> {
    split::<Forward53>(picture)
}

/// One level of the reversible 5/3 back.
#[inline(always)]
pub(crate) fn join_53(split: Split<i64>) -> Grid<i64> {
    join::<Inverse53>(split)
}

#[inline(always)]
fn scale<T: Copy>(grid: &mut Grid<T>, by: impl Fn(T) -> T) {
    for value in &mut grid.values {
        *value = by(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(width: usize, height: usize) -> Grid<i64> {
        let mut state = 7_u64;
        let values = (0..width * height)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 40) as i64 - (1 << 23)
            })
            .collect();
        Grid::from_values(width, height, values).unwrap()
    }

    const SIZES: [[usize; 2]; 8] = [
        [1, 1],
        [1, 9],
        [7, 1],
        [2, 2],
        [3, 5],
        [16, 16],
        [33, 20],
        [64, 31],
    ];

    #[test]
    fn five_three_is_reversible() {
        for [width, height] in SIZES {
            let picture = noise(width, height);
            assert_eq!(join_53(split_53(&picture)), picture);
        }
    }

    #[test]
    fn nine_seven_comes_back_up_to_rounding_and_keeps_energies() {
        for [width, height] in SIZES {
            let picture = noise(width, height);
            let floats = Grid {
                width,
                height,
                values: picture.values.iter().map(|&value| value as f64).collect(),
            };
            let split = split_97(&floats);
            let energy = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
            if width.min(height) > 15 {
                let parts = energy(&split.low.values)
                    + split
                        .bands
                        .iter()
                        .map(|band| energy(&band.values))
                        .sum::<f64>();
                assert!((parts / energy(&floats.values) - 1.0).abs() < 0.1);
            }
            let round = |grid: Grid<f64>| Grid {
                width: grid.width,
                height: grid.height,
                values: grid
                    .values
                    .iter()
                    .map(|value| value.round() as i64)
                    .collect(),
            };
            let back = join_97(Split {
                low: round(split.low),
                bands: split.bands.map(round),
            });
            for (a, b) in back.values.iter().zip(&picture.values) {
                assert!((a - b).abs() < 6, "{width}×{height}: {a} {b}");
            }
        }
    }
}
