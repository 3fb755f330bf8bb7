//! Connections: accepted within a bound, closed when the server stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::limits::{HEAD_TIME, MOST_CONNECTIONS, MOST_HEAD_BYTES, STOP_TIME};
use super::routes::Server;

/// A pause after a connection could not be accepted, as when no more files can be open.
const PAUSE: Duration = Duration::from_millis(50);

/// Opens an address for connections.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("{address} cannot be listened on: choose another with --bind or --port")
    })
}

/// Answers connections until `stop` says so, then lets answers that are under way finish.
pub(crate) async fn answer(
    listener: TcpListener,
    server: Arc<Server>,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            pair = accepted => pair,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Tiles are small: waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(MOST_HEAD_BYTES)
            .serve_connection(
                TokioIo::new(stream),
                TowerToHyperService::new(router.clone()),
            );
        let connection = graceful.watch(connection);
        let server = server.clone();
        server.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let _place = place;
            // A client that goes away in the middle is its own affair.
            let _ = connection.await;
            server.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(STOP_TIME, graceful.shutdown()).await;
}
