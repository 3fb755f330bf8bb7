//! A coordinate reference system from text: `EPSG:2056`, `EPSG:2056+5728`, or well-known text (WKT 1 and 2) whose parts have
//! EPSG codes.
//!
//! What is kept of a system is `GeoTIFF`'s keys, which name it by its code; the parameters of a text that has none would have
//! to be translated, which a library such as PROJ does.

use std::str::FromStr;

use crate::Crs;
use crate::geodesy::is_geographic;

/// A text is no longer than this: what hostile files hold.
const MAX_BYTES: usize = 1 << 20;
/// Brackets in brackets; the deepest system there is takes ten.
const MAX_DEPTH: usize = 64;

/// A text that is no coordinate reference system, or none that is understood here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CrsTextError {
    /// It is neither a code nor well-known text.
    #[error(
        "a coordinate reference system is a code such as EPSG:2056 or EPSG:2056+5728, or well-known text, and not {text:?}"
    )]
    NotACrs {
        /// Its beginning.
        text: String,
    },
    /// The code is not in the program's database.
    #[error("EPSG:{epsg} is no horizontal coordinate reference system that is known here")]
    UnknownCode {
        /// The code.
        epsg: u16,
    },
    /// A part of the system has no EPSG code.
    #[error("the coordinate reference system {name} has no EPSG code")]
    NoCode {
        /// The name of that part.
        name: String,
    },
    /// Coordinates are stored in another order than x and y, or longitude and latitude.
    #[error("the coordinates of {name} are stored in an order ({mapping}) that is not read here")]
    AxisOrder {
        /// The name of the system.
        name: String,
        /// The order, as GDAL writes it.
        mapping: String,
    },
}

impl FromStr for Crs {
    type Err = CrsTextError;

    fn from_str(text: &str) -> Result<Self, CrsTextError> {
        crs(text, None)
    }
}

/// The system that a text states whose data axes belong to the system's axes as `mapping` says, such as `2,1`; without it
/// coordinates are x and y, longitude and latitude.
pub(crate) fn crs(text: &str, mapping: Option<&str>) -> Result<Crs, CrsTextError> {
    let not_a_crs = || CrsTextError::NotACrs {
        text: beginning(text),
    };
    let text = text.trim();
    if let Some(codes) = strip_epsg(text) {
        if let Some(mapping) = mapping {
            // Its own order of axes is in EPSG's database alone.
            return Err(CrsTextError::AxisOrder {
                name: text.to_owned(),
                mapping: mapping.to_owned(),
            });
        }
        let (horizontal, vertical) = match codes.split_once('+') {
            None => (codes, None),
            Some((horizontal, vertical)) => (horizontal, Some(vertical)),
        };
        let code = |text: &str| text.parse().map_err(|_| not_a_crs());
        return of_codes(code(horizontal)?, vertical.map(code).transpose()?);
    }
    if text.len() > MAX_BYTES {
        return Err(not_a_crs());
    }
    let node = Node::parse(text).ok_or_else(not_a_crs)?;
    let vertical_code = |node: &Node| node.epsg().ok_or_else(|| node.no_code());
    let (horizontal, vertical) = if node.is(&["COMPD_CS", "COMPOUNDCRS"]) {
        let part = |words: &[&str]| node.nodes.iter().find(|node| node.is(words));
        let horizontal = part(HORIZONTAL).ok_or_else(not_a_crs)?;
        let vertical = part(&["VERT_CS", "VERTCRS", "VERTICALCRS"]).ok_or_else(not_a_crs)?;
        (horizontal, Some(vertical_code(vertical)?))
    } else {
        (&node, None)
    };
    if !horizontal.is(HORIZONTAL) {
        return Err(not_a_crs());
    }
    let epsg = horizontal.epsg().ok_or_else(|| horizontal.no_code())?;
    if let Some(mapping) = mapping
        && !horizontal.is_in_order(mapping)
    {
        return Err(CrsTextError::AxisOrder {
            name: horizontal.name.clone(),
            mapping: mapping.to_owned(),
        });
    }
    Ok(if horizontal.is(GEOGRAPHIC) {
        Crs::geographic(epsg, vertical)
    } else {
        Crs::projected(epsg, vertical)
    })
}

/// The name of a system and of the unit of its coordinates, from well-known text.
#[cfg(feature = "definitions")]
pub(crate) fn name_and_unit(text: &str) -> Option<(String, String)> {
    let node = Node::parse(text)?;
    let unit = node.nodes.iter().find(|node| node.is(&["UNIT"]))?;
    Some((node.name.clone(), unit.name.clone()))
}

fn strip_epsg(text: &str) -> Option<&str> {
    let (authority, codes) = text.split_once(':')?;
    authority.eq_ignore_ascii_case("EPSG").then_some(codes)
}

fn of_codes(epsg: u16, vertical: Option<u16>) -> Result<Crs, CrsTextError> {
    match is_geographic(epsg) {
        Some(true) => Ok(Crs::geographic(epsg, vertical)),
        Some(false) => Ok(Crs::projected(epsg, vertical)),
        None => Err(CrsTextError::UnknownCode { epsg }),
    }
}

/// What a text begins with, for a message.
fn beginning(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = text.trim().chars().take(SHOWN).collect();
    if shown.len() < text.trim().len() {
        shown.push('…');
    }
    shown
}

const GEOGRAPHIC: &[&str] = &["GEOGCS", "GEOGCRS", "GEOGRAPHICCRS"];
const HORIZONTAL: &[&str] = &[
    "PROJCS",
    "PROJCRS",
    "PROJECTEDCRS",
    "GEOGCS",
    "GEOGCRS",
    "GEOGRAPHICCRS",
];

/// A keyword of well-known text with what stands in its brackets.
#[derive(Debug, Default)]
struct Node {
    keyword: String,
    /// The first text in quotes.
    name: String,
    /// Everything else that is no node: numbers, words and further texts.
    values: Vec<String>,
    nodes: Vec<Node>,
}

impl Node {
    fn parse(text: &str) -> Option<Self> {
        let mut parser = Parser { rest: text };
        let node = parser.node(0)?;
        parser.rest.trim().is_empty().then_some(node)
    }

    fn is(&self, keywords: &[&str]) -> bool {
        let is = |keyword: &&str| self.keyword.eq_ignore_ascii_case(keyword);
        keywords.iter().any(is)
    }

    /// The code that `AUTHORITY["EPSG","2056"]` or `ID["EPSG",2056]` states.
    fn epsg(&self) -> Option<u16> {
        let id = self
            .nodes
            .iter()
            .find(|node| node.is(&["AUTHORITY", "ID"]))?;
        if !id.name.eq_ignore_ascii_case("EPSG") {
            return None;
        }
        id.values.first()?.parse().ok()
    }

    fn no_code(&self) -> CrsTextError {
        let name = beginning(&self.name);
        CrsTextError::NoCode { name }
    }

    /// Whether data whose axes belong to the system's as `mapping` says have x or longitude first.
    fn is_in_order(&self, mapping: &str) -> bool {
        let axis = self.nodes.iter().find(|node| node.is(&["AXIS"]));
        let is_north_first = axis.is_some_and(|axis| {
            let is_northing = axis.name.to_ascii_lowercase().starts_with("northing");
            let is_north = |value: &String| value.eq_ignore_ascii_case("north");
            is_northing || (axis.values.iter().any(is_north) && !axis.is_easting())
        });
        let mut numbers = mapping.split(',').map(str::trim);
        let expected = if is_north_first {
            ["2", "1"]
        } else {
            ["1", "2"]
        };
        expected.map(Some) == [numbers.next(), numbers.next()]
    }

    /// In polar systems both axes point north, or both south.
    fn is_easting(&self) -> bool {
        self.name.to_ascii_lowercase().starts_with("easting")
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn take(&mut self, characters: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let first = self
            .rest
            .chars()
            .next()
            .filter(|c| characters.contains(c))?;
        self.rest = &self.rest[first.len_utf8()..];
        Some(first)
    }

    /// A word or a number: up to the next character that ends one.
    fn word(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        let end = |c: char| ",[](){}\"".contains(c) || c.is_whitespace();
        let length = self.rest.find(end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        (!word.is_empty()).then(|| word.to_owned())
    }

    /// A text in quotes, of which two are one.
    fn quoted(&mut self) -> Option<String> {
        self.take(&['"'])?;
        let mut text = String::new();
        loop {
            let (part, rest) = self.rest.split_once('"')?;
            text.push_str(part);
            self.rest = rest;
            match self.rest.strip_prefix('"') {
                Some(rest) => {
                    text.push('"');
                    self.rest = rest;
                }
                None => return Some(text),
            }
        }
    }

    fn node(&mut self, depth: usize) -> Option<Node> {
        let keyword = self.word()?;
        self.brackets(keyword, depth)
    }

    fn brackets(&mut self, keyword: String, depth: usize) -> Option<Node> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.take(&['[', '('])?;
        let mut node = Node {
            keyword,
            ..Node::default()
        };
        let mut is_named = false;
        loop {
            if self.rest.trim_start().starts_with('"') {
                let text = self.quoted()?;
                if is_named {
                    node.values.push(text);
                } else {
                    (node.name, is_named) = (text, true);
                }
            } else {
                let word = self.word()?;
                if self.rest.trim_start().starts_with(['[', '(']) {
                    node.nodes.push(self.brackets(word, depth + 1)?);
                } else {
                    node.values.push(word);
                }
            }
            match self.take(&[',', ']', ')'])? {
                ',' => {}
                _ => return Some(node),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LV95: &str = r#"PROJCS["CH1903+ / LV95",GEOGCS["CH1903+",UNIT["degree",0.0174,AUTHORITY["EPSG","9122"]],AUTHORITY["EPSG","4150"]],UNIT["metre",1],AXIS["Easting",EAST],AXIS["Northing",NORTH],AUTHORITY["EPSG","2056"]]"#;
    const LN02: &str = r#"VERT_CS["LN02 height",UNIT["metre",1],AXIS["Gravity-related height",UP],AUTHORITY["EPSG","5728"]]"#;
    const WGS84: &str = r#"GEOGCS["WGS 84",AXIS["Latitude",NORTH],AXIS["Longitude",EAST],AUTHORITY["EPSG","4326"]]"#;
    const WGS84_2: &str = r#"GEOGCRS["WGS 84",DATUM["World ""Geodetic"" System"],CS[ellipsoidal,2],AXIS["geodetic latitude (Lat)",north,ORDER[1]],AXIS["geodetic longitude (Lon)",east,ORDER[2]],USAGE[SCOPE["x"],BBOX[-90,-180,90,180]],ID["EPSG",4326]]"#;
    const POLAR: &str =
        r#"PROJCS["NSIDC",AXIS["Easting",SOUTH],AXIS["Northing",SOUTH],AUTHORITY["EPSG","3413"]]"#;
    const ANTARCTIC: &str =
        r#"PROJCS["Polar",AXIS["Easting",NORTH],AXIS["Northing",NORTH],AUTHORITY["EPSG","3031"]]"#;
    const NZTM: &str =
        r#"PROJCS["NZTM",AXIS["Northing",NORTH],AXIS["Easting",EAST],AUTHORITY["EPSG","2193"]]"#;

    #[test]
    fn codes_and_texts_are_the_same_systems() {
        let compound = format!(r#"COMPD_CS["both",{LV95},{LN02},AUTHORITY["EPSG","1"]]"#);
        for (text, expected) in [
            ("EPSG:2056", Crs::projected(2056, None)),
            (" epsg:2056+5728 ", Crs::projected(2056, Some(5728))),
            ("EPSG:4326", Crs::geographic(4326, None)),
            (LV95, Crs::projected(2056, None)),
            (&compound, Crs::projected(2056, Some(5728))),
            (WGS84, Crs::geographic(4326, None)),
            (WGS84_2, Crs::geographic(4326, None)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let no_code = LV95.replace("EPSG\",\"2056", "ESRI\",\"102");
        let no_height_code = format!(r#"COMPD_CS["both",{LV95},VERT_CS["mine"]]"#);
        let no_end = &LV95[..LV95.len() - 1];
        let two = format!("{LV95},{LN02}");
        let deep = "A[".repeat(100_000);
        for text in [
            "",
            "EPSG:",
            "EPSG:x",
            "EPSG:70000",
            "EPSG:1",
            "2056",
            "+proj=utm +zone=32",
            LN02,
            &no_code,
            &no_height_code,
            no_end,
            &two,
            &deep,
            "PROJCS",
            "PROJCS[]",
            "PROJCS[\"",
            "PROJCS[\"é",
        ] {
            assert!(text.parse::<Crs>().is_err(), "{text}");
        }
        // Whatever is cut off or wrong: an error, no panic.
        for length in 0..WGS84_2.len() {
            let _ = WGS84_2[..length].parse::<Crs>();
            let _ = format!("{}é{}", &WGS84_2[..length], &WGS84_2[length..]).parse::<Crs>();
        }
    }

    #[test]
    fn axes_belong_to_coordinates_as_gdal_writes_it() {
        for (text, mapping) in [
            (LV95, "1,2"),
            (WGS84, "2,1"),
            (WGS84_2, "2, 1,3"),
            (POLAR, "1,2"),
            (ANTARCTIC, "1,2"),
            (NZTM, "2,1"),
        ] {
            assert!(crs(text, Some(mapping)).is_ok(), "{text}");
            let other = if mapping == "1,2" { "2,1" } else { "1,2" };
            for other in [other, "", "-1,2", "1"] {
                let found = crs(text, Some(other));
                assert!(
                    matches!(found, Err(CrsTextError::AxisOrder { .. })),
                    "{text} {other}"
                );
            }
        }
    }
}
