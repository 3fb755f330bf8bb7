//! Bytes that are read by somebody else: what is asked for and not here is noted, fetched, given, and asked for again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use terrane::format::{ByteSource, Error, Reader, Result};

/// Bytes that are kept beyond the request they were read for. Records are decoded and kept as heights, so that few are
/// asked for again.
const KEPT: usize = 4 << 20;

/// A part of a file: where it starts, and its length.
pub(crate) type Part = (u64, usize);

#[derive(Debug, Default)]
struct State {
    /// The file's length, once it is known.
    length: Option<u64>,
    /// What was given, by offset.
    parts: BTreeMap<u64, Vec<u8>>,
    /// What is asked for and was not given.
    missing: Vec<Part>,
}

/// A file whose bytes are given; those who share it see the same bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Later(Arc<Mutex<State>>);

impl Later {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a part, and the length of the file where it is known.
    pub(crate) fn give(&self, offset: u64, bytes: Vec<u8>, length: Option<u64>) {
        let mut state = self.state();
        let is_short = |&(start, wanted): &Part| start == offset && wanted > bytes.len();
        // Less than was asked for: the file ends there.
        let end = state.missing.iter().any(is_short);
        let end = end.then(|| offset.saturating_add(bytes.len() as u64));
        state.length = length.or(state.length).or(end);
        state.parts.insert(offset, bytes);
    }

    /// What must be given before the last request can be answered.
    pub(crate) fn take_missing(&self) -> Vec<Part> {
        let mut missing = std::mem::take(&mut self.state().missing);
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Forgets what was given for a request that was answered, where it is much.
    pub(crate) fn tidy(&self) {
        let mut state = self.state();
        state.missing.clear();
        if state.parts.values().map(Vec::len).sum::<usize>() > KEPT {
            state.parts.clear();
        }
    }
}

impl State {
    fn find(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let end = offset.checked_add(length as u64)?;
        let before = self.parts.range(..=offset).rev();
        before
            .filter(|(start, bytes)| end <= **start + bytes.len() as u64)
            .map(|(start, bytes)| bytes[(offset - start) as usize..][..length].to_vec())
            .next()
    }

    fn read(&mut self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let left = self.length.map(|all| all.saturating_sub(offset));
        let left = left.and_then(|left| usize::try_from(left).ok());
        let length = left.map_or(length, |left| length.min(left));
        if length == 0 {
            return Ok(Vec::new());
        }
        self.find(offset, length).ok_or_else(|| {
            self.missing.push((offset, length));
            Error::Pending
        })
    }
}

impl ByteSource for Later {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.state().read(offset, length)
    }

    fn read_all(&self, parts: &[Part]) -> Result<Vec<Vec<u8>>> {
        let mut state = self.state();
        // All of them, so that all that is missing is noted.
        let read: Vec<_> = parts
            .iter()
            .map(|&(offset, length)| state.read(offset, length))
            .collect();
        read.into_iter().collect()
    }

    fn length(&self) -> Result<u64> {
        let state = self.state();
        match (state.length, state.parts.get(&0)) {
            (Some(length), _) => Ok(length),
            // A web server of another origin may not let the page see how long the file is.
            (None, Some(start)) => Reader::stated_length(start),
            (None, None) => Err(Error::Pending),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_noted_and_found_once_it_is_given() {
        let source = Later::default();
        let asked = [(0, 4), (100, 10), (100, 10)];
        assert!(matches!(source.read_all(&asked), Err(Error::Pending)));
        assert_eq!(source.take_missing(), [(0, 4), (100, 10)]);
        source.give(0, vec![1, 2, 3, 4], Some(108));
        source.give(98, (0..10).collect(), None);
        // The file ends at 108.
        let read = source.read_all(&asked).unwrap();
        assert_eq!(read[1], (2..10).collect::<Vec<u8>>());
        assert_eq!(source.read(1, 2).unwrap(), [2, 3]);
        assert_eq!(source.read(108, 5).unwrap(), [0_u8; 0]);
        assert!(source.take_missing().is_empty());
        assert!(matches!(source.read(50, 5), Err(Error::Pending)));
    }

    #[test]
    fn a_short_answer_says_where_the_file_ends() {
        let source = Later::default();
        assert!(source.read(0, 100).is_err());
        source.give(0, vec![7; 30], None);
        assert_eq!(source.read(0, 100).unwrap().len(), 30);
        assert_eq!(source.length().unwrap(), 30);
    }
}
