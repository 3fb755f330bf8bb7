//! Kernels for 64-bit ARM: dot products of bytes where the machine has them, else products that are added pair by pair.
//!
//! Activations are at most 127, so that they are signed bytes too.

use std::arch::aarch64::{
    int8x16_t, int16x8_t, int32x4_t, uint8x16_t, vandq_u32, vcombine_s8, vcombine_s16, vdupq_n_s8,
    vdupq_n_s32, vget_low_s8, vld1q_u8, vld1q_u32, vmaxq_s8, vmlal_high_s8, vmlal_s8,
    vmull_high_s8, vmull_s8, vpadalq_s16, vpaddq_s32, vqaddq_s8, vqmovn_s16, vqmovn_s32,
    vqtbl1q_s8, vreinterpretq_s8_s32, vreinterpretq_s8_u32, vreinterpretq_u32_s8, vshrq_n_s16,
    vst1q_s32, vst1q_u32,
};
use std::arch::asm;

use super::{Lanes, OUTPUTS, SHIFT};
use crate::grid::LANES;

/// Words of a register.
const WIDTH: usize = 4;

/// From four positions of each of four outputs to four outputs of each of four positions.
static BY_POSITION: [u8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

/// Shifts, clamps and packs the sums of four positions.
///
/// # Safety
/// As [`Lanes::pack`].
#[inline(always)]
unsafe fn pack(
    [a, b, c, d]: [int32x4_t; OUTPUTS],
    residual: Option<*const u32>,
    mask: Option<*const u32>,
    out: *mut u32,
) {
    // SAFETY: the caller vouches for the words, and every such machine has the instructions.
    unsafe {
        // Narrowing saturates, so that the shift may follow it.
        let narrow = |a, b| -> int16x8_t {
            let both = vcombine_s16(vqmovn_s32(a), vqmovn_s32(b));
            vshrq_n_s16::<{ SHIFT as i32 }>(both)
        };
        let bytes = vcombine_s8(vqmovn_s16(narrow(a, b)), vqmovn_s16(narrow(c, d)));
        let order: uint8x16_t = vld1q_u8(BY_POSITION.as_ptr());
        let mut word = vqtbl1q_s8(bytes, order);
        if let Some(residual) = residual {
            word = vqaddq_s8(word, vreinterpretq_s8_u32(vld1q_u32(residual)));
        }
        let mut word = vreinterpretq_u32_s8(vmaxq_s8(word, vdupq_n_s8(0)));
        if let Some(mask) = mask {
            word = vandq_u32(word, vld1q_u32(mask));
        }
        vst1q_u32(out, word);
    }
}

/// 16 positions in four registers.
struct Dot;
const PARTS: usize = 4;

impl Lanes for Dot {
    type Sums = [[int32x4_t; PARTS]; OUTPUTS];
    const POSITIONS: usize = WIDTH * PARTS;

    #[inline(always)]
    unsafe fn sum(
        bias: [i32; OUTPUTS],
        weights: &[[i32; OUTPUTS]],
        inputs: &[usize],
        base: *const u32,
    ) -> Self::Sums {
        // SAFETY: the caller vouches for the instructions and the words.
        unsafe {
            let mut sums = bias.map(|bias| [vdupq_n_s32(bias); PARTS]);
            for (weights, &offset) in weights.iter().zip(inputs) {
                let words = base.add(offset);
                let weights = vld1q_u8(weights.as_ptr().cast());
                for part in 0..PARTS {
                    let x = vreinterpretq_s8_u32(vld1q_u32(words.add(part * WIDTH)));
                    // The library has no stable function for it.
                    asm!(
                        "sdot {a:v}.4s, {x:v}.16b, {w:v}.4b[0]",
                        "sdot {b:v}.4s, {x:v}.16b, {w:v}.4b[1]",
                        "sdot {c:v}.4s, {x:v}.16b, {w:v}.4b[2]",
                        "sdot {d:v}.4s, {x:v}.16b, {w:v}.4b[3]",
                        a = inout(vreg) sums[0][part],
                        b = inout(vreg) sums[1][part],
                        c = inout(vreg) sums[2][part],
                        d = inout(vreg) sums[3][part],
                        x = in(vreg) x,
                        w = in(vreg) weights,
                        options(pure, nomem, nostack, preserves_flags),
                    );
                }
            }
            sums
        }
    }

    #[inline(always)]
    unsafe fn pack(
        sums: Self::Sums,
        residual: Option<*const u32>,
        mask: Option<*const u32>,
        out: *mut u32,
    ) {
        for part in 0..PARTS {
            let at = part * WIDTH;
            // SAFETY: the caller vouches for the words.
            unsafe {
                pack(
                    sums.map(|sums| sums[part]),
                    residual.map(|words| words.add(at)),
                    mask.map(|words| words.add(at)),
                    out.add(at),
                );
            }
        }
    }

    #[inline(always)]
    unsafe fn store(sums: Self::Sums, out: *mut i32) {
        for (output, sums) in sums.into_iter().enumerate() {
            for (part, sums) in sums.into_iter().enumerate() {
                // SAFETY: the caller vouches for the numbers.
                unsafe { vst1q_s32(out.add(output * LANES + part * WIDTH), sums) }
            }
        }
    }
}

kernels!(Dot, activations_dot, sums_dot, "neon,dotprod");

/// 8 positions in two registers; sums are kept in halves, of two positions each, until the end.
struct Neon;
const PAIRS: usize = 2;

impl Lanes for Neon {
    type Sums = [[int32x4_t; PAIRS]; OUTPUTS];
    const POSITIONS: usize = WIDTH * PAIRS;

    #[inline(always)]
    unsafe fn sum(
        bias: [i32; OUTPUTS],
        weights: &[[i32; OUTPUTS]],
        inputs: &[usize],
        base: *const u32,
    ) -> Self::Sums {
        // SAFETY: the caller vouches for the words, and every such machine has the instructions.
        unsafe {
            let mut halves = [[[vdupq_n_s32(0); 2]; PAIRS]; OUTPUTS];
            let load = |offset: usize, pair: usize| -> int8x16_t {
                vreinterpretq_s8_u32(vld1q_u32(base.add(offset + pair * WIDTH)))
            };
            // Two inputs at a time: two products of 127·128 fit into 16 bits.
            let (pairs_of_weights, last_weights) = weights.as_chunks::<2>();
            let (pairs_of_inputs, last_inputs) = inputs.as_chunks::<2>();
            for (weights, offsets) in pairs_of_weights.iter().zip(pairs_of_inputs) {
                for pair in 0..PAIRS {
                    let [x, y] = [load(offsets[0], pair), load(offsets[1], pair)];
                    for output in 0..OUTPUTS {
                        let [v, w] = [0, 1].map(|input: usize| {
                            vreinterpretq_s8_s32(vdupq_n_s32(weights[input][output]))
                        });
                        let low = vmull_s8(vget_low_s8(x), vget_low_s8(v));
                        let low = vmlal_s8(low, vget_low_s8(y), vget_low_s8(w));
                        let high = vmlal_high_s8(vmull_high_s8(x, v), y, w);
                        let [a, b] = &mut halves[output][pair];
                        *a = vpadalq_s16(*a, low);
                        *b = vpadalq_s16(*b, high);
                    }
                }
            }
            for (weights, &offset) in last_weights.iter().zip(last_inputs) {
                for pair in 0..PAIRS {
                    let x = load(offset, pair);
                    for output in 0..OUTPUTS {
                        let v = vreinterpretq_s8_s32(vdupq_n_s32(weights[output]));
                        let [a, b] = &mut halves[output][pair];
                        *a = vpadalq_s16(*a, vmull_s8(vget_low_s8(x), vget_low_s8(v)));
                        *b = vpadalq_s16(*b, vmull_high_s8(x, v));
                    }
                }
            }
            let mut sums = bias.map(|bias| [vdupq_n_s32(bias); PAIRS]);
            for (sums, halves) in sums.iter_mut().zip(halves) {
                for (sum, [a, b]) in sums.iter_mut().zip(halves) {
                    *sum = std::arch::aarch64::vaddq_s32(*sum, vpaddq_s32(a, b));
                }
            }
            sums
        }
    }

    #[inline(always)]
    unsafe fn pack(
        sums: Self::Sums,
        residual: Option<*const u32>,
        mask: Option<*const u32>,
        out: *mut u32,
    ) {
        for pair in 0..PAIRS {
            let at = pair * WIDTH;
            // SAFETY: the caller vouches for the words.
            unsafe {
                pack(
                    sums.map(|sums| sums[pair]),
                    residual.map(|words| words.add(at)),
                    mask.map(|words| words.add(at)),
                    out.add(at),
                );
            }
        }
    }

    #[inline(always)]
    unsafe fn store(sums: Self::Sums, out: *mut i32) {
        for (output, sums) in sums.into_iter().enumerate() {
            for (pair, sums) in sums.into_iter().enumerate() {
                // SAFETY: the caller vouches for the numbers.
                unsafe { vst1q_s32(out.add(output * LANES + pair * WIDTH), sums) }
            }
        }
    }
}

kernels!(Neon, activations_neon, sums_neon);
