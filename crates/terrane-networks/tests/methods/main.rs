//! The methods against independent implementations and against what their specification says.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop where it is"
)]

mod acceptance;
mod dinov3;
mod hostile;
mod kernels;
mod parity;
mod sizes;
mod speed;
