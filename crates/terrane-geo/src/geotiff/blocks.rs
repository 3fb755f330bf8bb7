//! The pixels of one TIFF directory, and how its blocks are decoded.

use std::path::Path;

use terrane_format::Window;
use tiff_reader::filters::{decompress, fix_endianness_and_predict};
use tiff_reader::{ByteOrder, Ifd, TiffError, TiffFile};

use super::{REWRITE_ADVICE, malformed, translate, unsupported};
use crate::{Result, SampleType};

/// A compressed block is decoded whole; one larger than this would break the bound on memory.
pub(super) const MAX_BLOCK_BYTES: usize = 256 << 20;
/// A window is decoded in parts of this size, or of a block where that is larger, so that what is decoded of a window
/// of any width takes bounded memory beside its heights.
const PART_BYTES: usize = 16 << 20;

const LERC: u16 = 34887;

/// What the library makes of a window.
type Decoded = std::result::Result<Vec<u8>, TiffError>;

/// The pixels of one TIFF directory.
pub(super) struct Blocks {
    ifd: Ifd,
    pub(super) sample: SampleType,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) block_width: usize,
    block_height: usize,
    /// The band of several, from 0.
    band: Option<usize>,
    /// Where each block of the band stands in the file, and its length.
    offsets: Vec<u64>,
    counts: Vec<u64>,
    pub(super) has_absent: bool,
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

impl Blocks {
    /// The pixels of a directory, of several bands those of one, from 1.
    pub(super) fn new(path: &Path, tiff: &TiffFile, ifd: Ifd, band: u16) -> Result<Self> {
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

        let bands = usize::from(ifd.samples_per_pixel());
        let band = usize::from(band - 1);
        if band >= bands {
            return Err(malformed(path, "its overviews have fewer bands"));
        }
        // Bands stand one after the other, or together in every pixel.
        let planes = if layout.planar_configuration == 2 {
            bands
        } else {
            1
        };
        let together = bands / planes;
        let plane = band / together;
        let (block_width, block_height, offsets, counts) = block_table(path, &ifd, planes, plane)?;
        let has_absent = offsets.contains(&0) || counts.contains(&0);

        let row_bytes = width as u64 * sample.bytes() as u64;
        let is_plain = ifd.compression() == 1
            && together == 1
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
            .saturating_mul(sample.bytes() * together);
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
            band: (bands > 1).then_some(band),
            offsets,
            counts,
            has_absent,
            access,
        })
    }

    /// Parts of a window to be read one after another, each of whole blocks as far as the window holds them.
    pub(super) fn parts(&self, window: Window) -> impl Iterator<Item = Window> {
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
    pub(super) fn within(&self, window: Window) -> impl Iterator<Item = (usize, Window)> {
        let across = self.width.div_ceil(self.block_width);
        tiles(window, self.block_width, self.block_height).map(move |part| {
            let (row, column) = (part.row / self.block_height, part.column / self.block_width);
            (row * across + column, part)
        })
    }

    pub(super) fn is_absent(&self, block: usize) -> bool {
        self.offsets[block] == 0 || self.counts[block] == 0
    }

    /// Reads the bytes of a window, native-endian.
    pub(super) fn read(&self, path: &Path, tiff: &TiffFile, window: Window) -> Result<Vec<u8>> {
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
            match self.band {
                None => tiff.read_window_bytes_from_ifd(&self.ifd, row, column, height, width),
                Some(band) => tiff
                    .read_band_window_bytes_from_ifd(&self.ifd, band, row, column, height, width),
            }
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
        if usize::from(layout.bits_per_sample) != 8 * size || self.band.is_some() {
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
    pub(super) fn row(&self, bytes: &[u8], window: Window, row: usize) -> Vec<f64> {
        let length = window.width * self.sample.bytes();
        self.sample.decode(&bytes[row * length..][..length])
    }

    /// Gives the pixels of absent blocks in a row of a window their number: the decoder fills them with zeros.
    pub(super) fn fill_absent(&self, samples: &mut [f64], window: Window, row: usize, absent: f64) {
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

/// Size of a block, and offset and length of each of a plane of several; as many as the pixels need.
fn block_table(
    path: &Path,
    ifd: &Ifd,
    planes: usize,
    plane: usize,
) -> Result<(usize, usize, Vec<u64>, Vec<u64>)> {
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
    let blocks = width
        .div_ceil(block_width)
        .checked_mul(height.div_ceil(block_height));
    let expected = blocks.and_then(|blocks| blocks.checked_mul(planes));
    if expected != Some(offsets.len()) || expected != Some(counts.len()) {
        let reason = format!(
            "{width}x{height} pixels in blocks of {block_width}x{block_height} do not make {} blocks",
            offsets.len()
        );
        return Err(malformed(path, &reason));
    }
    let own = offsets.len() / planes;
    let of_plane = |mut all: Vec<u64>| {
        all.truncate((plane + 1) * own);
        all.split_off(plane * own)
    };
    Ok((
        block_width,
        block_height,
        of_plane(offsets),
        of_plane(counts),
    ))
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
