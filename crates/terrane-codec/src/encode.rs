//! A raster of any size to a file: strip by strip, all cores, the same bytes however many there are.

use std::io::{Seek, Write};

use terrane_format::{Header, TileGrid, Window, Writer};

use crate::Error;
use crate::journal::Journal;
use crate::measured::Measured;
use crate::pyramid_builder::{Coder, EncodedTile, Part, PyramidBuilder};
use crate::resources::Resources;
use crate::tile::TileEncoder;

/// What an encoding reports after every strip.
#[derive(Debug, Clone, Copy)]
pub struct EncodeProgress {
    /// Tiles done, with or without data.
    pub tiles: u64,
    /// Tiles in all.
    pub of: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Heights at full resolution, read by windows.
pub trait Heights {
    /// The heights of a window, row by row, NaN where there is no data.
    fn read(&mut self, window: Window) -> Result<Vec<f64>, Error>;

    /// Whether there may be data in a window; what cannot have any is not read, and takes no memory.
    fn touches(&self, window: Window) -> bool {
        let _ = window;
        true
    }
}

impl<F: FnMut(Window) -> Result<Vec<f64>, Error>> Heights for F {
    fn read(&mut self, window: Window) -> Result<Vec<f64>, Error> {
        self(window)
    }
}

/// Is told after every strip how far an encoding is.
pub type Report<'a> = dyn FnMut(EncodeProgress) -> Result<(), Error> + 'a;

/// What is to be made.
#[derive(Debug)]
pub struct Encoding<'a> {
    /// The head of the file; statistics and the model's offset are filled in.
    pub header: Header,
    /// How tiles are coded.
    pub encoder: &'a TileEncoder,
    /// The model's file, where it is to be in the file.
    pub embedded: Option<&'a [u8]>,
    /// Tiles that need not be made again.
    pub journal: Option<&'a Journal>,
    /// Threads and memory.
    pub resources: Resources,
}

impl Encoding<'_> {
    /// Encodes a raster that is read by strips of rows. Returns the file and what was measured at full resolution.
    ///
    /// Tiles that the journal knows are taken from it. Overviews are means of two by two valid pixels. Every tile is
    /// computed on one thread, so the bytes do not depend on their number.
    pub fn run<W: Write + Seek>(
        self,
        file: W,
        heights: &mut dyn Heights,
        progress: &mut Report,
    ) -> Result<(W, Measured), Error> {
        let pyramid = self.header.pyramid.clone();
        let mut writer = Writer::create(file, self.header)?;
        if let Some(bytes) = self.embedded {
            writer.embed_model(bytes)?;
        }
        let coder = Coder::new(&pyramid, self.encoder, self.journal, self.resources)?;
        let part = Part::whole(&pyramid, 0);
        let rows = pyramid.grid(0).map_or(0, TileGrid::rows);
        let mut builder = PyramidBuilder::new(coder, part, pyramid.levels() - 1);
        let mut measured = Measured::default();
        for _ in 0..rows {
            builder.read_strip((0, 0), heights, &mut |tile: EncodedTile| {
                writer.tile(tile.number, &tile.bytes)?;
                if let Some(journal) = self.journal {
                    journal.keep(tile.number, &tile.bytes, &tile.measured)?;
                }
                if tile.level == 0 {
                    measured.join(&tile.measured);
                }
                Ok(())
            })?;
            progress(EncodeProgress {
                tiles: builder.done,
                of: pyramid.tiles(),
                bytes: writer.length(),
            })?;
        }
        Ok((writer.finish(measured.of_file())?, measured))
    }
}
