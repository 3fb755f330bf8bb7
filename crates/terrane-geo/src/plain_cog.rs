//! A cloud-optimised `GeoTIFF` without compression, whose every offset is known before a pixel is: bytes are made when they
//! are read.
//!
//! ```text
//! head: signature, directories │ offsets and lengths of blocks │ padding │ blocks of the coarsest level │ … │ of level 0
//! ```
//!
//! Offsets and lengths are not kept either: they follow from the numbers of blocks, and a raster of a million of them opens
//! as quickly as a small one.

use std::path::PathBuf;
use std::sync::Arc;

use tiff_core::{Compression, Predictor, TagType};

use crate::directory::{COMPATIBLE, Described, Entry, IFDS_FIRST, Width, directory, signature};
use crate::{Error, Georeference, Grid, HeightUnit, MetadataItem, Result, Storage, tag};

/// Blocks begin at a multiple of this. Clients of the web read in steps of 16 KiB, and one that wants a block should not touch
/// the next.
const ALIGNMENT: u64 = 1 << 14;
/// Bytes of one length of a block.
const LENGTH: u64 = 4;
/// Bytes of the head that are made at a time, at most.
const PIECE: u64 = 1 << 20;

/// The blocks of a [`PlainCog`].
pub trait PlainBlocks {
    /// What can be wrong with one.
    type Error;

    /// Whether a block is known to have no data, without being made.
    fn is_empty(&self, level: usize, column: usize, row: usize) -> bool;

    /// The bytes of a block, as [`PlainCog::encode`] makes them.
    fn bytes(
        &self,
        level: usize,
        column: usize,
        row: usize,
    ) -> std::result::Result<Arc<[u8]>, Self::Error>;
}

/// What a raster says of itself in a [`PlainCog`].
#[derive(Debug, Clone)]
pub struct PlainRaster {
    /// What it is called in errors.
    pub name: PathBuf,
    /// Columns and rows of every level, full resolution first.
    pub levels: Vec<(usize, usize)>,
    /// Side of a block: a multiple of 16.
    pub side: usize,
    /// Where it lies.
    pub georeference: Georeference,
    /// How heights are stored.
    pub storage: Storage,
    /// More for GDAL's metadata.
    pub items: Vec<MetadataItem>,
}

/// The layout of an uncompressed COG.
#[derive(Debug)]
pub struct PlainCog {
    raster: PlainRaster,
    unit: HeightUnit,
    width: Width,
    /// Signature and directories.
    head: Vec<u8>,
    levels: Vec<Level>,
    /// Parts of the file behind the head, in the order of their offsets.
    parts: Vec<Part>,
    length: u64,
    /// Whether blocks without data may be left out.
    is_sparse: bool,
}

/// Where the blocks of a level are.
#[derive(Debug, Clone, Copy)]
struct Level {
    columns: usize,
    rows: usize,
    first_block: u64,
}

impl Level {
    fn blocks(&self) -> u64 {
        self.columns as u64 * self.rows as u64
    }

    /// The column and row of a block.
    fn block(&self, index: u64) -> (usize, usize) {
        let columns = self.columns as u64;
        ((index % columns) as usize, (index / columns) as usize)
    }
}

#[derive(Debug, Clone, Copy)]
struct Part {
    start: u64,
    end: u64,
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Head,
    Offsets(usize),
    Lengths(usize),
    Padding,
    Blocks(usize),
}

impl PlainCog {
    /// Lays out a raster.
    pub fn new(mut raster: PlainRaster) -> Result<Self> {
        let refuse = |what: &str| Error::Unsupported {
            path: raster.name.clone(),
            what: what.to_owned(),
            advice: "blocks have a multiple of 16 pixels, and rasters some columns and rows",
        };
        let limit = u32::MAX as usize;
        let is_size = |&(width, height): &(usize, usize)| {
            (1..=limit).contains(&width) && (1..=limit).contains(&height)
        };
        if raster.levels.is_empty() || !raster.levels.iter().all(is_size) {
            return Err(refuse("a raster of this size"));
        }
        if raster.side == 0 || !raster.side.is_multiple_of(16) || raster.side > 1 << 14 {
            return Err(refuse("a block of this side"));
        }
        let unit = raster
            .storage
            .unit_in(&mut raster.georeference, &raster.name)?;
        let mut cog = Self::laid_out(raster, unit, Width::Classic);
        if cog.length > u64::from(u32::MAX) {
            cog = Self::laid_out(cog.raster, unit, Width::Big);
        }
        Ok(cog)
    }

    fn laid_out(raster: PlainRaster, unit: HeightUnit, width: Width) -> Self {
        let side = raster.side;
        let levels = raster.levels.iter().map(|&(columns, rows)| Level {
            columns: columns.div_ceil(side),
            rows: rows.div_ceil(side),
            first_block: 0,
        });
        let storage = &raster.storage;
        // GDAL and others fill what is left out with the nodata value.
        let is_sparse = storage
            .nodata
            .is_some_and(|nodata| storage.sample.is_float() || nodata == storage.absent());
        let mut cog = Self {
            levels: levels.collect(),
            raster,
            unit,
            width,
            head: Vec::new(),
            parts: Vec::new(),
            length: 0,
            is_sparse,
        };
        // The first pass finds the size of the head with offsets of zero, the second knows the offsets.
        cog.head = cog.directories();
        cog.place();
        cog.head = cog.directories();
        cog
    }

    /// Gives every part its place, with a head of this size.
    fn place(&mut self) {
        let mut end = 0;
        let mut parts = Vec::new();
        let mut add = |length: u64, content: Content| {
            parts.push(Part {
                start: end,
                end: end + length,
                content,
            });
            end += length;
            end
        };
        let mut after = add(self.head.len() as u64, Content::Head);
        for (index, level) in self.levels.iter().enumerate() {
            // One block's are in the directory.
            if level.blocks() > 1 {
                let offset_bytes = self.width.bytes() as u64;
                add(level.blocks() * offset_bytes, Content::Offsets(index));
                after = add(level.blocks() * LENGTH, Content::Lengths(index));
            }
        }
        add(after.next_multiple_of(ALIGNMENT) - after, Content::Padding);
        let block_bytes = self.block_bytes() as u64;
        for (index, level) in self.levels.iter().enumerate().rev() {
            add(level.blocks() * block_bytes, Content::Blocks(index));
        }
        for part in &parts {
            if let Content::Blocks(level) = part.content {
                self.levels[level].first_block = part.start;
            }
        }
        self.parts = parts;
        self.length = end;
    }

    fn start_of(&self, content: Content) -> u64 {
        let part = self.parts.iter().find(|part| part.content == content);
        part.map_or(0, |part| part.start)
    }

    /// Signature and directories.
    fn directories(&self) -> Vec<u8> {
        let described = Described {
            georeference: &self.raster.georeference,
            storage: &self.raster.storage,
            side: self.raster.side,
            compression: Compression::None,
            predictor: Predictor::None,
            items: &self.raster.items,
        };
        let mut head = signature(self.width, &format!("{IFDS_FIRST}{COMPATIBLE}"));
        for (index, level) in self.levels.iter().enumerate() {
            let blocks = level.blocks();
            // Numbers that fit stand where the place of more does.
            let offsets = match blocks {
                1 => level.first_block,
                _ => self.start_of(Content::Offsets(index)),
            };
            let length = self.block_bytes() as u64;
            let lengths = match (blocks, self.width) {
                (1, _) => length,
                (2, Width::Big) => length | length << 32,
                _ => self.start_of(Content::Lengths(index)),
            };
            let kind = self.width.offset_type();
            let entries = described.entries(
                index,
                self.raster.levels[index],
                Entry::elsewhere(tag::TILE_OFFSETS, kind, blocks, offsets),
                Entry::elsewhere(tag::TILE_BYTE_COUNTS, TagType::Long, blocks, lengths),
            );
            let start = head.len() as u64;
            let size = directory(&entries, start, 0, self.width).len() as u64;
            let is_last = index + 1 == self.levels.len();
            let next = if is_last { 0 } else { start + size };
            head.extend(directory(&entries, start, next, self.width));
        }
        head
    }

    /// Bytes of the whole.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> usize {
        self.raster.side * self.raster.side * self.raster.storage.sample.bytes()
    }

    /// How heights are stored.
    pub fn storage(&self) -> &Storage {
        &self.raster.storage
    }

    /// The part of a file that an offset lies in.
    fn part(&self, offset: u64) -> Option<&Part> {
        let index = self.parts.partition_point(|part| part.end <= offset);
        self.parts.get(index)
    }

    /// Where what is made together with an offset ends: a block, or some of the head.
    pub fn piece_end(&self, offset: u64) -> u64 {
        let Some(part) = self.part(offset) else {
            return self.length;
        };
        let bytes = match part.content {
            Content::Blocks(_) => self.block_bytes() as u64,
            _ => PIECE,
        };
        (part.start + ((offset - part.start) / bytes + 1) * bytes).min(part.end)
    }

    /// Reads from an offset on; how many bytes, which are fewer than asked for at the end alone.
    pub fn read_at<B: PlainBlocks>(
        &self,
        offset: u64,
        bytes: &mut [u8],
        blocks: &B,
    ) -> std::result::Result<usize, B::Error> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset.saturating_add(done as u64);
            let Some(part) = self.part(at) else {
                break;
            };
            let left = usize::try_from(part.end - at).unwrap_or(usize::MAX);
            let wanted = left.min(bytes.len() - done);
            let out = &mut bytes[done..done + wanted];
            let from = at - part.start;
            let count = match part.content {
                Content::Head => copy(&self.head, from, out),
                Content::Padding => {
                    out.fill(0);
                    wanted
                }
                Content::Offsets(level) => write_numbers(self.width.bytes(), from, out, |index| {
                    let place = index * self.block_bytes() as u64;
                    self.of_kept(level, index, blocks, self.levels[level].first_block + place)
                }),
                Content::Lengths(level) => write_numbers(LENGTH as usize, from, out, |index| {
                    self.of_kept(level, index, blocks, self.block_bytes() as u64)
                }),
                Content::Blocks(level) => {
                    let size = self.block_bytes() as u64;
                    let (column, row) = self.levels[level].block(from / size);
                    copy(&blocks.bytes(level, column, row)?, from % size, out)
                }
            };
            if count == 0 {
                break;
            }
            done += count;
        }
        Ok(done)
    }

    /// A number of a block, or 0 where the block is left out.
    fn of_kept<B: PlainBlocks>(&self, level: usize, index: u64, blocks: &B, number: u64) -> u64 {
        let (column, row) = self.levels[level].block(index);
        let is_left_out = self.is_sparse && blocks.is_empty(level, column, row);
        if is_left_out { 0 } else { number }
    }

    /// The bytes of a block, of which these are the heights in metres, NaN where there are none; at the edges of the raster it
    /// is filled up with nodata. The heights of an overview become the nearest that can be stored.
    pub fn encode(
        &self,
        level: usize,
        column: usize,
        row: usize,
        heights: &Grid,
    ) -> Result<Vec<u8>> {
        let storage = &self.raster.storage;
        let side = self.raster.side;
        let mut bytes = Vec::with_capacity(self.block_bytes());
        let outside = storage.nearest(f64::NAN, self.unit);
        for line in 0..side {
            let start = line * heights.width;
            let known = heights.heights.get(start..start + heights.width);
            let known = known.unwrap_or_default();
            for (index, &height_m) in known.iter().take(side).enumerate() {
                let raw = if level == 0 {
                    let stored = storage.store(height_m, self.unit);
                    stored.map_err(|reason| Error::Height {
                        path: self.raster.name.clone(),
                        row: row * side + line,
                        column: column * side + index,
                        reason,
                    })?
                } else {
                    storage.nearest(height_m, self.unit)
                };
                storage.sample.encode(raw, &mut bytes);
            }
            for _ in known.len()..side {
                storage.sample.encode(outside, &mut bytes);
            }
        }
        Ok(bytes)
    }
}

/// Copies what there is from a position on; how much.
fn copy(from: &[u8], start: u64, to: &mut [u8]) -> usize {
    let start = usize::try_from(start).unwrap_or(usize::MAX).min(from.len());
    let count = to.len().min(from.len() - start);
    to[..count].copy_from_slice(&from[start..start + count]);
    count
}

/// Writes a part of an array of little-endian numbers of so many bytes, from a byte on.
fn write_numbers(size: usize, start: u64, to: &mut [u8], number: impl Fn(u64) -> u64) -> usize {
    let mut index = start / size as u64;
    let mut skipped = (start % size as u64) as usize;
    let mut done = 0;
    while done < to.len() {
        let bytes = number(index).to_le_bytes();
        done += copy(&bytes[skipped..size], 0, &mut to[done..]);
        skipped = 0;
        index += 1;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Affine, Crs, SampleType, Window};

    struct None;

    impl PlainBlocks for None {
        type Error = Error;

        fn is_empty(&self, level: usize, column: usize, row: usize) -> bool {
            level == 0 && column == 1 && row == 2
        }

        fn bytes(&self, _: usize, _: usize, _: usize) -> Result<Arc<[u8]>> {
            Err(Error::NoInput)
        }
    }

    /// Of more than four gigabytes: its head is read back from a file whose blocks are holes.
    #[test]
    fn a_large_raster_is_a_bigtiff() {
        let mut levels = vec![(40_000, 30_000)];
        while let Some(&(width, height)) = levels.last()
            && width > 256
        {
            levels.push((usize::div_ceil(width, 2), usize::div_ceil(height, 2)));
        }
        let cog = PlainCog::new(PlainRaster {
            name: PathBuf::from("large"),
            levels: levels.clone(),
            side: 256,
            georeference: Georeference::new(
                Affine::north_up(2_600_000.0, 1_200_000.0, 0.5),
                Crs::projected(2056, Some(5728)),
            ),
            storage: Storage::metres(SampleType::F64, Some(-9999.0)),
            items: Vec::new(),
        });
        let cog = cog.unwrap();
        assert!(cog.width == Width::Big && cog.length > 12_000_000_000);
        // One level has two blocks, whose lengths stand in the directory.
        assert!(cog.levels.iter().any(|level| level.blocks() == 2));
        let first = cog.levels.last().unwrap().first_block;
        let mut head = vec![0; usize::try_from(first).unwrap()];
        assert_eq!(cog.read_at(0, &mut head, &None).unwrap(), head.len());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.tif");
        std::fs::write(&path, head).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(cog.length).unwrap();
        let raster = crate::open(&[path]).unwrap();
        assert_eq!(raster.info().levels, levels);
        for (level, &(width, height)) in levels.iter().enumerate() {
            for (column, row) in [(0, 0), (width - 1, height - 1)] {
                let window = Window {
                    column,
                    row,
                    width: 1,
                    height: 1,
                };
                let heights = raster.read(level, window).unwrap().heights;
                assert_eq!(heights, [0.0], "level {level}");
            }
        }
        let window = Window {
            column: 255,
            row: 600,
            width: 2,
            height: 1,
        };
        let heights = raster.read(0, window).unwrap().heights;
        assert!(heights[0] == 0.0 && heights[1].is_nan());
    }
}
