//! `terrane import`: weights that the methods' authors released.

use std::path::PathBuf;

use anyhow::Result;
use burn::module::Module;
use terrane_geo::Kind;
use terrane_train::config::Config;
use terrane_train::training::checkpoint::{import, write_model};

use crate::Common;
use crate::commands::{DeviceArguments, OutputOptions, existing};
use crate::output::{print, print_json, shown};

/// Turn a checkpoint that the authors of HUVR or HUVR+SIREN released into a model of ours.
///
/// The checkpoint is a .pth, .pt or .safetensors file with the authors' names; the preset says the sizes.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  terrane import huvr_siren.pth model.safetensors --preset huvr-siren"
)]
pub(crate) struct Arguments {
    /// The authors' checkpoint.
    checkpoint: PathBuf,
    /// Model to write.
    out: PathBuf,
    /// Preset with the sizes of the network.
    #[arg(long, default_value = "huvr-siren")]
    preset: String,
    /// Replace a value of the configuration, such as method.patch=8.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    device: DeviceArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    arguments
        .output
        .output(&arguments.out, Kind::Model)
        .made_of([&arguments.checkpoint])
        .check()?;
    let existing = existing(arguments.output.overwrite);
    let config = Config::preset(&arguments.preset, &arguments.settings)?;
    let model = import(
        &arguments.checkpoint,
        &config,
        &arguments.device.open()?,
        common.network_memory(),
    )?;
    write_model(&arguments.out, &model, &config, None, existing)?;
    let parameters = model.num_params();
    if common.json {
        return print_json(
            &serde_json::json!({ "model": shown(&arguments.out), "parameters": parameters }),
        );
    }
    print(&format!(
        "{}: {parameters} parameters\n",
        arguments.out.display()
    ))
}
