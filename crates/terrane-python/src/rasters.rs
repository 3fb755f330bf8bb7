//! Files to rasters, and checked against them.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use terrane::{Decoding, Derivation, Hints, OpenOptions, Repairing};
use terrane_codec::Terrain;
use terrane_codec::encode::{EncodeProgress, Report};
use terrane_geo::{Existing, Kind, Output};

use crate::failure::{Outcome, parse};
use crate::settings::{detached, existing, kind, memory, resources, target, threads};

fn open(path: &Path, model: Option<PathBuf>, memory_limit: Option<f64>) -> Outcome<Terrain> {
    let options = OpenOptions {
        model,
        memory: memory(memory_limit)?,
        ..OpenOptions::default()
    };
    Ok(terrane::open_with(path, &options)?)
}

/// Progress by rows, where Python's is by tiles.
pub(crate) fn by_rows(progress: &mut Report) -> impl FnMut(u64, u64) -> terrane::Result<()> {
    |done, of| {
        Ok(progress(EncodeProgress {
            tiles: done,
            of,
            bytes: 0,
        })?)
    }
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
        let output = Output::new(&out, existing(overwrite), kind(Kind::Raster, any_extension))
            .made_of([&path])
            .made_of(&model);
        output.check()?;
        let terrain = open(&path, model.clone(), memory_limit)?;
        let decoding = Decoding {
            bbox,
            resolution,
            level,
            ..Decoding::default()
        };
        let decoded = decoding.write(&terrain, &output, threads(jobs), &mut by_rows(progress))?;
        Ok((decoded.width, decoded.height))
    })
}

/// Derives a product of a file as a COG; columns and rows of it.
#[pyfunction]
#[pyo3(signature = (path, out, *, product, mode, model, overwrite, any_extension, jobs, memory_limit))]
#[expect(clippy::too_many_arguments, reason = "each is an argument in Python")]
pub(crate) fn derive(
    py: Python,
    path: PathBuf,
    out: PathBuf,
    product: &str,
    mode: &str,
    model: Option<PathBuf>,
    overwrite: bool,
    any_extension: bool,
    jobs: Option<usize>,
    memory_limit: Option<f64>,
) -> PyResult<(u32, u32)> {
    let derivation = Derivation {
        product: parse(product)?,
        mode: parse(mode)?,
    };
    detached(py, None, |progress| {
        let output = Output::new(&out, existing(overwrite), kind(Kind::Raster, any_extension))
            .made_of([&path])
            .made_of(&model);
        output.check()?;
        let terrain = open(&path, model.clone(), memory_limit)?;
        derivation.write(&terrain, &output, threads(jobs), &mut by_rows(progress))?;
        Ok(terrain.header().pyramid.size(0).unwrap_or_default())
    })
}

/// Checks a file, with its sources where they are given: a report as JSON, and what does not hold.
#[pyfunction]
#[pyo3(signature = (path, against, *, model, jobs, memory_limit, reading=None))]
pub(crate) fn verify(
    py: Python,
    path: PathBuf,
    against: Vec<PathBuf>,
    model: Option<PathBuf>,
    jobs: Option<usize>,
    memory_limit: Option<f64>,
    reading: Option<Vec<(String, String)>>,
) -> PyResult<(String, Vec<String>)> {
    let options = crate::settings::reading(reading)?;
    detached(py, None, |_| {
        let terrain = open(&path, model, memory_limit)?;
        let found = terrane::verify(
            &terrain,
            &against,
            &options,
            threads(jobs),
            &mut |_, _, _, _| {},
        )?;
        let report = serde_json::Value::Object(found.report);
        Ok((report.to_string(), found.failed))
    })
}

/// Makes a damaged file whole from its sources: a report as JSON. `out` may be the damaged file.
#[pyfunction]
#[pyo3(signature = (path, sources, out, *, max_error, rmse, bpp, lossless, per_tile, method, profile, effort, model, tile, bits,
    fixed_width, overwrite, any_extension, jobs, memory_limit, reading=None))]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "each is an argument in Python"
)]
pub(crate) fn repair(
    py: Python,
    path: PathBuf,
    sources: Vec<PathBuf>,
    out: Option<PathBuf>,
    max_error: Option<f64>,
    rmse: Option<f64>,
    bpp: Option<f64>,
    lossless: bool,
    per_tile: bool,
    method: Option<&str>,
    profile: Option<&str>,
    effort: Option<u8>,
    model: Option<PathBuf>,
    tile: Option<u16>,
    bits: Option<u8>,
    fixed_width: bool,
    overwrite: bool,
    any_extension: bool,
    jobs: Option<usize>,
    memory_limit: Option<f64>,
    reading: Option<Vec<(String, String)>>,
) -> PyResult<String> {
    let options = crate::settings::reading(reading)?;
    let hints = Hints {
        target: target(max_error, rmse, bpp, lossless)?,
        per_tile,
        method: method.map(parse).transpose()?,
        profile: profile.map(parse).transpose()?,
        effort,
        model,
        tile,
        bits,
        fixed_width,
    };
    detached(py, None, |_| {
        let output = match &out {
            Some(out) => Output::new(out, existing(overwrite), kind(Kind::Terrain, any_extension))
                .made_of([&path]),
            None => Output::new(&path, Existing::Replace, Kind::Any),
        };
        let output = output.made_of(&sources).made_of(&hints.model);
        output.check()?;
        let repairing = Repairing {
            from: &sources,
            options: options.clone(),
            hints: hints.clone(),
            out: output.clone(),
            resources: resources(jobs, memory_limit)?,
        };
        let repaired = terrane::repair(&path, &repairing, &mut |_, _, _, _| {})?;
        Ok(repaired.json().to_string())
    })
}
