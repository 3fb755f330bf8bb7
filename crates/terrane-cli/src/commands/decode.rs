//! `terrane decode`: a terrane file back to a raster.

use std::path::PathBuf;

use anyhow::Result;
use terrane::{Damaged, Decoding};
use terrane_geo::Kind;
pub(crate) use terrane_geo::parse_bbox as parse_box;

use crate::Common;
use crate::commands::{CheckFailed, FileArguments, OutputOptions, jobs};
use crate::output::shown;
use crate::progress::Progress;
use crate::streams::Destination;

/// Turn a terrane file back into a COG (deflate, predictor 3).
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane decode dem.trn dem.tif\n  terrane decode dem.trn fine.tif --resolution 0.25 --bbox 2600000,1200000,2600500,1200500\n  terrane decode dem.trn small.tif --level 2"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
    /// COG to write, or - for standard output.
    out: PathBuf,
    /// Side of a square pixel in map units. Coarser pixels are means of what they cover, within the file's bound of the same
    /// means of the source as long as they are less than eight times as large as the file's; from there on they are means of
    /// an overview, without a bound. Finer ones are points of the surface, which has its bound at the file's pixels alone.
    #[arg(long, value_name = "M", conflicts_with = "level")]
    resolution: Option<f64>,
    /// The part to decode, in map units.
    #[arg(long, value_name = "X0,Y0,X1,Y1", value_parser = parse_box, allow_hyphen_values = true)]
    bbox: Option<[f64; 4]>,
    /// An overview instead of full resolution.
    #[arg(long, value_name = "N")]
    level: Option<u8>,
    /// Write what can be read of a damaged file: its damaged tiles have no data, and the command ends with 1.
    #[arg(long, conflicts_with = "resolution")]
    skip_damaged: bool,
    #[command(flatten)]
    output: OutputOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let destination = Destination::new(&arguments.out, "tif")?;
    let output = destination
        .output(&arguments.output, Kind::Raster)
        .made_of(arguments.file.paths());
    output.check()?;
    let terrain = arguments.file.terrain(common)?;
    let decoding = Decoding {
        bbox: arguments.bbox,
        resolution: arguments.resolution,
        level: arguments.level.unwrap_or(0),
        damaged: if arguments.skip_damaged {
            Damaged::Skip
        } else {
            Damaged::Refuse
        },
    };
    let mut progress = Progress::new("decode", common.progress);
    let decoded = decoding.write(&terrain, &output, jobs(common), &mut |done, of| {
        progress.at(done, of, "rows");
        Ok(())
    })?;
    drop(progress);
    let (width, height) = (decoded.width, decoded.height);
    let (sample, nodata) = (decoded.storage.sample.name(), decoded.storage.nodata);
    let report = serde_json::json!({
        "width": width, "height": height, "sample_type": sample, "nodata": nodata,
        "bound_m": decoded.bound_m, "damaged_tiles": decoded.damaged_tiles,
    });
    let number = |value: Option<f64>| value.map_or("none".to_owned(), |value| value.to_string());
    let source = &terrain.header().samples;
    // A reader of the raster should not have to find out by himself.
    let change =
        if source.kind == sample && source.nodata.map(f64::to_bits) == nodata.map(f64::to_bits) {
            String::new()
        } else {
            format!(
                " (the source: {}, nodata {})",
                source.kind,
                number(source.nodata)
            )
        };
    let bound = match decoded.bound_m {
        Some(0.0) => "exact".to_owned(),
        Some(bound) => format!("no error above {bound} m"),
        None => "without a bound".to_owned(),
    };
    destination.report(common, report, |name| {
        format!(
            "{name}: {width} x {height}, {sample}, nodata {}{change}, {bound}\n",
            number(nodata)
        )
    })?;
    match decoded.damaged_tiles {
        0 => Ok(()),
        tiles => Err(CheckFailed(format!(
            "{}: damaged tiles without data in {}: {tiles}; terrane verify lists them",
            shown(arguments.file.path()),
            destination.name()
        ))
        .into()),
    }
}
