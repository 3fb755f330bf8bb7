//! Points from one coordinate system to another, for queries; a file's own coordinates are never changed.

use proj4rs::Proj;
use proj4rs::transform::transform;

use super::GeodesyError;
use super::epsg::definition;
#[cfg(any(test, target_family = "wasm"))]
use super::epsg::parameter;

/// The conversion of points from one system to another.
#[derive(Debug)]
pub struct Projection {
    from: Proj,
    to: Proj,
}

/// Projections that the decoder for browsers has: those of all systems of EPSG but one, that of Guam of 1963. What others
/// need is taken out of the module (`just web`).
#[cfg(any(test, target_family = "wasm"))]
const IN_BROWSERS: [&str; 17] = [
    "aea", "cass", "cea", "eqc", "eqearth", "geocent", "laea", "lcc", "longlat", "merc", "omerc",
    "poly", "somerc", "stere", "sterea", "tmerc", "utm",
];

#[cfg(any(test, target_family = "wasm"))]
fn is_in_browsers(definition: &str) -> bool {
    parameter(definition, "+proj=").is_some_and(|name| IN_BROWSERS.contains(&name))
}

/// Systems whose shift of datum the library leaves out, or gets wrong by a decimetre and more compared with PROJ.
fn is_shifted_wrongly(definition: &str) -> bool {
    let has = |part: &str| definition.contains(part);
    let is_stated = has("+towgs84=") || has("+datum=") || has("+nadgrids=@null");
    let is_modern = has("+ellps=GRS80") || has("+ellps=WGS84");
    has("hermannskogel") || has("+proj=krovak") || !(is_stated || is_modern)
}

fn system(epsg: u16) -> Result<Proj, GeodesyError> {
    parse(
        epsg,
        &definition(epsg).ok_or(GeodesyError::UnknownSystem { epsg })?,
    )
}

/// The system of a definition, which must be one that is converted rightly.
pub(super) fn parse(epsg: u16, definition: &str) -> Result<Proj, GeodesyError> {
    if is_shifted_wrongly(definition) {
        return Err(GeodesyError::Inexact { epsg });
    }
    #[cfg(target_family = "wasm")]
    if !is_in_browsers(definition) {
        return Err(GeodesyError::Unsupported {
            epsg,
            reason: "its projection is not in this decoder".into(),
        });
    }
    Proj::from_proj_string(definition).map_err(|error| GeodesyError::Unsupported {
        epsg,
        reason: error.to_string(),
    })
}

impl Projection {
    /// From the system of points to that of a file.
    pub fn new(from: u16, to: Option<u16>) -> Result<Self, GeodesyError> {
        let to = to.ok_or(GeodesyError::NoCode)?;
        Ok(Self {
            from: system(from)?,
            to: system(to)?,
        })
    }

    /// A point in the file's coordinates; longitudes and latitudes are degrees, longitude first.
    pub fn apply(&self, x: f64, y: f64) -> Result<(f64, f64), GeodesyError> {
        let mut point = if self.from.is_latlong() {
            (x.to_radians(), y.to_radians(), 0.0)
        } else {
            (x, y, 0.0)
        };
        transform(&self.from, &self.to, &mut point).map_err(|error| GeodesyError::Point {
            x,
            y,
            reason: error.to_string(),
        })?;
        Ok(if self.to.is_latlong() {
            (point.0.to_degrees(), point.1.to_degrees())
        } else {
            (point.0, point.1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// System, longitude and latitude, and what PROJ 9.5 gives for them without grids, in the system's unit.
    const POINTS: [(u16, [f64; 2], [f64; 2]); 18] = [
        (2056, [7.4386, 46.9511], [2_599_997.533, 1_200_001.916]),
        (2056, [10.4, 46.6], [2_826_856.477, 1_165_252.546]),
        (2056, [6.1, 46.2], [2_496_673.755, 1_117_388.065]),
        (3794, [14.5058, 46.0569], [461_760.739, 102_018.972]),
        (3794, [13.5, 46.3], [384_446.759, 130_012.932]),
        (3794, [16.3, 46.6], [599_597.841, 163_084.982]),
        (26915, [-94.5, 45.2], [382_189.143, 5_006_262.639]),
        (26915, [-91.0, 43.6], [661_423.213, 4_829_390.601]),
        (26915, [-96.0, 48.9], [280_147.029, 5_420_678.522]),
        (2193, [174.76, -36.85], [1_756_911.945, 5_920_321.818]),
        (2193, [168.3, -46.4], [1_238_719.106, 4_850_765.591]),
        (2193, [178.0, -38.0], [2_039_122.414, 5_782_371.757]),
        (4326, [7.4386, 46.9511], [7.4386, 46.9511]),
        (4326, [-94.5, 45.2], [-94.5, 45.2]),
        (4326, [174.76, -36.85], [174.76, -36.85]),
        (32608, [-135.2, 60.5], [489_013.236, 6_707_113.858]),
        (2154, [-4.3, 48.4], [160_448.147, 6_836_036.814]),
        (3857, [7.4, 46.9], [823_764.232, 5_925_766.775]),
    ];

    /// A decimetre, and as much in degrees.
    fn tolerance(epsg: u16) -> f64 {
        if epsg == 4326 { 0.1 / 111_195.0 } else { 0.1 }
    }

    #[test]
    fn points_are_where_proj_puts_them_and_come_back() {
        for (epsg, [longitude, latitude], [x, y]) in POINTS {
            let there = Projection::new(4326, Some(epsg)).unwrap();
            let (ours_x, ours_y) = there.apply(longitude, latitude).unwrap();
            assert!(
                (ours_x - x).hypot(ours_y - y) < tolerance(epsg),
                "EPSG:{epsg}: {ours_x} {ours_y} instead of {x} {y}"
            );
            let back = Projection::new(epsg, Some(4326)).unwrap();
            let (ours_longitude, ours_latitude) = back.apply(x, y).unwrap();
            assert!(
                (ours_longitude - longitude).hypot(ours_latitude - latitude) < tolerance(4326),
                "EPSG:{epsg}: {ours_longitude} {ours_latitude} instead of {longitude} {latitude}"
            );
        }
    }

    #[test]
    fn browsers_have_the_projections_of_all_systems_but_one() {
        let missing = (1..u16::MAX).filter(|&epsg| {
            Projection::new(4326, Some(epsg)).is_ok()
                && !definition(epsg).is_some_and(|definition| is_in_browsers(&definition))
        });
        assert_eq!(missing.collect::<Vec<u16>>(), [3993]);
    }

    #[test]
    fn what_is_wrong_or_unknown_is_refused() {
        for code in [5514, 31287, 31256, 4268] {
            assert!(Projection::new(4326, Some(code)).is_err(), "{code}");
        }
        let error = Projection::new(4326, Some(1)).unwrap_err();
        assert_eq!(error, GeodesyError::UnknownSystem { epsg: 1 });
        let error = Projection::new(4326, None).unwrap_err();
        assert_eq!(error, GeodesyError::NoCode);
    }
}
