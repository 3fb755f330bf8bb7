//! One file per command.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use burn::tensor::Device;
use terrane::format::{Reader, Source};
use terrane::{FileModel, Sample, Terrain};
use terrane_geo::{Crs, CrsKind, Derivatives, Existing, HeightUnit, METRES_PER_DEGREE};

use crate::Common;

pub(crate) mod dataset;
pub(crate) mod decode;
pub(crate) mod demo;
pub(crate) mod derive;
pub(crate) mod encode;
pub(crate) mod eval;
pub(crate) mod generate;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod query;
pub(crate) mod serve;
pub(crate) mod tables;
pub(crate) mod train;
pub(crate) mod verify;

/// Where a command computes.
#[derive(clap::Args)]
pub(crate) struct DeviceArguments {
    /// Where to compute: cpu, cuda, rocm, metal, vulkan or wgpu; cuda:1 is the second card. A training takes several,
    /// as cuda:0,cuda:1.
    #[arg(long, default_value = "cpu")]
    device: String,
}

impl DeviceArguments {
    /// The device.
    pub(crate) fn open(&self) -> Result<Device> {
        Ok(terrane_lab::device::parse(&self.device)?)
    }

    /// All devices that were named.
    pub(crate) fn open_all(&self) -> Result<Vec<Device>> {
        Ok(terrane_lab::device::parse_all(&self.device)?)
    }
}

/// A neural terrain file to read.
#[derive(clap::Args)]
pub(crate) struct FileArguments {
    /// The neural terrain file: a path or an address (https://…, s3://…).
    file: PathBuf,
    /// Its model, where it is neither in the file nor in the program.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
}

impl FileArguments {
    /// The file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.file
    }

    /// The file without its model.
    pub(crate) fn reader(&self) -> Result<Reader> {
        Reader::open(open_source(&self.file)?)
            .with_context(|| format!("{} cannot be opened", self.file.display()))
    }

    /// The file, ready to decode.
    pub(crate) fn terrain(&self) -> Result<Terrain> {
        open_terrain(&self.file, self.model.as_deref())
    }
}

fn open_source(file: &Path) -> Result<Box<dyn Source>> {
    terrane::source(file).with_context(|| format!("{} cannot be opened", file.display()))
}

/// A neural terrain file, with its model where it is neither in the file nor in the program.
pub(crate) fn open_terrain(file: &Path, model: Option<&Path>) -> Result<Terrain> {
    let model = match model {
        None => None,
        Some(path) => {
            let bytes = std::fs::read(path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            let model = FileModel::from_bytes(&bytes)
                .with_context(|| format!("{} cannot be used as a model", path.display()))?;
            Some(model)
        }
    };
    Terrain::open(open_source(file)?, model)
        .with_context(|| format!("{} cannot be opened", file.display()))
}

/// A check that did not hold: the command ends with 1 instead of 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CheckFailed(pub(crate) String);

/// Threads to use.
pub(crate) fn jobs(common: &Common) -> usize {
    common.jobs.map_or_else(
        || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
        std::num::NonZeroUsize::get,
    )
}

/// Metres per unit of x and of y: of a system in degrees at a latitude, or at the middle of the raster.
pub(crate) fn map_unit_m(terrain: &Terrain, latitude: Option<f64>) -> Result<[f64; 2]> {
    let header = terrain.header();
    let crs = crate::placement::georeference(header).crs;
    let (width, height) = header.pyramid.size(0).unwrap_or_default();
    let affine = crate::placement::affine(terrain.corner_affine());
    let (_, middle) = affine.apply(f64::from(width) / 2.0, f64::from(height) / 2.0);
    crs_unit_m(&crs, latitude.unwrap_or(middle))
}

/// Metres per unit of x and of y of a system, at a latitude where it is in degrees.
pub(crate) fn crs_unit_m(crs: &Crs, latitude: f64) -> Result<[f64; 2]> {
    if crs.kind() == CrsKind::Geographic {
        return Ok([
            METRES_PER_DEGREE * latitude.to_radians().cos(),
            METRES_PER_DEGREE,
        ]);
    }
    let metres = match crs.linear_unit_code() {
        None => crs
            .horizontal_epsg()
            .and_then(crate::projection::unit_m)
            .unwrap_or(1.0),
        Some(code) => HeightUnit::from_epsg_unit(code)
            .with_context(|| format!("the map unit EPSG:{code} is not known"))?
            .metres(),
    };
    Ok([metres; 2])
}

/// Derivatives on the ground, of a sample in map units.
pub(crate) fn ground(sample: &Sample, unit_m: [f64; 2]) -> Derivatives {
    let [x, y] = unit_m;
    Derivatives {
        gradient: [sample.gradient[0] / x, sample.gradient[1] / y],
        hessian: [
            sample.hessian[0] / (x * x),
            sample.hessian[1] / (x * y),
            sample.hessian[2] / (y * y),
        ],
    }
}

/// What `--overwrite` says about an existing output.
pub(crate) fn existing(overwrite: bool) -> Existing {
    if overwrite {
        Existing::Replace
    } else {
        Existing::Keep
    }
}
