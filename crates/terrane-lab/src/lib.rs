//! Datasets of terrain tiles, measures of reconstructions, pictures and pages.
//!
//! ```
//! use terrane_lab::measure::measure;
//!
//! let heights: Vec<f32> = (0..64).map(|index| index as f32).collect();
//! let raised: Vec<f32> = heights.iter().map(|height| height + 0.5).collect();
//! let measures = measure(&heights, &raised, 8, 8)?;
//! assert_eq!(measures.rmse_m, 0.5);
//! assert_eq!(measures.gradient_rmse_m_per_px, 0.0); // a raised surface has the same slopes
//! # Ok::<(), terrane_lab::measure::MeasureError>(())
//! ```

pub mod augment;
pub mod batches;
pub mod bench;
pub mod catalogue;
pub mod checkpoint;
pub mod config;
pub mod context;
pub mod cutting;
pub mod dataset;
pub mod device;
pub mod diagnose;
pub mod differentiation;
pub mod download;
mod error;
pub mod evaluate;
mod learner;
#[cfg(feature = "libtorch")]
mod libtorch;
pub mod links;
mod log;
pub mod measure;
pub mod memory;
pub mod optimiser;
pub mod output;
pub mod page;
pub mod picture;
pub mod pth;
pub mod schedule;
pub mod swissalti3d;
pub mod tables;
mod team;
pub mod train;

pub use error::{Error, Result};
