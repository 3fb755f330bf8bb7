//! `terrane derive`: slope, aspect, hillshade, curvatures and the rest as rasters.

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use terrane::{Derivation, DeriveMode};
use terrane_geo::{Kind, Product};

use crate::Common;
use crate::commands::{FileArguments, OutputOptions, jobs};
use crate::progress::Progress;
use crate::streams::Destination;

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
    /// COG to write, or - for standard output.
    out: PathBuf,
    /// What to derive.
    #[arg(long)]
    product: Product,
    /// From the continuous surface, or from decoded pixels, equal to gdaldem where the map is the ground within 1 %,
    /// pixels are square and north is up.
    #[arg(long, value_parser = modes(), default_value = DeriveMode::Analytic.name())]
    mode: DeriveMode,
    #[command(flatten)]
    output: OutputOptions,
}

/// The modes by their names.
fn modes() -> impl TypedValueParser<Value = DeriveMode> {
    PossibleValuesParser::new(DeriveMode::ALL.map(DeriveMode::name))
        .try_map(|name| name.parse::<DeriveMode>())
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let destination = Destination::new(&arguments.out, "tif")?;
    let output = destination
        .output(&arguments.output, Kind::Raster)
        .made_of(arguments.file.paths());
    output.check()?;
    let terrain = arguments.file.terrain(common)?;
    let product = arguments.product;
    let derivation = Derivation {
        product,
        mode: arguments.mode,
    };
    let mut progress = Progress::new("derive", common.progress);
    let written = derivation.write(&terrain, &output, jobs(common), &mut |done, total| {
        progress.at(done, total, "rows");
        Ok(())
    });
    drop(progress);
    written?;
    let report = serde_json::json!({ "product": product.name(), "unit": product.unit() });
    let unit = match product.unit() {
        "" => String::new(),
        unit => format!(" in {unit}"),
    };
    destination.report(common, report, |name| {
        format!("{name}: {}{unit}\n", product.name())
    })
}
