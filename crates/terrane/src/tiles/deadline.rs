//! The moment after which nobody waits for an answer any more.

use std::time::{Duration, Instant};

use super::TileError;

/// A moment, or none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Work that may take as long as it needs.
    pub const NONE: Self = Self(None);

    /// Work that is given up at a moment.
    pub fn at(moment: Instant) -> Self {
        Self(Some(moment))
    }

    /// An error once it has passed; long work asks now and then.
    pub fn check(self) -> Result<(), TileError> {
        match self.remaining() {
            Some(Duration::ZERO) => Err(TileError::Late),
            _ => Ok(()),
        }
    }

    /// The time that is left; `None` where it is not bounded.
    pub(super) fn remaining(self) -> Option<Duration> {
        Some(self.0?.saturating_duration_since(Instant::now()))
    }
}
