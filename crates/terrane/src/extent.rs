//! Which part of the Earth a file covers.

use terrane_codec::format::Header;
use terrane_geo::{CrsKind, Projection, System};

use crate::georeferencing::georeference;

/// Points along each edge of a raster that are converted to find its bounds.
const EDGE_POINTS: u32 = 21;
const WGS84: u16 = 4326;

/// Left, bottom, right and top of a file in its own coordinates; `None` where it is not georeferenced.
pub fn extent(header: &Header) -> Option<[f64; 4]> {
    let georeference = georeference(header);
    let (width, height) = header.pyramid.size(0)?;
    georeference
        .is_georeferenced
        .then(|| georeference.extent((width as usize, height as usize)))
}

/// West, south, east and north of a file in degrees of WGS 84; `None` where its system cannot be converted. Across the 180th
/// meridian west is greater than east, as in GeoJSON.
pub fn geographic_extent(header: &Header) -> Option<[f64; 4]> {
    let georeference = georeference(header);
    if !georeference.is_georeferenced {
        return None;
    }
    let (width, height) = header.pyramid.size(0)?;
    let own = System::of_raster(&georeference, (width as usize, height as usize)).ok()?;
    let projection = Projection::new(&own, &System::epsg(WGS84).ok()?).ok()?;
    let (width, height) = (f64::from(width), f64::from(height));
    let affine = georeference.affine();
    let convert = |column: f64, row: f64| {
        let (x, y) = affine.apply(column, row);
        projection.apply(x, y).ok()
    };
    let (middle, _) = convert(width / 2.0, height / 2.0)?;
    let is_geographic = georeference.crs.kind() == CrsKind::Geographic;
    let mut extent = [
        f64::INFINITY,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NEG_INFINITY,
    ];
    for step in 0..EDGE_POINTS {
        let part = f64::from(step) / f64::from(EDGE_POINTS - 1);
        let (across, down) = (part * width, part * height);
        for (column, row) in [(across, 0.0), (across, height), (0.0, down), (width, down)] {
            let (longitude, latitude) = convert(column, row)?;
            let longitude = if is_geographic {
                affine.apply(column, row).0
            } else {
                middle + wrapped(longitude - middle)
            };
            extent[0] = extent[0].min(longitude);
            extent[1] = extent[1].min(latitude);
            extent[2] = extent[2].max(longitude);
            extent[3] = extent[3].max(latitude);
        }
    }
    if !extent.iter().all(|degrees| degrees.is_finite()) {
        return None;
    }
    let [west, south, east, north] = extent;
    let (west, east) = if east - west >= 360.0 {
        (-180.0, 180.0)
    } else if (-180.0..=180.0).contains(&west) && (-180.0..=180.0).contains(&east) {
        (west, east)
    } else {
        (wrapped(west), wrapped(east))
    };
    Some([west, south.max(-90.0), east, north.min(90.0)])
}

/// An angle between −180° and 180°.
fn wrapped(degrees: f64) -> f64 {
    (degrees + 180.0).rem_euclid(360.0) - 180.0
}
