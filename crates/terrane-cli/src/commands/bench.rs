//! `terrane bench`: the paper's tables and figures on any dataset, with production codecs beside them, and whole files.

mod files;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::builder::PossibleValuesParser;
use clap::{Subcommand, ValueEnum};
use terrane_bench::{
    Fitting, Options, PAPER_PAGE, Part, Passes, Settings, Size, methods, paper, run as measure,
    tally,
};
use terrane_networks::methods::Precision;
use terrane_report::Report;
use terrane_train::data::Dataset;
use terrane_train::output::refuse_inputs;

use crate::Common;
use crate::commands::DeviceArguments;
use crate::output::{print, print_json};
use crate::progress::Progress;

/// Measure the paper's tables and figures on a dataset, or whole files of rasters.
///
/// Networks that a table needs and that are not in OUT/runs are trained there first, all with the same schedule; a run
/// that is there already, under the name of its row, is used as it is. OUT gets report.html, report.md, and a CSV, JSON
/// or SVG file per table and figure, as soon as each is there. The table `paper` is a page of its own, paper.html,
/// paper.md and paper.csv: every number of the paper beside ours, the difference, by which run, and why.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  terrane bench all --data tiles/ --out bench/\n  terrane bench headline ptq --data tiles/ --out bench/ --size paper --steps 20800 --batch 32 --device cuda\n  terrane bench codecs --data tiles/ --out bench/ --python venv/bin/python\n  terrane bench paper --results results/ --out bench/\n  terrane bench files rasters/ --window 768 --out bench/"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Tables to make.
    #[arg(required = true, value_enum)]
    tables: Vec<TableName>,
    /// Folder of a dataset.
    #[arg(long, value_name = "DIR", required_unless_present = "results")]
    data: Option<PathBuf>,
    /// Folder of runs without weights, for the table `paper` alone: each a folder with config.toml, eval-SPLIT.json and
    /// what else was measured with it (see results/README.md).
    #[arg(long, value_name = "DIR", conflicts_with = "data")]
    results: Option<PathBuf>,
    /// Folder of the report and its runs.
    #[arg(long, value_name = "DIR", required = true)]
    out: Option<PathBuf>,
    /// Split to measure on.
    #[arg(long, default_value = "test")]
    split: String,
    /// Split with terrain of other kinds.
    #[arg(long, value_name = "SPLIT", default_value = "other")]
    other_split: String,
    /// Methods that tables of methods have rows of, but for flops and the paper's; all where none is given.
    #[arg(long = "method", value_name = "METHOD", value_parser = PossibleValuesParser::new(methods()))]
    methods: Vec<String>,
    /// Size of networks that are trained here.
    #[arg(long, value_enum, default_value_t = SizeName::Small)]
    size: SizeName,
    /// Steps of a training.
    #[arg(long, default_value_t = 100)]
    steps: usize,
    /// Tiles of a step.
    #[arg(long, default_value_t = 2)]
    batch: usize,
    /// Large matrix products in 16 bits while training.
    #[arg(long)]
    bf16: bool,
    /// Passes that the table of times takes, after a tenth as many to warm up.
    #[arg(long, default_value_t = 100)]
    passes: usize,
    /// Steps of fitting the tokens of tiles.
    #[arg(long, default_value_t = 100)]
    fit_steps: usize,
    /// Tiles whose tokens are fitted, spread over the split; 0 for all.
    #[arg(long, default_value_t = 8)]
    fit_tiles: usize,
    /// Steps of fitting a tile's whole decoder.
    #[arg(long, default_value_t = 100)]
    bound_steps: usize,
    /// Tiles whose whole decoder is fitted.
    #[arg(long, default_value_t = 4)]
    bound_tiles: usize,
    /// A Python with imagecodecs and av, for the codecs that are not in this program (see crates/terrane-bench/src/codecs/peers.py).
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArguments,
}

#[derive(Subcommand)]
enum Command {
    Files(files::Arguments),
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TableName {
    /// The four methods.
    Headline,
    /// Operations and parameters.
    Flops,
    /// Quantised tokens.
    Ptq,
    /// One change at a time.
    Ablation,
    /// How much data it takes.
    DataScaling,
    /// Where patches meet.
    Boundary,
    /// Flat, hilly and rugged tiles.
    Regimes,
    /// Time for a tile.
    WallClock,
    /// Rate and distortion against production codecs.
    Codecs,
    /// What fitting single tiles would add, and what tokens hold.
    Amortisation,
    /// Terrain of other kinds.
    CrossSource,
    /// Every number of the paper beside ours.
    Paper,
    /// Everything.
    All,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SizeName {
    /// The -small presets.
    Small,
    /// The paper's sizes.
    Paper,
}

impl TableName {
    fn parts(self) -> Vec<Part> {
        vec![match self {
            Self::Headline => Part::Headline,
            Self::Flops => Part::Flops,
            Self::Ptq => Part::Ptq,
            Self::Ablation => Part::Ablation,
            Self::DataScaling => Part::DataScaling,
            Self::Boundary => Part::Boundary,
            Self::Regimes => Part::Regimes,
            Self::WallClock => Part::WallClock,
            Self::Codecs => Part::Codecs,
            Self::Amortisation => Part::Amortisation,
            Self::CrossSource => Part::CrossSource,
            Self::Paper => Part::Paper,
            Self::All => return Part::ALL.to_vec(),
        }]
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    if let Some(Command::Files(arguments)) = &arguments.command {
        return files::run(arguments, common);
    }
    // Both are required where there is no other command.
    let out = arguments.out.as_deref().context("give --out")?;
    if let Some(results) = &arguments.results {
        return run_results(arguments, results, out, common);
    }
    let data = arguments.data.as_deref().context("give --data")?;
    let dataset = Dataset::open(data)?;
    for split in [&arguments.split, &arguments.other_split] {
        let is_needed = *split == arguments.split
            || arguments
                .tables
                .iter()
                .any(|table| table.parts().contains(&Part::CrossSource));
        ensure!(
            !is_needed || !dataset.split(split).is_empty(),
            "{}: there is no split \"{split}\"; there are {}",
            data.display(),
            dataset.splits().join(", ")
        );
    }
    let device = arguments.device.open()?;
    let mut parts: Vec<Part> = arguments
        .tables
        .iter()
        .flat_map(|table| table.parts())
        .collect();
    parts.sort_by_key(|part| Part::ALL.iter().position(|other| other == part));
    parts.dedup();
    let options = Options {
        settings: Settings {
            methods: methods()
                .filter(|&name| {
                    let chosen = &arguments.methods;
                    chosen.is_empty() || chosen.iter().any(|method| method == name)
                })
                .collect(),
            size: match arguments.size {
                SizeName::Small => Size::Small,
                SizeName::Paper => Size::Paper,
            },
            steps: arguments.steps,
            batch: arguments.batch,
            precision: if arguments.bf16 {
                Precision::Bf16
            } else {
                Precision::Full
            },
            split: arguments.split.clone(),
            memory: common.network_memory(),
        },
        passes: Passes {
            warm_up: arguments.passes.div_ceil(10),
            timed: arguments.passes,
        },
        device_name: arguments.device.describe(),
        fitting: Fitting {
            token_steps: arguments.fit_steps,
            token_tiles: arguments.fit_tiles,
            bound_steps: arguments.bound_steps,
            bound_tiles: arguments.bound_tiles,
        },
        other_split: arguments.other_split.clone(),
        python: arguments.python.clone(),
    };
    let clock = Instant::now();
    let mut progress = Progress::new("bench", common.progress);
    let report = measure(
        &parts,
        &dataset,
        out,
        &options,
        &device,
        &mut |what, done, total| progress.at(done as u64, total as u64, what),
    )?;
    drop(progress);
    print_report(&report, out, clock, common)
}

/// Compares runs that were measured elsewhere with the paper.
fn run_results(arguments: &Arguments, results: &Path, out: &Path, common: &Common) -> Result<()> {
    ensure!(
        arguments.tables == [TableName::Paper],
        "--results is for the table `paper` alone; the others need --data"
    );
    refuse_inputs(out, &[results])?;
    let page = paper(results, &arguments.split, out)?;
    let path = out.join(PAPER_PAGE).with_extension("html");
    let [numbers, measured, agree] = tally(&page.sections);
    if common.json {
        let rows = page.numbers(PAPER_PAGE).map(|table| table.json());
        return print_json(&serde_json::json!({
            "page": path,
            "numbers": numbers,
            "measured": measured,
            "agree": agree,
            "rows": rows,
        }));
    }
    print(&format!(
        "{}: {numbers} numbers of the paper, {measured} with one of ours, {agree} agree\n",
        path.display()
    ))
}

/// Prints a report that lies in a folder.
fn print_report(report: &Report, folder: &Path, clock: Instant, common: &Common) -> Result<()> {
    let page = folder.join("report.html");
    if common.json {
        let tables: serde_json::Map<String, serde_json::Value> = report
            .sections
            .iter()
            .flat_map(|section| &section.tables)
            .map(|table| (table.name.clone(), table.json()))
            .collect();
        return print_json(&serde_json::json!({
            "report": page,
            "elapsed_s": clock.elapsed().as_secs_f64(),
            "tables": tables,
        }));
    }
    print(&format!(
        "{}\n{}: {:.0} s\n",
        report.markdown(),
        page.display(),
        clock.elapsed().as_secs_f64()
    ))
}
