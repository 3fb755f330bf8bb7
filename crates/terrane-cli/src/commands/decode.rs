//! `terrane decode`: a neural terrain file back to a raster.

use std::path::PathBuf;

use anyhow::Result;
use terrane_convert::Decoding;
use terrane_geo::refuse_existing;

use crate::Common;
use crate::commands::{FileArguments, existing, jobs};
use crate::output::{print, print_json};
use crate::progress::Progress;

/// Turn a neural terrain file back into a COG (deflate, predictor 3).
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane decode dem.trn dem.tif\n  terrane decode dem.trn fine.tif --resolution 0.25 --bbox 2600000,1200000,2600500,1200500\n  terrane decode dem.trn small.tif --level 2"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
    /// COG to write.
    out: PathBuf,
    /// Side of a pixel in map units: finer samples the surface, coarser takes means.
    #[arg(long, value_name = "M", conflicts_with = "level")]
    resolution: Option<f64>,
    /// The part to decode, in map units.
    #[arg(long, value_name = "X0,Y0,X1,Y1", value_parser = parse_box, allow_hyphen_values = true)]
    bbox: Option<[f64; 4]>,
    /// An overview instead of full resolution.
    #[arg(long, value_name = "N")]
    level: Option<u8>,
    /// Replace an existing file.
    #[arg(long)]
    overwrite: bool,
}

fn parse_box(text: &str) -> Result<[f64; 4], String> {
    let numbers: Option<Vec<f64>> = text
        .split(',')
        .map(|part| part.trim().parse().ok())
        .collect();
    let numbers = numbers.and_then(|numbers| <[f64; 4]>::try_from(numbers).ok());
    match numbers {
        Some([x0, y0, x1, y1]) if x0 < x1 && y0 < y1 => Ok([x0, y0, x1, y1]),
        _ => Err(
            "four numbers are needed, the lower-left and the upper-right corner: X0,Y0,X1,Y1"
                .into(),
        ),
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let existing = existing(arguments.overwrite);
    refuse_existing(&arguments.out, existing)?;
    let terrain = arguments.file.terrain()?;
    let decoding = Decoding {
        bbox: arguments.bbox,
        resolution: arguments.resolution,
        level: arguments.level.unwrap_or(0),
    };
    let mut progress = Progress::new("decode", common.progress);
    let (width, height) = decoding.write(
        &terrain,
        &arguments.out,
        existing,
        jobs(common),
        &mut |done, of| {
            progress.at(done, of, "rows");
        },
    )?;
    drop(progress);
    if common.json {
        return print_json(
            &serde_json::json!({ "file": arguments.out, "width": width, "height": height }),
        );
    }
    print(&format!(
        "{}: {width} x {height}\n",
        arguments.out.display()
    ))
}
