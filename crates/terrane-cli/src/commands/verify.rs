//! `terrane verify`: whether a file is whole, and how far it is from its source.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use terrane::Terrain;
use terrane::format::{Error as FormatError, Promise, Window};
use terrane::parallel::in_parallel;

use crate::Common;
use crate::commands::{CheckFailed, FileArguments, jobs};
use crate::output::{print, print_json};
use crate::placement::{geo_keys, georeference};
use crate::progress::Progress;

/// Check every checksum and every tile of a file; with --against also every height, the place and the promise.
///
/// Gradients and Laplacians are differences of neighbouring pixels, in metres per pixel and per pixel². bpp counts all
/// bytes of the file over the pixels with data. Ends with 1 where a check does not hold.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  terrane verify dem.trn --against dem.tif")]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
    /// The raster the file was made from, or several that were one mosaic.
    #[arg(long, value_name = "IN.tif", num_args = 1..)]
    against: Vec<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let terrain = arguments.file.terrain().map_err(|error| {
        // A file that is not whole is a check that did not hold; one that is not there is an error.
        match error.downcast_ref::<terrane::Error>() {
            Some(terrane::Error::Format(cause))
                if !matches!(cause, FormatError::Io(_) | FormatError::Remote { .. }) =>
            {
                CheckFailed(format!("{error:#}")).into()
            }
            _ => error,
        }
    })?;
    let name = || arguments.file.path().display().to_string();
    let broken =
        |error: terrane::Error| anyhow::Error::new(CheckFailed(format!("{}: {error}", name())));
    terrain
        .reader()
        .check_layout()
        .map_err(|error| broken(error.into()))?;
    let tiles = check_tiles(&terrain, common).map_err(broken)?;
    let mut report = Map::new();
    report.insert("file".into(), json!(arguments.file.path()));
    report.insert("bytes".into(), json!(terrain.reader().length()));
    report.insert("tiles".into(), json!(tiles));
    let mut failed = Vec::new();
    if !arguments.against.is_empty() {
        compare(&terrain, arguments, common, &mut report, &mut failed)?;
    }
    report.insert("holds".into(), json!(failed.is_empty()));
    if common.json {
        print_json(&report)?;
    } else {
        let text: String = report
            .iter()
            .map(|(key, value)| format!("{key:<16}{}\n", plain(value)))
            .collect();
        print(&text)?;
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(CheckFailed(format!("{}: {}", name(), failed.join("; "))).into())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            format!("{:.6}", number.as_f64().unwrap_or_default())
        }
        other => other.to_string(),
    }
}

/// Decodes every tile of every level, and reads the model where it is in the file.
fn check_tiles(terrain: &Terrain, common: &Common) -> Result<u64, terrane::Error> {
    terrain.reader().embedded_model()?;
    let pyramid = &terrain.header().pyramid;
    let mut progress = Progress::new("verify", common.progress);
    let with_data = AtomicU64::new(0);
    let mut start = 0;
    // Some tiles at a time, so that progress shows.
    while start < pyramid.tiles() {
        let end = (start + 256).min(pyramid.tiles());
        let work = |number: usize| {
            let place = pyramid.tile(start + number as u64);
            let tile = place.map(|place| terrain.decode(place)).transpose()?;
            if tile.flatten().is_some() {
                with_data.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        in_parallel(0..(end - start) as usize, jobs(common), &work)?;
        start = end;
        progress.at(end, pyramid.tiles(), "tiles");
    }
    Ok(with_data.into_inner())
}

#[derive(Default)]
struct Sums {
    pixels: u64,
    squares: f64,
    max_error_m: f64,
    lowest: f64,
    highest: f64,
    nodata_differs: u64,
    gradient: (f64, u64),
    laplacian: (f64, u64),
}

fn compare(
    terrain: &Terrain,
    arguments: &Arguments,
    common: &Common,
    report: &mut Map<String, Value>,
    failed: &mut Vec<String>,
) -> Result<()> {
    let header = terrain.header();
    let raster = terrane_geo::open(&arguments.against)?;
    let info = raster.info();
    let (width, height) = header.pyramid.size(0).unwrap_or_default();
    let (width, height) = (width as usize, height as usize);
    ensure!(
        (width, height) == (info.width(), info.height()),
        "the file has {width} x {height} pixels and the raster {} x {}: it is not its source",
        info.width(),
        info.height()
    );
    let place = georeference(header);
    let georeference_equal =
        place == info.georeference && header.geo_keys == geo_keys(&info.georeference.crs);
    let mut sums = Sums {
        lowest: f64::INFINITY,
        highest: f64::NEG_INFINITY,
        ..Sums::default()
    };
    let mut progress = Progress::new("compare", common.progress);
    let side = usize::from(header.pyramid.side());
    for row in (0..height).step_by(side) {
        let end = (row + side).min(height);
        let (first, last) = (row.saturating_sub(1), (end + 1).min(height));
        let window = Window {
            column: 0,
            row: first,
            width,
            height: last - first,
        };
        let source = raster.read(0, window)?.heights;
        let decoded = terrain
            .read_with(0, window, jobs(common))
            .with_context(|| format!("{} cannot be decoded", arguments.file.path().display()))?;
        for row in row..end {
            sums.row(&source, &decoded, width, row - first, window.height);
        }
        progress.at(end as u64, height as u64, "rows");
    }
    drop(progress);
    let mean = |(sum, count): (f64, u64)| (sum / count.max(1) as f64).sqrt();
    let rmse_m = mean((sums.squares, sums.pixels));
    let range = sums.highest - sums.lowest;
    report.insert("rmse_m".into(), json!(rmse_m));
    report.insert("max_error_m".into(), json!(sums.max_error_m));
    report.insert(
        "psnr_db".into(),
        json!((rmse_m > 0.0 && range > 0.0).then(|| 20.0 * (range / rmse_m).log10())),
    );
    report.insert("gradient_rmse".into(), json!(mean(sums.gradient)));
    report.insert("laplacian_rmse".into(), json!(mean(sums.laplacian)));
    report.insert(
        "bpp".into(),
        json!(terrain.reader().length() as f64 * 8.0 / sums.pixels.max(1) as f64),
    );
    report.insert("nodata_equal".into(), json!(sums.nodata_differs == 0));
    report.insert("georeference_equal".into(), json!(georeference_equal));
    if sums.nodata_differs > 0 {
        failed.push(format!(
            "{} pixels have data on one side alone",
            sums.nodata_differs
        ));
    }
    if !georeference_equal {
        failed.push("it lies elsewhere than the raster".into());
    }
    match header.promise {
        Promise::MaxError(bound) => {
            report.insert("bound_m".into(), json!(bound));
            if sums.max_error_m > bound {
                failed.push(format!(
                    "the greatest error is {} m, above the promised {bound} m",
                    sums.max_error_m
                ));
            }
        }
        Promise::Lossless { .. } if sums.max_error_m > 0.0 => failed.push(format!(
            "it promises every height and is off by up to {} m",
            sums.max_error_m
        )),
        _ => {}
    }
    Ok(())
}

impl Sums {
    /// Counts one row of a strip of `rows` rows.
    fn row(&mut self, source: &[f64], decoded: &[f64], width: usize, row: usize, rows: usize) {
        for column in 0..width {
            let index = row * width + column;
            let (height, back) = (source[index], decoded[index]);
            if height.is_nan() != back.is_nan() {
                self.nodata_differs += 1;
                continue;
            }
            if height.is_nan() {
                continue;
            }
            let error = (height - back).abs();
            self.pixels += 1;
            self.squares += error * error;
            self.max_error_m = self.max_error_m.max(error);
            self.lowest = self.lowest.min(height);
            self.highest = self.highest.max(height);
            if row == 0 || row + 1 == rows || column == 0 || column + 1 == width {
                continue;
            }
            let difference = |index: usize| source[index] - decoded[index];
            let [north, south, west, east] =
                [index - width, index + width, index - 1, index + 1].map(difference);
            let (x, y) = ((east - west) / 2.0, (south - north) / 2.0);
            let laplacian = north + south + west + east - 4.0 * (height - back);
            if !laplacian.is_nan() {
                self.gradient.0 += x * x + y * y;
                self.gradient.1 += 1;
                self.laplacian.0 += laplacian * laplacian;
                self.laplacian.1 += 1;
            }
        }
    }
}
