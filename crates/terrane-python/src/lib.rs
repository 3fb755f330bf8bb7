//! The Python module below `pyterrane`: plain functions and classes; the package's Python files give them their shape.
//!
//! Everything that takes time runs without Python's lock, and stops where Python was asked to stop.

#![forbid(unsafe_code)]

mod array;
mod encoding;
mod failure;
mod file;
mod rasters;
mod settings;
mod shards;
mod tiff;
mod tiles;

use pyo3::prelude::*;

/// What the package builds on.
#[pymodule]
mod _pyterrane {
    #[pymodule_export]
    use crate::encoding::{encode, encode_array};
    #[pymodule_export]
    use crate::failure::TerraneError;
    #[pymodule_export]
    use crate::file::{File, describe, shown};
    #[pymodule_export]
    use crate::rasters::{decode, derive, repair, verify};
    #[pymodule_export]
    use crate::settings::Settings;
    #[pymodule_export]
    use crate::shards::{shard_count, shard_encode, shard_merge, shard_plan};
    #[pymodule_export]
    use crate::tiff::TiffBytes;
    #[pymodule_export]
    use crate::tiles::TileCoder;

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("has_networks", terrane::MODELS.has_networks())
    }
}
