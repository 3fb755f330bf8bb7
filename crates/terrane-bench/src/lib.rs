//! The benchmark: the paper's tables and figures on any dataset, other codecs beside ours, whole files of any raster, and
//! diagnostics of networks.

mod codecs;
pub mod diagnose;
mod error;
mod files;
#[cfg(feature = "openjpeg")]
mod openjpeg;
mod paper;
mod runs;
mod suite;
mod tables;

pub use codecs::CodecError;
pub use error::{Error, Result};
pub use files::{Options as FileOptions, files};
pub use paper::{PAGE as PAPER_PAGE, paper, tally};
pub use runs::{Settings, Size, methods};
pub use suite::{Options, Part, run};
pub use tables::{Fitting, Passes};

/// As the program has it.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
