//! `terrane dataset`: tiles with splits from rasters.

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use terrane_train::data::cutting::{self, Cut};
use terrane_train::data::download::{self, Options};
use terrane_train::data::swissalti3d::{self, Step};
use terrane_train::data::{Dataset, SplitStatistics};

use crate::Common;
use crate::commands::existing;
use crate::output::{print, print_json, table};
use crate::progress::Progress;

/// Build and inspect datasets of terrain tiles.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Cut the GeoTIFFs of a folder into tiles, split by region.
    ///
    /// Tiles lie on a plain grid from the first pixel of each raster; those with a missing height are left out. A
    /// catalog.csv in the folder (columns file, split, and optionally region and `resolution_m`) says which split a raster
    /// belongs to; without it the name of the region decides: 80 % train, 10 % val, 10 % test.
    #[command(
        after_help = "Examples:\n  terrane dataset build rasters/ tiles/\n  terrane dataset build rasters/ tiles/ --train-stride 128"
    )]
    Build {
        /// Folder of GeoTIFFs.
        folder: PathBuf,
        /// Folder to write the dataset to.
        out: PathBuf,
        /// Side of a tile in pixels.
        #[arg(long, value_name = "N", default_value_t = 256)]
        side: usize,
        /// Distance between tiles of the splits train and other in pixels; less than the side makes them overlap.
        #[arg(long, value_name = "N")]
        train_stride: Option<usize>,
        /// Replace an existing dataset; any other folder is left as it is.
        #[arg(long)]
        overwrite: bool,
    },
    /// Print counts, resolutions, ranges and deviations per split.
    #[command(after_help = "Example:\n  terrane dataset info tiles/ --json")]
    Info {
        /// Folder of a dataset.
        folder: PathBuf,
    },
    /// Download an official swissALTI3D link list and make the dataset of the paper from it.
    ///
    /// Each 1 km tile at 0.5 m is averaged to 1 m; the centred 3×3 tiles of 256×256 are kept; splits are 80/10/10 by
    /// source tile. Downloads resume where they stopped and are checked; run the command again after an interruption.
    #[command(
        after_help = "Example:\n  terrane dataset swissalti3d ch.swisstopo.swissalti3d-links.csv tiles/"
    )]
    Swissalti3d {
        /// List of links as swisstopo exports it, one address per line.
        list: PathBuf,
        /// Folder to write the dataset to.
        out: PathBuf,
        /// Folder that keeps the downloads; beside the dataset by default.
        #[arg(long, value_name = "DIR")]
        downloads: Option<PathBuf>,
        /// Replace an existing dataset; any other folder is left as it is.
        #[arg(long)]
        overwrite: bool,
    },
}

/// Runs the command.
pub(crate) fn run(command: &Command, common: &Common) -> Result<()> {
    match command {
        Command::Build {
            folder,
            out,
            side,
            train_stride,
            overwrite,
        } => {
            let cut = Cut {
                side: *side,
                train_stride: train_stride.unwrap_or(*side),
            };
            let mut progress = Progress::new("cutting", common.progress);
            let dataset = cutting::build(
                folder,
                out,
                cut,
                existing(*overwrite),
                &mut |done, total, name| {
                    progress.at(done as u64, total as u64, name);
                },
            )?;
            drop(progress);
            report(&dataset, common)
        }
        Command::Info { folder } => report(&Dataset::open(folder)?, common),
        Command::Swissalti3d {
            list,
            out,
            downloads,
            overwrite,
        } => {
            let downloads = downloads.clone().unwrap_or_else(|| {
                let mut name = out.clone().into_os_string();
                name.push("-downloads");
                name.into()
            });
            let mut progress = Progress::new("swissALTI3D", common.progress);
            let dataset = swissalti3d::build(
                list,
                &downloads,
                out,
                existing(*overwrite),
                &Options::default(),
                &mut |step| {
                    show(&mut progress, &step);
                },
            )?;
            drop(progress);
            report(&dataset, common)
        }
    }
}

/// Downloading and cutting each count as one part per file.
fn show(progress: &mut Progress, step: &Step) {
    match step {
        Step::Download(index, files, name, download::Progress::Bytes(bytes, _)) => {
            progress.at(
                *index as u64,
                2 * *files as u64,
                &format!("{name}, {} MB", bytes >> 20),
            );
        }
        Step::Download(index, files, name, download::Progress::Waiting(pause, error)) => {
            progress.at(
                *index as u64,
                2 * *files as u64,
                &format!("{name}: {error}; again in {} s", pause.as_secs()),
            );
        }
        Step::Cut(index, files, name) => {
            progress.at((*files + *index) as u64, 2 * *files as u64, name);
        }
    }
}

#[derive(Serialize)]
struct Report {
    side: usize,
    tiles: usize,
    splits: Vec<SplitStatistics>,
    /// Splits whose rasters gave no tile.
    empty_splits: Vec<String>,
}

fn report(dataset: &Dataset, common: &Common) -> Result<()> {
    let report = Report {
        side: dataset.side(),
        tiles: dataset.tiles().len(),
        splits: dataset.statistics(),
        empty_splits: dataset
            .empty_splits()
            .into_iter()
            .map(str::to_owned)
            .collect(),
    };
    if common.json {
        return print_json(&report);
    }
    let rows: Vec<Vec<String>> = report
        .splits
        .iter()
        .map(|split| {
            let resolutions: Vec<String> = split
                .resolutions_m
                .iter()
                .map(ToString::to_string)
                .collect();
            vec![
                split.split.clone(),
                split.sources.to_string(),
                split.tiles.to_string(),
                format!("{:.1}", split.min_m),
                format!("{:.1}", split.max_m),
                format!("{:.2}", split.mean_range_m),
                format!("{:.2}", split.mean_std_m),
                resolutions.join(" "),
            ]
        })
        .collect();
    let head = [
        "split",
        "rasters",
        "tiles",
        "min m",
        "max m",
        "mean range m",
        "mean σ m",
        "pixel m",
    ];
    let empty = match report.empty_splits.as_slice() {
        [] => String::new(),
        names => format!("\nNo tile in: {}\n", names.join(", ")),
    };
    print(&format!(
        "{} tiles of {}x{} pixels\n\n{}{empty}",
        report.tiles,
        report.side,
        report.side,
        table(&head, &rows)
    ))
}
