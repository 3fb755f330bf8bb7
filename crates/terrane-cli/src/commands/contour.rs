//! `terrane contour`: contour lines of the continuous surface.

use std::path::PathBuf;

use anyhow::Result;
use terrane::{Contouring, LineCrs, LineFormat};
use terrane_geo::Kind;
use terrane_geo::geodesy::parse_epsg;

use crate::Common;
use crate::commands::decode::parse_box;
use crate::commands::{FileArguments, OutputOptions, jobs};
use crate::progress::Progress;
use crate::streams::Destination;

/// Trace contour lines of the continuous surface, as GeoJSON or FlatGeobuf.
///
/// Every point of a line lies on the surface at its height within 1 mm, or what 0.1 mm across makes of it on the slope
/// there. Lines never cross or touch themselves or each other. They are closed, or end at the edge of the raster, of the box or of the data. Higher ground is on the
/// right of a line, as `gdal_contour` has it. Each has its height as `height_m`, and `index` says whether it is one of
/// those that maps draw bold.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane contour dem.trn lines.geojson --interval 5\n  terrane contour dem.trn lines.fgb --interval 1 --bbox 2600000,1200000,2600500,1200500\n  terrane contour dem.trn coarse.fgb --interval 20 --level 2 --min-length 200"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
    /// File to write: .geojson, .geojsonl (a feature on every line) or .fgb (FlatGeobuf with an index); - for
    /// GeoJSON on standard output.
    out: PathBuf,
    /// Metres from one line to the next.
    #[arg(long, value_name = "M")]
    interval: f64,
    /// A height in metres that lines are counted from.
    #[arg(
        long,
        value_name = "M",
        default_value_t = 0.0,
        allow_hyphen_values = true
    )]
    base: f64,
    /// The part to trace, in map units; lines end exactly at its edges.
    #[arg(long, value_name = "X0,Y0,X1,Y1", value_parser = parse_box, allow_hyphen_values = true)]
    bbox: Option<[f64; 4]>,
    /// An overview, whose surface is coarser, instead of full resolution.
    #[arg(long, value_name = "N", default_value_t = 0)]
    level: u8,
    /// Leave out lines that are shorter than so many metres on the ground.
    #[arg(long, value_name = "M", default_value_t = 0.0)]
    min_length: f64,
    /// Every N-th line is an index contour; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 5)]
    index: u32,
    /// Coordinates of the lines: own for the file's, or a code. GeoJSON is in EPSG:4326 by default, as RFC 7946 wants it,
    /// and FlatGeobuf in the file's own.
    #[arg(long, value_name = "EPSG:CODE", value_parser = parse_crs)]
    crs: Option<LineCrs>,
    #[command(flatten)]
    output: OutputOptions,
}

fn parse_crs(text: &str) -> Result<LineCrs, String> {
    if text.eq_ignore_ascii_case("own") {
        return Ok(LineCrs::Own);
    }
    parse_epsg(text)
        .map(LineCrs::Epsg)
        .map_err(|error| format!("{error}; or own"))
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let destination = Destination::new(&arguments.out, "geojson")?;
    let output = destination
        .output(&arguments.output, Kind::Lines)
        .made_of(arguments.file.paths());
    output.check()?;
    LineFormat::of(destination.path())?;
    let terrain = arguments.file.terrain(common)?;
    let contouring = Contouring {
        interval: arguments.interval,
        base: arguments.base,
        bbox: arguments.bbox,
        level: arguments.level,
        min_length: arguments.min_length,
        index: arguments.index,
    };
    let mut progress = Progress::new("contour", common.progress);
    let report = contouring.write(
        &terrain,
        &output,
        arguments.crs,
        jobs(common),
        &mut |done, total| {
            progress.at(done, total, "rows");
            Ok(())
        },
    )?;
    drop(progress);
    let value = serde_json::json!({
        "lines": report.lines, "closed": report.closed, "points": report.points,
    });
    destination.report(common, value, |name| {
        format!(
            "{name}: {} lines, {} of them closed, {} points\n",
            report.lines, report.closed, report.points
        )
    })
}
