//! Sums of products of small integers: what the network spends its time with.
//!
//! Four channels of 0 to 127 stand in one word per position, four weights of −127 to 127 in another. For 64 positions side by
//! side and four outputs at a time, the products of a list of inputs are summed in 32 bits. Every instruction set computes the
//! same integers; which one runs changes the time and no bit.

#![expect(
    unsafe_code,
    reason = "kernels are written in a machine's own instructions"
)]

/// Defines the two functions for a way to work and the instructions it needs; before the modules that use it.
macro_rules! kernels {
    ($lanes:ty, $activations:ident, $sums:ident $(, $feature:literal)?) => {
        $(#[target_feature(enable = $feature)])?
        pub(super) unsafe fn $activations(
            values: *mut u32,
            sum: &crate::kernel::Sum,
            blocks: usize,
            target: &crate::kernel::Target,
        ) {
            // SAFETY: the caller vouches for the same.
            unsafe { crate::kernel::activations_with::<$lanes>(values, sum, blocks, target) }
        }

        $(#[target_feature(enable = $feature)])?
        pub(super) unsafe fn $sums(
            values: *const u32,
            sum: &crate::kernel::Sum,
            out: &mut [[i32; crate::grid::LANES]; crate::kernel::OUTPUTS],
        ) {
            // SAFETY: the caller vouches for the same.
            unsafe { crate::kernel::sums_with::<$lanes>(values, sum, out) }
        }
    };
}

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::grid::LANES;
use crate::simd::{self, Machine};

/// Outputs that are summed at a time.
pub(crate) const OUTPUTS: usize = 4;
/// A weight of 1 is 2 to the power of this.
pub(crate) const SHIFT: u32 = 6;
/// What is added to a sum so that the shift rounds.
pub(crate) const ROUNDING: i32 = 1 << (SHIFT - 1);
/// The largest activation.
pub(crate) const MAX_ACTIVATION: i32 = 127;

/// What is summed: for every group of four outputs a bias per output, and per input one word of weights per output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sum<'a> {
    pub(crate) bias: &'a [[i32; OUTPUTS]],
    /// Group by group, input by input.
    pub(crate) weights: &'a [[i32; OUTPUTS]],
    /// Where the inputs of the first position lie.
    pub(crate) inputs: &'a [usize],
    /// How far from there the work starts.
    pub(crate) from: usize,
}

/// Where activations go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// The first position of the first group.
    pub(crate) first: usize,
    /// From a group to the next.
    pub(crate) step: usize,
    /// Where the words that mask the positions lie.
    pub(crate) mask: Option<usize>,
    /// Whether the result is added to what is there.
    pub(crate) is_residual: bool,
}

/// A way to work on some positions at a time.
trait Lanes {
    /// Sums of `POSITIONS` positions for four outputs.
    type Sums;
    /// Positions at a time; divides [`LANES`].
    const POSITIONS: usize;

    /// Sums the products of the inputs, each `POSITIONS` words from its offset after `base` on.
    ///
    /// # Safety
    /// The machine has the instructions, and all those words can be read.
    unsafe fn sum(
        bias: [i32; OUTPUTS],
        weights: &[[i32; OUTPUTS]],
        inputs: &[usize],
        base: *const u32,
    ) -> Self::Sums;

    /// Shifts, clamps and packs sums to words, adds those of `residual`, and keeps the bits of `mask`.
    ///
    /// # Safety
    /// The machine has the instructions, and `POSITIONS` words can be written and read.
    unsafe fn pack(
        sums: Self::Sums,
        residual: Option<*const u32>,
        mask: Option<*const u32>,
        out: *mut u32,
    );

    /// Writes sums: those of an output every [`LANES`] numbers.
    ///
    /// # Safety
    /// The machine has the instructions, and the numbers can be written.
    unsafe fn store(sums: Self::Sums, out: *mut i32);
}

/// The activations of `blocks` times [`LANES`] positions.
///
/// # Safety
/// As the functions of `L` demand, for all offsets of `sum` and `target`.
#[inline(always)]
unsafe fn activations_with<L: Lanes>(values: *mut u32, sum: &Sum, blocks: usize, target: &Target) {
    let count = sum.inputs.len();
    for block in 0..blocks {
        for (group, &bias) in sum.bias.iter().enumerate() {
            let weights = &sum.weights[group * count..(group + 1) * count];
            for part in (0..LANES).step_by(L::POSITIONS) {
                let at = block * LANES + part;
                // SAFETY: the caller vouches for all offsets.
                unsafe {
                    let sums = L::sum(bias, weights, sum.inputs, values.add(sum.from + at));
                    let out = values.add(target.first + group * target.step + at);
                    let residual = target.is_residual.then_some(out.cast_const());
                    let mask = target
                        .mask
                        .map(|mask| values.cast_const().wrapping_add(mask + at));
                    L::pack(sums, residual, mask, out);
                }
            }
        }
    }
}

/// The sums of [`LANES`] positions for four outputs.
///
/// # Safety
/// As the functions of `L` demand, for all offsets of `sum`.
#[inline(always)]
unsafe fn sums_with<L: Lanes>(values: *const u32, sum: &Sum, out: &mut [[i32; LANES]; OUTPUTS]) {
    let Some(&bias) = sum.bias.first() else {
        return;
    };
    let out = out.as_mut_ptr().cast::<i32>();
    for part in (0..LANES).step_by(L::POSITIONS) {
        // SAFETY: the caller vouches for all offsets, and `out` has as many numbers as lanes and outputs.
        unsafe {
            let base = values.add(sum.from + part);
            L::store(L::sum(bias, sum.weights, sum.inputs, base), out.add(part));
        }
    }
}

/// Panics unless `blocks` of all inputs lie within so many words, and there are as many weights as the sum needs.
fn check(length: usize, sum: &Sum, blocks: usize) {
    let reach = sum.inputs.iter().max().map_or(0, |last| last + sum.from);
    assert!(
        reach + blocks * LANES <= length && sum.weights.len() == sum.bias.len() * sum.inputs.len(),
        "a kernel stays within its words"
    );
}

/// Activations of `blocks` times [`LANES`] positions: sums with a bias that holds the rounding, shifted, clamped and packed.
pub(crate) fn activations(values: &mut [u32], sum: &Sum, blocks: usize, target: &Target) {
    let last = sum.bias.len().saturating_sub(1) * target.step + blocks * LANES;
    check(values.len(), sum, blocks);
    assert!(
        target.first.max(target.mask.unwrap_or(0)) + last <= values.len(),
        "a kernel stays within its words"
    );
    let values = values.as_mut_ptr();
    // SAFETY: the machine has the instructions, all offsets were checked, and what they point to is read and written one at a
    // time through one pointer.
    unsafe {
        match simd::machine() {
            #[cfg(target_arch = "x86_64")]
            Machine::Vnni => x86::activations_vnni(values, sum, blocks, target),
            #[cfg(target_arch = "x86_64")]
            Machine::Avx512 | Machine::Avx2 => {
                x86::activations_avx2(values, sum, blocks, target);
            }
            #[cfg(target_arch = "aarch64")]
            Machine::Dot => neon::activations_dot(values, sum, blocks, target),
            #[cfg(target_arch = "aarch64")]
            Machine::Neon => neon::activations_neon(values, sum, blocks, target),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Machine::Wasm => wasm::activations_wasm(values, sum, blocks, target),
            Machine::Plain => activations_plain(values, sum, blocks, target),
        }
    }
}

/// The sums of [`LANES`] positions for four outputs.
pub(crate) fn sums(values: &[u32], sum: &Sum, out: &mut [[i32; LANES]; OUTPUTS]) {
    check(values.len(), sum, 1);
    let values = values.as_ptr();
    // SAFETY: the machine has the instructions, and all offsets were checked.
    unsafe {
        match simd::machine() {
            #[cfg(target_arch = "x86_64")]
            Machine::Vnni => x86::sums_vnni(values, sum, out),
            #[cfg(target_arch = "x86_64")]
            Machine::Avx512 | Machine::Avx2 => x86::sums_avx2(values, sum, out),
            #[cfg(target_arch = "aarch64")]
            Machine::Dot => neon::sums_dot(values, sum, out),
            #[cfg(target_arch = "aarch64")]
            Machine::Neon => neon::sums_neon(values, sum, out),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Machine::Wasm => wasm::sums_wasm(values, sum, out),
            Machine::Plain => sums_plain(values, sum, out),
        }
    }
}

/// What runs on every machine.
struct Plain;

/// Positions of [`Plain`].
const PLAIN: usize = 16;

impl Lanes for Plain {
    type Sums = [[i32; PLAIN]; OUTPUTS];
    const POSITIONS: usize = PLAIN;

    #[inline(always)]
    unsafe fn sum(
        bias: [i32; OUTPUTS],
        weights: &[[i32; OUTPUTS]],
        inputs: &[usize],
        base: *const u32,
    ) -> Self::Sums {
        let mut sums = bias.map(|bias| [bias; PLAIN]);
        for (weights, &offset) in weights.iter().zip(inputs) {
            // SAFETY: the caller vouches for these words.
            let words = unsafe { base.add(offset).cast::<[u32; PLAIN]>().read_unaligned() };
            for (sums, &weights) in sums.iter_mut().zip(weights) {
                let weights = weights
                    .to_le_bytes()
                    .map(|weight| i32::from(weight.cast_signed()));
                for (sum, &word) in sums.iter_mut().zip(&words) {
                    for (channel, weight) in weights.into_iter().enumerate() {
                        *sum += (word >> (8 * channel) & 0xff).cast_signed() * weight;
                    }
                }
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn pack(
        sums: Self::Sums,
        residual: Option<*const u32>,
        mask: Option<*const u32>,
        out: *mut u32,
    ) {
        let read = |words: *const u32| {
            // SAFETY: the caller vouches for these words.
            unsafe { words.cast::<[u32; PLAIN]>().read_unaligned() }
        };
        let residual = residual.map_or([0; PLAIN], read);
        let mask = mask.map_or([u32::MAX; PLAIN], read);
        let mut words = [0; PLAIN];
        for (channel, sums) in sums.iter().enumerate() {
            for (lane, word) in words.iter_mut().enumerate() {
                let before = (residual[lane] >> (8 * channel) & 0xff).cast_signed();
                let value = (before + (sums[lane] >> SHIFT)).clamp(0, MAX_ACTIVATION);
                *word |= value.cast_unsigned() << (8 * channel);
            }
        }
        for (word, mask) in words.iter_mut().zip(mask) {
            *word &= mask;
        }
        // SAFETY: the caller vouches for these words.
        unsafe { out.cast::<[u32; PLAIN]>().write_unaligned(words) }
    }

    #[inline(always)]
    unsafe fn store(sums: Self::Sums, out: *mut i32) {
        for (output, sums) in sums.into_iter().enumerate() {
            // SAFETY: the caller vouches for these numbers.
            unsafe {
                out.add(output * LANES)
                    .cast::<[i32; PLAIN]>()
                    .write_unaligned(sums);
            }
        }
    }
}

kernels!(Plain, activations_plain, sums_plain);

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of random channels, the extremes among them.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }

        fn channel(&mut self) -> u8 {
            match self.below(4) {
                0 => 127,
                1 => 0,
                _ => self.below(128) as u8,
            }
        }

        fn weight(&mut self, kind: u64) -> i8 {
            match kind {
                0 => 127,
                1 => -127,
                _ => self.below(255) as i8,
            }
        }
    }

    /// Every machine's words and sums are those of the definition.
    #[test]
    fn every_machine_computes_the_same() {
        let mut random = Random(1);
        let before: Vec<u32> = (0..4000)
            .map(|_| u32::from_le_bytes(std::array::from_fn(|_| random.channel())))
            .collect();
        // An interpreter takes a thousand times as long, and looks at memory rather than at numbers.
        let (kinds, sizes) = if cfg!(miri) {
            (1, &[(2, 3, 1)][..])
        } else {
            (8, &[(1, 1, 1), (2, 7, 3), (3, 45, 2), (1, 0, 1)][..])
        };
        for kind in 0..kinds {
            for &(groups, count, blocks) in sizes {
                let weights: Vec<[i32; OUTPUTS]> = (0..groups * count)
                    .map(|_| {
                        std::array::from_fn(|_| {
                            i32::from_le_bytes(std::array::from_fn(|_| {
                                random.weight(kind).cast_unsigned()
                            }))
                        })
                    })
                    .collect();
                let bias: Vec<[i32; OUTPUTS]> = (0..groups)
                    .map(|_| std::array::from_fn(|_| random.below(40_000) as i32 - 20_000))
                    .collect();
                let inputs: Vec<usize> = (0..count).map(|_| random.below(1000) as usize).collect();
                let sum = Sum {
                    bias: &bias,
                    weights: &weights,
                    inputs: &inputs,
                    from: 3,
                };
                let expected = |group: usize, output: usize, at: usize| {
                    let weights = &weights[group * count..][..count];
                    let products = weights.iter().zip(&inputs).map(|(weights, offset)| {
                        let word = before[offset + 3 + at].to_le_bytes();
                        let weights = weights[output].to_le_bytes();
                        let products = word
                            .iter()
                            .zip(weights)
                            .map(|(&x, w)| i32::from(x) * i32::from(w.cast_signed()));
                        products.sum::<i32>()
                    });
                    bias[group][output] + products.sum::<i32>()
                };
                for (mask, is_residual) in [(None, false), (Some(1500), true), (Some(77), false)] {
                    let target = Target {
                        first: 2001,
                        step: 500,
                        mask,
                        is_residual,
                    };
                    simd::limit::each(|machine| {
                        let mut values = before.clone();
                        activations(&mut values, &sum, blocks, &target);
                        for group in 0..groups {
                            for at in 0..blocks * LANES {
                                let place = 2001 + group * 500 + at;
                                let old = before[place].to_le_bytes();
                                let word: [u8; 4] = std::array::from_fn(|output| {
                                    let sum = expected(group, output, at) >> SHIFT;
                                    let old = if is_residual { old[output] } else { 0 };
                                    (sum + i32::from(old)).clamp(0, 127) as u8
                                });
                                let mask = mask.map_or(u32::MAX, |mask| before[mask + at]);
                                let word = u32::from_le_bytes(word) & mask;
                                assert_eq!(values[place], word, "{machine:?} {kind}");
                                values[place] = before[place];
                            }
                        }
                        assert!(values == before, "nothing else is written");
                        let first = Sum {
                            bias: &bias[..1],
                            weights: &weights[..count],
                            ..sum
                        };
                        let mut out = [[0; LANES]; OUTPUTS];
                        sums(&before, &first, &mut out);
                        for (output, row) in out.iter().enumerate() {
                            for (at, &value) in row.iter().enumerate() {
                                assert_eq!(value, expected(0, output, at), "{machine:?}");
                            }
                        }
                    });
                }
            }
        }
    }
}
