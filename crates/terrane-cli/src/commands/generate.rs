//! `terrane generate`: a terrain of our own, for trying things without data.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use terrane_codec::format::MemoryLimit;
use terrane_geo::synthetic::{Recipe, Terrain, generate};
use terrane_geo::{Affine, CogWriter, Crs, Georeference, Kind, Output, SampleType, Storage};

use crate::Common;
use crate::commands::OutputOptions;
use crate::streams::Destination;

/// Make a terrain and write it as a COG: eroded hills, a river, a lake, a road cut, a corner without data.
///
/// The same seed, size and pixel size give the same bytes on every machine.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  terrane generate hills.tif --seed 7 --size 2000x1500 --pixel-size 0.5"
)]
pub(crate) struct Arguments {
    /// File to write, or - for standard output.
    out: PathBuf,
    #[command(flatten)]
    pub(crate) terrain: TerrainArguments,
    #[command(flatten)]
    output: OutputOptions,
}

/// Which terrain is made.
#[derive(clap::Args)]
pub(crate) struct TerrainArguments {
    /// Chooses one terrain among all of its kind.
    #[arg(long, default_value_t = Recipe::default().seed)]
    seed: u64,
    /// Columns and rows.
    #[arg(long, value_name = "WxH", default_value = "1024x768", value_parser = parse_size)]
    size: (usize, usize),
    /// Side of a pixel in metres.
    #[arg(long, value_name = "M", default_value_t = 1.0)]
    pixel_size: f64,
}

fn parse_size(text: &str) -> Result<(usize, usize), String> {
    let size = text
        .split_once('x')
        .and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    match size {
        Some((width, height))
            if (64..=20_000).contains(&width) && (64..=20_000).contains(&height) =>
        {
            Ok((width, height))
        }
        _ => Err("two numbers from 64 to 20000 are needed, such as 1024x768".into()),
    }
}

/// What a pixel takes at most while a terrain is made: heights, the courses of water, and the order of the flood.
const PIXEL_BYTES: u64 = 64;

impl TerrainArguments {
    /// Refuses a terrain that does not fit into memory, of which so many bytes are taken per pixel beside the making.
    pub(crate) fn check(&self, pixel_bytes: u64, memory: MemoryLimit) -> Result<()> {
        let pixels = self.size.0 as u64 * self.size.1 as u64;
        Ok(memory.check(
            "so large a terrain",
            pixels.saturating_mul(PIXEL_BYTES + pixel_bytes),
            "make it smaller, or ",
        )?)
    }

    /// Makes the terrain.
    pub(crate) fn generate(&self) -> Result<Terrain> {
        ensure!(
            self.pixel_size.is_finite() && (0.1..=1000.0).contains(&self.pixel_size),
            "--pixel-size {}: a pixel must be from 0.1 to 1000 m across",
            self.pixel_size
        );
        let (width, height) = self.size;
        Ok(generate(&Recipe {
            width,
            height,
            pixel_m: self.pixel_size,
            seed: self.seed,
            ..Recipe::default()
        }))
    }

    #[cfg(feature = "lab")]
    /// Side of a pixel in metres.
    pub(crate) fn pixel_m(&self) -> f64 {
        self.pixel_size
    }

    /// A georeference for land that is nowhere: a metric system, far from its origin as real land is.
    pub(crate) fn georeference(&self) -> Georeference {
        Georeference::new(
            Affine::north_up(500_000.0, 5_200_000.0, self.pixel_size),
            Crs::projected(32632, None),
        )
    }
}

/// How a generated terrain is stored without loss.
pub(crate) fn lossless() -> Storage {
    Storage::metres(SampleType::F32, Some(-9999.0))
}

/// Writes heights as a COG and returns its size in bytes.
pub(crate) fn write(
    output: &Output,
    terrain: &Terrain,
    georeference: Georeference,
    storage: Storage,
) -> Result<u64> {
    let size = (terrain.width, terrain.height);
    let mut writer = CogWriter::create(output, size, georeference, storage)?;
    for row in terrain.heights.chunks_exact(terrain.width) {
        let row: Vec<f64> = row.iter().map(|&height| f64::from(height)).collect();
        writer.write_rows(&row)?;
    }
    Ok(writer.finish()?)
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let destination = Destination::new(&arguments.out, "tif")?;
    let output = destination.output(&arguments.output, Kind::Raster);
    output.check()?;
    arguments.terrain.check(0, common.network_memory())?;
    let terrain = arguments.terrain.generate()?;
    let bytes = write(
        &output,
        &terrain,
        arguments.terrain.georeference(),
        lossless(),
    )?;
    let (width, height) = (terrain.width, terrain.height);
    let report = serde_json::json!({ "width": width, "height": height, "bytes": bytes });
    destination.report(common, report, |name| {
        format!(
            "{name}: {width}x{height} pixels, {}\n",
            crate::output::bytes(bytes)
        )
    })
}
