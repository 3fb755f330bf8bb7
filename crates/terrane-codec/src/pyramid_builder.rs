//! Heights that become tiles: strip by strip, and half as many rows for the next level.
//!
//! A strip is a row of tiles. Only tiles that may have data are held, so memory follows what is there and not the extent
//! of the raster.

use std::collections::BTreeMap;

use terrane_format::{LevelTile, MemoryLimit, Pyramid, TileId, Window, halve};

use crate::Error;
use crate::encode::Heights;
use crate::journal::Journal;
use crate::measured::Measured;
use crate::parallel::in_parallel;
use crate::resources::Resources;
use crate::tile::TileEncoder;

/// Pixels that are read at a time, so that a strip of any width is read in parts. As wide as that a raster whose blocks
/// are whole rows is read once.
const READ_PIXELS: usize = 1 << 25;

/// A tile with data, ready to be written.
pub(crate) struct EncodedTile {
    pub(crate) level: u8,
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) measured: Measured,
}

/// Makes the tiles of strips.
pub(crate) struct Coder<'a> {
    pub(crate) pyramid: &'a Pyramid,
    encoder: &'a TileEncoder,
    journal: Option<&'a Journal>,
    jobs: usize,
    memory: MemoryLimit,
}

/// A part of a level, whose rows come from the top.
pub(crate) struct Part {
    pub(crate) level: u8,
    /// Its first tile in the level.
    pub(crate) first: TileId,
    /// Pixels.
    pub(crate) width: usize,
    /// Pixels.
    pub(crate) height: usize,
}

impl Part {
    /// A whole level.
    pub(crate) fn whole(pyramid: &Pyramid, level: u8) -> Self {
        let (width, height) = pyramid.size(level).unwrap_or_default();
        Self {
            level,
            first: TileId { column: 0, row: 0 },
            width: width as usize,
            height: height as usize,
        }
    }

    /// The same ground at half the resolution; its first tile must have an even column and row.
    pub(crate) fn halved(&self) -> Self {
        Self {
            level: self.level + 1,
            first: TileId {
                column: self.first.column / 2,
                row: self.first.row / 2,
            },
            width: self.width.div_ceil(2),
            height: self.height.div_ceil(2),
        }
    }

    /// Columns of a tile, which is counted from the part's left.
    fn columns(&self, tile: usize, side: usize) -> usize {
        side.min(self.width - tile * side)
    }
}

/// Heights of tiles of a strip, by their column in the part.
type Blocks = BTreeMap<usize, Vec<f64>>;

/// Rows of one level that wait to become tiles.
struct Strip {
    part: Part,
    /// The first row that waits.
    row: usize,
    /// How many wait.
    waiting: usize,
    /// The tiles among them that have something.
    blocks: Blocks,
}

impl Strip {
    /// Rows that the strip has when it is whole.
    fn rows(&self, side: usize) -> usize {
        side.min(self.part.height - self.row)
    }
}

/// Takes tiles in the order of a file.
pub(crate) type Take<'a> = dyn FnMut(EncodedTile) -> Result<(), Error> + 'a;

/// A part of a raster and its overviews, from the finest level that is made here to the coarsest.
pub(crate) struct PyramidBuilder<'a> {
    coder: Coder<'a>,
    strips: Vec<Strip>,
    /// Rows at half the resolution of the last level, where somebody else goes on with them.
    pub(crate) beyond: Option<Vec<f64>>,
    /// Tiles made, with or without data.
    pub(crate) done: u64,
    /// Bytes of rows that wait.
    held: u64,
}

impl<'a> PyramidBuilder<'a> {
    /// Starts at a part and makes all levels up to `last`.
    pub(crate) fn new(coder: Coder<'a>, part: Part, last: u8) -> Self {
        let is_top = last + 1 >= coder.pyramid.levels();
        let mut strips = Vec::new();
        let mut part = part;
        while part.level <= last {
            let next = part.halved();
            strips.push(Strip {
                part,
                row: 0,
                waiting: 0,
                blocks: Blocks::new(),
            });
            part = next;
        }
        Self {
            coder,
            strips,
            beyond: (!is_top).then(Vec::new),
            done: 0,
            held: 0,
        }
    }

    fn side(&self) -> usize {
        self.coder.pyramid.side().into()
    }

    /// Reads the next strip of the first level and makes its tiles. The part lies at `corner` of what is read.
    pub(crate) fn read_strip(
        &mut self,
        corner: (usize, usize),
        heights: &mut dyn Heights,
        take: &mut Take,
    ) -> Result<(), Error> {
        let side = self.side();
        let strip = &self.strips[0];
        let (row, rows) = (strip.row, strip.rows(side));
        let (width, tiles) = (strip.part.width, strip.part.width.div_ceil(side));
        let window = |first: usize, end: usize| Window {
            column: corner.0 + first * side,
            row: corner.1 + row,
            width: (end * side).min(width) - first * side,
            height: rows,
        };
        let most = (READ_PIXELS / (side * side)).max(1);
        let mut first = 0;
        while first < tiles {
            if !heights.touches(window(first, first + 1)) {
                first += 1;
                continue;
            }
            let mut end = first + 1;
            while end < tiles && end - first < most && heights.touches(window(end, end + 1)) {
                end += 1;
            }
            let part = window(first, end);
            let read = heights.read(part)?;
            let blocks = cut(&read, part.width, first, side);
            drop(read);
            self.tiles(0, blocks, take)?;
            first = end;
        }
        self.strips[0].waiting = rows;
        self.finish_strip(0, take)
    }

    /// Adds whole rows of the first level; full strips become tiles.
    pub(crate) fn push_rows(&mut self, rows: &[f64], take: &mut Take) -> Result<(), Error> {
        let side = self.side();
        let width = self.strips[0].part.width;
        for (tile, block) in cut(rows, width, 0, side) {
            let columns = self.strips[0].part.columns(tile, side);
            self.add(0, tile * side, columns, &block)?;
        }
        self.advance(0, rows.len() / width, take)
    }

    /// Puts a block at a column of pixels into the rows of a level that come next.
    fn add(
        &mut self,
        index: usize,
        column: usize,
        width: usize,
        block: &[f64],
    ) -> Result<(), Error> {
        let side = self.side();
        let Some(strip) = self.strips.get_mut(index) else {
            return Ok(());
        };
        let tile = column / side;
        let (wide, rows) = (strip.part.columns(tile, side), strip.rows(side));
        if !strip.blocks.contains_key(&tile) {
            self.held += (wide * rows * 8) as u64;
            self.coder.memory.check(
                "the overviews of so wide a raster",
                self.held,
                "take smaller tiles, or ",
            )?;
        }
        let into = strip
            .blocks
            .entry(tile)
            .or_insert_with(|| vec![f64::NAN; wide * rows]);
        for (row, heights) in block.chunks_exact(width).enumerate() {
            let start = (strip.waiting + row) * wide + column % side;
            into[start..start + width].copy_from_slice(heights);
        }
        Ok(())
    }

    /// Counts rows that were added to a level; a full strip becomes tiles.
    fn advance(&mut self, index: usize, rows: usize, take: &mut Take) -> Result<(), Error> {
        let side = self.side();
        let Some(strip) = self.strips.get_mut(index) else {
            return Ok(());
        };
        strip.waiting += rows;
        if strip.waiting < strip.rows(side) {
            return Ok(());
        }
        let blocks = std::mem::take(&mut strip.blocks);
        self.held -= blocks
            .values()
            .map(|block| block.len() as u64 * 8)
            .sum::<u64>();
        self.tiles(index, blocks, take)?;
        self.finish_strip(index, take)
    }

    /// Makes tiles of the strip at hand, and adds them at half the resolution to the next level.
    fn tiles(&mut self, index: usize, blocks: Blocks, take: &mut Take) -> Result<(), Error> {
        let side = self.side();
        let strip = &self.strips[index];
        let level = strip.part.level;
        let first = TileId {
            column: strip.part.first.column,
            row: strip.part.first.row + strip.row / side,
        };
        for tile in self.coder.tiles(level, first, &blocks)? {
            take(tile)?;
        }
        let is_last = index + 1 == self.strips.len();
        for (tile, block) in blocks {
            let width = self.strips[index].part.columns(tile, side);
            let (column, half) = (tile * side / 2, halve(&block, width));
            if is_last {
                self.add_beyond(index, column, width.div_ceil(2), &half);
            } else {
                self.add(index + 1, column, width.div_ceil(2), &half)?;
            }
        }
        Ok(())
    }

    /// Puts a block into the rows that somebody else goes on with.
    fn add_beyond(&mut self, index: usize, column: usize, width: usize, block: &[f64]) {
        let part = &self.strips[index].part;
        let (across, down) = (part.width.div_ceil(2), part.height.div_ceil(2));
        let first = self.strips[index].row / 2;
        let Some(beyond) = &mut self.beyond else {
            return;
        };
        beyond.resize(across * down, f64::NAN);
        for (row, heights) in block.chunks_exact(width).enumerate() {
            let start = (first + row) * across + column;
            beyond[start..start + width].copy_from_slice(heights);
        }
    }

    fn finish_strip(&mut self, index: usize, take: &mut Take) -> Result<(), Error> {
        let side = self.side();
        let strip = &mut self.strips[index];
        let rows = std::mem::take(&mut strip.waiting);
        strip.row += rows;
        self.done += strip.part.width.div_ceil(side) as u64;
        if index + 1 == self.strips.len()
            && let Some(beyond) = &mut self.beyond
        {
            // Rows without any data count too.
            let part = &self.strips[index].part;
            beyond.resize(part.width.div_ceil(2) * part.height.div_ceil(2), f64::NAN);
        }
        self.advance(index + 1, rows.div_ceil(2), take)
    }
}

/// Rows cut into tiles, the first of which has a number; those without any data are left out.
fn cut(rows: &[f64], width: usize, first: usize, side: usize) -> Blocks {
    let mut blocks = Blocks::new();
    for (tile, start) in (0..width).step_by(side).enumerate() {
        let end = (start + side).min(width);
        let part = || rows.chunks_exact(width).map(|row| &row[start..end]);
        if part().any(|row| row.iter().any(|height| !height.is_nan())) {
            blocks.insert(first + tile, part().flatten().copied().collect());
        }
    }
    blocks
}

impl<'a> Coder<'a> {
    /// A coder with as many threads as the resources allow.
    pub(crate) fn new(
        pyramid: &'a Pyramid,
        encoder: &'a TileEncoder,
        journal: Option<&'a Journal>,
        resources: Resources,
    ) -> Result<Self, Error> {
        let jobs = resources.jobs_of(encoder.encoding_bytes(pyramid.side().into()))?;
        Ok(Self {
            pyramid,
            encoder,
            journal,
            jobs,
            memory: resources.memory,
        })
    }

    /// Encodes tiles of one strip on all threads; those with data, in their order.
    fn tiles(&self, level: u8, first: TileId, blocks: &Blocks) -> Result<Vec<EncodedTile>, Error> {
        let blocks: Vec<(&usize, &Vec<f64>)> = blocks.iter().collect();
        let done = in_parallel(blocks.len(), self.jobs, &|index| {
            let (column, heights) = blocks[index];
            let id = TileId {
                column: first.column + column,
                row: first.row,
            };
            self.tile(LevelTile { level, id }, heights)
        })?;
        Ok(done.into_iter().flatten().collect())
    }

    /// Encodes a tile; `None` where it has no data.
    fn tile(&self, tile: LevelTile, heights: &[f64]) -> Result<Option<EncodedTile>, Error> {
        let window = self.pyramid.window(tile)?;
        let number = self.pyramid.number(tile)?;
        let encoded = |(bytes, measured)| EncodedTile {
            level: tile.level,
            number,
            bytes,
            measured,
        };
        if let Some(known) = self.journal.and_then(|journal| journal.tile(number)) {
            return Ok(Some(encoded(known)));
        }
        let encoder = self.encoder.for_level(tile.level);
        let Some(coded) = encoder.encode(heights, window)? else {
            return Ok(None);
        };
        let measured = coded.measured;
        let bytes = coded.to_bytes(number);
        if tile.level == 0 {
            encoder.check_reached(&bytes, window)?;
        }
        Ok(Some(encoded((bytes, measured))))
    }
}
