//! Points from one coordinate system to another, for queries and maps.

use proj4rs::Proj;
use proj4rs::transform::transform;

use super::GeodesyError;
use super::system::{System, refused};

/// The conversion of points from one system to another; a file's own coordinates are never changed.
#[derive(Debug)]
pub struct Projection {
    from: System,
    to: System,
    /// Longitudes and latitudes of both with the shifts of their datums; nothing where the datum is the same.
    shifts: Option<(Proj, Proj)>,
    accuracy_m: Option<f64>,
}

impl Projection {
    /// From one system to another. Datums are shifted as is best where the raster of one of them lies.
    pub fn new(from: &System, to: &System) -> Result<Self, GeodesyError> {
        for system in [from, to] {
            if system.is_geocentric() {
                return Err(GeodesyError::Unsupported {
                    system: system.name.clone(),
                    reason: "its coordinates are not those of a map".into(),
                });
            }
        }
        let is_same = if from.datum.code.is_some() && to.datum.code.is_some() {
            from.datum.code == to.datum.code
        } else {
            from.datum == to.datum
        };
        // Where a raster lies; else where the one is meant for whose datum is to be shifted.
        let is_from_place = match (from.is_placed, to.is_placed) {
            (true, false) => true,
            (false, true) => false,
            _ => to.datum.is_earth(),
        };
        let place = if is_from_place { from.place } else { to.place };
        let (shifts, accuracy_m) = if is_same {
            (None, Some(0.0))
        } else {
            let ((from, from_m), (to, to_m)) = (from.shifted(place)?, to.shifted(place)?);
            (
                Some((from, to)),
                from_m.zip(to_m).map(|(from, to)| from + to),
            )
        };
        Ok(Self {
            from: from.clone(),
            to: to.clone(),
            shifts,
            accuracy_m,
        })
    }

    /// How many metres the shift between the two datums may be off, as EPSG states it; `None` where it states nothing.
    pub fn accuracy_m(&self) -> Option<f64> {
        self.accuracy_m
    }

    /// A point in the other system. Longitudes and latitudes come longitude first, in the unit of their system.
    pub fn apply(&self, x: f64, y: f64) -> Result<(f64, f64), GeodesyError> {
        let (mut longitude, mut latitude) = self.from.to_radians(x, y)?;
        if let Some((from, to)) = &self.shifts {
            let mut point = (longitude, latitude, 0.0);
            transform(from, to, &mut point).map_err(|error| refused(x, y, &error))?;
            (longitude, latitude, _) = point;
        }
        self.to.of_radians(longitude, latitude)
    }
}

#[cfg(all(test, feature = "definitions"))]
mod tests {
    use super::super::epsg::definition;
    use super::super::system::is_in_browsers;
    use super::*;
    use crate::{Affine, Crs, Georeference};

    fn projection(from: u16, to: u16) -> Result<Projection, GeodesyError> {
        Projection::new(&System::epsg(from)?, &System::epsg(to)?)
    }

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
            let there = projection(4326, epsg).unwrap();
            let (ours_x, ours_y) = there.apply(longitude, latitude).unwrap();
            assert!(
                (ours_x - x).hypot(ours_y - y) < tolerance(epsg),
                "EPSG:{epsg}: {ours_x} {ours_y} instead of {x} {y}"
            );
            let back = projection(epsg, 4326).unwrap();
            let (ours_longitude, ours_latitude) = back.apply(x, y).unwrap();
            assert!(
                (ours_longitude - longitude).hypot(ours_latitude - latitude) < tolerance(4326),
                "EPSG:{epsg}: {ours_longitude} {ours_latitude} instead of {longitude} {latitude}"
            );
        }
    }

    #[test]
    fn browsers_have_the_projections_of_nearly_all_systems() {
        let missing = (1..u16::MAX).filter(|&epsg| {
            projection(4326, epsg).is_ok()
                && !definition(epsg).is_some_and(|definition| is_in_browsers(&definition))
        });
        // Azimuthal equidistant maps, Guam of 1963, and a local orthographic one.
        let missing: Vec<u16> = missing.collect();
        let expected = [3295, 3993, 10622].into_iter().chain(27701..=27707);
        assert_eq!(missing, expected.collect::<Vec<u16>>());
    }

    /// Systems that were refused for their datum, by PROJ 9.5 without grids in the middle of their areas, and EPSG's
    /// accuracies.
    const NATIONAL: [(u16, [f64; 2], [f64; 2], f64); 7] = [
        (31287, [13.35, 47.71], [401_306.825_6, 423_398.183_5], 1.5),
        (31255, [13.335, 47.595], [181.428_5, 272_918.618_6], 1.5),
        (
            5514,
            [17.325, 49.395],
            [-544_005.258_7, -1_144_001.643_7],
            1.0,
        ),
        (
            5221,
            [17.325, 49.395],
            [-544_005.258_7, -1_144_001.643_7],
            1.0,
        ),
        (
            2065,
            [17.325, 49.395],
            [1_144_001.643_7, 544_005.258_7],
            1.0,
        ),
        (3168, [102.095, 3.965], [455_806.793_7, 438_611.394_2], 15.0),
        (
            26710,
            [-122.995, 55.765],
            [500_396.937_4, 6_179_714.719_7],
            8.0,
        ),
    ];

    #[test]
    fn national_systems_are_where_proj_puts_them() {
        for (epsg, [longitude, latitude], [x, y], accuracy_m) in NATIONAL {
            let there = projection(4326, epsg).unwrap();
            let (ours_x, ours_y) = there.apply(longitude, latitude).unwrap();
            let off = (ours_x - x).hypot(ours_y - y);
            assert!(
                off < 1e-3,
                "EPSG:{epsg}: {ours_x} {ours_y} instead of {x} {y}"
            );
            assert_eq!(there.accuracy_m(), Some(accuracy_m), "EPSG:{epsg}");
        }
    }

    #[test]
    fn what_is_wrong_or_unknown_is_refused() {
        let refused = |epsg| projection(4326, epsg).unwrap_err();
        assert_eq!(refused(1), GeodesyError::UnknownSystem { epsg: 1 });
        // A projection that is not there, a datum that only a grid shifts, and coordinates that are of no map.
        for (epsg, why) in [(27200, "Projection"), (3396, "BETA2007"), (4978, "map")] {
            let sentence = refused(epsg).to_string();
            assert!(
                sentence.contains(&format!("EPSG:{epsg}")) && sentence.contains(why),
                "{sentence}"
            );
        }
        let error = System::of(&Crs::default()).unwrap_err();
        assert_eq!(error, GeodesyError::NoSystem);
    }

    #[test]
    fn systems_of_one_datum_need_no_shift() {
        let same = projection(31255, 31287).unwrap();
        assert_eq!(same.accuracy_m(), Some(0.0));
        // Even where none is known.
        assert!(projection(3396, 3397).is_ok());
    }

    #[test]
    fn longitudes_are_counted_around_the_raster() {
        let raster = |epsg, affine| {
            let crs = if epsg == 4326 {
                Crs::geographic(epsg, None)
            } else {
                Crs::projected(epsg, None)
            };
            System::of_raster(&Georeference::new(affine, crs), (720, 720)).unwrap()
        };
        let earth = System::epsg(4326).unwrap();
        let to = |own: System| Projection::new(&earth, &own).unwrap();
        let own = raster(4326, Affine::north_up(179.9, 0.1, 1.0 / 3600.0));
        assert!((own.near(-179.95) - 180.05).abs() < 1e-9);
        assert_eq!(own.near(179.95), 179.95);
        assert!((to(own).apply(-179.95, 0.0).unwrap().0 - 180.05).abs() < 1e-9);
        // Web Mercator beyond its edge.
        let web = raster(3857, Affine::north_up(20_026_376.0, 1000.0, 30.0));
        let (x, _) = to(web).apply(-179.95, 0.0).unwrap();
        assert!((x - 20_043_074.317).abs() < 1e-2, "{x}");
        let around = raster(4326, Affine::north_up(0.0, 90.0, 0.5));
        assert!((to(around).apply(-10.0, 0.0).unwrap().0 - 350.0).abs() < 1e-9);
    }
}
