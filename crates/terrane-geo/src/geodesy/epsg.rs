//! What is known of a coordinate system by its EPSG code.

use super::GeodesyError;

/// The definition of a system as PROJ writes it, where its code is known.
pub(super) fn definition(epsg: u16) -> Option<&'static str> {
    Some(crs_definitions::from_code(epsg)?.proj4)
}

/// The value of a parameter of a definition.
pub(super) fn parameter<'a>(definition: &'a str, key: &str) -> Option<&'a str> {
    definition
        .split_whitespace()
        .find_map(|part| part.strip_prefix(key))
}

/// The code of a name such as `EPSG:4326`.
pub fn parse_epsg(name: &str) -> Result<u16, GeodesyError> {
    let code = name
        .strip_prefix("EPSG:")
        .or_else(|| name.strip_prefix("epsg:"))
        .unwrap_or(name);
    code.parse().map_err(|_| GeodesyError::NotACode)
}

/// Metres per unit of a projected system.
pub fn unit_m(epsg: u16) -> Option<f64> {
    let definition = definition(epsg)?;
    match (
        parameter(definition, "+to_meter="),
        parameter(definition, "+units="),
    ) {
        (Some(metres), _) => metres.parse().ok(),
        (None, Some("us-ft")) => Some(1200.0 / 3937.0),
        (None, Some("ft")) => Some(0.3048),
        (None, Some("m")) => Some(1.0),
        _ => None,
    }
}

/// Whether a system is one of longitudes and latitudes; `None` where its code is not known.
pub fn is_geographic(epsg: u16) -> Option<bool> {
    Some(definition(epsg)?.contains("+proj=longlat"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_kinds_of_systems_are_known() {
        assert_eq!(unit_m(2056), Some(1.0));
        assert_eq!(unit_m(2263), Some(1200.0 / 3937.0));
        assert_eq!(is_geographic(4326), Some(true));
        assert_eq!(is_geographic(4647), Some(false));
        assert_eq!(is_geographic(1), None);
    }

    #[test]
    fn a_code_is_read_with_and_without_its_prefix() {
        assert_eq!(parse_epsg("EPSG:2056"), Ok(2056));
        assert_eq!(parse_epsg("2056"), Ok(2056));
        assert_eq!(parse_epsg("WGS84"), Err(GeodesyError::NotACode));
    }
}
