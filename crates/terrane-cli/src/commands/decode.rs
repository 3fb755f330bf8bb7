//! `terrane decode`: a neural terrain file back to a raster.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use terrane::Terrain;
use terrane::format::{Promise, Window};
use terrane::resample::Resampled;
use terrane_geo::{Affine, CogWriter, Existing, Georeference, refuse_existing};

use crate::Common;
use crate::commands::{FileArguments, existing, jobs};
use crate::output::{print, print_json};
use crate::placement::{affine, georeference, storage};
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

/// The pixels of a grid that a box touches.
fn window_of(affine: &Affine, size: (usize, usize), bbox: [f64; 4]) -> Result<Window> {
    let [x0, y0, x1, y1] = bbox;
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for (x, y) in [(x0, y0), (x0, y1), (x1, y0), (x1, y1)] {
        let (column, row) = affine
            .invert(x, y)
            .context("the raster's transform cannot be inverted")?;
        for (axis, value) in [column, row].into_iter().enumerate() {
            low[axis] = low[axis].min(value);
            high[axis] = high[axis].max(value);
        }
    }
    // A corner on a pixel's border does not touch the pixel beyond; coordinates carry rounding.
    let first = |value: f64| (value + 1e-6).floor().max(0.0) as usize;
    let end = |value: f64, size: usize| ((value - 1e-6).ceil().max(0.0) as usize).min(size);
    let (column, row) = (first(low[0]), first(low[1]));
    let (right, bottom) = (end(high[0], size.0), end(high[1], size.1));
    ensure!(
        column < right && row < bottom,
        "the box lies outside the raster"
    );
    Ok(Window {
        column,
        row,
        width: right - column,
        height: bottom - row,
    })
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let existing = existing(arguments.overwrite);
    refuse_existing(&arguments.out, existing)?;
    let terrain = arguments.file.terrain()?;
    let size = match arguments.resolution {
        Some(resolution) => write_resampled(arguments, common, &terrain, resolution, existing)?,
        None => write_level(arguments, common, &terrain, existing)?,
    };
    let (width, height) = size;
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

fn write_level(
    arguments: &Arguments,
    common: &Common,
    terrain: &Terrain,
    existing: Existing,
) -> Result<(usize, usize)> {
    let header = terrain.header();
    let level = arguments.level.unwrap_or(0);
    let (width, height) = header.pyramid.size(level).with_context(|| {
        format!(
            "there is no level {level}: the last is {}",
            header.pyramid.levels() - 1
        )
    })?;
    let whole = Window::whole(width as usize, height as usize);
    let place = georeference(header);
    let place = if level == 0 {
        place
    } else {
        place.coarsened(f64::from(1_u32 << level))
    };
    let window = match arguments.bbox {
        None => whole,
        Some(bbox) => window_of(&place.affine(), (whole.width, whole.height), bbox)?,
    };
    let is_exact = matches!(header.promise, Promise::Lossless { .. }) && level == 0;
    let mut writer = create(
        &arguments.out,
        &window,
        place.cropped(window.column, window.row),
        storage(header, is_exact)?,
        existing,
    )?;
    let mut progress = Progress::new("decode", common.progress);
    let side = usize::from(header.pyramid.side());
    let mut row = window.row;
    while row < window.row + window.height {
        // Strips end where tiles do, so that no tile is decoded twice.
        let end = ((row / side + 1) * side).min(window.row + window.height);
        let strip = Window {
            row,
            height: end - row,
            ..window
        };
        writer.write_rows(&terrain.read_with(level, strip, jobs(common))?)?;
        row = end;
        progress.at((row - window.row) as u64, window.height as u64, "rows");
    }
    writer.finish()?;
    Ok((window.width, window.height))
}

fn write_resampled(
    arguments: &Arguments,
    common: &Common,
    terrain: &Terrain,
    resolution: f64,
    existing: Existing,
) -> Result<(usize, usize)> {
    let header = terrain.header();
    ensure!(
        resolution > 0.0 && resolution.is_finite(),
        "--resolution must be above 0, not {resolution}"
    );
    let corner = affine(terrain.corner_affine());
    let sides = [
        corner.x_per_column.hypot(corner.y_per_column),
        corner.x_per_row.hypot(corner.y_per_row),
    ];
    ensure!(
        (sides[0] / sides[1] - 1.0).abs() < 1e-6,
        "--resolution needs square pixels, and these are {} by {}",
        sides[0],
        sides[1]
    );
    let (width, height) = header.pyramid.size(0).unwrap_or_default();
    let whole = Window::whole(width as usize, height as usize);
    let window = match arguments.bbox {
        None => whole,
        Some(bbox) => window_of(&corner, (whole.width, whole.height), bbox)?,
    };
    let factor = resolution / corner.pixel_size();
    let grid = Resampled::new(terrain, window, factor)?;
    let anchor = corner
        .shifted(window.column as f64, window.row as f64)
        .scaled(factor);
    let mut place = georeference(header);
    place.anchor = if place.placed && place.crs.pixel_is_point() {
        anchor.shifted(0.5, 0.5)
    } else {
        anchor
    };
    let size = Window::whole(grid.width(), grid.height());
    let mut writer = create(
        &arguments.out,
        &size,
        place,
        storage(header, false)?,
        existing,
    )?;
    let mut progress = Progress::new("decode", common.progress);
    for row in (0..grid.height()).step_by(16) {
        let end = (row + 16).min(grid.height());
        writer.write_rows(&grid.rows(row..end, jobs(common))?)?;
        progress.at(end as u64, grid.height() as u64, "rows");
    }
    writer.finish()?;
    Ok((grid.width(), grid.height()))
}

fn create(
    path: &Path,
    window: &Window,
    place: Georeference,
    storage: terrane_geo::Storage,
    existing: Existing,
) -> Result<CogWriter> {
    Ok(CogWriter::create(
        path,
        (window.width, window.height),
        place,
        storage,
        existing,
    )?)
}
