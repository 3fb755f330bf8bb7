//! Tiles of the Web Mercator square, and what they cover.

use std::f64::consts::PI;

/// The finest zoom that is answered: a pixel is a centimetre there.
pub const MAX_ZOOM: u8 = 24;

/// One tile of the web map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MapTile {
    /// Zoom.
    pub z: u8,
    /// Column from the west.
    pub x: u32,
    /// Row from the north.
    pub y: u32,
}

impl MapTile {
    /// A tile, or `None` where the zoom has no such column or row.
    pub fn new(z: u8, x: u32, y: u32) -> Option<Self> {
        (z <= MAX_ZOOM && x >> z == 0 && y >> z == 0).then_some(Self { z, x, y })
    }

    /// West, south, east and north in degrees.
    pub fn bounds(self) -> [f64; 4] {
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
pub fn degrees(u: f64, v: f64) -> (f64, f64) {
    (
        360.0 * u - 180.0,
        (PI * (1.0 - 2.0 * v)).sinh().atan().to_degrees(),
    )
}

/// The position in the square of a longitude and a latitude.
pub fn position(longitude: f64, latitude: f64) -> (f64, f64) {
    let tangent = latitude.to_radians().tan();
    (
        (longitude + 180.0) / 360.0,
        0.5 - tangent.asinh() / (2.0 * PI),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_outside_the_square_do_not_exist() {
        assert!(MapTile::new(0, 0, 0).is_some());
        assert!(MapTile::new(0, 1, 0).is_none());
        assert!(MapTile::new(3, 7, 8).is_none());
        assert!(MapTile::new(24, (1 << 24) - 1, 0).is_some());
        assert!(MapTile::new(25, 0, 0).is_none());
        assert!(MapTile::new(24, u32::MAX, 0).is_none());
    }

    #[test]
    fn a_tile_covers_what_the_standard_says() {
        let [west, south, east, north] = MapTile::new(1, 1, 0).unwrap().bounds();
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
}
