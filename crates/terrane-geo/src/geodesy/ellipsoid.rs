//! The figure of the Earth that a coordinate system counts on.

use std::f64::consts::FRAC_PI_2;

/// An ellipsoid of revolution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ellipsoid {
    equator_m: f64,
    eccentricity_squared: f64,
}

impl Ellipsoid {
    pub(super) const WGS_84: Self = Self {
        equator_m: 6_378_137.0,
        eccentricity_squared: 0.006_694_379_990_141_316,
    };

    /// That of two half axes.
    pub(super) fn new(equator_m: f64, pole_m: f64) -> Self {
        Self {
            equator_m,
            eccentricity_squared: 1.0 - (pole_m / equator_m).powi(2),
        }
    }

    /// Metres from the centre of a longitude and a latitude in radians.
    pub(super) fn geocentric(&self, longitude: f64, latitude: f64) -> [f64; 3] {
        let (sine, cosine) = latitude.sin_cos();
        let across = self.across_m(sine);
        [
            across * cosine * longitude.cos(),
            across * cosine * longitude.sin(),
            across * (1.0 - self.eccentricity_squared) * sine,
        ]
    }

    /// Radius of curvature across the meridian, N.
    fn across_m(&self, sine: f64) -> f64 {
        self.equator_m / (1.0 - self.eccentricity_squared * sine * sine).sqrt()
    }

    /// Metres of a radian eastwards and northwards at a latitude in radians: N cos φ, and the radius of curvature of the
    /// meridian, M.
    pub(super) fn radian_m(&self, latitude: f64) -> [f64; 2] {
        let latitude = latitude.clamp(-FRAC_PI_2, FRAC_PI_2);
        let (sine, cosine) = latitude.sin_cos();
        let across = self.across_m(sine);
        let along = across * (1.0 - self.eccentricity_squared)
            / (1.0 - self.eccentricity_squared * sine * sine);
        [across * cosine, along]
    }
}
