//! The scale on which the network sees numbers: fine around 0 and coarse far out, 127 steps each way.
//!
//! Step `k` begins at `⌈64·sinh((k − ½)/16)⌉` in 1/64 of a quantisation step; the thresholds are written out as
//! integers because no bit may depend on a machine's `sinh`.

use std::sync::OnceLock;

/// Parts of a quantisation step that decoded heights are counted in.
pub const SUBSTEPS: i64 = 64;
/// The largest companded value.
pub(crate) const MAX_COMPANDED: u8 = 127;

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

/// Looks values up.
#[derive(Debug)]
pub(crate) struct Compander {
    /// By magnitude in 1/64 steps, up to the last threshold.
    fine: Vec<u8>,
    /// By magnitude in steps.
    coarse: Vec<u8>,
    /// Of the numbers from −[`NEAR`] on, which are the common ones.
    near: Vec<f32>,
}

/// Numbers of 1/64 steps that are looked up with their sign.
const NEAR: i64 = 4096;

impl Compander {
    /// The only one.
    pub(crate) fn get() -> &'static Self {
        static COMPANDER: OnceLock<Compander> = OnceLock::new();
        COMPANDER.get_or_init(|| {
            let mut fine = Vec::with_capacity(THRESHOLDS[MAX_COMPANDED as usize - 1] as usize + 1);
            for (value, &threshold) in (0..MAX_COMPANDED).zip(&THRESHOLDS) {
                fine.resize(threshold as usize, value);
            }
            fine.push(MAX_COMPANDED);
            let coarse = (0..)
                .map_while(|step| fine.get(step * SUBSTEPS as usize).copied())
                .chain([MAX_COMPANDED])
                .collect();
            let mut compander = Self {
                fine,
                coarse,
                near: Vec::new(),
            };
            compander.near = (-NEAR..NEAR)
                .map(|substeps| compander.far(substeps))
                .collect();
            compander
        })
    }

    /// The value of a number of 1/64 steps, as a float that holds an integer.
    #[inline(always)]
    pub(crate) fn fine(&self, substeps: i64) -> f32 {
        let near = self.near.get(substeps.wrapping_add(NEAR) as usize);
        near.copied().unwrap_or_else(|| self.far(substeps))
    }

    fn far(&self, substeps: i64) -> f32 {
        let last = self.fine.len() as u64 - 1;
        signed(
            self.fine[substeps.unsigned_abs().min(last) as usize],
            substeps < 0,
        )
    }

    /// The value of an integer number of steps.
    pub(crate) fn coarse(&self, steps: i64) -> f32 {
        let last = self.coarse.len() as u64 - 1;
        signed(
            self.coarse[steps.unsigned_abs().min(last) as usize],
            steps < 0,
        )
    }
}

fn signed(magnitude: u8, is_negative: bool) -> f32 {
    let value = f32::from(magnitude);
    if is_negative { -value } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_curve() {
        let compander = Compander::get();
        for substeps in (0..90_000_i64).chain([1 << 40, i64::MAX]) {
            let curve = 16.0 * (substeps as f64 / 64.0).asinh();
            let value = f64::from(compander.fine(substeps));
            assert!(
                (value - curve.min(127.0)).abs() <= 0.5 + 1e-9,
                "{substeps}: {value} {curve}"
            );
            assert_eq!(compander.fine(-substeps), -compander.fine(substeps));
        }
        for steps in -2000..2000 {
            assert_eq!(compander.coarse(steps), compander.fine(steps * SUBSTEPS));
        }
        assert_eq!(compander.coarse(i64::MIN), -127.0);
    }
}
