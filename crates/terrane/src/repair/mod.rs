//! A damaged file made whole again from the raster that it was made of, byte for byte.
//!
//! The encoder gives the same bytes for the same heights and settings, so what is damaged can be made once more. The head
//! states nearly all settings; the few that it does not are tried until the records come out as the file has them. Nothing
//! is taken on trust: every record that is made must have the length that the index states, a record of the same tree that is
//! whole must come out as it is, and the checksum of a damaged record, where it survived, must be that of the new one.

mod anew;
mod difference;
mod gaps;
mod settings;
#[cfg(test)]
mod tests;
mod trees;

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use terrane_codec::format::{ByteSource, Error as FormatError, LocalFile, Reader, limits, salvage};
use terrane_codec::{Resources, Terrain, TerrainOptions};
use terrane_geo::{AtomicFile, Output, RasterOptions, RasterSource};

pub use self::settings::Hints;
use self::trees::Trees;
use crate::open::MODELS;
use crate::verify::{Report, verify};
use crate::{Error, Result};

/// How near the errors of a repaired file must be to those that its head states, as a part of them: they are summed up in
/// another order.
const SAME: f64 = 1e-9;
/// Bytes of the damaged file that are held at a time while it is copied.
const COPIED_AT_ONCE: usize = 1 << 20;

/// What a file is repaired from, and where the result goes.
#[derive(Debug, Clone)]
pub struct Repairing<'a> {
    /// The raster that the file was made from, or several that were one mosaic.
    pub from: &'a [PathBuf],
    /// How the raster was read then.
    pub options: RasterOptions,
    /// What is known of how it was encoded, where the file does not say it.
    pub hints: Hints,
    /// The whole file; it may be the damaged one, which is then replaced once the new one is complete.
    pub out: Output<'a>,
    /// Threads and memory.
    pub resources: Resources,
}

/// What became of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadRepair {
    /// It was whole.
    Whole,
    /// One byte of it was wrong, which its checksum told.
    Mended,
    /// It was lost: everything was encoded anew, and compared with what was left.
    Anew,
}

/// What was repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repaired {
    /// Bytes of the whole file.
    pub bytes: u64,
    /// The head.
    pub head: HeadRepair,
    /// Pages of the index that were damaged.
    pub pages: u64,
    /// Records that were damaged.
    pub records: u64,
    /// Records of them of which neither checksum nor content survived: their length, the settings and the errors that the
    /// head states are right.
    pub unproven: u64,
    /// Whether the model inside the file was damaged.
    pub model: bool,
    /// Whether the file was too short or too long.
    pub length: bool,
}

impl Repaired {
    /// Whether nothing was damaged.
    pub fn was_whole(&self) -> bool {
        let Self {
            bytes: _,
            head,
            pages,
            records,
            unproven: _,
            model,
            length,
        } = *self;
        head == HeadRepair::Whole && pages == 0 && records == 0 && !model && !length
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "bytes": self.bytes,
            "was_whole": self.was_whole(),
            "head": match self.head {
                HeadRepair::Whole => "whole",
                HeadRepair::Mended => "mended",
                HeadRepair::Anew => "anew",
            },
            "pages": self.pages,
            "records": self.records,
            "unproven": self.unproven,
            "model": self.model,
            "length": self.length,
        })
    }
}

/// Makes a damaged file whole: equal to what it was in every byte, or an error, and then nothing is written. A file that is
/// whole is copied, or left as it is where it is the output.
pub fn repair(path: &Path, repairing: &Repairing, progress: &mut Report) -> Result<Repaired> {
    let job = Job { path, repairing };
    job.run(progress).map_err(|error| job.named(error))
}

/// The work on one file.
pub(crate) struct Job<'a> {
    path: &'a Path,
    repairing: &'a Repairing<'a>,
}

impl Job<'_> {
    fn run(&self, progress: &mut Report) -> Result<Repaired> {
        let damaged = LocalFile::open(self.path).map_err(|error| self.unreadable(error))?;
        let start = self.read(&damaged, 0, limits::HEAD)?;
        let (head, kind) = match salvage::head_length(&start) {
            Some(length) => (start[..length].to_vec(), HeadRepair::Whole),
            None => match salvage::mended_head(&start) {
                Some(head) => (head, HeadRepair::Mended),
                None => return self.anew(&damaged, &start, HeadRepair::Anew, progress),
            },
        };
        self.in_parts(&damaged, &head, kind, progress)
    }

    /// The damaged file and the raster are named where they are read: what has no name yet is the file that is made.
    fn named(&self, error: Error) -> Error {
        match error {
            Error::Terrain(terrane_codec::Error::Format(FormatError::Io(source))) => {
                self.unwritable(source)
            }
            error => error,
        }
    }

    fn unreadable(&self, error: FormatError) -> Error {
        match error {
            FormatError::Io(source) => Error::Unreadable {
                path: self.path.to_owned(),
                source,
            },
            error => error.into(),
        }
    }

    fn not_remade(&self) -> Error {
        Error::NotRemade {
            path: self.path.to_owned(),
        }
    }

    fn unwritable(&self, source: std::io::Error) -> Error {
        Error::Unwritable {
            path: self.repairing.out.path().to_owned(),
            source,
        }
    }

    fn read(&self, file: &LocalFile, offset: u64, length: usize) -> Result<Vec<u8>> {
        file.read(offset, length)
            .map_err(|error| self.unreadable(error))
    }

    fn raster(&self) -> Result<Box<dyn RasterSource>> {
        Ok(terrane_geo::open_with(
            self.repairing.from,
            &self.repairing.options,
        )?)
    }

    /// Whether the output is the damaged file itself.
    fn is_in_place(&self) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let out = real(self.repairing.out.path());
        out.is_some() && out == real(self.path)
    }

    /// Repairs what is damaged behind a head that is known.
    fn in_parts(
        &self,
        damaged: &LocalFile,
        head: &[u8],
        kind: HeadRepair,
        progress: &mut Report,
    ) -> Result<Repaired> {
        let bytes = Reader::stated_length(head)?;
        let found = damaged.length().map_err(|error| self.unreadable(error))?;
        let mut repaired = Repaired {
            bytes,
            head: kind,
            pages: 0,
            records: 0,
            unproven: 0,
            model: false,
            length: found != bytes,
        };
        let mut file = AtomicFile::create(&self.repairing.out)?;
        self.copy(damaged, found.min(bytes), file.file())?;
        file.file()
            .set_len(bytes)
            .map_err(|source| self.unwritable(source))?;
        write_at(file.file(), 0, head).map_err(|source| self.unwritable(source))?;
        let trees = Trees::find(self, file.file(), progress)?;
        if !trees.repair(self, damaged, file.file(), &mut repaired, progress)? {
            drop(file);
            return self.anew(damaged, head, kind, progress);
        }
        if repaired.was_whole() && self.is_in_place() {
            return Ok(repaired);
        }
        self.check(file.file(), &repaired, progress)?;
        file.commit()?;
        Ok(repaired)
    }

    /// Copies so many bytes of the damaged file.
    fn copy(&self, damaged: &LocalFile, bytes: u64, out: &mut File) -> Result<()> {
        for offset in (0..bytes).step_by(COPIED_AT_ONCE) {
            let length = (bytes - offset).min(COPIED_AT_ONCE as u64) as usize;
            let part = self.read(damaged, offset, length)?;
            out.write_all(&part)
                .map_err(|source| self.unwritable(source))?;
        }
        Ok(())
    }

    /// A file that is being written, as one that is read.
    fn open_reader(&self, file: &File) -> Result<Reader> {
        let file = file.try_clone().map_err(|source| self.unwritable(source))?;
        Ok(Reader::open(Box::new(LocalFile::from_file(file)?))?)
    }

    /// Checks that the result is whole, before it gets its name.
    fn check(&self, file: &File, repaired: &Repaired, progress: &mut Report) -> Result<()> {
        let reader = self.open_reader(file)?;
        reader.check_layout()?;
        reader.embedded_model(self.repairing.resources.memory)?;
        if repaired.unproven == 0 {
            return Ok(());
        }
        // Of a record that is all lost only the whole can tell: its errors must be those that were measured.
        let model = settings::model(&reader, &self.repairing.hints, self.repairing.resources)?;
        let options = TerrainOptions {
            models: MODELS,
            model: model.map(|(model, _)| model),
            memory: self.repairing.resources.memory,
        };
        let source = file.try_clone().map_err(|source| self.unwritable(source))?;
        let terrain = Terrain::open(Box::new(LocalFile::from_file(source)?), options)?;
        let found = verify(
            &terrain,
            self.repairing.from,
            &self.repairing.options,
            self.repairing.resources.jobs,
            progress,
        )?;
        if !found.damaged.is_empty() {
            return Err(self.not_remade());
        }
        let stated = terrain.header().statistics;
        let number = |name: &str| found.report.get(name).and_then(Value::as_f64);
        let is_near = |found: Option<f64>, stated: f64| {
            found.is_some_and(|found| (found - stated).abs() <= SAME * stated.abs())
        };
        let nodata_equal = found.report.get("nodata_equal") == Some(&json!(true));
        if nodata_equal
            && is_near(number("rmse_m"), stated.rmse_m)
            && is_near(number("max_error_m"), stated.max_error_m)
        {
            Ok(())
        } else {
            Err(self.not_remade())
        }
    }
}

/// Writes bytes at an offset.
fn write_at(file: &mut File, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)
}
