//! The name of a coordinate reference system, and the unit of its coordinates.

use geotiff_core::geokeys::{GEOG_ANGULAR_UNITS, PROJ_LINEAR_UNITS};

use crate::geodesy::System;
use crate::{Crs, CrsKind, HeightUnit};

const DEGREE: &str = "degree";
const OWN: &str = "a unit of their own";

impl Crs {
    /// The name of the horizontal system: EPSG's, where the program knows it, else the one that the file gives.
    pub fn name(&self) -> Option<String> {
        let known = self.horizontal_epsg().and_then(known);
        let known = known.map(|(name, _)| name);
        let name = known.or_else(|| {
            self.citation()
                .map(|text| text.trim_matches('|').to_owned())
        });
        name.filter(|name| !name.is_empty())
    }

    /// The unit of the horizontal coordinates by its name; empty where there is no system.
    pub fn coordinate_unit(&self) -> String {
        let epsg = self.horizontal_epsg();
        match self.kind() {
            CrsKind::Geographic => match (self.angular_unit_code(), epsg.and_then(known)) {
                (Some(9101), _) => "radian".into(),
                (Some(9102 | 9122), _) => DEGREE.into(),
                (Some(9105), _) => "grad".into(),
                (Some(code), _) => format!("EPSG:{code}"),
                (None, Some((_, unit))) => unit,
                (None, None) if self.is_user_defined(GEOG_ANGULAR_UNITS) => OWN.into(),
                (None, None) => DEGREE.into(),
            },
            CrsKind::Projected | CrsKind::Geocentric => {
                if self.is_user_defined(PROJ_LINEAR_UNITS) {
                    return OWN.into();
                }
                let stated = self.linear_unit_code().map(|code| {
                    let unit = HeightUnit::from_epsg_unit(code);
                    unit.map_or(format!("EPSG:{code}"), |unit| unit.name().into())
                });
                stated
                    .or_else(|| {
                        System::epsg(epsg?)
                            .ok()
                            .map(|system| name_of(system.unit_m()))
                    })
                    .unwrap_or_else(|| HeightUnit::Metre.name().into())
            }
            CrsKind::Unknown => String::new(),
        }
    }

    /// Whether the coordinates are lengths in another unit than metres.
    pub(crate) fn is_in_other_units(&self) -> bool {
        self.kind() == CrsKind::Projected && self.coordinate_unit() != HeightUnit::Metre.name()
    }
}

/// The name of a unit of so many metres.
fn name_of(metres: f64) -> String {
    const NEAR: f64 = 1e-9;
    let is_it = |unit: &HeightUnit| (unit.metres() - metres).abs() < NEAR;
    let unit = HeightUnit::ALL.into_iter().find(is_it);
    unit.map_or(format!("{metres} m"), |unit| unit.name().into())
}

/// EPSG's name of a system and of the unit of its coordinates.
#[cfg(feature = "definitions")]
fn known(epsg: u16) -> Option<(String, String)> {
    let text = crs_definitions::from_code(epsg)?.wkt;
    crate::crs_text::name_and_unit(text)
}

#[cfg(not(feature = "definitions"))]
fn known(_: u16) -> Option<(String, String)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_have_names_and_units() {
        for (crs, name, unit) in [
            (Crs::projected(2056, Some(5728)), "CH1903+ / LV95", "m"),
            (
                Crs::projected(2263, None),
                "NAD83 / New York Long Island (ftUS)",
                "US survey foot",
            ),
            (Crs::geographic(4326, None), "WGS 84", "degree"),
            (Crs::geographic(4807, None), "NTF (Paris)", "grad"),
        ] {
            assert_eq!(crs.name().as_deref(), Some(name));
            assert_eq!(crs.coordinate_unit(), unit);
            assert_eq!(crs.is_in_other_units(), unit == "US survey foot");
        }
        let none = Crs::default();
        assert_eq!((none.name(), none.coordinate_unit()), (None, String::new()));
    }

    #[test]
    fn a_unit_that_the_file_states_counts() {
        let mut crs = Crs::projected(2263, None);
        crs.directory.extend([PROJ_LINEAR_UNITS, 0, 1, 9001]);
        crs.directory[3] += 1;
        assert_eq!(crs.coordinate_unit(), "m");
        let last = crs.directory.len() - 1;
        crs.directory[last] = 32767;
        assert_eq!(crs.coordinate_unit(), OWN);
        assert!(crs.is_in_other_units());
    }
}
