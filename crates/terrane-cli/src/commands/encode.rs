//! `terrane encode`: a raster to a terrane file.

use std::borrow::Cow;
#[cfg(feature = "lab")]
use std::path::Path;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use terrane::{Encoded, Settings, Target};
use terrane_codec::encode::EncodeProgress;
use terrane_codec::format::Method;
use terrane_codec::{Profile, Resources};
use terrane_geo::Kind;

use crate::Common;
use crate::commands::OutputOptions;
use crate::commands::raster::RasterArguments;
use crate::output::bytes;
use crate::progress::Progress;
use crate::streams::{Destination, is_stream, source};

/// Turn a GeoTIFF or COG (or several, as a mosaic) into a terrane file.
///
/// The rate is given by one of --max-error, --rmse, --bpp and --lossless; without any it is --max-error 0.1. With
/// --bits alone only the tokens are stored, and the error is whatever it is.
///
/// Several rasters are one mosaic on the grid of the first; where they overlap, the last one with data counts. GDAL's file
/// beside a raster (.aux.xml) and its mask (.msk) are read as GDAL reads them.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane encode dem.tif dem.trn --max-error 0.1\n  terrane encode west.tif east.tif both.trn --rmse 0.05\n  terrane encode dem.tif dem.trn --bits 8\n  terrane encode old.tif dem.trn --crs EPSG:2263 --vertical-unit us-ft --nodata -9999"
)]
pub(crate) struct Arguments {
    /// Rasters, and last the file to write; - for standard input and output.
    #[arg(num_args = 2.., required = true, value_names = ["IN", "OUT"])]
    files: Vec<PathBuf>,
    #[command(flatten)]
    raster: RasterArguments,
    #[command(flatten)]
    coding: CodingArguments,
    /// Keep finished tiles in OUT.journal, so that the same command goes on where it was stopped.
    #[arg(long)]
    resumable: bool,
    #[command(flatten)]
    output: OutputOptions,
}

/// How a raster is encoded, whole or in shards.
#[derive(clap::Args)]
pub(crate) struct CodingArguments {
    /// How heights become symbols; the context codec without it, or the method that --model or --bits call for.
    #[arg(long, value_parser = methods())]
    method: Option<Method>,
    /// Which of the context codec's models: the time that decoding takes against the size of the file.
    #[arg(long, value_parser = profiles(), default_value = Profile::Standard.name())]
    profile: Profile,
    /// How hard the context codec tries to make the file small: 0 rounds, 1 weighs the bits of every symbol against its
    /// error, 2 and 3 also try several steps for --max-error. Decoding takes the same time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    effort: u8,
    /// The method's model; without it the one inside the program.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Put the model into the file, so that it can be read without it.
    #[arg(long)]
    embed_model: bool,
    #[command(flatten)]
    rate: RateArguments,
    /// Bits of a token's symbol: 2, 4, 8 or 16.
    #[arg(long, value_name = "N")]
    bits: Option<u8>,
    /// Store symbols in their width instead of coding them.
    #[arg(long)]
    fixed_width: bool,
    /// Side of a tile, an even number: larger ones need fewer bits, smaller ones are read sooner. 256 by default, and the
    /// networks take no other. Every thread takes 160 bytes per pixel of a
    /// tile (2.7 GB for one of 4096), and there are no more threads than --memory-limit allows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(16..=4096))]
    tile: Option<u16>,
}

/// How large a file may be, or how far off.
#[derive(Default, clap::Args)]
pub(crate) struct RateArguments {
    /// Maximum error of any valid pixel in metres, guaranteed.
    #[arg(long, value_name = "M", group = "rate")]
    max_error: Option<f64>,
    /// Root mean square error in metres, of the whole raster. Where the lossless file is as small, that is written.
    #[arg(long, value_name = "M", group = "rate")]
    rmse: Option<f64>,
    /// Bits per pixel, of the whole file with its overviews. A rate at or above the lossless file's gives that file.
    #[arg(long, value_name = "B", group = "rate")]
    bpp: Option<f64>,
    /// Let every tile reach --rmse or --bpp by itself, which serves the whole less well.
    #[arg(long)]
    pub(crate) per_tile: bool,
    /// Give every height back as it was.
    #[arg(long, group = "rate")]
    lossless: bool,
}

impl RateArguments {
    pub(crate) fn target(&self) -> Target {
        match (self.max_error, self.rmse, self.bpp) {
            (Some(bound), ..) => Target::MaxError(bound),
            (_, Some(target), _) => Target::Rmse(target),
            (.., Some(target)) => Target::Bpp(target),
            _ if self.lossless => Target::Lossless,
            _ => Target::Default,
        }
    }
}

/// The methods that a file can hold, by their names.
pub(crate) fn methods() -> impl TypedValueParser<Value = Method> {
    let values = Method::ALL.iter().map(|&method| {
        let needs_file = method.has_tokens() && !terrane::MODELS.has_built_in(method);
        let help = method.summary().to_owned() + if needs_file { "; needs --model" } else { "" };
        PossibleValue::new(method.name()).help(help)
    });
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Method>())
}

/// The context codec's models in the program, by their names.
pub(crate) fn profiles() -> impl TypedValueParser<Value = Profile> {
    let values =
        Profile::ALL.map(|profile| PossibleValue::new(profile.name()).help(profile.summary()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Profile>())
}

#[cfg(feature = "lab")]
impl Arguments {
    /// One raster with one method: within a bound, or the tokens alone.
    pub(crate) fn plain(raster: &Path, out: &Path, method: Method, max_error: Option<f64>) -> Self {
        Self {
            files: vec![raster.to_owned(), out.to_owned()],
            raster: RasterArguments::default(),
            coding: CodingArguments {
                method: Some(method),
                profile: Profile::Standard,
                effort: 1,
                model: None,
                embed_model: false,
                rate: RateArguments {
                    max_error,
                    ..RateArguments::default()
                },
                bits: method.has_tokens().then_some(8),
                fixed_width: false,
                tile: None,
            },
            resumable: false,
            output: OutputOptions {
                overwrite: true,
                any_extension: false,
            },
        }
    }
}

impl CodingArguments {
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            method: self.method,
            profile: self.profile,
            effort: self.effort,
            model: self.model.clone(),
            embed_model: self.embed_model,
            target: self.rate.target(),
            per_tile: self.rate.per_tile,
            bits: self.bits,
            fixed_width: self.fixed_width,
            tile: self.tile,
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let mut progress = Progress::new("encode", common.progress);
    let (destination, encoded) = write(arguments, common.resources(), &mut |at| {
        progress.at(at.tiles, at.of, "tiles");
    })?;
    drop(progress);
    let Encoded {
        bytes: length,
        measured,
        not_heights,
        is_journal_left,
        reached,
    } = encoded;
    warn_of(not_heights);
    if is_journal_left {
        eprintln!(
            "terrane: warning: {}.journal is of no use any more and cannot be removed",
            destination.name()
        );
    }
    let pixels = measured.pixels;
    let bpp = length as f64 * 8.0 / pixels.max(1) as f64;
    let report = serde_json::json!({
        "bytes": length, "bpp": bpp, "pixels": pixels,
        "rmse_m": measured.rmse_m(), "max_error_m": measured.max_error_m, "not_heights": not_heights,
        "reached": reached.name(),
    });
    let note = reached.note();
    destination.report(common, report, |name| {
        format!(
            "{name}: {} for {pixels} pixels, {bpp:.3} bits each; RMSE {:.4} m, maximum error {:.4} m\n{}",
            bytes(length),
            measured.rmse_m(),
            measured.max_error_m,
            note.map_or_else(String::new, |note| format!("{note}\n"))
        )
    })
}

/// Says that pixels were taken for pixels without data that nobody declared so.
pub(crate) fn warn_of(not_heights: u64) {
    if not_heights > 0 {
        eprintln!(
            "terrane: warning: {not_heights} pixels hold infinity or 1e30 and more, which is no height; they have no data in the file"
        );
    }
}

/// Writes the file; returns where it is and what was made.
pub(crate) fn write<'a>(
    arguments: &'a Arguments,
    resources: Resources,
    progress: &mut dyn FnMut(EncodeProgress),
) -> Result<(Destination<'a>, Encoded)> {
    let (out, inputs) = arguments
        .files
        .split_last()
        .context("a raster and a file to write are needed")?;
    let destination = Destination::new(out, "trn")?;
    let settings = arguments.coding.settings();
    let output = destination
        .output(&arguments.output, Kind::Terrain)
        .made_of(inputs)
        .made_of(&settings.model);
    // An answer to wrong settings or a wrong name should not wait for a raster.
    output.check()?;
    let prepared = settings.prepare(resources.memory)?;
    let has_stream = |paths: &[PathBuf]| paths.iter().any(|path| is_stream(path));
    ensure!(
        !(arguments.resumable && has_stream(&arguments.files)),
        "--resumable needs files by name: what comes or goes through a pipe cannot be gone on with"
    );
    let inputs = inputs.iter().map(|path| source(path).map(Cow::into_owned));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let raster = arguments.raster.open(&inputs)?;
    let job = terrane::Destination {
        out: output,
        resumable: arguments.resumable.then_some(&inputs),
        resources,
    };
    let encoded = terrane::encode(&*raster, &prepared, job, &mut |at| {
        progress(at);
        Ok(())
    })?;
    Ok((destination, encoded))
}
