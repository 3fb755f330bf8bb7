//! What a conversion may use of a machine.

use terrane_format::MemoryLimit;

use crate::Error;

/// More threads than this wait for each other rather than work.
const MAX_JOBS: usize = 256;

/// Threads and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// Threads.
    pub jobs: usize,
    /// Memory; where every thread needs much, fewer of them work.
    pub memory: MemoryLimit,
}

impl Default for Resources {
    /// All cores, and the memory that this process may have.
    fn default() -> Self {
        Self {
            jobs: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
            memory: MemoryLimit::default(),
        }
    }
}

impl Resources {
    /// So many threads.
    pub fn of_jobs(jobs: usize) -> Self {
        Self {
            jobs,
            ..Self::default()
        }
    }

    /// Threads that may work at a time where each needs so many bytes for a tile; an error where not even one may.
    pub(crate) fn jobs_of(&self, bytes: u64) -> Result<usize, Error> {
        self.memory
            .check("one tile", bytes, "take smaller tiles, or ")?;
        let most = usize::try_from(self.memory.bytes / bytes.max(1)).unwrap_or(usize::MAX);
        Ok(self.jobs.clamp(1, most.clamp(1, MAX_JOBS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_as_many_as_memory_allows() {
        let resources = |jobs, bytes| Resources {
            jobs,
            memory: MemoryLimit { bytes },
        };
        assert_eq!(resources(8, 1000).jobs_of(10).unwrap(), 8);
        assert_eq!(resources(8, 1000).jobs_of(300).unwrap(), 3);
        assert_eq!(resources(5000, 1 << 40).jobs_of(1).unwrap(), MAX_JOBS);
        assert_eq!(resources(0, 1000).jobs_of(1).unwrap(), 1);
        let error = resources(8, 1_000_000).jobs_of(2_000_000).unwrap_err();
        assert!(error.to_string().contains("`memory_limit`"), "{error}");
    }
}
