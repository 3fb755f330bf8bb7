//! A raster to a neural terrain file.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use terrane::encode::{Encoding, Report};
use terrane::journal::Journal;
use terrane::{Measured, Rate};
use terrane_geo::{AtomicFile, Existing, RasterSource, refuse_existing};

use crate::{Error, Prepared, Result, Settings};

/// How near a rate of the whole file comes to its target, and how often its step is corrected.
const NEAR: f64 = 0.01;
const SEARCHES: usize = 7;

/// A file to be made.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    /// The file to write.
    pub out: &'a Path,
    /// Whether one that is there may be replaced.
    pub existing: Existing,
    /// The rasters' files, where finished tiles are kept beside the output so that the same call goes on where it was
    /// stopped.
    pub resumable: Option<&'a [PathBuf]>,
    /// Threads.
    pub jobs: usize,
}

/// Encodes a raster; returns the length of the file and what was measured.
pub fn encode(
    raster: &dyn RasterSource,
    settings: &Settings,
    file: Encoded,
    progress: &mut Report,
) -> Result<(u64, Measured)> {
    refuse_existing(file.out, file.existing)?;
    let prepared = settings.prepare()?;
    let job = Job {
        raster,
        file,
        prepared: &prepared,
    };
    let (output, measured) = match prepared.rate {
        Rate::Rmse(target) if prepared.is_whole => {
            let error = |_, measured: &Measured| measured.rmse_m();
            job.search(
                "root mean square error",
                (target * 3.0, target, 0.8),
                error,
                progress,
            )?
        }
        Rate::Bpp(target) if prepared.is_whole => {
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
    output.commit()?;
    let length = std::fs::metadata(file.out)
        .map_err(|source| Error::Unreadable {
            path: file.out.to_owned(),
            source,
        })?
        .len();
    Ok((length, measured))
}

/// What tells sources apart: names, sizes and times.
fn identity(inputs: &[PathBuf]) -> Result<String> {
    let mut text = String::new();
    for path in inputs {
        let failed = |source| Error::Unreadable {
            path: path.clone(),
            source,
        };
        let metadata = std::fs::metadata(path).map_err(failed)?;
        text.push_str(&format!(
            "{} {} {:?};",
            path.display(),
            metadata.len(),
            metadata.modified().map_err(failed)?
        ));
    }
    Ok(text)
}

struct Job<'a> {
    raster: &'a dyn RasterSource,
    file: Encoded<'a>,
    prepared: &'a Prepared,
}

impl Job<'_> {
    /// Encodes with one step for all tiles until what is measured of the file is near its target; `slope` says how its
    /// logarithm follows that of the step at first.
    fn search(
        &self,
        what: &'static str,
        (first_m, target, slope): (f64, f64, f64),
        measure: impl Fn(u64, &Measured) -> f64,
        progress: &mut Report,
    ) -> Result<(AtomicFile, Measured)> {
        let mut step_m = first_m;
        let mut last: Option<(f64, f64)> = None;
        for turn in 1.. {
            let (mut file, measured) = self.run(Rate::Step(step_m), progress)?;
            let length = file
                .file()
                .metadata()
                .map_err(|source| self.failed(source))?;
            let reached = measure(length.len(), &measured).max(1e-12);
            let miss = (reached / target).ln();
            if miss.abs() < NEAR || turn == SEARCHES || measured.pixels == 0 {
                // Less than was asked for is what there is to have: heights without error, or a flat terrain.
                if miss < 2.0 * NEAR || measured.pixels == 0 {
                    return Ok((file, measured));
                }
                return Err(Error::Unreachable {
                    what,
                    target,
                    reached,
                });
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

    fn failed(&self, source: std::io::Error) -> Error {
        Error::Unwritable {
            path: self.file.out.to_owned(),
            source,
        }
    }

    /// Encodes at a rate; the file appears when it is committed.
    fn run(&self, rate: Rate, progress: &mut Report) -> Result<(AtomicFile, Measured)> {
        let (header, codec) = self.prepared.start(self.raster.info(), rate)?;
        let journal = match self.file.resumable {
            None => None,
            Some(inputs) => {
                let mut name = self.file.out.as_os_str().to_owned();
                name.push(".journal");
                Some(Journal::open(
                    Path::new(&name),
                    &header,
                    &codec,
                    &identity(inputs)?,
                )?)
            }
        };
        let mut file = AtomicFile::create(self.file.out, self.file.existing)?;
        let encoding = Encoding {
            header,
            codec: &codec,
            embedded: self.prepared.embedded(),
            journal: journal.as_ref(),
            jobs: self.file.jobs,
        };
        let target = file
            .file()
            .try_clone()
            .map_err(|source| self.failed(source))?;
        let (writer, measured) = encoding
            .run(
                BufWriter::new(target),
                &mut |window| {
                    let grid = self.raster.read(0, window);
                    grid.map(|grid| grid.heights)
                        .map_err(|error| terrane::Error::Source(Box::new(error)))
                },
                progress,
            )
            .map_err(|source| Error::Encode {
                path: self.raster.info().path.clone(),
                source,
            })?;
        drop(
            writer
                .into_inner()
                .map_err(|error| self.failed(error.into_error()))?,
        );
        if let Some(journal) = journal {
            journal.remove()?;
        }
        Ok((file, measured))
    }
}
