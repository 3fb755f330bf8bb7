//! The tile server behind `terrane serve`.
//!
//! A request for a tile goes through these files: [`routes`] reads it, [`limits`] finds it a worker, [`warp`] says where
//! its pixels lie in the raster, [`patch`] puts together the heights around them from decoded [`blocks`] and lays the
//! continuous surface through them, [`render`] asks the surface for what the [`layer`] shows, [`colour`] and [`picture`]
//! make an image of it. No seam can show: every pixel is a function of its place on the ground alone.

mod assets;
mod blocks;
mod catalogue;
mod colour;
mod connections;
pub(crate) mod dataset;
mod failure;
mod layer;
pub(crate) mod limits;
mod listener;
pub(crate) mod lru;
mod mercator;
pub(crate) mod metrics;
pub(crate) mod original;
pub(crate) mod patch;
mod picture;
mod point;
mod render;
pub(crate) mod routes;
mod tilejson;
mod warp;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use tokio::sync::watch;

use routes::Server;

/// The way to tell the server of this program to stop.
static STOP: OnceLock<watch::Sender<bool>> = OnceLock::new();

/// Asks the server to stop; false where none runs or it was asked before.
pub(crate) fn ask_to_stop() -> bool {
    STOP.get().is_some_and(|stop| !stop.send_replace(true))
}

/// Serves until it is asked to stop; `started` is told the address.
pub(crate) fn run(
    server: Server,
    address: SocketAddr,
    threads: usize,
    started: impl FnOnce(SocketAddr) -> Result<()>,
) -> Result<()> {
    let stop = STOP.get_or_init(|| watch::channel(false).0).subscribe();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.clamp(1, 4))
        .max_blocking_threads(threads + 2)
        .enable_all()
        .build()
        .context("the server's threads cannot be started")?;
    let server = Arc::new(server);
    runtime.block_on(async {
        let listener = listener::listen(address).await?;
        let address = listener.local_addr().context("the address is not known")?;
        started(address)?;
        let router = routes::router(server.clone());
        listener::answer(listener, server, router, stop).await;
        Ok(())
    })
}
