//! Which part of the Earth a file covers.

use terrane_codec::format::Header;
use terrane_geo::geodesy::WGS_84;
use terrane_geo::{Projection, System};

use crate::georeferencing::georeference;
use crate::tiles::bounds;

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
    let size = (width as usize, height as usize);
    let own = System::of_raster(&georeference, size).ok()?;
    let earth = System::epsg(WGS_84).ok()?;
    let from_own = Projection::new(&own, &earth).ok()?;
    let to_own = Projection::new(&earth, &own).ok()?;
    let bounds = bounds(&georeference.affine(), size, &from_own, &to_own).ok()?;
    let [west, south, east, north] = bounds;
    Some([
        west,
        south,
        if east > 180.0 { east - 360.0 } else { east },
        north,
    ])
}
