//! The tile server: a web map and tiles of terrane files over HTTP.
//!
//! A [`Server`] is given files, bound to an address and answers until it is asked to stop. A request for a tile goes
//! through these files: `routes` reads it, `limits` finds it a worker, and [`terrane::tiles`] draws it.

#![forbid(unsafe_code)]

mod assets;
mod catalogue;
mod connections;
mod dataset;
mod error;
mod failure;
mod limits;
mod listener;
mod metrics;
mod original;
mod point;
mod routes;
mod server;
mod tilejson;

pub use error::Error;
pub use original::Mismatch;
pub use server::{Earlier, Listening, Options, Original, Server, ask_to_stop};
