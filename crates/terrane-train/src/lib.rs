//! Datasets of terrain tiles, training of networks on them, and measures of what they give back.
//!
//! ```
//! use terrane_train::measure::measure;
//!
//! let heights: Vec<f32> = (0..64).map(|index| index as f32).collect();
//! let raised: Vec<f32> = heights.iter().map(|height| height + 0.5).collect();
//! let measures = measure(&heights, &raised, 8, 8)?;
//! assert_eq!(measures.rmse_m, 0.5);
//! assert_eq!(measures.gradient_rmse_m_per_px, 0.0); // a raised surface has the same slopes
//! # Ok::<(), terrane_train::measure::MeasureError>(())
//! ```

#![forbid(unsafe_code)]

pub mod config;
pub mod context;
pub mod data;
pub mod device;
mod error;
pub mod evaluate;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod measure;
pub mod memory;
pub mod output;
pub mod tables;
pub mod training;

pub use error::{Error, Result};
