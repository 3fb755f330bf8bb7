//! Items that threads prepare beside the one that uses them: one for every step, in order.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{JoinHandle, spawn};

/// What is prepared for steps. Dropping it ends its threads.
#[derive(Debug)]
pub(crate) struct Prepared<T> {
    /// Each makes every so many-th item.
    workers: Vec<Worker<T>>,
    given: usize,
}

#[derive(Debug)]
struct Worker<T> {
    items: Receiver<T>,
    /// There until it was asked why it ended.
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Prepared<T> {
    /// Starts threads that prepare the steps in turn; each is up to `ahead` items ahead.
    pub(crate) fn start(
        steps: &Range<usize>,
        threads: usize,
        ahead: usize,
        make: impl FnMut(usize) -> T + Clone + Send + 'static,
    ) -> Self {
        let workers = (0..threads)
            .map(|worker| {
                let (sender, items) = sync_channel(ahead);
                let steps = (steps.start + worker..steps.end).step_by(threads);
                let mut make = make.clone();
                let thread = spawn(move || {
                    for step in steps {
                        if sender.send(make(step)).is_err() {
                            return;
                        }
                    }
                });
                Worker {
                    items,
                    thread: Some(thread),
                }
            })
            .collect();
        Self { workers, given: 0 }
    }

    /// The item of the next step. It is asked for once per step: a thread that has none left has panicked, and its panic goes on here.
    pub(crate) fn next(&mut self) -> T {
        let count = self.workers.len();
        let worker = &mut self.workers[self.given % count];
        self.given += 1;
        let item = worker.items.recv();
        item.unwrap_or_else(|_| match worker.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => resume_unwind(panic),
            _ => panic!("an item is asked for once per step"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn items_come_in_the_order_of_their_steps() {
        for threads in 1..4 {
            let mut prepared = Prepared::start(&(3..10), threads, 1, |step| step);
            let given: Vec<usize> = (3..10).map(|_| prepared.next()).collect();
            assert_eq!(given, (3..10).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_of_a_thread_is_one_of_the_thread_that_waits() {
        let mut prepared = Prepared::start(&(0..10), 2, 1, |step| {
            assert!(step != 4, "no item of step {step}");
            step
        });
        let given: Vec<usize> = (0..4).map(|_| prepared.next()).collect();
        assert_eq!(given, [0, 1, 2, 3]);
        let panic = catch_unwind(AssertUnwindSafe(|| prepared.next())).unwrap_err();
        assert_eq!(
            panic.downcast_ref::<String>().map(String::as_str),
            Some("no item of step 4")
        );
    }
}
