//! `terrane verify`: whether a file is whole, and how far it is from its source.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};
use terrane::format::Error as FormatError;
use terrane_convert::Verification;

use crate::Common;
use crate::commands::{CheckFailed, FileArguments, jobs};
use crate::output::{print, print_json};
use crate::progress::Progress;

/// Check every checksum and every tile of a file; with --against also every height, the place and the promise.
///
/// Gradients and Laplacians are differences of neighbouring pixels, in metres per pixel and per pixel². bpp counts all
/// bytes of the file over the pixels with data. Ends with 1 where a check does not hold.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  terrane verify dem.trn --against dem.tif")]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
    /// The raster the file was made from, or several that were one mosaic.
    #[arg(long, value_name = "IN.tif", num_args = 1..)]
    against: Vec<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let terrain = arguments.file.terrain().map_err(|error| {
        // A file that is not whole is a check that did not hold; one that is not there is an error.
        match error.downcast_ref::<terrane::Error>() {
            Some(terrane::Error::Format(cause))
                if !matches!(cause, FormatError::Io(_) | FormatError::Remote { .. }) =>
            {
                CheckFailed(format!("{error:#}")).into()
            }
            _ => error,
        }
    })?;
    let name = || arguments.file.path().display().to_string();
    let mut shown: Option<(&str, Progress)> = None;
    let found = terrane_convert::verify(
        &terrain,
        &arguments.against,
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
    let Verification { mut report, failed } = found.map_err(|error| match error {
        terrane_convert::Error::Terrain(error) => {
            anyhow::Error::new(CheckFailed(format!("{}: {error}", name())))
        }
        error => error.into(),
    })?;
    report.insert("file".into(), json!(arguments.file.path()));
    if common.json {
        print_json(&report)?;
    } else {
        let text: String = report
            .iter()
            .map(|(key, value)| format!("{key:<16}{}\n", plain(value)))
            .collect();
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
