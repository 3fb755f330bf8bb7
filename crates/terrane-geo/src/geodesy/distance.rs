//! Distances on the ellipsoid.

use super::ellipsoid::Ellipsoid;

/// The mean radius of the Earth, which an arc is bent by: over a thousand kilometres its error is a few millionths.
const RADIUS_M: f64 = 6_371_008.8;

/// Metres on the WGS 84 ellipsoid between two points in degrees: the arc over the straight line between them, which
/// knows neither poles nor a meridian of 180°.
pub fn distance_m(from: (f64, f64), to: (f64, f64)) -> f64 {
    let point = |(longitude, latitude): (f64, f64)| {
        Ellipsoid::WGS_84.geocentric(longitude.to_radians(), latitude.to_radians())
    };
    let (from, to) = (point(from), point(to));
    let chord: f64 = (0..3).map(|axis| (to[axis] - from[axis]).powi(2)).sum();
    2.0 * RADIUS_M * (chord.sqrt() / (2.0 * RADIUS_M)).min(1.0).asin()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longitudes, latitudes, and what `pyproj.Geod(ellps="WGS84")` says of them.
    const GEODESICS: [([f64; 4], f64); 6] = [
        ([7.0, 46.995, 7.0, 47.005], 1_111.708_4),
        ([7.0, 47.0, 7.01, 47.0], 760.560_0),
        ([179.95, -17.0, -179.95, -17.0], 10_648.583_0),
        ([10.0, 89.9, -170.0, 89.9], 22_338.795_7),
        ([7.0, 46.0, 8.5, 47.0], 160_040.754_0),
        ([-10.0, 80.0, 10.0, 82.0], 411_449.293_5),
    ];

    #[test]
    fn distances_are_the_ellipsoids() {
        for ([x0, y0, x1, y1], expected) in GEODESICS {
            let found = distance_m((x0, y0), (x1, y1));
            assert!(
                (found / expected - 1.0).abs() < 1e-5,
                "{found} instead of {expected}"
            );
        }
    }
}
