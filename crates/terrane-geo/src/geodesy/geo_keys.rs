//! The coordinate system that a file states by the keys of GeoTIFF: a code of EPSG, or parameters of its own.
//!
//! Keys, projections and their parameters are those of OGC's GeoTIFF 1.1 (19-008r4), its annexes on codes and on what
//! earlier writers meant by them, as GDAL reads them.

use super::epsg::definition;
use super::{GeodesyError, System};
use crate::{Crs, CrsKind};

const GEODETIC_CRS: u16 = 2048;
const GEODETIC_DATUM: u16 = 2050;
const PRIME_MERIDIAN: u16 = 2051;
const ANGULAR_UNIT: u16 = 2054;
const ANGULAR_UNIT_SIZE: u16 = 2055;
const HALF_AXIS: u16 = 2057;
const POLAR_HALF_AXIS: u16 = 2058;
const INVERSE_FLATTENING: u16 = 2059;
const PRIME_MERIDIAN_LONGITUDE: u16 = 2061;
const TO_WGS_84: u16 = 2062;
const CONVERSION: u16 = 3074;
const METHOD: u16 = 3075;
const LINEAR_UNIT: u16 = 3076;
const LINEAR_UNIT_SIZE: u16 = 3077;

/// "Defined by other keys".
const USER_DEFINED: u16 = 32767;

/// Where a parameter may stand: earlier writers took the keys of other projections.
const PARALLEL_1: &[u16] = &[3078];
const PARALLEL_2: &[u16] = &[3079];
const LATITUDE: &[u16] = &[3081, 3085, 3089];
const LONGITUDE: &[u16] = &[3080, 3084, 3088, 3095];
const EASTING: &[u16] = &[3082, 3086, 3090];
const NORTHING: &[u16] = &[3083, 3087, 3091];
const SCALE: &[u16] = &[3092, 3093];
const AZIMUTH: &[u16] = &[3094];
const RECTIFIED: &[u16] = &[3096];

/// The system of a file.
pub(super) fn system(crs: &Crs) -> Result<System, GeodesyError> {
    if !matches!(
        crs.kind(),
        CrsKind::Projected | CrsKind::Geographic | CrsKind::Geocentric
    ) {
        return Err(GeodesyError::NoSystem);
    }
    let system = match crs.horizontal_epsg() {
        Some(code) => System::epsg(code)?,
        None => user_defined(crs)?,
    };
    let unit = if system.is_geographic() {
        degrees(crs)?
    } else {
        metres(crs)?
    };
    Ok(match unit {
        Some(unit) => system.with_unit(unit),
        None => system,
    })
}

/// Metres in the unit that a file states for its map.
pub(super) fn metres(crs: &Crs) -> Result<Option<f64>, GeodesyError> {
    let unit = match crs.short(LINEAR_UNIT) {
        None | Some(0) => return Ok(None),
        Some(USER_DEFINED) => crs.double(LINEAR_UNIT_SIZE),
        Some(code) => {
            return metres_of(code)
                .map(Some)
                .ok_or(GeodesyError::UnknownUnit { code });
        }
    };
    unit.map(Some)
        .ok_or(GeodesyError::UnknownUnit { code: USER_DEFINED })
}

/// Degrees in the unit that a file states for its longitudes and latitudes.
pub(super) fn degrees(crs: &Crs) -> Result<Option<f64>, GeodesyError> {
    let code = match crs.short(ANGULAR_UNIT) {
        None | Some(0) => return Ok(None),
        Some(code) => code,
    };
    let degrees = match code {
        9101 => Some(1_f64.to_degrees()),
        // Degrees, minutes and seconds are a way to write what is counted in degrees.
        9102 | 9107 | 9108 | 9122 => Some(1.0),
        9103 => Some(1.0 / 60.0),
        9104 => Some(1.0 / 3600.0),
        9105 | 9106 => Some(0.9),
        9109 => Some(1e-6_f64.to_degrees()),
        USER_DEFINED => crs.double(ANGULAR_UNIT_SIZE).map(f64::to_degrees),
        _ => None,
    };
    degrees.map(Some).ok_or(GeodesyError::UnknownUnit { code })
}

/// A system that a file defines by itself.
fn user_defined(crs: &Crs) -> Result<System, GeodesyError> {
    let name = crs.citation().map_or_else(
        || "the file's own system".to_owned(),
        |citation| format!("the file's own system ({})", citation.trim_end_matches('|')),
    );
    let (figure, datum) = base(crs, &name)?;
    let map = match crs.kind() {
        CrsKind::Geographic => "+proj=longlat".into(),
        CrsKind::Geocentric => "+proj=geocent".into(),
        _ => map(crs).ok_or_else(|| GeodesyError::Unsupported {
            system: name.clone(),
            reason:
                "the parameters of its projection are not understood: encode it with an EPSG code"
                    .into(),
        })??,
    };
    let mut system = System::parse(name, &format!("{map} {figure}"))?;
    if let Some(datum) = datum {
        system.datum = datum;
    }
    Ok(system)
}

/// Ellipsoid, prime meridian and shift as PROJ writes them, and the datum where it is one of EPSG's.
fn base(crs: &Crs, name: &str) -> Result<(String, Option<super::system::Datum>), GeodesyError> {
    let code = |key| {
        crs.short(key)
            .filter(|&code| code != 0 && code != USER_DEFINED)
    };
    if let Some(epsg) = code(GEODETIC_CRS) {
        let base = System::epsg(epsg)?;
        // With the prime meridian that the datum has.
        let definition = definition(epsg).ok_or(GeodesyError::UnknownSystem { epsg })?;
        let is_kept =
            |part: &&str| !part.starts_with("+proj=") && !part.starts_with("+to_degrees=");
        let parts: Vec<&str> = definition.split_whitespace().filter(is_kept).collect();
        return Ok((parts.join(" "), Some(base.datum)));
    }
    let mut parts = Vec::new();
    let mut datum = None;
    #[cfg(feature = "definitions")]
    if let Some(code) = code(GEODETIC_DATUM)
        && let Some(record) = super::table::datum(code)
    {
        parts.push(record.figure.to_owned());
        datum = Some(super::system::Datum::of_code(code, record.figure));
    }
    #[cfg(not(feature = "definitions"))]
    let _ = GEODETIC_DATUM;
    if parts.is_empty() {
        let half_axis = crs
            .double(HALF_AXIS)
            .ok_or_else(|| GeodesyError::Unsupported {
                system: name.to_owned(),
                reason: "its ellipsoid is not stated".into(),
            })?;
        parts.push(
            match (crs.double(INVERSE_FLATTENING), crs.double(POLAR_HALF_AXIS)) {
                (Some(flattening), _) if flattening != 0.0 => {
                    format!("+a={half_axis} +rf={flattening}")
                }
                (None, Some(polar)) => format!("+a={half_axis} +b={polar}"),
                _ => format!("+R={half_axis}"),
            },
        );
    }
    if datum.is_none()
        && let Some(longitude) = crs.double(PRIME_MERIDIAN_LONGITUDE)
        && longitude != 0.0
    {
        parts.push(format!("+pm={}", longitude * degrees(crs)?.unwrap_or(1.0)));
    } else if let Some(code) = code(PRIME_MERIDIAN).filter(|code| *code != 8901)
        && datum.is_none()
    {
        return Err(GeodesyError::Unsupported {
            system: name.to_owned(),
            reason: format!("its prime meridian EPSG:{code} is not understood"),
        });
    }
    let shift = crs.doubles(TO_WGS_84);
    if shift.len() == 3 || shift.len() == 7 {
        let shift: Vec<String> = shift.iter().map(f64::to_string).collect();
        parts.push(format!("+towgs84={}", shift.join(",")));
        datum = None;
    }
    Ok((parts.join(" "), datum))
}

/// A projection as PROJ writes it; `None` where its kind is not known.
fn map(crs: &Crs) -> Option<Result<String, GeodesyError>> {
    if let Some(code @ (16001..=16060 | 16101..=16160)) = crs.short(CONVERSION) {
        let south = if code > 16100 { " +south" } else { "" };
        return Some(Ok(format!("+proj=utm +zone={}{south}", code % 100)));
    }
    let (degrees, metres) = match (degrees(crs), metres(crs)) {
        (Ok(degrees), Ok(metres)) => (degrees.unwrap_or(1.0), metres.unwrap_or(1.0)),
        (Err(error), _) | (_, Err(error)) => return Some(Err(error)),
    };
    let first = |keys: &[u16]| keys.iter().find_map(|key| crs.double(*key));
    let angle = |keys| first(keys).unwrap_or(0.0) * degrees;
    let (latitude, longitude) = (angle(LATITUDE), angle(LONGITUDE));
    let (parallel_1, parallel_2) = (angle(PARALLEL_1), angle(PARALLEL_2));
    let scale = first(SCALE).unwrap_or(1.0);
    let centre = format!("+lat_0={latitude} +lon_0={longitude}");
    let parallels = format!("+lat_1={parallel_1} +lat_2={parallel_2}");
    let oblique = |more: &str| {
        let azimuth = angle(AZIMUTH);
        let rectified = first(RECTIFIED).map_or(azimuth, |angle| angle * degrees);
        format!(
            "+proj=omerc{more} +lat_0={latitude} +lonc={longitude} +alpha={azimuth} +gamma={rectified} +k={scale}"
        )
    };
    let method = match crs.short(METHOD)? {
        1 => format!("+proj=tmerc {centre} +k={scale}"),
        3 => oblique(" +no_uoff"),
        5 => format!("+proj=somerc {centre} +k_0={scale}"),
        7 if first(PARALLEL_1).is_some() => {
            format!("+proj=merc +lon_0={longitude} +lat_ts={parallel_1}")
        }
        7 => format!("+proj=merc +lon_0={longitude} +k={scale}"),
        8 => format!("+proj=lcc {centre} {parallels}"),
        9 => format!("+proj=lcc {centre} +lat_1={latitude} +k_0={scale}"),
        10 => format!("+proj=laea {centre}"),
        11 => format!("+proj=aea {centre} {parallels}"),
        12 => format!("+proj=aeqd {centre}"),
        13 => format!("+proj=eqdc {centre} {parallels}"),
        14 => format!("+proj=stere {centre} +k={scale}"),
        15 => format!(
            "+proj=stere +lat_0={} +lat_ts={latitude} +lon_0={longitude} +k={scale}",
            90_f64.copysign(latitude)
        ),
        16 => format!("+proj=sterea {centre} +k={scale}"),
        17 => format!("+proj=eqc {centre} +lat_ts={parallel_1}"),
        18 => format!("+proj=cass {centre}"),
        20 => format!("+proj=mill {centre}"),
        22 => format!("+proj=poly {centre}"),
        23 => format!("+proj=robin +lon_0={longitude}"),
        24 => format!("+proj=sinu +lon_0={longitude}"),
        27 => format!("+proj=tmerc +axis=wsu {centre} +k={scale}"),
        28 => format!("+proj=cea +lon_0={longitude} +lat_ts={parallel_1}"),
        9815 => oblique(""),
        _ => return None,
    };
    let offset = |keys| first(keys).unwrap_or(0.0) * metres;
    Some(Ok(format!(
        "{method} +x_0={} +y_0={} +to_meter={metres}",
        offset(EASTING),
        offset(NORTHING)
    )))
}

/// Metres in a unit of length of EPSG.
#[expect(clippy::unreadable_literal, reason = "as EPSG writes them")]
fn metres_of(code: u16) -> Option<f64> {
    Some(match code {
        1025 => 0.001,
        1033 => 0.01,
        9001 => 1.0,
        9002 => 0.3048,
        9003 => 1200.0 / 3937.0,
        9005 => 0.3047972654,
        9014 => 1.8288,
        9030 => 1852.0,
        9031 => 1.0000135965,
        9033 => 20.1168402336805,
        9034 => 0.201168402336805,
        9035 => 1609.34721869444,
        9036 => 1000.0,
        9037 => 0.9143917962,
        9038 => 20.1166195164,
        9039 => 0.201166195164,
        9040 => 0.914398414616029,
        9041 => 0.304799471538676,
        9042 => 20.1167651215526,
        9043 => 0.201167651215526,
        9050 => 0.9143992,
        9051 => 0.304799733333333,
        9052 => 20.1167824,
        9053 => 0.201167824,
        9060 => 0.914399204289812,
        9061 => 0.304799734763271,
        9062 => 20.1167824943759,
        9063 => 0.201167824943759,
        9070 => 0.304800833333333,
        9080 => 0.304799510248147,
        9081 => 0.30479841,
        9082 => 0.3047996,
        9083 => 0.3047995,
        9084 => 0.914398530744441,
        9085 => 0.91439523,
        9086 => 0.9143988,
        9087 => 0.9143985,
        9093 => 1609.344,
        9094 => 0.304799710181509,
        9095 => 0.3048007491,
        9096 => 0.9144,
        9097 => 20.1168,
        9098 => 0.201168,
        9099 => 0.914398,
        9300 => 0.304799333333333,
        9301 => 20.116756,
        9302 => 0.20116756,
        _ => return None,
    })
}
