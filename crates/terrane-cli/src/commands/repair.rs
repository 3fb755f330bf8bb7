//! `terrane repair`: a damaged file made whole again from its raster.

use std::path::PathBuf;

use anyhow::{Result, bail};
use terrane::{HeadRepair, Hints, Repaired, Repairing};
use terrane_codec::Profile;
use terrane_codec::format::Method;
use terrane_geo::{Existing, Kind, Output};

use crate::Common;
use crate::commands::OutputOptions;
use crate::commands::encode::{RateArguments, methods, profiles};
use crate::commands::raster::RasterArguments;
use crate::output::{print, print_json};
use crate::progress::Progress;

/// Make a damaged file whole again, byte for byte, from the raster that it was made from.
///
/// Only the trees that are damaged are encoded again, and nothing is taken on trust: every new record must have the length
/// that the index states, records of the same tree that are whole must come out as they are, and the checksum of a damaged
/// record, where it survived, must be that of the new one. One wrong byte of the head or of a page of the index is found by
/// its checksum. Where more of the head is lost, the raster is encoded anew, and whatever differs from the file must be
/// damaged there. A raster that is not the file's is refused, and then nothing is written.
///
/// The head states nearly all of how a file was encoded, and the effort is tried. Options below are needed where it is lost,
/// or where --rmse or --bpp were reached --per-tile.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane repair dem.trn whole.trn --from dem.tif\n  terrane repair dem.trn --from west.tif east.tif --in-place\n  terrane repair headless.trn whole.trn --from dem.tif --max-error 0.05 --profile best"
)]
pub(crate) struct Arguments {
    /// The damaged file.
    file: PathBuf,
    /// The file to write.
    #[arg(value_name = "OUT", required_unless_present = "in_place")]
    out: Option<PathBuf>,
    /// The raster that the file was made from, or several that were one mosaic, in the same order.
    #[arg(long, value_name = "IN.tif", num_args = 1.., required = true)]
    from: Vec<PathBuf>,
    /// Replace the damaged file, once the whole one is complete.
    #[arg(long, conflicts_with_all = ["out", "overwrite"])]
    in_place: bool,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    hints: HintArguments,
    #[command(flatten)]
    raster: RasterArguments,
}

/// How the file was encoded, for what it does not say any more.
#[derive(clap::Args)]
#[command(next_help_heading = "How the file was encoded, where it does not say so any more")]
struct HintArguments {
    /// Its method.
    #[arg(long, value_parser = methods())]
    method: Option<Method>,
    /// Its profile.
    #[arg(long, value_parser = profiles())]
    profile: Option<Profile>,
    /// Its effort.
    #[arg(long, value_name = "N")]
    effort: Option<u8>,
    /// Its model, where that is neither in the file nor in the program.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    #[command(flatten)]
    rate: RateArguments,
    /// Bits of its tokens' symbols.
    #[arg(long, value_name = "N")]
    bits: Option<u8>,
    /// Its symbols are stored in their width.
    #[arg(long)]
    fixed_width: bool,
    /// Side of its tiles.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(16..=4096))]
    tile: Option<u16>,
}

impl HintArguments {
    fn hints(&self) -> Hints {
        Hints {
            target: self.rate.target(),
            per_tile: self.rate.per_tile,
            method: self.method,
            profile: self.profile,
            effort: self.effort,
            model: self.model.clone(),
            tile: self.tile,
            bits: self.bits,
            fixed_width: self.fixed_width,
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let hints = arguments.hints.hints();
    let out = match &arguments.out {
        Some(out) => arguments
            .output
            .output(out, Kind::Terrain)
            .made_of([&arguments.file]),
        None if arguments.in_place => Output::new(&arguments.file, Existing::Replace, Kind::Any),
        None => bail!("say where the whole file goes: OUT, or --in-place"),
    };
    let out = out.made_of(&arguments.from).made_of(&arguments.hints.model);
    out.check()?;
    let repairing = Repairing {
        from: &arguments.from,
        options: arguments.raster.options(),
        hints,
        out: out.clone(),
        resources: common.resources(),
    };
    let mut shown: Option<(&str, Progress)> = None;
    let repaired = terrane::repair(&arguments.file, &repairing, &mut |what, done, of, unit| {
        if shown.as_ref().is_none_or(|(before, _)| *before != what) {
            shown = Some((what, Progress::new(what, common.progress)));
        }
        if let Some((_, progress)) = &mut shown {
            progress.at(done, of, unit);
        }
    });
    drop(shown);
    let repaired = repaired?;
    if common.json {
        let mut report = repaired.json();
        report["file"] = out.path().display().to_string().into();
        return print_json(&report);
    }
    let path = out.path().display();
    print(&format!("{path}: {}\n", summary(&repaired)))
}

/// What was repaired, in a sentence.
fn summary(repaired: &Repaired) -> String {
    if repaired.was_whole() {
        return "the file was whole, nothing was to be repaired".into();
    }
    let count = |number: u64, one: &str, more: &str| match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        number => Some(format!("{number} {more}")),
    };
    let parts = [
        match repaired.head {
            HeadRepair::Whole => None,
            HeadRepair::Mended => Some("one byte of the head".to_owned()),
            HeadRepair::Anew => Some("the head".to_owned()),
        },
        count(repaired.pages, "page of the index", "pages of the index"),
        count(repaired.records, "record", "records"),
        repaired.model.then(|| "the model".to_owned()),
        repaired.length.then(|| "the length".to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let mut text = format!("repaired {}", parts.join(", "));
    if repaired.unproven > 0 {
        text.push_str(&format!(
            "; of {} nothing had survived to compare with but the length, the settings of its neighbours and the errors that the head states",
            count(repaired.unproven, "record", "records").unwrap_or_default()
        ));
    }
    text
}
