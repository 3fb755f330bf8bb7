//! `terrane tables`: probabilities of a model's symbols.

use std::path::PathBuf;

use anyhow::Result;
use terrane_lab::checkpoint::{read_model, write_model};
use terrane_lab::dataset::Dataset;
use terrane_lab::tables::learn;

use crate::Common;
use crate::commands::DeviceArguments;
use crate::output::{print, print_json};

/// Learn the tables of a model's symbols on the training split and write them into the model.
///
/// `terrane train` does so by itself; an imported or older model needs it before it can encode.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  terrane tables model.safetensors --data tiles")]
pub(crate) struct Arguments {
    /// The model.
    model: PathBuf,
    /// The dataset.
    #[arg(long)]
    data: PathBuf,
    #[command(flatten)]
    device: DeviceArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let device = arguments.device.open()?;
    let (model, config) = read_model(&arguments.model, &device)?;
    let dataset = Dataset::open(&arguments.data)?;
    let tables = learn(&model, &config, &dataset, &device)?;
    write_model(&arguments.model, &model, &config, Some(&tables))?;
    if common.json {
        return print_json(&serde_json::json!({ "model": arguments.model }));
    }
    print(&format!("{}: tables written\n", arguments.model.display()))
}
