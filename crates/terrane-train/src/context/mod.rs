//! Training of the context codec's model.

mod canvas;
pub mod config;
mod learner;
mod samples;
mod train;

pub use config::ContextConfig;
pub use train::train;
