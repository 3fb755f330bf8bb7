//! Reading a `GeoTIFF`, from any source that `tiff-reader` can decode, without its silent traps.
//!
//! `tiff-reader` decodes blocks; everything that gives the numbers a meaning is done here: blocks that are absent from
//! the file are nodata or 0 as for GDAL, nodata and internal masks are honoured, scale, offset and unit are applied.

use std::path::{Path, PathBuf};

use terrane_format::Window;
use tiff_reader::filters::{decompress, fix_endianness_and_predict};
use tiff_reader::{ByteOrder, Ifd, OpenOptions, ParseBudgets, TiffError, TiffFile};

use crate::file_state::FileState;
use crate::metadata::parse_nodata;
use crate::sample::Pixel;
use crate::tag;
use crate::{
    Affine, BandMetadata, Crs, Error, Georeference, Grid, HeightUnit, Quantity, RasterInfo,
    RasterSource, Result, SampleType, Storage,
};

/// A compressed block is decoded whole; one larger than this would break the bound on memory.
const MAX_BLOCK_BYTES: usize = 256 << 20;
/// A window is decoded in parts of this size, or of a block where that is larger, so that what is decoded of a window
/// of any width takes bounded memory beside its heights.
const PART_BYTES: usize = 16 << 20;

const LERC: u16 = 34887;

/// What the library makes of a window.
type Decoded = std::result::Result<Vec<u8>, TiffError>;

const UNIT_ADVICE: &str = "give the band a unit that is known, such as m or ft";
const SPLIT_ADVICE: &str = "extract the elevation band first, for example with gdal_translate -b 1";
const REWRITE_ADVICE: &str = "rewrite it first, for example with gdal_translate -of COG";

/// A `GeoTIFF` that is read by windows.
pub struct GeoTiff {
    tiff: TiffFile,
    state: FileState,
    info: RasterInfo,
    images: Vec<Image>,
}

/// What a file may hold to be opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Accept {
    Heights,
    AnyQuantity,
}

/// One resolution of the raster, with its mask where it has one.
struct Image {
    blocks: Blocks,
    mask: Option<Blocks>,
}

/// The pixels of one TIFF directory.
struct Blocks {
    ifd: Ifd,
    sample: SampleType,
    width: usize,
    height: usize,
    block_width: usize,
    block_height: usize,
    /// Where each block stands in the file, and its length.
    offsets: Vec<u64>,
    counts: Vec<u64>,
    has_absent: bool,
    access: Access,
}

/// How the pixels of a directory are got at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// A block is decoded whole.
    Blocks,
    /// Strips that are not compressed are read by rows.
    Rows,
}

impl GeoTiff {
    /// Opens a file of heights and reads its directories, but none of its heights.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_as(path, Accept::Heights)
    }

    /// Opens a file of heights or of any other quantity, such as slopes, whose values are read as they are stored, in
    /// the unit that the band states.
    pub fn open_values(path: &Path) -> Result<Self> {
        Self::open_as(path, Accept::AnyQuantity)
    }

    fn open_as(path: &Path, accept: Accept) -> Result<Self> {
        // Before anything is read of it, so that no change goes unseen.
        let state = FileState::of(path)?;
        refuse_sidecars(path)?;
        let options = OpenOptions {
            parse_budgets: ParseBudgets {
                max_ifds: 256,
                max_ifd_entries: 4096,
                ..ParseBudgets::default()
            },
            decode_output_bytes: 2 * MAX_BLOCK_BYTES,
            ..OpenOptions::default()
        };
        let tiff =
            TiffFile::open_with_options(path, options).map_err(|error| translate(path, error))?;
        let directories = directories(path, &tiff)?;
        let [main, ..] = directories.as_slice() else {
            return Err(malformed(path, "it holds no image"));
        };

        let bands = main.samples_per_pixel();
        if bands != 1 {
            return Err(unsupported(
                path,
                format!("a raster of {bands} bands"),
                SPLIT_ADVICE,
            ));
        }
        if !matches!(main.photometric_interpretation(), None | Some(0 | 1)) {
            return Err(unsupported(
                path,
                "an image of colours instead of heights",
                SPLIT_ADVICE,
            ));
        }

        let crs = crs(main);
        let georeference = georeference(path, main, crs)?;
        let band = band_metadata(path, main, &georeference.crs)?;
        let nodata = main
            .tag(tag::GDAL_NODATA)
            .and_then(|tag| tag.value.as_str())
            .and_then(parse_nodata);

        let mut images = Vec::new();
        for directory in directories.iter().filter(|ifd| !is_mask(ifd)) {
            let blocks = Blocks::new(path, &tiff, directory.clone())?;
            let mask = directories
                .iter()
                .find(|ifd| {
                    is_mask(ifd)
                        && ifd.width() == directory.width()
                        && ifd.height() == directory.height()
                })
                .map(|ifd| Blocks::new(path, &tiff, ifd.clone()))
                .transpose()?;
            images.push(Image { blocks, mask });
        }

        let storage = Storage {
            sample: images[0].blocks.sample,
            nodata,
            band,
        };
        let unit = match (&storage.band.quantity, accept) {
            (Quantity::Height, Accept::Heights) => storage
                .unit(&georeference.crs)
                .map_err(|what| unsupported(path, what, UNIT_ADVICE))?,
            (Quantity::Height, Accept::AnyQuantity) => {
                storage.unit(&georeference.crs).unwrap_or_default()
            }
            (Quantity::Other(name), Accept::Heights) => {
                return Err(unsupported(
                    path,
                    format!("a raster of {name} instead of heights"),
                    "give the raster of heights that it was derived from",
                ));
            }
            (Quantity::Other(_), Accept::AnyQuantity) => HeightUnit::Metre,
        };
        let levels = images
            .iter()
            .map(|image| (image.blocks.width, image.blocks.height))
            .collect();
        let info = RasterInfo {
            path: path.to_owned(),
            levels,
            georeference,
            storage,
            unit,
        };
        Ok(Self {
            tiff,
            state,
            info,
            images,
        })
    }

    fn read_image(&self, image: &Image, window: Window) -> Result<Grid> {
        let Image { blocks, mask } = image;
        let (path, storage, unit) = (&self.info.path, &self.info.storage, self.info.unit);
        let mut grid = Grid::missing(window.width, window.height);
        for part in blocks.parts(window) {
            let stored = blocks.read(path, &self.tiff, part)?;
            let valid = match mask {
                Some(mask) => Some((mask, mask.read(path, &self.tiff, part)?)),
                None => None,
            };
            for row in 0..part.height {
                let mut samples = blocks.row(&stored, part, row);
                blocks.fill_absent(&mut samples, part, row, storage.absent());
                let valid = valid
                    .as_ref()
                    .map(|(mask, stored)| mask.row(stored, part, row));
                let start =
                    (part.row - window.row + row) * window.width + part.column - window.column;
                let line = &mut grid.heights[start..start + part.width];
                for (column, (height, &raw)) in line.iter_mut().zip(&samples).enumerate() {
                    if valid.as_ref().is_some_and(|valid| valid[column] == 0.0) {
                        continue;
                    }
                    match storage.pixel(raw, unit) {
                        Pixel::Height(height_m) => *height = height_m,
                        Pixel::Missing => {}
                        Pixel::NotAHeight => grid.not_heights += 1,
                    }
                }
            }
        }
        Ok(grid)
    }

    /// The state of the file when it was opened.
    pub(crate) fn state(&self) -> FileState {
        self.state
    }
}

impl RasterSource for GeoTiff {
    fn info(&self) -> &RasterInfo {
        &self.info
    }

    fn read(&self, level: usize, window: Window) -> Result<Grid> {
        self.info.check(level, window)?;
        // A block that cannot be decoded may be one that is being written.
        self.read_image(&self.images[level], window)
            .map_err(|error| self.check_unchanged().err().unwrap_or(error))
    }

    fn block_width(&self) -> usize {
        self.images[0].blocks.block_width
    }

    fn touches(&self, window: Window) -> bool {
        let blocks = &self.images[0].blocks;
        let whole = Window::whole(blocks.width, blocks.height);
        let Some(inside) = window.intersection(&whole) else {
            return false;
        };
        let fill = self
            .info
            .storage
            .pixel(self.info.storage.absent(), self.info.unit);
        !blocks.has_absent
            || fill != Pixel::Missing
            || blocks
                .within(inside)
                .any(|(index, _)| !blocks.is_absent(index))
    }

    fn check_unchanged(&self) -> Result<()> {
        self.state.check(&self.info.path)
    }
}

impl Blocks {
    fn new(path: &Path, tiff: &TiffFile, ifd: Ifd) -> Result<Self> {
        let (width, height) = (ifd.width() as usize, ifd.height() as usize);
        if width == 0 || height == 0 {
            return Err(malformed(path, "it has no pixels"));
        }
        let compression = compression_name(ifd.compression());
        if let Err(name) = compression {
            return Err(unsupported(
                path,
                format!("{name} compression"),
                REWRITE_ADVICE,
            ));
        }
        if ifd.compression() == LERC && tiff.byte_order() == ByteOrder::BigEndian {
            // GDAL swaps the samples before LERC sees them, other writers do not: nothing tells which one wrote.
            return Err(unsupported(
                path,
                "LERC compression in a big-endian file",
                REWRITE_ADVICE,
            ));
        }
        let layout = ifd
            .raster_layout()
            .map_err(|error| translate(path, error))?;
        let sample =
            sample_type(layout.sample_format, layout.bits_per_sample).ok_or_else(|| {
                let what = format!(
                    "{}-bit samples of format {}",
                    layout.bits_per_sample, layout.sample_format
                );
                unsupported(path, what, REWRITE_ADVICE)
            })?;

        let (block_width, block_height, offsets, counts) = block_table(path, &ifd)?;
        let has_absent = offsets.contains(&0) || counts.contains(&0);

        let row_bytes = width as u64 * sample.bytes() as u64;
        let is_plain = ifd.compression() == 1
            && !ifd.is_tiled()
            && layout.predictor == 1
            && usize::from(layout.bits_per_sample) == 8 * sample.bytes()
            && ifd.fill_order() == 1
            && !has_absent
            && counts.iter().enumerate().all(|(strip, &count)| {
                count >= row_bytes * block_height.min(height - strip * block_height) as u64
            });
        let block_bytes = block_width
            .saturating_mul(block_height)
            .saturating_mul(sample.bytes());
        if !is_plain && block_bytes > MAX_BLOCK_BYTES {
            let what = format!("a raster in blocks of {} MB", block_bytes >> 20);
            return Err(unsupported(
                path,
                what,
                "rewrite it with smaller blocks, for example with gdal_translate -of COG",
            ));
        }
        let end = tiff.source().len();
        if is_plain
            && offsets
                .iter()
                .zip(&counts)
                .any(|(offset, count)| offset.checked_add(*count).is_none_or(|last| last > end))
        {
            return Err(malformed(path, "it ends before its last block"));
        }
        let access = if is_plain {
            Access::Rows
        } else {
            Access::Blocks
        };
        Ok(Self {
            ifd,
            sample,
            width,
            height,
            block_width,
            block_height,
            offsets,
            counts,
            has_absent,
            access,
        })
    }

    /// Parts of a window to be read one after another, each of whole blocks as far as the window holds them.
    fn parts(&self, window: Window) -> impl Iterator<Item = Window> {
        let pixels = PART_BYTES / self.sample.bytes();
        let (width, height) = match self.access {
            Access::Blocks => (self.block_width, self.block_height),
            Access::Rows => (1, 1),
        };
        let across = width * (pixels / height / width).max(1);
        let down = height * (pixels / across.min(window.width.max(1)) / height).max(1);
        tiles(window, across, down)
    }

    /// The blocks that a window touches, each by its number and with the part of the window that lies in it.
    fn within(&self, window: Window) -> impl Iterator<Item = (usize, Window)> {
        let across = self.width.div_ceil(self.block_width);
        tiles(window, self.block_width, self.block_height).map(move |part| {
            let (row, column) = (part.row / self.block_height, part.column / self.block_width);
            (row * across + column, part)
        })
    }

    fn is_absent(&self, block: usize) -> bool {
        self.offsets[block] == 0 || self.counts[block] == 0
    }

    /// Reads the bytes of a window, native-endian.
    fn read(&self, path: &Path, tiff: &TiffFile, window: Window) -> Result<Vec<u8>> {
        let bytes = match self.access {
            Access::Rows => self.read_rows(tiff, window),
            Access::Blocks => self.read_blocks(tiff, window),
        };
        let bytes = bytes.map_err(|error| translate(path, error))?;
        if Some(bytes.len()) != window.pixels().map(|pixels| pixels * self.sample.bytes()) {
            return Err(malformed(path, "a block holds fewer pixels than it should"));
        }
        Ok(bytes)
    }

    fn read_rows(&self, tiff: &TiffFile, window: Window) -> Decoded {
        let size = self.sample.bytes();
        let mut bytes = Vec::with_capacity(window.width * window.height * size);
        for row in window.row..window.row + window.height {
            let within = (row % self.block_height) * self.width + window.column;
            let offset = self.offsets[row / self.block_height] + (within * size) as u64;
            bytes.extend(tiff.source().read_exact_at(offset, window.width * size)?);
        }
        let is_native =
            (tiff.byte_order() == ByteOrder::LittleEndian) == cfg!(target_endian = "little");
        if !is_native {
            bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        Ok(bytes)
    }

    fn read_blocks(&self, tiff: &TiffFile, window: Window) -> Decoded {
        let decode = |window: Window| {
            let Window {
                column,
                row,
                width,
                height,
            } = window;
            tiff.read_window_bytes_from_ifd(&self.ifd, row, column, height, width)
        };
        match decode(window) {
            Err(TiffError::DecompressionFailed { .. }) => {}
            decoded => return decoded,
        }
        // The library refuses a block that decodes to more bytes than its pixels take; such a one is decoded here.
        let size = self.sample.bytes();
        let mut bytes = vec![0; window.width * window.height * size];
        for (block, part) in self.within(window) {
            let decoded = match decode(part) {
                Err(error @ TiffError::DecompressionFailed { .. }) => {
                    self.long_block(tiff, block, part).ok_or(error)
                }
                decoded => decoded,
            }?;
            let lines = decoded.chunks_exact(part.width * size);
            for (row, line) in (part.row - window.row..).zip(lines) {
                let start = (row * window.width + part.column - window.column) * size;
                bytes[start..start + line.len()].copy_from_slice(line);
            }
        }
        Ok(bytes)
    }

    /// A part of a block that decodes to more bytes than its pixels take: the first ones are its pixels, as for GDAL.
    /// Writers fill up a last strip, or end a block with bytes of their own.
    fn long_block(&self, tiff: &TiffFile, block: usize, part: Window) -> Option<Vec<u8>> {
        let layout = self.ifd.raster_layout().ok()?;
        let size = self.sample.bytes();
        if usize::from(layout.bits_per_sample) != 8 * size {
            return None;
        }
        let length = usize::try_from(self.counts[block]).ok()?;
        if length > MAX_BLOCK_BYTES {
            return None;
        }
        let mut stored = tiff
            .source()
            .read_exact_at(self.offsets[block], length)
            .ok()?;
        if self.ifd.fill_order() == 2 {
            for byte in &mut stored {
                *byte = byte.reverse_bits();
            }
        }
        let compression = self.ifd.compression();
        let mut bytes = decompress(compression, &stored, block, None, MAX_BLOCK_BYTES).ok()?;
        let first_row = part.row / self.block_height * self.block_height;
        let rows = if self.ifd.is_tiled() {
            self.block_height
        } else {
            self.block_height.min(self.height - first_row)
        };
        let row_bytes = self.block_width * size;
        if bytes.len() <= rows * row_bytes {
            return None;
        }
        let mut pixels = Vec::with_capacity(part.width * part.height * size);
        let start = part.column % self.block_width * size;
        let rows = bytes.chunks_exact_mut(row_bytes);
        for row in rows.skip(part.row - first_row).take(part.height) {
            let (bits, order) = (layout.bits_per_sample, tiff.byte_order());
            fix_endianness_and_predict(row, bits, 1, order, layout.predictor).ok()?;
            pixels.extend_from_slice(&row[start..start + part.width * size]);
        }
        Some(pixels)
    }

    /// One row of the stored numbers of a window, out of its bytes.
    fn row(&self, bytes: &[u8], window: Window, row: usize) -> Vec<f64> {
        let length = window.width * self.sample.bytes();
        self.sample.decode(&bytes[row * length..][..length])
    }

    /// Gives the pixels of absent blocks in a row of a window their number: the decoder fills them with zeros.
    fn fill_absent(&self, samples: &mut [f64], window: Window, row: usize, absent: f64) {
        if !self.has_absent || absent == 0.0 {
            return;
        }
        let line = Window {
            row: window.row + row,
            height: 1,
            ..window
        };
        for (block, part) in self.within(line) {
            if self.is_absent(block) {
                samples[part.column - window.column..][..part.width].fill(absent);
            }
        }
    }
}

/// A window cut along the lines of a grid of cells that starts at the raster's first pixel.
fn tiles(window: Window, width: usize, height: usize) -> impl Iterator<Item = Window> {
    let rows = cuts(window.row, window.height, height);
    rows.flat_map(move |(row, height)| {
        cuts(window.column, window.width, width).map(move |(column, width)| Window {
            column,
            row,
            width,
            height,
        })
    })
}

/// Start and length of each part of a stretch that is cut at the multiples of a step.
fn cuts(start: usize, length: usize, step: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = start + length;
    let mut next = start;
    std::iter::from_fn(move || {
        let first = next;
        next = (first / step + 1).saturating_mul(step).min(end);
        (first < end).then(|| (first, next - first))
    })
}

/// Size of a block, and offset and length of each; as many as the pixels need.
fn block_table(path: &Path, ifd: &Ifd) -> Result<(usize, usize, Vec<u64>, Vec<u64>)> {
    let (width, height) = (ifd.width() as usize, ifd.height() as usize);
    let (block_width, block_height) = match (ifd.tile_width(), ifd.tile_height()) {
        (Some(width), Some(height)) if ifd.is_tiled() => (width as usize, height as usize),
        _ => (width, (ifd.rows_per_strip() as usize).min(height)),
    };
    if block_width == 0 || block_height == 0 {
        return Err(malformed(path, "its blocks have no pixels"));
    }
    let (offsets, counts) = if ifd.is_tiled() {
        (ifd.tile_offsets(), ifd.tile_byte_counts())
    } else {
        (ifd.strip_offsets(), ifd.strip_byte_counts())
    };
    let (Some(offsets), Some(counts)) = (offsets, counts) else {
        return Err(malformed(path, "it does not say where its blocks are"));
    };
    let expected = width
        .div_ceil(block_width)
        .checked_mul(height.div_ceil(block_height));
    if expected != Some(offsets.len()) || expected != Some(counts.len()) {
        let reason = format!(
            "{width}x{height} pixels in blocks of {block_width}x{block_height} do not make {} blocks",
            offsets.len()
        );
        return Err(malformed(path, &reason));
    }
    Ok((block_width, block_height, offsets, counts))
}

/// The directory of full resolution.
pub(crate) fn main_directory(tiff: &TiffFile) -> Option<&Ifd> {
    tiff.ifds()
        .iter()
        .find(|ifd| subfile_type(ifd) & (tag::REDUCED | tag::MASK) == 0)
}

/// The main image, then its overviews and masks, whether they are chained or subordinate.
fn directories(path: &Path, tiff: &TiffFile) -> Result<Vec<Ifd>> {
    let Some(main) = main_directory(tiff) else {
        return Err(malformed(path, "it holds no image at full resolution"));
    };
    let mut all = vec![main.clone()];
    all.extend(
        tiff.ifds()
            .iter()
            .filter(|ifd| subfile_type(ifd) & (tag::REDUCED | tag::MASK) != 0)
            .cloned(),
    );
    for offset in main
        .sub_ifd_offsets()
        .unwrap_or_default()
        .into_iter()
        .take(64)
    {
        all.push(
            tiff.read_ifd_at_offset(offset)
                .map_err(|error| translate(path, error))?,
        );
    }
    all[1..].sort_by_key(|ifd| std::cmp::Reverse((ifd.width(), ifd.height())));
    Ok(all)
}

fn subfile_type(ifd: &Ifd) -> u32 {
    ifd.tag(tag::NEW_SUBFILE_TYPE)
        .and_then(|tag| tag.value.as_u32())
        .unwrap_or(0)
}

fn is_mask(ifd: &Ifd) -> bool {
    subfile_type(ifd) & tag::MASK != 0
}

pub(crate) fn crs(ifd: &Ifd) -> Crs {
    let directory = ifd
        .tag(tag::GEO_KEY_DIRECTORY)
        .and_then(|tag| tag.value.as_u16_slice());
    let doubles = ifd
        .tag(tag::GEO_DOUBLE_PARAMS)
        .and_then(|tag| tag.value.as_f64_vec());
    let text = ifd
        .tag(tag::GEO_ASCII_PARAMS)
        .and_then(|tag| tag.value.as_str());
    Crs {
        directory: directory.unwrap_or_default().to_vec(),
        doubles: doubles.unwrap_or_default(),
        text: text.unwrap_or_default().trim_end_matches('\0').to_owned(),
    }
}

fn georeference(path: &Path, ifd: &Ifd, crs: Crs) -> Result<Georeference> {
    let numbers = |code| ifd.tag(code).and_then(|tag| tag.value.as_f64_vec());
    let anchor = match (
        numbers(tag::MODEL_TRANSFORMATION),
        numbers(tag::MODEL_PIXEL_SCALE),
        numbers(tag::MODEL_TIEPOINT),
    ) {
        (Some(m), ..) if m.len() == 16 => Affine {
            x: m[3],
            x_per_column: m[0],
            x_per_row: m[1],
            y: m[7],
            y_per_column: m[4],
            y_per_row: m[5],
        },
        (_, Some(scale), Some(tie)) if scale.len() >= 2 && tie.len() == 6 => {
            // GDAL reads a negative vertical scale as north-up too: writers of such files mean that.
            let y_per_row = -scale[1].abs();
            Affine {
                x: tie[3] - tie[0] * scale[0],
                x_per_column: scale[0],
                x_per_row: 0.0,
                y: tie[4] - tie[1] * y_per_row,
                y_per_column: 0.0,
                y_per_row,
            }
        }
        (_, _, Some(_)) => {
            return Err(unsupported(
                path,
                "a raster placed by ground control points",
                "warp it to a regular grid first, for example with gdalwarp",
            ));
        }
        _ => {
            if let Some(world) = world_file(path) {
                return Err(unsupported(
                    path,
                    format!("a raster placed by a world file ({})", world.display()),
                    REWRITE_ADVICE,
                ));
            }
            return Ok(Georeference::of_pixels(crs));
        }
    };
    if anchor.pixel_size() == 0.0 || !anchor.pixel_size().is_finite() {
        return Err(malformed(path, "its pixels have no size"));
    }
    Ok(Georeference::new(anchor, crs))
}

/// What is said of the one band.
fn band_metadata(path: &Path, ifd: &Ifd, crs: &Crs) -> Result<BandMetadata> {
    let xml = ifd.tag(tag::GDAL_METADATA);
    let mut band = match xml.and_then(|tag| tag.value.as_str()) {
        Some(xml) => BandMetadata::parse(xml).map_err(|reason| malformed(path, &reason))?,
        None => BandMetadata::default(),
    };
    if let Some((scale, offset)) = vertical_scale(ifd, crs) {
        if scale == 0.0 || !scale.is_finite() || !offset.is_finite() {
            return Err(malformed(path, "its heights have no scale"));
        }
        (band.scale, band.offset) = (scale, offset);
    }
    Ok(band)
}

/// Scale and offset of heights in the third numbers of pixel scale and tie point, where GDAL writes them beside a vertical
/// system; they count before those of its metadata.
fn vertical_scale(ifd: &Ifd, crs: &Crs) -> Option<(f64, f64)> {
    let numbers = |code| ifd.tag(code).and_then(|tag| tag.value.as_f64_vec());
    let has_matrix = numbers(tag::MODEL_TRANSFORMATION).is_some_and(|matrix| matrix.len() == 16);
    if has_matrix || !crs.has_vertical_system() {
        return None;
    }
    let (scale, tie) = (
        numbers(tag::MODEL_PIXEL_SCALE)?,
        numbers(tag::MODEL_TIEPOINT)?,
    );
    let (&[_, _, scale, ..], &[_, _, at, _, _, height]) = (&scale[..], &tie[..]) else {
        return None;
    };
    let offset = height - at * scale;
    ((scale, offset) != (0.0, 0.0)).then_some((scale, offset))
}

fn world_file(path: &Path) -> Option<PathBuf> {
    ["tfw", "tifw", "wld", "TFW"]
        .iter()
        .map(|extension| path.with_extension(extension))
        .find(|file| file.exists())
}

/// GDAL lets files beside the TIFF change its pixels; not reading them must not pass unnoticed.
fn refuse_sidecars(path: &Path) -> Result<()> {
    let beside = |extension: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(extension);
        PathBuf::from(name)
    };
    if beside(".msk").exists() {
        return Err(unsupported(
            path,
            "a mask in a file beside it (.msk)",
            REWRITE_ADVICE,
        ));
    }
    let auxiliary = std::fs::read_to_string(beside(".aux.xml")).unwrap_or_default();
    if ["<NoDataValue", "<Scale>", "<Offset>", "<UnitType"]
        .iter()
        .any(|element| auxiliary.contains(element))
    {
        return Err(unsupported(
            path,
            "nodata, scale or unit in a file beside it (.aux.xml)",
            REWRITE_ADVICE,
        ));
    }
    Ok(())
}

fn sample_type(format: u16, bits: u16) -> Option<SampleType> {
    match (format, bits) {
        (1, 1..=8) => Some(SampleType::U8),
        (1, 9..=16) => Some(SampleType::U16),
        (1, 32) => Some(SampleType::U32),
        (2, 8) => Some(SampleType::I8),
        (2, 16) => Some(SampleType::I16),
        (2, 32) => Some(SampleType::I32),
        (3, 32) => Some(SampleType::F32),
        (3, 64) => Some(SampleType::F64),
        _ => None,
    }
}

/// The name of a compression: `Ok` where it is read here.
fn compression_name(code: u16) -> std::result::Result<&'static str, String> {
    match code {
        1 => Ok("no"),
        5 => Ok("LZW"),
        8 | 32946 => Ok("DEFLATE"),
        32773 => Ok("PackBits"),
        LERC => Ok("LERC"),
        50000 => Ok("ZSTD"),
        2..=4 => Err("CCITT fax".into()),
        6 | 7 => Err("JPEG".into()),
        34712 => Err("JPEG 2000".into()),
        34925 => Err("LZMA".into()),
        50001 => Err("WebP".into()),
        50002 | 52546 => Err("JPEG XL".into()),
        _ => Err(format!("unknown ({code})")),
    }
}

fn malformed(path: &Path, reason: &str) -> Error {
    Error::Malformed {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

fn unsupported(path: &Path, what: impl Into<String>, advice: &'static str) -> Error {
    Error::Unsupported {
        path: path.to_owned(),
        what: what.into(),
        advice,
    }
}

fn translate(path: &Path, error: TiffError) -> Error {
    match error {
        TiffError::Io(source, _) => Error::Io {
            path: path.to_owned(),
            action: "be read",
            source,
        },
        TiffError::UnsupportedCompression(_)
        | TiffError::UnsupportedPredictor(_)
        | TiffError::UnsupportedPlanarConfiguration(_)
        | TiffError::UnsupportedBitsPerSample(_)
        | TiffError::UnsupportedSampleFormat(_) => {
            let text = error.to_string();
            let what = text
                .strip_prefix("unsupported ")
                .unwrap_or(&text)
                .replace(": ", " ");
            unsupported(path, what, REWRITE_ADVICE)
        }
        other => malformed(path, &other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_cut_along_the_lines_of_its_blocks() {
        let window = Window {
            column: 5,
            row: 9,
            width: 20,
            height: 3,
        };
        let parts: Vec<Window> = tiles(window, 8, 10).collect();
        let corners: Vec<_> = parts.iter().map(|part| (part.column, part.row)).collect();
        let columns = [5, 8, 16, 24];
        let expected: Vec<_> = [9, 10]
            .iter()
            .flat_map(|&row| columns.map(|column| (column, row)))
            .collect();
        assert_eq!(corners, expected);
        let pixels: usize = parts.iter().filter_map(Window::pixels).sum();
        assert_eq!(Some(pixels), window.pixels());
        assert_eq!(tiles(Window { width: 0, ..window }, 8, 10).count(), 0);
    }
}
