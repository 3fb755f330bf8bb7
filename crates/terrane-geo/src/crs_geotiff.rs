//! A coordinate reference system alone as a `GeoTIFF` of one pixel: what every GIS library reads and writes.

use tiff_reader::TiffFile;

use crate::geotiff::{crs, main_directory};
use crate::{Crs, Error, Result, tag};

/// TIFF's numbers of the types that are written here.
const ASCII: u16 = 2;
const SHORT: u16 = 3;
const LONG: u16 = 4;
const DOUBLE: u16 = 12;

/// The pixel stands after the head, and the directory after the pixel.
const PIXEL: u32 = 8;
const DIRECTORY: u32 = 10;

const STRIP_OFFSETS: u16 = 273;
const ROWS_PER_STRIP: u16 = 278;
const STRIP_BYTE_COUNTS: u16 = 279;

impl Crs {
    /// The system of a `GeoTIFF` in memory.
    pub fn from_geotiff(bytes: Vec<u8>) -> Result<Self> {
        let tiff = TiffFile::from_bytes(bytes).map_err(|error| Error::NotACrs {
            reason: error.to_string(),
        })?;
        let main = main_directory(&tiff).ok_or_else(|| Error::NotACrs {
            reason: "it holds no image".into(),
        })?;
        Ok(crs(main))
    }

    /// A `GeoTIFF` of one pixel with this system.
    pub fn to_geotiff(&self) -> Vec<u8> {
        let short = |value: u16| value.to_le_bytes().to_vec();
        let long = |value: u32| value.to_le_bytes().to_vec();
        let mut tags = vec![
            (tag::IMAGE_WIDTH, SHORT, 1, short(1)),
            (tag::IMAGE_LENGTH, SHORT, 1, short(1)),
            (tag::BITS_PER_SAMPLE, SHORT, 1, short(8)),
            (tag::COMPRESSION, SHORT, 1, short(1)),
            (tag::PHOTOMETRIC, SHORT, 1, short(1)),
            (STRIP_OFFSETS, LONG, 1, long(PIXEL)),
            (tag::SAMPLES_PER_PIXEL, SHORT, 1, short(1)),
            (ROWS_PER_STRIP, SHORT, 1, short(1)),
            (STRIP_BYTE_COUNTS, LONG, 1, long(1)),
        ];
        let mut add = |code, kind, count: usize, bytes: Vec<u8>| {
            if count > 0 {
                tags.push((code, kind, count as u32, bytes));
            }
        };
        let keys = self.directory.iter().flat_map(|key| key.to_le_bytes());
        let directory = self.directory.len();
        add(tag::GEO_KEY_DIRECTORY, SHORT, directory, keys.collect());
        let doubles = self.doubles.iter().flat_map(|value| value.to_le_bytes());
        let count = self.doubles.len();
        add(tag::GEO_DOUBLE_PARAMS, DOUBLE, count, doubles.collect());
        if !self.text.is_empty() {
            let text = [self.text.as_bytes(), b"\0"].concat();
            add(tag::GEO_ASCII_PARAMS, ASCII, text.len(), text);
        }

        let mut bytes = b"II\x2a\0".to_vec();
        bytes.extend(DIRECTORY.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend((tags.len() as u16).to_le_bytes());
        let mut values = Vec::new();
        let first = DIRECTORY as usize + 2 + 12 * tags.len() + 4;
        for (code, kind, count, mut value) in tags {
            bytes.extend(code.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend(count.to_le_bytes());
            if value.len() <= 4 {
                value.resize(4, 0);
                bytes.extend(value);
            } else {
                bytes.extend(((first + values.len()) as u32).to_le_bytes());
                values.extend(value);
                // Values start at even bytes.
                values.resize(values.len().next_multiple_of(2), 0);
            }
        }
        bytes.extend([0; 4]);
        bytes.extend(values);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_comes_back_from_its_geotiff() {
        let mut custom = Crs::projected(2056, Some(5728));
        custom.directory.extend([1026, 34737, 7, 0]);
        custom.directory[3] += 1;
        custom.text = "Custom|".into();
        custom.doubles = vec![6_378_137.0, 0.5];
        for crs in [custom, Crs::geographic(4326, None), Crs::default()] {
            assert_eq!(Crs::from_geotiff(crs.to_geotiff()).unwrap(), crs);
        }
    }

    #[test]
    fn bytes_that_are_no_geotiff_are_refused() {
        for bytes in [&b""[..], b"II\x2a\0", b"\x89TRN\r\n\x1a\n and more"] {
            let error = Crs::from_geotiff(bytes.to_vec()).unwrap_err();
            assert!(error.to_string().contains("reference system"), "{error}");
        }
    }
}
