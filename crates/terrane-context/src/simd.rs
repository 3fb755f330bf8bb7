//! Runs work with the widest instructions the machine has.
//!
//! What runs is the same exact arithmetic either way: wider registers change the time and no bit.

/// Something to do; its body must be inlined all the way (`#[inline(always)]`) to be compiled for each kind of machine.
pub trait Work {
    /// What comes of it.
    type Output;
    /// Does it; `FUSED` where products and sums are one instruction.
    fn run<const FUSED: bool>(self) -> Self::Output;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")]
fn with_avx512<W: Work>(work: W) -> W::Output {
    work.run::<true>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi2")]
fn with_avx2<W: Work>(work: W) -> W::Output {
    work.run::<true>()
}

/// Runs work.
#[cfg(target_arch = "x86_64")]
pub fn run<W: Work>(work: W) -> W::Output {
    use std::arch::is_x86_feature_detected as has;
    let has_avx2 = has!("avx2") && has!("fma") && has!("bmi2");
    let has_avx512 =
        has_avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
    match limit::get() {
        limit::AVX512 if has_avx512 => {
            #[expect(unsafe_code, reason = "the only way to radius wider registers")]
            // SAFETY: the machine has what the function was compiled for.
            unsafe {
                with_avx512(work)
            }
        }
        limit::AVX512 | limit::AVX2 if has_avx2 => {
            #[expect(unsafe_code, reason = "the only way to radius wider registers")]
            // SAFETY: the machine has what the function was compiled for.
            unsafe {
                with_avx2(work)
            }
        }
        _ => work.run::<false>(),
    }
}

/// Runs work.
#[cfg(not(target_arch = "x86_64"))]
pub fn run<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "aarch64")]
    return work.run::<true>();
    #[cfg(not(target_arch = "aarch64"))]
    work.run::<false>()
}

/// How wide registers may be, so that tests can compare.
#[cfg(target_arch = "x86_64")]
pub(crate) mod limit {
    use std::cell::Cell;

    #[cfg(test)]
    pub(crate) const PLAIN: u8 = 0;
    pub(crate) const AVX2: u8 = 1;
    pub(crate) const AVX512: u8 = 2;

    thread_local! {
        static LIMIT: Cell<u8> = const { Cell::new(AVX512) };
    }

    pub(crate) fn get() -> u8 {
        LIMIT.get()
    }

    /// Limits this thread.
    #[cfg(test)]
    pub(crate) fn set(limit: u8) {
        LIMIT.set(limit);
    }

    #[cfg(test)]
    pub(crate) const ALL: [u8; 3] = [PLAIN, AVX2, AVX512];
}
