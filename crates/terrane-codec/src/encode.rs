//! A raster of any size to a file: tree by tree, all cores, the same bytes however many there are.

use std::io::{Seek, Write};

use terrane_format::{Header, Pyramid, Window, Writer};

use crate::Error;
use crate::journal::Journal;
use crate::measured::{Measured, MeasuredLevels};
use crate::pyramid_builder::{Coder, Part, PyramidBuilder, Storey};
use crate::resources::Resources;
use crate::tile::TileEncoder;
use crate::tree::EncodedTree;

/// What an encoding reports after every tree.
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

    /// Columns of the blocks in which heights are stored: where they are wide, more is read at once. 0 where nobody knows.
    fn block_width(&self) -> usize {
        0
    }

    /// Whether there may be data in a window; what cannot have any is not read, and takes no memory.
    fn touches(&self, window: Window) -> bool {
        let _ = window;
        true
    }

    /// The heights of a window beside those that are encoded, which are or were read by themselves.
    fn read_around(&mut self, window: Window) -> Result<Vec<f64>, Error> {
        self.read(window)
    }
}

impl<F: FnMut(Window) -> Result<Vec<f64>, Error>> Heights for F {
    fn read(&mut self, window: Window) -> Result<Vec<f64>, Error> {
        self(window)
    }
}

/// Is told after every tree how far an encoding is.
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
    /// Encodes a raster that is read by rows of trees. Returns the file and what was measured at full resolution.
    ///
    /// Trees that the journal knows are taken from it. Every tile is computed on one thread, so the bytes do not depend on
    /// their number.
    pub fn run<W: Write + Seek>(
        self,
        file: W,
        heights: &mut dyn Heights,
        progress: &mut Report,
    ) -> Result<(W, Measured), Error> {
        let pyramid = self.header.pyramid.clone();
        let mut writer = Writer::create(file, self.header, self.embedded.is_some())?;
        if let Some(bytes) = self.embedded {
            writer.embed_model(bytes)?;
        }
        let coder = Coder::new(&pyramid, self.encoder, self.journal, self.resources)?;
        let part = Part::whole(&pyramid, 0);
        let side = Storey::of(&pyramid, 0).side;
        let (_, height) = pyramid.size(0).unwrap_or_default();
        let mut builder = PyramidBuilder::new(coder, part, pyramid.levels() - 1);
        let mut measured = MeasuredLevels::new(&pyramid);
        let mut teller = Teller::new(progress, pyramid.tiles());
        for _ in 0..(height as usize).div_ceil(side) {
            let mut done = builder.done;
            builder.read_strip((0, 0), heights, &mut |tree: EncodedTree| {
                if let Some(journal) = self.journal {
                    journal.keep(&tree)?;
                }
                write(&mut writer, &mut measured, &pyramid, &tree)?;
                done += tree.tiles.len() as u64;
                teller.tell(done, writer.length())
            })?;
            // Trees without data are done too.
            teller.tell(builder.done, writer.length())?;
        }
        let file = writer.finish(measured.of_file(), measured.overviews())?;
        Ok((file, measured.full()))
    }
}

/// Tells how far an encoding is, wherever that is farther than before.
pub(crate) struct Teller<'a, 'b> {
    report: &'a mut Report<'b>,
    of: u64,
    told: u64,
}

impl<'a, 'b> Teller<'a, 'b> {
    pub(crate) fn new(report: &'a mut Report<'b>, of: u64) -> Self {
        Self {
            report,
            of,
            told: 0,
        }
    }

    pub(crate) fn tell(&mut self, tiles: u64, bytes: u64) -> Result<(), Error> {
        if tiles <= self.told {
            return Ok(());
        }
        self.told = tiles;
        let of = self.of;
        (self.report)(EncodeProgress { tiles, of, bytes })
    }
}

/// Writes a tree and counts what was measured of it.
pub(crate) fn write<W: Write + Seek>(
    writer: &mut Writer<W>,
    measured: &mut MeasuredLevels,
    pyramid: &Pyramid,
    tree: &EncodedTree,
) -> Result<(), Error> {
    let records: Vec<&[u8]> = tree.tiles.iter().map(|tile| &tile.bytes[..]).collect();
    writer.tree(tree.number, &records)?;
    if let Some(root) = pyramid.tree(tree.number) {
        for (tile, encoded) in pyramid.tree_tiles(root).iter().zip(&tree.tiles) {
            measured.join(tile.level, &encoded.measured);
        }
    }
    Ok(())
}
