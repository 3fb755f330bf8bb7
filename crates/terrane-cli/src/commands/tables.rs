//! `terrane tables`: probabilities of a model's symbols.

use std::path::PathBuf;

use anyhow::Result;
use terrane_geo::Kind;
use terrane_train::data::Dataset;
use terrane_train::tables::learn;
use terrane_train::training::checkpoint::{read_model, write_model};

use crate::Common;
use crate::commands::{DeviceArguments, OutputOptions, existing};
use crate::output::{print, print_json, shown};

/// Learn the tables of a model's symbols on the training split, and write the model with them to another file.
///
/// `terrane train` does so by itself; an imported model needs it before it can encode. The model itself stays as it is:
/// files that were made with it are known by its bytes.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  terrane tables imported.safetensors model.safetensors --data tiles"
)]
pub(crate) struct Arguments {
    /// The model.
    model: PathBuf,
    /// Model to write.
    out: PathBuf,
    /// The dataset.
    #[arg(long)]
    data: PathBuf,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    device: DeviceArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let Arguments { model, out, .. } = arguments;
    let dataset = Dataset::open(&arguments.data)?;
    let files = dataset.files();
    arguments
        .output
        .output(out, Kind::Model)
        .made_of([model])
        .made_of(&files)
        .check()?;
    let device = arguments.device.open()?;
    let (network, config) = read_model(model, &device, common.network_memory())?;
    let tables = learn(&network, &config, &dataset, &device)?;
    write_model(
        out,
        &network,
        &config,
        Some(&tables),
        existing(arguments.output.overwrite),
    )?;
    if common.json {
        return print_json(&serde_json::json!({ "model": shown(out) }));
    }
    print(&format!("{}: tables written\n", out.display()))
}
