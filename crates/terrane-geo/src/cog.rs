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
use tiff_core::{ByteOrder, Compression, Predictor, Tag, TagValue};
use tiff_writer::TiffWriteSample;
use tiff_writer::compress::{BlockEncodingOptions, compress_block};

use crate::atomic::AtomicFile;
use crate::output::{Output, folder};
use crate::{Error, Georeference, HeightUnit, Quantity, Result, SampleType, Storage, tag};

/// Side of a block in pixels.
const BLOCK: usize = 256;
/// Higher levels cost much time and save one part in a hundred.
const DEFLATE_LEVEL: u32 = 6;
/// What GDAL looks for to know that directories stand before the data and that blocks carry their length.
const GHOST: &str = "LAYOUT=IFDS_BEFORE_DATA\nBLOCK_ORDER=ROW_MAJOR\nBLOCK_LEADER=SIZE_AS_UINT4\n\
                     BLOCK_TRAILER=LAST_4_BYTES_REPEATED\nKNOWN_INCOMPATIBLE_EDITION=NO\n ";

/// A cloud-optimised `GeoTIFF` that is being written; it appears under its name when it is finished.
pub struct CogWriter {
    output: AtomicFile,
    path: PathBuf,
    georeference: Georeference,
    storage: Storage,
    unit: HeightUnit,
    levels: Vec<Level>,
    rows: usize,
}

/// One resolution of the raster.
struct Level {
    width: usize,
    height: usize,
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
        let unit = match storage.band.quantity {
            Quantity::Height => {
                storage
                    .unit(&georeference.crs)
                    .map_err(|what| Error::Unsupported {
                        path: path.to_owned(),
                        what,
                        advice: "give the band a unit that is known, such as m or ft",
                    })?
            }
            Quantity::Other(_) => {
                // GDAL would take the unit of heights for that of a band that states none.
                georeference.crs = georeference.crs.horizontal();
                HeightUnit::Metre
            }
        };
        let output = AtomicFile::create(output)?;
        let mut levels = Vec::new();
        let mut size = (width, height);
        loop {
            levels.push(Level::new(path, size)?);
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
    pub fn note(&mut self, name: &str, value: &str) {
        let item = (name.to_owned(), value.to_owned());
        self.storage.band.items.push(item);
    }

    /// Completes the file and gives it its name.
    pub fn finish(mut self) -> Result<()> {
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
        self.assemble().map_err(|source| Error::Io {
            path,
            action: "be written",
            source,
        })?;
        self.output.commit()
    }

    fn assemble(&mut self) -> std::io::Result<()> {
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
        file.flush()
    }
}

const LEADER: u64 = 4;
const TRAILER: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Classic,
    Big,
}

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
                directory(
                    &cog.tags(level, vec![0; cog.levels[level].lengths.len()], width),
                    0,
                    0,
                    width,
                )
                .len() as u64
            })
            .collect();
        let ghost = format!(
            "GDAL_STRUCTURAL_METADATA_SIZE={:06} bytes\n{GHOST}",
            GHOST.len()
        );
        let mut head = match width {
            Width::Classic => vec![b'I', b'I', 42, 0],
            Width::Big => vec![b'I', b'I', 43, 0, 8, 0, 0, 0],
        };
        let pointer = if width == Width::Classic { 4 } else { 8 };
        let first = (head.len() + pointer + ghost.len()).next_multiple_of(16) as u64;
        head.extend(&first.to_le_bytes()[..pointer]);
        head.extend(ghost.as_bytes());
        head.resize(first as usize, 0);

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
            head.extend(directory(
                &cog.tags(level, offsets, width),
                start,
                next,
                width,
            ));
            start += sizes[level];
        }
        Self { head, end: offset }
    }
}

/// One TIFF directory at an offset, with the values that do not fit into its entries behind it.
fn directory(tags: &[Tag], start: u64, next: u64, width: Width) -> Vec<u8> {
    let (count_bytes, entry_bytes, inline) = if width == Width::Classic {
        (2, 12, 4)
    } else {
        (8, 20, 8)
    };
    let mut values = start + (count_bytes + entry_bytes * tags.len() + inline) as u64;
    let mut entries = (tags.len() as u64).to_le_bytes()[..count_bytes].to_vec();
    let mut outside = Vec::new();
    for tag in tags {
        let mut bytes = tag.value.encode(ByteOrder::LittleEndian);
        entries.extend(tag.code.to_le_bytes());
        entries.extend(tag.tag_type.to_code().to_le_bytes());
        entries.extend(&tag.count.to_le_bytes()[..inline]);
        if bytes.len() <= inline {
            bytes.resize(inline, 0);
            entries.extend(bytes);
        } else {
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            entries.extend(&values.to_le_bytes()[..inline]);
            values += bytes.len() as u64;
            outside.extend(bytes);
        }
    }
    entries.extend(&next.to_le_bytes()[..inline]);
    entries.extend(outside);
    // Directories begin on even offsets.
    entries.resize(entries.len().next_multiple_of(8), 0);
    entries
}

impl CogWriter {
    fn tags(&self, index: usize, offsets: Vec<u64>, width: Width) -> Vec<Tag> {
        let level = &self.levels[index];
        let sample = self.storage.sample;
        let format = match sample {
            SampleType::U8 | SampleType::U16 | SampleType::U32 => 1,
            SampleType::I8 | SampleType::I16 | SampleType::I32 => 2,
            SampleType::F32 | SampleType::F64 => 3,
        };
        let short = |code, value| Tag::new(code, TagValue::Short(vec![value]));
        let long = |code, value: usize| Tag::new(code, TagValue::Long(vec![value as u32]));
        let offsets = match width {
            Width::Classic => {
                TagValue::Long(offsets.into_iter().map(|offset| offset as u32).collect())
            }
            Width::Big => TagValue::Long8(offsets),
        };
        let mut tags = vec![
            long(
                tag::NEW_SUBFILE_TYPE,
                if index == 0 { 0 } else { tag::REDUCED as usize },
            ),
            long(tag::IMAGE_WIDTH, level.width),
            long(tag::IMAGE_LENGTH, level.height),
            short(tag::BITS_PER_SAMPLE, 8 * sample.bytes() as u16),
            short(tag::COMPRESSION, Compression::Deflate.to_code()),
            short(tag::PHOTOMETRIC, 1),
            short(tag::SAMPLES_PER_PIXEL, 1),
            short(tag::PLANAR_CONFIGURATION, 1),
            short(tag::PREDICTOR, predictor(sample).to_code()),
            long(tag::TILE_WIDTH, BLOCK),
            long(tag::TILE_LENGTH, BLOCK),
            Tag::new(tag::TILE_OFFSETS, offsets),
            Tag::new(tag::TILE_BYTE_COUNTS, TagValue::Long(level.lengths.clone())),
            short(tag::SAMPLE_FORMAT, format),
        ];
        if index == 0 {
            tags.extend(georeference_tags(&self.georeference));
            tags.extend(
                self.storage
                    .band
                    .to_xml()
                    .map(|xml| Tag::new(tag::GDAL_METADATA, TagValue::Ascii(xml))),
            );
        }
        tags.extend(
            self.storage
                .nodata
                .map(|nodata| Tag::new(tag::GDAL_NODATA, TagValue::Ascii(nodata_text(nodata)))),
        );
        tags
    }
}

fn georeference_tags(georeference: &Georeference) -> Vec<Tag> {
    let a = georeference.anchor;
    let double = |code, values| Tag::new(code, TagValue::Double(values));
    let mut tags = Vec::new();
    if georeference.is_georeferenced {
        if a.is_rotated() || a.y_per_row > 0.0 {
            let matrix = vec![
                a.x_per_column,
                a.x_per_row,
                0.0,
                a.x,
                a.y_per_column,
                a.y_per_row,
                0.0,
                a.y,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                1.0,
            ];
            tags.push(double(tag::MODEL_TRANSFORMATION, matrix));
        } else {
            tags.push(double(
                tag::MODEL_PIXEL_SCALE,
                vec![a.x_per_column, -a.y_per_row, 0.0],
            ));
            tags.push(double(
                tag::MODEL_TIEPOINT,
                vec![0.0, 0.0, 0.0, a.x, a.y, 0.0],
            ));
        }
    }
    let crs = &georeference.crs;
    if !crs.is_empty() {
        tags.push(Tag::new(
            tag::GEO_KEY_DIRECTORY,
            TagValue::Short(crs.directory.clone()),
        ));
        if !crs.doubles.is_empty() {
            tags.push(double(tag::GEO_DOUBLE_PARAMS, crs.doubles.clone()));
        }
        if !crs.text.is_empty() {
            tags.push(Tag::new(
                tag::GEO_ASCII_PARAMS,
                TagValue::Ascii(crs.text.clone()),
            ));
        }
    }
    tags
}

/// A nodata value as GDAL writes it, and such that it reads back to the same number.
fn nodata_text(nodata: f64) -> String {
    if nodata.is_nan() {
        "nan".into()
    } else if nodata.abs() >= 1e15 {
        format!("{nodata:e}")
    } else {
        nodata.to_string()
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
    fn new(path: &Path, (width, height): (usize, usize)) -> Result<Self> {
        let spool = tempfile::tempfile_in(folder(path)).map_err(|source| Error::Io {
            path: path.to_owned(),
            action: "be created",
            source,
        })?;
        Ok(Self {
            width,
            height,
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
        let refuse = |reason: String| Error::Height {
            path: self.path.to_owned(),
            row: self.first_row + row,
            column,
            reason,
        };
        let storage = self.storage;
        let range = storage.sample.integer_range();
        if height_m.is_nan() {
            return match (storage.nodata, range) {
                (Some(nodata), Some((min, max))) if nodata >= min && nodata <= max => Ok(nodata),
                (Some(nodata), None) => Ok(nodata),
                (None, None) => Ok(f64::NAN),
                _ => Err(refuse(format!(
                    "there is no data, and {} has no nodata value",
                    storage.sample.name()
                ))),
            };
        }
        let unit = match storage.band.quantity {
            Quantity::Height => " m",
            Quantity::Other(_) => "",
        };
        let mut raw = storage.raw(height_m, self.unit);
        if let Some((min, max)) = range {
            raw = raw.round();
            if raw < min || raw > max {
                return Err(refuse(format!(
                    "{height_m}{unit} does not fit into {}",
                    storage.sample.name()
                )));
            }
        }
        if storage.is_missing(raw) {
            return Err(refuse(format!(
                "{height_m}{unit} would be read back as nodata"
            )));
        }
        Ok(raw)
    }
}
