//! `terrane verify`: whether a file is whole, and how far it is from its source.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};
use terrane::{Error, Verification, is_damage};

use crate::Common;
use crate::commands::raster::RasterArguments;
use crate::commands::{CheckFailed, FileArguments, jobs};
use crate::output::{one_line, print, print_json, sentence};
use crate::progress::Progress;

/// Check every checksum and every tile of a file; with --against also every height, the georeference and the error bound.
///
/// Damage does not end the check: every damaged record is listed with the tiles that it reaches, a damaged page of the index
/// with its trees, and all others are still decoded; only a file that is whole is compared with its source, which is read
/// with the options with which it was encoded.
///
/// Gradients and Laplacians are differences of neighbouring pixels, in metres per pixel and per pixel². bpp counts all
/// bytes of the file over the pixels with data. Ends with 0 where everything holds, with 1 where the file is damaged or is
/// not what it says, and with 2 where that cannot be found out: because something cannot be read, or needs a model or
/// more memory.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  terrane verify dem.trn --against dem.tif")]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
    /// The raster the file was made from, or several that were one mosaic.
    #[arg(long, value_name = "IN.tif", num_args = 1..)]
    against: Vec<PathBuf>,
    #[command(flatten)]
    raster: RasterArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    // A file that is not whole is a check that did not hold; one that is not there is an error.
    let judge = |error: anyhow::Error| {
        let cause = error.downcast_ref::<Error>();
        let is_failure = match cause {
            Some(Error::Open { source, .. } | Error::Terrain(source)) => is_damage(source),
            Some(Error::OtherSize { .. }) => true,
            _ => false,
        };
        let text = sentence(&error);
        match cause {
            _ if !is_failure => error,
            Some(Error::Open { .. }) => CheckFailed(text).into(),
            _ => CheckFailed(format!(
                "{}: {text}",
                terrane_codec::shown(arguments.file.path())
            ))
            .into(),
        }
    };
    let terrain = arguments.file.terrain(common).map_err(judge)?;
    let name = || terrane_codec::shown(arguments.file.path());
    let mut shown: Option<(&str, Progress)> = None;
    let found = terrane::verify(
        &terrain,
        &arguments.against,
        &arguments.raster.options(),
        jobs(common),
        &mut |what, done, of, unit| {
            if shown.as_ref().is_none_or(|(before, _)| *before != what) {
                shown = Some((what, Progress::new(what, common.progress)));
            }
            if let Some((_, progress)) = &mut shown {
                progress.at(done, of, unit);
            }
        },
    );
    drop(shown);
    let Verification {
        mut report,
        damaged,
        failed,
    } = found.map_err(|error| judge(error.into()))?;
    report.insert("file".into(), json!(name()));
    if common.json {
        print_json(&report)?;
    } else {
        let mut text: String = report
            .iter()
            .filter(|(key, _)| *key != "damaged")
            .map(|(key, value)| format!("{key:<22}{}\n", plain(value)))
            .collect();
        for damage in &damaged {
            text.push_str(&format!(
                "{:<22}{}\n",
                "damaged",
                one_line(&damage.to_string())
            ));
        }
        print(&text)?;
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(CheckFailed(format!("{}: {}", name(), failed.join("; "))).into())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            format!("{:.6}", number.as_f64().unwrap_or_default())
        }
        other => other.to_string(),
    }
}
