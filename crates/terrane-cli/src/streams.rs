//! Standard input and output in the place of files, as `-`.
//!
//! Rasters and terrane files are read at many places and appear whole or not at all, so what comes or goes through a pipe lies in a
//! temporary file meanwhile.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use terrane_geo::{Existing, Kind, Output};

use crate::Common;
use crate::commands::OutputOptions;
use crate::output::{print, print_json, shown};

const INPUT: &str = "standard input";
const OUTPUT: &str = "standard output";

/// Temporary files by the names of the streams that they stand for.
static NAMES: Mutex<Vec<(String, &str)>> = Mutex::new(Vec::new());

/// Whether a path stands for standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A text in which temporary files have the names of their streams.
pub(crate) fn with_names(text: &str) -> String {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.iter().fold(text.to_owned(), |text, (path, name)| {
        text.replace(path.as_str(), name)
    })
}

/// A temporary file for a stream, which goes when the program ends.
fn scratch(name: &'static str, ending: &str) -> Result<(PathBuf, File)> {
    let (path, file) = terrane_geo::scratch(ending)?;
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.push((path.display().to_string(), name));
    Ok((path, file))
}

/// The file at a path; for `-` a temporary one with all of standard input.
pub(crate) fn source(path: &Path) -> Result<Cow<'_, Path>> {
    if !is_stream(path) {
        return Ok(Cow::Borrowed(path));
    }
    {
        let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let is_read = names.iter().any(|(_, name)| *name == INPUT);
        ensure!(!is_read, "- is given twice, and {INPUT} can be read once");
    }
    ensure!(
        !io::stdin().is_terminal(),
        "- reads {INPUT}, which is a terminal: pipe a file into the command"
    );
    let (path, mut file) = scratch(INPUT, "tmp")?;
    io::copy(&mut io::stdin().lock(), &mut file).context(format!("{INPUT} cannot be kept"))?;
    // Its lock lasts as long as the program, so that no other takes the file for abandoned.
    std::mem::forget(file);
    Ok(Cow::Owned(path))
}

/// Where a result goes: a file, or standard output once it is complete.
pub(crate) struct Destination<'a> {
    path: Cow<'a, Path>,
    /// The temporary file, locked, where the result goes to standard output.
    stream: Option<File>,
}

impl<'a> Destination<'a> {
    /// The file at a path; for `-` standard output, by a temporary file whose name has an ending.
    pub(crate) fn new(path: &'a Path, ending: &str) -> Result<Self> {
        if !is_stream(path) {
            return Ok(Self {
                path: Cow::Borrowed(path),
                stream: None,
            });
        }
        if io::stdout().is_terminal() {
            bail!("- writes to {OUTPUT}, which is a terminal: pipe it into a file or a command");
        }
        let (path, file) = scratch(OUTPUT, ending)?;
        Ok(Self {
            path: Cow::Owned(path),
            stream: Some(file),
        })
    }

    /// The file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file as an output that holds something of a kind.
    pub(crate) fn output(&self, options: &OutputOptions, kind: Kind) -> Output<'_> {
        if self.stream.is_some() {
            Output::named_here(&self.path, Existing::Replace)
        } else {
            options.output(&self.path, kind)
        }
    }

    /// The name that users know the result by.
    pub(crate) fn name(&self) -> String {
        if self.stream.is_some() {
            OUTPUT.to_owned()
        } else {
            shown(&self.path)
        }
    }

    /// Says what was written, as text or as JSON; beside a result on standard output it is said on standard error.
    pub(crate) fn report(
        &self,
        common: &Common,
        mut value: Value,
        text: impl FnOnce(&str) -> String,
    ) -> Result<()> {
        let name = self.name();
        value["file"] = name.clone().into();
        if self.stream.is_none() {
            return if common.json {
                print_json(&value)
            } else {
                print(&text(&name))
            };
        }
        let mut file = File::open(&self.path).context("the result cannot be read again")?;
        match io::copy(&mut file, &mut io::stdout().lock()) {
            // A reader that goes away, as `head` does, has what it wanted.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            outcome => outcome.context(format!("{OUTPUT} cannot be written"))?,
        };
        let said = if common.json {
            format!("{value}\n")
        } else {
            text(&name)
        };
        eprint!("{}", terrane::plain_lines(&said));
        Ok(())
    }
}
