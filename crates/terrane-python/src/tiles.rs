//! Single tiles as bytes, for containers other than our own file.
//!
//! The bytes are a record of the file with the checksum of tile 0; an array without any data is one byte, 0.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use terrane::Settings;
use terrane_codec::format::{Coding, MemoryLimit, Record, Window};
use terrane_codec::{TileDecoder, TileEncoder};

use crate::failure::{Failure, Outcome};
use crate::settings::Options;

/// What stands for an array without data; no record is so short.
const EMPTY: [u8; 1] = [0];
/// The number that records have here.
const NUMBER: u64 = 0;

/// Codes arrays as tiles.
#[pyclass(frozen, module = "terrane._terrane")]
pub(crate) struct TileCoder {
    encoder: TileEncoder,
    decoder: TileDecoder,
}

fn encoder(settings: &Settings, is_f32: bool) -> Outcome<TileEncoder> {
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
    fn new(options: Options, is_f32: bool) -> PyResult<Self> {
        let encoder = encoder(&options.settings()?, is_f32)?;
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
    fn encode<'py>(
        &self,
        py: Python<'py>,
        heights: PyReadonlyArray2<f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let view = heights.as_array();
        let (height, width) = view.dim();
        let heights: Vec<f64> = view.iter().copied().collect();
        let bytes = py.detach(|| -> Outcome<Vec<u8>> {
            let made = self
                .encoder
                .encode(&heights, Window::whole(width, height))?;
            Ok(made.map_or_else(|| EMPTY.to_vec(), |coded| coded.to_bytes(NUMBER)))
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The heights of bytes.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
        shape: (usize, usize),
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (height, width) = shape;
        let heights = py.detach(|| -> Outcome<Vec<f64>> {
            let window = Window::whole(width, height);
            if bytes == EMPTY {
                return Ok(vec![f64::NAN; width * height]);
            }
            let record = Record::parse(bytes, NUMBER, window)?;
            Ok(self.decoder.decode(&record, window)?.valid_heights())
        })?;
        let array = Array2::from_shape_vec((height, width), heights)
            .map_err(|_| Failure::Argument("the heights do not fill the array".into()))?;
        Ok(array.into_pyarray(py))
    }
}
