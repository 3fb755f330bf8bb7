//! Arrays of NumPy: heights that are read where they lie, and heights that are returned.

use numpy::ndarray::{Array2, ArrayView2, Axis};
use numpy::{Element, IntoPyArray, PyReadonlyArray2};
use pyo3::prelude::*;
use terrane::View;
use terrane_geo::{
    Georeference, Grid, HeightUnit, RasterInfo, RasterSource, SampleType, Storage, Window,
};

use crate::failure::{Failure, Outcome, refuse};

/// An array of heights of any type that a raster may have.
#[derive(FromPyObject)]
pub(crate) enum HeightArray<'py> {
    F32(PyReadonlyArray2<'py, f32>),
    F64(PyReadonlyArray2<'py, f64>),
    U8(PyReadonlyArray2<'py, u8>),
    I8(PyReadonlyArray2<'py, i8>),
    U16(PyReadonlyArray2<'py, u16>),
    I16(PyReadonlyArray2<'py, i16>),
    U32(PyReadonlyArray2<'py, u32>),
    I32(PyReadonlyArray2<'py, i32>),
}

/// Heights that can be read by windows, wherever and in whatever type they lie.
pub(crate) trait Pixels: Send + Sync {
    /// Rows and columns.
    fn shape(&self) -> (usize, usize);

    /// The heights of a window, which must lie inside.
    fn window(&self, window: Window) -> Vec<f64>;
}

impl<T: Copy + Into<f64> + Send + Sync> Pixels for ArrayView2<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.dim()
    }

    fn window(&self, window: Window) -> Vec<f64> {
        let part = part(self, window);
        part.iter().map(|&height| height.into()).collect()
    }
}

/// The part of an array inside a window.
fn part<'a, T>(array: &'a ArrayView2<T>, window: Window) -> ArrayView2<'a, T> {
    let rows = window.row..window.row + window.height;
    let columns = window.column..window.column + window.width;
    let mut part = array.view();
    part.slice_axis_inplace(Axis(0), rows.into());
    part.slice_axis_inplace(Axis(1), columns.into());
    part
}

impl HeightArray<'_> {
    /// The type of the heights, and the heights.
    pub(crate) fn pixels(&self) -> (SampleType, Box<dyn Pixels + '_>) {
        match self {
            Self::F32(array) => (SampleType::F32, Box::new(array.as_array())),
            Self::F64(array) => (SampleType::F64, Box::new(array.as_array())),
            Self::U8(array) => (SampleType::U8, Box::new(array.as_array())),
            Self::I8(array) => (SampleType::I8, Box::new(array.as_array())),
            Self::U16(array) => (SampleType::U16, Box::new(array.as_array())),
            Self::I16(array) => (SampleType::I16, Box::new(array.as_array())),
            Self::U32(array) => (SampleType::U32, Box::new(array.as_array())),
            Self::I32(array) => (SampleType::I32, Box::new(array.as_array())),
        }
    }
}

/// An array as a raster in metres. Pixels that are masked, NaN or equal to the nodata value have no data.
pub(crate) struct ArrayRaster<'a> {
    info: RasterInfo,
    pixels: Box<dyn Pixels + 'a>,
    mask: Option<ArrayView2<'a, bool>>,
}

impl<'a> ArrayRaster<'a> {
    pub(crate) fn new(
        heights: &'a HeightArray,
        mask: Option<ArrayView2<'a, bool>>,
        georeference: Georeference,
        nodata: Option<f64>,
    ) -> Outcome<Self> {
        let (sample, pixels) = heights.pixels();
        let (height, width) = pixels.shape();
        if width == 0 || height == 0 {
            return refuse("an array of heights must not be empty");
        }
        if mask.is_some_and(|mask| mask.dim() != (height, width)) {
            return refuse("the mask must have the shape of the array");
        }
        Ok(Self {
            info: RasterInfo {
                path: "the array".into(),
                levels: vec![(width, height)],
                georeference,
                storage: Storage::metres(sample, nodata),
                unit: HeightUnit::Metre,
            },
            pixels,
            mask,
        })
    }
}

impl RasterSource for ArrayRaster<'_> {
    fn info(&self) -> &RasterInfo {
        &self.info
    }

    fn read(&self, level: usize, window: Window) -> terrane_geo::Result<Grid> {
        self.info.check(level, window)?;
        let mut heights = self.pixels.window(window);
        if let Some(mask) = &self.mask {
            for (height, _) in heights
                .iter_mut()
                .zip(part(mask, window))
                .filter(|(_, is_masked)| **is_masked)
            {
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

/// Heights on their way to Python.
pub(crate) enum Heights {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Heights {
    /// All heights of a view, as 64-bit floats where `is_wide`.
    pub(crate) fn of_view(view: &View, is_wide: bool, jobs: usize) -> Outcome<Self> {
        Ok(if is_wide {
            Self::F64(view.array(jobs, |height| height)?)
        } else {
            Self::F32(view.array(jobs, |height| height as f32)?)
        })
    }

    /// Heights that are there already.
    pub(crate) fn new(heights: Vec<f64>, is_wide: bool) -> Self {
        if is_wide {
            Self::F64(heights)
        } else {
            Self::F32(heights.into_iter().map(|height| height as f32).collect())
        }
    }

    /// An array of rows and columns that takes the heights over.
    pub(crate) fn into_array(self, py: Python, shape: (usize, usize)) -> PyResult<Py<PyAny>> {
        match self {
            Self::F32(heights) => array(py, heights, shape),
            Self::F64(heights) => array(py, heights, shape),
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
