//! `terrane tiles`: all map tiles of a file as one PMTiles archive.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use terrane::tiles::{BlockCache, Format, HeightEncoding, Layer, MapTiles, Nodata};
use terrane::{ArchiveReport, TileArchive};
use terrane_geo::Kind;

use crate::Common;
use crate::commands::{FileArguments, OutputOptions, jobs};
use crate::output::{bytes, complain};
use crate::progress::Progress;
use crate::streams::Destination;

/// Decoded heights that are kept at most.
const MAX_CACHE: u64 = 512 << 20;
/// The part of the memory that they may take.
const CACHE_PART: u64 = 4;
/// Rounding above this part of the error bound is worth a word.
const MUCH: f64 = 0.26;

/// Write all map tiles as one PMTiles archive, for MapLibre and others from any static host.
///
/// Tiles show heights as colours (Terrarium or Mapbox), or a layer to look at. At every zoom heights are rounded to the
/// coarsest step that takes at most an eighth of the file's error bound and leaves flat ground without stairs; Terrarium's
/// finest is 1/256 m, Mapbox's 0.1 m. Tiles without data are left out; where a tile of heights has gaps, the lowest height
/// of the file stands there, unless --nodata says otherwise, because map clients take transparent pixels for deep holes.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane tiles dem.trn dem.pmtiles\n  terrane tiles dem.trn dem.pmtiles --encoding mapbox --format png --tile-size 256\n  terrane tiles dem.trn shade.pmtiles --layer hillshade --max-zoom 14 --attribution '© Survey'"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
    /// PMTiles archive to write.
    out: PathBuf,
    /// What tiles show.
    #[arg(long, value_parser = layers(), default_value = Layer::Height.name())]
    layer: Layer,
    /// How heights become colours.
    #[arg(long, value_parser = encodings(), default_value = HeightEncoding::Terrarium.name())]
    encoding: HeightEncoding,
    /// How tiles are stored, without loss.
    #[arg(long, value_enum, default_value_t = Stored::Webp)]
    format: Stored,
    /// Pixels across a tile; MapLibre takes sources for 512 unless they say otherwise.
    #[arg(long, value_name = "N", default_value = "512", value_parser = PossibleValuesParser::new(["256", "512"]).try_map(|side| side.parse::<usize>()))]
    tile_size: usize,
    /// The first zoom; by default the one at which the file is a few dozen pixels.
    #[arg(long, value_name = "Z")]
    min_zoom: Option<u8>,
    /// The last zoom; by default the one whose pixels are at least as fine as the file's.
    #[arg(long, value_name = "Z")]
    max_zoom: Option<u8>,
    /// Round heights to steps of at most so many metres at all zooms, instead of what suits the error bound.
    #[arg(long, value_name = "M")]
    step: Option<f64>,
    /// What stands where there is no data: `lowest`, `transparent` or a height in metres.
    #[arg(long, value_parser = parse_nodata, default_value = "lowest", allow_hyphen_values = true)]
    nodata: Nodata,
    /// What the archive is called; by default the name of the file.
    #[arg(long)]
    name: Option<String>,
    /// Whom a map thanks.
    #[arg(long, value_name = "TEXT")]
    attribution: Option<String>,
    #[command(flatten)]
    output: OutputOptions,
}

/// How a tile is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stored {
    /// Lossless WebP.
    Webp,
    /// PNG.
    Png,
}

/// The layers of a file by their names; a difference needs something to compare with.
fn layers() -> impl TypedValueParser<Value = Layer> {
    let all = Layer::ALL.into_iter().filter(|layer| layer.is_of_file());
    PossibleValuesParser::new(all.map(Layer::name))
        .try_map(|name| Layer::parse(&name).ok_or("there is no such layer"))
}

fn encodings() -> impl TypedValueParser<Value = HeightEncoding> {
    PossibleValuesParser::new(HeightEncoding::ALL.map(HeightEncoding::name)).try_map(|name| {
        let mut all = HeightEncoding::ALL.into_iter();
        all.find(|encoding| encoding.name() == name)
            .ok_or("there is no such encoding")
    })
}

fn parse_nodata(text: &str) -> Result<Nodata, String> {
    match text {
        "lowest" => Ok(Nodata::Height(None)),
        "transparent" => Ok(Nodata::Transparent),
        text => match text.parse::<f64>() {
            Ok(height) if height.is_finite() => Ok(Nodata::Height(Some(height))),
            _ => Err("`lowest`, `transparent` or a height in metres is needed".into()),
        },
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let destination = Destination::new(&arguments.out, "pmtiles")?;
    let output = destination
        .output(&arguments.output, Kind::Tiles)
        .made_of(arguments.file.paths());
    output.check()?;
    let terrain = Arc::new(arguments.file.terrain(common)?);
    let memory = common.memory();
    let kept = (memory.bytes / CACHE_PART).min(MAX_CACHE) as usize;
    let tiles = MapTiles::open(terrain, &Arc::new(BlockCache::new(kept)))?;
    let archive = TileArchive {
        layer: arguments.layer,
        format: match arguments.format {
            Stored::Webp => Format::Webp,
            Stored::Png => Format::Png,
        },
        side: arguments.tile_size,
        min_zoom: arguments.min_zoom,
        max_zoom: arguments.max_zoom,
        encoding: arguments.encoding,
        step_m: arguments.step,
        nodata: arguments.nodata,
        name: arguments.name.clone().unwrap_or_else(|| {
            let stem = arguments.file.path().file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        }),
        attribution: arguments.attribution.clone(),
    };
    let mut progress = Progress::new("tiles", common.progress);
    let report = archive.write(&tiles, &output, jobs(common), memory, &mut |done, of| {
        progress.at(done, of, "tiles");
        Ok(())
    })?;
    drop(progress);
    if !common.json {
        warn(&report, arguments.encoding);
    }
    destination.report(common, report.json(), |name| {
        format!("{name}: {}", text(&report, arguments))
    })
}

/// Says where rounding spoils much of what the file guarantees.
fn warn(report: &ArchiveReport, encoding: HeightEncoding) {
    let Some((part, (_, step))) = report.rounding_of_bound.zip(report.steps_m.last()) else {
        return;
    };
    if part > MUCH {
        let hint = match encoding {
            HeightEncoding::Mapbox => "; --encoding terrarium is finer",
            HeightEncoding::Terrarium => "",
        };
        complain(
            "terrane",
            &format!(
                "steps of {step} m are off by up to {} m, {:.0} % of the file's error bound{hint}",
                0.5 * step,
                100.0 * part
            ),
        );
    }
}

fn text(report: &ArchiveReport, arguments: &Arguments) -> String {
    let ArchiveReport {
        zooms: (first, last),
        tiles,
        contents,
        ..
    } = report;
    let mut text = format!(
        "{}, {tiles} tiles of {} pixels ({contents} different), zooms {first} to {last}\n",
        bytes(report.bytes),
        arguments.tile_size,
    );
    if let (Some(coarsest), Some(finest)) = (report.steps_m.first(), report.steps_m.last()) {
        let share = report.rounding_of_bound.map_or(String::new(), |part| {
            format!(", off by at most {:.1} % of the error bound", 100.0 * part)
        });
        text.push_str(&format!(
            "heights   {}, steps of {} m at zoom {} to {} m at zoom {}{share}\n",
            arguments.encoding.name(),
            coarsest.1,
            coarsest.0,
            finest.1,
            finest.0
        ));
    }
    text
}
