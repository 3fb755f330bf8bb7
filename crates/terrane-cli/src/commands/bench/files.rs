//! `terrane bench files`: whole files of rasters, beside those of other codecs.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use terrane_bench::FileOptions;
use terrane_codec::Profile;

use super::print_report;
use crate::Common;
use crate::commands::encode::profiles;
use crate::progress::Progress;

/// Measure whole files of rasters beside those of other codecs, every byte counted.
///
/// Every raster is written at the rates of --bpp, and compared with JPEG 2000 of the same bytes: in its heights, and in
/// slopes, flow, streams, contour lines and views. It is written within the bounds of --bound and without loss, beside
/// LERC and COGs. OUT gets report.html, report.md, and a CSV, JSON or SVG file per table and figure, anew after each raster.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane bench files rasters/ --window 768 --out bench/\n  terrane bench files dem.tif --profile fast,best --bpp 1 --bound 0.1 --out bench/"
)]
pub(crate) struct Arguments {
    /// GeoTIFFs, and folders of them.
    #[arg(required = true, value_name = "RASTERS")]
    rasters: Vec<PathBuf>,
    /// Folder of the report.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Cut from each raster the first window of so many pixels a side that has no gap; rasters without one are left out.
    #[arg(long, value_name = "SIDE", value_parser = clap::value_parser!(u32).range(16..))]
    window: Option<u32>,
    /// Measure so many rasters at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Which of the context codec's models, one or several.
    #[arg(long, value_parser = profiles(), value_delimiter = ',', default_value = Profile::Standard.name())]
    profile: Vec<Profile>,
    /// Rates in bits per pixel.
    #[arg(long, value_name = "B", value_delimiter = ',', default_values_t = [0.25, 0.5, 0.82, 2.0])]
    bpp: Vec<f64>,
    /// Maximum errors in metres.
    #[arg(long, value_name = "M", value_delimiter = ',', default_values_t = [0.5, 0.1, 0.05, 0.01])]
    bound: Vec<f64>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let options = FileOptions {
        window: arguments.window.map(|side| side as usize),
        limit: arguments.limit.map(|count| count as usize),
        profiles: arguments.profile.clone(),
        rates: arguments.bpp.clone(),
        bounds_m: arguments.bound.clone(),
        resources: common.resources(),
    };
    let clock = Instant::now();
    let mut progress = Progress::new("bench files", common.progress);
    let report = terrane_bench::files(
        &arguments.rasters,
        &arguments.out,
        &options,
        &mut |raster, done, total| progress.at(done as u64, total as u64, raster),
    )?;
    drop(progress);
    print_report(&report, &arguments.out, clock, common)
}
