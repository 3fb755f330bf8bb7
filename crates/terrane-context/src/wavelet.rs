//! Two wavelets by lifting: CDF 9/7 for lossy coding, and the reversible 5/3 for lossless.
//!
//! The encoder's 9/7 runs in floats, because it only proposes symbols. The decoder's runs in integers of 1/64 of a
//! quantisation step, so that every machine gets the same heights to the last bit. Where all numbers are small enough, it
//! takes 32 bits for each and not 64, which gives the same and is faster.
//!
//! A line of n samples has ⌈n/2⌉ even and ⌊n/2⌋ odd ones; where a neighbour is missing, the nearest one of its kind
//! stands in. A line of one sample is left as it is.

use crate::matrix::Matrix;

/// The subbands of a level beside LL: HL, LH and HH.
pub const BANDS: usize = 3;

/// One level of a wavelet transform.
#[derive(Debug, Clone, PartialEq)]
pub struct Subbands<T> {
    /// The LL band: the coarser image.
    pub ll: Matrix<T>,
    /// HL (high frequencies across), LH (down) and HH (both).
    pub bands: [Matrix<T>; BANDS],
}

/// Sizes of the LL band of an image, and of the other subbands.
pub(crate) fn subband_sizes(width: usize, height: usize) -> ([usize; 2], [[usize; 2]; BANDS]) {
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

/// The lifting coefficients of the 9/7 in parts of 2^16. The encoder uses the same, so that only rounding is lost.
const LIFTING_97: [i64; 4] = [-103_949, -3_472, 57_862, 29_066];
/// By what the inverse multiplies the LL and the HH band, so that the transform keeps energies.
const SCALE_LL: i64 = 49_589;
const SCALE_HH: i64 = 86_612;
/// By what it multiplies the LL band of a line, and of a single pixel, so that pictures of all shapes grow alike.
const SCALE_LINE: i64 = 40_312;
const SCALE_PIXEL: i64 = 32_770;
const ONE: f64 = 65_536.0;

/// By how much the LL band of a level is larger than the picture: the response of the lifting steps to a constant, squared,
/// over the scale of LL. A little below 2, because the steps' coefficients are rounded.
pub const GROWTH: f64 = {
    let [a, b, c, d] = [
        LIFTING_97[0] as f64 / ONE,
        LIFTING_97[1] as f64 / ONE,
        LIFTING_97[2] as f64 / ONE,
        LIFTING_97[3] as f64 / ONE,
    ];
    let odd = 1.0 + 2.0 * a;
    let even = 1.0 + 2.0 * b * odd;
    let odd = odd + 2.0 * c * even;
    let even = even + 2.0 * d * odd;
    even * even * ONE / SCALE_LL as f64
};

/// The scales of LL and HH of a picture.
fn scales(width: usize, height: usize) -> [i64; 2] {
    match (width > 1, height > 1) {
        (true, true) => [SCALE_LL, SCALE_HH],
        (false, false) => [SCALE_PIXEL, SCALE_HH],
        _ => [SCALE_LINE, SCALE_HH],
    }
}

/// A product with a number in parts of 2^16, rounded half up.
#[inline(always)]
fn times(factor: i64, value: i64) -> i64 {
    (factor.wrapping_mul(value).wrapping_add(1 << 15)) >> 16
}

/// [`times`] of 32 bits: exact where the product is.
#[inline(always)]
fn times_narrow(factor: i32, value: i32) -> i32 {
    // The factor is a whole number and at most half, whose products with 16 bits of the value fit.
    let whole = (factor + (1 << 15)) >> 16;
    let part = factor - (whole << 16);
    let (high, low) = (value >> 16, value & 0xffff);
    let low = (part * low + (1 << 15)) >> 16;
    whole.wrapping_mul(value).wrapping_add(part * high + low)
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
        value + LIFTING_97[step] as f64 / ONE * (a + b)
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
        value.wrapping_sub(times(LIFTING_97[3 - step], a.wrapping_add(b)))
    }
}

/// [`Inverse97`] of numbers below 2^30.
struct Narrow97;
impl Lifting for Narrow97 {
    type Number = i32;
    const STEPS: usize = 4;
    #[inline(always)]
    fn changes_odd(step: usize) -> bool {
        Inverse97::changes_odd(step)
    }
    #[inline(always)]
    fn update(step: usize, value: i32, a: i32, b: i32) -> i32 {
        value.wrapping_sub(times_narrow(LIFTING_97[3 - step] as i32, a.wrapping_add(b)))
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

/// [`Inverse53`] of numbers below 2^30.
struct Narrow53;
impl Lifting for Narrow53 {
    type Number = i32;
    const STEPS: usize = 2;
    #[inline(always)]
    fn changes_odd(step: usize) -> bool {
        Inverse53::changes_odd(step)
    }
    #[inline(always)]
    fn update(step: usize, value: i32, a: i32, b: i32) -> i32 {
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

/// All steps between the even and the odd rows of an image, column by column.
#[inline(always)]
fn lift_rows<L: Lifting>(even: &mut Matrix<L::Number>, odd: &mut Matrix<L::Number>) {
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

/// The forward transform of an image, without scaling.
#[inline(always)]
fn forward<L: Lifting>(image: &Matrix<L::Number>) -> Subbands<L::Number> {
    let (width, height) = (image.width, image.height);
    let ([low_w, low_h], _) = subband_sizes(width, height);
    let (high_w, high_h) = (width - low_w, height - low_h);
    let mut low = [Matrix::new(low_w, low_h), Matrix::new(low_w, high_h)];
    let mut high = [Matrix::new(high_w, low_h), Matrix::new(high_w, high_h)];
    for row in 0..height {
        let (low, high) = (
            low[row % 2].row_mut(row / 2),
            high[row % 2].row_mut(row / 2),
        );
        let mut pairs = image.row(row).chunks_exact(2);
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
    Subbands {
        ll,
        bands: [hl, lh, hh],
    }
}

/// The inverse of [`forward`].
#[inline(always)]
fn inverse<L: Lifting>(subbands: Subbands<L::Number>) -> Matrix<L::Number> {
    let mut ll = subbands.ll;
    let [mut hl, mut lh, mut hh] = subbands.bands;
    lift_rows::<L>(&mut ll, &mut lh);
    lift_rows::<L>(&mut hl, &mut hh);
    let mut image = Matrix::new(ll.width + hl.width, ll.height + lh.height);
    for row in 0..image.height {
        let (low, high) = match row % 2 {
            0 => (ll.row_mut(row / 2), hl.row_mut(row / 2)),
            _ => (lh.row_mut(row / 2), hh.row_mut(row / 2)),
        };
        lift_line::<L>(low, high);
        let line = image.row_mut(row);
        let mut pairs = line.chunks_exact_mut(2);
        for ((pair, &low), &high) in (&mut pairs).zip(&*low).zip(&*high) {
            (pair[0], pair[1]) = (low, high);
        }
        if let ([value], Some(&low)) = (pairs.into_remainder(), low.last()) {
            *value = low;
        }
    }
    image
}

/// By how much an inverse transform's numbers can grow beyond the largest of LL and of the other bands; with their signs at
/// the worst, and rounded up. For the 9/7 those are 23.2 and 120.6, for the 5/3 1 and 5.25.
const GAINS_97: [u64; 2] = [24, 128];
const GAINS_53: [u64; 2] = [2, 8];
/// What they must stay below in 32 bits, so that the sum of two still fits.
const NARROW: u64 = 1 << 30;

/// How many rows are at work at once, at most.
const AT_WORK: usize = 4;

/// Even or odd rows of a picture that are at work: those of a low band and, right of it, of a high one.
struct Rows {
    width: usize,
    values: Vec<i32>,
}

impl Rows {
    fn new(width: usize) -> Self {
        Self {
            width,
            values: vec![0; width * AT_WORK],
        }
    }

    #[inline(always)]
    fn row(&self, row: usize) -> &[i32] {
        &self.values[row % AT_WORK * self.width..][..self.width]
    }

    #[inline(always)]
    fn row_mut(&mut self, row: usize) -> &mut [i32] {
        &mut self.values[row % AT_WORK * self.width..][..self.width]
    }
}

/// Numbers in 32 bits, and bits that they all fit in.
#[inline(always)]
fn narrow(from: &[i64], to: &mut [i32]) -> u64 {
    let mut bits = 0;
    for (to, &from) in to.iter_mut().zip(from) {
        bits |= (from ^ (from >> 63)).cast_unsigned();
        *to = from as i32;
    }
    bits
}

/// One line of two halves, with room for the neighbours that stand in at its ends.
struct Line {
    /// One more at the end.
    even: Vec<i32>,
    /// One more at either end.
    odd: Vec<i32>,
    /// Both in turn.
    whole: Vec<i64>,
}

impl Line {
    /// All steps, as [`lift_line`] takes them, and both halves in turn.
    #[inline(always)]
    fn lift<L: Lifting<Number = i32>>(&mut self, row: &[i32], low: usize) -> &[i64] {
        let (left, right) = row.split_at(low);
        self.even[..low].copy_from_slice(left);
        self.odd[1..][..right.len()].copy_from_slice(right);
        if let Some(last) = right.len().checked_sub(1) {
            for step in 0..L::STEPS {
                if L::changes_odd(step) {
                    self.even[low] = self.even[low - 1];
                    let (a, b) = (&self.even[..=last], &self.even[1..][..=last]);
                    update_all::<L>(step, &mut self.odd[1..][..=last], a, b);
                } else {
                    self.odd[0] = self.odd[1];
                    self.odd[last + 2] = self.odd[last + 1];
                    let (a, b) = (&self.odd[..low], &self.odd[1..][..low]);
                    update_all::<L>(step, &mut self.even[..low], a, b);
                }
            }
        }
        let mut pairs = self.whole.chunks_exact_mut(2);
        let halves = self.even.iter().zip(&self.odd[1..]);
        for (pair, (&even, &odd)) in (&mut pairs).zip(halves) {
            (pair[0], pair[1]) = (even.into(), odd.into());
        }
        if let [value] = pairs.into_remainder() {
            *value = self.even[low - 1].into();
        }
        &self.whole
    }
}

/// One step for a row of numbers and their neighbours.
#[inline(always)]
fn update_all<L: Lifting<Number = i32>>(step: usize, values: &mut [i32], a: &[i32], b: &[i32]) {
    for ((value, &a), &b) in values.iter_mut().zip(a).zip(b) {
        *value = L::update(step, *value, a, b);
    }
}

/// The inverse of [`forward`] in 32 bits; `None` where they may not do. `scales` is by what LL and HH are multiplied first.
#[inline(always)]
fn inverse_narrow<L: Lifting<Number = i32>>(
    subbands: &Subbands<i64>,
    gains: [u64; 2],
    scales: Option<[i64; 2]>,
) -> Option<Matrix<i64>> {
    let Subbands { ll, bands } = subbands;
    let [hl, lh, hh] = bands;
    let (width, height) = (ll.width + hl.width, ll.height + lh.height);
    let (mut even, mut odd) = (Rows::new(width), Rows::new(width));
    let mut line = Line {
        even: vec![0; ll.width + 1],
        odd: vec![0; hl.width + 2],
        whole: vec![0; width],
    };
    let mut values = Vec::with_capacity(width * height);
    let mut bits = [0; 2];
    // A row takes its next step as soon as its neighbours have taken theirs, so that few rows are at work at once.
    let lag = L::STEPS / 2;
    for time in 0..ll.height + lag {
        if time < ll.height {
            let (left, right) = even.row_mut(time).split_at_mut(ll.width);
            bits[0] |= narrow(ll.row(time), left);
            bits[1] |= narrow(hl.row(time), right);
            if let Some([scale, _]) = scales {
                multiply(left, scale);
            }
        }
        if time < lh.height {
            let (left, right) = odd.row_mut(time).split_at_mut(ll.width);
            bits[1] |= narrow(lh.row(time), left) | narrow(hh.row(time), right);
            if let Some([_, scale]) = scales {
                multiply(right, scale);
            }
        }
        let grown = bits.iter().zip(gains).fold(0_u64, |sum, (&bits, gain)| {
            sum.saturating_add(bits.saturating_mul(gain))
        });
        if grown >= NARROW {
            return None;
        }
        for step in 0..L::STEPS {
            let row = time.wrapping_sub(step.div_ceil(2));
            if L::changes_odd(step) && row < lh.height {
                let (a, b) = (even.row(row), even.row((row + 1).min(ll.height - 1)));
                update_all::<L>(step, odd.row_mut(row), a, b);
            } else if !L::changes_odd(step) && row < ll.height && lh.height > 0 {
                let last = lh.height - 1;
                let (a, b) = (row.saturating_sub(1), row.min(last));
                update_all::<L>(step, even.row_mut(row), odd.row(a), odd.row(b));
            }
        }
        let row = time.wrapping_sub(lag);
        if row < lh.height {
            values.extend_from_slice(line.lift::<L>(odd.row(row), ll.width));
        }
        let row = (time + 1).wrapping_sub(lag);
        if row < ll.height {
            values.extend_from_slice(line.lift::<L>(even.row(row), ll.width));
        }
    }
    Some(Matrix {
        width,
        height,
        values,
    })
}

/// Multiplies numbers by parts of 2^16.
#[inline(always)]
fn multiply(values: &mut [i32], factor: i64) {
    for value in values {
        *value = times_narrow(factor as i32, *value);
    }
}

/// The forward 9/7, which keeps energies.
pub(crate) fn forward_97(image: &Matrix<f64>) -> Subbands<f64> {
    let mut subbands = forward::<Forward97>(image);
    let [ll, hh] = scales(image.width, image.height).map(|scale| ONE / scale as f64);
    scale(&mut subbands.ll, |value| value * ll);
    scale(&mut subbands.bands[2], |value| value * hh);
    subbands
}

/// The inverse 9/7, in integers.
#[inline(always)]
pub(crate) fn inverse_97(subbands: Subbands<i64>) -> Matrix<i64> {
    let [hl, lh, _] = &subbands.bands;
    let scales = scales(subbands.ll.width + hl.width, subbands.ll.height + lh.height);
    match inverse_narrow::<Narrow97>(&subbands, GAINS_97, Some(scales)) {
        Some(picture) => picture,
        None => inverse_97_wide(subbands, scales),
    }
}

#[inline(always)]
fn inverse_97_wide(mut subbands: Subbands<i64>, [ll, hh]: [i64; 2]) -> Matrix<i64> {
    scale(&mut subbands.ll, |value| times(ll, value));
    scale(&mut subbands.bands[2], |value| times(hh, value));
    inverse::<Inverse97>(subbands)
}

/// Where the samples of a line's low half lie, from where those of the line do: what the forward transform makes of the
/// positions themselves. At the ends of a line, where it is mirrored, they lie further inside.
pub(crate) fn low_positions(positions: &[f64], is_53: bool) -> Vec<f64> {
    let mut even: Vec<f64> = positions.iter().step_by(2).copied().collect();
    let mut odd: Vec<f64> = positions.iter().skip(1).step_by(2).copied().collect();
    if odd.is_empty() {
        return even;
    }
    // A constant, to divide by what the lifting steps make of it.
    let (mut even_one, mut odd_one) = (vec![1.0; even.len()], vec![1.0; odd.len()]);
    if is_53 {
        lift_line::<Mean53>(&mut even, &mut odd);
        lift_line::<Mean53>(&mut even_one, &mut odd_one);
    } else {
        lift_line::<Forward97>(&mut even, &mut odd);
        lift_line::<Forward97>(&mut even_one, &mut odd_one);
    }
    even.iter().zip(&even_one).map(|(a, one)| a / one).collect()
}

/// The forward 5/3 without its rounding.
struct Mean53;
impl Lifting for Mean53 {
    type Number = f64;
    const STEPS: usize = 2;
    #[inline(always)]
    fn changes_odd(step: usize) -> bool {
        step == 0
    }
    #[inline(always)]
    fn update(step: usize, value: f64, a: f64, b: f64) -> f64 {
        match step {
            0 => value - f64::midpoint(a, b),
            _ => value + (a + b) / 4.0,
        }
    }
}

/// The forward 5/3, which is reversible.
pub(crate) fn forward_53(image: &Matrix<i64>) -> Subbands<i64> {
    forward::<Forward53>(image)
}

/// The inverse 5/3.
#[inline(always)]
pub(crate) fn inverse_53(subbands: Subbands<i64>) -> Matrix<i64> {
    match inverse_narrow::<Narrow53>(&subbands, GAINS_53, None) {
        Some(picture) => picture,
        None => inverse::<Inverse53>(subbands),
    }
}

#[inline(always)]
fn scale<T: Copy>(grid: &mut Matrix<T>, by: impl Fn(T) -> T) {
    for value in &mut grid.values {
        *value = by(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(width: usize, height: usize) -> Matrix<i64> {
        let mut state = 7_u64;
        let values = (0..width * height)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 40) as i64 - (1 << 23)
            })
            .collect();
        Matrix::from_values(width, height, values).unwrap()
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
            let image = noise(width, height);
            assert_eq!(inverse_53(forward_53(&image)), image);
        }
    }

    /// Subbands of a picture of a size, with numbers up to some bits.
    fn subbands(width: usize, height: usize, bits: [u32; 2]) -> Subbands<i64> {
        let (ll, bands) = subband_sizes(width, height);
        let mut number = 0_u64;
        let mut band = |[width, height]: [usize; 2], bits: u32| {
            let values = (0..width * height)
                .map(|_| {
                    number += 1;
                    let value = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let value = value ^ value >> 29;
                    // Many at the ends.
                    let largest = (1_i64 << bits) - 1;
                    match value % 4 {
                        0 => largest,
                        1 => -largest - 1,
                        _ => (value >> 4).cast_signed() % (largest + 1),
                    }
                })
                .collect();
            Matrix::from_values(width, height, values).unwrap()
        };
        Subbands {
            ll: band(ll, bits[0]),
            bands: bands.map(|size| band(size, bits[1])),
        }
    }

    #[test]
    fn thirty_two_bits_give_the_same() {
        let mut counts = [0; 2];
        for [width, height] in SIZES {
            for bits in [
                [3, 2],
                [20, 10],
                [24, 21],
                [25, 21],
                [25, 22],
                [10, 23],
                [40, 3],
            ] {
                let subbands = subbands(width, height, bits);
                let scales = scales(width, height);
                let wide = inverse_97_wide(subbands.clone(), scales);
                let narrow = inverse_narrow::<Narrow97>(&subbands, GAINS_97, Some(scales));
                counts[usize::from(narrow.is_some())] += 1;
                assert!(narrow.is_none_or(|narrow| narrow == wide), "{bits:?}");
                assert_eq!(inverse_97(subbands), wide);
            }
            for bits in [
                [3, 2],
                [28, 5],
                [28, 25],
                [29, 20],
                [5, 26],
                [5, 27],
                [30, 30],
            ] {
                let subbands = subbands(width, height, bits);
                let wide = inverse::<Inverse53>(subbands.clone());
                let narrow = inverse_narrow::<Narrow53>(&subbands, GAINS_53, None);
                counts[usize::from(narrow.is_some())] += 1;
                assert!(narrow.is_none_or(|narrow| narrow == wide), "{bits:?}");
                assert_eq!(inverse_53(subbands), wide);
            }
        }
        assert!(counts[0] > 16 && counts[1] > 16, "{counts:?}");
    }

    #[test]
    fn a_product_in_thirty_two_bits_is_exact() {
        let factors = LIFTING_97
            .into_iter()
            .chain([SCALE_LL, SCALE_HH, SCALE_LINE, SCALE_PIXEL]);
        for factor in factors {
            for value in (-1_i64 << 30..=1 << 30)
                .step_by(65_521)
                .chain([-1 << 30, 0, 1 << 30])
            {
                let narrow = times_narrow(factor as i32, value as i32);
                assert_eq!(i64::from(narrow), times(factor, value), "{factor} {value}");
            }
        }
    }

    #[test]
    fn a_constant_grows_alike_in_pictures_of_all_shapes() {
        assert!((GROWTH - 2.0).abs() < 2e-4, "{GROWTH}");
        for [width, height] in SIZES {
            let flat = Matrix::from_values(width, height, vec![1000.0; width * height]).unwrap();
            for value in forward_97(&flat).ll.values {
                assert!((value / 1000.0 / GROWTH - 1.0).abs() < 2e-5, "{value}");
            }
        }
    }

    #[test]
    fn nine_seven_comes_back_up_to_rounding_and_keeps_energies() {
        for [width, height] in SIZES {
            let image = noise(width, height);
            let floats = Matrix {
                width,
                height,
                values: image.values.iter().map(|&value| value as f64).collect(),
            };
            let subbands = forward_97(&floats);
            let energy = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
            if width.min(height) > 15 {
                let parts = energy(&subbands.ll.values)
                    + subbands
                        .bands
                        .iter()
                        .map(|band| energy(&band.values))
                        .sum::<f64>();
                assert!((parts / energy(&floats.values) - 1.0).abs() < 0.1);
            }
            let round = |grid: Matrix<f64>| Matrix {
                width: grid.width,
                height: grid.height,
                values: grid
                    .values
                    .iter()
                    .map(|value| value.round() as i64)
                    .collect(),
            };
            let back = inverse_97(Subbands {
                ll: round(subbands.ll),
                bands: subbands.bands.map(round),
            });
            for (a, b) in back.values.iter().zip(&image.values) {
                assert!((a - b).abs() < 6, "{width}×{height}: {a} {b}");
            }
        }
    }
}
