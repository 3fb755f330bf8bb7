//! Work that several threads share, with results in their order.
//!
//! Threads are scoped and as many as memory allows, which differs from call to call: a pool would have to be made for
//! each number of them. Without the feature `threads` everything runs on the caller's thread.

use std::ops::Range;

use crate::Error;

/// What a function makes of every index, by some threads; each takes the next index that is left.
#[cfg(feature = "threads")]
pub fn in_parallel<T: Send>(
    count: usize,
    jobs: usize,
    work: &(dyn Fn(usize) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    use std::panic::resume_unwind;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::ScopedJoinHandle;

    if jobs.min(count) <= 1 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let mut made = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(made);
            }
            match work(index) {
                Ok(value) => made.push((index, value)),
                Err(error) => {
                    // The others stop after what they are at.
                    next.store(count, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.min(count)).map(|_| scope.spawn(take)).collect();
        threads.into_iter().map(ScopedJoinHandle::join).collect()
    });
    let mut made = Vec::with_capacity(count);
    for part in parts {
        // A panic is a fault of the program on whatever thread, and no error of the work.
        made.extend(part.unwrap_or_else(|panic| resume_unwind(panic))?);
    }
    made.sort_unstable_by_key(|(index, _)| *index);
    Ok(made.into_iter().map(|(_, value)| value).collect())
}

/// What a function makes of every index, one after the other.
#[cfg(not(feature = "threads"))]
pub fn in_parallel<T: Send>(
    count: usize,
    _jobs: usize,
    work: &(dyn Fn(usize) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    (0..count).map(work).collect()
}

/// Values of some rows of a raster, made block by block, each about a tile wide, so that few tiles are at hand at a
/// time; `value` is given the column and the row.
pub fn by_blocks(
    width: usize,
    rows: Range<usize>,
    wide: usize,
    jobs: usize,
    value: &(dyn Fn(usize, usize) -> Result<f64, Error> + Sync),
) -> Result<Vec<f64>, Error> {
    let columns = |index: usize| index * wide..((index + 1) * wide).min(width);
    let blocks = in_parallel(width.div_ceil(wide), jobs, &|index| {
        let mut values = Vec::with_capacity(columns(index).len() * rows.len());
        for row in rows.clone() {
            for column in columns(index) {
                values.push(value(column, row)?);
            }
        }
        Ok(values)
    })?;
    let mut values = vec![f64::NAN; width * rows.len()];
    for (index, block) in blocks.iter().enumerate() {
        let columns = columns(index);
        for (row, part) in block.chunks(columns.len()).enumerate() {
            values[row * width + columns.start..][..columns.len()].copy_from_slice(part);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_the_threads() {
        for jobs in [0, 1, 3, 64] {
            let squares = in_parallel(100, jobs, &|index| Ok(index * index)).unwrap();
            assert_eq!(
                squares,
                (0..100).map(|index| index * index).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    #[should_panic(expected = "index 7 is one too many")]
    fn a_panic_of_a_thread_is_a_panic() {
        let _ = in_parallel(1000, 4, &|index| {
            assert!(index != 7, "index {index} is one too many");
            Ok(index)
        });
    }

    #[test]
    fn a_failure_stops_the_work() {
        let outcome = in_parallel(1000, 4, &|index| {
            if index == 7 {
                Err(Error::Stopped)
            } else {
                Ok(index)
            }
        });
        assert!(matches!(outcome, Err(Error::Stopped)));
    }
}
