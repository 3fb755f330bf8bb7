//! Runs work with the widest instructions the machine has.
//!
//! What runs is the same exact arithmetic either way: wider registers change the time and no bit.

use std::sync::OnceLock;

/// The environment variable that takes instructions away from a process, so that what two machines make can be compared on
/// one: `plain`, or on x86-64 `avx2` or `avx512`. A machine has no more by it, and other words change nothing.
pub const LIMIT: &str = "TERRANE_INSTRUCTIONS";

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
    const ALL: &[Self] = &[Self::Plain, Self::Avx2, Self::Avx512, Self::Vnni];
    #[cfg(target_arch = "aarch64")]
    const ALL: &[Self] = &[Self::Plain, Self::Neon, Self::Dot];
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    const ALL: &[Self] = &[Self::Plain, Self::Wasm];
    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        all(target_arch = "wasm32", target_feature = "simd128")
    )))]
    const ALL: &[Self] = &[Self::Plain];

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

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Vnni => "vnni",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
            #[cfg(target_arch = "aarch64")]
            Self::Dot => "dot",
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Wasm => "wasm",
        }
    }

    /// What the machine has, less what [`LIMIT`] takes away.
    fn allowed() -> Self {
        let machine = Self::detect();
        let asked = std::env::var(LIMIT).ok();
        let limit = Self::ALL
            .iter()
            .find(|machine| asked.as_deref() == Some(machine.name()));
        limit.map_or(machine, |&limit| machine.min(limit))
    }
}

/// The name of the instructions that are used.
pub fn instructions() -> &'static str {
    machine().name()
}

/// What this machine has.
pub(crate) fn machine() -> Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    // A browser has no environment, and instructions that are never chosen need not be downloaded.
    if cfg!(all(target_arch = "wasm32", target_os = "unknown")) {
        return Machine::detect();
    }
    let machine = *MACHINE.get_or_init(Machine::allowed);
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

    const MOST: Machine = Machine::ALL[Machine::ALL.len() - 1];

    thread_local! {
        static LIMIT: Cell<Machine> = const { Cell::new(MOST) };
    }

    pub(super) fn get() -> Machine {
        LIMIT.get()
    }

    /// Does something on this thread with every kind of instructions up to the machine's own.
    pub(crate) fn each<T>(mut work: impl FnMut(Machine) -> T) -> Vec<T> {
        let all = Machine::ALL
            .iter()
            .map(|&machine| {
                LIMIT.set(machine);
                work(machine)
            })
            .collect();
        LIMIT.set(MOST);
        all
    }
}
