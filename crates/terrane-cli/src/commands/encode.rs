//! `terrane encode`: a raster to a neural terrain file.

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use terrane::encode::{EncodeProgress, Encoding};
use terrane::format::{Coding, Header, Method, ModelId, Promise, Pyramid, Statistics};
use terrane::journal::Journal;
use terrane::methods::MethodConfig;
use terrane::{FileModel, Measured, Profile, Rate, TileCodec, TrainedModel};
use terrane_geo::{AtomicFile, HeightUnit, RasterInfo, RasterSource, SampleType, refuse_existing};

use crate::Common;
use crate::commands::{existing, jobs};
use crate::output::{bytes, print, print_json};
use crate::placement::{affine_numbers, geo_keys, samples};
use crate::progress::Progress;

/// Turn a GeoTIFF or COG (or several, as a mosaic) into a neural terrain file.
///
/// The rate is given by one of --max-error, --rmse, --bpp and --lossless; without any it is --max-error 0.1. With
/// --bits alone only the tokens are stored, and the error is whatever it is.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane encode dem.tif dem.trn --max-error 0.1\n  terrane encode west.tif east.tif both.trn --rmse 0.05\n  terrane encode dem.tif dem.trn --bits 8"
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Arguments {
    /// Rasters, and last the file to write.
    #[arg(num_args = 2.., required = true, value_names = ["IN", "OUT"])]
    files: Vec<PathBuf>,
    /// How heights become symbols; the context codec without it, or the method that --model or --bits call for.
    #[arg(long, value_enum)]
    method: Option<MethodName>,
    /// Which of the context codec's models: the time that decoding takes against the size of the file.
    #[arg(long, value_enum, default_value_t = ProfileName::Standard)]
    profile: ProfileName,
    /// How hard the context codec tries to make the file small: 0 rounds, 1 weighs the bits of every symbol against its
    /// error, 2 and 3 also try several steps for --max-error. Decoding takes the same time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=3))]
    effort: u8,
    /// The method's model; without it the one inside the program.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Put the model into the file, so that it can be read without it.
    #[arg(long)]
    embed_model: bool,
    /// Greatest error of any valid pixel in metres, guaranteed.
    #[arg(long, value_name = "M", group = "rate")]
    max_error: Option<f64>,
    /// Root mean square error in metres, of the whole raster.
    #[arg(long, value_name = "M", group = "rate")]
    rmse: Option<f64>,
    /// Bits per pixel, of the whole file with its overviews.
    #[arg(long, value_name = "B", group = "rate")]
    bpp: Option<f64>,
    /// Let every tile reach --rmse or --bpp by itself, which serves the whole less well.
    #[arg(long)]
    per_tile: bool,
    /// Give every height back as it was.
    #[arg(long, group = "rate")]
    lossless: bool,
    /// Bits of a token's symbol: 2, 4, 8 or 16.
    #[arg(long, value_name = "N", value_parser = ["2", "4", "8", "16"])]
    bits: Option<String>,
    /// Store symbols in their width instead of coding them.
    #[arg(long)]
    fixed_width: bool,
    /// Side of a tile, an even number: larger ones need fewer bits, smaller ones are read sooner. 512 by default for
    /// the context codec and 256 for the others; the networks take 256.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(16..=4096))]
    tile: Option<u16>,
    /// Keep finished tiles in OUT.journal, so that the same command goes on where it was stopped.
    #[arg(long)]
    resumable: bool,
    /// Replace an existing file.
    #[arg(long)]
    overwrite: bool,
}

/// Methods that a file can hold.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum MethodName {
    /// The context codec: a wavelet and a small network that says how likely each coefficient is.
    Context,
    /// The paper's method.
    HuvrSiren,
    /// HUVR; needs --model.
    Huvr,
    /// Functa; needs --model.
    Functa,
    /// TransINR; needs --model.
    Transinr,
    /// Heights as integers by prediction, without a network.
    Integers,
}

impl MethodName {
    fn method(self) -> Method {
        match self {
            Self::Context => Method::Context,
            Self::HuvrSiren => Method::HuvrSiren,
            Self::Huvr => Method::Huvr,
            Self::Functa => Method::Functa,
            Self::Transinr => Method::TransInr,
            Self::Integers => Method::Integers,
        }
    }
}

/// The context codec's models in the program.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProfileName {
    /// The quickest.
    Fast,
    /// The usual one.
    Standard,
    /// The smallest files.
    Best,
}

impl ProfileName {
    fn profile(self) -> Profile {
        match self {
            Self::Fast => Profile::Fast,
            Self::Standard => Profile::Standard,
            Self::Best => Profile::Best,
        }
    }
}

/// A model and its file.
type ModelFile = (FileModel, Vec<u8>);

fn method_of(model: &FileModel) -> Method {
    match model.network().map(|network| &network.config) {
        None => Method::Context,
        Some(MethodConfig::TransInr(_)) => Method::TransInr,
        Some(MethodConfig::Functa(_)) => Method::Functa,
        Some(MethodConfig::Huvr(_)) => Method::Huvr,
        Some(MethodConfig::HuvrSiren(_)) => Method::HuvrSiren,
    }
}

impl Arguments {
    /// One raster with one method: within a bound, or the tokens alone.
    pub(crate) fn plain(
        raster: &Path,
        out: &Path,
        method: MethodName,
        max_error: Option<f64>,
    ) -> Self {
        Self {
            files: vec![raster.to_owned(), out.to_owned()],
            method: Some(method),
            profile: ProfileName::Standard,
            effort: 1,
            model: None,
            embed_model: false,
            max_error,
            rmse: None,
            bpp: None,
            per_tile: false,
            lossless: false,
            bits: (method == MethodName::HuvrSiren).then(|| "8".into()),
            fixed_width: false,
            tile: None,
            resumable: false,
            overwrite: true,
        }
    }

    fn side(&self, method: Method) -> u16 {
        let usual = if method == Method::Context { 512 } else { 256 };
        self.tile.unwrap_or(usual)
    }

    fn rate(&self) -> Result<Rate> {
        for (name, value) in [
            ("--max-error", self.max_error),
            ("--rmse", self.rmse),
            ("--bpp", self.bpp),
        ] {
            if let Some(value) = value {
                ensure!(
                    value > 0.0 && value.is_finite(),
                    "{name} must be above 0, not {value}"
                );
            }
        }
        Ok(match (self.max_error, self.rmse, self.bpp) {
            (Some(bound), ..) => Rate::MaxError(bound),
            (_, Some(target), _) => Rate::Rmse(target),
            (.., Some(target)) => Rate::Bpp(target),
            _ if self.lossless => Rate::Lossless,
            _ if self.bits.is_some() => Rate::Tokens,
            _ => Rate::MaxError(0.1),
        })
    }

    /// The method, and the model and its file where it has one.
    fn method(&self, rate: Rate) -> Result<(Method, Option<ModelFile>)> {
        let wants_tokens = self.bits.is_some() || self.fixed_width;
        ensure!(
            !(wants_tokens
                && matches!(
                    self.method,
                    Some(MethodName::Integers | MethodName::Context)
                )),
            "only the neural representations have tokens: leave out --bits and --fixed-width"
        );
        if self.method == Some(MethodName::Integers) {
            ensure!(
                self.model.is_none() && !self.embed_model,
                "integers have no model: leave out --model and --embed-model"
            );
            return Ok((Method::Integers, None));
        }
        let (model, file) = match (&self.model, self.method) {
            (Some(path), _) => {
                let file = std::fs::read(path)
                    .with_context(|| format!("{} cannot be read", path.display()))?;
                let model = FileModel::from_bytes(&file)
                    .with_context(|| format!("{} cannot be used as a model", path.display()))?;
                (model, file)
            }
            (None, Some(MethodName::HuvrSiren)) => built_in_network(),
            (None, None) if wants_tokens => built_in_network(),
            (None, None | Some(MethodName::Context)) => {
                let profile = self.profile.profile();
                (profile.model(), profile.bytes().to_vec())
            }
            _ => anyhow::bail!(
                "there is no model of this method in the program: give one with --model"
            ),
        };
        let method = method_of(&model);
        ensure!(
            self.method.is_none_or(|name| name.method() == method),
            "the model is of another method: it is a {}",
            model.name()
        );
        ensure!(
            method == Method::Context || rate != Rate::Lossless,
            "a network's floats cannot give every bit back: use --method context for --lossless"
        );
        ensure!(
            method != Method::Context || !wants_tokens,
            "only the neural representations have tokens: leave out --bits and --fixed-width"
        );
        Ok((method, Some((model, file))))
    }
}

fn built_in_network() -> ModelFile {
    (
        FileModel::Network(Arc::new(TrainedModel::built_in().clone())),
        TrainedModel::built_in_bytes().to_vec(),
    )
}

/// What tells sources apart: names, sizes and times.
fn identity(inputs: &[PathBuf]) -> Result<String> {
    let mut text = String::new();
    for path in inputs {
        let metadata = std::fs::metadata(path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        text.push_str(&format!(
            "{} {} {:?};",
            path.display(),
            metadata.len(),
            metadata.modified()?
        ));
    }
    Ok(text)
}

/// The head of the file, and whether its heights are 32-bit floats in metres.
fn header(
    arguments: &Arguments,
    info: &RasterInfo,
    (method, rate): (Method, Rate),
    model: Option<&FileModel>,
) -> Result<(Header, bool)> {
    let size = |value: usize| u32::try_from(value).context("the raster is too large");
    let (width, height) = (size(info.width())?, size(info.height())?);
    let crs = &info.georeference.crs;
    let code = |epsg: Option<u16>| epsg.map_or(0, u32::from);
    // Heights of 32 bits in metres stay so; in feet or scaled they are no longer 32-bit floats here.
    let as_f32 = info.storage.sample == SampleType::F32
        && info.unit == HeightUnit::Metre
        && (info.storage.band.scale, info.storage.band.offset) == (1.0, 0.0);
    let header = Header {
        pyramid: Pyramid::new(
            width,
            height,
            arguments.side(method),
            Pyramid::levels_for(width, height, arguments.side(method)),
        )?,
        method,
        affine: affine_numbers(&info.georeference.anchor),
        is_placed: info.georeference.placed,
        pixel_is_point: crs.pixel_is_point(),
        epsg: [code(crs.horizontal_epsg()), code(crs.vertical_epsg())],
        geo_keys: geo_keys(crs),
        wkt: String::new(),
        samples: samples(info),
        promise: match rate {
            Rate::MaxError(bound) => Promise::MaxError(bound),
            Rate::Lossless => Promise::Lossless { as_f32 },
            _ => Promise::None,
        },
        statistics: Statistics::default(),
        model: model.map(|model| ModelId {
            sha256: model.sha256(),
            name: model.name().to_owned(),
            address: String::new(),
            embedded: None,
        }),
    };
    Ok((header, as_f32))
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let mut progress = Progress::new("encode", common.progress);
    let (out, length, measured) = write(arguments, jobs(common), &mut |at| {
        progress.at(at.tiles, at.of, "tiles");
    })?;
    drop(progress);
    let pixels = measured.pixels;
    let bpp = length as f64 * 8.0 / pixels.max(1) as f64;
    if common.json {
        return print_json(&serde_json::json!({
            "file": out, "bytes": length, "bpp": bpp, "pixels": pixels,
            "rmse_m": measured.rmse_m(), "max_error_m": measured.max_error_m,
        }));
    }
    print(&format!(
        "{}: {} for {pixels} pixels, {bpp:.3} bits each; RMSE {:.4} m, greatest error {:.4} m\n",
        out.display(),
        bytes(length),
        measured.rmse_m(),
        measured.max_error_m
    ))
}

/// How near a rate of the whole file comes to its target, and how often its step is corrected.
const NEAR: f64 = 0.01;
const SEARCHES: usize = 7;

/// Writes the file; returns its path, its length and what was measured.
pub(crate) fn write<'a>(
    arguments: &'a Arguments,
    jobs: usize,
    progress: &mut dyn FnMut(EncodeProgress),
) -> Result<(&'a Path, u64, Measured)> {
    let (out, inputs) = arguments
        .files
        .split_last()
        .context("a raster and a file to write are needed")?;
    refuse_existing(out, existing(arguments.overwrite))?;
    let rate = arguments.rate()?;
    let (method, model) = arguments.method(rate)?;
    if let Some(side) = model.as_ref().and_then(|(model, _)| model.side()) {
        ensure!(
            side == usize::from(arguments.side(method)),
            "this model works on tiles of {side} pixels: leave out --tile {}",
            arguments.side(method)
        );
    }
    let raster = terrane_geo::open(inputs)?;
    let job = Job {
        arguments,
        out,
        inputs,
        raster: &*raster,
        method,
        model: model.as_ref(),
        jobs,
    };
    let is_whole = method == Method::Context && !arguments.per_tile;
    let (file, measured) = match rate {
        Rate::Rmse(target) if is_whole => {
            let error = |_, measured: &Measured| measured.rmse_m();
            job.search(
                "root mean square error",
                (target * 3.0, target, 0.8),
                error,
                progress,
            )?
        }
        Rate::Bpp(target) if is_whole => {
            let rate =
                |length, measured: &Measured| length as f64 * 8.0 / measured.pixels.max(1) as f64;
            job.search(
                "rate (with head and overviews)",
                (0.1, target, -0.6),
                rate,
                progress,
            )?
        }
        rate => job.run(rate, progress)?,
    };
    file.commit()?;
    let length = std::fs::metadata(out)?.len();
    Ok((out, length, measured))
}

/// One file to be made.
struct Job<'a> {
    arguments: &'a Arguments,
    out: &'a Path,
    inputs: &'a [PathBuf],
    raster: &'a dyn RasterSource,
    method: Method,
    model: Option<&'a ModelFile>,
    jobs: usize,
}

impl Job<'_> {
    /// Encodes with one step for all tiles until what is measured of the file is near its target; `slope` says how its
    /// logarithm follows that of the step at first.
    fn search(
        &self,
        what: &str,
        (first_m, target, slope): (f64, f64, f64),
        measure: impl Fn(u64, &Measured) -> f64,
        progress: &mut dyn FnMut(EncodeProgress),
    ) -> Result<(AtomicFile, Measured)> {
        let mut step_m = first_m;
        let mut last: Option<(f64, f64)> = None;
        for turn in 1.. {
            let (mut file, measured) = self.run(Rate::Step(step_m), progress)?;
            let reached = measure(file.file().metadata()?.len(), &measured).max(1e-12);
            let miss = (reached / target).ln();
            if miss.abs() < NEAR || turn == SEARCHES || measured.pixels == 0 {
                // Less than was asked for is what there is to have: heights without error, or a flat terrain.
                ensure!(
                    miss < 2.0 * NEAR || measured.pixels == 0,
                    "a {what} of {target} cannot be reached: it is still {reached:.4}"
                );
                return Ok((file, measured));
            }
            let found = last.map(|(at, value)| (reached.ln() - value) / (step_m.ln() - at));
            let found = found.filter(|found| found.is_finite() && found * slope > 0.0);
            let found = found.unwrap_or(slope);
            let steep = found.abs().clamp(0.1, 4.0).copysign(slope);
            last = Some((step_m.ln(), reached.ln()));
            step_m *= (-miss / steep).clamp(-3.0, 3.0).exp();
        }
        unreachable!("the last turn returns")
    }

    /// Encodes at a rate; the file appears when it is committed.
    fn run(
        &self,
        rate: Rate,
        progress: &mut dyn FnMut(EncodeProgress),
    ) -> Result<(AtomicFile, Measured)> {
        let arguments = self.arguments;
        let model = self.model.map(|(model, _)| model);
        let (header, as_f32) = header(arguments, self.raster.info(), (self.method, rate), model)?;
        let codec = TileCodec {
            model: model.cloned(),
            bits: arguments.bits.as_deref().map_or(Ok(8), str::parse)?,
            coding: if arguments.fixed_width {
                Coding::Fixed
            } else {
                Coding::Shortest
            },
            rate,
            is_f32: as_f32,
            effort: arguments.effort,
        };
        let embedded = self
            .model
            .filter(|_| arguments.embed_model)
            .map(|(_, file)| &file[..]);
        let journal = if arguments.resumable {
            let mut name = self.out.as_os_str().to_owned();
            name.push(".journal");
            let identity = identity(self.inputs)?;
            Some(Journal::open(Path::new(&name), &header, &codec, &identity)?)
        } else {
            None
        };
        let mut file = AtomicFile::create(self.out, existing(arguments.overwrite))?;
        let encoding = Encoding {
            header,
            codec: &codec,
            embedded,
            journal: journal.as_ref(),
            jobs: self.jobs,
        };
        let target = file.file().try_clone()?;
        let (writer, measured) = encoding
            .run(
                BufWriter::new(target),
                &mut |window| {
                    let grid = self.raster.read(0, window);
                    grid.map(|grid| grid.heights)
                        .map_err(|error| terrane::Error::Source(Box::new(error)))
                },
                &mut |at| {
                    progress(at);
                    Ok(())
                },
            )
            .with_context(|| format!("{} cannot be encoded", self.inputs[0].display()))?;
        drop(writer.into_inner().context("the file cannot be written")?);
        if let Some(journal) = journal {
            journal.remove()?;
        }
        Ok((file, measured))
    }
}
