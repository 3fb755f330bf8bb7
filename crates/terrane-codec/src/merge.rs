//! Shards to the file that one encoding of the whole raster would have made, byte for byte.
//!
//! Records are copied in the order in which an encoding writes them, errors are summed up in that order, and the levels
//! that need several shards are made from the rows that shards keep for them.

use std::collections::HashMap;
use std::io::{Seek, Write};

use terrane_format::{ByteSource, Header, LevelTile, Pyramid, TileId, Writer};

use crate::Error;
use crate::division::Division;
use crate::encode::{EncodeProgress, Report, write};
use crate::measured::{Measured, MeasuredLevels};
use crate::pyramid_builder::{Coder, Part, PyramidBuilder, Storey};
use crate::resources::Resources;
use crate::shard::{ShardFile, ShardId};
use crate::tile::TileEncoder;
use crate::tree::EncodedTree;

/// Shards that are kept open from the check on: programs may open a thousand files, and have others.
const OPEN: usize = 256;

/// Opens the file of a shard.
pub type OpenShard<'a> = dyn FnMut(u32) -> Result<Box<dyn ByteSource>, Error> + 'a;

/// A file to be made of shards.
#[derive(Debug)]
pub struct Merge<'a> {
    /// The head of the file; statistics and the model's offset are filled in.
    pub header: Header,
    /// How tiles of coarse overviews are coded.
    pub encoder: &'a TileEncoder,
    /// The model's file, where it is to be in the file.
    pub embedded: Option<&'a [u8]>,
    /// How the raster was divided.
    pub division: &'a Division,
    /// SHA-256 of the plan.
    pub plan: [u8; 32],
    /// Threads and memory.
    pub resources: Resources,
}

impl Merge<'_> {
    /// Checks all shards, then writes the file. Returns it and what was measured at full resolution.
    pub fn run<W: Write + Seek>(
        self,
        file: W,
        open: &mut OpenShard,
        progress: &mut Report,
    ) -> Result<(W, Measured), Error> {
        let pyramid = self.header.pyramid.clone();
        self.division.check(&pyramid)?;
        let mut shards = Shards {
            division: self.division,
            pyramid: &pyramid,
            plan: self.plan,
            open,
            known: HashMap::new(),
        };
        // Whatever is missing should be known before anything is written.
        for number in 0..self.division.areas.len() {
            let shard = shards.read(number)?;
            if shards.known.len() < OPEN {
                shards.known.insert(number, shard);
            }
        }
        let mut writer = Writer::create(file, self.header, self.embedded.is_some())?;
        if let Some(bytes) = self.embedded {
            writer.embed_model(bytes)?;
        }
        let coder = Coder::new(&pyramid, self.encoder, None, self.resources)?;
        let top = self.division.top;
        let coarse = (top + 1 < pyramid.levels()).then(|| {
            let part = Part::whole(&pyramid, top + 1);
            PyramidBuilder::new(coder, part, pyramid.levels() - 1)
        });
        let mut state = State {
            pyramid: &pyramid,
            top,
            shards,
            coarse,
            writer,
            measured: MeasuredLevels::new(&pyramid),
            done: 0,
        };
        let storey = Storey::of(&pyramid, 0);
        for row in 0..rows(&pyramid, storey) {
            state.shards.forget_above(row << storey.root);
            state.strip(storey, row)?;
            let coarse = state.coarse.as_ref().map_or(0, |builder| builder.done);
            progress(EncodeProgress {
                tiles: state.done + coarse,
                of: pyramid.tiles(),
                bytes: state.writer.length(),
            })?;
        }
        let State {
            writer, measured, ..
        } = state;
        let file = writer.finish(measured.of_file(), measured.overviews())?;
        Ok((file, measured.full()))
    }
}

/// Rows of trees of a storey.
fn rows(pyramid: &Pyramid, storey: Storey) -> usize {
    let grid = pyramid.grid(storey.root);
    grid.map_or(0, terrane_format::TileGrid::rows)
}

/// The shards that are open.
struct Shards<'a> {
    division: &'a Division,
    pyramid: &'a Pyramid,
    plan: [u8; 32],
    open: &'a mut OpenShard<'a>,
    known: HashMap<usize, ShardFile>,
}

impl Shards<'_> {
    fn read(&mut self, index: usize) -> Result<ShardFile, Error> {
        let number = index as u32;
        let id = ShardId {
            plan: self.plan,
            number,
        };
        let source = (self.open)(number)?;
        ShardFile::open(
            source,
            id,
            self.pyramid,
            &self.division.areas[index],
            self.division.top,
        )
    }

    fn shard(&mut self, index: usize) -> Result<&ShardFile, Error> {
        if !self.known.contains_key(&index) {
            let shard = self.read(index)?;
            self.known.insert(index, shard);
        }
        Ok(&self.known[&index])
    }

    /// Closes the shards that end above a row of tiles.
    fn forget_above(&mut self, row: usize) {
        self.known.retain(|&index, _| {
            let area = &self.division.areas[index];
            area.row + area.rows > row
        });
    }

    /// The shards of a row of tiles at full resolution, from the left.
    fn across(&self, row: usize) -> Vec<usize> {
        let areas = &self.division.areas;
        let mut found: Vec<usize> = (0..areas.len())
            .filter(|&index| {
                (areas[index].row..areas[index].row + areas[index].rows).contains(&row)
            })
            .collect();
        found.sort_unstable_by_key(|&index| areas[index].column);
        found
    }
}

struct State<'a, W> {
    pyramid: &'a Pyramid,
    top: u8,
    shards: Shards<'a>,
    /// The levels that need several shards.
    coarse: Option<PyramidBuilder<'a>>,
    writer: Writer<W>,
    measured: MeasuredLevels,
    done: u64,
}

impl<W: Write + Seek> State<'_, W> {
    /// Writes a row of trees and, where they are complete with it, the rows of the storeys above.
    fn strip(&mut self, storey: Storey, row: usize) -> Result<(), Error> {
        let level = storey.root;
        let across = self.shards.across(row << level);
        for &index in &across {
            let area = self.shards.division.areas[index];
            let first = area.column >> level;
            let end = (area.column + area.columns).div_ceil(1 << level);
            for column in first..end {
                let id = TileId { column, row };
                let root = LevelTile { level, id };
                let number = self.pyramid.tree_number(root)?;
                if let Some(tree) = self.shards.shard(index)?.tree(number)? {
                    write(&mut self.writer, &mut self.measured, self.pyramid, &tree)?;
                }
                self.done += self.pyramid.tree_tiles(root).len() as u64;
            }
        }
        if level == self.top {
            return self.coarsen(storey, row, &across);
        }
        let Some(above) = storey.above(self.pyramid) else {
            return Ok(());
        };
        let is_last = row + 1 == rows(self.pyramid, storey);
        let end = storey.coarsened((row + 1) * storey.side);
        if is_last || end.is_multiple_of(above.side) {
            let first = storey.coarsened(row * storey.side);
            return self.strip(above, first / above.side);
        }
        Ok(())
    }

    /// Hands the rows of a strip of the last storey of shards on to the storeys above.
    fn coarsen(&mut self, storey: Storey, row: usize, across: &[usize]) -> Result<(), Error> {
        let Some(coarse) = &mut self.coarse else {
            return Ok(());
        };
        let high = storey.coarsened(storey.side);
        let (width, height) = self.pyramid.size(self.top + 1).unwrap_or_default();
        let (width, height) = (width as usize, height as usize);
        let count = high.min(height - row * high);
        let mut rows = vec![f64::NAN; width * count];
        for &index in across {
            let area = self.shards.division.areas[index];
            let shard = self.shards.shard(index)?;
            let part = shard.rows((row - (area.row >> self.top)) * high, count)?;
            let column = (area.column >> self.top) * high;
            for (to, from) in rows.chunks_mut(width).zip(part.chunks(shard.width())) {
                to[column..column + from.len()].copy_from_slice(from);
            }
        }
        let (writer, measured, pyramid) = (&mut self.writer, &mut self.measured, self.pyramid);
        coarse.push_rows(&rows, &mut |tree: EncodedTree| {
            write(writer, measured, pyramid, &tree)
        })
    }
}
