//! `terrane demo`: a terrain goes in, comes out, and its error is measured.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use terrane_codec::Resources;
use terrane_codec::format::Method;
use terrane_geo::synthetic::Terrain;
use terrane_geo::{
    AtomicFolder, BandMetadata, Existing, FolderKind, GeoTiff, Output, RasterSource, SampleType,
    Storage, Window,
};
use terrane_report::Page;
use terrane_report::picture::{Light, Picture, Tint, error_map, relief};
use terrane_train::measure::{RasterMeasures, measure_masked};

use crate::Common;
use crate::commands::encode;
use crate::commands::generate::{TerrainArguments, lossless, write};
use crate::output::{bytes, print, print_json, table};
use crate::progress::Progress;

/// Make a terrain, store it in several ways, read it back and write a page with pictures and errors.
///
/// No input is needed. The folder holds the rasters as COGs, the terrane files and index.html; open that in a browser.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  terrane demo --out demo --seed 7")]
pub(crate) struct Arguments {
    /// Folder to write; that of an earlier demo is replaced, and any other left as it is.
    #[arg(long, value_name = "DIR", default_value = "demo")]
    out: PathBuf,
    #[command(flatten)]
    terrain: TerrainArguments,
}

/// What can be replaced by a demo: another.
const KIND: FolderKind = FolderKind::of_files(
    "a demo",
    &[
        RASTER,
        "centimetres.tif",
        "decimetres.tif",
        "fine.trn",
        "terrain.trn",
        "tokens.trn",
        PICTURE,
        PAGE,
    ],
);
const RASTER: &str = "terrain.tif";
const PICTURE: &str = "terrain.png";
const PAGE: &str = "index.html";
/// What a pixel takes beside the making of the terrain: what came back of every way to store it.
const PIXEL_BYTES: u64 = 100;

/// One way to store the terrain, and what came back.
#[derive(Serialize)]
struct RoundTrip {
    name: &'static str,
    file: PathBuf,
    bytes: u64,
    bpp: f64,
    #[serde(flatten)]
    measures: RasterMeasures,
    nodata_equal: bool,
    #[serde(skip)]
    heights: Vec<f32>,
}

#[derive(Serialize)]
struct Report<'a> {
    page: &'a Path,
    round_trips: &'a [RoundTrip],
}

/// Integers of a step in metres, counted from the middle of the terrain so that 16 bits suffice for 655 m of relief.
fn steps(terrain: &Terrain, step_m: f64) -> Storage {
    let valid = || terrain.heights.iter().filter(|height| !height.is_nan());
    let low = valid().copied().fold(f32::INFINITY, f32::min);
    let high = valid().copied().fold(f32::NEG_INFINITY, f32::max);
    let offset = f64::from(f32::midpoint(low, high)).round();
    let band = BandMetadata {
        scale: step_m,
        offset,
        unit: "m".into(),
        ..BandMetadata::default()
    };
    let sample = if f64::from(high - low) / step_m < 65_000.0 {
        SampleType::I16
    } else {
        SampleType::I32
    };
    Storage {
        sample,
        nodata: Some(-32_768.0),
        band,
    }
}

fn round_trip(
    name: &'static str,
    file: PathBuf,
    terrain: &Terrain,
    storage: Storage,
    arguments: &TerrainArguments,
) -> Result<RoundTrip> {
    let output = Output::named_here(&file, Existing::Replace);
    let size = write(&output, terrain, arguments.georeference(), storage)?;
    let raster = GeoTiff::open(&file)?;
    let grid = raster.read(0, Window::whole(terrain.width, terrain.height))?;
    measured(name, file, size, terrain, &grid.heights)
}

/// As [`round_trip`] through a terrane file made of a raster.
fn file_trip(
    name: &'static str,
    arguments: &encode::Arguments,
    terrain: &Terrain,
    resources: Resources,
) -> Result<RoundTrip> {
    let (out, encoded) = encode::write(arguments, resources, &mut |_| {})?;
    let whole = Window::whole(terrain.width, terrain.height);
    let heights = terrane::open(out.path())?.read_with(0, whole, resources.jobs)?;
    measured(
        name,
        out.path().to_owned(),
        encoded.bytes,
        terrain,
        &heights,
    )
}

fn measured(
    name: &'static str,
    file: PathBuf,
    size: u64,
    terrain: &Terrain,
    heights: &[f64],
) -> Result<RoundTrip> {
    let heights: Vec<f32> = heights.iter().map(|&height| height as f32).collect();
    let measures = measure_masked(&terrain.heights, &heights, terrain.width, terrain.height)?;
    let bpp = size as f64 * 8.0 / heights.len() as f64;
    Ok(RoundTrip {
        name,
        file,
        bytes: size,
        bpp,
        nodata_equal: measures.nodata_equal(),
        measures,
        heights,
    })
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let out = &arguments.out;
    arguments
        .terrain
        .check(PIXEL_BYTES, common.network_memory())?;
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent)
            .with_context(|| format!("{}: cannot be created", parent.display()))?;
    }
    // Half a demo would be of no use, and its files might be taken for somebody's own.
    let folder = AtomicFolder::create(out, Existing::Replace, KIND, &[])?;
    let mut progress = Progress::new("demo", common.progress);
    progress.at(0, STEPS, "making a terrain");
    let terrain = arguments.terrain.generate()?;

    let mut round_trips = Vec::new();
    for (name, file, storage) in [
        ("float32, lossless", RASTER, lossless()),
        ("centimetres", "centimetres.tif", steps(&terrain, 0.01)),
        ("decimetres", "decimetres.tif", steps(&terrain, 0.1)),
    ] {
        progress.at(1 + round_trips.len() as u64, STEPS, name);
        round_trips.push(round_trip(
            name,
            folder.path().join(file),
            &terrain,
            storage,
            &arguments.terrain,
        )?);
    }
    let source = folder.path().join(RASTER);
    for (name, file, method, max_error) in [
        // The bounds of the two above: half of their steps.
        (
            "terrane file, within 0.005 m",
            "fine.trn",
            Method::Context,
            Some(0.005),
        ),
        (
            "terrane file, within 0.05 m",
            "terrain.trn",
            Method::Context,
            Some(0.05),
        ),
        (
            "HUVR+SIREN tokens alone",
            "tokens.trn",
            Method::HuvrSiren,
            None,
        ),
    ] {
        progress.at(1 + round_trips.len() as u64, STEPS, name);
        let file = folder.path().join(file);
        let arguments = encode::Arguments::plain(&source, &file, method, max_error);
        round_trips.push(file_trip(name, &arguments, &terrain, common.resources())?);
    }
    let picture = draw(&terrain, arguments.terrain.pixel_m());
    write_file(&folder.path().join(PICTURE), &picture.png()?)?;
    let html = page_of(
        &terrain,
        &picture,
        &round_trips,
        arguments.terrain.pixel_m(),
    )?;
    write_file(&folder.path().join(PAGE), html.as_bytes())?;
    folder.commit()?;
    drop(progress);
    for trip in &mut round_trips {
        trip.file = out.join(trip.file.file_name().unwrap_or_default());
    }
    let page = out.join(PAGE);

    if common.json {
        return print_json(&Report {
            page: &page,
            round_trips: &round_trips,
        });
    }
    let size = format!(
        "{}x{} pixels of {} m",
        terrain.width,
        terrain.height,
        arguments.terrain.pixel_m()
    );
    print(&format!(
        "{size}\n\n{}\nOpen {} in a browser.\n",
        table(&HEAD, &rows(&round_trips)),
        page.display()
    ))
}

/// What is done, for progress: a terrain and six ways to store it.
const STEPS: u64 = 7;
/// Most columns of an error picture.
const SHOWN: usize = 320;

const HEAD: [&str; 7] = [
    "stored as",
    "size",
    "bits/pixel",
    "RMSE m",
    "max error m",
    "gradient RMSE",
    "nodata",
];

fn rows(round_trips: &[RoundTrip]) -> Vec<Vec<String>> {
    round_trips
        .iter()
        .map(|trip| {
            vec![
                trip.name.to_owned(),
                bytes(trip.bytes),
                format!("{:.2}", trip.bpp),
                format!("{:.5}", trip.measures.rmse_m),
                format!("{:.5}", trip.measures.max_error_m),
                trip.measures
                    .gradient_rmse
                    .map_or_else(|| "–".into(), |rmse| format!("{rmse:.5}")),
                if trip.nodata_equal { "same" } else { "DIFFERS" }.to_owned(),
            ]
        })
        .collect()
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("{}: cannot be written", path.display()))
}

fn draw(terrain: &Terrain, pixel_m: f64) -> Picture {
    let tint = Tint {
        water: Some(&terrain.water),
        ..Tint::default()
    };
    relief(
        &terrain.heights,
        terrain.width,
        terrain.height,
        pixel_m,
        &Light::default(),
        &tint,
    )
}

fn page_of(
    terrain: &Terrain,
    picture: &Picture,
    round_trips: &[RoundTrip],
    pixel_m: f64,
) -> Result<String> {
    let mut page = Page::new(
        "A terrain goes in and comes out",
        "Generated land was written as cloud-optimised GeoTIFFs and as terrane files, and read back. Every number below was measured on what came back.",
    );
    page.heading("The terrain");
    let (width, height) = (terrain.width, terrain.height);
    let extent = format!(
        "{:.0} m × {:.0} m at {pixel_m} m per pixel.",
        width as f64 * pixel_m,
        height as f64 * pixel_m
    );
    page.pictures(&[(
        picture,
        &format!("As it was made: {extent} The corner without data is left open."),
    )])?;
    page.heading("What came back");
    page.table(&HEAD, &rows(round_trips));
    page.heading("What was lost");
    // Noise does not compress: a part of it, pixel by pixel, shows as much as the whole.
    let shown = Window {
        column: 0,
        row: 0,
        width: width.min(SHOWN),
        height: height.min(SHOWN * 3 / 4),
    };
    let shown = Window {
        column: (width - shown.width) / 2,
        row: (height - shown.height) / 2,
        ..shown
    };
    let mut pictures = Vec::new();
    for trip in &round_trips[1..] {
        let errors: Vec<f32> = (shown.row..shown.row + shown.height)
            .flat_map(|row| {
                (shown.column..shown.column + shown.width).map(move |column| row * width + column)
            })
            .map(|pixel| trip.heights[pixel] - terrain.heights[pixel])
            .collect();
        let bound = trip.measures.max_error_m as f32;
        let caption = format!(
            "{}: the middle {}×{} pixels; blue is too low, orange too high, at most {bound:.4} m.",
            trip.name, shown.width, shown.height
        );
        pictures.push((
            error_map(&errors, shown.width, shown.height, bound),
            caption,
        ));
    }
    let pictures: Vec<_> = pictures
        .iter()
        .map(|(picture, caption)| (picture, caption.as_str()))
        .collect();
    page.pictures(&pictures)?;
    page.paragraph("On rough ground, rounding to a step leaves errors without pattern, up to half the step. On smooth ground, as on the road and along the river, it leaves terraces, which slope and hillshade show.");
    Ok(page.html())
}
