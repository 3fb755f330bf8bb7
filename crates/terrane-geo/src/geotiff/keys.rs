//! What the tags of a `GeoTIFF` say of its place and of its band.

use std::path::Path;

use tiff_reader::Ifd;

use super::{REWRITE_ADVICE, WARP_ADVICE, malformed, unsupported};
use crate::{Affine, BandMetadata, Crs, Result, tag};

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

/// The transform that the tags state, as they anchor it; `None` where they state none.
pub(super) fn anchor(path: &Path, ifd: &Ifd) -> Result<Option<Affine>> {
    let numbers = |code| ifd.tag(code).and_then(|tag| tag.value.as_f64_vec());
    match (
        numbers(tag::MODEL_TRANSFORMATION).filter(|matrix| matrix.len() == 16),
        numbers(tag::MODEL_PIXEL_SCALE).filter(|scale| scale.len() >= 2),
        numbers(tag::MODEL_TIEPOINT),
    ) {
        (Some(_), Some(_), _) => Err(unsupported(
            path,
            "a raster placed twice, by a matrix and by a pixel size",
            REWRITE_ADVICE,
        )),
        (Some(m), ..) => Ok(Some(Affine::from_numbers([
            m[3], m[0], m[1], m[7], m[4], m[5],
        ]))),
        (_, Some(scale), Some(tie)) if tie.len() == 6 => {
            // GDAL reads a negative vertical scale as north-up too: writers of such files mean that.
            let y_per_row = -scale[1].abs();
            Ok(Some(Affine {
                x: tie[3] - tie[0] * scale[0],
                x_per_column: scale[0],
                x_per_row: 0.0,
                y: tie[4] - tie[1] * y_per_row,
                y_per_column: 0.0,
                y_per_row,
            }))
        }
        (_, _, Some(_)) => Err(unsupported(
            path,
            "a raster placed by ground control points",
            WARP_ADVICE,
        )),
        _ => Ok(None),
    }
}

/// What GDAL says of the band, with the scale that it writes elsewhere where there is a vertical system.
pub(super) fn band_metadata(path: &Path, main: &Ifd, crs: &Crs, band: u16) -> Result<BandMetadata> {
    let mut band = match main
        .tag(tag::GDAL_METADATA)
        .and_then(|tag| tag.value.as_str())
    {
        Some(xml) => {
            BandMetadata::parse(xml, band - 1).map_err(|reason| malformed(path, &reason))?
        }
        None => BandMetadata::default(),
    };
    if let Some((scale, offset)) = vertical_scale(main, crs) {
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
