//! A file as the bytes of a `GeoTIFF`.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use terrane::{OpenOptions, TiffCache, VirtualTiff};
use terrane_codec::format::MemoryLimit;

use crate::failure::{Outcome, detach};
use crate::file::remote_options;
use crate::settings::memory;

/// Bytes of blocks that are kept, or two blocks: GDAL keeps what it read itself, and reads a block in parts at most.
const KEPT_BYTES: usize = 1 << 24;

/// The bytes of a `GeoTIFF`, made from a file when they are read.
#[pyclass(frozen, module = "pyterrane._pyterrane")]
pub(crate) struct TiffBytes {
    tiff: VirtualTiff,
    cache: Arc<TiffCache>,
    memory: MemoryLimit,
}

#[pymethods]
impl TiffBytes {
    /// Opens a file of this machine or at an address.
    #[new]
    #[pyo3(signature = (path, model=None, memory_limit=None, remote_timeout=None))]
    fn open(
        py: Python,
        path: PathBuf,
        model: Option<PathBuf>,
        memory_limit: Option<f64>,
        remote_timeout: Option<f64>,
    ) -> PyResult<Self> {
        let open = || -> Outcome<_> {
            let memory = memory(memory_limit)?;
            let options = OpenOptions {
                model,
                memory,
                remote: remote_options(remote_timeout)?,
            };
            let terrain = Arc::new(terrane::open_with(&path, &options)?);
            let side = usize::from(terrain.header().pyramid.side());
            let cache = Arc::new(TiffCache::new(KEPT_BYTES.max(2 * (8 * side * side + 1024))));
            let name = PathBuf::from(terrane_codec::shown(&path));
            let tiff = VirtualTiff::new(terrain, &name, &cache)?;
            Ok(Self {
                tiff,
                cache,
                memory,
            })
        };
        Ok(detach(py, open)?)
    }

    /// Bytes of the whole.
    fn length(&self) -> u64 {
        self.tiff.length()
    }

    /// Bytes from an offset on; fewer where there are no more.
    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let left = self.tiff.length().saturating_sub(offset);
        let length = usize::try_from(left).map_or(length, |left| length.min(left));
        let bytes = detach(py, || -> Outcome<_> {
            // Once more for Python.
            let needed = (length as u64).saturating_mul(2);
            let advice = "read fewer at a time, or ";
            self.memory.check("so many bytes", needed, advice)?;
            let mut bytes = vec![0; length];
            let read = self.tiff.read_at(offset, &mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// How many blocks were decoded.
    fn decoded(&self) -> u64 {
        self.cache.decoded()
    }
}
