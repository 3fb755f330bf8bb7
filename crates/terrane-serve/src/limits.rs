//! Bounds of what the server does at once: workers, a queue before them, and a time for each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use terrane::tiles::Deadline;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;

/// Points of a profile, between its corners.
pub(crate) const MAX_PROFILE_POINTS: usize = 2000;
/// Corners of a profile's line.
pub(crate) const MAX_CORNERS: usize = 200;
/// Length of a profile in degrees on either axis.
pub(crate) const MAX_DEGREES: f64 = 20.0;
/// Bytes of a request's head.
pub(crate) const MAX_HEAD_BYTES: usize = 16 << 10;
/// Connections that are open at once.
pub(crate) const MAX_CONNECTIONS: usize = 1024;
/// Files that are left open for others than connections.
pub(crate) const OTHER_FILES: usize = 64;
/// Time for a request's head to arrive, from its first byte or, for the first one, from the connection on.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(5);
/// Time between two requests of a connection.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(30);
/// Time in which a client must take some of its answer.
pub(crate) const WRITE_TIME: Duration = Duration::from_secs(10);
/// Time for answers that are under way when the server is stopped.
pub(crate) const STOP_TIME: Duration = Duration::from_secs(5);

/// Heavy work, bounded.
pub(crate) struct Pool {
    workers: Arc<Semaphore>,
    max_working: usize,
    waiting: AtomicUsize,
    max_waiting: usize,
    time: Duration,
}

/// One request in the queue; leaves it when dropped, also where the client has gone away.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// So many workers, so many requests waiting for them, so long for each request.
    pub(crate) fn new(workers: usize, max_waiting: usize, time: Duration) -> Self {
        Self {
            workers: Arc::new(Semaphore::new(workers)),
            max_working: workers,
            waiting: AtomicUsize::new(0),
            max_waiting,
            time,
        }
    }

    /// Time for a request.
    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    /// Requests that are worked on now.
    pub(crate) fn working(&self) -> usize {
        self.max_working - self.workers.available_permits()
    }

    /// Requests that wait now.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Runs work on a worker; the work is told until when.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(Deadline) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + self.time;
        let permit = if let Ok(permit) = self.workers.clone().try_acquire_owned() {
            permit
        } else {
            if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.max_waiting {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                return Err(Failure::busy());
            }
            let _waiting = Waiting(&self.waiting);
            timeout_at(deadline, self.workers.clone().acquire_owned())
                .await
                .map_err(|_| Failure::late())?
                .map_err(|_| Failure::busy())?
        };
        let task = tokio::task::spawn_blocking(move || {
            // Held until the work is done, also where nobody waits for it any more.
            let _permit = permit;
            work(Deadline::at(deadline.into_std()))
        });
        match timeout_at(deadline, task).await {
            Err(_) => Err(Failure::late()),
            // Work is never given up from here: it panicked.
            Ok(Err(_)) => Err(Failure::fault()),
            Ok(Ok(outcome)) => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn a_full_queue_turns_away_and_late_work_is_given_up() {
        run(async {
            let pool = Arc::new(Pool::new(1, 1, Duration::from_millis(400)));
            let (release, gate) = std::sync::mpsc::channel::<()>();
            let first = tokio::spawn({
                let pool = pool.clone();
                async move {
                    pool.run(move |_| {
                        let _ = gate.recv();
                        Ok(())
                    })
                    .await
                }
            });
            while pool.working() == 0 {
                tokio::task::yield_now().await;
            }
            let second = tokio::spawn({
                let pool = pool.clone();
                async move { pool.run(|_| Ok(())).await }
            });
            while pool.waiting() == 0 {
                tokio::task::yield_now().await;
            }
            let third = pool.run(|_| Ok(())).await.unwrap_err();
            assert_eq!(third.status, StatusCode::SERVICE_UNAVAILABLE);
            // Neither the one that works nor the one that waits is answered in time.
            for late in [first, second] {
                let status = late.await.unwrap().unwrap_err().status;
                assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
            }
            assert_eq!((pool.working(), pool.waiting()), (1, 0));
            release.send(()).unwrap();
            assert_eq!(pool.run(|_| Ok(7)).await, Ok(7));
        });
    }

    #[test]
    fn work_that_nobody_waits_for_ends() {
        run(async {
            let pool = Pool::new(1, 1, Duration::from_millis(50));
            let endless = |deadline: Deadline| -> Result<(), Failure> {
                loop {
                    deadline.check()?;
                }
            };
            let status = pool.run(endless).await.unwrap_err().status;
            assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
            while pool.working() > 0 {
                tokio::task::yield_now().await;
            }
        });
    }

    #[test]
    fn work_that_panics_is_an_error_and_frees_its_worker() {
        run(async {
            let pool = Pool::new(1, 1, Duration::from_secs(5));
            let outcome: Result<(), _> = pool.run(|_| panic!("a fault in the work")).await;
            let failure = outcome.unwrap_err();
            assert_eq!(failure.status, StatusCode::INTERNAL_SERVER_ERROR);
            assert!(
                failure
                    .sentence
                    .starts_with("a fault in terrane, please report it")
            );
            // On a thread of its own just so.
            let outcome = pool.run(|_| {
                let work = |index| match index {
                    3 => panic!("a fault in the work"),
                    _ => Ok(index),
                };
                Ok(terrane_codec::parallel::in_parallel(8, 2, &work).map_err(drop))
            });
            assert_eq!(outcome.await.unwrap_err(), failure);
            assert_eq!(pool.run(|_| Ok(7)).await, Ok(7));
        });
    }
}
