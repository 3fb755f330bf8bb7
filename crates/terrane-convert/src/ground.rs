//! Derivatives on the ground, of a surface in map units.

use terrane::{Sample, Terrain};
use terrane_geo::{Crs, CrsKind, Derivatives, HeightUnit, METRES_PER_DEGREE};

use crate::placement::{affine, georeference};
use crate::{Error, Result};

/// Metres per unit of a projected system.
pub fn unit_m(epsg: u16) -> Option<f64> {
    let definition = crs_definitions::from_code(epsg)?.proj4;
    let value = |key: &str| {
        definition
            .split_whitespace()
            .find_map(|part| part.strip_prefix(key))
    };
    match (value("+to_meter="), value("+units=")) {
        (Some(metres), _) => metres.parse().ok(),
        (None, Some("us-ft")) => Some(1200.0 / 3937.0),
        (None, Some("ft")) => Some(0.3048),
        (None, Some("m")) => Some(1.0),
        _ => None,
    }
}

/// Whether a system is one of longitudes and latitudes; `None` where its code is not known.
pub fn is_geographic(epsg: u16) -> Option<bool> {
    let definition = crs_definitions::from_code(epsg)?.proj4;
    Some(definition.contains("+proj=longlat"))
}

/// Metres per unit of x and of y: of a system in degrees at a latitude, or at the middle of the raster.
pub fn map_unit_m(terrain: &Terrain, latitude: Option<f64>) -> Result<[f64; 2]> {
    let header = terrain.header();
    let crs = georeference(header).crs;
    let (width, height) = header.pyramid.size(0).unwrap_or_default();
    let affine = affine(terrain.corner_affine());
    let (_, middle) = affine.apply(f64::from(width) / 2.0, f64::from(height) / 2.0);
    crs_unit_m(&crs, latitude.unwrap_or(middle))
}

/// Metres per unit of x and of y of a system, at a latitude where it is in degrees.
pub fn crs_unit_m(crs: &Crs, latitude: f64) -> Result<[f64; 2]> {
    if crs.kind() == CrsKind::Geographic {
        return Ok([
            METRES_PER_DEGREE * latitude.to_radians().cos(),
            METRES_PER_DEGREE,
        ]);
    }
    let metres = match crs.linear_unit_code() {
        None => crs.horizontal_epsg().and_then(unit_m).unwrap_or(1.0),
        Some(code) => HeightUnit::from_epsg_unit(code)
            .ok_or(Error::UnknownUnit { code })?
            .metres(),
    };
    Ok([metres; 2])
}

/// Derivatives on the ground, of a sample in map units.
pub fn ground(sample: &Sample, unit_m: [f64; 2]) -> Derivatives {
    let [x, y] = unit_m;
    Derivatives {
        gradient: [sample.gradient[0] / x, sample.gradient[1] / y],
        hessian: [
            sample.hessian[0] / (x * x),
            sample.hessian[1] / (x * y),
            sample.hessian[2] / (y * y),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_kinds_of_systems_are_known() {
        assert_eq!(unit_m(2056), Some(1.0));
        assert_eq!(unit_m(2263), Some(1200.0 / 3937.0));
        assert_eq!(is_geographic(4326), Some(true));
        assert_eq!(is_geographic(4647), Some(false));
        assert_eq!(is_geographic(1), None);
    }
}
