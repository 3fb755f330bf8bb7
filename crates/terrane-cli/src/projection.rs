//! Points from one coordinate system to another, for queries; a file's own coordinates are never changed.

use anyhow::{Context, Result, bail, ensure};
use proj4rs::Proj;
use proj4rs::transform::transform;

/// A way from one system to another.
pub(crate) struct Projection {
    from: Proj,
    to: Proj,
}

/// Systems whose shift of datum the library leaves out, or gets wrong by a decimetre and more compared with PROJ.
fn is_shifted_wrongly(definition: &str) -> bool {
    let has = |part: &str| definition.contains(part);
    let is_stated = has("+towgs84=") || has("+datum=") || has("+nadgrids=@null");
    let is_modern = has("+ellps=GRS80") || has("+ellps=WGS84");
    has("hermannskogel") || has("+proj=krovak") || !(is_stated || is_modern)
}

fn system(epsg: u16) -> Result<Proj> {
    let definition = crs_definitions::from_code(epsg)
        .with_context(|| format!("EPSG:{epsg} is not known here"))?
        .proj4;
    ensure!(
        !is_shifted_wrongly(definition),
        "EPSG:{epsg} would be converted wrongly here: give points in the file's own system"
    );
    Proj::from_proj_string(definition)
        .map_err(|error| anyhow::anyhow!("EPSG:{epsg} cannot be used here: {error}"))
}

/// The code of a name such as `EPSG:4326`.
pub(crate) fn parse_epsg(name: &str) -> Result<u16, String> {
    let code = name
        .strip_prefix("EPSG:")
        .or_else(|| name.strip_prefix("epsg:"))
        .unwrap_or(name);
    code.parse()
        .map_err(|_| "a code is needed, such as EPSG:4326".into())
}

impl Projection {
    /// From the system of points to that of a file.
    pub(crate) fn new(from: u16, to: Option<u16>) -> Result<Self> {
        let Some(to) = to else {
            bail!("the file's system has no EPSG code: give points in the file's own system");
        };
        Ok(Self {
            from: system(from)?,
            to: system(to)?,
        })
    }

    /// A point in the file's coordinates; longitudes and latitudes are degrees, longitude first.
    pub(crate) fn apply(&self, x: f64, y: f64) -> Result<(f64, f64)> {
        let mut point = if self.from.is_latlong() {
            (x.to_radians(), y.to_radians(), 0.0)
        } else {
            (x, y, 0.0)
        };
        transform(&self.from, &self.to, &mut point)
            .map_err(|error| anyhow::anyhow!("{x}, {y} cannot be converted: {error}"))?;
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

    const POINTS: [(u16, f64, f64, f64, f64); 7] = [
        (2056, 7.4386, 46.9511, 2_599_997.533, 1_200_001.916),
        (3794, 14.5058, 46.0569, 461_760.739, 102_018.972),
        (26915, -94.5, 45.2, 382_189.143, 5_006_262.639),
        (2193, 174.76, -36.85, 1_756_911.945, 5_920_321.818),
        (32608, -135.2, 60.5, 489_013.236, 6_707_113.858),
        (2154, -4.3, 48.4, 160_448.147, 6_836_036.814),
        (3857, 7.4, 46.9, 823_764.232, 5_925_766.775),
    ];

    #[test]
    fn points_are_where_proj_has_them() {
        // Longitude, latitude and what PROJ 9 gives, in metres.
        for (epsg, longitude, latitude, x, y) in POINTS {
            let (ours_x, ours_y) = Projection::new(4326, Some(epsg))
                .unwrap()
                .apply(longitude, latitude)
                .unwrap();
            assert!(
                (ours_x - x).hypot(ours_y - y) < 0.1,
                "EPSG:{epsg}: {ours_x} {ours_y} instead of {x} {y}"
            );
        }
    }

    #[test]
    fn what_is_wrong_or_unknown_is_refused() {
        for code in [5514, 31287, 31256, 4268] {
            assert!(Projection::new(4326, Some(code)).is_err(), "{code}");
        }
        assert!(Projection::new(4326, Some(1)).is_err());
        assert!(Projection::new(4326, None).is_err());
        assert_eq!(parse_epsg("EPSG:2056"), Ok(2056));
        assert!(parse_epsg("WGS84").is_err());
    }
}
