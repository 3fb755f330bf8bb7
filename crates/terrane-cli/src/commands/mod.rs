//! One file per command.

pub(crate) mod dataset;
pub(crate) mod demo;
pub(crate) mod eval;
pub(crate) mod generate;
pub(crate) mod train;
