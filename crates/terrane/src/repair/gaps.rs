//! The bytes of a file that no known part takes.

/// Where parts whose places are lost go: they follow each other in the order in which they were written, and leave no byte
/// over.
#[derive(Debug, Clone)]
pub(super) struct Gaps {
    /// Start and end of each, from the first.
    free: Vec<(u64, u64)>,
    at: usize,
}

impl Gaps {
    /// What some parts, each an offset and a length, leave of a file; `None` where they overlap or lie beyond it.
    pub(super) fn between(mut parts: Vec<(u64, u64)>, file: u64) -> Option<Self> {
        parts.sort_unstable();
        let mut free = Vec::new();
        let mut end = 0;
        for (offset, length) in parts {
            if offset > end {
                free.push((end, offset));
            } else if offset < end {
                return None;
            }
            end = offset.checked_add(length)?;
        }
        if end < file {
            free.push((end, file));
        }
        (end <= file).then_some(Self { free, at: 0 })
    }

    /// The place of the next part; `None` where there is no room for it.
    pub(super) fn take(&mut self, length: u64) -> Option<u64> {
        if self
            .free
            .get(self.at)
            .is_some_and(|(start, end)| start == end)
        {
            self.at += 1;
        }
        let (start, end) = self.free.get_mut(self.at)?;
        let offset = *start;
        if length > *end - offset {
            return None;
        }
        *start += length;
        Some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_gaps_from_the_first() {
        let mut gaps = Gaps::between(vec![(0, 10), (30, 5), (10, 2), (40, 10)], 60).unwrap();
        assert_eq!(gaps.take(10), Some(12));
        assert_eq!(gaps.take(8), Some(22));
        assert_eq!(gaps.take(6), None);
        assert_eq!(gaps.take(5), Some(35));
        assert_eq!(gaps.take(10), Some(50));
        assert_eq!(gaps.take(1), None);
        assert!(Gaps::between(vec![(0, 10), (9, 5)], 60).is_none());
        assert!(Gaps::between(vec![(0, 10), (u64::MAX, 5)], 60).is_none());
        assert!(Gaps::between(vec![(0, 61)], 60).is_none());
    }
}
