//! `terrane shard`: an encoding in independent pieces, for Ray, Dask, SLURM or Kubernetes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use terrane::{Checks, Plan, Split};
use terrane_geo::Kind;

use crate::Common;
use crate::commands::OutputOptions;
use crate::commands::encode::{CodingArguments, warn_of};
use crate::commands::raster::{RasterArguments, tell};
use crate::output::{bytes, print, print_json, shown};
use crate::progress::Progress;
use crate::streams::Destination;

/// Tiles across a shard where nobody says otherwise.
const USUAL_TILES: usize = 16;

/// Encode in independent, retryable pieces: the merged file is the one that `terrane encode` writes, byte for byte.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Plan(PlanArguments),
    Encode(EncodeArguments),
    Merge(MergeArguments),
}

/// Divide the encoding of a raster (or of several, as a mosaic) into shards.
///
/// Several rasters are one mosaic on the grid of the first; where they overlap, the last one with data counts.
///
/// The plan is complete: rasters, grid, method, model, rate and the rectangle of tiles of each shard. The same rasters and
/// options give the same plan.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane shard plan country/*.tif country.json --max-error 0.1\n  terrane shard plan dem.tif plan.json --shards 7 --lossless"
)]
pub(crate) struct PlanArguments {
    /// Rasters, and last the plan to write.
    #[arg(num_args = 2.., required = true, value_names = ["IN", "PLAN"])]
    files: Vec<PathBuf>,
    #[command(flatten)]
    raster: RasterArguments,
    #[command(flatten)]
    coding: CodingArguments,
    /// Tiles across a shard, a power of two; 16 without it.
    #[arg(long, value_name = "N", group = "split")]
    shard_tiles: Option<usize>,
    /// So many shards of nearly the same size.
    #[arg(long, value_name = "N", group = "split")]
    shards: Option<usize>,
    /// Know rasters again by the hash of their bytes instead of their time: for rasters that are copied to the workers.
    #[arg(long)]
    hash: bool,
    #[command(flatten)]
    output: OutputOptions,
}

/// A plan, and where its shards and its model are.
#[derive(clap::Args)]
struct PlanFile {
    /// The plan.
    plan: PathBuf,
    /// The folder of the shards; without it the plan's name with the ending .shards.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The plan's model, where it is neither in the program nor where the plan was made.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
}

impl PlanFile {
    fn folder(&self) -> PathBuf {
        self.folder
            .clone()
            .unwrap_or_else(|| self.plan.with_extension("shards"))
    }

    fn model(&self) -> Option<&Path> {
        self.model.as_deref()
    }
}

/// Encode one shard of a plan.
///
/// A shard that is there and whole is left as it is, so the same command may run again, or twice at a time; one that was
/// killed leaves nothing that counts.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane shard encode country.json --shard 12\n  terrane shard encode country.json --shard $SLURM_ARRAY_TASK_ID"
)]
pub(crate) struct EncodeArguments {
    #[command(flatten)]
    file: PlanFile,
    /// The number of the shard, from 0; may be given again.
    #[arg(long, value_name = "K", required = true)]
    shard: Vec<u32>,
}

/// Check all shards of a plan and merge them.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  terrane shard merge country.json country.trn")]
pub(crate) struct MergeArguments {
    #[command(flatten)]
    file: PlanFile,
    /// The terrane file to write.
    out: PathBuf,
    #[command(flatten)]
    output: OutputOptions,
}

/// Runs the command.
pub(crate) fn run(command: &Command, common: &Common) -> Result<()> {
    match command {
        Command::Plan(arguments) => plan(arguments, common),
        Command::Encode(arguments) => encode(arguments, common),
        Command::Merge(arguments) => merge(arguments, common),
    }
}

fn plan(arguments: &PlanArguments, common: &Common) -> Result<()> {
    let (out, inputs) = arguments
        .files
        .split_last()
        .context("a raster and a plan to write are needed")?;
    let split = match (arguments.shards, arguments.shard_tiles) {
        (Some(count), _) => Split::Shards(count),
        (None, tiles) => Split::Tiles(tiles.unwrap_or(USUAL_TILES)),
    };
    let checks = if arguments.hash {
        Checks::Hash
    } else {
        Checks::Time
    };
    let settings = arguments.coding.settings();
    let output = arguments
        .output
        .output(out, Kind::Plan)
        .made_of(inputs)
        .made_of(&settings.model);
    output.check()?;
    let options = arguments.raster.options();
    let plan = Plan::new(inputs, &options, &settings, split, checks)?;
    tell(plan.notes());
    plan.write(&output)?;
    let (shards, sha256) = (plan.shards(), hex::encode(plan.sha256()));
    if common.json {
        return print_json(&json!({ "plan": shown(out), "shards": shards, "sha256": sha256 }));
    }
    print(&format!("{}: {shards} shards\n", out.display()))
}

fn encode(arguments: &EncodeArguments, common: &Common) -> Result<()> {
    let file = &arguments.file;
    let plan = Plan::read(&file.plan)?;
    let mut reports = Vec::new();
    for &number in &arguments.shard {
        let mut progress = Progress::new("encode", common.progress);
        let report = plan
            .encode(
                number,
                &file.folder(),
                file.model(),
                common.resources(),
                &mut |at| {
                    progress.at(at.tiles, at.of, "tiles");
                    Ok(())
                },
            )
            .with_context(|| format!("shard {number} cannot be encoded"))?;
        drop(progress);
        warn_of(report.not_heights);
        reports.push(json!({
            "shard": number, "file": shown(&report.path), "bytes": report.bytes, "was_there": report.was_there,
            "pixels": report.measured.pixels, "rmse_m": report.measured.rmse_m(),
            "max_error_m": report.measured.max_error_m,
        }));
        if !common.json {
            print(&format!(
                "{}: {} for {} pixels{}\n",
                report.path.display(),
                bytes(report.bytes),
                report.measured.pixels,
                if report.was_there {
                    ", was there already"
                } else {
                    ""
                }
            ))?;
        }
    }
    if common.json {
        return print_json(&reports);
    }
    Ok(())
}

fn merge(arguments: &MergeArguments, common: &Common) -> Result<()> {
    let file = &arguments.file;
    let plan = Plan::read(&file.plan)?;
    let destination = Destination::new(&arguments.out, "trn")?;
    let output = destination
        .output(&arguments.output, Kind::Terrain)
        .made_of([&file.plan]);
    let mut progress = Progress::new("merge", common.progress);
    let merged = plan.merge(
        &file.folder(),
        &output,
        file.model(),
        common.resources(),
        &mut |at| {
            progress.at(at.tiles, at.of, "tiles");
            Ok(())
        },
    )?;
    drop(progress);
    let measured = merged.measured;
    let report = json!({
        "bytes": merged.bytes, "shards": plan.shards(), "pixels": measured.pixels,
        "rmse_m": measured.rmse_m(), "max_error_m": measured.max_error_m,
    });
    destination.report(common, report, |name| {
        format!(
            "{name}: {} of {} shards; RMSE {:.4} m, maximum error {:.4} m\n",
            bytes(merged.bytes),
            plan.shards(),
            measured.rmse_m(),
            measured.max_error_m
        )
    })
}
