//! The C library as C programs see it: its header, its example, and what it promises.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking; clippy.toml covers test functions, not their helpers"
)]

mod header;
mod programs;
