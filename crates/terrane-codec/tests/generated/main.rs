//! Files of generated rasters: the same on every machine and in whichever way they are made, within what was asked for, and
//! written out for the second reader.
#![expect(clippy::unwrap_used, reason = "a test may stop anywhere")]

mod hashes;
#[cfg(not(target_family = "wasm"))]
mod properties;
mod rates;
mod recipe;
#[cfg(not(target_family = "wasm"))]
mod second_reader;
#[cfg(not(target_family = "wasm"))]
mod sizes;
#[cfg(not(target_family = "wasm"))]
mod water;
