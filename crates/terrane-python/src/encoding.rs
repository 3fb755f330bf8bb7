//! Rasters and arrays to files, and back.

use std::path::PathBuf;

use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use terrane::Measured;
use terrane_convert::{Decoding, Encoded, is_geographic};
use terrane_geo::{
    Affine, Crs, Georeference, Grid, MemoryRaster, RasterSource, SampleType, Storage,
};

use crate::failure::{Failure, Outcome, refuse};
use crate::settings::{Options, detached, existing, threads};

/// Where a file goes, as the package's Python functions hand it over.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Output {
    out: PathBuf,
    overwrite: bool,
    resumable: bool,
    jobs: Option<usize>,
    progress: Option<Py<PyAny>>,
}

/// Bytes of the file, pixels with data, root mean square and greatest error.
type Written = (u64, u64, f64, f64);

fn written((bytes, measured): (u64, Measured)) -> Written {
    (
        bytes,
        measured.pixels,
        measured.rmse_m(),
        measured.max_error_m,
    )
}

fn run(
    py: Python,
    options: Options,
    output: &Output,
    inputs: &[PathBuf],
    open: impl FnOnce() -> Outcome<Box<dyn RasterSource>> + Send,
) -> PyResult<Written> {
    let settings = options.settings()?;
    detached(py, output.progress.as_ref(), |progress| {
        let raster = open()?;
        let file = Encoded {
            out: &output.out,
            existing: existing(output.overwrite),
            resumable: output.resumable.then_some(inputs),
            jobs: threads(output.jobs),
        };
        Ok(written(terrane_convert::encode(
            &*raster, &settings, file, progress,
        )?))
    })
}

/// Encodes rasters, one or several as a mosaic.
#[pyfunction]
pub(crate) fn encode(
    py: Python,
    sources: Vec<PathBuf>,
    output: Output,
    options: Options,
) -> PyResult<Written> {
    let open = || Ok(terrane_geo::open(&sources)?);
    run(py, options, &output, &sources, open)
}

/// Where an array lies: the transform in rasterio's order from the corner of the first pixel, EPSG codes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Place {
    transform: Option<[f64; 6]>,
    epsg: Option<u16>,
    vertical_epsg: Option<u16>,
    sample_type: String,
    nodata: Option<f64>,
}

impl Place {
    fn georeference(&self) -> Outcome<(Georeference, Storage)> {
        let Some(sample) = SampleType::ALL
            .into_iter()
            .find(|sample| sample.name() == self.sample_type)
        else {
            return refuse(format!(
                "heights must be integers of at most 32 bits or floats, not {}",
                self.sample_type
            ));
        };
        let crs = match self.epsg {
            None => Crs::default(),
            Some(code) => match is_geographic(code) {
                Some(true) => Crs::geographic(code, self.vertical_epsg),
                Some(false) => Crs::projected(code, self.vertical_epsg),
                None => return refuse(format!("crs: EPSG:{code} is not known here")),
            },
        };
        let place = match self.transform {
            None => Georeference::unplaced(crs),
            Some([x_per_column, x_per_row, x, y_per_column, y_per_row, y]) => {
                let affine = Affine {
                    x,
                    x_per_column,
                    x_per_row,
                    y,
                    y_per_column,
                    y_per_row,
                };
                if affine.invert(0.0, 0.0).is_none() {
                    return refuse("transform must be invertible");
                }
                Georeference::new(affine, crs)
            }
        };
        Ok((place, Storage::metres(sample, self.nodata)))
    }
}

/// Encodes an array of heights in metres, NaN where there is no data.
#[pyfunction]
pub(crate) fn encode_array(
    py: Python,
    heights: PyReadonlyArray2<f64>,
    place: Place,
    output: Output,
    options: Options,
) -> PyResult<Written> {
    let (georeference, storage) = place.georeference()?;
    let view = heights.as_array();
    let (height, width) = view.dim();
    if width == 0 || height == 0 {
        return Err(Failure::Argument("an array of heights must not be empty".into()).into());
    }
    let grid = Grid {
        width,
        height,
        heights: view.iter().copied().collect(),
    };
    let open = move || -> Outcome<Box<dyn RasterSource>> {
        Ok(Box::new(MemoryRaster::new(
            "the array",
            grid,
            georeference,
            storage,
        )))
    };
    run(py, options, &output, &[], open)
}

/// Decodes a file to a COG; columns and rows of it.
#[pyfunction]
#[pyo3(signature = (path, out, *, bbox, resolution, level, model, overwrite, jobs))]
#[expect(clippy::too_many_arguments, reason = "each is an argument in Python")]
pub(crate) fn decode(
    py: Python,
    path: PathBuf,
    out: PathBuf,
    bbox: Option<[f64; 4]>,
    resolution: Option<f64>,
    level: u8,
    model: Option<PathBuf>,
    overwrite: bool,
    jobs: Option<usize>,
) -> PyResult<(usize, usize)> {
    detached(py, None, |progress| {
        let terrain = terrane_convert::open(&path, model.as_deref())?;
        let decoding = Decoding {
            bbox,
            resolution,
            level,
        };
        let mut stopped = Ok(());
        let size = decoding.write(
            &terrain,
            &out,
            existing(overwrite),
            threads(jobs),
            &mut |done, of| {
                let at = terrane::encode::EncodeProgress {
                    tiles: done,
                    of,
                    bytes: 0,
                };
                if stopped.is_ok() {
                    stopped = progress(at);
                }
            },
        )?;
        stopped?;
        Ok(size)
    })
}

/// Checks a file, with its sources where they are given: a report as JSON, and what does not hold.
#[pyfunction]
#[pyo3(signature = (path, against, *, model, jobs))]
pub(crate) fn verify(
    py: Python,
    path: PathBuf,
    against: Vec<PathBuf>,
    model: Option<PathBuf>,
    jobs: Option<usize>,
) -> PyResult<(String, Vec<String>)> {
    detached(py, None, |_| {
        let terrain = terrane_convert::open(&path, model.as_deref())?;
        let found =
            terrane_convert::verify(&terrain, &against, threads(jobs), &mut |_, _, _, _| {})?;
        let report = serde_json::Value::Object(found.report);
        Ok((report.to_string(), found.failed))
    })
}
