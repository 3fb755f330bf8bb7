//! Encodings in shards.

use std::path::PathBuf;

use pyo3::prelude::*;
use terrane::{Checks, Plan, Split};
use terrane_geo::{Kind, Output};

use crate::failure::{Outcome, detach};
use crate::settings::{Settings, detached, existing, resources};

/// Writes a plan; the number of its shards.
#[pyfunction]
#[pyo3(signature = (sources, plan, settings, *, shards, shard_tiles, hash, overwrite, reading=None))]
#[expect(clippy::too_many_arguments, reason = "each is an argument in Python")]
pub(crate) fn shard_plan(
    py: Python,
    sources: Vec<PathBuf>,
    plan: PathBuf,
    settings: &Settings,
    shards: Option<usize>,
    shard_tiles: usize,
    hash: bool,
    overwrite: bool,
    reading: Option<Vec<(String, String)>>,
) -> PyResult<usize> {
    let settings = &settings.0;
    let options = crate::settings::reading(reading)?;
    detached(py, None, |_| {
        let output = Output::new(&plan, existing(overwrite), Kind::Plan)
            .made_of(&sources)
            .made_of(&settings.model);
        output.check()?;
        let split = shards.map_or(Split::Tiles(shard_tiles), Split::Shards);
        let checks = if hash { Checks::Hash } else { Checks::Time };
        let made = Plan::new(&sources, &options, settings, split, checks)?;
        made.write(&output)?;
        Ok(made.shards())
    })
}

/// The number of a plan's shards.
#[pyfunction]
pub(crate) fn shard_count(py: Python, plan: PathBuf) -> PyResult<usize> {
    let count = || -> Outcome<usize> { Ok(Plan::read(&plan)?.shards()) };
    Ok(detach(py, count)?)
}

/// Encodes a shard: its file, its bytes, whether it was there before, pixels, greatest error.
#[pyfunction]
#[pyo3(signature = (plan, shard, folder, *, model, jobs, progress))]
pub(crate) fn shard_encode(
    py: Python,
    plan: PathBuf,
    shard: u32,
    folder: PathBuf,
    model: Option<PathBuf>,
    jobs: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(PathBuf, u64, bool, u64, f64)> {
    detached(py, progress.as_ref(), |progress| {
        let plan = Plan::read(&plan)?;
        let resources = resources(jobs, None)?;
        let report = plan.encode(shard, &folder, model.as_deref(), resources, progress)?;
        let measured = report.measured;
        Ok((
            report.path,
            report.bytes,
            report.was_there,
            measured.pixels,
            measured.max_error_m,
        ))
    })
}

/// Merges all shards: bytes of the file, pixels, root mean square and greatest error.
#[pyfunction]
#[pyo3(signature = (plan, folder, out, *, model, overwrite, jobs, progress))]
#[expect(clippy::too_many_arguments, reason = "each is an argument in Python")]
pub(crate) fn shard_merge(
    py: Python,
    plan: PathBuf,
    folder: PathBuf,
    out: PathBuf,
    model: Option<PathBuf>,
    overwrite: bool,
    jobs: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, u64, f64, f64)> {
    detached(py, progress.as_ref(), |progress| {
        let output = Output::new(&out, existing(overwrite), Kind::Terrain).made_of([&plan]);
        let merged = Plan::read(&plan)?.merge(
            &folder,
            &output,
            model.as_deref(),
            resources(jobs, None)?,
            progress,
        )?;
        let measured = merged.measured;
        Ok((
            merged.bytes,
            measured.pixels,
            measured.rmse_m(),
            measured.max_error_m,
        ))
    })
}
