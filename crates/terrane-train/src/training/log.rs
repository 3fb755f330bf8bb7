//! The log of a run: one JSON object per line, none of a step that will be taken again.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use terrane_geo::Existing;

use crate::data::Dataset;
use crate::output::refuse_inputs;
use crate::training::Start;
use crate::training::checkpoint::{CHECKPOINT, CONFIG, METRICS, MODEL, write_bytes};
use crate::{Error, Result};

/// The lines of `metrics.jsonl`.
pub(crate) struct Log {
    file: File,
    path: PathBuf,
    /// The step of the last checkpoint.
    pub(crate) checkpoint: Option<usize>,
    /// The seconds that were noted last, of a run that goes on.
    pub(crate) elapsed_s: f64,
}

impl Log {
    /// Refuses to begin a run where another is, or where it would write over anything.
    pub(crate) fn check(folder: &Path, start: Start, dataset: &Dataset) -> Result<()> {
        refuse_inputs(folder, &[dataset.folder()])?;
        if start == Start::Resume {
            return Ok(());
        }
        let path = folder.to_owned();
        if folder.join(CONFIG).exists() {
            return Err(Error::RunExists { path });
        }
        match [METRICS, CHECKPOINT, MODEL]
            .iter()
            .find(|name| folder.join(name).exists())
        {
            Some(name) => Err(Error::Occupied {
                path,
                name: (*name).to_owned(),
            }),
            None => Ok(()),
        }
    }

    pub(crate) fn open(folder: &Path, config: &str, start: Start, step: usize) -> Result<Self> {
        let failed = |path: &Path, source| Error::Io {
            path: path.to_owned(),
            action: "be written",
            source,
        };
        let path = folder.join(METRICS);
        let mut elapsed_s = 0.0;
        if start == Start::New {
            std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
            write_bytes(&folder.join(CONFIG), config.as_bytes(), Existing::Refuse)?;
        } else {
            // Lines after the checkpoint belong to steps that will be taken again.
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let mut kept = String::new();
            for line in text.lines() {
                let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else {
                    continue;
                };
                if value["step"].as_u64().is_some_and(|at| at <= step as u64) {
                    kept.push_str(line);
                    kept.push('\n');
                    elapsed_s = value["elapsed_s"].as_f64().unwrap_or(elapsed_s);
                }
            }
            write_bytes(&path, kept.as_bytes(), Existing::Replace)?;
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|error| failed(&path, error))?;
        Ok(Self {
            file,
            path,
            checkpoint: (start == Start::Resume).then_some(step),
            elapsed_s,
        })
    }

    pub(crate) fn line(&mut self, value: &serde_json::Value) -> Result<()> {
        writeln!(self.file, "{value}").map_err(|source| Error::Io {
            path: self.path.clone(),
            action: "be written",
            source,
        })
    }
}
