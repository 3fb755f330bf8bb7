//! Metres on the ground per unit of a map.
//!
//! The ground is the ellipsoid of the raster's own system. Where P(x, y) is the place of a map's point on it, counted in
//! metres from the Earth's centre, its derivatives ∂P/∂x and ∂P/∂y span the ground as the map sees it: their lengths are
//! the scales along both axes, and their cross product the area of a unit. They hold for any projection, conformal or
//! not, at the poles and across the meridian of 180°. Longitudes and latitudes have them by the radii of curvature M and
//! N; elsewhere they are differences over a kilometre, whose error is (1 km / R)² / 6, 4e-9.
//!
//! Directions count from the map's north, as they do in `gdaldem`: from where the map's northings run on the ground, not
//! from the meridian. What the scale changes by from place to place adds to second derivatives less than the curvature of
//! the Earth, and is left out.

use std::sync::Arc;

use super::lattice::Lattice;
use super::system::System;
use super::{GeodesyError, geo_keys};
use crate::{Affine, Crs, CrsKind, Georeference};

/// How far away the neighbours of differences are on the map.
const STEP_M: f64 = 1000.0;

/// What a map's scales may be off, as parts of them, where they are interpolated.
const TOLERANCE: f64 = 1e-5;

/// The radius of the Earth, for what a pixel is curved by.
const RADIUS_M: f64 = 6.37e6;

/// How a map lies on the ground at a point: metres eastwards and northwards, by the map's north, for a step of one unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ground {
    /// Along x, or from column to column.
    pub x: [f64; 2],
    /// Along y, or from row to row.
    pub y: [f64; 2],
}

impl Ground {
    /// A map on which x runs east and y north, each with its scale.
    pub fn upright(x_m: f64, y_m: f64) -> Self {
        Self {
            x: [x_m, 0.0],
            y: [0.0, y_m],
        }
    }

    /// Square metres of a square unit.
    pub fn area(&self) -> f64 {
        self.determinant().abs()
    }

    /// Metres of a step.
    pub fn length(&self, dx: f64, dy: f64) -> f64 {
        let along = |axis: usize| dx * self.x[axis] + dy * self.y[axis];
        along(0).hypot(along(1))
    }

    /// Rise per metre eastwards and northwards of what rises so much per unit.
    pub fn gradient(&self, [along_x, along_y]: [f64; 2]) -> [f64; 2] {
        let ([xe, xn], [ye, yn]) = (self.x, self.y);
        if xn == 0.0 && ye == 0.0 {
            return [along_x / xe, along_y / yn];
        }
        let determinant = self.determinant();
        [
            (along_x * yn - along_y * xn) / determinant,
            (along_y * xe - along_x * ye) / determinant,
        ]
    }

    /// Second derivatives by metres, xx, xy and yy, of those by units.
    pub fn hessian(&self, [xx, xy, yy]: [f64; 3]) -> [f64; 3] {
        // Both rows, then both columns.
        let [a, b] = [self.gradient([xx, xy]), self.gradient([xy, yy])];
        let (east, north) = (self.gradient([a[0], b[0]]), self.gradient([a[1], b[1]]));
        [east[0], east[1], north[1]]
    }

    /// The same ground by columns and rows of a raster on the map.
    #[must_use]
    pub fn of_pixels(&self, affine: &Affine) -> Self {
        let step =
            |dx: f64, dy: f64| std::array::from_fn(|axis| dx * self.x[axis] + dy * self.y[axis]);
        Self {
            x: step(affine.x_per_column, affine.y_per_column),
            y: step(affine.x_per_row, affine.y_per_row),
        }
    }

    fn determinant(&self) -> f64 {
        self.x[0] * self.y[1] - self.x[1] * self.y[0]
    }

    /// Its four numbers.
    pub(super) fn numbers(&self) -> [f64; 4] {
        [self.x[0], self.x[1], self.y[0], self.y[1]]
    }

    pub(super) fn from_numbers([xe, xn, ye, yn]: [f64; 4]) -> Self {
        Self {
            x: [xe, xn],
            y: [ye, yn],
        }
    }
}

/// How many metres on the ground a unit of a map is, which depends on the position. All slopes, curvatures, areas and pixel
/// sizes use it, so that they are the same wherever they are asked for.
#[derive(Debug, Clone)]
pub struct GroundScale {
    kind: Kind,
    /// Inside a raster, what is interpolated.
    lattice: Option<Arc<Lattice>>,
}

#[derive(Debug, Clone)]
enum Kind {
    /// The same everywhere.
    Constant(Ground),
    /// A system of the Earth.
    Earth(Arc<System>),
}

impl GroundScale {
    /// A unit that is so many metres everywhere.
    pub fn constant(unit_m: f64) -> Self {
        Self::of_ground(Ground::upright(unit_m, unit_m))
    }

    fn of_ground(ground: Ground) -> Self {
        Self {
            kind: Kind::Constant(ground),
            lattice: None,
        }
    }

    /// The scale of a system; where the Earth is not stated, that of the map's unit, and one that states no unit counts as
    /// metric. A unit that is not understood is an error.
    pub fn of(crs: &Crs) -> Result<Self, GeodesyError> {
        let system = match System::of(crs) {
            Ok(system) if !system.is_geocentric() => system,
            Err(error @ GeodesyError::UnknownUnit { .. }) => return Err(error),
            // An ellipsoid that is not known is nearly that of WGS 84.
            Err(_) if crs.kind() == CrsKind::Geographic => {
                let system = System::parse("WGS 84".into(), "+proj=longlat +ellps=WGS84")?;
                system.with_unit(geo_keys::degrees(crs)?.unwrap_or(1.0))
            }
            _ => return Ok(Self::constant(geo_keys::metres(crs)?.unwrap_or(1.0))),
        };
        Ok(Self {
            kind: Kind::Earth(Arc::new(system)),
            lattice: None,
        })
    }

    /// The scale inside a raster of so many columns and rows, to be asked for at many points.
    pub fn of_raster(
        georeference: &Georeference,
        size: (usize, usize),
    ) -> Result<Self, GeodesyError> {
        let mut scale = Self::of(&georeference.crs)?;
        if let Kind::Earth(system) = &scale.kind
            && !system.is_geographic()
        {
            let affine = georeference.affine();
            let exact = |x: f64, y: f64| exact(system, x, y);
            scale.lattice = Some(Arc::new(Lattice::new(bounds(&affine, size), &exact)));
        }
        Ok(scale)
    }

    /// Whether nothing is known but the map's unit.
    pub fn is_constant(&self) -> bool {
        matches!(self.kind, Kind::Constant(_))
    }

    /// Whether areas of pixels in a row of an upright raster are equal.
    pub fn is_even_along_x(&self) -> bool {
        match &self.kind {
            Kind::Constant(_) => true,
            Kind::Earth(system) => system.is_geographic(),
        }
    }

    /// How the map lies on the ground at a point; NaN where the map has no place on the Earth.
    pub fn at(&self, x: f64, y: f64) -> Ground {
        match &self.kind {
            Kind::Constant(ground) => *ground,
            Kind::Earth(system) => {
                let inside = self.lattice.as_ref().and_then(|lattice| lattice.at(x, y));
                inside.unwrap_or_else(|| exact(system, x, y))
            }
        }
    }

    /// What an area of a pixel of so many metres may be off, as a part of it.
    pub fn tolerance(&self, pixel_m: f64) -> f64 {
        match &self.kind {
            Kind::Constant(_) => 0.0,
            Kind::Earth(_) => 2.0 * TOLERANCE + (pixel_m / RADIUS_M).powi(2),
        }
    }

    /// The scale that `gdaldem` takes: where the map is the ground within one in a hundred all over a raster, its unit.
    pub fn of_pixels(
        georeference: &Georeference,
        size: (usize, usize),
    ) -> Result<Self, GeodesyError> {
        const NEAR: f64 = 0.01;
        let scale = Self::of_raster(georeference, size)?;
        let Kind::Earth(system) = &scale.kind else {
            return Ok(scale);
        };
        if system.is_geographic() {
            return Ok(scale);
        }
        let flat = flat(system);
        let affine = georeference.affine();
        let unit_m = system.unit_m();
        let is_near = (0..25).all(|index| {
            let part = |number: usize, length: usize| number as f64 / 4.0 * length as f64;
            let (x, y) = affine.apply(part(index % 5, size.0), part(index / 5, size.1));
            let off = scale.at(x, y).numbers().into_iter().zip(flat.numbers());
            off.into_iter()
                .all(|(there, here)| (there - here).abs() <= NEAR * unit_m)
        });
        Ok(if is_near {
            Self::of_ground(flat)
        } else {
            scale
        })
    }

    /// Side of a pixel in metres, the root of its area, at the middle of a raster of `width` × `height` pixels.
    pub fn pixel_m(&self, affine: &Affine, (width, height): (usize, usize)) -> f64 {
        let (x, y) = affine.apply(width as f64 / 2.0, height as f64 / 2.0);
        affine.pixel_size() * self.at(x, y).area().sqrt()
    }
}

/// The box on the map that a raster lies in: least x and y, and greatest.
fn bounds(affine: &Affine, (width, height): (usize, usize)) -> [f64; 4] {
    let (width, height) = (width as f64, height as f64);
    let corners = [(0.0, 0.0), (width, 0.0), (0.0, height), (width, height)];
    let start = [
        f64::INFINITY,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NEG_INFINITY,
    ];
    corners
        .into_iter()
        .fold(start, |[west, south, east, north], (column, row)| {
            let (x, y) = affine.apply(column, row);
            [west.min(x), south.min(y), east.max(x), north.max(y)]
        })
}

/// A map of a system as if it were the ground.
fn flat(system: &System) -> Ground {
    let unit_m = system.unit_m();
    let direction = |axis: u8| match axis {
        b'e' => [unit_m, 0.0],
        b'w' => [-unit_m, 0.0],
        b'n' => [0.0, unit_m],
        _ => [0.0, -unit_m],
    };
    let [x, y] = system.axes();
    Ground {
        x: direction(x),
        y: direction(y),
    }
}

/// How a map lies on the ground at a point.
fn exact(system: &System, x: f64, y: f64) -> Ground {
    if system.is_geographic() {
        let unit = system.unit_radians();
        let [east_m, north_m] = system.ellipsoid().radian_m(y * unit);
        return Ground::upright(east_m * unit, north_m * unit);
    }
    let step = STEP_M / system.unit_m();
    let place = |x: f64, y: f64| {
        let (longitude, latitude) = system.to_radians(x, y).unwrap_or((f64::NAN, f64::NAN));
        system.ellipsoid().geocentric(longitude, latitude)
    };
    let slope = |ends: [[f64; 3]; 2]| -> [f64; 3] {
        std::array::from_fn(|axis| (ends[1][axis] - ends[0][axis]) / (2.0 * step))
    };
    let along_x = slope([place(x - step, y), place(x + step, y)]);
    let along_y = slope([place(x, y - step), place(x, y + step)]);
    // The map's east and north, whatever its axes are.
    let flat = flat(system);
    let unit_m = system.unit_m();
    let turned = |axis: usize| -> [f64; 3] {
        let (a, b) = (flat.x[axis] / unit_m, flat.y[axis] / unit_m);
        std::array::from_fn(|index| a * along_x[index] + b * along_y[index])
    };
    let north = unit(turned(1));
    let across = turned(0);
    let skew = dot(across, north);
    let east = unit(std::array::from_fn(|axis| {
        across[axis] - skew * north[axis]
    }));
    let ground = |step: [f64; 3]| [dot(step, east), dot(step, north)];
    Ground {
        x: ground(along_x),
        y: ground(along_y),
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn unit(vector: [f64; 3]) -> [f64; 3] {
    let length = dot(vector, vector).sqrt();
    vector.map(|value| value / length)
}

#[cfg(all(test, feature = "definitions"))]
#[expect(clippy::unwrap_used, reason = "a test may stop anywhere")]
mod tests {
    use super::*;
    use crate::geodesy::Projection;

    /// What PROJ says of the ground under maps; `tests/ground/make.py` writes it.
    const EXPECTED: &str = include_str!("../../tests/ground/expected.tsv");

    struct Place {
        name: &'static str,
        crs: Crs,
        x: f64,
        y: f64,
        /// Metres of a unit along x and y, and the cosine of the angle between both.
        lengths: [f64; 3],
        side: f64,
        area_m2: f64,
        by_factors: Option<f64>,
        degrees: (f64, f64),
    }

    fn places() -> Vec<Place> {
        let lines = EXPECTED.lines().filter(|line| !line.starts_with('#'));
        let places: Vec<Place> = lines
            .map(|line| {
                let fields: Vec<&str> = line.split('\t').collect();
                let number = |index: usize| fields[index].parse().unwrap();
                Place {
                    name: fields[0],
                    crs: crs(fields[0]),
                    x: number(1),
                    y: number(2),
                    lengths: [number(3), number(4), number(5)],
                    side: number(6),
                    area_m2: number(7),
                    by_factors: fields[8].parse().ok(),
                    degrees: (number(9), number(10)),
                }
            })
            .collect();
        assert!(places.len() > 30);
        places
    }

    fn crs(name: &str) -> Crs {
        match name.strip_prefix("EPSG:").map(|code| code.parse().unwrap()) {
            None => lambert(),
            Some(code @ (4326 | 4807)) => Crs::geographic(code, None),
            Some(code) => Crs::projected(code, None),
        }
    }

    /// A Lambert projection of its own, as GDAL writes it.
    fn lambert() -> Crs {
        let doubles = [
            6_377_397.155,
            299.152_812_8,
            577.326,
            90.129,
            463.919,
            5.137,
            1.474,
            5.297,
            2.4232,
            44.0,
            47.5,
            10.25,
            45.5,
            700_000.0,
            250_000.0,
        ];
        let short = |key: u16, value: u16| [key, 0, 1, value];
        let double = |key: u16, count: u16, first: u16| [key, 34736, count, first];
        let keys = [
            short(1024, 1),
            short(1025, 1),
            short(2048, 32767),
            short(2050, 32767),
            short(2054, 9102),
            double(2057, 1, 0),
            double(2059, 1, 1),
            double(2062, 7, 2),
            short(3072, 32767),
            short(3074, 32767),
            short(3075, 8),
            short(3076, 9001),
            double(3078, 1, 9),
            double(3079, 1, 10),
            double(3084, 1, 11),
            double(3085, 1, 12),
            double(3086, 1, 13),
            double(3087, 1, 14),
        ];
        let head = [1, 1, 0, keys.len() as u16];
        Crs {
            directory: head.into_iter().chain(keys.into_iter().flatten()).collect(),
            doubles: doubles.to_vec(),
            text: String::new(),
        }
    }

    /// A raster of a hundred pixels across around a place.
    fn around(place: &Place) -> Georeference {
        let pixel = place.side / 100.0;
        let affine = Affine::north_up(place.x - 50.0 * pixel, place.y + 50.0 * pixel, pixel);
        Georeference::new(affine, place.crs.clone())
    }

    fn assert_near(found: f64, expected: f64, part: f64, what: &str) {
        let is_near = (found - expected).abs() <= part * expected.abs().max(1e-9);
        assert!(is_near, "{what}: {found} instead of {expected}");
    }

    #[test]
    fn lengths_angles_and_areas_are_those_of_proj() {
        for place in places() {
            let name = place.name;
            let exact = GroundScale::of(&place.crs).unwrap();
            let inside = GroundScale::of_raster(&around(&place), (100, 100)).unwrap();
            for scale in [exact, inside] {
                let ground = scale.at(place.x, place.y);
                assert_near(ground.length(1.0, 0.0), place.lengths[0], 1e-5, name);
                assert_near(ground.length(0.0, 1.0), place.lengths[1], 1e-5, name);
                let dot = ground.x[0] * ground.y[0] + ground.x[1] * ground.y[1];
                let cosine = dot / (place.lengths[0] * place.lengths[1]);
                assert!((cosine - place.lengths[2]).abs() < 1e-5, "{name}: {cosine}");
                if let Some(area) = place.by_factors {
                    let unit_m = geo_keys::system(&place.crs).unwrap().unit_m();
                    assert_near(ground.area(), area * unit_m * unit_m, 1e-5, name);
                }
            }
        }
    }

    /// A plane on the ground as the map has it, and back.
    #[test]
    fn slopes_and_directions_of_a_plane_are_those_on_the_ellipsoid() {
        for place in places() {
            let [x_m, y_m, cosine] = place.lengths;
            // The plane rises towards the map's north by 0.6 and towards its east by 0.8; y may run elsewhere.
            let ground = GroundScale::of(&place.crs).unwrap().at(place.x, place.y);
            let (along_x, along_y) = if place.name == "EPSG:2065" {
                (-0.6 * x_m, -0.8 * y_m)
            } else {
                let sine = (1.0 - cosine * cosine).sqrt();
                ((0.8 * sine + 0.6 * cosine) * x_m, 0.6 * y_m)
            };
            let [east, north] = ground.gradient([along_x, along_y]);
            assert_near(east, 0.8, 1e-4, place.name);
            assert_near(north, 0.6, 1e-4, place.name);
        }
    }

    #[test]
    fn areas_of_pixels_are_within_what_they_are_said_to_be() {
        for place in places() {
            let georeference = around(&place);
            let scale = GroundScale::of_raster(&georeference, (100, 100)).unwrap();
            let affine = georeference.affine();
            let pixels = (0..10_000).map(|index| {
                let (column, row) = (f64::from(index % 100), f64::from(index / 100));
                let (x, y) = affine.apply(column + 0.5, row + 0.5);
                affine.pixel_size().powi(2) * scale.at(x, y).area()
            });
            let area: f64 = pixels.sum();
            let tolerance = scale.tolerance(scale.pixel_m(&affine, (100, 100)));
            assert!(tolerance < 1e-4, "{tolerance}");
            assert_near(area, place.area_m2, tolerance, place.name);
        }
    }

    #[test]
    fn rasters_lie_where_proj_puts_them() {
        let earth = System::epsg(4326).unwrap();
        for place in places() {
            let own = System::of_raster(&around(&place), (100, 100)).unwrap();
            let projection = Projection::new(&own, &earth).unwrap();
            let (longitude, latitude) = projection.apply(place.x, place.y).unwrap();
            let off = (longitude - place.degrees.0).hypot(latitude - place.degrees.1);
            assert!(off < 1e-7, "{}: {longitude} {latitude}", place.name);
            let back = Projection::new(&earth, &own).unwrap();
            let (x, y) = back.apply(longitude, latitude).unwrap();
            let off = (x - place.x).hypot(y - place.y);
            assert!(off < 1e-5 * place.side, "{}: {x} {y}", place.name);
        }
    }

    #[test]
    fn pixels_of_a_near_map_are_taken_as_its_own() {
        for place in places() {
            let scale = GroundScale::of_pixels(&around(&place), (100, 100)).unwrap();
            let [x_m, y_m, cosine] = place.lengths;
            let unit_m = if place.name == "EPSG:2263" {
                0.3048
            } else {
                1.0
            };
            let is_near = [x_m / unit_m, y_m / unit_m, 1.0 + cosine]
                .into_iter()
                .all(|part| (part - 1.0).abs() < 0.01);
            assert_eq!(scale.is_constant(), is_near, "{}", place.name);
        }
    }

    #[test]
    fn units_are_read_or_refused() {
        let with = |mut crs: Crs, key: u16, value: u16| {
            crs.directory.extend([key, 0, 1, value]);
            crs.directory[3] += 1;
            crs
        };
        let degrees = |code| with(Crs::geographic(4326, None), 2054, code);
        let x_m = |crs: &Crs| GroundScale::of(crs).unwrap().at(0.0, 0.0).length(1.0, 0.0);
        let degree_m = x_m(&Crs::geographic(4326, None));
        assert_near(x_m(&degrees(9105)), 0.9 * degree_m, 1e-12, "grads");
        assert_near(
            x_m(&degrees(9101)),
            1_f64.to_degrees() * degree_m,
            1e-12,
            "radians",
        );
        let refused = GroundScale::of(&degrees(9110)).unwrap_err();
        assert_eq!(refused, GeodesyError::UnknownUnit { code: 9110 });
        let chains = with(Crs::projected(2056, None), 3076, 9097);
        let x_m = GroundScale::of(&chains)
            .unwrap()
            .at(129_200.0, 59_600.0)
            .length(1.0, 0.0);
        assert_near(x_m, 20.1168, 1e-3, "chains");
        let unknown = with(Crs::projected(2056, None), 3076, 9999);
        assert!(GroundScale::of(&unknown).is_err());
        // No place on the Earth, but a unit.
        let mut local = Crs::default();
        assert_eq!(
            GroundScale::of(&local).unwrap().at(0.0, 0.0),
            Ground::upright(1.0, 1.0)
        );
        local.directory = vec![1, 1, 0, 2, 1024, 0, 1, 1, 3076, 0, 1, 9002];
        let feet = GroundScale::of(&local).unwrap().at(0.0, 0.0);
        assert_eq!(feet, Ground::upright(0.3048, 0.3048));
    }

    #[test]
    fn a_pixel_is_measured_on_the_ground() {
        let pixel_m =
            |crs: &Crs, affine: Affine| GroundScale::of(crs).unwrap().pixel_m(&affine, (10, 10));
        let metres = Affine::north_up(2_600_000.0, 1_200_000.0, 0.5);
        assert_near(
            pixel_m(&Crs::projected(2056, None), metres),
            0.5,
            1e-6,
            "metres",
        );
        // A system whose code alone tells that it is in feet.
        let place = Affine::north_up(1_011_936.0, 230_754.0, 0.5);
        let feet = pixel_m(&Crs::projected(2263, None), place);
        assert_near(feet, 0.5 * 1200.0 / 3937.0, 1e-5, "feet");
    }
}
