//! A server without an address: requests come as bytes, and so do its answers.

use std::io::Result as IoResult;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::service::TowerToHyperService;
use tokio::runtime::{Builder, Runtime};

use crate::limits::MAX_HEAD_BYTES;
use crate::{Error, Server, routes};

/// A server that is asked without a socket, as fuzzing does. What connections are allowed is not part of it.
pub struct Direct {
    runtime: Runtime,
    router: Router,
}

impl Direct {
    /// The files of a server.
    pub fn new(server: Server) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(Error::Threads)?;
        Ok(Self {
            runtime,
            router: routes::router(Arc::new(server)),
        })
    }

    /// What a client that sends these bytes and no more is sent back.
    pub fn answer(&self, requests: &[u8]) -> Vec<u8> {
        let mut answers = Vec::new();
        let stream = Exchange {
            requests,
            answers: &mut answers,
        };
        let service = TowerToHyperService::new(self.router.clone());
        let connection = hyper::server::conn::http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            // The end of the requests is not that of the answers.
            .half_close(true)
            .serve_connection(stream, service);
        // Requests that make no sense end it with an error, after the answer.
        let _ = self.runtime.block_on(connection);
        answers
    }
}

/// Requests that are all there, and answers that are all taken.
struct Exchange<'a> {
    requests: &'a [u8],
    answers: &'a mut Vec<u8>,
}

impl Read for Exchange<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<IoResult<()>> {
        let length = buffer.remaining().min(self.requests.len());
        let (now, later) = self.requests.split_at(length);
        buffer.put_slice(now);
        self.requests = later;
        Poll::Ready(Ok(()))
    }
}

impl Write for Exchange<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<IoResult<usize>> {
        self.answers.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<IoResult<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<IoResult<()>> {
        Poll::Ready(Ok(()))
    }
}
