//! What every open connection is doing, so that the slowest is closed first.
//!
//! New connections are always taken. Where that makes too many, one is closed for them: one that has not sent a whole
//! request yet, else one that rests between two requests, else one that does not take its answer; the oldest of them.
//! One that is being worked for is never closed, so somebody who opens connections and sends nothing shuts out nobody
//! else. There is no bound per client address: behind a proxy all clients have the same.

use std::collections::HashMap;
use std::io::{IoSlice, Result};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::limits::{HEAD_TIME, IDLE_TIME, MAX_CONNECTIONS, OTHER_FILES, WRITE_TIME};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a connection is doing, in the order in which they are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// It is expected to send a request's head.
    Head,
    /// It rests between two requests.
    Idle,
    /// It does not take its answer.
    Stalled,
    /// Its request is worked on.
    Working,
}

#[derive(Debug)]
struct State {
    has_begun_head: bool,
    is_working: bool,
    is_stalled: bool,
    /// When the phase began or, where an answer is sent, when a part of it last went.
    since: Instant,
}

impl State {
    fn phase(&self) -> Phase {
        if self.is_stalled {
            Phase::Stalled
        } else if self.is_working {
            Phase::Working
        } else if self.has_begun_head {
            Phase::Head
        } else {
            Phase::Idle
        }
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    state: Mutex<State>,
    closing: Notify,
}

impl Connection {
    fn new() -> Self {
        Self {
            state: Mutex::new(State {
                has_begun_head: true,
                is_working: false,
                is_stalled: false,
                since: Instant::now(),
            }),
            closing: Notify::new(),
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.state);
        let before = state.phase();
        change(&mut state);
        if state.phase() != before {
            state.since = Instant::now();
        }
    }

    /// A whole request has come; it is worked on until the answer is dropped.
    pub(crate) fn work(self: &Arc<Self>) -> Work {
        self.change(|state| {
            state.has_begun_head = false;
            state.is_working = true;
        });
        Work(Arc::clone(self))
    }

    fn written(&self, outcome: &Poll<Result<usize>>) {
        self.change(|state| {
            state.is_stalled = outcome.is_pending();
            if outcome.is_ready() {
                state.since = Instant::now();
            }
        });
    }

    fn deadline(&self) -> Option<Instant> {
        let state = lock(&self.state);
        let time = match state.phase() {
            Phase::Head => HEAD_TIME,
            Phase::Idle => IDLE_TIME,
            Phase::Stalled => WRITE_TIME,
            Phase::Working => return None,
        };
        Some(state.since + time)
    }

    /// Drives a connection to its end, until it is too slow, or until another one needs its slot.
    pub(crate) async fn attend(&self, connection: impl Future) {
        let mut connection = pin!(connection);
        loop {
            let now = Instant::now();
            let deadline = self.deadline();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return;
            }
            // No phase ends sooner than this, whenever it begins.
            let soon = now + HEAD_TIME.min(IDLE_TIME).min(WRITE_TIME);
            let look = deadline.map_or(soon, |deadline| deadline.min(soon));
            tokio::select! {
                _ = &mut connection => return,
                () = self.closing.notified() => return,
                () = sleep_until(look) => {}
            }
        }
    }
}

/// A request that is worked on.
pub(crate) struct Work(Arc<Connection>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.change(|state| state.is_working = false);
    }
}

/// The body of an answer, which is worked on until it is dropped: long ones are made while they are sent.
pub(crate) struct Attended {
    body: Body,
    _work: Work,
}

impl Attended {
    /// A body and the request that it answers.
    pub(crate) fn new(body: Body, work: Work) -> Self {
        Self { body, _work: work }
    }
}

impl HttpBody for Attended {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// All open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    max: usize,
    next: AtomicU64,
    open: Mutex<HashMap<u64, Arc<Connection>>>,
}

/// The slot of an open connection, free again when dropped.
pub(crate) struct Slot {
    number: u64,
    all: Arc<Connections>,
    pub(crate) connection: Arc<Connection>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.all.open).remove(&self.number);
    }
}

impl Connections {
    /// No connections yet, and as many as the system has files for.
    pub(crate) fn new() -> Arc<Self> {
        let files = max_open_files().unwrap_or(usize::MAX);
        let max = files.saturating_sub(OTHER_FILES).clamp(1, MAX_CONNECTIONS);
        Self::with_slots(max)
    }

    fn with_slots(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            next: AtomicU64::new(0),
            open: Mutex::default(),
        })
    }

    /// A slot for a new connection, another's where there is none; `None` where all are worked for.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Slot> {
        while self.count() >= self.max {
            if !self.close_slowest() {
                return None;
            }
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection::new());
        lock(&self.open).insert(number, Arc::clone(&connection));
        Some(Slot {
            number,
            all: Arc::clone(self),
            connection,
        })
    }

    /// Connections that are open.
    pub(crate) fn count(&self) -> usize {
        lock(&self.open).len()
    }

    /// Closes one connection; false where all are worked for.
    pub(crate) fn close_slowest(&self) -> bool {
        let mut open = lock(&self.open);
        let slowest = open
            .iter()
            .map(|(number, connection)| {
                let state = lock(&connection.state);
                (state.phase(), state.since, *number)
            })
            .filter(|(phase, ..)| *phase != Phase::Working)
            .min();
        let closed = slowest.and_then(|(.., number)| open.remove(&number));
        if let Some(connection) = &closed {
            connection.closing.notify_one();
        }
        closed.is_some()
    }
}

/// Files that this process may have open, where the system says so.
fn max_open_files() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A stream that tells what its client does.
pub(crate) struct Watched {
    stream: TcpStream,
    connection: Arc<Connection>,
}

impl Watched {
    /// Watches a stream.
    pub(crate) fn new(stream: TcpStream, connection: Arc<Connection>) -> Self {
        Self { stream, connection }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.connection.change(|state| state.has_begun_head = true);
        }
        outcome
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.connection.written(&outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.connection.written(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(slot: &Slot) -> Phase {
        lock(&slot.connection.state).phase()
    }

    #[test]
    fn those_that_sent_nothing_go_first_and_those_that_are_worked_for_stay() {
        let all = Connections::with_slots(4);
        let slots: Vec<Slot> = (0..4).map(|_| all.enter().unwrap()).collect();
        let is_open = |index: usize| lock(&all.open).contains_key(&slots[index].number);
        let _work = slots[0].connection.work();
        drop(slots[1].connection.work());
        assert_eq!(phase(&slots[0]), Phase::Working);
        assert_eq!(phase(&slots[2]), Phase::Head);
        assert_eq!(phase(&slots[1]), Phase::Idle);
        let first = all.enter().unwrap();
        assert!(!is_open(2) && is_open(3));
        first.connection.written(&Poll::Pending);
        assert_eq!(phase(&first), Phase::Stalled);
        let second = all.enter().unwrap();
        assert!(!is_open(3) && is_open(1));
        let _work = second.connection.work();
        let third = all.enter().unwrap();
        assert!(!is_open(1));
        let _work = third.connection.work();
        let fourth = all.enter().unwrap();
        assert!(!lock(&all.open).contains_key(&first.number));
        let _work = fourth.connection.work();
        assert!(all.enter().is_none());
        assert_eq!(all.count(), 4);
        drop(slots);
        assert_eq!(all.count(), 3);
    }

    #[test]
    fn a_head_is_timed_from_its_first_byte() {
        let connection = Arc::new(Connection::new());
        drop(connection.work());
        connection.change(|state| state.has_begun_head = true);
        let first = connection.deadline();
        connection.change(|state| state.has_begun_head = true);
        assert_eq!(connection.deadline(), first);
        let _work = connection.work();
        assert_eq!(connection.deadline(), None);
    }
}
