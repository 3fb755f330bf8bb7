//! Some trees of a file once more, from the raster it was made of.

use std::collections::BTreeSet;

use terrane_format::{Pyramid, TileId, Window};

use crate::Error;
use crate::encode::Heights;
use crate::pyramid_builder::{Coder, Part, PyramidBuilder, Storey};
use crate::resources::Resources;
use crate::tile::TileEncoder;
use crate::tree::EncodedTree;

/// A tree that was made again.
#[derive(Debug)]
pub struct RemadeTree {
    /// Its number.
    pub number: u64,
    /// The records of its tiles in the order of a file; empty for a tile without one.
    pub records: Vec<Vec<u8>>,
}

/// What is to be made again.
#[derive(Debug)]
pub struct Remaking<'a> {
    /// The raster of the file, its levels and tiles.
    pub pyramid: &'a Pyramid,
    /// How tiles are coded.
    pub encoder: &'a TileEncoder,
    /// The trees, by number.
    pub trees: &'a BTreeSet<u64>,
    /// Threads and memory.
    pub resources: Resources,
}

/// The heights below some trees; all others are not read.
struct Below<'a> {
    heights: &'a mut dyn Heights,
    windows: Vec<Window>,
}

impl Heights for Below<'_> {
    fn read(&mut self, window: Window) -> Result<Vec<f64>, Error> {
        self.heights.read(window)
    }

    fn block_width(&self) -> usize {
        self.heights.block_width()
    }

    fn touches(&self, window: Window) -> bool {
        let is_below = |other: &Window| other.intersection(&window).is_some();
        self.windows.iter().any(is_below) && self.heights.touches(window)
    }

    fn read_around(&mut self, window: Window) -> Result<Vec<f64>, Error> {
        self.heights.read_around(window)
    }
}

impl Remaking<'_> {
    /// The ground of a tree at full resolution.
    fn ground(&self, number: u64) -> Option<Window> {
        let root = self.pyramid.tree(number)?;
        let (width, height) = self.pyramid.size(0)?;
        let (width, height) = (width as usize, height as usize);
        let side = usize::from(self.pyramid.side()) << root.level;
        let TileId { column, row } = root.id;
        let (column, row) = (column * side, row * side);
        Some(Window {
            column,
            row,
            width: side.min(width.checked_sub(column)?),
            height: side.min(height.checked_sub(row)?),
        })
    }

    /// Makes the trees as an encoding would, in its order; those without data are left out. Only the ground below them is
    /// read. `progress` is told how many rows of trees are done, and of how many.
    pub fn run(
        &self,
        heights: &mut dyn Heights,
        take: &mut dyn FnMut(RemadeTree) -> Result<(), Error>,
        progress: &mut dyn FnMut(u64, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let windows = self.trees.iter().filter_map(|&tree| self.ground(tree));
        let mut below = Below {
            windows: windows.collect(),
            heights,
        };
        let coder = Coder::new(self.pyramid, self.encoder, None, self.resources)?;
        let coder = coder.only(self.trees);
        let part = Part::whole(self.pyramid, 0);
        let side = Storey::of(self.pyramid, 0).side;
        let (_, height) = self.pyramid.size(0).unwrap_or_default();
        let rows = (height as usize).div_ceil(side);
        let mut builder = PyramidBuilder::new(coder, part, self.pyramid.levels() - 1);
        for row in 0..rows {
            builder.read_strip((0, 0), &mut below, &mut |tree: EncodedTree| {
                let records = tree.tiles.into_iter().map(|tile| tile.bytes);
                take(RemadeTree {
                    number: tree.number,
                    records: records.collect(),
                })
            })?;
            progress(row as u64 + 1, rows as u64)?;
        }
        Ok(())
    }
}
