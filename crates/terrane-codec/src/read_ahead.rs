//! Reading ahead, for files whose every read waits for an answer.
//!
//! At 50 ms of latency a read of one byte takes as long as one of half a megabyte. So the first read takes a small file whole;
//! a read just behind what was read before, as when a raster is read row by row, takes as much again and then twice as much;
//! and parts near each other are one part. A read elsewhere takes what it was asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use terrane_format::{ByteSource, Result};

/// Bytes of the first read, and of the first that reads ahead.
const FIRST: u64 = 1 << 16;
/// Bytes that are read ahead at most.
const MOST: u64 = 1 << 21;
/// Parts that are nearer than this are read as one.
const NEAR: u64 = 1 << 14;
/// Bytes that are kept.
const KEPT: u64 = 1 << 24;

/// A file that is read ahead. Threads that need the same bytes fetch them once.
pub struct ReadAhead {
    source: Box<dyn ByteSource>,
    state: Mutex<State>,
    /// Told whenever a fetch has ended.
    ended: Condvar,
    /// Bytes of the file, which a server says with its first answer.
    length: OnceLock<u64>,
}

#[derive(Default)]
struct State {
    /// What was read, by its offset; none overlap.
    chunks: BTreeMap<u64, Chunk>,
    /// Bytes of all chunks.
    kept: u64,
    /// Parts that a thread fetches now.
    in_flight: Vec<Fetch>,
    /// Counts uses, to know the oldest.
    uses: u64,
}

#[derive(Clone)]
struct Chunk {
    bytes: Arc<[u8]>,
    /// Bytes to read ahead behind it.
    ahead: u64,
    used: u64,
}

/// A part of a file that is to be read, from a byte to before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fetch {
    start: u64,
    end: u64,
    ahead: u64,
}

/// Bytes at hand, by their offset.
type Found = BTreeMap<u64, Arc<[u8]>>;

impl ReadAhead {
    /// A source, of which nothing was read yet.
    pub fn new(source: Box<dyn ByteSource>) -> Self {
        Self {
            source,
            state: Mutex::default(),
            ended: Condvar::new(),
            length: OnceLock::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches what is missing of some parts, each from a byte to before another; other threads may fetch some of it.
    fn find(&self, parts: &[(u64, u64)]) -> Result<Found> {
        let mut found = Found::new();
        let length = self.length.get().copied().unwrap_or(u64::MAX);
        let mut missing: Vec<(u64, u64)> = parts
            .iter()
            .map(|&(start, end)| (start, end.min(length)))
            .filter(|(start, end)| start < end)
            .collect();
        loop {
            let mut state = self.state();
            missing = state.take(&missing, &mut found);
            if missing.is_empty() {
                return Ok(found);
            }
            let plan = state.plan(&missing);
            if plan.is_empty() {
                // Others fetch all of it.
                drop(self.ended.wait(state));
                continue;
            }
            state.in_flight.extend(&plan);
            drop(state);
            let fetched = self.fetch(&plan)?;
            for (part, bytes) in plan.iter().zip(fetched) {
                // Where the file ends before, there is no more to come.
                missing = missing
                    .iter()
                    .flat_map(|&range| without(range, (part.start, part.end)))
                    .collect();
                found.insert(part.start, bytes);
            }
        }
    }

    /// Reads parts that are marked as in flight, and keeps them.
    fn fetch(&self, plan: &[Fetch]) -> Result<Vec<Arc<[u8]>>> {
        /// Takes the marks away, whatever happens.
        struct Marks<'a>(&'a ReadAhead, &'a [Fetch]);
        impl Drop for Marks<'_> {
            fn drop(&mut self) {
                let Self(file, plan) = self;
                file.state().in_flight.retain(|part| !plan.contains(part));
                file.ended.notify_all();
            }
        }
        let _marks = Marks(self, plan);
        let parts: Vec<(u64, usize)> = plan
            .iter()
            .map(|part| (part.start, (part.end - part.start) as usize))
            .collect();
        let read = self.source.read_all(&parts)?;
        if self.length.get().is_none() {
            let _ = self.length.set(self.source.length()?);
        }
        let read: Vec<Arc<[u8]>> = read.into_iter().map(Arc::from).collect();
        let mut state = self.state();
        for (part, bytes) in plan.iter().zip(&read) {
            state.keep(part, bytes);
        }
        Ok(read)
    }
}

impl State {
    /// Adds what is at hand of some parts to what was found; returns what is not.
    fn take(&mut self, parts: &[(u64, u64)], found: &mut Found) -> Vec<(u64, u64)> {
        self.uses += 1;
        let mut missing = Vec::new();
        for &part in parts {
            let mut left = vec![part];
            let first = self.chunks.range(..=part.0).next_back();
            let first = first.map_or(part.0, |(&start, _)| start);
            for (&start, chunk) in self.chunks.range_mut(first..part.1.max(first)) {
                let end = start + chunk.bytes.len() as u64;
                if end > part.0 {
                    chunk.used = self.uses;
                    found.insert(start, Arc::clone(&chunk.bytes));
                    left = left
                        .into_iter()
                        .flat_map(|range| without(range, (start, end)))
                        .collect();
                }
            }
            missing.extend(left);
        }
        missing
    }

    /// What to fetch for parts that are missing, without what others fetch.
    fn plan(&self, missing: &[(u64, u64)]) -> Vec<Fetch> {
        let mut missing = missing.to_vec();
        for part in &self.in_flight {
            missing = missing
                .into_iter()
                .flat_map(|range| without(range, (part.start, part.end)))
                .collect();
        }
        missing.sort_unstable();
        let mut plan: Vec<Fetch> = Vec::new();
        for (start, end) in missing {
            let planned = plan.last().copied();
            if planned.is_some_and(|part| end <= part.end) {
                continue;
            }
            let before = planned.map(|part| (part.end, None)).max(self.before(start));
            // Nothing that is here or on its way is read again.
            let limit = self.next(start);
            let part = match before {
                _ if start == 0 => Fetch {
                    start,
                    end: end.max(FIRST).min(limit),
                    ahead: FIRST,
                },
                Some((behind, Some(ahead))) if start <= behind + ahead => Fetch {
                    start: behind,
                    end: end.max(behind + ahead).min(limit),
                    ahead: (2 * ahead).min(MOST),
                },
                Some((behind, None)) if start <= behind + NEAR && self.next(behind) >= end => {
                    if let Some(last) = plan.last_mut() {
                        last.end = end;
                    }
                    continue;
                }
                _ => Fetch {
                    start,
                    end,
                    ahead: FIRST,
                },
            };
            plan.push(part);
        }
        plan
    }

    /// Where the chunk before a byte ends, and how many bytes are to be read ahead behind it.
    fn before(&self, at: u64) -> Option<(u64, Option<u64>)> {
        let (start, chunk) = self.chunks.range(..=at).next_back()?;
        let end = start + chunk.bytes.len() as u64;
        let is_free = self
            .in_flight
            .iter()
            .all(|part| part.end <= end || part.start >= at);
        is_free.then_some((end, Some(chunk.ahead)))
    }

    /// Where what is here, or on its way, begins behind a byte.
    fn next(&self, at: u64) -> u64 {
        let chunk = self.chunks.range(at..).next().map(|(&start, _)| start);
        let in_flight = self.in_flight.iter().map(|part| part.start);
        let behind = in_flight.filter(|&start| start >= at).chain(chunk).min();
        behind.unwrap_or(u64::MAX)
    }

    /// Keeps what was read, and drops what was used longest ago.
    fn keep(&mut self, part: &Fetch, bytes: &Arc<[u8]>) {
        let length = bytes.len() as u64;
        if length == 0 || length > KEPT / 4 {
            return;
        }
        let chunk = Chunk {
            bytes: Arc::clone(bytes),
            ahead: part.ahead,
            used: self.uses,
        };
        self.kept += length;
        if let Some(other) = self.chunks.insert(part.start, chunk) {
            self.kept -= other.bytes.len() as u64;
        }
        while self.kept > KEPT {
            let oldest = self.chunks.iter().min_by_key(|(_, chunk)| chunk.used);
            let Some((&start, _)) = oldest else { break };
            if let Some(chunk) = self.chunks.remove(&start) {
                self.kept -= chunk.bytes.len() as u64;
            }
        }
    }
}

/// What is left of a range without another.
fn without(range: (u64, u64), other: (u64, u64)) -> impl Iterator<Item = (u64, u64)> {
    let before = (range.0, range.1.min(other.0));
    let behind = (range.0.max(other.1), range.1);
    [before, behind]
        .into_iter()
        .filter(|(start, end)| start < end)
}

/// A part of a file of bytes that were found, as far as they go.
fn cut(found: &Found, mut at: u64, end: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while at < end {
        let mut before = found.range(..=at).rev();
        let covering = before.find(|(start, chunk)| *start + chunk.len() as u64 > at);
        let Some((&start, chunk)) = covering else {
            break;
        };
        let stop = (end - start).min(chunk.len() as u64);
        bytes.extend_from_slice(&chunk[(at - start) as usize..stop as usize]);
        at = start + stop;
    }
    bytes
}

impl ByteSource for ReadAhead {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        Ok(self
            .read_all(&[(offset, length)])?
            .pop()
            .unwrap_or_default())
    }

    fn read_all(&self, parts: &[(u64, usize)]) -> Result<Vec<Vec<u8>>> {
        let ranges: Vec<(u64, u64)> = parts
            .iter()
            .map(|&(offset, length)| (offset, offset.saturating_add(length as u64)))
            .collect();
        let found = self.find(&ranges)?;
        Ok(ranges
            .iter()
            .map(|&(start, end)| cut(&found, start, end))
            .collect())
    }

    fn length(&self) -> Result<u64> {
        match self.length.get() {
            Some(&length) => Ok(length),
            None => self.source.length(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A file that counts what it is asked for.
    struct Counted {
        bytes: Vec<u8>,
        asked: Arc<Mutex<Vec<(u64, usize)>>>,
        wait: Duration,
    }

    impl ByteSource for Counted {
        fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
            self.asked.lock().unwrap().push((offset, length));
            std::thread::sleep(self.wait);
            self.bytes.read(offset, length)
        }

        fn length(&self) -> Result<u64> {
            self.bytes.length()
        }
    }

    type Asked = Arc<Mutex<Vec<(u64, usize)>>>;

    fn file(length: usize, wait: Duration) -> (Vec<u8>, ReadAhead, Asked) {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 31 + at / 251) as u8).collect();
        let asked = Asked::default();
        let counted = Counted {
            bytes: bytes.clone(),
            asked: Arc::clone(&asked),
            wait,
        };
        (bytes, ReadAhead::new(Box::new(counted)), asked)
    }

    #[test]
    fn a_small_file_takes_one_read() {
        let (bytes, file, asked) = file(FIRST as usize, Duration::ZERO);
        assert_eq!(file.read(0, 16_384).unwrap(), bytes[..16_384]);
        for at in (0..bytes.len()).step_by(997) {
            let end = (at + 5000).min(bytes.len());
            assert_eq!(file.read(at as u64, 5000).unwrap(), bytes[at..end]);
        }
        assert_eq!(*asked.lock().unwrap(), [(0, 1 << 16)]);
        assert!(file.read(3, 0).unwrap().is_empty());
    }

    #[test]
    fn a_file_that_is_read_in_its_order_takes_reads_of_doubling_length() {
        let (bytes, file, asked) = file(10_000_000, Duration::ZERO);
        for at in (0..bytes.len()).step_by(8000) {
            let end = (at + 8000).min(bytes.len());
            assert_eq!(file.read(at as u64, 8000).unwrap(), bytes[at..end]);
        }
        let asked = asked.lock().unwrap();
        assert!(asked.len() <= 12, "{asked:?}");
        let all: usize = asked.iter().map(|&(_, length)| length).sum();
        assert!(all <= bytes.len() + MOST as usize, "{asked:?}");
    }

    #[test]
    fn reads_far_from_each_other_take_what_they_ask_for() {
        let (bytes, file, asked) = file(20_000_000, Duration::ZERO);
        let places = [9_000_000_u64, 3_000_000, 15_000_000, 6_000_000];
        for at in places {
            let first = at as usize;
            assert_eq!(file.read(at, 100).unwrap(), bytes[first..first + 100]);
        }
        assert_eq!(*asked.lock().unwrap(), places.map(|at| (at, 100)));
    }

    #[test]
    fn parts_near_each_other_are_one_and_nothing_is_read_twice() {
        let (bytes, file, asked) = file(20_000_000, Duration::ZERO);
        let parts = [
            (5_000_000, 1000),
            (5_010_000, 1000),
            (5_020_000, 1000),
            (8_000_000, 10),
        ];
        let expected = |parts: &[(u64, usize)]| -> Vec<Vec<u8>> {
            let part = |&(at, length): &(u64, usize)| bytes[at as usize..][..length].to_vec();
            parts.iter().map(part).collect()
        };
        assert_eq!(file.read_all(&parts).unwrap(), expected(&parts));
        assert_eq!(
            *asked.lock().unwrap(),
            [(5_000_000, 21_000), (8_000_000, 10)]
        );
        // Overlapping what is here on both sides.
        let parts = [(4_999_000, 2000), (5_020_500, 70_000), (7_999_990, 30)];
        assert_eq!(file.read_all(&parts).unwrap(), expected(&parts));
        let asked = asked.lock().unwrap();
        let mut ranges = asked.clone();
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            assert!(pair[0].0 + pair[0].1 as u64 <= pair[1].0, "{asked:?}");
        }
    }

    #[test]
    fn random_reads_give_the_bytes_of_the_file_whatever_was_dropped() {
        let (bytes, file, _) = file(40_000_000, Duration::ZERO);
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..2000 {
            let count = 1 + random(4);
            let parts: Vec<(u64, usize)> = (0..count)
                .map(|_| {
                    let at = random(bytes.len());
                    (at as u64, random(300_000).min(bytes.len() - at))
                })
                .collect();
            let read = file.read_all(&parts).unwrap();
            for (&(at, length), read) in parts.iter().zip(&read) {
                assert!(read[..] == bytes[at as usize..][..length], "{at} {length}");
            }
        }
        let state = file.state();
        let kept: u64 = state
            .chunks
            .values()
            .map(|chunk| chunk.bytes.len() as u64)
            .sum();
        assert!(kept == state.kept && kept <= KEPT && kept > KEPT / 2);
        assert!(state.in_flight.is_empty());
    }

    #[test]
    fn threads_fetch_the_same_bytes_once() {
        let (bytes, file, asked) = file(1_000_000, Duration::from_millis(20));
        file.read(0, 10).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8_usize {
                let (file, bytes) = (&file, &bytes);
                scope.spawn(move || {
                    let at = 65_536 + thread * 1000;
                    let read = file.read(at as u64, 3000).unwrap();
                    assert_eq!(read, bytes[at..at + 3000]);
                });
            }
        });
        let asked = asked.lock().unwrap();
        assert_eq!(*asked, [(0, 65_536), (65_536, 65_536)]);
    }

    #[test]
    fn a_read_that_fails_is_tried_again_by_the_next() {
        struct Failing(Mutex<usize>);
        impl ByteSource for Failing {
            fn read(&self, _: u64, length: usize) -> Result<Vec<u8>> {
                let mut left = self.0.lock().unwrap();
                if *left > 0 {
                    *left -= 1;
                    return Err(std::io::Error::other("not now").into());
                }
                Ok(vec![7; length])
            }

            fn length(&self) -> Result<u64> {
                Ok(1 << 20)
            }
        }
        let file = ReadAhead::new(Box::new(Failing(Mutex::new(2))));
        assert!(file.read(0, 10).is_err() && file.read(0, 10).is_err());
        assert_eq!(file.read(0, 10).unwrap(), [7; 10]);
    }
}
