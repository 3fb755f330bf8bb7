//! A raster to a terrane file.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use terrane_codec::encode::{Encoding, Heights, Report};
use terrane_codec::format::{Error as FormatError, Window};
use terrane_codec::journal::Journal;
use terrane_codec::step_search::{Slope, StepSearch};
use terrane_codec::{Measured, Rate, Resources};
use terrane_geo::{AtomicFile, Existing, Output, RasterSource};

use crate::{Error, Prepared, Result};

/// How near a rate of the whole file comes to what is aimed at, and how often its step is tried.
const NEAR: f64 = 0.0015;
const MAX_TRIES: usize = 10;
/// What is aimed at, as a part of the target: what is near it is not above the target.
const AIM: f64 = 1.0 - NEAR;

/// Where an encoding goes and what it may use.
#[derive(Debug, Clone)]
pub struct Destination<'a> {
    /// The file to write.
    pub out: Output<'a>,
    /// The rasters' files, where finished tiles are kept beside the output so that the same call goes on where it was
    /// stopped.
    pub resumable: Option<&'a [PathBuf]>,
    /// Threads and memory.
    pub resources: Resources,
}

/// A file that was made.
#[derive(Debug, Clone, Copy)]
pub struct Encoded {
    /// Its bytes.
    pub bytes: u64,
    /// What was measured.
    pub measured: Measured,
    /// Pixels of the raster whose value is neither a height nor declared as nodata: infinite, or absurdly large. They
    /// have no data in the file.
    pub not_heights: u64,
    /// Whether the journal could not be removed, though the file is complete.
    pub is_journal_left: bool,
}

/// Encodes a raster.
pub fn encode(
    raster: &dyn RasterSource,
    prepared: &Prepared,
    destination: Destination,
    progress: &mut Report,
) -> Result<Encoded> {
    let made = make(raster, prepared, destination, progress)?;
    made.file.commit()?;
    // The file is there, whatever becomes of its journal.
    let is_removed = made.journal.is_none_or(|journal| journal.remove().is_ok());
    Ok(Encoded {
        is_journal_left: !is_removed,
        ..made.encoded
    })
}

/// Encodes a raster to a file that only needs its name.
pub(crate) fn make(
    raster: &dyn RasterSource,
    prepared: &Prepared,
    destination: Destination,
    progress: &mut Report,
) -> Result<Made> {
    destination.out.check()?;
    let job = Job {
        raster,
        destination,
        prepared,
    };
    let made = match prepared.rate {
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
    // Half of a raster before a change and half of it after is neither.
    raster.check_unchanged()?;
    Ok(made)
}

/// What tells sources apart: names, sizes and times, also of what no program can set back.
fn identity(inputs: &[PathBuf]) -> Result<String> {
    let mut text = String::new();
    for path in inputs {
        let failed = |source| Error::Unreadable {
            path: path.clone(),
            source,
        };
        let metadata = std::fs::metadata(path).map_err(failed)?;
        text.push_str(&format!(
            "{} {} {:?} {:?};",
            path.display(),
            metadata.len(),
            metadata.modified().map_err(failed)?,
            changed(&metadata)
        ));
    }
    Ok(text)
}

/// When the bytes of a file changed last, whatever time it was given since.
#[cfg(unix)]
fn changed(metadata: &std::fs::Metadata) -> (i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn changed(_: &std::fs::Metadata) {}

/// The heights of a raster, with a count of those that are none.
pub(crate) struct RasterHeights<'a> {
    pub(crate) raster: &'a dyn RasterSource,
    pub(crate) not_heights: u64,
}

impl Heights for RasterHeights<'_> {
    fn read(&mut self, window: Window) -> std::result::Result<Vec<f64>, terrane_codec::Error> {
        let grid = self.raster.read(0, window);
        let grid = grid.map_err(|error| terrane_codec::Error::Source(Box::new(error)))?;
        self.not_heights += grid.not_heights as u64;
        Ok(grid.heights)
    }

    fn block_width(&self) -> usize {
        self.raster.block_width()
    }

    fn touches(&self, window: Window) -> bool {
        self.raster.touches(window)
    }
}

/// What stopped an encoding: the raster, the file that is written, or what stands between them.
pub(crate) fn failure(error: terrane_codec::Error, raster: &Path, out: &Path) -> Error {
    match error {
        terrane_codec::Error::Source(cause) => match cause.downcast::<terrane_geo::Error>() {
            Ok(cause) => Error::Raster(*cause),
            Err(cause) => Error::Encode {
                path: raster.to_owned(),
                source: terrane_codec::Error::Source(cause),
            },
        },
        // Rasters are read elsewhere: what is left is the output.
        terrane_codec::Error::Format(FormatError::Io(source)) => Error::Unwritable {
            path: out.to_owned(),
            source,
        },
        source @ terrane_codec::Error::Stopped => Error::Terrain(source),
        source => Error::Encode {
            path: raster.to_owned(),
            source,
        },
    }
}

struct Job<'a> {
    raster: &'a dyn RasterSource,
    destination: Destination<'a>,
    prepared: &'a Prepared,
}

/// A file that only needs its name.
pub(crate) struct Made {
    pub(crate) file: AtomicFile,
    pub(crate) encoded: Encoded,
    journal: Option<Journal>,
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
    ) -> Result<Made> {
        let slope = Slope {
            first: slope,
            min: 0.1,
            max: 4.0,
            contradicted: slope.abs(),
        };
        let mut search = StepSearch::new(first_m, target * AIM, slope);
        // The nearest below the target that was found so far, by its step.
        let mut best: Option<(f64, f64)> = None;
        let mut turn = 1;
        loop {
            let step_m = search.step();
            let made = self.run(Rate::Step(step_m), progress)?;
            let Encoded {
                bytes, measured, ..
            } = made.encoded;
            let reached = measure(bytes, &measured);
            let miss = search.miss(reached);
            if miss.abs() <= NEAR || measured.pixels == 0 {
                return Ok(made);
            }
            if reached <= target && best.is_none_or(|(_, most)| reached > most) {
                best = Some((step_m, reached));
            }
            // Where another step changes nothing, tokens alone are above or below the target.
            if turn == MAX_TRIES || search.is_stuck(reached) {
                // Less than was asked for is what there is to have: heights without error, or a flat terrain.
                let Some((best_m, _)) = best else {
                    return Err(Error::Unreachable {
                        what,
                        target,
                        reached,
                    });
                };
                if best_m == step_m {
                    return Ok(made);
                }
                drop(made);
                return self.run(Rate::Step(best_m), progress);
            }
            search.correct(reached);
            turn += 1;
        }
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::Unwritable {
            path: self.destination.out.path().to_owned(),
            source,
        }
    }

    /// Encodes at a rate; the file appears when it is committed.
    fn run(&self, rate: Rate, progress: &mut Report) -> Result<Made> {
        let (header, encoder) = self.prepared.start(self.raster.info(), rate)?;
        let out = &self.destination.out;
        let journal = match self.destination.resumable {
            None => None,
            Some(inputs) => {
                let mut name = out.path().as_os_str().to_owned();
                name.push(".journal");
                let name = Path::new(&name);
                Output::named_here(name, Existing::Replace)
                    .made_of(inputs)
                    .check()?;
                let identity = identity(inputs)?;
                Some(Journal::open(name, &header, &encoder, &identity)?)
            }
        };
        let mut file = AtomicFile::create(out)?;
        let encoding = Encoding {
            header,
            encoder: &encoder,
            embedded: self.prepared.embedded(),
            journal: journal.as_ref(),
            resources: self.destination.resources,
        };
        let target = file
            .file()
            .try_clone()
            .map_err(|source| self.failed(source))?;
        let mut heights = RasterHeights {
            raster: self.raster,
            not_heights: 0,
        };
        let (writer, measured) = encoding
            .run(BufWriter::new(target), &mut heights, progress)
            .map_err(|error| failure(error, &self.raster.info().path, out.path()))?;
        let written = writer
            .into_inner()
            .map_err(|error| self.failed(error.into_error()))?;
        let bytes = written
            .metadata()
            .map_err(|source| self.failed(source))?
            .len();
        Ok(Made {
            file,
            encoded: Encoded {
                bytes,
                measured,
                not_heights: heights.not_heights,
                is_journal_left: false,
            },
            journal,
        })
    }
}
