//! Arrays of NumPy: heights that are read part by part, and heights that are returned.
//!
//! Other threads of Python may write to an array while it is encoded. So nothing of it is read here: NumPy copies a part, which
//! then belongs to this module alone.

use std::io;

use numpy::ndarray::Array2;
use numpy::{Element, IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PySlice;
use terrane::View;
use terrane_geo::{
    Error, Georeference, Grid, HeightUnit, RasterInfo, RasterSource, SampleType, Storage, Window,
};

use crate::failure::{Failure, Outcome, refuse};

/// What an array is called in errors.
const NAME: &str = "the array";

/// An array of rows and columns of numbers or truths.
pub(crate) struct Array {
    array: Py<PyAny>,
    /// Rows and columns.
    pub(crate) shape: (usize, usize),
}

impl FromPyObject<'_, '_> for Array {
    type Error = PyErr;

    fn extract(array: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            shape: array.getattr("shape")?.extract()?,
            array: array.to_owned().unbind(),
        })
    }
}

impl Array {
    /// The type of the heights.
    fn sample(&self, py: Python) -> PyResult<SampleType> {
        let name: String = self
            .array
            .getattr(py, "dtype")?
            .getattr(py, "name")?
            .extract(py)?;
        let found = SampleType::ALL.iter().find(|sample| sample.name() == name);
        Ok(match found {
            Some(sample) => *sample,
            None => refuse(format!("heights must be numbers, not {name}"))?,
        })
    }

    /// A copy of a part as numbers, which NumPy makes.
    pub(crate) fn part(&self, py: Python, window: Window) -> PyResult<Vec<f64>> {
        let range = |first: usize, count: usize| {
            PySlice::new(py, first as isize, (first + count) as isize, 1)
        };
        let part = (
            range(window.row, window.height),
            range(window.column, window.width),
        );
        let part = self.array.bind(py).get_item(part)?;
        let copy = part.call_method1("astype", ("float64", "C"))?;
        Ok(copy.cast::<PyArray2<f64>>()?.to_vec()?)
    }
}

/// An array as a raster in metres. Pixels that are masked, NaN or equal to the nodata value have no data.
pub(crate) struct ArrayRaster {
    info: RasterInfo,
    heights: Array,
    mask: Option<Array>,
}

impl ArrayRaster {
    pub(crate) fn new(
        py: Python,
        heights: Array,
        mask: Option<Array>,
        georeference: Georeference,
        nodata: Option<f64>,
    ) -> PyResult<Self> {
        let (height, width) = heights.shape;
        if width == 0 || height == 0 {
            return Ok(refuse("an array of heights must not be empty")?);
        }
        if mask
            .as_ref()
            .is_some_and(|mask| mask.shape != heights.shape)
        {
            return Ok(refuse("the mask must have the shape of the array")?);
        }
        Ok(Self {
            info: RasterInfo {
                path: NAME.into(),
                levels: vec![(width, height)],
                georeference,
                storage: Storage::metres(heights.sample(py)?, nodata),
                unit: HeightUnit::Metre,
            },
            heights,
            mask,
        })
    }
}

impl RasterSource for ArrayRaster {
    fn info(&self) -> &RasterInfo {
        &self.info
    }

    fn read(&self, level: usize, window: Window) -> terrane_geo::Result<Grid> {
        self.info.check(level, window)?;
        let copied = Python::attach(|py| -> PyResult<_> {
            let heights = self.heights.part(py, window)?;
            let mask = self.mask.as_ref().map(|mask| mask.part(py, window));
            Ok((heights, mask.transpose()?))
        });
        let (mut heights, mask) = copied.map_err(|error| Error::Io {
            path: NAME.into(),
            action: "be read",
            source: io::Error::other(error.to_string()),
        })?;
        for (height, is_masked) in heights.iter_mut().zip(mask.into_iter().flatten()) {
            if is_masked != 0.0 {
                *height = f64::NAN;
            }
        }
        if let Some(nodata) = self.info.storage.nodata {
            for height in heights.iter_mut().filter(|height| **height == nodata) {
                *height = f64::NAN;
            }
        }
        let mut grid = Grid::new(window.width, window.height, heights);
        grid.drop_not_heights(&self.info.storage);
        Ok(grid)
    }
}

/// The numbers in which heights go to Python.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) sample: SampleType,
    /// Of pixels without data.
    pub(crate) nodata: f64,
}

impl Numbers {
    /// Floats of 32 or 64 bits, NaN without data.
    pub(crate) fn floats(is_wide: bool) -> Self {
        Self {
            sample: if is_wide {
                SampleType::F64
            } else {
                SampleType::F32
            },
            nodata: f64::NAN,
        }
    }

    fn of(self, height: f64) -> f64 {
        if height.is_nan() { self.nodata } else { height }
    }
}

/// Heights on their way to Python.
pub(crate) enum Heights {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
}

impl Heights {
    /// All heights of a view as such numbers.
    pub(crate) fn of_view(view: &View, numbers: Numbers, jobs: usize) -> Outcome<Self> {
        let of = |height| numbers.of(height);
        Ok(match numbers.sample {
            SampleType::F32 => Self::F32(view.array(jobs, |height| height as f32)?),
            SampleType::F64 => Self::F64(view.array(jobs, |height| height)?),
            SampleType::U8 => Self::U8(view.array(jobs, |height| of(height) as u8)?),
            SampleType::I8 => Self::I8(view.array(jobs, |height| of(height) as i8)?),
            SampleType::U16 => Self::U16(view.array(jobs, |height| of(height) as u16)?),
            SampleType::I16 => Self::I16(view.array(jobs, |height| of(height) as i16)?),
            SampleType::U32 => Self::U32(view.array(jobs, |height| of(height) as u32)?),
            SampleType::I32 => Self::I32(view.array(jobs, |height| of(height) as i32)?),
        })
    }

    /// Heights that are there already.
    pub(crate) fn new(heights: Vec<f64>, numbers: Numbers) -> Self {
        fn all<T>(heights: &[f64], number: impl Fn(f64) -> T) -> Vec<T> {
            heights.iter().map(|&height| number(height)).collect()
        }
        let of = |height| numbers.of(height);
        match numbers.sample {
            SampleType::F64 => Self::F64(heights),
            SampleType::F32 => Self::F32(all(&heights, |height| height as f32)),
            SampleType::U8 => Self::U8(all(&heights, |height| of(height) as u8)),
            SampleType::I8 => Self::I8(all(&heights, |height| of(height) as i8)),
            SampleType::U16 => Self::U16(all(&heights, |height| of(height) as u16)),
            SampleType::I16 => Self::I16(all(&heights, |height| of(height) as i16)),
            SampleType::U32 => Self::U32(all(&heights, |height| of(height) as u32)),
            SampleType::I32 => Self::I32(all(&heights, |height| of(height) as i32)),
        }
    }

    /// An array of rows and columns that takes the heights over.
    pub(crate) fn into_array(self, py: Python, shape: (usize, usize)) -> PyResult<Py<PyAny>> {
        match self {
            Self::F32(heights) => array(py, heights, shape),
            Self::F64(heights) => array(py, heights, shape),
            Self::U8(heights) => array(py, heights, shape),
            Self::I8(heights) => array(py, heights, shape),
            Self::U16(heights) => array(py, heights, shape),
            Self::I16(heights) => array(py, heights, shape),
            Self::U32(heights) => array(py, heights, shape),
            Self::I32(heights) => array(py, heights, shape),
        }
    }
}

/// An array of rows and columns that takes values over.
pub(crate) fn array<T: Element>(
    py: Python,
    values: Vec<T>,
    shape: (usize, usize),
) -> PyResult<Py<PyAny>> {
    let array = Array2::from_shape_vec(shape, values)
        .map_err(|_| Failure::Argument("the values do not fill the array".into()))?;
    Ok(array.into_pyarray(py).into_any().unbind())
}
