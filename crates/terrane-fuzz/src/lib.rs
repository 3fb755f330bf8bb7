//! What fuzzing calls: one function for each kind of input, which may refuse it but must not panic, hang or take more memory
//! than it is allowed.
//!
//! `fuzz/` runs them with new inputs (`just fuzz TARGET SECONDS`); the tests here run them with the golden files and with
//! everything that fuzzing has found.

mod c;
mod fixture;
mod memory;
mod mend;
mod mend_kept;
mod served;
mod targets;

pub use mend::mend;
pub use targets::{SIDE, TARGETS, Target, target};
