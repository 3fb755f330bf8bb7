//! Distances on the ellipsoid.

/// Metres on the WGS 84 ellipsoid between two near points in degrees.
pub fn distance_m(from: (f64, f64), to: (f64, f64)) -> f64 {
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
    fn distances_are_the_ellipsoids() {
        // GeographicLib: a hundredth of a degree northwards and eastwards at 47° north.
        let near = |value: f64, expected: f64| (value - expected).abs() < 1e-3;
        assert!(near(distance_m((7.0, 46.995), (7.0, 47.005)), 1_111.708_4));
        assert!(near(distance_m((7.0, 47.0), (7.01, 47.0)), 760.560_0));
    }
}
