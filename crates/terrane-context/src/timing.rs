//! How long the parts of coding take; counts nothing without the feature `timing`.

/// A part of coding a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// What the network sees.
    Planes,
    /// The trunk.
    Trunk,
    /// The layers of the bands.
    Bands,
    /// The heads and the contexts.
    Heads,
    /// The symbols.
    Symbols,
    /// The dequantiser.
    Dequantiser,
    /// The inverse transform.
    Transform,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Planes,
        Self::Trunk,
        Self::Bands,
        Self::Heads,
        Self::Symbols,
        Self::Dequantiser,
        Self::Transform,
    ];
}

#[cfg(feature = "timing")]
mod clock {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    use super::Stage;

    thread_local! {
        static TIMES: Cell<[Duration; Stage::ALL.len()]> =
            const { Cell::new([Duration::ZERO; Stage::ALL.len()]) };
    }

    /// What this thread spent on every stage since this was last asked.
    pub fn take() -> [Duration; Stage::ALL.len()] {
        TIMES.take()
    }

    pub(crate) fn timed<T>(stage: Stage, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        let mut times = TIMES.get();
        times[stage as usize] += start.elapsed();
        TIMES.set(times);
        result
    }
}

#[cfg(feature = "timing")]
pub use clock::take;
#[cfg(feature = "timing")]
pub(crate) use clock::timed;

/// Does a part of the work.
#[cfg(not(feature = "timing"))]
#[inline(always)]
pub(crate) fn timed<T>(_: Stage, work: impl FnOnce() -> T) -> T {
    work()
}
