//! Files that are no `GeoTIFF`, known by their first bytes or by their names: so that a message can say what they are.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::{Error, Result};

/// Bytes that tell a format.
const READ: u64 = 64;

/// Formats by their first bytes.
const BY_BYTES: [(&[u8], &str); 22] = [
    (b"<VRTDataset", "a virtual raster of GDAL (VRT)"),
    (b"ncols", "an Esri ASCII grid"),
    (b"dsaa", "a Surfer ASCII grid"),
    (b"dsbb", "a Surfer grid"),
    (b"dsrb", "a Surfer grid"),
    (b"ehfa_header_tag", "an Erdas Imagine raster"),
    (b"uhl1", "a DTED raster"),
    (b"cdf\x01", "a NetCDF file"),
    (b"cdf\x02", "a NetCDF file"),
    (b"cdf\x05", "a NetCDF file"),
    (b"\x89hdf\r\n\x1a\n", "an HDF5 or NetCDF file"),
    (b"\x0e\x03\x13\x01", "an HDF4 file"),
    (b"\0\0\0\x0cjp  \r\n\x87\n", "a JPEG 2000 image"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 image"),
    (b"\x89png\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"lerc2 ", "a LERC raster"),
    (b"grib", "a GRIB file"),
    (b"sqlite format 3", "a GeoPackage or another SQLite file"),
    (b"lasf", "a point cloud (LAS)"),
    (b"pk\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
];

/// Formats that only their names tell.
const BY_ENDING: [(&str, &str); 7] = [
    ("hgt", "a raster of SRTM's (HGT)"),
    ("bil", "a raw raster (BIL)"),
    ("flt", "a raw raster (FLT)"),
    ("adf", "an Esri grid"),
    ("dem", "a USGS or other DEM"),
    ("xyz", "a list of points (XYZ)"),
    ("asc", "an Esri ASCII grid"),
];

/// Refuses a file that is no `GeoTIFF` by the name of its format, where it can be told; what cannot be read is left to
/// whoever reads it.
pub(crate) fn refuse_foreign(path: &Path) -> Result<()> {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(READ).read_to_end(&mut start));
    if read.is_err() {
        return Ok(());
    }
    if start.starts_with(b"\x89TRN\r\n\x1a\n") {
        let path = path.to_owned();
        return Err(Error::IsTerrane { path });
    }
    match format_of(&start, path) {
        None => Ok(()),
        Some(format) => Err(Error::OtherFormat {
            path: path.to_owned(),
            format,
        }),
    }
}

fn format_of(start: &[u8], path: &Path) -> Option<&'static str> {
    let is_tiff = [&b"II*\0"[..], b"MM\0*", b"II+\0", b"MM\0+"]
        .iter()
        .any(|magic| start.starts_with(magic));
    if is_tiff {
        return None;
    }
    // Text may stand after white space and in either case.
    let text = start.trim_ascii_start();
    let begins = |magic: &[u8]| {
        let is_same = |bytes: &[u8]| {
            let bytes = bytes.get(..magic.len());
            bytes.is_some_and(|bytes| bytes.eq_ignore_ascii_case(magic))
        };
        is_same(start) || is_same(text)
    };
    let by_bytes = BY_BYTES.iter().find(|(magic, _)| begins(magic));
    let by_ending = || {
        let ending = path.extension()?.to_str()?;
        let is_ending = |(known, _): &&(&str, &str)| ending.eq_ignore_ascii_case(known);
        BY_ENDING.iter().find(is_ending)
    };
    by_bytes
        .map(|(_, name)| *name)
        .or_else(|| by_ending().map(|(_, name)| *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart() {
        let of = |start: &[u8], name: &str| format_of(start, Path::new(name));
        assert_eq!(of(b"II*\0", "a.hgt"), None);
        assert_eq!(of(b"anything", "a.tif"), None);
        assert_eq!(
            of(b"\0\x01\0\x02", "N47E008.HGT"),
            Some("a raster of SRTM's (HGT)")
        );
        assert_eq!(of(b"NCOLS 5\nnrows", "a.tif"), Some("an Esri ASCII grid"));
        assert_eq!(
            of(b" \n<VRTDataset raster", "a"),
            Some("a virtual raster of GDAL (VRT)")
        );
        assert_eq!(of(b"\x89PNG\r\n\x1a\n", "a.tif"), Some("a PNG image"));
        assert_eq!(
            of(b"\0\0\0\x0cjP  \r\n\x87\n", "a"),
            Some("a JPEG 2000 image")
        );
        assert_eq!(of(b"", "a"), None);
    }
}
