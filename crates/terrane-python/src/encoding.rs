//! Rasters and arrays to files, and back.

use std::path::PathBuf;

use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use terrane_convert::{Decoding, Destination, Encoded, OpenOptions};
use terrane_geo::geodesy::is_geographic;
use terrane_geo::{
    Affine, Crs, Georeference, Grid, Kind, MemoryRaster, Output as File, RasterSource, SampleType,
    Storage,
};

use crate::failure::{Failure, Outcome, refuse};
use crate::settings::{Options, detached, existing, memory, resources, threads};

/// Where a file goes, as the package's Python functions hand it over.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Output {
    out: PathBuf,
    overwrite: bool,
    any_extension: bool,
    resumable: bool,
    jobs: Option<usize>,
    memory_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
}

/// What a name may end in.
fn kind(kind: Kind, any_extension: bool) -> Kind {
    if any_extension { Kind::Any } else { kind }
}

/// What a file may take while it is open.
fn options(memory_limit: Option<f64>) -> Outcome<OpenOptions> {
    Ok(OpenOptions {
        memory: memory(memory_limit)?,
        ..OpenOptions::default()
    })
}

/// Bytes of the file, pixels with data, root mean square and greatest error, pixels that are no heights.
type Written = (u64, u64, f64, f64, u64);

fn written(encoded: Encoded) -> Written {
    let measured = encoded.measured;
    (
        encoded.bytes,
        measured.pixels,
        measured.rmse_m(),
        measured.max_error_m,
        encoded.not_heights,
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
        let kind = kind(Kind::Terrain, output.any_extension);
        let destination = Destination {
            out: File::new(&output.out, existing(output.overwrite), kind)
                .made_of(inputs)
                .made_of(&settings.model),
            resumable: output.resumable.then_some(inputs),
            resources: resources(output.jobs, output.memory_limit)?,
        };
        Ok(written(terrane_convert::encode(
            &*raster,
            &settings,
            destination,
            progress,
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
            None => Georeference::of_pixels(crs),
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
    let grid = Grid::new(width, height, view.iter().copied().collect());
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
#[pyo3(signature = (path, out, *, bbox, resolution, level, model, overwrite, any_extension, jobs, memory_limit))]
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
    any_extension: bool,
    jobs: Option<usize>,
    memory_limit: Option<f64>,
) -> PyResult<(usize, usize)> {
    detached(py, None, |progress| {
        let kind = kind(Kind::Raster, any_extension);
        let output = File::new(&out, existing(overwrite), kind)
            .made_of([&path])
            .made_of(&model);
        output.check()?;
        let terrain = terrane_convert::open(&path, model.as_deref(), options(memory_limit)?)?;
        let decoding = Decoding {
            bbox,
            resolution,
            level,
        };
        let decoded = decoding.write(&terrain, &output, threads(jobs), &mut |done, of| {
            let at = terrane::encode::EncodeProgress {
                tiles: done,
                of,
                bytes: 0,
            };
            Ok(progress(at)?)
        })?;
        Ok((decoded.width, decoded.height))
    })
}

/// Checks a file, with its sources where they are given: a report as JSON, and what does not hold.
#[pyfunction]
#[pyo3(signature = (path, against, *, model, jobs, memory_limit))]
pub(crate) fn verify(
    py: Python,
    path: PathBuf,
    against: Vec<PathBuf>,
    model: Option<PathBuf>,
    jobs: Option<usize>,
    memory_limit: Option<f64>,
) -> PyResult<(String, Vec<String>)> {
    detached(py, None, |_| {
        let terrain = terrane_convert::open(&path, model.as_deref(), options(memory_limit)?)?;
        let found =
            terrane_convert::verify(&terrain, &against, threads(jobs), &mut |_, _, _, _| {})?;
        let report = serde_json::Value::Object(found.report);
        Ok((report.to_string(), found.failed))
    })
}
