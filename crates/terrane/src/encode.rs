//! A raster of any size to a file: strip by strip, all cores, the same bytes however many there are.

use std::io::{Seek, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use terrane_format::{Header, LevelTile, Pyramid, Statistics, TileId, Window, Writer};

use crate::Error;
use crate::fill::halve;
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

/// Rows of one level that wait to become tiles.
struct Strip {
    level: u8,
    width: usize,
    height: usize,
    /// The first row that waits.
    row: usize,
    rows: Vec<f64>,
}

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
    /// Encodes a raster that is read by strips of rows; `read` gives the heights of a window at full resolution, NaN
    /// where there is no data. Returns the file and what was measured at full resolution.
    ///
    /// Tiles that the journal knows are taken from it. Overviews are means of two by two valid pixels. Every tile is
    /// computed on one thread, so the bytes do not depend on their number.
    pub fn run<W: Write + Seek>(
        self,
        file: W,
        read: &mut dyn FnMut(Window) -> Result<Vec<f64>, Error>,
        progress: &mut dyn FnMut(EncodeProgress) -> Result<(), Error>,
    ) -> Result<(W, Measured), Error> {
        let pyramid = self.header.pyramid.clone();
        let mut writer = Writer::create(file, self.header)?;
        if let Some(bytes) = self.embedded {
            writer.embed_model(bytes)?;
        }
        let side = usize::from(pyramid.side());
        let mut strips: Vec<Strip> = (0..pyramid.levels())
            .filter_map(|level| {
                let (width, height) = pyramid.size(level)?;
                Some(Strip {
                    level,
                    width: width as usize,
                    height: height as usize,
                    row: 0,
                    rows: Vec::new(),
                })
            })
            .collect();
        let mut state = State {
            pyramid: &pyramid,
            codec: self.codec,
            journal: self.journal,
            jobs: self.jobs,
            measured: Measured::default(),
            done: 0,
        };
        let (width, height) = (strips[0].width, strips[0].height);
        for row in (0..height).step_by(side) {
            let window = Window {
                column: 0,
                row,
                width,
                height: side.min(height - row),
            };
            let rows = read(window)?;
            state.push(&mut strips, 0, rows, &mut writer)?;
            progress(EncodeProgress {
                tiles: state.done,
                of: pyramid.tiles(),
                bytes: writer.length(),
            })?;
        }
        let measured = state.measured;
        let has_data = measured.pixels > 0;
        let statistics = Statistics {
            pixels: measured.pixels,
            tiles: 0,
            rmse_m: measured.rmse_m(),
            max_error_m: measured.max_error_m,
            lowest_m: if has_data { measured.lowest_m } else { 0.0 },
            highest_m: if has_data { measured.highest_m } else { 0.0 },
        };
        Ok((writer.finish(statistics)?, measured))
    }
}

struct State<'a> {
    pyramid: &'a Pyramid,
    codec: &'a TileCodec,
    journal: Option<&'a Journal>,
    jobs: usize,
    measured: Measured,
    done: u64,
}

impl State<'_> {
    /// Adds rows to a level; whole strips become tiles, and their halves go to the next level.
    fn push<W: Write + Seek>(
        &mut self,
        strips: &mut [Strip],
        level: usize,
        rows: Vec<f64>,
        writer: &mut Writer<W>,
    ) -> Result<(), Error> {
        let side = usize::from(self.pyramid.side());
        let strip = &mut strips[level];
        strip.rows.extend(rows);
        let waiting = strip.rows.len() / strip.width;
        let is_last = strip.row + waiting == strip.height;
        if waiting < side && !is_last {
            return Ok(());
        }
        let rows = std::mem::take(&mut strip.rows);
        let (row, width) = (strip.row, strip.width);
        strip.row += waiting;
        self.write(strip.level, row / side, &rows, width, writer)?;
        if level + 1 < strips.len() {
            let halved = halve(&rows, width);
            self.push(strips, level + 1, halved, writer)?;
        }
        Ok(())
    }

    /// Encodes the tiles of one strip on all threads and writes them in their order.
    fn write<W: Write + Seek>(
        &mut self,
        level: u8,
        tile_row: usize,
        rows: &[f64],
        width: usize,
        writer: &mut Writer<W>,
    ) -> Result<(), Error> {
        let columns = width.div_ceil(usize::from(self.pyramid.side()));
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<Option<Encoded>>> = Mutex::new((0..columns).map(|_| None).collect());
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
                let place = LevelTile {
                    level,
                    id: TileId {
                        column,
                        row: tile_row,
                    },
                };
                let encoded = match &alone {
                    Ok(pool) => pool.install(|| self.tile(place, rows, width)),
                    Err(_) => self.tile(place, rows, width),
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
        for encoded in done
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .into_iter()
            .flatten()
        {
            writer.tile(encoded.number, &encoded.bytes)?;
            if let Some(journal) = self.journal {
                journal.keep(encoded.number, &encoded.bytes, &encoded.measured)?;
            }
            if level == 0 {
                self.measured.join(&encoded.measured);
            }
        }
        self.done += columns as u64;
        Ok(())
    }

    fn tile(&self, place: LevelTile, rows: &[f64], width: usize) -> Result<Option<Encoded>, Error> {
        let window = self.pyramid.window(place)?;
        let number = self.pyramid.number(place)?;
        if let Some((bytes, measured)) = self.journal.and_then(|journal| journal.tile(number)) {
            return Ok(Some(Encoded {
                number,
                bytes,
                measured,
            }));
        }
        let heights: Vec<f64> = rows
            .chunks(width)
            .flat_map(|row| &row[window.column..window.column + window.width])
            .copied()
            .collect();
        let codec = self.codec.for_level(place.level);
        let Some((record, measured)) = codec.encode(&heights, window)? else {
            return Ok(None);
        };
        let bytes = record.to_bytes(number, window.width);
        Ok(Some(Encoded {
            number,
            bytes,
            measured,
        }))
    }
}

struct Encoded {
    number: u64,
    bytes: Vec<u8>,
    measured: Measured,
}
