//! The tables and figures of the benchmark.

pub(crate) mod ablation;
pub(crate) mod amortisation;
pub(crate) mod clock;
pub(crate) mod cross;
pub(crate) mod flops;
pub(crate) mod headline;
pub(crate) mod paper;
pub(crate) mod ptq;
pub(crate) mod reconstructions;
pub(crate) mod regimes;

pub use amortisation::Fitting;
pub use clock::Passes;
