//! One file per command.

use anyhow::Result;
use burn::tensor::Device;
use terrane_geo::Existing;

pub(crate) mod dataset;
pub(crate) mod demo;
pub(crate) mod eval;
pub(crate) mod generate;
pub(crate) mod import;
pub(crate) mod train;

/// Where a command computes.
#[derive(clap::Args)]
pub(crate) struct DeviceArguments {
    /// Where to compute: cpu, cuda, rocm, metal, vulkan or wgpu; cuda:1 is the second card.
    #[arg(long, default_value = "cpu")]
    device: String,
}

impl DeviceArguments {
    /// The device.
    pub(crate) fn open(&self) -> Result<Device> {
        Ok(terrane_lab::device::parse(&self.device)?)
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
