//! `terrane diagnose`: what amortisation costs, and where.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, ensure};
use burn::tensor::Device;
use serde::Serialize;
use terrane::methods::Model;
use terrane_lab::checkpoint::{MODEL, read_model};
use terrane_lab::config::Config;
use terrane_lab::dataset::Dataset;
use terrane_lab::diagnose::fit::{self, FitOptions, Fitted, fit_tokens, upper_bound};
use terrane_lab::diagnose::{Descent, draw};
use terrane_lab::measure::Summary;

use crate::Common;
use crate::commands::DeviceArguments;
use crate::output::{print, print_json, table};
use crate::progress::Progress;

/// Diagnose what amortisation costs.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Fit(FitArguments),
    UpperBound(UpperBoundArguments),
}

/// Optimise the tokens of every tile, with the model as it is.
///
/// From what the encoder gives, by Adam on each tile's own mean square error; the best tokens of a tile count. The gap
/// is what the encoder loses by computing tokens in one pass.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  terrane diagnose fit runs/a --data tiles/ --device cuda --batch 32"
)]
pub(crate) struct FitArguments {
    #[command(flatten)]
    subject: Subject,
    /// Number of tiles, drawn by the seed; all by default.
    #[arg(long, value_name = "N")]
    tiles: Option<usize>,
    /// Steps of every tile.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    steps: usize,
    /// Learning rate.
    #[arg(long, default_value_t = 0.1)]
    rate: f64,
    /// Tiles that are optimised at once, each for itself.
    #[arg(long, value_name = "N", default_value_t = 8)]
    batch: usize,
    #[command(flatten)]
    device: DeviceArguments,
}

/// Optimise tokens and decoder of every tile together.
///
/// Every tile starts from the trained model and gets a decoder of its own; input, encoder and bottleneck stay as they
/// are. What the architecture could reach if nothing behind the tokens were shared.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  terrane diagnose upper-bound runs/a --data tiles/ --device cuda --part 1/4"
)]
pub(crate) struct UpperBoundArguments {
    #[command(flatten)]
    subject: Subject,
    /// Number of tiles, drawn by the seed.
    #[arg(long, value_name = "N", default_value_t = 32)]
    tiles: usize,
    /// Steps of every tile.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    steps: usize,
    /// Learning rate.
    #[arg(long, default_value_t = 1e-4)]
    rate: f64,
    #[command(flatten)]
    device: DeviceArguments,
}

/// A model and tiles.
#[derive(clap::Args)]
struct Subject {
    /// Folder of a run, or a model.
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    /// Folder of a dataset.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Split to work on.
    #[arg(long, default_value = "test")]
    split: String,
    /// Where the random numbers start.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Only this part of the tiles, as 2/4, for machines that are lent by the minute.
    #[arg(long, value_name = "I/N")]
    part: Option<Part>,
    /// Steps between points of the curve.
    #[arg(long, value_name = "N", default_value_t = 50)]
    log_every: usize,
}

/// One of so many parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    index: usize,
    count: usize,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match numbers {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Self { index, count }),
            _ => Err("write it as I/N, such as 2/4 for the second of four parts".into()),
        }
    }
}

impl Part {
    fn of(self, tiles: &[usize]) -> Vec<usize> {
        let border = |index: usize| index * tiles.len() / self.count;
        tiles[border(self.index - 1)..border(self.index)].to_vec()
    }
}

/// A model and tiles, opened.
struct Opened {
    path: PathBuf,
    model: Model,
    config: Config,
    dataset: Dataset,
    tiles: Vec<usize>,
}

impl Subject {
    fn open(&self, tiles: Option<usize>, device: &Device) -> Result<Opened> {
        let dataset = Dataset::open(&self.data)?;
        let split = dataset.split(&self.split);
        ensure!(
            !split.is_empty(),
            "{}: there is no split \"{}\"; there are {}",
            self.data.display(),
            self.split,
            dataset.splits().join(", ")
        );
        let drawn = draw(&split, tiles, self.seed);
        let tiles = self.part.map_or(drawn.clone(), |part| part.of(&drawn));
        ensure!(
            !tiles.is_empty(),
            "no tile is left of the {} of split \"{}\": ask for more tiles or fewer parts",
            split.len(),
            self.split
        );
        let path = if self.model.is_dir() {
            self.model.join(MODEL)
        } else {
            self.model.clone()
        };
        let (model, config) = read_model(&path, device)?;
        Ok(Opened {
            path,
            model,
            config,
            dataset,
            tiles,
        })
    }
}

#[derive(Serialize)]
struct Report {
    model: PathBuf,
    name: String,
    split: String,
    seed: u64,
    #[serde(flatten)]
    fitted: Fitted,
}

/// Runs the command.
pub(crate) fn run(command: &Command, common: &Common) -> Result<()> {
    match command {
        Command::Fit(arguments) => run_fit(arguments, common),
        Command::UpperBound(arguments) => run_upper_bound(arguments, common),
    }
}

fn run_fit(arguments: &FitArguments, common: &Common) -> Result<()> {
    let device = arguments.device.open()?;
    let subject = &arguments.subject;
    let opened = subject.open(arguments.tiles, &device)?;
    let options = FitOptions {
        descent: Descent::constant(arguments.steps, arguments.rate, subject.log_every),
        together: arguments.batch,
    };
    let mut progress = Progress::new("fitting tokens", common.progress);
    let mut see = |state: fit::Progress| show(&mut progress, state);
    let fitted = fit_tokens(
        &opened.model,
        &opened.config,
        &opened.dataset,
        &opened.tiles,
        options,
        &device,
        &mut see,
    )?;
    drop(progress);
    finish(subject, opened, fitted, common)
}

fn run_upper_bound(arguments: &UpperBoundArguments, common: &Common) -> Result<()> {
    let device = arguments.device.open()?;
    let subject = &arguments.subject;
    let opened = subject.open(Some(arguments.tiles), &device)?;
    let descent = Descent::constant(arguments.steps, arguments.rate, subject.log_every);
    let mut progress = Progress::new("fitting tokens and decoder", common.progress);
    let mut see = |state: fit::Progress| show(&mut progress, state);
    let fitted = upper_bound(
        &opened.model,
        &opened.config,
        &opened.dataset,
        &opened.tiles,
        descent,
        &device,
        &mut see,
    )?;
    drop(progress);
    finish(subject, opened, fitted, common)
}

fn show(progress: &mut Progress, state: fit::Progress) {
    let what = format!("{:.2} dB", state.psnr_db);
    progress.at(state.step as u64, state.steps as u64, &what);
}

fn finish(subject: &Subject, opened: Opened, fitted: Fitted, common: &Common) -> Result<()> {
    if common.json {
        return print_json(&Report {
            model: opened.path,
            name: opened.config.name,
            split: subject.split.clone(),
            seed: subject.seed,
            fitted,
        });
    }
    let row = |name: &str, summary: &Summary| {
        let mean = &summary.mean;
        vec![
            name.to_owned(),
            summary.tiles.to_string(),
            format!("{:.2}", mean.psnr_db),
            format!("{:.4}", mean.rmse_m),
            format!("{:.4}", mean.gradient_rmse_m_per_px),
            format!("{:.4}", mean.laplacian_rmse_m_per_px2),
        ]
    };
    let head = [
        &opened.config.name,
        "tiles",
        "PSNR dB",
        "RMSE m",
        "gradient",
        "Laplacian",
    ];
    let rows = [
        row("amortised", &fitted.amortised),
        row("fitted", &fitted.fitted),
    ];
    print(&format!(
        "{}gap {:+.2} dB after {} steps on {} numbers per tile, {:.1} s per tile\n",
        table(&head, &rows),
        fitted.gap_db,
        fitted.descent.steps,
        fitted.numbers,
        fitted.seconds_per_tile
    ))
}
