//! One file per command.

pub(crate) mod dataset;
pub(crate) mod demo;
pub(crate) mod generate;
