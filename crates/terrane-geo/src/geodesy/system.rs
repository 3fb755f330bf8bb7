//! A coordinate system: its map, its datum, and the place that it is used at.
//!
//! The map, from longitude and latitude on the system's own ellipsoid to its coordinates, and the shift of its datum to
//! WGS 84 are kept apart. So a raster is measured on its own ellipsoid without any shift, a map on a sphere is placed by the
//! ellipsoid of its datum, and the shift is chosen where the raster lies.

use std::f64::consts::TAU;

use proj4rs::Proj;
use proj4rs::transform::transform;

use super::ellipsoid::Ellipsoid;
use super::epsg::{definition, number, parameter};
use super::shift::{self, Shift};
use super::{GeodesyError, geo_keys};
use crate::{Crs, Georeference};

/// Parameters of a definition that say what the ellipsoid is.
const FIGURE: [&str; 6] = ["+ellps=", "+a=", "+b=", "+rf=", "+R=", "+datum="];

/// EPSG's code of the datum of WGS 84.
const WGS_84: u16 = 6326;

/// The shift of what counts as WGS 84.
const NO_SHIFT: &str = "+towgs84=0,0,0";

/// Maps on which the Earth repeats itself to the east and to the west.
const REPEATING: [&str; 4] = ["longlat", "merc", "eqc", "cea"];

/// Projections that the decoder for browsers has: those of all systems of EPSG but some national ones. What others need is
/// taken out of the module (`just web`).
#[cfg(any(test, target_family = "wasm"))]
const IN_BROWSERS: [&str; 18] = [
    "aea", "cass", "cea", "eqc", "eqearth", "geocent", "krovak", "laea", "lcc", "longlat", "merc",
    "omerc", "poly", "somerc", "stere", "sterea", "tmerc", "utm",
];

#[cfg(any(test, target_family = "wasm"))]
pub(super) fn is_in_browsers(definition: &str) -> bool {
    parameter(definition, "+proj=").is_some_and(|name| IN_BROWSERS.contains(&name))
}

/// A datum.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Datum {
    /// Its code, where it has one.
    pub(super) code: Option<u16>,
    /// Its ellipsoid as PROJ writes it.
    pub(super) figure: String,
    /// The shift that a definition states.
    pub(super) stated: Option<Shift>,
}

/// A coordinate system.
#[derive(Debug, Clone)]
pub struct System {
    pub(super) name: String,
    map: Proj,
    /// Longitudes and latitudes of Greenwich on the same ellipsoid, in radians.
    plain: Proj,
    /// Degrees in a unit of longitudes and latitudes; of the map's own units in one of coordinates.
    unit: f64,
    ellipsoid: Ellipsoid,
    pub(super) datum: Datum,
    is_repeating: bool,
    /// A longitude and a latitude that the system is used around.
    pub(super) place: (f64, f64),
    /// Whether that is where a raster lies.
    pub(super) is_placed: bool,
}

impl System {
    /// The system of an EPSG code.
    pub fn epsg(epsg: u16) -> Result<Self, GeodesyError> {
        let name = format!("EPSG:{epsg}");
        #[cfg(feature = "definitions")]
        if let Some(record) = super::table::system(epsg)
            && let Some(datum) = super::table::datum(record.datum)
        {
            let whole = format!("{} {}", record.map, datum.figure);
            // A map on a sphere of its own says so itself.
            let is_own_sphere = record.map.contains("+nadgrids=@null");
            let mut system = Self::parse(name, if is_own_sphere { record.map } else { &whole })?;
            if !is_own_sphere {
                system.datum = Datum::of_code(record.datum, datum.figure);
            }
            system.datum.code = Some(record.datum);
            system.place = record.middle;
            return Ok(system);
        }
        let definition = definition(epsg).ok_or(GeodesyError::UnknownSystem { epsg })?;
        Self::parse(name, &definition)
    }

    /// The system that a file states, by its code or by its own parameters.
    pub fn of(crs: &Crs) -> Result<Self, GeodesyError> {
        geo_keys::system(crs)
    }

    /// The system of a raster of so many columns and rows, at its middle.
    pub fn of_raster(
        georeference: &Georeference,
        size: (usize, usize),
    ) -> Result<Self, GeodesyError> {
        let mut system = Self::of(&georeference.crs)?;
        let affine = georeference.affine();
        let (x, y) = affine.apply(size.0 as f64 / 2.0, size.1 as f64 / 2.0);
        if let Ok((longitude, latitude)) = system.to_radians(x, y) {
            system.place = (longitude.to_degrees(), latitude.to_degrees());
            system.is_placed = true;
        }
        Ok(system)
    }

    /// The system of a definition as PROJ writes it.
    pub(super) fn parse(name: String, definition: &str) -> Result<Self, GeodesyError> {
        #[cfg(target_family = "wasm")]
        if !is_in_browsers(definition) {
            return Err(GeodesyError::Unsupported {
                system: name,
                reason: "its projection is not in this decoder".into(),
            });
        }
        let proj = |text: &str| {
            Proj::from_proj_string(text).map_err(|error| GeodesyError::Unsupported {
                system: name.clone(),
                reason: error.to_string(),
            })
        };
        let mut datum = Datum::parse(definition);
        let (equator_m, pole_m) =
            proj(&format!("+proj=longlat {}", datum.figure))?.ellipse_parameters();
        if datum.stated.is_none() && is_as_wgs_84(equator_m, pole_m) {
            datum = Datum::wgs_84();
        }
        let is_repeating =
            parameter(definition, "+proj=").is_some_and(|name| REPEATING.contains(&name));
        let is_of_map = |part: &&str| {
            !["+towgs84=", "+nadgrids=", "+datum="]
                .iter()
                .any(|key| part.starts_with(key))
        };
        let mut map: Vec<&str> = definition.split_whitespace().filter(is_of_map).collect();
        let figure = format!("+a={equator_m} +b={pole_m}");
        if parameter(definition, "+datum=").is_some() {
            map.push(&figure);
        }
        if is_repeating {
            map.push("+over");
        }
        let map = proj(&map.join(" "))?;
        Ok(Self {
            plain: proj("+proj=longlat +ellps=WGS84")?,
            unit: parameter(definition, "+to_degrees=")
                .and_then(number)
                .unwrap_or(1.0),
            place: (
                map.longitude_of_origin().to_degrees(),
                map.latitude_of_origin().to_degrees(),
            ),
            map,
            ellipsoid: Ellipsoid::new(equator_m, pole_m),
            datum,
            is_repeating,
            is_placed: false,
            name,
        })
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its coordinates are longitudes and latitudes.
    pub fn is_geographic(&self) -> bool {
        self.map.is_latlong()
    }

    /// Whether its coordinates are metres from the centre of the Earth.
    pub fn is_geocentric(&self) -> bool {
        self.map.is_geocent()
    }

    /// The same system with coordinates in another unit: degrees of longitudes and latitudes, or metres.
    pub(super) fn with_unit(mut self, unit: f64) -> Self {
        self.unit = if self.is_geographic() {
            unit
        } else {
            unit / self.map.to_meter()
        };
        self
    }

    pub(super) fn ellipsoid(&self) -> Ellipsoid {
        self.ellipsoid
    }

    /// Radians in a unit of longitudes and latitudes.
    pub(super) fn unit_radians(&self) -> f64 {
        self.unit.to_radians()
    }

    /// Metres in a unit of the map.
    pub(crate) fn unit_m(&self) -> f64 {
        self.map.to_meter() * self.unit
    }

    /// The map's axes: which way x and y run, `e`, `n`, `w` or `s`.
    pub(super) fn axes(&self) -> [u8; 2] {
        let [x, y, _] = *self.map.axis();
        [x, y]
    }

    /// The longitude as it is counted around the system's own place: a whole turn more or less where that is nearer.
    pub fn near(&self, x: f64) -> f64 {
        if !self.is_geographic() {
            return x;
        }
        let meridian = self.map.from_greenwich().to_degrees();
        let turn = 360.0 / self.unit;
        let middle = (self.place.0 - meridian) / self.unit;
        x - ((x - middle) / turn).round() * turn
    }

    /// Longitude from Greenwich and latitude in radians, on the system's own ellipsoid.
    pub(super) fn to_radians(&self, x: f64, y: f64) -> Result<(f64, f64), GeodesyError> {
        if self.is_geographic() {
            let unit = self.unit_radians();
            return Ok((x * unit + self.map.from_greenwich(), y * unit));
        }
        let mut point = (x * self.unit, y * self.unit, 0.0);
        transform(&self.map, &self.plain, &mut point).map_err(|error| refused(x, y, &error))?;
        Ok((point.0, point.1))
    }

    /// Coordinates of a longitude from Greenwich and a latitude in radians.
    pub(super) fn of_radians(
        &self,
        longitude: f64,
        latitude: f64,
    ) -> Result<(f64, f64), GeodesyError> {
        if self.is_geographic() {
            let unit = self.unit_radians();
            let x = (longitude - self.map.from_greenwich()) / unit;
            return Ok((self.near(x), latitude / unit));
        }
        let longitude = if self.is_repeating {
            let turns = ((longitude - self.place.0.to_radians()) / TAU).round();
            longitude - turns * TAU
        } else {
            longitude
        };
        let mut point = (longitude, latitude, 0.0);
        transform(&self.plain, &self.map, &mut point)
            .map_err(|error| refused(longitude.to_degrees(), latitude.to_degrees(), &error))?;
        Ok((point.0 / self.unit, point.1 / self.unit))
    }

    /// Its longitudes and latitudes with the shift for a place, and the metres that this may be off.
    pub(super) fn shifted(&self, place: (f64, f64)) -> Result<(Proj, Option<f64>), GeodesyError> {
        let best = || shift::best(self.datum.code?, place);
        let shift =
            self.datum
                .stated
                .clone()
                .or_else(best)
                .ok_or_else(|| GeodesyError::NoShift {
                    system: self.name.clone(),
                    grid: self
                        .datum
                        .code
                        .and_then(|code| shift::grid(code, place))
                        .map(str::to_owned),
                })?;
        let text = format!("+proj=longlat {} {}", self.datum.figure, shift.text);
        let proj = Proj::from_proj_string(&text).map_err(|error| GeodesyError::Unsupported {
            system: self.name.clone(),
            reason: error.to_string(),
        })?;
        Ok((proj, shift.accuracy_m))
    }
}

pub(super) fn refused(x: f64, y: f64, error: &proj4rs::errors::Error) -> GeodesyError {
    GeodesyError::Point {
        x,
        y,
        reason: error.to_string(),
    }
}

/// Whether what is known of a datum is that its ellipsoid is a modern one, or a sphere, on which places are those of WGS 84.
fn is_as_wgs_84(equator_m: f64, pole_m: f64) -> bool {
    let is_modern = (equator_m - 6_378_137.0).abs() < 0.1 && (pole_m - 6_356_752.3).abs() < 0.1;
    is_modern || equator_m == pole_m
}

impl Datum {
    /// Longitudes and latitudes that count as those of WGS 84.
    fn wgs_84() -> Self {
        Self {
            code: None,
            figure: "+ellps=WGS84".into(),
            stated: Some(Shift {
                text: NO_SHIFT.into(),
                accuracy_m: None,
            }),
        }
    }

    /// One of EPSG's, whose shift is chosen where it is used.
    #[cfg(feature = "definitions")]
    pub(super) fn of_code(code: u16, figure: &str) -> Self {
        let parts: Vec<&str> = figure
            .split(' ')
            .filter(|part| !part.starts_with("+pm="))
            .collect();
        Self {
            code: Some(code),
            figure: parts.join(" "),
            stated: None,
        }
    }

    /// Whether it is WGS 84, or has its shift with it: then no place matters.
    pub(super) fn is_earth(&self) -> bool {
        self.code == Some(WGS_84) || self.stated.is_some()
    }

    fn parse(definition: &str) -> Self {
        let stated = |text: &str| {
            Some(Shift {
                text: text.into(),
                accuracy_m: None,
            })
        };
        if parameter(definition, "+nadgrids=@null").is_some() {
            // A map on a sphere of its own, of places on WGS 84.
            return Self::wgs_84();
        }
        let is_figure = |part: &&str| FIGURE.iter().any(|key| part.starts_with(key));
        let is_shift =
            |part: &&str| part.starts_with("+towgs84=") || part.starts_with("+nadgrids=");
        let mut parts = definition.split_whitespace();
        let figure: Vec<&str> = definition.split_whitespace().filter(is_figure).collect();
        let figure = figure.join(" ");
        let stated = match parts.find(is_shift) {
            Some(shift) => stated(shift),
            // A datum with a name has its shift with it.
            None if figure.contains("+datum=") => stated(""),
            None => None,
        };
        Self {
            code: None,
            figure,
            stated,
        }
    }
}
