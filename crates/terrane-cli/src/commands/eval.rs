//! `terrane eval`: the benchmark's measures of trained models.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde::Serialize;
use terrane_bench::diagnose::draw;
use terrane_train::data::Dataset;
use terrane_train::evaluate::{Evaluation, RasterSummary, evaluate};
use terrane_train::measure::{SeamMeasures, Summary, mean, mean_seams};
use terrane_train::training::checkpoint::{MODEL, read_model};

use crate::Common;
use crate::commands::DeviceArguments;
use crate::output::{print, print_json, table};

/// Measure trained models on a split of a dataset.
///
/// PSNR takes a tile's own range as its peak; gradients are in metres per pixel, Laplacians in metres per pixel²;
/// derivatives are analytic for methods of sines and finite differences for the others. Values are means over tiles. With --json also by
/// finite differences for all, beside those of the ground itself ("`summary_of_zero`"), and for every raster.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  terrane eval runs/a runs/b/model.safetensors --data tiles/ --split test"
)]
pub(crate) struct Arguments {
    /// Folders of runs, or models.
    #[arg(required = true, value_name = "RUN|MODEL")]
    models: Vec<PathBuf>,
    /// Folder of a dataset.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Split to measure on.
    #[arg(long, default_value = "test")]
    split: String,
    /// Number of tiles, the same of a split in every run; all by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    tiles: Option<u32>,
    #[command(flatten)]
    device: DeviceArguments,
}

#[derive(Serialize)]
struct Report {
    model: PathBuf,
    name: String,
    split: String,
    summary: Summary,
    /// The same with derivatives by differences.
    summary_by_differences: Summary,
    /// What derivatives of 0 would measure.
    summary_of_zero: Summary,
    rasters: Vec<RasterSummary>,
    seams: Option<SeamMeasures>,
    /// The same in a file, where patches pass into each other.
    blended_seams: Option<SeamMeasures>,
    evaluation: Evaluation,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let device = arguments.device.open()?;
    let dataset = Dataset::open(&arguments.data)?;
    let tiles = draw(
        &dataset.split(&arguments.split),
        arguments.tiles.map(|count| count as usize),
        0,
    );
    ensure!(
        !tiles.is_empty(),
        "{}: there is no split \"{}\"; there are {}",
        arguments.data.display(),
        arguments.split,
        dataset.splits().join(", ")
    );
    let mut reports = Vec::new();
    for path in &arguments.models {
        let path = if path.is_dir() {
            path.join(MODEL)
        } else {
            path.clone()
        };
        let (model, config) = read_model(&path, &device, common.network_memory())?;
        let evaluation = evaluate(&model, &config, &dataset, &tiles, &device)?;
        let seams_of = |seams: &[SeamMeasures]| match seams {
            [] => Ok(None),
            _ => mean_seams(seams).map(Some),
        };
        let seams = seams_of(&evaluation.seams)?;
        let blended_seams = seams_of(&evaluation.blended_seams)?;
        reports.push(Report {
            model: path,
            name: config.name,
            split: arguments.split.clone(),
            summary: evaluation.summary()?,
            summary_by_differences: mean(&evaluation.by_differences)?,
            summary_of_zero: mean(&evaluation.zero)?,
            rasters: evaluation.by_raster(&dataset)?,
            seams,
            blended_seams,
            evaluation,
        });
    }
    if common.json {
        return print_json(&reports);
    }
    let rows: Vec<Vec<String>> = reports
        .iter()
        .map(|report| {
            let mean = &report.summary.mean;
            vec![
                report.name.clone(),
                report.summary.tiles.to_string(),
                format!("{:.2}", mean.psnr_db),
                format!("{:.4}", mean.rmse_m),
                format!("{:.3}", mean.max_error_m),
                format!("{:.4}", mean.gradient_rmse_m_per_px),
                format!("{:.4}", mean.laplacian_rmse_m_per_px2),
                report
                    .seams
                    .as_ref()
                    .map_or_else(|| "–".into(), |seams| format!("{:+.2}", seams.gap_db())),
            ]
        })
        .collect();
    print(&table(
        &[
            "model",
            "tiles",
            "PSNR dB",
            "RMSE m",
            "max m",
            "gradient",
            "Laplacian",
            "seam dB",
        ],
        &rows,
    ))
}
