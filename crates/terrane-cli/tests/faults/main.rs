//! The command where the system fails it: every call on files in turn, kills, a full disk, a source that changes.
//!
//! A quick part runs with all tests; `just test-faults` lets every call fail in every way. Linux alone can do so.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]
#![expect(
    clippy::print_stdout,
    reason = "how much was tried is what the full run is for"
)]

mod calls;
mod disk;
mod kills;
mod layer;
mod refusals;
mod scene;
mod sources;

use scene::Scene;

/// How much of what can be tried is tried.
#[derive(Debug, Clone, Copy)]
enum Extent {
    /// Some of it, other parts in every scene.
    Quick,
    /// All of it.
    Full,
}

impl Extent {
    /// Every so manieth of many, from one that depends on `seed` on.
    fn of(self, count: usize, quick: usize, seed: usize) -> impl Iterator<Item = usize> {
        let step = match self {
            Self::Quick => count.div_ceil(quick).max(1),
            Self::Full => 1,
        };
        (seed % step..count).step_by(step)
    }
}

/// Numbers without a pattern, the same in every run.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
