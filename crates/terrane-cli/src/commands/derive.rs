//! `terrane derive`: slope, aspect, hillshade, curvatures and the rest as rasters.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use terrane::Terrain;
use terrane::format::Window;
use terrane::parallel::by_blocks;
use terrane_geo::{Cell, CogWriter, Product, SampleType, Storage, derive_rows, refuse_existing};

use crate::Common;
use crate::commands::{FileArguments, existing, ground, jobs, map_unit_m};
use crate::output::{print, print_json};
use crate::placement::{affine, georeference};
use crate::progress::Progress;

/// Derive a raster: slope, aspect, hillshade, laplacian, profile-curvature, plan-curvature, tri, tpi or roughness.
///
/// Slope and aspect are in degrees, aspect clockwise from north; hillshade is 1 to 255 with light from 315° at 45°;
/// curvatures are in 1/m, profile and plan curvature positive where the ground is convex, the Laplacian positive where it is hollow.
/// All are of the ground: a unit of a map in degrees or in EPSG:3857 counts as its metres in the middle of the raster.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane derive dem.trn slope.tif --product slope\n  terrane derive dem.trn shade.tif --product hillshade --mode grid"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
    /// COG to write.
    out: PathBuf,
    /// What to derive.
    #[arg(long)]
    product: Product,
    /// From the continuous surface, or from decoded pixels as gdaldem does.
    #[arg(long, value_enum, default_value_t = Mode::Analytic)]
    mode: Mode,
    /// Replace an existing file.
    #[arg(long)]
    overwrite: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    /// From the continuous surface.
    Analytic,
    /// From decoded pixels, equal to gdaldem where a unit of the map is the same everywhere.
    Grid,
}

/// No slope, shade or curvature has this value.
const NODATA: f64 = -9999.0;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let existing = existing(arguments.overwrite);
    refuse_existing(&arguments.out, existing)?;
    let terrain = arguments.file.terrain()?;
    let (width, height) = terrain.header().pyramid.size(0).unwrap_or_default();
    let (width, height) = (width as usize, height as usize);
    let mut storage = Storage::metres(SampleType::F32, Some(NODATA));
    // Stated, so that a vertical system in feet does not scale a slope.
    storage.band.unit = "m".into();
    storage.band.description = arguments.product.name().into();
    let place = georeference(terrain.header());
    let mut writer = CogWriter::create(&arguments.out, (width, height), place, storage, existing)?;
    let mut progress = Progress::new("derive", common.progress);
    let is_analytic = arguments.mode == Mode::Analytic
        && !matches!(
            arguments.product,
            Product::Tri | Product::Tpi | Product::Roughness
        );
    let scale = map_unit_m(&terrain, None)?;
    let strip = usize::from(terrain.header().pyramid.side());
    for row in (0..height).step_by(strip) {
        let end = (row + strip).min(height);
        let rows = if is_analytic {
            analytic(&terrain, arguments.product, scale, row..end, width, common)?
        } else {
            grid(
                &terrain,
                arguments.product,
                scale,
                row..end,
                (width, height),
                common,
            )?
        };
        writer.write_rows(&rows)?;
        progress.at(end as u64, height as u64, "rows");
    }
    drop(progress);
    writer.finish()?;
    if common.json {
        return print_json(
            &serde_json::json!({ "file": arguments.out, "product": arguments.product.name(), "unit": arguments.product.unit() }),
        );
    }
    let unit = match arguments.product.unit() {
        "" => String::new(),
        unit => format!(" in {unit}"),
    };
    print(&format!(
        "{}: {}{unit}\n",
        arguments.out.display(),
        arguments.product.name()
    ))
}

fn grid(
    terrain: &Terrain,
    product: Product,
    scale: [f64; 2],
    rows: std::ops::Range<usize>,
    (width, height): (usize, usize),
    common: &Common,
) -> Result<Vec<f64>> {
    let place = affine(terrain.corner_affine());
    ensure!(
        !place.is_rotated(),
        "--mode grid needs a raster that is not rotated; --mode analytic does not"
    );
    let cell = Cell {
        x_m: place.x_per_column * scale[0],
        y_m: -place.y_per_row * scale[1],
    };
    let (first, last) = (rows.start.saturating_sub(1), (rows.end + 1).min(height));
    let window = Window {
        column: 0,
        row: first,
        width,
        height: last - first,
    };
    let mut heights = terrain.read_with(0, window, jobs(common))?;
    // As gdaldem sees them: a decoded raster holds 32-bit floats.
    for value in &mut heights {
        *value = f64::from(*value as f32);
    }
    let at = |row: usize| &heights[(row - first) * width..][..width];
    Ok(rows
        .flat_map(|row| {
            derive_rows(
                product,
                (row > 0).then(|| at(row - 1)),
                at(row),
                (row + 1 < height).then(|| at(row + 1)),
                cell,
            )
        })
        .collect())
}

fn analytic(
    terrain: &Terrain,
    product: Product,
    scale: [f64; 2],
    rows: std::ops::Range<usize>,
    width: usize,
    common: &Common,
) -> Result<Vec<f64>> {
    let place = affine(terrain.corner_affine());
    let side = usize::from(terrain.header().pyramid.side());
    let surface = terrain.surface()?;
    let values = by_blocks(width, rows, side, jobs(common), &|column, row| {
        let (x, y) = place.apply(column as f64 + 0.5, row as f64 + 0.5);
        match surface.at(x, y) {
            Ok(sample) => Ok(product
                .from_derivatives(&ground(&sample, scale))
                .unwrap_or(f64::NAN)),
            Err(terrane::Error::NoHeight { .. }) => Ok(f64::NAN),
            Err(error) => Err(error),
        }
    });
    Ok(values?)
}
