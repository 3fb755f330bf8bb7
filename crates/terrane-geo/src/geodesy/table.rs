//! The coordinate systems of the EPSG dataset, and the shifts of their datums to WGS 84.
//!
//! `systems/make.py` writes the text that is read here from PROJ's database. First come datums, each with its ellipsoid,
//! its prime meridian and its shifts; then systems, sorted by their codes:
//!
//! ```text
//! datum 6312 +ellps=bessel
//! shift WEST SOUTH EAST NORTH ACCURACY HELMERT,… or GRID|OLD NAME
//! 31287 6312 LONGITUDE,LATITUDE +proj=lcc …
//! ```

/// The text; nothing where a program is built without it.
#[cfg(feature = "definitions")]
const TEXT: &str = include_str!("../../systems/systems.txt");
#[cfg(not(feature = "definitions"))]
const TEXT: &str = "";

/// A coordinate system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Record {
    /// The code of its datum.
    pub(super) datum: u16,
    /// Longitude and latitude of the middle of the area that it is meant for.
    pub(super) middle: (f64, f64),
    /// Its projection, without its datum.
    pub(super) map: &'static str,
}

/// A datum: its ellipsoid and its prime meridian, and the lines of its shifts.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatumRecord {
    /// As PROJ writes them.
    pub(super) figure: &'static str,
    shifts: &'static str,
}

/// A shift from a datum to WGS 84.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ShiftRecord {
    /// West, south, east and north of the area that it is published for; east is less than west across 180°.
    pub(super) area: [f64; 4],
    /// Metres that it may be off.
    pub(super) accuracy_m: f64,
    /// Three or seven parameters, or names of a grid.
    pub(super) parameters: &'static str,
}

impl ShiftRecord {
    /// Whether it is a grid.
    pub(super) fn is_grid(&self) -> bool {
        self.parameters
            .starts_with(|letter: char| letter.is_ascii_alphabetic())
    }

    /// The names that its grid has, the present one first; nothing where it is none.
    pub(super) fn grids(&self) -> impl Iterator<Item = &'static str> + use<> {
        let names = if self.is_grid() { self.parameters } else { "" };
        names.split('|').filter(|name| !name.is_empty())
    }

    /// Degrees squared of its area.
    pub(super) fn extent(&self) -> f64 {
        let [west, south, east, north] = self.area;
        (east - west).rem_euclid(360.0) * (north - south)
    }

    /// How many degrees a point is outside its area; 0 inside.
    pub(super) fn distance(&self, (longitude, latitude): (f64, f64)) -> f64 {
        let [west, south, east, north] = self.area;
        let is_around = east - west >= 360.0;
        let width = (east - west).rem_euclid(360.0);
        let across = (longitude - west).rem_euclid(360.0);
        let beside = if is_around || across <= width {
            0.0
        } else {
            (across - width).min(360.0 - across)
        };
        let above = (south - latitude).max(latitude - north).max(0.0);
        beside.hypot(above)
    }
}

/// A system by its code.
pub(super) fn system(code: u16) -> Option<Record> {
    let (mut low, mut high) = (0, TEXT.len());
    while low < high {
        let middle = low.midpoint(high);
        let start = TEXT[..middle].rfind('\n').map_or(0, |end| end + 1);
        let end = TEXT[middle..]
            .find('\n')
            .map_or(TEXT.len(), |end| middle + end);
        let line = &TEXT[start..end];
        let key = line.split(' ').next().and_then(|key| key.parse().ok());
        // Datums and remarks, which have no number first, come before all systems.
        match key.unwrap_or(0_u16).cmp(&code) {
            std::cmp::Ordering::Less => low = end + 1,
            std::cmp::Ordering::Greater => high = start,
            std::cmp::Ordering::Equal => return record(line),
        }
    }
    None
}

fn record(line: &'static str) -> Option<Record> {
    let mut fields = line.splitn(4, ' ').skip(1);
    let datum = fields.next()?.parse().ok()?;
    let (longitude, latitude) = fields.next()?.split_once(',')?;
    Some(Record {
        datum,
        middle: (longitude.parse().ok()?, latitude.parse().ok()?),
        map: fields.next()?,
    })
}

/// A datum by its code.
pub(super) fn datum(code: u16) -> Option<DatumRecord> {
    let start = format!("\ndatum {code} ");
    let (_, rest) = TEXT.split_once(&start)?;
    let (figure, rest) = rest.split_once('\n')?;
    let end = rest
        .lines()
        .take_while(|line| line.starts_with("shift "))
        .map(|line| line.len() + 1)
        .sum();
    Some(DatumRecord {
        figure,
        shifts: &rest[..end],
    })
}

impl DatumRecord {
    /// Its shifts to WGS 84.
    pub(super) fn shifts(&self) -> impl Iterator<Item = ShiftRecord> {
        self.shifts.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let mut number = || fields.next()?.parse().ok();
            Some(ShiftRecord {
                area: [number()?, number()?, number()?, number()?],
                accuracy_m: number()?,
                parameters: fields.next()?,
            })
        })
    }
}

#[cfg(all(test, feature = "definitions"))]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_and_found_by_its_code() {
        let (mut systems, mut shifts) = (0, 0);
        for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split(' ');
            let (first, second) = (fields.next().unwrap(), fields.next().unwrap());
            match first {
                "datum" => {
                    let datum = datum(second.parse().unwrap()).unwrap();
                    assert!(datum.figure.starts_with('+'), "{line}");
                    shifts += datum.shifts().count();
                }
                "shift" => shifts -= 1,
                _ => {
                    let found = system(first.parse().unwrap()).unwrap();
                    assert!(found.map.starts_with("+proj=") && line.ends_with(found.map));
                    assert!(datum(found.datum).is_some(), "{line}");
                    systems += 1;
                }
            }
        }
        assert_eq!(shifts, 0);
        assert!(systems > 6000, "{systems}");
        assert_eq!((system(0), system(1), system(65_535)), (None, None, None));
    }

    #[test]
    fn an_area_reaches_across_180_degrees() {
        let shift = |area| ShiftRecord {
            area,
            accuracy_m: 1.0,
            parameters: "0,0,0",
        };
        let fiji = shift([176.8, -20.8, -178.1, -12.4]);
        assert_eq!(fiji.distance((179.9, -17.0)), 0.0);
        assert_eq!(fiji.distance((-179.0, -17.0)), 0.0);
        assert_eq!(fiji.distance((181.0, -17.0)), 0.0);
        assert!((fiji.distance((-177.1, -17.0)) - 1.0).abs() < 1e-9);
        assert!((fiji.extent() - 5.1 * 8.4).abs() < 1e-9);
        assert_eq!(
            shift([-180.0, -90.0, 180.0, 90.0]).distance((7.0, 46.0)),
            0.0
        );
    }
}
