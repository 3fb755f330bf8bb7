//! What a benchmark writes: tables, figures and the report that holds them.

pub mod figure;
mod number;
pub mod report;
pub mod table;
