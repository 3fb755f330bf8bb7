//! `terrane train`: a method learns from a dataset.

use std::path::PathBuf;

use anyhow::{Context, Result};
use terrane_train::config::{Experiment, preset_text};
use terrane_train::context;
use terrane_train::data::Dataset;
use terrane_train::memory::NetworkMemory;
use terrane_train::training::checkpoint::{CONFIG, MODEL, read_teacher};
use terrane_train::training::{Start, train};

use crate::Common;
use crate::commands::DeviceArguments;
use crate::output::{complain, print, print_json, shown};
use crate::progress::Progress;

/// Train a method on a tile dataset.
///
/// The run's folder gets config.toml, metrics.jsonl, checkpoint.safetensors and, at the end, model.safetensors.
/// `--resume` goes on from the last checkpoint.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane train huvr-siren-small --data tiles/ --out runs/small\n  terrane train huvr-siren --data tiles/ --out runs/a --device cuda --set train.precision=bf16\n  terrane train --resume --data tiles/ --out runs/a --device cuda"
)]
pub(crate) struct Arguments {
    /// Name of a preset, or a config.toml; not needed with --resume.
    preset: Option<String>,
    /// Folder of a dataset.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Folder of the run.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace a value of the configuration, such as train.steps=1000.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Go on from the run's last checkpoint.
    #[arg(long)]
    resume: bool,
    /// Weights of a DINOv3 teacher (.safetensors or .pth), for train.distil=true.
    #[arg(long, value_name = "FILE")]
    teacher: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let experiment = experiment(arguments)?;
    let devices = arguments.device.open_all()?;
    for device in &devices {
        if let Some(reason) = terrane_train::device::slowed_by(device) {
            complain("terrane", &format!("warning: this is slow: {reason}"));
        }
    }
    let memory = common.network_memory();
    match &experiment {
        Experiment::Method(config) => memory.require_training(config, &devices[0])?,
        Experiment::Context(config) => memory.require_context(config, &devices[0])?,
    }
    let dataset = Dataset::open(&arguments.data)?;
    let start = if arguments.resume {
        Start::Resume
    } else {
        Start::New
    };
    let mut progress = Progress::new("training", common.progress);
    let mut last = None;
    let teacher = arguments
        .teacher
        .as_deref()
        .map(|path| read_teacher(path, &devices[0], memory))
        .transpose()?;
    let mut report = |state: terrane_train::training::Progress| {
        let what = format!("loss {:.3e}, {:.1} tiles/s", state.loss, state.tiles_per_s);
        progress.at(state.step as u64, state.steps as u64, &what);
        last = Some(state);
    };
    let out = &arguments.out;
    let steps = match &experiment {
        Experiment::Method(config) => {
            let teacher = teacher.as_ref();
            train(config, &dataset, out, start, &devices, teacher, &mut report)?;
            config.train.steps
        }
        Experiment::Context(config) => {
            context::train(config, &dataset, out, start, &devices[0], &mut report)?
        }
    };
    drop(progress);
    let model = arguments.out.join(MODEL);
    if common.json {
        return print_json(&serde_json::json!({
            "model": shown(&model),
            "steps": steps,
            "loss": last.map(|state| state.loss),
            "tiles_per_s": last.map(|state| state.tiles_per_s),
        }));
    }
    print(&format!("{}: trained for {steps} steps\n", model.display()))
}

fn experiment(arguments: &Arguments) -> Result<Experiment> {
    let read = |path: &std::path::Path| -> Result<Experiment> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{}: cannot be read", path.display()))?;
        Experiment::parse(&text, &arguments.settings).with_context(|| path.display().to_string())
    };
    match &arguments.preset {
        _ if arguments.resume => read(&arguments.out.join(CONFIG)),
        Some(name) if std::path::Path::new(name).extension().is_some() => read(name.as_ref()),
        Some(name) => Ok(Experiment::parse(preset_text(name)?, &arguments.settings)?),
        None => anyhow::bail!(
            "name a preset or a config.toml to train: {}",
            terrane_train::config::preset_names().join(", ")
        ),
    }
}
