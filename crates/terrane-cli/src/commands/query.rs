//! `terrane query`: heights and derivatives at points.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::Value;
use terrane::PointReport;
use terrane::georeferencing::affine;
use terrane_geo::geodesy::parse_epsg;

use crate::Common;
use crate::commands::{FileArguments, jobs};
use crate::output::{print, print_json, table};

/// Height, gradient, slope, aspect, Laplacian and curvatures at points of the continuous surface.
///
/// Gradients are metres per metre, east and north; slope is in degrees, aspect in degrees clockwise from north (where
/// the ground falls to); curvatures are in 1/m, profile and plan curvature positive where the ground is convex, the
/// Laplacian positive where it is hollow.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane query dem.trn --at 2600123.4,1200456.7\n  terrane query dem.trn --at 7.4386,46.9511 --crs EPSG:4326\n  terrane query dem.trn --points points.csv --json"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
    /// A point in map coordinates; may be given again.
    #[arg(long, value_name = "X,Y", value_parser = parse_point, allow_hyphen_values = true)]
    at: Vec<(f64, f64)>,
    /// Points in a CSV file: the columns that its first line names x and y, lon and lat, or easting and northing, or the
    /// first two where it names none.
    #[arg(long, value_name = "FILE.csv")]
    points: Option<PathBuf>,
    /// Names of the columns of --points that hold x and y.
    #[arg(long, value_name = "X,Y", value_parser = parse_columns, requires = "points")]
    columns: Option<(String, String)>,
    /// The system of the points, such as EPSG:4326 for longitude,latitude; without it the file's own.
    #[arg(long, value_name = "EPSG:CODE", value_parser = parse_epsg)]
    crs: Option<u16>,
}

fn parse_columns(text: &str) -> Result<(String, String), String> {
    let names = text.split_once(',');
    names
        .map(|(x, y)| (x.to_owned(), y.to_owned()))
        .ok_or_else(|| "two names are needed, such as east,north".into())
}

fn parse_point(text: &str) -> Result<(f64, f64), String> {
    let point = text
        .split_once(',')
        .and_then(|(x, y)| Some((x.trim().parse().ok()?, y.trim().parse().ok()?)));
    point.ok_or_else(|| "two numbers are needed, such as 2600123.4,1200456.7".into())
}

/// Digits that tell a hundredth of a pixel, and a millimetre on a map in metres.
fn digits(pixel: f64) -> usize {
    (2.0 - pixel.log10()).ceil().clamp(3.0, 12.0) as usize
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let mut points = arguments.at.clone();
    if let Some(path) = &arguments.points {
        points.extend(terrane::read_points(path, arguments.columns.as_ref())?);
    }
    if points.is_empty() {
        bail!("no point was given: use --at X,Y or --points FILE.csv");
    }
    let terrain = arguments.file.terrain(common)?;
    let reports = terrane::query(&terrain, &points, arguments.crs, jobs(common))?;
    let samples: Vec<Value> = reports.iter().map(PointReport::json).collect();
    if common.json {
        return print_json(&samples);
    }
    let number = |sample: &Value, key: &str, digits: usize| {
        sample[key]
            .as_f64()
            .map_or("-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let digits = digits(affine(terrain.corner_affine()).pixel_size());
    let rows: Vec<Vec<String>> = samples
        .iter()
        .map(|sample| {
            vec![
                number(sample, "x", digits),
                number(sample, "y", digits),
                number(sample, "height_m", 3),
                number(sample, "slope_deg", 2),
                number(sample, "aspect_deg", 1),
                number(sample, "laplacian_per_m", 5),
                number(sample, "profile_curvature_per_m", 5),
                number(sample, "plan_curvature_per_m", 5),
            ]
        })
        .collect();
    print(&table(
        &[
            "x",
            "y",
            "height m",
            "slope °",
            "aspect °",
            "laplacian 1/m",
            "profile 1/m",
            "plan 1/m",
        ],
        &rows,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_have_digits_that_tell_pixels_apart() {
        assert_eq!(digits(1.0), 3);
        assert_eq!(digits(30.0), 3);
        assert_eq!(digits(0.001), 5);
        // A second of arc.
        assert_eq!(digits(1.0 / 3600.0), 6);
        assert_eq!(digits(1e-5), 7);
    }
}
