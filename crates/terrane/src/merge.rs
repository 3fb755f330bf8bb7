//! Shards to the file that one encoding of the whole raster would have made, byte for byte.
//!
//! Records are copied in the order in which an encoding writes them, errors are summed up in that order, and the levels
//! that need several shards are made from the rows that shards keep for them.

use std::collections::HashMap;
use std::io::{Seek, Write};

use terrane_format::{Header, LevelTile, Pyramid, Source, TileId, Writer};

use crate::Error;
use crate::cascade::{Cascade, Coder, EncodedTile, Part};
use crate::division::Division;
use crate::encode::{EncodeProgress, Report};
use crate::measured::Measured;
use crate::shard::{ShardFile, ShardId};
use crate::tile_codec::TileCodec;

/// Opens the file of a shard.
pub type OpenShard<'a> = dyn FnMut(u32) -> Result<Box<dyn Source>, Error> + 'a;

/// A file to be made of shards.
#[derive(Debug)]
pub struct Merge<'a> {
    /// The head of the file; statistics and the model's place are filled in.
    pub header: Header,
    /// How tiles of coarse overviews are coded.
    pub codec: &'a TileCodec,
    /// The model's file, where it is to be in the file.
    pub embedded: Option<&'a [u8]>,
    /// How the raster was divided.
    pub division: &'a Division,
    /// SHA-256 of the plan.
    pub plan: [u8; 32],
    /// Threads.
    pub jobs: usize,
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
            shards.read(number)?;
        }
        let mut writer = Writer::create(file, self.header)?;
        if let Some(bytes) = self.embedded {
            writer.embed_model(bytes)?;
        }
        let coder = Coder {
            pyramid: &pyramid,
            codec: self.codec,
            journal: None,
            jobs: self.jobs,
        };
        let top = self.division.top;
        let coarse = (top + 1 < pyramid.levels()).then(|| {
            let part = Part::whole(&pyramid, top + 1);
            Cascade::new(coder, part, pyramid.levels() - 1)
        });
        let mut state = State {
            pyramid: &pyramid,
            top,
            shards,
            coarse,
            writer,
            measured: Measured::default(),
            done: 0,
        };
        let rows = pyramid.grid(0).map_or(0, terrane_format::TileGrid::rows);
        for row in 0..rows {
            state.shards.forget_above(row);
            state.strip(0, row)?;
            let coarse = state.coarse.as_ref().map_or(0, |cascade| cascade.done);
            progress(EncodeProgress {
                tiles: state.done + coarse,
                of: pyramid.tiles(),
                bytes: state.writer.length(),
            })?;
        }
        let State {
            writer, measured, ..
        } = state;
        Ok((writer.finish(measured.of_file())?, measured))
    }
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
    coarse: Option<Cascade<'a>>,
    writer: Writer<W>,
    measured: Measured,
    done: u64,
}

impl<W: Write + Seek> State<'_, W> {
    /// Writes a row of tiles and, where they are complete with it, the rows of the levels above.
    fn strip(&mut self, level: u8, row: usize) -> Result<(), Error> {
        let rows = self
            .pyramid
            .grid(level)
            .map_or(0, terrane_format::TileGrid::rows);
        let across = self.shards.across(row << level);
        for &index in &across {
            let area = self.shards.division.areas[index];
            let first = area.column >> level;
            let end = (area.column + area.columns).div_ceil(1 << level);
            for column in first..end {
                let id = TileId { column, row };
                let number = self.pyramid.number(LevelTile { level, id })?;
                if let Some((bytes, measured)) = self.shards.shard(index)?.tile(number)? {
                    self.writer.tile(number, &bytes)?;
                    if level == 0 {
                        self.measured.join(&measured);
                    }
                }
            }
            self.done += (end - first) as u64;
        }
        if level < self.top {
            let is_complete = row % 2 == 1 || row + 1 == rows;
            return if is_complete {
                self.strip(level + 1, row / 2)
            } else {
                Ok(())
            };
        }
        self.coarsen(row, &across)
    }

    /// Hands the rows of a strip of the last level of shards on to the levels above.
    fn coarsen(&mut self, row: usize, across: &[usize]) -> Result<(), Error> {
        let Some(coarse) = &mut self.coarse else {
            return Ok(());
        };
        let half = usize::from(self.pyramid.side()) / 2;
        let (width, height) = self.pyramid.size(self.top + 1).unwrap_or_default();
        let (width, height) = (width as usize, height as usize);
        let count = half.min(height - row * half);
        let mut rows = vec![f64::NAN; width * count];
        for &index in across {
            let area = self.shards.division.areas[index];
            let shard = self.shards.shard(index)?;
            let part = shard.rows(row * half - (area.row >> self.top) * half, count)?;
            let column = (area.column >> self.top) * half;
            for (to, from) in rows.chunks_mut(width).zip(part.chunks(shard.width())) {
                to[column..column + from.len()].copy_from_slice(from);
            }
        }
        let writer = &mut self.writer;
        coarse.push(rows, &mut |tile: EncodedTile| {
            Ok(writer.tile(tile.number, &tile.bytes)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use terrane_format::{Coding, GeoKeys, Method, ModelId, Promise, Samples, Statistics, record};

    use super::*;
    use crate::shard::ShardWriter;
    use crate::tile_codec::Rate;
    use crate::{Profile, random};

    /// Bytes that are counted and forgotten, but for the head.
    #[derive(Default)]
    struct Sink {
        place: u64,
        length: u64,
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.place += bytes.len() as u64;
            self.length = self.length.max(self.place);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Sink {
        fn seek(&mut self, place: std::io::SeekFrom) -> std::io::Result<u64> {
            if let std::io::SeekFrom::Start(place) = place {
                self.place = place;
            }
            Ok(self.place)
        }
    }

    /// A country of 41,000 km² at 1 m, inside 350 by 150 km: shards with random records of a real length, and smooth
    /// heights for the coarse levels, which are really encoded.
    #[test]
    #[ignore = "takes minutes; run by `just test-country`"]
    fn a_country_is_merged() {
        let side = 512;
        let (width, height) = (350_000, 150_000);
        let pyramid = Pyramid::new(
            width,
            height,
            side,
            Pyramid::levels_for(width, height, side),
        )
        .unwrap();
        let division = Division::squares(&pyramid, 16).unwrap();
        let model = Profile::Standard.model();
        let header = Header {
            pyramid: pyramid.clone(),
            method: Method::Context,
            affine: [2_480_000.0, 1.0, 0.0, 1_300_000.0, 0.0, -1.0],
            is_placed: true,
            pixel_is_point: false,
            epsg: [2056, 0],
            geo_keys: GeoKeys::default(),
            wkt: String::new(),
            samples: Samples::default(),
            promise: Promise::MaxError(0.1),
            statistics: Statistics::default(),
            model: Some(ModelId {
                sha256: model.sha256(),
                name: model.name().to_owned(),
                address: String::new(),
                embedded: None,
            }),
        };
        let codec = TileCodec {
            model: Some(model),
            bits: 8,
            coding: Coding::Shortest,
            rate: Rate::MaxError(0.1),
            is_f32: true,
            effort: 1,
        };
        let is_land = |x: f64, y: f64| {
            let (x, y) = (x / f64::from(width) - 0.5, y / f64::from(height) - 0.5);
            x * x + y * y <= 0.25
        };
        let plan = [7; 32];
        let mut made_s = 0.0;
        let mut open = |number: u32| -> Result<Box<dyn Source>, Error> {
            let start = Instant::now();
            let shard = synthetic(&pyramid, &division, (plan, number), &is_land);
            made_s += start.elapsed().as_secs_f64();
            Ok(Box::new(shard))
        };
        let merge = Merge {
            header,
            codec: &codec,
            embedded: None,
            division: &division,
            plan,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
        };
        let start = Instant::now();
        let mut records = 0;
        let (file, measured) = merge
            .run(Sink::default(), &mut open, &mut |at| {
                records = at.bytes;
                Ok(())
            })
            .unwrap();
        let took_s = start.elapsed().as_secs_f64() - made_s;
        assert!(measured.pixels > 40_000_000_000);
        eprintln!(
            "{} shards, {} tiles, {} pixels, {} bytes with an index of {}: merged in {took_s:.0} s (and {made_s:.0} s to make up shards)",
            division.areas.len(),
            pyramid.tiles(),
            measured.pixels,
            file.length,
            file.length - records
        );
    }

    /// Bytes of a record of a tile of 512 pixels across at 0.1 m: half a bit per pixel.
    const RECORD: usize = 16_384;

    fn synthetic(
        pyramid: &Pyramid,
        division: &Division,
        (plan, number): ([u8; 32], u32),
        is_land: &dyn Fn(f64, f64) -> bool,
    ) -> Vec<u8> {
        let area = division.areas[number as usize];
        let window = area.window(pyramid);
        let mut bytes = Vec::new();
        let mut writer = ShardWriter::create(&mut bytes, ShardId { plan, number }).unwrap();
        let mut random = random::Random::new(number.into(), 0);
        let noise: Vec<u8> = (0..RECORD).map(|_| random.next_u64() as u8).collect();
        let side = f64::from(pyramid.side());
        for level in 0..=division.top {
            let columns = area.column >> level..(area.column + area.columns).div_ceil(1 << level);
            let rows = area.row >> level..(area.row + area.rows).div_ceil(1 << level);
            let scale = side * f64::from(level).exp2();
            for (row, column) in
                rows.flat_map(|row| columns.clone().map(move |column| (row, column)))
            {
                if !is_land((column as f64 + 0.5) * scale, (row as f64 + 0.5) * scale) {
                    continue;
                }
                let id = TileId { column, row };
                let tile = pyramid.number(LevelTile { level, id }).unwrap();
                let mut record = noise.clone();
                // A record whose checksum is that of the tile.
                let sum = record::checksum(&record, tile);
                record[..4].copy_from_slice(&sum.to_le_bytes());
                let window = pyramid.window(LevelTile { level, id }).unwrap();
                writer
                    .tile(&EncodedTile {
                        level,
                        number: tile,
                        bytes: record,
                        measured: Measured {
                            pixels: (window.width * window.height) as u64,
                            squares: 1.0,
                            max_error_m: 0.1,
                            lowest_m: 200.0,
                            highest_m: 4600.0,
                        },
                    })
                    .unwrap();
            }
        }
        let scale = f64::from(division.top + 1).exp2();
        let across = |size: usize| size.div_ceil(1 << (division.top + 1));
        let mut heights = Vec::new();
        for row in 0..across(window.height) {
            for column in 0..across(window.width) {
                let x = window.column as f64 + (column as f64 + 0.5) * scale;
                let y = window.row as f64 + (row as f64 + 0.5) * scale;
                let hills = 2000.0 + 900.0 * (x / 9000.0).sin() * (y / 7000.0).cos();
                let rough = 40.0 * ((x / 130.0).sin() * (y / 170.0).sin() + (x * y / 1e6).sin());
                heights.push(if is_land(x, y) {
                    hills + rough
                } else {
                    f64::NAN
                });
            }
        }
        writer.finish(&heights).unwrap();
        bytes
    }
}
