//! `terrane query`: heights and derivatives at points.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use terrane::{Sample, Surface, Terrain};

use crate::Common;
use crate::commands::{FileArguments, ground, map_unit_m};
use crate::output::{print, print_json, table};
use crate::placement::georeference;
use crate::projection::{Projection, parse_epsg};

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
    /// Points in a CSV file, the first two columns of each line.
    #[arg(long, value_name = "FILE.csv")]
    points: Option<PathBuf>,
    /// The system of the points, such as EPSG:4326 for longitude,latitude; without it the file's own.
    #[arg(long, value_name = "EPSG:CODE", value_parser = parse_epsg)]
    crs: Option<u16>,
}

fn parse_point(text: &str) -> Result<(f64, f64), String> {
    let point = text
        .split_once(',')
        .and_then(|(x, y)| Some((x.trim().parse().ok()?, y.trim().parse().ok()?)));
    point.ok_or_else(|| "two numbers are needed, such as 2600123.4,1200456.7".into())
}

fn read_points(path: &PathBuf) -> Result<Vec<(f64, f64)>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    let mut points = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let mut parts = line.splitn(3, [',', ';', '\t']);
        let text = format!(
            "{},{}",
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default()
        );
        match parse_point(&text) {
            Ok(point) => points.push(point),
            // A first line may name the columns.
            Err(_) if number == 0 => {}
            Err(reason) => bail!("{}, line {}: {reason}", path.display(), number + 1),
        }
    }
    Ok(points)
}

fn sample(terrain: &Terrain, surface: &Surface, x: f64, y: f64) -> Result<Value> {
    let unit_m = map_unit_m(terrain, Some(y))?;
    match surface.at(x, y) {
        Ok(sample) => Ok(report(x, y, Some(&sample), unit_m)),
        Err(terrane::Error::NoHeight { .. }) => Ok(report(x, y, None, unit_m)),
        Err(error) => Err(error.into()),
    }
}

/// What is said of a point: all of a sample in map units, or that there is no height.
pub(crate) fn report(x: f64, y: f64, sample: Option<&Sample>, unit_m: [f64; 2]) -> Value {
    let Some(sample) = sample else {
        return json!({ "x": x, "y": y, "height_m": Value::Null });
    };
    let derivatives = ground(sample, unit_m);
    json!({
        "x": x, "y": y, "height_m": sample.height,
        "gradient_east": derivatives.gradient[0], "gradient_north": derivatives.gradient[1],
        "slope_deg": derivatives.slope_deg(), "aspect_deg": derivatives.aspect_deg(),
        "laplacian_per_m": derivatives.laplacian(),
        "profile_curvature_per_m": Some(derivatives.profile_curvature()).filter(|value| !value.is_nan()),
        "plan_curvature_per_m": derivatives.plan_curvature(),
        "hessian_per_m": derivatives.hessian,
    })
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let mut points = arguments.at.clone();
    if let Some(path) = &arguments.points {
        points.extend(read_points(path)?);
    }
    if points.is_empty() {
        bail!("no point was given: use --at X,Y or --points FILE.csv");
    }
    let terrain = arguments.file.terrain()?;
    let scale = map_unit_m(&terrain, None)?;
    let surface = terrain.surface()?;
    let projection = match arguments.crs {
        None => None,
        Some(code) => {
            let own = georeference(terrain.header()).crs.horizontal_epsg();
            Some(Projection::new(code, own)?)
        }
    };
    let samples = points
        .iter()
        .map(|&(x, y)| {
            let (x, y) = match &projection {
                None => (x, y),
                Some(projection) => projection.apply(x, y)?,
            };
            sample(&terrain, &surface, x, y)
        })
        .collect::<Result<Vec<_>>>()?;
    if common.json {
        return print_json(&samples);
    }
    let number = |sample: &Value, key: &str, digits: usize| {
        sample[key]
            .as_f64()
            .map_or("-".to_owned(), |value| format!("{value:.digits$}"))
    };
    // Degrees need more digits than metres.
    let digits = if scale == [scale[0]; 2] { 3 } else { 8 };
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
