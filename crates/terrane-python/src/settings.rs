//! Options from Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use terrane::Target;
use terrane_codec::Resources;
use terrane_codec::encode::{EncodeProgress, Report};
use terrane_codec::format::MemoryLimit;
use terrane_geo::{Existing, Kind, RasterOptions};

use crate::failure::{Outcome, detach, parse, refuse};

/// How a raster is to be encoded.
#[pyclass(frozen, module = "pyterrane._pyterrane")]
pub(crate) struct Settings(pub(crate) terrane::Settings);

#[pymethods]
impl Settings {
    #[new]
    #[pyo3(signature = (*, max_error=None, rmse=None, bpp=None, lossless=false, method=None, profile="standard", effort=1,
        model=None, embed_model=false, per_tile=false, bits=None, fixed_width=false, tile=None))]
    #[expect(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "each is an argument in Python"
    )]
    fn new(
        max_error: Option<f64>,
        rmse: Option<f64>,
        bpp: Option<f64>,
        lossless: bool,
        method: Option<&str>,
        profile: &str,
        effort: u8,
        model: Option<PathBuf>,
        embed_model: bool,
        per_tile: bool,
        bits: Option<u8>,
        fixed_width: bool,
        tile: Option<u16>,
    ) -> PyResult<Self> {
        Ok(Self(terrane::Settings {
            method: method.map(parse).transpose()?,
            profile: parse(profile)?,
            effort,
            model,
            embed_model,
            target: target(max_error, rmse, bpp, lossless)?,
            per_tile,
            bits,
            fixed_width,
            tile,
        }))
    }
}

/// How rasters are read, from names and values.
pub(crate) fn reading(settings: Option<Vec<(String, String)>>) -> Outcome<RasterOptions> {
    let mut options = RasterOptions::default();
    for (name, value) in settings.unwrap_or_default() {
        options.set(&name, &value)?;
    }
    Ok(options)
}

pub(crate) fn target(
    max_error: Option<f64>,
    rmse: Option<f64>,
    bpp: Option<f64>,
    lossless: bool,
) -> Outcome<Target> {
    let targets = [
        max_error.map(Target::MaxError),
        rmse.map(Target::Rmse),
        bpp.map(Target::Bpp),
        lossless.then_some(Target::Lossless),
    ];
    let mut given = targets.into_iter().flatten();
    let target = given.next().unwrap_or_default();
    if given.next().is_some() {
        return refuse("give one of `max_error`, `rmse`, `bpp` and `lossless`");
    }
    Ok(target)
}

/// Threads: as many as asked for, or all cores.
pub(crate) fn threads(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
    })
}

/// Memory that one file may take, in gigabytes as it is given.
pub(crate) fn memory(gigabytes: Option<f64>) -> Outcome<MemoryLimit> {
    match gigabytes {
        None => Ok(MemoryLimit::default()),
        Some(gigabytes) if gigabytes > 0.0 && gigabytes < 1e9 => Ok(MemoryLimit {
            bytes: (gigabytes * 1e9) as u64,
        }),
        Some(other) => refuse(format!(
            "`memory_limit` must be gigabytes above 0, not {other}"
        )),
    }
}

/// Threads and memory.
pub(crate) fn resources(jobs: Option<usize>, gigabytes: Option<f64>) -> Outcome<Resources> {
    Ok(Resources {
        jobs: threads(jobs),
        memory: memory(gigabytes)?,
    })
}

pub(crate) fn existing(overwrite: bool) -> Existing {
    if overwrite {
        Existing::Replace
    } else {
        Existing::Refuse
    }
}

/// What a name may end in.
pub(crate) fn kind(kind: Kind, any_extension: bool) -> Kind {
    if any_extension { Kind::Any } else { kind }
}

/// Runs work without Python's lock; `report` is a Python function of tiles done and tiles in all. The work stops where the
/// function or a signal asks for it.
pub(crate) fn detached<T: Send>(
    py: Python,
    report: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut Report) -> Outcome<T> + Send,
) -> PyResult<T> {
    let mut raised: Option<PyErr> = None;
    let outcome = detach(py, || {
        let mut progress = |at: EncodeProgress| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                match report {
                    Some(report) => report.call1(py, (at.tiles, at.of)).map(drop),
                    None => Ok(()),
                }
            });
            told.map_err(|error| {
                raised = Some(error);
                terrane_codec::Error::Stopped
            })
        };
        work(&mut progress)
    });
    match raised {
        Some(error) => Err(error),
        None => Ok(outcome?),
    }
}
