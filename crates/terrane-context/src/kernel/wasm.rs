//! Kernels for WebAssembly with 128-bit registers: products of 16 bits that are added pair by pair.

use std::arch::wasm32::{
    i8x16_add_sat, i8x16_max, i8x16_narrow_i16x8, i8x16_shuffle, i16x8_extend_high_i8x16,
    i16x8_extend_low_i8x16, i16x8_narrow_i32x4, i16x8_shr, i32x4_add, i32x4_dot_i16x8,
    i32x4_shuffle, i32x4_splat, i64x2_shuffle, v128, v128_and, v128_load, v128_store,
};

use super::{Lanes, OUTPUTS, SHIFT};
use crate::grid::LANES;

/// Words of a register.
const WIDTH: usize = 4;
/// 4 positions in a register: more spill. Sums are kept in halves, of two positions each, until the end.
struct Wasm;
const PAIRS: usize = 1;

impl Lanes for Wasm {
    type Sums = [[v128; PAIRS]; OUTPUTS];
    const POSITIONS: usize = WIDTH * PAIRS;

    #[inline(always)]
    unsafe fn sum(
        bias: [i32; OUTPUTS],
        weights: &[[i32; OUTPUTS]],
        inputs: &[usize],
        base: *const u32,
    ) -> Self::Sums {
        let mut halves = [[[i32x4_splat(0); 2]; PAIRS]; OUTPUTS];
        for (weights, &offset) in weights.iter().zip(inputs) {
            // SAFETY: an array of four words.
            let weights = unsafe { v128_load(weights.as_ptr().cast()) };
            let (ab, cd) = (
                i16x8_extend_low_i8x16(weights),
                i16x8_extend_high_i8x16(weights),
            );
            let weights = [
                i64x2_shuffle::<0, 0>(ab, ab),
                i64x2_shuffle::<1, 1>(ab, ab),
                i64x2_shuffle::<0, 0>(cd, cd),
                i64x2_shuffle::<1, 1>(cd, cd),
            ];
            for pair in 0..PAIRS {
                // SAFETY: the caller vouches for these words.
                let x = unsafe { v128_load(base.add(offset + pair * WIDTH).cast()) };
                // Activations are at most 127, so that they are signed bytes too.
                let (low, high) = (i16x8_extend_low_i8x16(x), i16x8_extend_high_i8x16(x));
                for (halves, weights) in halves.iter_mut().zip(weights) {
                    let [a, b] = &mut halves[pair];
                    *a = i32x4_add(*a, i32x4_dot_i16x8(low, weights));
                    *b = i32x4_add(*b, i32x4_dot_i16x8(high, weights));
                }
            }
        }
        let mut sums = bias.map(|bias| [i32x4_splat(bias); PAIRS]);
        for (sums, halves) in sums.iter_mut().zip(halves) {
            for (sum, [a, b]) in sums.iter_mut().zip(halves) {
                let even = i32x4_shuffle::<0, 2, 4, 6>(a, b);
                let odd = i32x4_shuffle::<1, 3, 5, 7>(a, b);
                *sum = i32x4_add(*sum, i32x4_add(even, odd));
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
        for pair in 0..PAIRS {
            let [a, b, c, d] = sums.map(|sums| sums[pair]);
            // Narrowing saturates, so that the shift may follow it.
            let ab = i16x8_shr(i16x8_narrow_i32x4(a, b), SHIFT);
            let cd = i16x8_shr(i16x8_narrow_i32x4(c, d), SHIFT);
            let bytes = i8x16_narrow_i16x8(ab, cd);
            let mut word =
                i8x16_shuffle::<0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15>(bytes, bytes);
            // SAFETY: the caller vouches for these words.
            unsafe {
                let at = pair * WIDTH;
                if let Some(residual) = residual {
                    word = i8x16_add_sat(word, v128_load(residual.add(at).cast()));
                }
                word = i8x16_max(word, i32x4_splat(0));
                if let Some(mask) = mask {
                    word = v128_and(word, v128_load(mask.add(at).cast()));
                }
                v128_store(out.add(at).cast(), word);
            }
        }
    }

    #[inline(always)]
    unsafe fn store(sums: Self::Sums, out: *mut i32) {
        for (output, sums) in sums.into_iter().enumerate() {
            for (pair, sums) in sums.into_iter().enumerate() {
                // SAFETY: the caller vouches for these numbers.
                unsafe { v128_store(out.add(output * LANES + pair * WIDTH).cast(), sums) }
            }
        }
    }
}

kernels!(Wasm, activations_wasm, sums_wasm);
