//! The Python module below `terrane`: plain functions and classes; the package's Python files give them their shape.
//!
//! Everything that takes time runs without Python's lock, and stops where Python was asked to stop.

mod encoding;
mod failure;
mod file;
mod settings;
mod shards;
mod tiles;

use pyo3::prelude::*;

/// What the package builds on.
#[pymodule]
mod _terrane {
    #[pymodule_export]
    use crate::encoding::{decode, encode, encode_array, verify};
    #[pymodule_export]
    use crate::failure::TerraneError;
    #[pymodule_export]
    use crate::file::{File, describe, shown};
    #[pymodule_export]
    use crate::shards::{shard_encode, shard_merge, shard_plan};
    #[pymodule_export]
    use crate::tiles::TileCoder;

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
