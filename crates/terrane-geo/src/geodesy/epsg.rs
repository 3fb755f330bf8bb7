//! What is known of a coordinate system by its EPSG code.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use super::GeodesyError;
use super::system::System;

/// The code of longitudes and latitudes of WGS 84.
pub const WGS_84: u16 = 4326;

/// Definitions that were given at run time.
static GIVEN: RwLock<BTreeMap<u16, String>> = RwLock::new(BTreeMap::new());

/// The definition of a system as PROJ writes it, with the shift of its datum for the middle of the area that it is meant
/// for, where its code is known: to this program, or because it was given by [`define`].
pub fn definition(epsg: u16) -> Option<Cow<'static, str>> {
    #[cfg(feature = "definitions")]
    if let Some(record) = super::table::system(epsg) {
        let figure = super::table::datum(record.datum)?.figure;
        // A map that is drawn on a sphere of its own says so itself.
        let own = if record.map.contains("+nadgrids=@null") {
            ""
        } else {
            figure
        };
        let shift = super::shift::helmert(record.datum, record.middle)
            .map(|parameters| format!(" +towgs84={parameters}"));
        let shift = shift.filter(|_| !own.is_empty()).unwrap_or_default();
        return Some(format!("{} {own}{shift}", record.map).into());
    }
    #[cfg(not(feature = "definitions"))]
    if let Some(common) = common(epsg) {
        return Some(common);
    }
    let given = GIVEN.read().unwrap_or_else(PoisonError::into_inner);
    given.get(&epsg).cloned().map(Cow::Owned)
}

/// Gives the definition of a system as PROJ writes it. A program without the feature `definitions` knows few by itself;
/// what it does know is not changed.
pub fn define(epsg: u16, definition: &str) -> Result<(), GeodesyError> {
    System::parse(format!("EPSG:{epsg}"), definition)?;
    let mut given = GIVEN.write().unwrap_or_else(PoisonError::into_inner);
    given.insert(epsg, definition.to_owned());
    Ok(())
}

/// The systems that most files have: degrees of WGS 84, the web map, and UTM.
#[cfg(any(test, not(feature = "definitions")))]
fn common(epsg: u16) -> Option<Cow<'static, str>> {
    let zone = epsg % 100;
    match epsg {
        4326 => Some("+proj=longlat +datum=WGS84 +no_defs".into()),
        3857 => Some(
            "+proj=merc +a=6378137 +b=6378137 +lat_ts=0.0 +lon_0=0.0 +x_0=0.0 +y_0=0 +k=1.0 +units=m +nadgrids=@null +wktext +no_defs"
                .into(),
        ),
        32601..=32660 => {
            Some(format!("+proj=utm +zone={zone} +datum=WGS84 +units=m +no_defs").into())
        }
        32701..=32760 => {
            Some(format!("+proj=utm +zone={zone} +south +datum=WGS84 +units=m +no_defs").into())
        }
        _ => None,
    }
}

/// The value of a parameter of a definition.
pub(super) fn parameter<'a>(definition: &'a str, key: &str) -> Option<&'a str> {
    definition
        .split_whitespace()
        .find_map(|part| part.strip_prefix(key))
}

/// The number that a parameter of a definition is.
pub(super) fn number(text: &str) -> Option<f64> {
    #[cfg(not(target_family = "wasm"))]
    return text.parse().ok();
    #[cfg(target_family = "wasm")]
    return plain_number(text);
}

/// The same of digits and a point among them, to the last place but one. The standard library's reader of numbers has a table
/// of ten kilobytes, which a decoder for browsers would hold for this alone.
#[cfg(any(test, target_family = "wasm"))]
fn plain_number(text: &str) -> Option<f64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let places = i32::try_from(fraction.len()).ok()?;
    if !is_digits(whole) || !is_digits(fraction) || places > 22 {
        return None;
    }
    let digits: u64 = format!("{whole}{fraction}").parse().ok()?;
    Some(sign * (digits as f64 / 10_f64.powi(places)))
}

/// The code of a name such as `EPSG:4326`.
pub fn parse_epsg(name: &str) -> Result<u16, GeodesyError> {
    let code = name
        .strip_prefix("EPSG:")
        .or_else(|| name.strip_prefix("epsg:"))
        .unwrap_or(name);
    code.parse().map_err(|_| GeodesyError::NotACode)
}

/// Whether a system is one of longitudes and latitudes; `None` where its code is not known.
pub fn is_geographic(epsg: u16) -> Option<bool> {
    Some(definition(epsg)?.contains("+proj=longlat"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_systems_are_known() {
        assert_eq!(is_geographic(4326), Some(true));
        assert_eq!(is_geographic(4647), Some(false));
        assert_eq!(is_geographic(1), None);
    }

    #[test]
    fn numbers_of_definitions_are_read_without_the_standard_library() {
        for text in ["0.9", "-41.5", "1", "0.06", "57.2957795130823"] {
            let (ours, theirs) = (plain_number(text).unwrap(), number(text).unwrap());
            assert!(
                (ours - theirs).abs() <= f64::EPSILON * theirs.abs(),
                "{text}"
            );
        }
        for text in ["", ".", "-", "1e3", "0x1", "1.2.3", "99999999999999999999"] {
            assert_eq!(plain_number(text), None, "{text}");
        }
    }

    /// So that a program without the database has the systems of one with it.
    #[test]
    #[cfg(feature = "definitions")]
    fn common_systems_are_those_of_the_database() {
        use crate::geodesy::Projection;
        let mut count = 0;
        for epsg in 1..u16::MAX {
            let Some(common) = common(epsg) else {
                continue;
            };
            let common = System::parse(format!("EPSG:{epsg}"), &common).unwrap();
            let earth = System::epsg(4326).unwrap();
            let place = |system: &System| {
                let (longitude, latitude) = system.place;
                let projection = Projection::new(&earth, system).unwrap();
                projection.apply(longitude + 1.0, latitude + 2.0).unwrap()
            };
            let mut known = System::epsg(epsg).unwrap();
            known.place = common.place;
            let (ours, theirs) = (place(&common), place(&known));
            assert!(
                (ours.0 - theirs.0).hypot(ours.1 - theirs.1) < 1e-9,
                "EPSG:{epsg}"
            );
            count += 1;
        }
        assert_eq!(count, 122);
    }

    #[test]
    fn a_system_can_be_given_and_must_be_one() {
        // No code of EPSG's.
        assert_eq!(definition(64_999), None);
        define(64_999, "+proj=utm +zone=32 +ellps=GRS80 +units=m").unwrap();
        assert_eq!(is_geographic(64_999), Some(false));
        assert!(define(64_998, "+proj=nowhere").is_err());
        assert_eq!(definition(64_998), None);
        // What is known stays.
        define(2056, "+proj=longlat +datum=WGS84").unwrap();
        assert_eq!(is_geographic(2056), Some(false));
    }

    #[test]
    fn a_code_is_read_with_and_without_its_prefix() {
        assert_eq!(parse_epsg("EPSG:2056"), Ok(2056));
        assert_eq!(parse_epsg("2056"), Ok(2056));
        assert_eq!(parse_epsg("WGS84"), Err(GeodesyError::NotACode));
    }
}
