//! Derivatives on the ground, of a surface in map units.

use terrane::{Sample, Terrain};
use terrane_geo::{Crs, CrsKind, Derivatives, HeightUnit, METRES_PER_DEGREE};

use crate::placement::{affine, georeference};
use crate::{Error, Result};

/// The system of web maps, whose unit is a metre on the equator only.
const WEB_MERCATOR: u16 = 3857;
/// The radius of its sphere.
const WEB_MERCATOR_RADIUS_M: f64 = 6_378_137.0;

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

/// Metres per unit of x and of y: where they depend on y, there, or in the middle of the raster.
pub fn map_unit_m(terrain: &Terrain, y: Option<f64>) -> Result<[f64; 2]> {
    let header = terrain.header();
    let crs = georeference(header).crs;
    let (width, height) = header.pyramid.size(0).unwrap_or_default();
    let affine = affine(terrain.corner_affine());
    let (_, middle) = affine.apply(f64::from(width) / 2.0, f64::from(height) / 2.0);
    crs_unit_m(&crs, y.unwrap_or(middle))
}

/// Whether a unit of the map is as many metres everywhere.
pub fn is_unit_constant(crs: &Crs) -> bool {
    crs.kind() != CrsKind::Geographic && crs.horizontal_epsg() != Some(WEB_MERCATOR)
}

/// Metres per unit of x and of y of a system, at a y where they depend on it.
pub fn crs_unit_m(crs: &Crs, y: f64) -> Result<[f64; 2]> {
    if crs.kind() == CrsKind::Geographic {
        return Ok([METRES_PER_DEGREE * y.to_radians().cos(), METRES_PER_DEGREE]);
    }
    if crs.horizontal_epsg() == Some(WEB_MERCATOR) {
        // The cosine of the latitude.
        return Ok([(y / WEB_MERCATOR_RADIUS_M).cosh().recip(); 2]);
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

    #[test]
    fn a_unit_of_a_web_map_shrinks_away_from_the_equator() {
        let crs = Crs::projected(3857, None);
        assert!(!is_unit_constant(&crs) && is_unit_constant(&Crs::projected(2056, None)));
        assert_eq!(crs_unit_m(&crs, 0.0).unwrap(), [1.0; 2]);
        // 60° north, by the definition of the projection.
        let y = WEB_MERCATOR_RADIUS_M * 75_f64.to_radians().tan().ln();
        let [x_m, y_m] = crs_unit_m(&crs, y).unwrap();
        assert!((x_m - 0.5).abs() < 1e-12 && x_m == y_m, "{x_m}");
    }
}
