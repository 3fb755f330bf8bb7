//! `terrane derive`: slope, aspect, hillshade, curvatures and the rest as rasters.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use terrane_codec::Terrain;
use terrane_codec::format::Window;
use terrane_codec::parallel::by_blocks;
use terrane::GroundScale;
use terrane_geo::{Cell, CogWriter, Kind, Product, SampleType, Storage, derive_rows};

use crate::Common;
use crate::commands::{FileArguments, OutputOptions, ground, jobs};
use crate::output::{print, print_json};
use crate::placement::{affine, georeference};
use crate::progress::Progress;

/// Derive a raster: slope, aspect, hillshade, laplacian, profile-curvature, plan-curvature, tri, tpi or roughness.
///
/// Slope and aspect are in degrees, aspect clockwise from north; hillshade is 1 to 255 with light from 315° at 45°;
/// curvatures are in 1/m, profile and plan curvature positive where the ground is convex, the Laplacian positive where it is hollow.
/// All are of the ground: a unit of a map in degrees or in EPSG:3857 counts as its metres in each row.
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
    #[command(flatten)]
    output: OutputOptions,
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
    let output = arguments
        .output
        .output(&arguments.out, Kind::Raster)
        .made_of(arguments.file.paths());
    output.check()?;
    let terrain = arguments.file.terrain(common)?;
    let (width, height) = terrain.header().pyramid.size(0).unwrap_or_default();
    let (width, height) = (width as usize, height as usize);
    let (name, unit) = (arguments.product.name(), arguments.product.unit());
    let mut storage = Storage::other(SampleType::F32, Some(NODATA), name, unit);
    storage.band.description = name.into();
    let place = georeference(terrain.header());
    let strip = usize::from(terrain.header().pyramid.side());
    let rows = (width * (strip + 2)) as u64 * 8;
    terrain.memory().check(
        "deriving so wide a raster",
        rows.saturating_mul(2)
            .saturating_add(CogWriter::memory(width, height)),
        "",
    )?;
    let mut writer = CogWriter::create(&output, (width, height), place, storage)?;
    let mut progress = Progress::new("derive", common.progress);
    let is_analytic = arguments.mode == Mode::Analytic
        && !matches!(
            arguments.product,
            Product::Tri | Product::Tpi | Product::Roughness
        );
    let scale = GroundScale::of_terrain(&terrain)?;
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
    scale: GroundScale,
    rows: std::ops::Range<usize>,
    (width, height): (usize, usize),
    common: &Common,
) -> Result<Vec<f64>> {
    let place = affine(terrain.corner_affine());
    ensure!(
        !place.is_rotated(),
        "--mode grid needs a raster that is not rotated; --mode analytic does not"
    );
    let cell = |row: usize| {
        let (_, y) = place.apply(0.0, row as f64 + 0.5);
        let [x_m, y_m] = scale.at(y);
        Cell {
            x_m: place.x_per_column * x_m,
            y_m: -place.y_per_row * y_m,
        }
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
                cell(row),
            )
        })
        .collect())
}

fn analytic(
    terrain: &Terrain,
    product: Product,
    scale: GroundScale,
    rows: std::ops::Range<usize>,
    width: usize,
    common: &Common,
) -> Result<Vec<f64>> {
    let place = affine(terrain.corner_affine());
    let side = usize::from(terrain.header().pyramid.side());
    let surface = terrain.surface()?;
    let jobs = terrain.decoders(jobs(common))?;
    let values = by_blocks(width, rows, side, jobs, &|column, row| {
        let (x, y) = place.apply(column as f64 + 0.5, row as f64 + 0.5);
        match surface.at(x, y) {
            Ok(sample) => Ok(product
                .from_derivatives(&ground(&sample, scale.at(y)))
                .unwrap_or(f64::NAN)),
            Err(terrane_codec::Error::NoHeight { .. }) => Ok(f64::NAN),
            Err(error) => Err(error),
        }
    });
    Ok(values?)
}
