//! Derivatives on the ground, of a surface in map units.

use terrane_codec::{Sample, Terrain};
use terrane_geo::{Crs, CrsKind, Derivatives, HeightUnit, METRES_PER_DEGREE};

use crate::placement::georeference;
use crate::{Error, Result};

/// The radius of the Earth in Mercator's projection; that of the ellipsoid differs by a third of a percent at most.
const MERCATOR_RADIUS_M: f64 = 6_378_137.0;

/// A value of a projection's definition.
fn value<'a>(definition: &'a str, key: &str) -> Option<&'a str> {
    definition
        .split_whitespace()
        .find_map(|part| part.strip_prefix(key))
}

/// Metres per unit of a projected system.
pub fn unit_m(epsg: u16) -> Option<f64> {
    let definition = crs_definitions::from_code(epsg)?.proj4;
    match (
        value(definition, "+to_meter="),
        value(definition, "+units="),
    ) {
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

/// How many metres on the ground a unit of a map is, which may depend on where. All slopes and curvatures use it, so that
/// they are the same wherever they are asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GroundScale {
    /// The same everywhere.
    Constant(f64),
    /// Longitudes and latitudes in degrees.
    Degrees,
    /// Mercator's projection, whose unit shrinks away from the equator.
    Mercator {
        /// Metres per unit of the map, on the map.
        unit_m: f64,
        /// The map's metres per metre on the equator.
        equator: f64,
        /// What is added to all northings, in units of the map.
        northing: f64,
    },
}

impl GroundScale {
    /// The scale of a system.
    pub fn of(crs: &Crs) -> Result<Self> {
        if crs.kind() == CrsKind::Geographic {
            return Ok(Self::Degrees);
        }
        let unit_m = match crs.linear_unit_code() {
            None => crs.horizontal_epsg().and_then(unit_m).unwrap_or(1.0),
            Some(code) => HeightUnit::from_epsg_unit(code)
                .ok_or(Error::UnknownUnit { code })?
                .metres(),
        };
        let definition = crs
            .horizontal_epsg()
            .and_then(crs_definitions::from_code)
            .map_or("", |definition| definition.proj4);
        if value(definition, "+proj=") != Some("merc") {
            return Ok(Self::Constant(unit_m));
        }
        let number = |key: &str| value(definition, key).and_then(|text| text.parse::<f64>().ok());
        let parallel = number("+lat_ts=").map(|latitude| latitude.to_radians().cos());
        Ok(Self::Mercator {
            unit_m,
            equator: number("+k=")
                .or_else(|| number("+k_0="))
                .or(parallel)
                .unwrap_or(1.0),
            northing: number("+y_0=").unwrap_or(0.0) / unit_m,
        })
    }

    /// The scale of a file's map.
    pub fn of_terrain(terrain: &Terrain) -> Result<Self> {
        Self::of(&georeference(terrain.header()).crs)
    }

    /// Whether a unit is as many metres everywhere.
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }

    /// Metres per unit of x and of y at a y of the map.
    pub fn at(&self, y: f64) -> [f64; 2] {
        match *self {
            Self::Constant(unit_m) => [unit_m; 2],
            Self::Degrees => [METRES_PER_DEGREE * y.to_radians().cos(), METRES_PER_DEGREE],
            Self::Mercator {
                unit_m,
                equator,
                northing,
            } => {
                let angle = (y - northing) * unit_m / (MERCATOR_RADIUS_M * equator);
                // The cosine of the latitude.
                [unit_m * angle.cosh().recip() / equator; 2]
            }
        }
    }
}

/// Whether a unit of the map is as many metres everywhere.
pub fn is_unit_constant(crs: &Crs) -> bool {
    GroundScale::of(crs).is_ok_and(|scale| scale.is_constant())
}

/// Metres per unit of x and of y of a system, at a y where they depend on it.
pub fn crs_unit_m(crs: &Crs, y: f64) -> Result<[f64; 2]> {
    Ok(GroundScale::of(crs)?.at(y))
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
        let y = MERCATOR_RADIUS_M * 75_f64.to_radians().tan().ln();
        let [x_m, y_m] = crs_unit_m(&crs, y).unwrap();
        assert!((x_m - 0.5).abs() < 1e-12 && x_m == y_m, "{x_m}");
        // World Mercator is on the ellipsoid.
        let [x_m, _] = crs_unit_m(&Crs::projected(3395, None), y).unwrap();
        assert!((x_m - 0.5).abs() < 2e-3, "{x_m}");
    }
}
