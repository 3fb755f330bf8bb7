//! Kernels for x86: 512-bit dot products of bytes, and 256-bit products that are added pair by pair.

use std::arch::x86_64::{
    __m256i, __m512i, _mm_set_epi8, _mm256_add_epi32, _mm256_adds_epi8, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16,
    _mm256_max_epi8, _mm256_packs_epi16, _mm256_packs_epi32, _mm256_set1_epi16, _mm256_set1_epi32,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srai_epi16, _mm256_storeu_si256,
    _mm512_adds_epi8, _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_dpbusd_epi32,
    _mm512_loadu_si512, _mm512_max_epi8, _mm512_packs_epi16, _mm512_packs_epi32, _mm512_set1_epi32,
    _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_srai_epi16, _mm512_storeu_si512,
};

use super::{Lanes, OUTPUTS, SHIFT};
use crate::grid::LANES;

/// 64 positions in four registers.
struct Vnni;

/// Words of a 512-bit register.
const WIDE: usize = 16;
const PARTS: usize = LANES / WIDE;

impl Lanes for Vnni {
    type Sums = [[__m512i; PARTS]; OUTPUTS];
    const POSITIONS: usize = LANES;

    #[inline(always)]
    unsafe fn sum(
        bias: [i32; OUTPUTS],
        weights: &[[i32; OUTPUTS]],
        inputs: &[usize],
        base: *const u32,
    ) -> Self::Sums {
        // SAFETY: the caller vouches for the instructions and the words.
        unsafe {
            let mut sums = bias.map(|bias| [_mm512_set1_epi32(bias); PARTS]);
            for (weights, &offset) in weights.iter().zip(inputs) {
                let words = base.add(offset);
                let mut x = [_mm512_setzero_si512(); PARTS];
                for (part, x) in x.iter_mut().enumerate() {
                    *x = _mm512_loadu_si512(words.add(part * WIDE).cast());
                }
                for output in 0..OUTPUTS {
                    let weights = _mm512_set1_epi32(weights[output]);
                    for part in 0..PARTS {
                        sums[output][part] =
                            _mm512_dpbusd_epi32(sums[output][part], x[part], weights);
                    }
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
        // SAFETY: the caller vouches for the instructions and the words.
        unsafe {
            // Narrowing saturates, so that the shift may follow it.
            let order = _mm512_broadcast_i32x4(by_position());
            let zero = _mm512_setzero_si512();
            let [a, b, c, d] = sums;
            for part in 0..PARTS {
                let ab = _mm512_srai_epi16::<SHIFT>(_mm512_packs_epi32(a[part], b[part]));
                let cd = _mm512_srai_epi16::<SHIFT>(_mm512_packs_epi32(c[part], d[part]));
                let mut word = _mm512_shuffle_epi8(_mm512_packs_epi16(ab, cd), order);
                if let Some(residual) = residual {
                    let before = _mm512_loadu_si512(residual.add(part * WIDE).cast());
                    word = _mm512_adds_epi8(word, before);
                }
                word = _mm512_max_epi8(word, zero);
                if let Some(mask) = mask {
                    let mask = _mm512_loadu_si512(mask.add(part * WIDE).cast());
                    word = _mm512_and_si512(word, mask);
                }
                _mm512_storeu_si512(out.add(part * WIDE).cast(), word);
            }
        }
    }

    #[inline(always)]
    unsafe fn store(sums: Self::Sums, out: *mut i32) {
        for (output, sums) in sums.into_iter().enumerate() {
            for (part, sums) in sums.into_iter().enumerate() {
                // SAFETY: the caller vouches for the instructions and the numbers.
                unsafe {
                    let out = out.add(output * LANES + part * WIDE);
                    _mm512_storeu_si512(out.cast(), sums);
                }
            }
        }
    }
}

/// From four positions of each of four outputs to four outputs of each of four positions.
///
/// # Safety
/// The machine has the instructions, which every x86 of 64 bits has.
#[inline(always)]
unsafe fn by_position() -> std::arch::x86_64::__m128i {
    // SAFETY: as above.
    unsafe { _mm_set_epi8(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0) }
}

kernels!(
    Vnni,
    activations_vnni,
    sums_vnni,
    "avx512f,avx512bw,avx512vnni"
);

/// 16 positions in two registers.
struct Avx2;

/// Words of a 256-bit register, and registers of positions.
const NARROW: usize = 8;
const HALVES: usize = 2;

impl Lanes for Avx2 {
    type Sums = [[__m256i; HALVES]; OUTPUTS];
    const POSITIONS: usize = NARROW * HALVES;

    #[inline(always)]
    unsafe fn sum(
        bias: [i32; OUTPUTS],
        weights: &[[i32; OUTPUTS]],
        inputs: &[usize],
        base: *const u32,
    ) -> Self::Sums {
        // SAFETY: the caller vouches for the instructions and the words.
        unsafe {
            let ones = _mm256_set1_epi16(1);
            let mut sums = bias.map(|bias| [_mm256_set1_epi32(bias); HALVES]);
            for (weights, &offset) in weights.iter().zip(inputs) {
                let words = base.add(offset);
                let mut x = [_mm256_setzero_si256(); HALVES];
                for (half, x) in x.iter_mut().enumerate() {
                    *x = _mm256_loadu_si256(words.add(half * NARROW).cast());
                }
                for output in 0..OUTPUTS {
                    let weights = _mm256_set1_epi32(weights[output]);
                    for half in 0..HALVES {
                        // Two products of 127·128 fit into 16 bits.
                        let pairs = _mm256_maddubs_epi16(x[half], weights);
                        let products = _mm256_madd_epi16(pairs, ones);
                        sums[output][half] = _mm256_add_epi32(sums[output][half], products);
                    }
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
        // SAFETY: the caller vouches for the instructions and the words.
        unsafe {
            // Narrowing saturates, so that the shift may follow it.
            let order = _mm256_broadcastsi128_si256(by_position());
            let zero = _mm256_setzero_si256();
            let [a, b, c, d] = sums;
            for half in 0..HALVES {
                let ab = _mm256_packs_epi32(a[half], b[half]);
                let cd = _mm256_packs_epi32(c[half], d[half]);
                let ab = _mm256_srai_epi16::<{ SHIFT as i32 }>(ab);
                let cd = _mm256_srai_epi16::<{ SHIFT as i32 }>(cd);
                let mut word = _mm256_shuffle_epi8(_mm256_packs_epi16(ab, cd), order);
                if let Some(residual) = residual {
                    let before = _mm256_loadu_si256(residual.add(half * NARROW).cast());
                    word = _mm256_adds_epi8(word, before);
                }
                word = _mm256_max_epi8(word, zero);
                if let Some(mask) = mask {
                    let mask = _mm256_loadu_si256(mask.add(half * NARROW).cast());
                    word = _mm256_and_si256(word, mask);
                }
                _mm256_storeu_si256(out.add(half * NARROW).cast(), word);
            }
        }
    }

    #[inline(always)]
    unsafe fn store(sums: Self::Sums, out: *mut i32) {
        for (output, sums) in sums.into_iter().enumerate() {
            for (half, sums) in sums.into_iter().enumerate() {
                // SAFETY: the caller vouches for the instructions and the numbers.
                unsafe {
                    let out = out.add(output * LANES + half * NARROW);
                    _mm256_storeu_si256(out.cast(), sums);
                }
            }
        }
    }
}

kernels!(Avx2, activations_avx2, sums_avx2, "avx2");
