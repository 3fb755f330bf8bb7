//! `terrane diagnose`: what amortisation costs, and where.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, ensure};
use burn::tensor::Device;
use serde::Serialize;
use terrane_bench::diagnose::fit::{FitOptions, fit_tokens, upper_bound};
use terrane_bench::diagnose::linear::{LinearOptions, linear};
use terrane_bench::diagnose::siren::{self, SirenOptions};
use terrane_bench::diagnose::tokens::structure;
use terrane_bench::diagnose::{Descent, State, draw};
use terrane_networks::methods::Model;
use terrane_report::table::Table;
use terrane_report::{Report, Section};
use terrane_train::config::Config;
use terrane_train::data::Dataset;
use terrane_train::memory::NetworkMemory;
use terrane_train::output::refuse_inputs;
use terrane_train::training::ScheduleConfig;
use terrane_train::training::checkpoint::{MODEL, read_model};

use crate::Common;
use crate::commands::DeviceArguments;
use crate::output::{print, print_json};
use crate::progress::Progress;

/// Longer tables are written to files and JSON, but not printed.
const MAX_ROWS: usize = 24;

/// Diagnose what amortisation costs.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Siren(SirenArguments),
    Fit(FitArguments),
    UpperBound(UpperBoundArguments),
    Tokens(TokenArguments),
    Linear(LinearArguments),
}

/// Fit a network of sines to every tile from scratch.
///
/// As before amortisation: a whole network for a tile, minutes of steps on each. Adam on the mean square error of all
/// pixels, its rate falling along half a cosine to 0.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  terrane diagnose siren --data tiles/ --tiles 4 --device cuda")]
pub(crate) struct SirenArguments {
    #[command(flatten)]
    tiles: Tiles,
    /// Number of tiles, drawn by the seed.
    #[arg(long = "tiles", value_name = "N", default_value_t = 1)]
    count: usize,
    /// Steps of every tile.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    steps: usize,
    /// First learning rate.
    #[arg(long, default_value_t = 1e-4)]
    rate: f64,
    /// Width of the hidden layers.
    #[arg(long, value_name = "N", default_value_t = 256)]
    width: usize,
    /// Hidden layers.
    #[arg(long, value_name = "N", default_value_t = 3)]
    layers: usize,
    /// Frequency factor of the sines.
    #[arg(long, default_value_t = 30.0)]
    omega: f64,
    /// Steps between points of the curve.
    #[arg(long, value_name = "N", default_value_t = 250)]
    log_every: usize,
    #[command(flatten)]
    output: Output,
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
    /// Folder of a run, or a model.
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    #[command(flatten)]
    tiles: Tiles,
    /// Number of tiles, drawn by the seed; all by default.
    #[arg(long = "tiles", value_name = "N")]
    count: Option<usize>,
    /// Steps of every tile.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    steps: usize,
    /// Learning rate.
    #[arg(long, default_value_t = 0.1)]
    rate: f64,
    /// Tiles that are optimised at once, each for itself.
    #[arg(long, value_name = "N", default_value_t = 8)]
    batch: usize,
    /// Steps between points of the curve.
    #[arg(long, value_name = "N", default_value_t = 50)]
    log_every: usize,
    #[command(flatten)]
    output: Output,
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
    /// Folder of a run, or a model.
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    #[command(flatten)]
    tiles: Tiles,
    /// Number of tiles, drawn by the seed.
    #[arg(long = "tiles", value_name = "N", default_value_t = 32)]
    count: usize,
    /// Steps of every tile.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    steps: usize,
    /// Learning rate.
    #[arg(long, default_value_t = 1e-4)]
    rate: f64,
    /// Steps between points of the curve.
    #[arg(long, value_name = "N", default_value_t = 50)]
    log_every: usize,
    #[command(flatten)]
    output: Output,
}

/// Look at the structure of the tokens of patches.
///
/// Principal components, correlations with the mean heights of patches (partial ones with deviation and steepest slope
/// held fixed), and how many of a patch's nearest neighbours in heights are its nearest in tokens.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  terrane diagnose tokens runs/a --data tiles/ --split train --out tokens/"
)]
pub(crate) struct TokenArguments {
    /// Folder of a run, or a model.
    #[arg(value_name = "RUN|MODEL")]
    model: PathBuf,
    /// Folder of a dataset.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Split to work on.
    #[arg(long, default_value = "train")]
    split: String,
    /// Where the random numbers start.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of tiles, drawn by the seed; all by default.
    #[arg(long = "tiles", value_name = "N")]
    count: Option<usize>,
    #[command(flatten)]
    output: Output,
}

/// Project patches on a fixed basis, without any network.
///
/// What as many numbers per patch as a token has hold of a tile if they are its principal components, learnt from the
/// patches of training tiles, or the coefficients of its slowest cosines, which need no training. A network has to beat
/// both.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  terrane diagnose linear --data tiles/ --numbers 16,32,64")]
pub(crate) struct LinearArguments {
    /// Folder of a dataset.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Split to work on.
    #[arg(long, default_value = "test")]
    split: String,
    /// Split whose patches the principal components are of.
    #[arg(long, value_name = "SPLIT", default_value = "train")]
    taught_by: String,
    /// Where the random numbers start.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of tiles, drawn by the seed; all by default.
    #[arg(long = "tiles", value_name = "N")]
    count: Option<usize>,
    /// Side of a patch in pixels.
    #[arg(long, value_name = "N", default_value_t = 16)]
    patch: usize,
    /// Numbers per patch.
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_values_t = [16, 32, 64]
    )]
    numbers: Vec<usize>,
    /// Folder for a page with tables and figures.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Tiles of a dataset.
#[derive(clap::Args)]
struct Tiles {
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
}

/// Where it is computed and what is written.
#[derive(clap::Args)]
struct Output {
    /// Folder for a page with tables and figures.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArguments,
}

impl Output {
    /// The device; refuses a folder for the page that is not free for it.
    fn open(&self, data: &Path) -> Result<Device> {
        check_page(self.out.as_deref(), data)?;
        self.device.open()
    }
}

/// Refuses a folder for the page that is not free for it.
fn check_page(out: Option<&Path>, data: &Path) -> Result<()> {
    if let Some(folder) = out {
        refuse_inputs(folder, &[data])?;
        Report::check(folder)?;
    }
    Ok(())
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

impl Tiles {
    /// What was found on these tiles.
    fn found<T>(&self, model: Option<String>, result: T) -> Found<T> {
        Found {
            model,
            split: self.split.clone(),
            seed: self.seed,
            result,
        }
    }

    /// The dataset and the numbers of the tiles.
    fn open(&self, count: Option<usize>) -> Result<(Dataset, Vec<usize>)> {
        let (dataset, drawn) = open(&self.data, &self.split, count, self.seed)?;
        let tiles = self.part.map_or(drawn.clone(), |part| part.of(&drawn));
        ensure!(
            !tiles.is_empty(),
            "no tile is left of the {} that were drawn: ask for more tiles or fewer parts",
            drawn.len()
        );
        Ok((dataset, tiles))
    }
}

/// A dataset and so many tiles of a split, or all.
fn open(
    data: &Path,
    split: &str,
    count: Option<usize>,
    seed: u64,
) -> Result<(Dataset, Vec<usize>)> {
    let dataset = Dataset::open(data)?;
    let tiles = tiles_of(&dataset, split)?;
    ensure!(count != Some(0), "--tiles 0: ask for at least one tile");
    let tiles = draw(&tiles, count, seed);
    Ok((dataset, tiles))
}

/// The tiles of a split, which has some.
fn tiles_of(dataset: &Dataset, split: &str) -> Result<Vec<usize>> {
    let tiles = dataset.split(split);
    ensure!(
        !tiles.is_empty(),
        "{}: there is no split \"{split}\"; there are {}",
        dataset.folder().display(),
        dataset.splits().join(", ")
    );
    Ok(tiles)
}

fn open_model(path: &Path, device: &Device, common: &Common) -> Result<(Model, Config)> {
    let file = if path.is_dir() {
        path.join(MODEL)
    } else {
        path.to_owned()
    };
    Ok(read_model(&file, device, common.network_memory())?)
}

/// What was found, with what it was found on.
#[derive(Serialize)]
struct Found<T> {
    /// The model, where there is one.
    model: Option<String>,
    split: String,
    seed: u64,
    #[serde(flatten)]
    result: T,
}

impl<T: Serialize> Found<T> {
    /// Writes the page that was asked for, and prints the tables or the JSON.
    fn finish(&self, sections: Vec<Section>, out: Option<&Path>, common: &Common) -> Result<()> {
        let tables = sections.iter().flat_map(|section| &section.tables);
        let short = tables.filter(|table| table.rows.len() <= MAX_ROWS);
        let tables: Vec<String> = short.map(Table::markdown).collect();
        if let Some(folder) = out {
            let model = self.model.as_deref().unwrap_or("none");
            let Self { split, seed, .. } = self;
            let report = Report {
                title: "What amortisation costs".into(),
                introduction: format!("Model: `{model}`; split: `{split}`; seed: {seed}."),
                sections,
            };
            report.write(folder)?;
        }
        if common.json {
            return print_json(self);
        }
        print(&tables.join("\n"))
    }
}

/// Runs the command.
pub(crate) fn run(command: &Command, common: &Common) -> Result<()> {
    match command {
        Command::Siren(arguments) => run_siren(arguments, common),
        Command::Fit(arguments) => run_fit(arguments, common),
        Command::UpperBound(arguments) => run_upper_bound(arguments, common),
        Command::Tokens(arguments) => run_tokens(arguments, common),
        Command::Linear(arguments) => run_linear(arguments, common),
    }
}

fn run_siren(arguments: &SirenArguments, common: &Common) -> Result<()> {
    let device = arguments.output.open(&arguments.tiles.data)?;
    let (dataset, tiles) = arguments.tiles.open(Some(arguments.count))?;
    let options = SirenOptions {
        width: arguments.width,
        layers: arguments.layers,
        omega: arguments.omega,
        seed: arguments.tiles.seed,
        descent: Descent {
            steps: arguments.steps,
            schedule: ScheduleConfig::Cosine {
                peak: arguments.rate,
                floor: 0.0,
                warmup_steps: 0,
            },
            log_every: arguments.log_every,
        },
    };
    options.check()?;
    common.network_memory().require(
        "fitting this network",
        options.training_bytes(dataset.side()),
    )?;
    let mut see = shown("fitting networks", common);
    let result = siren::fit(&dataset, &tiles, &options, &device, &mut see)?;
    drop(see);
    let sections = vec![result.section()];
    let found = arguments.tiles.found(None, result);
    found.finish(sections, arguments.output.out.as_deref(), common)
}

fn run_fit(arguments: &FitArguments, common: &Common) -> Result<()> {
    let device = arguments.output.open(&arguments.tiles.data)?;
    let (dataset, tiles) = arguments.tiles.open(arguments.count)?;
    let (model, config) = open_model(&arguments.model, &device, common)?;
    let descent = Descent::constant(arguments.steps, arguments.rate, arguments.log_every);
    descent.check()?;
    let options = FitOptions {
        descent,
        batch: arguments.batch,
    };
    let mut see = shown("fitting tokens", common);
    let result = fit_tokens(
        &model, &config, &dataset, &tiles, options, &device, &mut see,
    )?;
    drop(see);
    let sections = vec![result.section()];
    let found = arguments.tiles.found(Some(config.name), result);
    found.finish(sections, arguments.output.out.as_deref(), common)
}

fn run_upper_bound(arguments: &UpperBoundArguments, common: &Common) -> Result<()> {
    let device = arguments.output.open(&arguments.tiles.data)?;
    let (dataset, tiles) = arguments.tiles.open(Some(arguments.count))?;
    let (model, config) = open_model(&arguments.model, &device, common)?;
    let descent = Descent::constant(arguments.steps, arguments.rate, arguments.log_every);
    descent.check()?;
    let mut see = shown("fitting decoders", common);
    let result = upper_bound(
        &model, &config, &dataset, &tiles, descent, &device, &mut see,
    )?;
    drop(see);
    let sections = vec![result.section()];
    let found = arguments.tiles.found(Some(config.name), result);
    found.finish(sections, arguments.output.out.as_deref(), common)
}

fn run_tokens(arguments: &TokenArguments, common: &Common) -> Result<()> {
    let device = arguments.output.open(&arguments.data)?;
    let TokenArguments {
        data,
        split,
        seed,
        count,
        ..
    } = arguments;
    let (dataset, tiles) = open(data, split, *count, *seed)?;
    let (model, config) = open_model(&arguments.model, &device, common)?;
    let mut progress = Progress::new("encoding", common.progress);
    let mut see = |done: usize, all: usize| progress.at(done as u64, all as u64, "tiles");
    let result = structure(&model, &config, &dataset, &tiles, *seed, &device, &mut see)?;
    drop(progress);
    let sections = vec![result.section(), result.details()];
    let found = Found {
        model: Some(config.name),
        split: split.clone(),
        seed: *seed,
        result,
    };
    found.finish(sections, arguments.output.out.as_deref(), common)
}

fn run_linear(arguments: &LinearArguments, common: &Common) -> Result<()> {
    let LinearArguments {
        data,
        split,
        taught_by,
        seed,
        count,
        patch,
        numbers,
        out,
    } = arguments;
    check_page(out.as_deref(), data)?;
    let (dataset, tiles) = open(data, split, *count, *seed)?;
    let taught = tiles_of(&dataset, taught_by)?;
    let options = LinearOptions {
        patch: *patch,
        numbers: numbers.clone(),
    };
    let mut progress = Progress::new("projecting", common.progress);
    let mut see = |done: usize, all: usize| progress.at(done as u64, all as u64, "tiles");
    let result = linear(&dataset, &taught, &tiles, &options, &mut see)?;
    drop(progress);
    let sections = vec![result.section()];
    let found = Found {
        model: None,
        split: split.clone(),
        seed: *seed,
        result,
    };
    found.finish(sections, out.as_deref(), common)
}

/// Shows how far a descent is.
fn shown(task: &'static str, common: &Common) -> impl FnMut(State) + use<> {
    let mut progress = Progress::new(task, common.progress);
    move |state: State| {
        let what = format!("{:.2} dB", state.psnr_db);
        progress.at(state.step as u64, state.steps as u64, &what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_tiles_together() {
        let tiles: Vec<usize> = (10..45).collect();
        let parts = (1..=4).map(|index| Part { index, count: 4 });
        assert_eq!(
            parts.flat_map(|part| part.of(&tiles)).collect::<Vec<_>>(),
            tiles
        );
        assert_eq!("2/4".parse(), Ok(Part { index: 2, count: 4 }));
        for text in ["0/4", "5/4", "2", "a/b", "1/0"] {
            assert!(text.parse::<Part>().unwrap_err().contains("I/N"), "{text}");
        }
    }
}
