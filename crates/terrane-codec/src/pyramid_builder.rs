//! Heights that become trees: row by row of trees, and at a coarser resolution the next storey.
//!
//! One tree is encoded at a time, its tiles on all threads. Of the coarser storeys only trees that may have data are held, so
//! memory follows what is there and not the extent of the raster.

use std::collections::{BTreeMap, BTreeSet};

use terrane_format::{LevelTile, MemoryLimit, Pyramid, TileId, Window, halve};

use crate::Error;
use crate::encode::Heights;
use crate::journal::Journal;
use crate::resources::Resources;
use crate::tile::{Rate, TileEncoder};
use crate::tree::{EncodedTree, TreeEncoder};
use crate::water::{self, Around};

/// Pixels that are read at a time where blocks are wider than trees, so that one is read a few times and not for each tree.
const READ_PIXELS: usize = 1 << 23;

/// Some levels whose tiles belong to the same trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Storey {
    /// Its finest level.
    pub(crate) first: u8,
    /// The level of its roots.
    pub(crate) root: u8,
    /// Pixels across a tree at its finest level.
    pub(crate) side: usize,
}

impl Storey {
    /// The storey that a level belongs to.
    pub(crate) fn of(pyramid: &Pyramid, level: u8) -> Self {
        let (first, root) = (pyramid.storey(level), pyramid.root_level(level));
        Self {
            first,
            root,
            side: usize::from(pyramid.side()) << (root - first),
        }
    }

    /// The next one, of half the resolution of its roots; `None` at the top.
    pub(crate) fn above(&self, pyramid: &Pyramid) -> Option<Self> {
        (self.root + 1 < pyramid.levels()).then(|| Self::of(pyramid, self.root + 1))
    }

    /// A number of pixels of its finest level at the finest level of the next.
    pub(crate) fn coarsened(&self, pixels: usize) -> usize {
        pixels.div_ceil(1 << (self.root + 1 - self.first))
    }

    /// Heights at the resolution of the next storey.
    fn coarsen(&self, heights: &[f64], width: usize) -> Vec<f64> {
        let mut width = width;
        let mut heights = halve(heights, width);
        for _ in self.first..self.root {
            width = width.div_ceil(2);
            heights = halve(&heights, width);
        }
        heights
    }
}

/// Makes trees.
pub(crate) struct Coder<'a> {
    pub(crate) pyramid: &'a Pyramid,
    encoder: &'a TileEncoder,
    journal: Option<&'a Journal>,
    /// The trees that are made, by number, where not all are.
    only: Option<&'a BTreeSet<u64>>,
    jobs: usize,
    memory: MemoryLimit,
}

/// A part of a storey, whose rows come from the top.
pub(crate) struct Part {
    storey: Storey,
    /// Its first root.
    first: TileId,
    /// Pixels at the finest level.
    width: usize,
    /// Pixels at the finest level.
    height: usize,
}

impl Part {
    /// A whole storey, by any of its levels.
    pub(crate) fn whole(pyramid: &Pyramid, level: u8) -> Self {
        let storey = Storey::of(pyramid, level);
        let (width, height) = pyramid.size(storey.first).unwrap_or_default();
        Self {
            storey,
            first: TileId { column: 0, row: 0 },
            width: width as usize,
            height: height as usize,
        }
    }

    /// A window at full resolution, which starts where a tree does.
    pub(crate) fn of_window(pyramid: &Pyramid, window: Window) -> Self {
        let storey = Storey::of(pyramid, 0);
        Self {
            storey,
            first: TileId {
                column: window.column / storey.side,
                row: window.row / storey.side,
            },
            width: window.width,
            height: window.height,
        }
    }

    /// The same ground in the next storey; `None` at the top.
    fn above(&self, pyramid: &Pyramid) -> Option<Self> {
        let storey = self.storey.above(pyramid)?;
        let start = |tree: usize| self.storey.coarsened(tree * self.storey.side) / storey.side;
        Some(Self {
            storey,
            first: TileId {
                column: start(self.first.column),
                row: start(self.first.row),
            },
            width: self.storey.coarsened(self.width),
            height: self.storey.coarsened(self.height),
        })
    }

    /// Trees across.
    fn trees(&self) -> usize {
        self.width.div_ceil(self.storey.side)
    }

    /// Columns of a tree, which is counted from the part's left.
    fn columns(&self, tree: usize) -> usize {
        let side = self.storey.side;
        side.min(self.width - tree * side)
    }
}

/// Heights of trees of a strip, by their column in the part.
type Blocks = BTreeMap<usize, Vec<f64>>;

/// Rows of one storey that wait to become trees.
struct Strip {
    part: Part,
    /// The first row that waits.
    row: usize,
    /// How many wait.
    waiting: usize,
    /// The trees among them that have something.
    blocks: Blocks,
}

impl Strip {
    /// Rows that the strip has when it is whole.
    fn rows(&self) -> usize {
        self.part.storey.side.min(self.part.height - self.row)
    }
}

/// Takes trees in the order of a file.
pub(crate) type Take<'a> = dyn FnMut(EncodedTree) -> Result<(), Error> + 'a;

/// A part of a raster and its overviews, from the finest storey that is made here to the coarsest.
pub(crate) struct PyramidBuilder<'a> {
    coder: Coder<'a>,
    strips: Vec<Strip>,
    /// Heights at the resolution of the next storey, where somebody else goes on with them.
    pub(crate) beyond: Option<Vec<f64>>,
    /// Tiles made, with or without data.
    pub(crate) done: u64,
    /// Bytes of rows that wait.
    held: u64,
}

impl<'a> PyramidBuilder<'a> {
    /// Starts at a part and makes all storeys up to the one whose roots have the level `last`.
    pub(crate) fn new(coder: Coder<'a>, part: Part, last: u8) -> Self {
        let is_top = last + 1 >= coder.pyramid.levels();
        let mut strips = Vec::new();
        let mut next = Some(part);
        while let Some(part) = next.filter(|part| part.storey.root <= last) {
            next = part.above(coder.pyramid);
            strips.push(Strip {
                part,
                row: 0,
                waiting: 0,
                blocks: Blocks::new(),
            });
        }
        Self {
            coder,
            strips,
            beyond: (!is_top).then(Vec::new),
            done: 0,
            held: 0,
        }
    }

    /// Reads the next strip of the first storey and makes its trees. The part lies at `corner` of what is read.
    pub(crate) fn read_strip(
        &mut self,
        corner: (usize, usize),
        heights: &mut dyn Heights,
        take: &mut Take,
    ) -> Result<(), Error> {
        let strip = &self.strips[0];
        let side = strip.part.storey.side;
        let (row, rows) = (strip.row, strip.rows());
        let (width, trees) = (strip.part.width, strip.part.trees());
        let window = |first: usize, end: usize| Window {
            column: corner.0 + first * side,
            row: corner.1 + row,
            width: (end * side).min(width) - first * side,
            height: rows,
        };
        let most = match heights.block_width() {
            wide if wide > side => (READ_PIXELS / (side * side)).max(1),
            _ => 1,
        };
        let mut first = 0;
        while first < trees {
            if !heights.touches(window(first, first + 1)) {
                first += 1;
                continue;
            }
            let mut end = first + 1;
            while end < trees && end - first < most && heights.touches(window(end, end + 1)) {
                end += 1;
            }
            let part = window(first, end);
            let read = heights.read(part)?;
            if end == first + 1 {
                if read.iter().any(|height| !height.is_nan()) {
                    self.tree(0, first, read, Some((part, heights)), take)?;
                }
                first = end;
                continue;
            }
            for tree in first..end {
                let columns = self.strips[0].part.columns(tree);
                let start = (tree - first) * side;
                if let Some(block) = cut(&read, part.width, start, columns) {
                    let place = window(tree, tree + 1);
                    self.tree(0, tree, block, Some((place, heights)), take)?;
                }
            }
            first = end;
        }
        self.strips[0].waiting = rows;
        self.finish_strip(0, take)
    }

    /// Adds whole rows of the first storey; full strips become trees.
    pub(crate) fn push_rows(&mut self, rows: &[f64], take: &mut Take) -> Result<(), Error> {
        let part = &self.strips[0].part;
        let (side, width, trees) = (part.storey.side, part.width, part.trees());
        for tree in 0..trees {
            let columns = self.strips[0].part.columns(tree);
            if let Some(block) = cut(rows, width, tree * side, columns) {
                self.add(0, tree * side, columns, &block)?;
            }
        }
        self.advance(0, rows.len() / width, take)
    }

    /// Puts a block at a column of pixels into the rows of a storey that come next.
    fn add(
        &mut self,
        index: usize,
        column: usize,
        width: usize,
        block: &[f64],
    ) -> Result<(), Error> {
        let Some(strip) = self.strips.get_mut(index) else {
            return Ok(());
        };
        let side = strip.part.storey.side;
        let tree = column / side;
        let (wide, rows) = (strip.part.columns(tree), strip.rows());
        if !strip.blocks.contains_key(&tree) {
            self.held += (wide * rows * 8) as u64;
            self.coder.memory.check(
                "the overviews of so wide a raster",
                self.held,
                "take smaller tiles, or ",
            )?;
        }
        let into = strip
            .blocks
            .entry(tree)
            .or_insert_with(|| vec![f64::NAN; wide * rows]);
        for (row, heights) in block.chunks_exact(width).enumerate() {
            let start = (strip.waiting + row) * wide + column % side;
            into[start..start + width].copy_from_slice(heights);
        }
        Ok(())
    }

    /// Counts rows that were added to a storey; a full strip becomes trees.
    fn advance(&mut self, index: usize, rows: usize, take: &mut Take) -> Result<(), Error> {
        let Some(strip) = self.strips.get_mut(index) else {
            return Ok(());
        };
        strip.waiting += rows;
        if strip.waiting < strip.rows() {
            return Ok(());
        }
        let blocks = std::mem::take(&mut strip.blocks);
        for (tree, block) in blocks {
            self.held -= block.len() as u64 * 8;
            self.tree(index, tree, block, None, take)?;
        }
        self.finish_strip(index, take)
    }

    /// Makes a tree of the strip at hand, and adds its heights to the next storey. At full resolution it has a place in
    /// what is read.
    fn tree(
        &mut self,
        index: usize,
        tree: usize,
        block: Vec<f64>,
        place: Option<(Window, &mut dyn Heights)>,
        take: &mut Take,
    ) -> Result<(), Error> {
        let part = &self.strips[index].part;
        let storey = part.storey;
        let id = TileId {
            column: part.first.column + tree,
            row: part.first.row + self.strips[index].row / storey.side,
        };
        let width = part.columns(tree);
        let is_last = index + 1 == self.strips.len();
        // At the top there is nothing coarser.
        if !is_last || self.beyond.is_some() {
            let (column, wide) = (
                storey.coarsened(tree * storey.side),
                storey.coarsened(width),
            );
            let coarse = storey.coarsen(&block, width);
            if is_last {
                self.add_beyond(index, column, wide, &coarse);
            } else {
                self.add(index + 1, column, wide, &coarse)?;
            }
        }
        let level = storey.root;
        let encoded = self.coder.tree(LevelTile { level, id }, block, place)?;
        if encoded.has_data() {
            take(encoded)?;
        }
        Ok(())
    }

    /// Puts a block into the rows that somebody else goes on with.
    fn add_beyond(&mut self, index: usize, column: usize, width: usize, block: &[f64]) {
        let part = &self.strips[index].part;
        let storey = part.storey;
        let (across, down) = (storey.coarsened(part.width), storey.coarsened(part.height));
        let first = storey.coarsened(self.strips[index].row);
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
        let strip = &mut self.strips[index];
        let storey = strip.part.storey;
        let rows = std::mem::take(&mut strip.waiting);
        self.done += self.coder.tiles(storey, &strip.part, rows);
        strip.row += rows;
        if index + 1 == self.strips.len()
            && let Some(beyond) = &mut self.beyond
        {
            // Rows without any data count too.
            let part = &self.strips[index].part;
            let (across, down) = (storey.coarsened(part.width), storey.coarsened(part.height));
            beyond.resize(across * down, f64::NAN);
        }
        self.advance(index + 1, storey.coarsened(rows), take)
    }
}

/// Some columns of rows; `None` where they have no data.
fn cut(rows: &[f64], width: usize, start: usize, columns: usize) -> Option<Vec<f64>> {
    let part = || {
        rows.chunks_exact(width)
            .map(|row| &row[start..start + columns])
    };
    part()
        .any(|row| row.iter().any(|height| !height.is_nan()))
        .then(|| part().flatten().copied().collect())
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
            only: None,
            jobs,
            memory: resources.memory,
        })
    }

    /// Makes these trees alone.
    pub(crate) fn only(self, trees: &'a BTreeSet<u64>) -> Self {
        Self {
            only: Some(trees),
            ..self
        }
    }

    /// Tiles of all levels of a storey in some rows of a part.
    fn tiles(&self, storey: Storey, part: &Part, rows: usize) -> u64 {
        let side = usize::from(self.pyramid.side());
        (0..=storey.root - storey.first)
            .map(|above| {
                let tiles = |pixels: usize| (pixels.div_ceil(side << above)) as u64;
                tiles(part.width) * tiles(rows)
            })
            .sum()
    }

    /// Encodes the tree of a root.
    fn tree(
        &self,
        root: LevelTile,
        heights: Vec<f64>,
        place: Option<(Window, &mut dyn Heights)>,
    ) -> Result<EncodedTree, Error> {
        let number = self.pyramid.tree_number(root)?;
        if self.only.is_some_and(|only| !only.contains(&number)) {
            let tiles = Vec::new();
            return Ok(EncodedTree { number, tiles });
        }
        let known = self.journal.and_then(|journal| journal.tree(number));
        if let Some(known) = known {
            return Ok(known);
        }
        let trees = TreeEncoder {
            encoder: self.encoder,
            pyramid: self.pyramid,
            jobs: self.jobs,
        };
        let water = match place {
            Some((window, around)) if self.encoder.rate != Rate::Lossless => {
                let (columns, rows) = self.pyramid.size(0).unwrap_or_default();
                let around = Around {
                    size: [columns as usize, rows as usize],
                    window,
                    heights: around,
                };
                water::find(&heights, window.width, Some(around))?
            }
            _ => None,
        };
        trees.encode(root, heights, water)
    }
}
