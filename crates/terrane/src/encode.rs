//! A raster of any size to a file: strip by strip, all cores, the same bytes however many there are.

use std::io::{Seek, Write};

use terrane_format::{Header, Window, Writer};

use crate::Error;
use crate::cascade::{Cascade, Coder, EncodedTile, Part};
use crate::journal::Journal;
use crate::measured::Measured;
use crate::tile_codec::TileCodec;

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

/// Reads the heights of a window at full resolution, NaN where there is no data.
pub type ReadHeights<'a> = dyn FnMut(Window) -> Result<Vec<f64>, Error> + 'a;

/// Is told after every strip how far an encoding is.
pub type Report<'a> = dyn FnMut(EncodeProgress) -> Result<(), Error> + 'a;

/// What is to be made.
#[derive(Debug)]
pub struct Encoding<'a> {
    /// The head of the file; statistics and the model's place are filled in.
    pub header: Header,
    /// How tiles are coded.
    pub codec: &'a TileCodec,
    /// The model's file, where it is to be in the file.
    pub embedded: Option<&'a [u8]>,
    /// Tiles that need not be made again.
    pub journal: Option<&'a Journal>,
    /// Threads.
    pub jobs: usize,
}

impl Encoding<'_> {
    /// Encodes a raster that is read by strips of rows. Returns the file and what was measured at full resolution.
    ///
    /// Tiles that the journal knows are taken from it. Overviews are means of two by two valid pixels. Every tile is
    /// computed on one thread, so the bytes do not depend on their number.
    pub fn run<W: Write + Seek>(
        self,
        file: W,
        read: &mut ReadHeights,
        progress: &mut Report,
    ) -> Result<(W, Measured), Error> {
        let pyramid = self.header.pyramid.clone();
        let mut writer = Writer::create(file, self.header)?;
        if let Some(bytes) = self.embedded {
            writer.embed_model(bytes)?;
        }
        let coder = Coder {
            pyramid: &pyramid,
            codec: self.codec,
            journal: self.journal,
            jobs: self.jobs,
        };
        let part = Part::whole(&pyramid, 0);
        let (width, height) = (part.width, part.height);
        let mut cascade = Cascade::new(coder, part, pyramid.levels() - 1);
        let mut measured = Measured::default();
        let side = usize::from(pyramid.side());
        for row in (0..height).step_by(side) {
            let window = Window {
                column: 0,
                row,
                width,
                height: side.min(height - row),
            };
            let rows = read(window)?;
            cascade.push(rows, &mut |tile: EncodedTile| {
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
                tiles: cascade.done,
                of: pyramid.tiles(),
                bytes: writer.length(),
            })?;
        }
        Ok((writer.finish(measured.of_file())?, measured))
    }
}
