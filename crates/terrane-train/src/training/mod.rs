//! Training of a method: the loop, its optimiser and schedule, and what it keeps on disk.

pub mod checkpoint;
pub mod differentiation;
mod learner;
#[cfg(feature = "libtorch")]
mod libtorch;
mod log;
pub mod optimiser;
mod prepared;
mod pth;
mod schedule;
pub mod step;
mod team;
mod train;

pub(crate) use log::Log;
pub(crate) use prepared::Prepared;
pub use schedule::ScheduleConfig;
pub use train::{Progress, Start, train};
