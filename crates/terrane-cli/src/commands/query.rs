//! `terrane query`: heights and derivatives at points.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::Value;
use terrane::georeferencing::{affine, georeference};
use terrane::{PointReport, PointTable, Terrain};
use terrane_geo::geodesy::{WGS_84, is_geographic, parse_epsg};

use crate::Common;
use crate::commands::{FileArguments, jobs};
use crate::output::{complain, print, print_json, table as aligned};

/// Height, gradient, slope, aspect, Laplacian and curvatures at points of the continuous surface.
///
/// Gradients are metres per metre, east and north; slope is in degrees, aspect in degrees clockwise from north (where
/// the ground falls to); curvatures are in 1/m, profile and plan curvature positive where the ground is convex, the
/// Laplacian positive where it is hollow.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane query dem.trn --at 2600123.4,1200456.7\n  terrane query dem.trn --at 7.4386,46.9511 --crs EPSG:4326\n  terrane query dem.trn --points points.csv --csv > heights.csv"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
    /// A point in map coordinates; may be given again.
    #[arg(long, value_name = "X,Y", value_parser = parse_point, allow_hyphen_values = true)]
    at: Vec<(f64, f64)>,
    /// Points in a CSV file: the columns that its first line names x and y, lon and lat, or easting and northing, or the
    /// first two where it names none.
    #[arg(long, value_name = "FILE.csv", conflicts_with = "at")]
    points: Option<PathBuf>,
    /// Names of the columns of --points that hold x and y.
    #[arg(long, value_name = "X,Y", value_parser = parse_columns, requires = "points")]
    columns: Option<(String, String)>,
    /// The system of the points, such as EPSG:4326 for longitude,latitude; without it the file's own.
    #[arg(long, value_name = "EPSG:CODE", value_parser = parse_epsg)]
    crs: Option<u16>,
    /// Print CSV: the rows of --points, each with a column for everything that is known at its point.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

/// What CSV says of a point, by its names in JSON.
const CSV_COLUMNS: [&str; 8] = [
    "height_m",
    "gradient_east",
    "gradient_north",
    "slope_deg",
    "aspect_deg",
    "laplacian_per_m",
    "profile_curvature_per_m",
    "plan_curvature_per_m",
];

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

/// The system of a table whose columns are called longitude and latitude, where the file's is another.
fn degrees(table: &PointTable, terrain: &Terrain) -> Option<u16> {
    let own = georeference(terrain.header()).crs.horizontal_epsg();
    let is_other = own.is_some_and(|own| is_geographic(own) == Some(false));
    (table.is_geographic && is_other).then(|| {
        eprintln!(
            "terrane: longitude and latitude are taken as EPSG:{WGS_84}; --crs gives another system"
        );
        WGS_84
    })
}

/// The rows of a table, each with what is known at its point.
fn csv(table: &PointTable, samples: &[Value]) -> Result<String> {
    let mut rows = table.rows.clone();
    if rows.is_empty() {
        rows.extend(
            table
                .points
                .iter()
                .map(|(x, y)| vec![x.to_string(), y.to_string()]),
        );
    }
    let width = rows.iter().map(Vec::len).max().unwrap_or_default();
    let mut names = table.names.clone().unwrap_or_default();
    let usual = ["x".to_owned(), "y".to_owned()].into_iter();
    let others = (3..).map(|number| format!("column{number}"));
    let missing = usual.chain(others).skip(names.len());
    names.extend(missing.take(width.saturating_sub(table.names.as_ref().map_or(0, Vec::len))));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(names.iter().map(String::as_str).chain(CSV_COLUMNS))?;
    for (mut row, sample) in rows.into_iter().zip(samples) {
        row.resize(names.len(), String::new());
        let values = CSV_COLUMNS.map(|key| sample[key].as_f64());
        row.extend(values.map(|value| value.map_or(String::new(), |value| value.to_string())));
        writer.write_record(&row)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let table = match &arguments.points {
        Some(path) => terrane::read_points(path, arguments.columns.as_ref())?,
        None => PointTable {
            points: arguments.at.clone(),
            ..PointTable::default()
        },
    };
    let points = &table.points;
    if points.is_empty() {
        bail!("no point was given: use --at X,Y or --points FILE.csv");
    }
    let terrain = arguments.file.terrain(common)?;
    let crs = arguments.crs.or_else(|| degrees(&table, &terrain));
    let reports = terrane::query(&terrain, points, crs, jobs(common))?;
    if reports.iter().all(|report| report.sample.is_none()) {
        let system = if crs.is_none() {
            "; --crs says which system they are in, if it is not the file's"
        } else {
            ""
        };
        complain(
            "terrane: warning",
            &format!("no height at any of {} points{system}", points.len()),
        );
    }
    let samples: Vec<Value> = reports.iter().map(PointReport::json).collect();
    if common.json {
        return print_json(&samples);
    }
    if arguments.csv {
        return print(&csv(&table, &samples)?);
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
    print(&aligned(
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
