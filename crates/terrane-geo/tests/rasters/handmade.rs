//! Files as other programs write them, byte by byte: with blocks that are absent, too long, or very wide.

use std::path::{Path, PathBuf};

use terrane_geo::SampleType;
use tiff_core::{ByteOrder, Compression, Predictor};
use tiff_writer::compress::{BlockEncodingOptions, compress_block};

/// What a directory of the file is for.
#[derive(Clone, Copy)]
pub(crate) enum Role {
    Image = 0,
    Overview = 1,
    Mask = 4,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Tiles,
    Strips,
}

/// How the bands of a pixel stand in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planes {
    Together = 1,
    Apart = 2,
}

/// One directory and its blocks; `None` for a block that is absent from the file.
pub(crate) struct Image {
    pub(crate) role: Role,
    pub(crate) size: (usize, usize),
    pub(crate) layout: Layout,
    /// Of a strip the height alone counts.
    pub(crate) block: (usize, usize),
    pub(crate) sample: SampleType,
    pub(crate) compression: Compression,
    pub(crate) predictor: Predictor,
    pub(crate) nodata: Option<&'static str>,
    /// How many there are, and whether each has blocks of its own.
    pub(crate) bands: (u32, Planes),
    pub(crate) blocks: Vec<Option<Vec<u8>>>,
}

impl Image {
    /// An uncompressed image in one strip.
    pub(crate) fn plain(size: (usize, usize), sample: SampleType, bytes: Vec<u8>) -> Self {
        Self {
            role: Role::Image,
            size,
            layout: Layout::Strips,
            block: size,
            sample,
            compression: Compression::None,
            predictor: Predictor::None,
            nodata: None,
            bands: (1, Planes::Together),
            blocks: vec![Some(bytes)],
        }
    }

    fn tags(&self, offsets: Vec<u32>, counts: Vec<u32>) -> Vec<(u16, Vec<u32>)> {
        let format = match self.sample {
            SampleType::F32 | SampleType::F64 => 3,
            SampleType::I8 | SampleType::I16 | SampleType::I32 => 2,
            _ => 1,
        };
        let mut tags = vec![
            (254, vec![self.role as u32]),
            (256, vec![self.size.0 as u32]),
            (257, vec![self.size.1 as u32]),
            (
                258,
                vec![8 * self.sample.bytes() as u32; self.bands.0 as usize],
            ),
            (259, vec![self.compression.to_code().into()]),
            (262, vec![1]),
            (277, vec![self.bands.0]),
            (284, vec![self.bands.1 as u32]),
            (317, vec![self.predictor.to_code().into()]),
            (339, vec![format; self.bands.0 as usize]),
        ];
        tags.extend(match self.layout {
            Layout::Tiles => vec![
                (322, vec![self.block.0 as u32]),
                (323, vec![self.block.1 as u32]),
                (324, offsets),
                (325, counts),
            ],
            Layout::Strips => vec![
                (273, offsets),
                (278, vec![self.block.1 as u32]),
                (279, counts),
            ],
        });
        tags
    }
}

/// Compresses 32-bit floats as one block of rows of a width.
pub(crate) fn compressed(
    samples: &[f32],
    width: usize,
    compression: Compression,
    predictor: Predictor,
) -> Vec<u8> {
    if compression == Compression::PackBits {
        // Runs of bytes as they are, each after its length less one.
        let bytes: Vec<u8> = samples.iter().flat_map(|x| x.to_le_bytes()).collect();
        let runs = bytes.chunks(128);
        return runs
            .flat_map(|run| [&[run.len() as u8 - 1], run].concat())
            .collect();
    }
    let options = BlockEncodingOptions {
        byte_order: ByteOrder::LittleEndian,
        compression,
        predictor,
        samples_per_pixel: 1,
        row_width_pixels: width,
        jpeg_options: None,
        jpeg_sampling: None,
        deflate_level: None,
    };
    compress_block(samples, options, 0).unwrap()
}

/// Writes a little-endian classic TIFF of these directories, one metre per pixel in EPSG:2056.
pub(crate) fn write(folder: &Path, name: &str, images: &[Image]) -> PathBuf {
    let mut bytes = b"II*\0\0\0\0\0".to_vec();
    let mut directories = Vec::new();
    for image in images {
        let (mut offsets, mut counts) = (Vec::new(), Vec::new());
        for block in &image.blocks {
            let block = block.as_deref();
            offsets.push(block.map_or(0, |_| bytes.len() as u32));
            counts.push(block.map_or(0, |block| block.len() as u32));
            bytes.extend(block.unwrap_or_default());
        }
        directories.push(image.tags(offsets, counts));
    }
    let mut link = 4;
    for (image, tags) in images.iter().zip(directories) {
        // Type, count and value of each entry: numbers as LONG, then text and doubles.
        let mut entries: Vec<(u16, u16, usize, Vec<u8>)> = tags
            .into_iter()
            .map(|(code, values)| {
                let encoded = values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect();
                (code, 4, values.len(), encoded)
            })
            .collect();
        if let Some(nodata) = image.nodata {
            let text = [nodata.as_bytes(), b"\0"].concat();
            entries.push((42113, 2, text.len(), text));
        }
        if matches!(image.role, Role::Image) {
            let doubles = |values: &[f64]| values.iter().flat_map(|x| x.to_le_bytes()).collect();
            entries.push((33550, 12, 3, doubles(&[1.0, 1.0, 0.0])));
            let tie = [0.0, 0.0, 0.0, 2_600_000.0, 1_200_000.0, 0.0];
            entries.push((33922, 12, 6, doubles(&tie)));
            let keys: [u16; 16] = [1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 2056];
            let keys = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
            entries.push((34735, 3, 16, keys));
        }
        entries.sort_by_key(|entry| entry.0);
        let start = bytes.len().next_multiple_of(2);
        bytes.resize(start, 0);
        bytes[link..link + 4].copy_from_slice(&(start as u32).to_le_bytes());
        let mut outside = start + 2 + 12 * entries.len() + 4;
        let mut values = Vec::new();
        bytes.extend((entries.len() as u16).to_le_bytes());
        for (code, kind, count, mut value) in entries {
            bytes.extend(code.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend((count as u32).to_le_bytes());
            if value.len() <= 4 {
                value.resize(4, 0);
                bytes.extend(value);
            } else {
                value.resize(value.len().next_multiple_of(2), 0);
                bytes.extend((outside as u32).to_le_bytes());
                outside += value.len();
                values.extend(value);
            }
        }
        link = bytes.len();
        bytes.extend([0; 4]);
        bytes.extend(values);
    }
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}
