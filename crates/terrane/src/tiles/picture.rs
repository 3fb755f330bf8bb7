//! Tiles as PNG or lossless WebP.

use super::error::Result;

/// How a tile is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// PNG.
    Png,
    /// Lossless WebP.
    Webp,
}

impl Format {
    /// The format of a file extension.
    pub fn parse(extension: &str) -> Option<Self> {
        match extension {
            "png" => Some(Self::Png),
            "webp" => Some(Self::Webp),
            _ => None,
        }
    }

    /// The file extension.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Webp => "webp",
        }
    }

    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Webp => "image/webp",
        }
    }
}

/// A square picture in RGBA, eight bits a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Pixels across.
    pub side: usize,
    /// Four bytes for each pixel, row by row.
    pub rgba: Vec<u8>,
}

impl Picture {
    /// A picture of nothing.
    pub(super) fn clear(side: usize) -> Self {
        Self {
            side,
            rgba: vec![0; side * side * 4],
        }
    }

    /// Paints a pixel.
    pub(super) fn set(&mut self, index: usize, [red, green, blue]: [u8; 3]) {
        self.rgba[4 * index..4 * index + 4].copy_from_slice(&[red, green, blue, u8::MAX]);
    }

    /// Whether nothing is painted.
    pub fn is_clear(&self) -> bool {
        self.rgba.chunks_exact(4).all(|pixel| pixel[3] == 0)
    }

    /// Paints every pixel that is not painted yet.
    pub fn fill_clear(&mut self, [red, green, blue]: [u8; 3]) {
        for pixel in self.rgba.chunks_exact_mut(4) {
            if pixel[3] == 0 {
                pixel.copy_from_slice(&[red, green, blue, u8::MAX]);
            }
        }
    }

    /// The picture as bytes, without alpha where every pixel is painted, made while somebody waits.
    pub fn encode(&self, format: Format) -> Result<Vec<u8>> {
        // A browser keeps it for a while.
        self.encode_with(format, png::Compression::Fast)
    }

    /// The same, made once and kept: smaller, and slower to make.
    pub fn encode_small(&self, format: Format) -> Result<Vec<u8>> {
        self.encode_with(format, png::Compression::Balanced)
    }

    fn encode_with(&self, format: Format, compression: png::Compression) -> Result<Vec<u8>> {
        let is_opaque = self.rgba.chunks_exact(4).all(|pixel| pixel[3] == u8::MAX);
        let is_grey = self
            .rgba
            .chunks_exact(4)
            .all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2]);
        let channels: &[usize] = match (is_grey, is_opaque) {
            (true, true) => &[0],
            (true, false) => &[0, 3],
            (false, true) => &[0, 1, 2],
            (false, false) => &[0, 1, 2, 3],
        };
        let bytes: Vec<u8> = self
            .rgba
            .chunks_exact(4)
            .flat_map(|pixel| channels.iter().map(|&channel| pixel[channel]))
            .collect();
        match format {
            Format::Png => self.png(&bytes, channels.len(), compression),
            Format::Webp => self.webp(&bytes, channels.len()),
        }
    }

    fn png(&self, bytes: &[u8], channels: usize, compression: png::Compression) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(bytes.len() / 2);
        let mut encoder = png::Encoder::new(&mut out, self.side as u32, self.side as u32);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_color(match channels {
            1 => png::ColorType::Grayscale,
            2 => png::ColorType::GrayscaleAlpha,
            3 => png::ColorType::Rgb,
            _ => png::ColorType::Rgba,
        });
        encoder.set_compression(compression);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(bytes)?;
        writer.finish()?;
        Ok(out)
    }

    fn webp(&self, bytes: &[u8], channels: usize) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(bytes.len() / 2);
        let colour = match channels {
            1 => image_webp::ColorType::L8,
            2 => image_webp::ColorType::La8,
            3 => image_webp::ColorType::Rgb8,
            _ => image_webp::ColorType::Rgba8,
        };
        image_webp::WebPEncoder::new(&mut out).encode(
            bytes,
            self.side as u32,
            self.side as u32,
            colour,
        )?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiles::HeightCode;

    #[test]
    fn both_formats_keep_every_byte() {
        let mut picture = Picture::clear(32);
        for index in 0..600 {
            picture.set(index, HeightCode::default().colour(index as f64 * 1.37));
        }
        let png = picture.encode(Format::Png).unwrap();
        let decoder = png::Decoder::new(std::io::Cursor::new(png));
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels, picture.rgba);

        let webp = picture.encode(Format::Webp).unwrap();
        let mut decoder = image_webp::WebPDecoder::new(std::io::Cursor::new(webp)).unwrap();
        let mut pixels = vec![0; decoder.output_buffer_size().unwrap()];
        decoder.read_image(&mut pixels).unwrap();
        assert_eq!(pixels, picture.rgba);
    }
}
