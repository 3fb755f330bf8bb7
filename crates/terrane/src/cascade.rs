//! Rows of heights that become tiles: strip by strip, and half as many rows for the next level.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use terrane_format::{LevelTile, Pyramid, TileId};

use crate::Error;
use crate::fill::halve;
use crate::journal::Journal;
use crate::measured::Measured;
use crate::tile_codec::TileCodec;

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
    pub(crate) codec: &'a TileCodec,
    pub(crate) journal: Option<&'a Journal>,
    pub(crate) jobs: usize,
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

    /// The same ground at half the resolution; its first tile must have an even place.
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
}

/// Rows of one level that wait to become tiles.
struct Strip {
    part: Part,
    /// The first row that waits.
    row: usize,
    rows: Vec<f64>,
}

/// Takes tiles in the order of a file.
pub(crate) type Take<'a> = dyn FnMut(EncodedTile) -> Result<(), Error> + 'a;

/// A part of a raster and its overviews, from the finest level that is made here to the coarsest.
pub(crate) struct Cascade<'a> {
    coder: Coder<'a>,
    strips: Vec<Strip>,
    /// Rows at half the resolution of the last level, where somebody else goes on with them.
    pub(crate) beyond: Option<Vec<f64>>,
    /// Tiles made, with or without data.
    pub(crate) done: u64,
}

impl<'a> Cascade<'a> {
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
                rows: Vec::new(),
            });
            part = next;
        }
        Self {
            coder,
            strips,
            beyond: (!is_top).then(Vec::new),
            done: 0,
        }
    }

    /// Adds rows of the first level; whole strips become tiles.
    pub(crate) fn push(&mut self, rows: Vec<f64>, take: &mut Take) -> Result<(), Error> {
        self.fall(0, rows, take)
    }

    fn fall(&mut self, index: usize, rows: Vec<f64>, take: &mut Take) -> Result<(), Error> {
        let side = usize::from(self.coder.pyramid.side());
        let Some(strip) = self.strips.get_mut(index) else {
            if let Some(beyond) = &mut self.beyond {
                beyond.extend(rows);
            }
            return Ok(());
        };
        strip.rows.extend(rows);
        let waiting = strip.rows.len() / strip.part.width;
        let is_last = strip.row + waiting == strip.part.height;
        if waiting < side && !is_last {
            return Ok(());
        }
        let rows = std::mem::take(&mut strip.rows);
        let Part {
            level,
            first,
            width,
            ..
        } = strip.part;
        let first = TileId {
            column: first.column,
            row: first.row + strip.row / side,
        };
        strip.row += waiting;
        for tile in self.coder.tiles(level, first, &rows, width)? {
            take(tile)?;
        }
        self.done += width.div_ceil(side) as u64;
        if index + 1 < self.strips.len() || self.beyond.is_some() {
            return self.fall(index + 1, halve(&rows, width), take);
        }
        Ok(())
    }
}

impl Coder<'_> {
    /// Encodes the tiles of one strip on all threads; those with data, in their order.
    fn tiles(
        &self,
        level: u8,
        first: TileId,
        rows: &[f64],
        width: usize,
    ) -> Result<Vec<EncodedTile>, Error> {
        let columns = width.div_ceil(usize::from(self.pyramid.side()));
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<Option<EncodedTile>>> =
            Mutex::new((0..columns).map(|_| None).collect());
        let failure: Mutex<Option<Error>> = Mutex::new(None);
        let work = || {
            // A pool of one: what a network computes must not depend on how many threads share a product.
            let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build();
            loop {
                let column = next.fetch_add(1, Ordering::Relaxed);
                if column >= columns
                    || failure
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .is_some()
                {
                    return;
                }
                let id = TileId {
                    column: first.column + column,
                    row: first.row,
                };
                let tile = || self.tile(LevelTile { level, id }, column, rows, width);
                let encoded = match &alone {
                    Ok(pool) => pool.install(tile),
                    Err(_) => tile(),
                };
                match encoded {
                    Ok(encoded) => {
                        done.lock().unwrap_or_else(PoisonError::into_inner)[column] = encoded;
                    }
                    Err(error) => {
                        *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.clamp(1, columns) {
                scope.spawn(work);
            }
        });
        if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(done.into_iter().flatten().collect())
    }

    /// Encodes a tile that starts `column` tiles from the left of the rows.
    fn tile(
        &self,
        place: LevelTile,
        column: usize,
        rows: &[f64],
        width: usize,
    ) -> Result<Option<EncodedTile>, Error> {
        let window = self.pyramid.window(place)?;
        let number = self.pyramid.number(place)?;
        let encoded = |(bytes, measured)| EncodedTile {
            level: place.level,
            number,
            bytes,
            measured,
        };
        if let Some(known) = self.journal.and_then(|journal| journal.tile(number)) {
            return Ok(Some(encoded(known)));
        }
        let start = column * usize::from(self.pyramid.side());
        let heights: Vec<f64> = rows
            .chunks(width)
            .flat_map(|row| &row[start..start + window.width])
            .copied()
            .collect();
        let codec = self.codec.for_level(place.level);
        let made = codec.encode(&heights, window)?;
        Ok(made
            .map(|(record, measured)| encoded((record.to_bytes(number, window.width), measured))))
    }
}
