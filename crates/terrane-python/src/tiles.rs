//! Single tiles as bytes, for containers other than our own file.
//!
//! The bytes are a record of the file with the checksum of tile 0; an array without any data is one byte, 0.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use terrane_codec::format::{Coding, MemoryLimit, Window};
use terrane_codec::{TileDecoder, TileEncoder};

use crate::array::{Array, Heights, Numbers};
use crate::failure::{Outcome, detach, refuse};
use crate::settings::Settings;

/// What stands for an array without data; no record is so short.
const EMPTY: [u8; 1] = [0];

/// Codes arrays as tiles.
#[pyclass(frozen, module = "pyterrane._pyterrane")]
pub(crate) struct TileCoder {
    encoder: TileEncoder,
    decoder: TileDecoder,
}

fn encoder(settings: &terrane::Settings, is_f32: bool) -> Outcome<TileEncoder> {
    if let Some(method) = settings.method.filter(|method| method.has_tokens()) {
        return refuse(format!(
            "`method` must be one without tokens here, not {method}"
        ));
    }
    let prepared = settings.prepare(MemoryLimit::default())?;
    Ok(TileEncoder {
        method: prepared.method,
        model: prepared.model.map(|(model, _)| model),
        bits: 8,
        coding: Coding::Shortest,
        rate: prepared.rate,
        is_f32,
        source_step_m: 0.0,
        effort: settings.effort,
    })
}

#[pymethods]
impl TileCoder {
    #[new]
    fn new(settings: &Settings, is_f32: bool) -> PyResult<Self> {
        let encoder = encoder(&settings.0, is_f32)?;
        let decoder = encoder.decoder();
        Ok(Self { encoder, decoder })
    }

    /// SHA-256 of the model that tiles are made with, where there is one.
    #[getter]
    fn model(&self) -> Option<String> {
        let model = self.encoder.model.as_ref()?;
        Some(hex::encode(model.sha256()))
    }

    /// The bytes of an array of heights, NaN where there is no data.
    fn encode<'py>(&self, py: Python<'py>, heights: Array) -> PyResult<Bound<'py, PyBytes>> {
        let (height, width) = heights.shape;
        let window = Window::whole(width, height);
        let heights = heights.part(py, window)?;
        let bytes = detach(py, || -> Outcome<Vec<u8>> {
            let made = self.encoder.encode(&heights, window)?;
            Ok(made.map_or_else(|| EMPTY.to_vec(), |coded| coded.bytes))
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The heights of bytes, of 32 bits where the tile was made of such.
    fn decode(&self, py: Python, bytes: &[u8], shape: (usize, usize)) -> PyResult<Py<PyAny>> {
        let (height, width) = shape;
        let heights = detach(py, || -> Outcome<Vec<f64>> {
            let window = Window::whole(width, height);
            if bytes == EMPTY {
                return Ok(vec![f64::NAN; width * height]);
            }
            Ok(self.decoder.decode_alone(bytes, window)?.valid_heights())
        })?;
        Heights::new(heights, Numbers::floats(!self.encoder.is_f32)).into_array(py, shape)
    }
}
