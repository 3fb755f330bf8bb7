//! LERC in a TIFF with overviews, packed again, as GDAL writes it with `COMPRESS=LERC_ZSTD`.
//!
//! The library puts directories behind the blocks, which takes no byte more than before them; there is no georeference.

use std::io::Cursor;

use lerc_writer::{EncodeOptions, EncoderProfile, MaskView, RasterView};
use terrane_geo::{Grid, Window};
use tiff_writer::{ImageBuilder, LercAdditionalCompression, LercOptions, TiffWriter, WriteOptions};

use super::source::Source;
use super::stored::Stored;
use crate::Result;
use crate::codecs::{CodecError, Packer};

/// Sides of a block: the smaller of the two files counts.
const BLOCKS: [usize; 2] = [256, 512];

/// The numbers that LERC is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sample {
    I32,
    F32,
    F64,
}

impl Sample {
    /// The smallest type that holds all heights of a source as they are, in units of its scale; 32-bit floats where
    /// something may be lost.
    fn of(source: &Source, max_error_m: f64) -> Self {
        let storage = source.storage();
        let is_plain = (storage.band.scale, storage.band.offset) == (1.0, 0.0);
        let is_single = |height: &f64| height.is_nan() || f64::from(*height as f32) == *height;
        if !storage.sample.is_float() && is_plain {
            Self::I32
        } else if max_error_m > 0.0 || source.heights.iter().all(is_single) {
            Self::F32
        } else {
            Self::F64
        }
    }

    /// A block of heights, NaN where there is no data, as LERC.
    fn encode(self, block: &[f64], side: usize, max_error_m: f64) -> Result<Vec<u8>> {
        let failed = |error| CodecError::failed(&name(), error);
        let side = side as u32;
        let options = EncodeOptions::new()
            .with_profile(EncoderProfile::Gdal)
            .with_max_z_error(max_error_m);
        let valid: Vec<u8> = block
            .iter()
            .map(|height| u8::from(!height.is_nan()))
            .collect();
        let mask = if valid.contains(&0) {
            Some(MaskView::new(side, side, &valid).map_err(failed)?)
        } else {
            None
        };
        let numbers = block
            .iter()
            .map(|height| if height.is_nan() { 0.0 } else { *height });
        let stream = match self {
            Self::I32 => {
                let numbers: Vec<i32> = numbers.map(|height| height.round() as i32).collect();
                let raster = RasterView::new(side, side, 1, &numbers).map_err(failed)?;
                // Half a step: the way to say that integers must come back.
                let options = options.with_max_z_error(max_error_m.max(0.5));
                lerc_writer::encode(raster, mask, options)
            }
            Self::F32 => {
                let numbers: Vec<f32> = numbers.map(|height| height as f32).collect();
                let raster = RasterView::new(side, side, 1, &numbers).map_err(failed)?;
                lerc_writer::encode(raster, mask, options)
            }
            Self::F64 => {
                let numbers: Vec<f64> = numbers.collect();
                let raster = RasterView::new(side, side, 1, &numbers).map_err(failed)?;
                lerc_writer::encode(raster, mask, options)
            }
        };
        Ok(stream.map_err(failed)?)
    }

    fn builder(self, width: usize, height: usize) -> ImageBuilder {
        let builder = ImageBuilder::new(width as u32, height as u32);
        match self {
            Self::I32 => builder.sample_type::<i32>(),
            Self::F32 => builder.sample_type::<f32>(),
            Self::F64 => builder.sample_type::<f64>(),
        }
    }
}

/// What packs LERC's blocks: zstd where this program has it.
fn packer() -> Packer {
    Packer::ALL.last().copied().unwrap_or(Packer::Deflate)
}

/// What such files are called in tables.
pub(super) fn name() -> String {
    format!("LERC + {}, TIFF", packer().name())
}

/// The smallest file with a maximum error, 0 for none.
pub(super) fn through(source: &Source, max_error_m: f64) -> Result<Stored> {
    let mut files = Vec::new();
    for block in BLOCKS {
        files.push(tiff(source, block, max_error_m)?);
    }
    let smallest = files.into_iter().min_by_key(Vec::len).unwrap_or_default();
    let failed = |error| CodecError::failed(&name(), error);
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = folder.path().join("a.tif");
    std::fs::write(&path, &smallest).map_err(failed)?;
    let whole = Window::whole(source.width(), source.height());
    let read = terrane_geo::open(&[&path])?.read(0, whole)?;
    Ok(Stored {
        bytes: smallest.len() as u64,
        heights: read.heights,
    })
}

/// A file with blocks of a side.
fn tiff(source: &Source, side: usize, max_error_m: f64) -> Result<Vec<u8>> {
    let failed = |error| CodecError::failed(&name(), error);
    let sample = Sample::of(source, max_error_m);
    let options = LercOptions {
        max_z_error: max_error_m,
        additional_compression: match packer() {
            Packer::Deflate => LercAdditionalCompression::Deflate,
            #[cfg(feature = "zstd")]
            Packer::Zstd => LercAdditionalCompression::Zstd,
        },
    };
    let mut writer =
        TiffWriter::new(Cursor::new(Vec::new()), WriteOptions::auto()).map_err(failed)?;
    let heights = source.heights.clone();
    let mut grid = Grid::new(source.width(), source.height(), heights);
    let mut is_overview = false;
    loop {
        let mut builder = sample
            .builder(grid.width, grid.height)
            .tiles(side as u32, side as u32)
            .lerc_options(options);
        if is_overview {
            builder = builder.overview();
        }
        let image = writer.add_image(builder).map_err(failed)?;
        let (columns, rows) = (grid.width.div_ceil(side), grid.height.div_ceil(side));
        for block in 0..columns * rows {
            let heights = padded(
                &grid,
                side,
                (block % columns * side, block / columns * side),
            );
            let stream = sample.encode(&heights, side, max_error_m)?;
            let packed = packer().pack(&stream)?;
            writer
                .write_block_raw(&image, block, &packed)
                .map_err(failed)?;
        }
        if grid.width.max(grid.height) <= side {
            break;
        }
        grid = grid.halved();
        is_overview = true;
    }
    Ok(writer.finish().map_err(failed)?.into_inner())
}

/// A block of a grid; what lies beyond its edges is one height, which costs LERC least.
fn padded(grid: &Grid, side: usize, (column, row): (usize, usize)) -> Vec<f64> {
    let (width, height) = (grid.width.min(column + side), grid.height.min(row + side));
    let last = grid.row(height - 1)[width - 1];
    let pixels = (row..row + side).flat_map(|row| {
        let columns = column..column + side;
        columns.map(move |column| (column, row))
    });
    pixels
        .map(|(column, row)| {
            if column < width && row < height {
                grid.row(row)[column]
            } else {
                last
            }
        })
        .collect()
}
