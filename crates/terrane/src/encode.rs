//! A raster to a terrane file.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use terrane_codec::encode::{Encoding, Heights, Report};
use terrane_codec::format::{Error as FormatError, Window};
use terrane_codec::journal::Journal;
use terrane_codec::{Measured, Rate, Resources, TileEncoder};
use terrane_geo::{AtomicFile, Existing, Grid, Output, RasterSource};

use crate::rate_search::{Goal, RateSearch};
use crate::{Error, Prepared, Reached, Result};

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
    /// How it stands to the rate or the error of the whole file that was asked for.
    pub reached: Reached,
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
            RateSearch::new(&job, Goal::Rmse(target)).run(progress)?
        }
        Rate::Bpp(target) if prepared.is_whole => {
            RateSearch::new(&job, Goal::Bpp(target)).run(progress)?
        }
        rate => job.run(rate, prepared.effort(), progress)?,
    };
    // Half of a raster before a change and half of it after is neither.
    raster.check_unchanged()?;
    Ok(made)
}

/// The heights of a raster, with a count of those that are none.
pub(crate) struct RasterHeights<'a> {
    pub(crate) raster: &'a dyn RasterSource,
    pub(crate) not_heights: u64,
}

impl RasterHeights<'_> {
    fn grid(&self, window: Window) -> std::result::Result<Grid, terrane_codec::Error> {
        let grid = self.raster.read(0, window);
        grid.map_err(|error| terrane_codec::Error::Source(Box::new(error)))
    }
}

impl Heights for RasterHeights<'_> {
    fn read(&mut self, window: Window) -> std::result::Result<Vec<f64>, terrane_codec::Error> {
        let grid = self.grid(window)?;
        self.not_heights += grid.not_heights as u64;
        Ok(grid.heights)
    }

    fn read_around(
        &mut self,
        window: Window,
    ) -> std::result::Result<Vec<f64>, terrane_codec::Error> {
        // What is none is counted where it is encoded.
        Ok(self.grid(window)?.heights)
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

/// An encoding, at any rate.
pub(crate) struct Job<'a> {
    pub(crate) raster: &'a dyn RasterSource,
    destination: Destination<'a>,
    pub(crate) prepared: &'a Prepared,
}

/// A file that only needs its name.
pub(crate) struct Made {
    pub(crate) file: AtomicFile,
    pub(crate) encoded: Encoded,
    journal: Option<Journal>,
}

impl Job<'_> {
    fn failed(&self, source: std::io::Error) -> Error {
        Error::Unwritable {
            path: self.destination.out.path().to_owned(),
            source,
        }
    }

    /// Encodes at a rate with an effort; the file appears when it is committed.
    pub(crate) fn run(&self, rate: Rate, effort: u8, progress: &mut Report) -> Result<Made> {
        let (header, encoder) = self.prepared.start(self.raster.info(), rate)?;
        let encoder = TileEncoder { effort, ..encoder };
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
                let identity = self.raster.identity();
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
                reached: Reached::Target,
            },
            journal,
        })
    }
}
