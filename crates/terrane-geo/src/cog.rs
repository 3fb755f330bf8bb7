//! Writing a cloud-optimised `GeoTIFF`, row by row, in memory bounded by a row of blocks.
//!
//! ```text
//! rows ─► level 0 ─► blocks of 256×256 ─► deflate ─► spool
//!            └─ mean of 2×2 ─► level 1 ─► … ─► spool          finish: header, directories, blocks from coarse to fine
//! ```
//!
//! The library's own COG writer does not carry GDAL's metadata (scale, offset, unit), so the layout is ours and only
//! the compression of a block is the library's.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use terrane_format::halve_rows;
use tiff_core::{ByteOrder, Compression, Predictor, TagValue};
use tiff_writer::TiffWriteSample;
use tiff_writer::compress::{BlockEncodingOptions, compress_block};

use crate::atomic::AtomicFile;
use crate::directory::{COMPATIBLE, Described, Entry, IFDS_FIRST, Width, directory, signature};
use crate::output::{Output, folder};
use crate::{Error, Georeference, HeightUnit, MetadataItem, Result, SampleType, Storage, tag};

/// Side of a block in pixels.
const BLOCK: usize = 256;
/// Higher levels cost much time and save one part in a hundred.
const DEFLATE_LEVEL: u32 = 6;
/// What says that blocks carry their length before them and their last bytes once more behind them.
const BLOCK_FRAMES: &str = "BLOCK_LEADER=SIZE_AS_UINT4\nBLOCK_TRAILER=LAST_4_BYTES_REPEATED\n";

/// A cloud-optimised `GeoTIFF` that is being written; it appears under its name when it is finished.
pub struct CogWriter {
    output: AtomicFile,
    path: PathBuf,
    georeference: Georeference,
    storage: Storage,
    unit: HeightUnit,
    levels: Vec<Level>,
    /// What GDAL shows of the raster besides.
    items: Vec<MetadataItem>,
    rows: usize,
}

/// One resolution of the raster.
struct Level {
    width: usize,
    height: usize,
    is_overview: bool,
    /// Rows that do not make a row of blocks yet.
    pending: Vec<f64>,
    /// An upper row that waits for its lower one to be joined for the next level.
    upper: Option<Vec<f64>>,
    /// Rows of blocks written.
    block_rows: usize,
    /// Compressed blocks, one after another.
    spool: BufWriter<File>,
    /// The length of each.
    lengths: Vec<u32>,
}

impl CogWriter {
    /// Bytes of memory that a raster of this size takes while it is written: rows that wait for a row of blocks at every
    /// level, and the table of blocks.
    pub fn memory(width: usize, height: usize) -> u64 {
        let (width, height) = (width as u64, height as u64);
        let block = BLOCK as u64;
        // All levels together are twice the first; a row waits for its neighbour besides.
        let rows = width.saturating_mul(2 * (block.min(height) + 2) * 8);
        let blocks = width.div_ceil(block).saturating_mul(height.div_ceil(block));
        // Offsets and lengths as they are kept, as tags, and as bytes, on all levels.
        rows.saturating_add(blocks.saturating_mul(64))
    }

    /// Starts a raster of `width` × `height` pixels.
    pub fn create(
        output: &Output,
        (width, height): (usize, usize),
        mut georeference: Georeference,
        storage: Storage,
    ) -> Result<Self> {
        let path = output.path();
        let limit = u32::MAX as usize;
        if width == 0 || height == 0 || width > limit || height > limit {
            return Err(Error::RowCount {
                path: path.to_owned(),
                given: 0,
                width,
                height,
            });
        }
        let unit = storage.unit_in(&mut georeference, path)?;
        let output = AtomicFile::create(output)?;
        let mut levels = Vec::new();
        let mut size = (width, height);
        loop {
            levels.push(Level::new(path, size, !levels.is_empty())?);
            if size.0.max(size.1) <= BLOCK {
                break;
            }
            size = (size.0.div_ceil(2), size.1.div_ceil(2));
        }
        Ok(Self {
            output,
            path: path.to_owned(),
            georeference,
            storage,
            unit,
            levels,
            items: Vec::new(),
            rows: 0,
        })
    }

    /// Appends whole rows from the top, `NaN` where there is no data: heights in metres, or another quantity as it is
    /// stored.
    pub fn write_rows(&mut self, heights: &[f64]) -> Result<()> {
        let (width, height) = (self.levels[0].width, self.levels[0].height);
        let given = self.rows + heights.len() / width;
        if !heights.len().is_multiple_of(width) || given > height {
            return Err(Error::RowCount {
                path: self.path.clone(),
                given,
                width,
                height,
            });
        }
        for row in heights.chunks_exact(width) {
            self.rows += 1;
            self.push(0, row.to_vec())?;
        }
        Ok(())
    }

    fn push(&mut self, level: usize, row: Vec<f64>) -> Result<()> {
        let Self {
            levels,
            storage,
            unit,
            path,
            ..
        } = self;
        levels[level].append(&row, path, storage, *unit)?;
        if level + 1 == levels.len() {
            return Ok(());
        }
        if let Some(upper) = self.levels[level].upper.take() {
            return self.push(level + 1, halve_rows(&upper, &row));
        }
        self.levels[level].upper = Some(row);
        Ok(())
    }

    /// Adds an item to the metadata of the whole raster, where GDAL shows it; possible until the file is finished, since
    /// some things are known only when all rows were seen.
    pub fn note(&mut self, name: &'static str, value: &str) {
        self.items.push(MetadataItem {
            name,
            value: value.to_owned(),
            of_band: false,
        });
    }

    /// Completes the file and gives it its name; returns its length.
    pub fn finish(self) -> Result<u64> {
        let (file, length) = self.complete()?;
        file.commit()?;
        Ok(length)
    }

    /// Completes the file, which then only needs its name; also returns its length.
    pub fn complete(mut self) -> Result<(AtomicFile, u64)> {
        let (width, height) = (self.levels[0].width, self.levels[0].height);
        if self.rows != height {
            return Err(Error::RowCount {
                path: self.path,
                given: self.rows,
                width,
                height,
            });
        }
        for level in 0..self.levels.len() {
            if let Some(upper) = self.levels[level].upper.take() {
                self.push(level + 1, halve_rows(&upper, &[]))?;
            }
            let Self {
                levels,
                storage,
                unit,
                path,
                ..
            } = &mut self;
            levels[level].flush(path, storage, *unit)?;
        }
        let path = self.path.clone();
        let length = self.assemble().map_err(|source| Error::Io {
            path,
            action: "be written",
            source,
        })?;
        Ok((self.output, length))
    }

    fn assemble(&mut self) -> std::io::Result<u64> {
        // Blocks stand after all directories, so the size of the directories decides every offset: lay out once for
        // the classic format and, where four gigabytes do not suffice, again for BigTIFF.
        let mut layout = Layout::new(self, Width::Classic);
        if layout.end > u64::from(u32::MAX) {
            layout = Layout::new(self, Width::Big);
        }
        let Self { output, levels, .. } = self;
        let mut file = BufWriter::with_capacity(1 << 20, output.file());
        file.write_all(&layout.head)?;
        for level in levels.iter_mut().rev() {
            level.spool.flush()?;
            let spool = level.spool.get_mut();
            spool.seek(SeekFrom::Start(0))?;
            let mut spool = std::io::BufReader::with_capacity(1 << 20, spool);
            let mut block = Vec::new();
            for &length in &level.lengths {
                block.resize(length as usize, 0);
                spool.read_exact(&mut block)?;
                file.write_all(&length.to_le_bytes())?;
                file.write_all(&block)?;
                file.write_all(block.last_chunk::<TRAILER>().unwrap_or(&[0; TRAILER]))?;
            }
        }
        file.flush()?;
        Ok(layout.end)
    }
}

const LEADER: u64 = 4;
const TRAILER: usize = 4;

/// The bytes before the blocks, and where everything ends.
struct Layout {
    head: Vec<u8>,
    end: u64,
}

impl Layout {
    fn new(cog: &CogWriter, width: Width) -> Self {
        // The first pass finds the size of the directories with offsets of zero, the second knows the offsets.
        let sizes: Vec<u64> = (0..cog.levels.len())
            .map(|level| {
                let offsets = vec![0; cog.levels[level].lengths.len()];
                directory(&cog.entries(level, offsets, width), 0, 0, width).len() as u64
            })
            .collect();
        let mut head = signature(width, &format!("{IFDS_FIRST}{BLOCK_FRAMES}{COMPATIBLE}"));
        let first = head.len() as u64;
        let mut offset = first + sizes.iter().sum::<u64>();
        let mut offsets = vec![Vec::new(); cog.levels.len()];
        for (level, offsets) in cog.levels.iter().zip(&mut offsets).rev() {
            for &length in &level.lengths {
                offsets.push(offset + LEADER);
                offset += LEADER + u64::from(length) + TRAILER as u64;
            }
        }
        let mut start = first;
        for (level, offsets) in offsets.into_iter().enumerate() {
            let next = if level + 1 < sizes.len() {
                start + sizes[level]
            } else {
                0
            };
            let entries = cog.entries(level, offsets, width);
            head.extend(directory(&entries, start, next, width));
            start += sizes[level];
        }
        Self { head, end: offset }
    }
}

impl CogWriter {
    fn entries(&self, index: usize, offsets: Vec<u64>, width: Width) -> Vec<Entry> {
        let level = &self.levels[index];
        let offsets = match width {
            Width::Classic => {
                TagValue::Long(offsets.into_iter().map(|offset| offset as u32).collect())
            }
            Width::Big => TagValue::Long8(offsets),
        };
        let described = Described {
            georeference: &self.georeference,
            storage: &self.storage,
            side: BLOCK,
            compression: Compression::Deflate,
            predictor: predictor(self.storage.sample),
            items: &self.items,
        };
        described.entries(
            index,
            (level.width, level.height),
            Entry::new(tag::TILE_OFFSETS, offsets),
            Entry::new(tag::TILE_BYTE_COUNTS, TagValue::Long(level.lengths.clone())),
        )
    }
}

fn predictor(sample: SampleType) -> Predictor {
    if sample.is_float() {
        Predictor::FloatingPoint
    } else {
        Predictor::Horizontal
    }
}

impl Level {
    fn new(path: &Path, (width, height): (usize, usize), is_overview: bool) -> Result<Self> {
        let spool = tempfile::tempfile_in(folder(path)).map_err(|source| Error::Io {
            path: path.to_owned(),
            action: "be created",
            source,
        })?;
        Ok(Self {
            width,
            height,
            is_overview,
            pending: Vec::new(),
            upper: None,
            block_rows: 0,
            spool: BufWriter::with_capacity(1 << 18, spool),
            lengths: Vec::new(),
        })
    }

    fn append(
        &mut self,
        row: &[f64],
        path: &Path,
        storage: &Storage,
        unit: HeightUnit,
    ) -> Result<()> {
        self.pending.extend_from_slice(row);
        if self.pending.len() == self.width * BLOCK {
            self.flush(path, storage, unit)?;
        }
        Ok(())
    }

    /// Compresses the pending rows as a row of blocks.
    fn flush(&mut self, path: &Path, storage: &Storage, unit: HeightUnit) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let first_row = self.block_rows * BLOCK;
        let blocks: Vec<Vec<u8>> = (0..self.width.div_ceil(BLOCK))
            .into_par_iter()
            .map(|column| {
                let block = Stored {
                    storage,
                    unit,
                    path,
                    is_overview: self.is_overview,
                    first_row,
                    first_column: column * BLOCK,
                };
                block.compress(&self.pending, self.width)
            })
            .collect::<Result<_>>()?;
        for block in blocks {
            self.spool.write_all(&block).map_err(|source| Error::Io {
                path: path.to_owned(),
                action: "be written",
                source,
            })?;
            self.lengths.push(block.len() as u32);
        }
        self.pending.clear();
        self.block_rows += 1;
        Ok(())
    }
}

/// One block on its way from heights to stored numbers.
struct Stored<'a> {
    storage: &'a Storage,
    unit: HeightUnit,
    path: &'a Path,
    is_overview: bool,
    first_row: usize,
    first_column: usize,
}

impl Stored<'_> {
    fn compress(&self, rows: &[f64], width: usize) -> Result<Vec<u8>> {
        match self.storage.sample {
            SampleType::U8 => self.compress_as(rows, width, |raw| raw as u8),
            SampleType::I8 => self.compress_as(rows, width, |raw| raw as i8),
            SampleType::U16 => self.compress_as(rows, width, |raw| raw as u16),
            SampleType::I16 => self.compress_as(rows, width, |raw| raw as i16),
            SampleType::U32 => self.compress_as(rows, width, |raw| raw as u32),
            SampleType::I32 => self.compress_as(rows, width, |raw| raw as i32),
            SampleType::F32 => self.compress_as(rows, width, |raw| raw as f32),
            SampleType::F64 => self.compress_as(rows, width, |raw| raw),
        }
    }

    fn compress_as<T: TiffWriteSample>(
        &self,
        rows: &[f64],
        width: usize,
        convert: impl Fn(f64) -> T,
    ) -> Result<Vec<u8>> {
        let height = rows.len() / width;
        let mut samples = Vec::with_capacity(BLOCK * BLOCK);
        for row in 0..BLOCK {
            // Blocks at the edges are filled up with their last pixels, which cost least.
            let row = row.min(height - 1);
            for column in self.first_column..self.first_column + BLOCK {
                let column = column.min(width - 1);
                samples.push(convert(self.raw(
                    rows[row * width + column],
                    row,
                    column,
                )?));
            }
        }
        let options = BlockEncodingOptions {
            byte_order: ByteOrder::LittleEndian,
            compression: Compression::Deflate,
            predictor: predictor(self.storage.sample),
            samples_per_pixel: 1,
            row_width_pixels: BLOCK,
            jpeg_options: None,
            jpeg_sampling: None,
            deflate_level: Some(DEFLATE_LEVEL),
        };
        compress_block(&samples, options, 0).map_err(|error| Error::Io {
            path: self.path.to_owned(),
            action: "be compressed",
            source: std::io::Error::other(error),
        })
    }

    fn raw(&self, height_m: f64, row: usize, column: usize) -> Result<f64> {
        if self.is_overview {
            return Ok(self.storage.nearest(height_m, self.unit));
        }
        let stored = self.storage.store(height_m, self.unit);
        stored.map_err(|reason| Error::Height {
            path: self.path.to_owned(),
            row: self.first_row + row,
            column,
            reason,
        })
    }
}
