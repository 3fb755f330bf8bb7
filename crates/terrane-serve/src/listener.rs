//! Connections: accepted, answered, and closed when the server stops.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::Server;
use crate::connections::{Attended, Connections, Watched};
use crate::limits::{MAX_HEAD_BYTES, STOP_TIME};

/// A pause after a connection could not be accepted, as when no more files can be open.
const PAUSE: Duration = Duration::from_millis(10);

/// Answers connections until `stop` says so, then lets answers that are under way finish.
pub(crate) async fn answer(
    listener: TcpListener,
    server: Arc<Server>,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let connections = Connections::new();
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            connections.close_slowest();
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Where all are worked for, the new one is closed.
        let Some(slot) = connections.enter() else {
            continue;
        };
        // Tiles are small: waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let connection = slot.connection.clone();
        let service = TowerToHyperService::new(router.clone());
        let service = service_fn(move |request| {
            let work = connection.work();
            let answer = service.call(request);
            async move {
                let answer = answer.await;
                answer.map(|answer| answer.map(|body| Attended::new(body, work)))
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(
                TokioIo::new(Watched::new(stream, slot.connection.clone())),
                service,
            );
        let connection = graceful.watch(connection);
        let server = server.clone();
        server.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            // A client that goes away in the middle is its own affair.
            slot.connection.attend(connection).await;
            drop(slot);
            server.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(STOP_TIME, graceful.shutdown()).await;
}
