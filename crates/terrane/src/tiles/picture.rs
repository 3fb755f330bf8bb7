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

    /// The picture as bytes, without alpha where every pixel is painted.
    pub fn encode(&self, format: Format) -> Result<Vec<u8>> {
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
            Format::Png => self.png(&bytes, channels.len()),
            Format::Webp => self.webp(&bytes, channels.len()),
        }
    }

    fn png(&self, bytes: &[u8], channels: usize) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(bytes.len() / 2);
        let mut encoder = png::Encoder::new(&mut out, self.side as u32, self.side as u32);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_color(match channels {
            1 => png::ColorType::Grayscale,
            2 => png::ColorType::GrayscaleAlpha,
            3 => png::ColorType::Rgb,
            _ => png::ColorType::Rgba,
        });
        // A tile is made while somebody waits; a browser keeps it for a while.
        encoder.set_compression(png::Compression::Fast);
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

/// The Terrarium colour of a height: steps of 1/256 m from 32768 m below zero.
pub(super) fn terrarium(height_m: f64) -> [u8; 3] {
    let steps = ((height_m + 32768.0) * 256.0)
        .round()
        .clamp(0.0, f64::from((1 << 24) - 1)) as u32;
    let [_, red, green, blue] = steps.to_be_bytes();
    [red, green, blue]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terrarium_rounds_to_the_nearest_step() {
        let back = |[red, green, blue]: [u8; 3]| {
            f64::from(red) * 256.0 + f64::from(green) + f64::from(blue) / 256.0 - 32768.0
        };
        for height in [0.0, -431.2, 8848.86, 1999.999, 0.0039, -0.001] {
            assert!((back(terrarium(height)) - height).abs() <= 0.5 / 256.0);
        }
        assert_eq!(terrarium(-1e9), [0, 0, 0]);
        assert_eq!(terrarium(1e9), [255, 255, 255]);
    }

    #[test]
    fn both_formats_keep_every_byte() {
        let mut picture = Picture::clear(32);
        for index in 0..600 {
            picture.set(index, terrarium(index as f64 * 1.37));
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
