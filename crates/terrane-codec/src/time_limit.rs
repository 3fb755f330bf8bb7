//! How long work on a file may take.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Error;

/// A limit that may be set while others work.
#[derive(Debug, Default)]
pub(crate) struct TimeLimit(Mutex<Option<(Instant, Duration)>>);

impl TimeLimit {
    /// From now on so long; `None` for any time.
    pub(crate) fn set(&self, limit: Option<Duration>) {
        // No clock is asked without a limit: some machines have none. One beyond all time is none.
        let limit = limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = limit;
    }

    /// Whether there is time left.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let limit = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match limit {
            Some((end, limit)) if Instant::now() >= end => Err(Error::TimeLimit {
                seconds: limit.as_secs_f64(),
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_and_can_be_given_again() {
        let limit = TimeLimit::default();
        assert!(limit.check().is_ok());
        limit.set(Some(Duration::ZERO));
        assert!(matches!(limit.check(), Err(Error::TimeLimit { seconds }) if seconds == 0.0));
        limit.set(Some(Duration::from_secs(1000)));
        assert!(limit.check().is_ok());
        limit.set(Some(Duration::MAX));
        assert!(limit.check().is_ok());
        limit.set(Some(Duration::ZERO));
        limit.set(None);
        assert!(limit.check().is_ok());
    }
}
