//! The scale on which the network sees numbers: fine around 0 and coarse far out, 127 steps each way. A number becomes two:
//! its positive and its negative part.
//!
//! Step `k` begins at `⌈64·sinh((k − ½)/16)⌉` in 1/64 of a quantisation step; the thresholds are written out as
//! integers because no bit may depend on a machine's `sinh`.

use std::sync::OnceLock;

/// Parts of a quantisation step that decoded heights are counted in.
pub const SUBSTEPS: i64 = 64;
/// The largest companded value.
const MAX_COMPANDED: u8 = 127;
/// Magnitudes in 1/64 steps from this on are all seen as the largest.
pub(crate) const FAR: i64 = 86_855;
/// The same in steps.
const FAR_STEPS: i64 = (FAR + SUBSTEPS - 1) / SUBSTEPS;

/// Where each value from 1 begins.
const THRESHOLDS: [u32; MAX_COMPANDED as usize] = [
    3, 7, 11, 15, 19, 23, 27, 32, 36, 41, 46, 51, 56, 61, 67, 73, 79, 85, 92, 99, 107, 115, 123,
    132, 142, 152, 162, 173, 185, 198, 211, 225, 240, 256, 273, 291, 310, 331, 353, 376, 400, 426,
    454, 484, 515, 548, 584, 622, 662, 705, 751, 799, 851, 906, 964, 1027, 1093, 1163, 1239, 1319,
    1404, 1494, 1591, 1693, 1803, 1919, 2043, 2174, 2315, 2464, 2623, 2792, 2972, 3164, 3368, 3585,
    3816, 4062, 4324, 4603, 4900, 5216, 5553, 5911, 6292, 6698, 7130, 7590, 8079, 8600, 9155, 9745,
    10374, 11043, 11755, 12513, 13320, 14179, 15093, 16067, 17103, 18206, 19380, 20630, 21961,
    23377, 24885, 26489, 28198, 30016, 31952, 34013, 36207, 38542, 41027, 43674, 46490, 49488,
    52680, 56078, 59694, 63544, 67643, 72005, 76649, 81592, 86855,
];

/// Looks values up: the positive part in the low byte, the negative part in the high one.
#[derive(Debug)]
pub(crate) struct Compander {
    /// By number of 1/64 steps, from −[`FAR`] on; as long as a power of two, so that no index is beyond it.
    fine: Box<[u16; FINE]>,
    /// By number of steps, from −[`FAR_STEPS`] on.
    coarse: Box<[u16; COARSE]>,
}

const FINE: usize = (2 * FAR as usize + 1).next_power_of_two();
const COARSE: usize = (2 * FAR_STEPS as usize + 1).next_power_of_two();

impl Compander {
    /// The only one.
    pub(crate) fn get() -> &'static Self {
        static COMPANDER: OnceLock<Compander> = OnceLock::new();
        COMPANDER.get_or_init(|| {
            let mut fine = vec![0; FINE];
            let far = FAR as usize;
            for (value, &threshold) in (1..).zip(&THRESHOLDS) {
                let threshold = threshold as usize;
                fine[far + threshold..].fill(value);
                fine[..=far - threshold].fill(value << 8);
            }
            let coarse: Vec<u16> = (0..COARSE as i64)
                .map(|index| {
                    let substeps = (index - FAR_STEPS) * SUBSTEPS;
                    fine[(substeps.clamp(-FAR, FAR) + FAR) as usize]
                })
                .collect();
            Self {
                fine: array(fine),
                coarse: array(coarse),
            }
        })
    }

    /// The parts of a number of 1/64 steps.
    #[inline(always)]
    pub(crate) fn fine(&self, substeps: i64) -> u16 {
        self.fine[(substeps.clamp(-FAR, FAR) + FAR) as usize & (FINE - 1)]
    }

    /// The parts of a number of 1/64 steps that was clamped to −[`FAR`] and [`FAR`], and to which [`FAR`] was added.
    #[inline(always)]
    pub(crate) fn raised(&self, index: u32) -> u32 {
        self.fine[index as usize & (FINE - 1)].into()
    }

    /// The parts of an integer number of steps.
    #[inline(always)]
    pub(crate) fn coarse(&self, steps: i64) -> u16 {
        self.coarse_raised(raised_steps(steps))
    }

    /// The parts of an integer number of steps from [`raised_steps`].
    #[inline(always)]
    pub(crate) fn coarse_raised(&self, index: u16) -> u16 {
        self.coarse[usize::from(index) & (COARSE - 1)]
    }
}

/// A number of steps clamped to where all larger ones are seen alike, and raised by that.
#[inline(always)]
pub(crate) fn raised_steps(steps: i64) -> u16 {
    (steps.clamp(-FAR_STEPS, FAR_STEPS) + FAR_STEPS) as u16
}

/// As an array; zeros where the length is another, which it is not.
#[expect(clippy::unnecessary_box_returns, reason = "too large for a stack")]
fn array<const LENGTH: usize>(values: Vec<u16>) -> Box<[u16; LENGTH]> {
    Box::try_from(values).unwrap_or_else(|_| Box::new([0; LENGTH]))
}

/// What the network sees of a symbol: its positive and its negative part.
pub fn seen_symbol(symbol: i64) -> [u8; 2] {
    Compander::get().coarse(symbol).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_curve() {
        let compander = Compander::get();
        assert_eq!(FAR, i64::from(THRESHOLDS[126]));
        for substeps in (0..90_000_i64).chain([1 << 40, i64::MAX]) {
            let curve = 16.0 * (substeps as f64 / 64.0).asinh();
            let [value, negative] = compander.fine(substeps).to_le_bytes();
            assert!(
                (f64::from(value) - curve.min(127.0)).abs() <= 0.5 + 1e-9,
                "{substeps}: {value} {curve}"
            );
            assert_eq!(negative, 0);
            assert_eq!(compander.fine(-substeps).to_le_bytes(), [0, value]);
        }
        for steps in -2000..2000 {
            assert_eq!(compander.coarse(steps), compander.fine(steps * SUBSTEPS));
        }
        assert_eq!(seen_symbol(i64::MIN), [0, 127]);
    }
}
