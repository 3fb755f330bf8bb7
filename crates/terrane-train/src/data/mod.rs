//! Datasets: rasters are downloaded, cut into tiles and stored, then drawn in batches.

mod augment;
pub(crate) mod batches;
mod catalogue;
pub mod cutting;
mod dataset;
pub mod download;
mod links;
pub mod swissalti3d;

pub(crate) use augment::Orientation;
pub(crate) use batches::Tiles;
pub use dataset::{Dataset, DatasetWriter, Source, SplitStatistics, TileRecord};
pub use links::LinkError;
