//! Options of an encoding from Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use terrane::encode::{EncodeProgress, Report};
use terrane::format::{MemoryLimit, Method};
use terrane::{Profile, Resources};
use terrane_convert::{Settings, Target};
use terrane_geo::Existing;

use crate::failure::{Outcome, refuse};

/// Options as the package's Python functions hand them over, all of them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an argument in Python"
)]
pub(crate) struct Options {
    max_error: Option<f64>,
    rmse: Option<f64>,
    bpp: Option<f64>,
    lossless: bool,
    method: Option<String>,
    profile: String,
    effort: u8,
    model: Option<PathBuf>,
    embed_model: bool,
    per_tile: bool,
    bits: Option<u8>,
    fixed_width: bool,
    tile: Option<u16>,
}

impl Options {
    pub(crate) fn settings(self) -> Outcome<Settings> {
        let targets = [
            self.max_error.map(Target::MaxError),
            self.rmse.map(Target::Rmse),
            self.bpp.map(Target::Bpp),
            self.lossless.then_some(Target::Lossless),
        ];
        let mut given = targets.into_iter().flatten();
        let target = given.next().unwrap_or_default();
        if given.next().is_some() {
            return refuse("give one of max_error, rmse, bpp and lossless");
        }
        let method = match self.method.as_deref() {
            None => None,
            Some("context") => Some(Method::Context),
            Some("huvr-siren") => Some(Method::HuvrSiren),
            Some("huvr") => Some(Method::Huvr),
            Some("functa") => Some(Method::Functa),
            Some("transinr") => Some(Method::TransInr),
            Some("integers") => Some(Method::Integers),
            Some(other) => {
                return refuse(format!(
                    "method must be context, huvr-siren, huvr, functa, transinr or integers, not {other}"
                ));
            }
        };
        let profile = match self.profile.as_str() {
            "fast" => Profile::Fast,
            "standard" => Profile::Standard,
            "best" => Profile::Best,
            other => {
                return refuse(format!(
                    "profile must be fast, standard or best, not {other}"
                ));
            }
        };
        if self.effort > 3 {
            return refuse(format!("effort must be from 0 to 3, not {}", self.effort));
        }
        if self.bits.is_some_and(|bits| ![2, 4, 8, 16].contains(&bits)) {
            return refuse("bits must be 2, 4, 8 or 16");
        }
        Ok(Settings {
            method,
            profile,
            effort: self.effort,
            model: self.model,
            embed_model: self.embed_model,
            target,
            per_tile: self.per_tile,
            bits: self.bits,
            fixed_width: self.fixed_width,
            tile: self.tile,
        })
    }
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
            "memory_limit must be gigabytes above 0, not {other}"
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

/// Runs work without Python's lock; `report` is a Python function of tiles done and tiles in all. The work stops where the
/// function or a signal asks for it.
pub(crate) fn detached<T: Send>(
    py: Python,
    report: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut Report) -> Outcome<T> + Send,
) -> PyResult<T> {
    let mut raised: Option<PyErr> = None;
    let outcome = py.detach(|| {
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
                terrane::Error::Stopped
            })
        };
        work(&mut progress)
    });
    match raised {
        Some(error) => Err(error),
        None => Ok(outcome?),
    }
}
