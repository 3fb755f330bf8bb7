//! The tile server: a web map and tiles of terrane files over HTTP.
//!
//! A [`Server`] is given files, bound to an address and answers until it is asked to stop. A request for a tile goes
//! through these files: `routes` reads it, `limits` finds it a worker, and [`terrane::tiles`] draws it. `ranges` gives out
//! files by ranges of bytes, also as the `GeoTIFF` of [`terrane::VirtualTiff`]. A [`Direct`] server has no
//! address and is asked in bytes. A [`Site`] is the same map as a folder for a
//! host that only hands out files.

#![forbid(unsafe_code)]

mod assets;
mod attribution;
mod catalogue;
mod connections;
mod dataset;
mod direct;
mod error;
mod failure;
mod limits;
mod listener;
mod metrics;
mod original;
mod point;
mod ranges;
mod routes;
mod server;
mod site;
mod tilejson;

pub use direct::Direct;
pub use error::Error;
pub use original::Mismatch;
pub use server::{Earlier, Listening, Options, Original, Server, ask_to_stop};
pub use site::{Site, SiteSize};
