//! Runs work with the widest instructions the machine has.
//!
//! What runs is the same exact arithmetic either way: wider registers change the time and no bit.

use std::sync::OnceLock;

/// Something to do; its body must be inlined all the way (`#[inline(always)]`) to be compiled for each kind of machine.
pub trait Work {
    /// What comes of it.
    type Output;
    /// Does it; `FUSED` where products and sums are one instruction.
    fn run<const FUSED: bool>(self) -> Self::Output;
}

/// What instructions a machine has; each kind has those of the kinds before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Machine {
    /// Those that every machine has.
    Plain,
    /// 256-bit registers.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit registers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 512-bit dot products of bytes.
    #[cfg(target_arch = "x86_64")]
    Vnni,
    /// 128-bit registers.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Dot products of bytes.
    #[cfg(target_arch = "aarch64")]
    Dot,
    /// 128-bit registers.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Wasm,
}

impl Machine {
    #[cfg(target_arch = "x86_64")]
    fn detect() -> Self {
        use std::arch::is_x86_feature_detected as has;
        let has_avx2 = has!("avx2") && has!("fma") && has!("bmi2") && has!("popcnt");
        let has_avx512 =
            has_avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
        match (has_avx2, has_avx512) {
            (true, true) if has!("avx512vnni") => Self::Vnni,
            (true, true) => Self::Avx512,
            (true, false) => Self::Avx2,
            (false, _) => Self::Plain,
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn detect() -> Self {
        if std::arch::is_aarch64_feature_detected!("dotprod") {
            Self::Dot
        } else {
            Self::Neon
        }
    }

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    fn detect() -> Self {
        Self::Wasm
    }

    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        all(target_arch = "wasm32", target_feature = "simd128")
    )))]
    fn detect() -> Self {
        Self::Plain
    }
}

/// What this machine has.
pub(crate) fn machine() -> Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    let machine = *MACHINE.get_or_init(Machine::detect);
    #[cfg(test)]
    return machine.min(limit::get());
    #[cfg(not(test))]
    machine
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
pub fn run<W: Work>(work: W) -> W::Output {
    match machine() {
        #[cfg(target_arch = "x86_64")]
        Machine::Vnni | Machine::Avx512 => {
            #[expect(unsafe_code, reason = "the only way to reach wider registers")]
            // SAFETY: the machine has what the function was compiled for.
            unsafe {
                with_avx512(work)
            }
        }
        #[cfg(target_arch = "x86_64")]
        Machine::Avx2 => {
            #[expect(unsafe_code, reason = "the only way to reach wider registers")]
            // SAFETY: the machine has what the function was compiled for.
            unsafe {
                with_avx2(work)
            }
        }
        #[cfg(target_arch = "aarch64")]
        Machine::Neon | Machine::Dot => work.run::<true>(),
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Machine::Wasm => work.run::<false>(),
        Machine::Plain => work.run::<false>(),
    }
}

/// What instructions may be used, so that tests can compare.
#[cfg(test)]
pub(crate) mod limit {
    use std::cell::Cell;

    use super::Machine;

    #[cfg(target_arch = "x86_64")]
    pub(crate) const ALL: &[Machine] = &[
        Machine::Plain,
        Machine::Avx2,
        Machine::Avx512,
        Machine::Vnni,
    ];
    #[cfg(target_arch = "aarch64")]
    pub(crate) const ALL: &[Machine] = &[Machine::Plain, Machine::Neon, Machine::Dot];
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    pub(crate) const ALL: &[Machine] = &[Machine::Plain, Machine::Wasm];
    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        all(target_arch = "wasm32", target_feature = "simd128")
    )))]
    pub(crate) const ALL: &[Machine] = &[Machine::Plain];

    thread_local! {
        static LIMIT: Cell<Machine> = const { Cell::new(ALL[ALL.len() - 1]) };
    }

    pub(super) fn get() -> Machine {
        LIMIT.get()
    }

    /// Does something on this thread with every kind of instructions up to the machine's own.
    pub(crate) fn each<T>(mut work: impl FnMut(Machine) -> T) -> Vec<T> {
        let all = ALL
            .iter()
            .map(|&machine| {
                LIMIT.set(machine);
                work(machine)
            })
            .collect();
        LIMIT.set(ALL[ALL.len() - 1]);
        all
    }
}
