//! How much memory one file may make this program take.

/// More than this is asked for by mistake, or by a file that was made to do harm.
const DEFAULT: u64 = 4 << 30;
/// What a process is taken to have where the machine does not tell.
const UNKNOWN: u64 = 16 << 30;

/// Memory that reading or writing one file may take; it is compared with what would be needed before any is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes.
    pub bytes: u64,
}

/// More memory than may be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} would take {} MB of memory, and the limit is {} MB: {advice}raise it with `memory_limit`",
    needed.div_ceil(1_000_000), limit / 1_000_000
)]
pub struct MemoryError {
    /// What would take it.
    pub what: &'static str,
    /// How much.
    pub needed: u64,
    /// How much may be taken.
    pub limit: u64,
    /// What else can be done; ends in "or " where there is something.
    pub advice: &'static str,
}

impl Default for MemoryLimit {
    /// Half of what this process may have, and 4 GiB at most.
    fn default() -> Self {
        let bytes = process_bytes().map_or(DEFAULT, |bytes| DEFAULT.min(bytes / 2));
        Self { bytes }
    }
}

impl MemoryLimit {
    /// Three quarters of what this process may have: for what a user makes himself, such as a network that learns.
    pub fn of_machine() -> Self {
        let bytes = process_bytes().unwrap_or(UNKNOWN);
        Self {
            bytes: bytes / 4 * 3,
        }
    }

    /// Refuses what needs more.
    pub fn check(
        self,
        what: &'static str,
        needed: u64,
        advice: &'static str,
    ) -> Result<(), MemoryError> {
        if needed <= self.bytes {
            return Ok(());
        }
        Err(MemoryError {
            what,
            needed,
            limit: self.bytes,
            advice,
        })
    }
}

/// The least of the machine's memory, the container's and the process's own limit, where Linux tells.
fn process_bytes() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| {
        let kilobytes: u64 = after(&text, "MemTotal:")?.parse().ok()?;
        Some(kilobytes.saturating_mul(1024))
    });
    let container = read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse().ok());
    let process =
        read("/proc/self/limits").and_then(|text| after(&text, "Max address space")?.parse().ok());
    [machine, container, process].into_iter().flatten().min()
}

/// The word after a name in a text.
fn after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(name)?;
    rest.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_limit_is_refused_with_both_numbers() {
        let limit = MemoryLimit { bytes: 2_000_000 };
        limit.check("a strip", 2_000_000, "").unwrap();
        let error = limit
            .check("a strip", 2_000_001, "decode a part, or ")
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "a strip would take 3 MB of memory, and the limit is 2 MB: decode a part, or raise it with `memory_limit`"
        );
        assert!(MemoryLimit::default().bytes <= DEFAULT);
        assert_eq!(after("MemTotal:   12 kB\n", "MemTotal:"), Some("12"));
        let limits = "Max stack size   8388608   unlimited   bytes\nMax address space   4096000000   4096000000   bytes\n";
        assert_eq!(after(limits, "Max address space"), Some("4096000000"));
        assert!(MemoryLimit::of_machine().bytes > 1 << 28);
    }
}
