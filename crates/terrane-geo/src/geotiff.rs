//! Reading a `GeoTIFF`, from any source that `tiff-reader` can decode, without its silent traps.
//!
//! `tiff-reader` decodes blocks; everything that gives the numbers a meaning is done here: blocks that are absent from
//! the file are missing heights, nodata and internal masks are honoured, scale, offset and unit are applied.

use std::path::{Path, PathBuf};

use terrane_format::Window;
use tiff_reader::{ByteOrder, Ifd, OpenOptions, ParseBudgets, TiffError, TiffFile};

use crate::metadata::parse_nodata;
use crate::tag;
use crate::{
    Affine, BandMetadata, Crs, Error, Georeference, Grid, RasterInfo, RasterSource, Result,
    SampleType, Storage,
};

/// A compressed block is decoded whole; one larger than this would break the promise of bounded memory.
const MAX_BLOCK_BYTES: usize = 256 << 20;

const LERC: u16 = 34887;

const SPLIT_ADVICE: &str = "extract the elevation band first, for example with gdal_translate -b 1";
const REWRITE_ADVICE: &str = "rewrite it first, for example with gdal_translate -of COG";

/// A `GeoTIFF` that is read by windows.
pub struct GeoTiff {
    tiff: TiffFile,
    info: RasterInfo,
    images: Vec<Image>,
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
    /// Which blocks are absent from the file; empty where none is.
    absent: Vec<bool>,
    /// Strips that can be read by rows because they are not compressed: the offset of each.
    plain_strips: Option<Vec<u64>>,
}

impl GeoTiff {
    /// Opens a file and reads its directories, but none of its heights.
    pub fn open(path: &Path) -> Result<Self> {
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
        let band = match main
            .tag(tag::GDAL_METADATA)
            .and_then(|tag| tag.value.as_str())
        {
            Some(xml) => BandMetadata::parse(xml).map_err(|reason| malformed(path, &reason))?,
            None => BandMetadata::default(),
        };
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
        let unit = storage.unit(&georeference.crs).map_err(|what| {
            unsupported(
                path,
                what,
                "give the band a unit that is known, such as m or ft",
            )
        })?;
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
        Ok(Self { tiff, info, images })
    }
}

impl RasterSource for GeoTiff {
    fn info(&self) -> &RasterInfo {
        &self.info
    }

    fn read(&self, level: usize, window: Window) -> Result<Grid> {
        self.info.check(level, window)?;
        let image = &self.images[level];
        let storage = &self.info.storage;
        let mut heights = image.blocks.read(&self.info.path, &self.tiff, window)?;
        for height in &mut heights {
            *height = if storage.is_missing(*height) {
                f64::NAN
            } else {
                storage.height(*height, self.info.unit)
            };
        }
        image.blocks.erase_absent(&mut heights, window);
        if let Some(mask) = &image.mask {
            let valid = mask.read(&self.info.path, &self.tiff, window)?;
            for (height, valid) in heights.iter_mut().zip(valid) {
                if valid == 0.0 {
                    *height = f64::NAN;
                }
            }
        }
        Ok(Grid {
            width: window.width,
            height: window.height,
            heights,
        })
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
        let absent: Vec<bool> = offsets
            .iter()
            .zip(&counts)
            .map(|(&offset, &count)| offset == 0 || count == 0)
            .collect();
        let absent = if absent.contains(&true) {
            absent
        } else {
            Vec::new()
        };

        let row_bytes = width as u64 * sample.bytes() as u64;
        let is_plain = ifd.compression() == 1
            && !ifd.is_tiled()
            && layout.predictor == 1
            && usize::from(layout.bits_per_sample) == 8 * sample.bytes()
            && ifd.fill_order() == 1
            && absent.is_empty()
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
        let plain_strips = is_plain.then_some(offsets);
        Ok(Self {
            ifd,
            sample,
            width,
            height,
            block_width,
            block_height,
            absent,
            plain_strips,
        })
    }

    /// Reads stored numbers.
    fn read(&self, path: &Path, tiff: &TiffFile, window: Window) -> Result<Vec<f64>> {
        let bytes = match &self.plain_strips {
            Some(offsets) => self.read_plain(tiff, offsets, window),
            None => tiff.read_window_bytes_from_ifd(
                &self.ifd,
                window.row,
                window.column,
                window.height,
                window.width,
            ),
        };
        let samples = self
            .sample
            .decode(&bytes.map_err(|error| translate(path, error))?);
        if Some(samples.len()) != window.pixels() {
            return Err(malformed(path, "a block holds fewer pixels than it should"));
        }
        Ok(samples)
    }

    fn read_plain(
        &self,
        tiff: &TiffFile,
        offsets: &[u64],
        window: Window,
    ) -> std::result::Result<Vec<u8>, TiffError> {
        let size = self.sample.bytes();
        let mut bytes = Vec::with_capacity(window.width * window.height * size);
        for row in window.row..window.row + window.height {
            let within = (row % self.block_height) * self.width + window.column;
            let offset = offsets[row / self.block_height] + (within * size) as u64;
            bytes.extend(tiff.source().read_exact_at(offset, window.width * size)?);
        }
        let is_native =
            (tiff.byte_order() == ByteOrder::LittleEndian) == cfg!(target_endian = "little");
        if !is_native {
            bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        Ok(bytes)
    }

    /// Makes the pixels of absent blocks missing: the decoder fills them with zeros, which would be sea level.
    fn erase_absent(&self, heights: &mut [f64], window: Window) {
        if self.absent.is_empty() {
            return;
        }
        let across = self.width.div_ceil(self.block_width);
        for (row, line) in heights.chunks_exact_mut(window.width.max(1)).enumerate() {
            let first = (window.row + row) / self.block_height * across;
            for (column, height) in line.iter_mut().enumerate() {
                if self.absent[first + (window.column + column) / self.block_width] {
                    *height = f64::NAN;
                }
            }
        }
    }
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

/// The main image, then its overviews and masks, whether they are chained or subordinate.
fn directories(path: &Path, tiff: &TiffFile) -> Result<Vec<Ifd>> {
    let Some(main) = tiff
        .ifds()
        .iter()
        .find(|ifd| subfile_type(ifd) & (tag::REDUCED | tag::MASK) == 0)
    else {
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

fn crs(ifd: &Ifd) -> Crs {
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
            return Ok(Georeference::unplaced(crs));
        }
    };
    if anchor.pixel_size() == 0.0 || !anchor.pixel_size().is_finite() {
        return Err(malformed(path, "its pixels have no size"));
    }
    Ok(Georeference::new(anchor, crs))
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
