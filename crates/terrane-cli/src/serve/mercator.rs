//! Tiles of the Web Mercator square, and what they cover.

use std::f64::consts::PI;

/// The finest zoom that is answered: a pixel is a centimetre there.
pub(crate) const MOST_ZOOM: u8 = 24;

/// One tile: zoom, column from the west, row from the north.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TileId {
    pub(crate) z: u8,
    pub(crate) x: u32,
    pub(crate) y: u32,
}

impl TileId {
    /// A tile, or `None` where the zoom has no such column or row.
    pub(crate) fn new(z: u8, x: u32, y: u32) -> Option<Self> {
        (z <= MOST_ZOOM && x >> z == 0 && y >> z == 0).then_some(Self { z, x, y })
    }

    /// West, south, east and north in degrees.
    pub(crate) fn bounds(self) -> [f64; 4] {
        let across = f64::from(1_u32 << self.z);
        let (west, north) = degrees(f64::from(self.x) / across, f64::from(self.y) / across);
        let (east, south) = degrees(
            f64::from(self.x + 1) / across,
            f64::from(self.y + 1) / across,
        );
        [west, south, east, north]
    }
}

/// Longitude and latitude of a position in the square, which reaches from (0, 0) in the north-west to (1, 1).
pub(crate) fn degrees(u: f64, v: f64) -> (f64, f64) {
    (
        360.0 * u - 180.0,
        (PI * (1.0 - 2.0 * v)).sinh().atan().to_degrees(),
    )
}

/// The position in the square of a longitude and a latitude.
pub(crate) fn position(longitude: f64, latitude: f64) -> (f64, f64) {
    let tangent = latitude.to_radians().tan();
    (
        (longitude + 180.0) / 360.0,
        0.5 - tangent.asinh() / (2.0 * PI),
    )
}

/// Metres on the WGS 84 ellipsoid between two near points in degrees.
pub(crate) fn distance_m(from: (f64, f64), to: (f64, f64)) -> f64 {
    const EQUATOR_M: f64 = 6_378_137.0;
    const ECCENTRICITY_SQUARED: f64 = 0.006_694_379_990_141_316;
    let latitude = f64::midpoint(from.1, to.1).to_radians();
    let root = (1.0 - ECCENTRICITY_SQUARED * latitude.sin().powi(2)).sqrt();
    let across = EQUATOR_M / root;
    let along = EQUATOR_M * (1.0 - ECCENTRICITY_SQUARED) / root.powi(3);
    let east = (to.0 - from.0).to_radians() * latitude.cos() * across;
    let north = (to.1 - from.1).to_radians() * along;
    east.hypot(north)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_outside_the_square_do_not_exist() {
        assert!(TileId::new(0, 0, 0).is_some());
        assert!(TileId::new(0, 1, 0).is_none());
        assert!(TileId::new(3, 7, 8).is_none());
        assert!(TileId::new(24, (1 << 24) - 1, 0).is_some());
        assert!(TileId::new(25, 0, 0).is_none());
        assert!(TileId::new(24, u32::MAX, 0).is_none());
    }

    #[test]
    fn a_tile_covers_what_the_standard_says() {
        let [west, south, east, north] = TileId::new(1, 1, 0).unwrap().bounds();
        assert_eq!((west, east), (0.0, 180.0));
        assert!(south.abs() < 1e-12 && (north - 85.051_128_779_806_6).abs() < 1e-9);
        let (u, v) = position(7.4386, 46.9511);
        // PROJ's EPSG:3857 of this point.
        let half = PI * 6_378_137.0;
        assert!(((2.0 * u - 1.0) * half - 828_061.164_2).abs() < 1e-3);
        assert!(((1.0 - 2.0 * v) * half - 5_934_095.997_2).abs() < 1e-3);
        let (longitude, latitude) = degrees(u, v);
        assert!((longitude - 7.4386).abs() < 1e-12 && (latitude - 46.9511).abs() < 1e-12);
    }

    #[test]
    fn distances_are_the_ellipsoids() {
        // GeographicLib: a hundredth of a degree northwards and eastwards at 47° north.
        let near = |value: f64, expected: f64| (value - expected).abs() < 1e-3;
        assert!(near(distance_m((7.0, 46.995), (7.0, 47.005)), 1_111.708_4));
        assert!(near(distance_m((7.0, 47.0), (7.01, 47.0)), 760.560_0));
    }
}
