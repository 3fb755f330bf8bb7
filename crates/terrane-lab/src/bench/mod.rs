//! The benchmark: the paper's tables and figures on any dataset, and what it writes.

pub mod ablation;
pub mod amortisation;
pub mod clock;
pub mod cross;
pub mod figure;
pub mod flops;
pub mod headline;
mod number;
pub mod panels;
pub mod paper;
pub mod ptq;
pub mod regimes;
pub mod report;
pub mod runs;
pub mod suite;
pub mod table;
