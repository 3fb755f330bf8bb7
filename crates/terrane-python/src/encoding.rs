//! Rasters and arrays to files.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use terrane::{Destination, Encoded};
use terrane_geo::geodesy::is_geographic;
use terrane_geo::{Affine, Crs, Georeference, Kind, Output, RasterSource};

use crate::array::{Array, ArrayRaster};
use crate::failure::{Outcome, refuse};
use crate::settings::{Settings, detached, existing, kind, resources};

/// Where a file goes, and what making it may take.
struct Target {
    out: PathBuf,
    resumable: bool,
    overwrite: bool,
    any_extension: bool,
    jobs: Option<usize>,
    memory_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
}

/// Bytes of the file, pixels with data, root mean square and greatest error, pixels that are no heights, and how the file
/// stands to what was asked for.
type Written = (u64, u64, f64, f64, u64, &'static str);

fn written(encoded: Encoded) -> Written {
    let measured = encoded.measured;
    (
        encoded.bytes,
        measured.pixels,
        measured.rmse_m(),
        measured.max_error_m,
        encoded.not_heights,
        encoded.reached.name(),
    )
}

fn run(
    py: Python,
    settings: &Settings,
    target: &Target,
    inputs: &[PathBuf],
    open: impl FnOnce() -> Outcome<Box<dyn RasterSource>> + Send,
) -> PyResult<Written> {
    let settings = &settings.0;
    detached(py, target.progress.as_ref(), |progress| {
        let resources = resources(target.jobs, target.memory_limit)?;
        let prepared = settings.prepare(resources.memory)?;
        let raster = open()?;
        let kind = kind(Kind::Terrain, target.any_extension);
        let destination = Destination {
            out: Output::new(&target.out, existing(target.overwrite), kind)
                .made_of(inputs)
                .made_of(&settings.model),
            resumable: target.resumable.then_some(inputs),
            resources,
        };
        let encoded = terrane::encode(&*raster, &prepared, destination, progress)?;
        Ok(written(encoded))
    })
}

/// Encodes rasters, one or several as a mosaic.
#[pyfunction]
#[pyo3(signature = (sources, out, settings, *, resumable, overwrite, any_extension, jobs, memory_limit, progress,
    reading=None))]
#[expect(clippy::too_many_arguments, reason = "each is an argument in Python")]
pub(crate) fn encode(
    py: Python,
    sources: Vec<PathBuf>,
    out: PathBuf,
    settings: &Settings,
    resumable: bool,
    overwrite: bool,
    any_extension: bool,
    jobs: Option<usize>,
    memory_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
    reading: Option<Vec<(String, String)>>,
) -> PyResult<Written> {
    let options = crate::settings::reading(reading)?;
    let target = Target {
        out,
        resumable,
        overwrite,
        any_extension,
        jobs,
        memory_limit,
        progress,
    };
    let notes = Mutex::new(Vec::new());
    let open = || {
        let raster = terrane_geo::open_with(&sources, &options)?;
        let said = raster.notes().iter().map(ToString::to_string);
        notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(said);
        Ok(raster)
    };
    let written = run(py, settings, &target, &sources, open)?;
    let warnings = py.import("warnings")?;
    for note in notes.into_inner().unwrap_or_else(PoisonError::into_inner) {
        warnings.call_method1("warn", (note, py.get_type::<PyUserWarning>(), 2))?;
    }
    Ok(written)
}

/// Where an array lies: the transform in rasterio's order from the corner of the first pixel, EPSG codes.
fn georeference(
    transform: Option<[f64; 6]>,
    epsg: Option<u16>,
    vertical_epsg: Option<u16>,
) -> Outcome<Georeference> {
    let crs = match epsg {
        None => Crs::default(),
        Some(code) => match is_geographic(code) {
            Some(true) => Crs::geographic(code, vertical_epsg),
            Some(false) => Crs::projected(code, vertical_epsg),
            None => return refuse(format!("`crs`: EPSG:{code} is not known here")),
        },
    };
    let Some([x_per_column, x_per_row, x, y_per_column, y_per_row, y]) = transform else {
        return Ok(Georeference::of_pixels(crs));
    };
    let affine = Affine {
        x,
        x_per_column,
        x_per_row,
        y,
        y_per_column,
        y_per_row,
    };
    if affine.invert(0.0, 0.0).is_none() {
        return refuse("`transform` must be invertible");
    }
    Ok(Georeference::new(affine, crs))
}

/// Encodes an array of heights in metres, of which NumPy copies a part at a time.
#[pyfunction]
#[pyo3(signature = (heights, mask, out, settings, *, transform, epsg, vertical_epsg, nodata, overwrite, any_extension, jobs,
    memory_limit, progress))]
#[expect(clippy::too_many_arguments, reason = "each is an argument in Python")]
pub(crate) fn encode_array(
    py: Python,
    heights: Array,
    mask: Option<Array>,
    out: PathBuf,
    settings: &Settings,
    transform: Option<[f64; 6]>,
    epsg: Option<u16>,
    vertical_epsg: Option<u16>,
    nodata: Option<f64>,
    overwrite: bool,
    any_extension: bool,
    jobs: Option<usize>,
    memory_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Written> {
    let georeference = georeference(transform, epsg, vertical_epsg)?;
    let raster = ArrayRaster::new(py, heights, mask, georeference, nodata)?;
    let target = Target {
        out,
        resumable: false,
        overwrite,
        any_extension,
        jobs,
        memory_limit,
        progress,
    };
    run(py, settings, &target, &[], || Ok(Box::new(raster)))
}
