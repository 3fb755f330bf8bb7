//! The coordinate reference system of a raster, kept as data and never interpreted further than it states itself.

use std::ops::RangeInclusive;

use geotiff_core::geokeys::{
    GEODETIC_CRS_TYPE, GEOG_ANGULAR_UNITS, GT_CITATION, GT_MODEL_TYPE, GT_RASTER_TYPE,
    GeoKeyDirectory, GeoKeyValue, PROJ_LINEAR_UNITS, PROJECTED_CRS_TYPE, VERTICAL_CS_TYPE,
    VERTICAL_UNITS,
};

/// The code that means "defined by other keys" in a `GeoKey`.
const USER_DEFINED: u16 = 32767;

/// The keys that describe a vertical system: its code, its citation, its datum and its unit.
const VERTICAL_KEYS: RangeInclusive<u16> = VERTICAL_CS_TYPE..=VERTICAL_UNITS;

/// What the horizontal coordinates are, as the file states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrsKind {
    /// Eastings and northings.
    Projected,
    /// Longitudes and latitudes.
    Geographic,
    /// Earth-centred coordinates.
    Geocentric,
    /// Nothing is stated, or something unknown.
    Unknown,
}

/// A coordinate reference system: the three `GeoTIFF` key arrays, verbatim.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Crs {
    /// The key directory (TIFF tag 34735).
    pub directory: Vec<u16>,
    /// The floating-point parameters (tag 34736).
    pub doubles: Vec<f64>,
    /// The text parameters (tag 34737).
    pub text: String,
}

impl Crs {
    /// A projected system by its EPSG code, with an optional vertical one.
    pub fn projected(epsg: u16, vertical_epsg: Option<u16>) -> Self {
        Self::from_epsg(1, PROJECTED_CRS_TYPE, epsg, vertical_epsg)
    }

    /// A geographic system by its EPSG code, with an optional vertical one.
    pub fn geographic(epsg: u16, vertical_epsg: Option<u16>) -> Self {
        Self::from_epsg(2, GEODETIC_CRS_TYPE, epsg, vertical_epsg)
    }

    // The kind is an argument everywhere: EPSG ranges do not tell it (4647 is projected, 7844 geographic).
    fn from_epsg(model: u16, key: u16, epsg: u16, vertical_epsg: Option<u16>) -> Self {
        let mut entries = vec![
            [GT_MODEL_TYPE, 0, 1, model],
            [GT_RASTER_TYPE, 0, 1, 1],
            [key, 0, 1, epsg],
        ];
        entries.extend(vertical_epsg.map(|code| [VERTICAL_CS_TYPE, 0, 1, code]));
        let mut directory = vec![1, 1, 1, entries.len() as u16];
        directory.extend(entries.into_iter().flatten());
        Self {
            directory,
            doubles: Vec::new(),
            text: String::new(),
        }
    }

    /// The system without its vertical part.
    #[must_use]
    pub fn horizontal(&self) -> Self {
        let mut horizontal = self.clone();
        let Some((head, keys)) = self.directory.split_at_checked(4) else {
            return horizontal;
        };
        let keys = keys
            .chunks(4)
            .filter(|key| !VERTICAL_KEYS.contains(&key[0]));
        horizontal.directory = head.iter().chain(keys.flatten()).copied().collect();
        horizontal.directory[3] = (horizontal.directory.len() / 4 - 1) as u16;
        horizontal
    }

    /// Whether the file states no system at all.
    pub fn is_empty(&self) -> bool {
        self.directory.is_empty()
    }

    fn keys(&self) -> Option<GeoKeyDirectory> {
        GeoKeyDirectory::parse(&self.directory, &self.doubles, &self.text)
    }

    pub(crate) fn short(&self, key: u16) -> Option<u16> {
        self.keys()?.get_short(key)
    }

    /// The numbers of a key.
    pub(crate) fn doubles(&self, key: u16) -> Vec<f64> {
        let keys = self.keys();
        let numbers = keys.as_ref().and_then(|keys| keys.get_double(key));
        numbers.map(<[f64]>::to_vec).unwrap_or_default()
    }

    /// The first number of a key.
    pub(crate) fn double(&self, key: u16) -> Option<f64> {
        self.doubles(key)
            .first()
            .copied()
            .filter(|number| number.is_finite())
    }

    fn code(&self, key: u16) -> Option<u16> {
        self.short(key)
            .filter(|&code| code != 0 && code != USER_DEFINED)
    }

    /// What the horizontal coordinates are.
    pub fn kind(&self) -> CrsKind {
        match self.short(GT_MODEL_TYPE) {
            Some(1) => CrsKind::Projected,
            Some(2) => CrsKind::Geographic,
            Some(3) => CrsKind::Geocentric,
            _ => CrsKind::Unknown,
        }
    }

    /// The EPSG code of the horizontal system, where it has one.
    pub fn horizontal_epsg(&self) -> Option<u16> {
        match self.kind() {
            CrsKind::Projected => self.code(PROJECTED_CRS_TYPE),
            CrsKind::Geographic | CrsKind::Geocentric => self.code(GEODETIC_CRS_TYPE),
            CrsKind::Unknown => None,
        }
    }

    /// The EPSG code of the longitudes and latitudes that the horizontal system is made of, where it is stated.
    pub fn geodetic_epsg(&self) -> Option<u16> {
        self.code(GEODETIC_CRS_TYPE)
    }

    /// The EPSG code of the vertical system, where one is stated.
    pub fn vertical_epsg(&self) -> Option<u16> {
        self.code(VERTICAL_CS_TYPE)
    }

    /// Whether a vertical system is stated, with a code or without.
    pub(crate) fn has_vertical_system(&self) -> bool {
        self.short(VERTICAL_CS_TYPE).is_some_and(|code| code != 0)
    }

    /// Whether a key says that other keys define what it stands for.
    pub(crate) fn is_user_defined(&self, key: u16) -> bool {
        self.short(key) == Some(USER_DEFINED)
    }

    /// The EPSG code of the unit of heights, where one is stated.
    pub fn vertical_unit_code(&self) -> Option<u16> {
        self.code(VERTICAL_UNITS)
    }

    /// The EPSG code of the unit of eastings and northings, where one is stated.
    pub fn linear_unit_code(&self) -> Option<u16> {
        self.code(PROJ_LINEAR_UNITS)
    }

    /// Whether heights and coordinates refer to pixel centres (`PixelIsPoint`) rather than to pixel areas.
    pub fn pixel_is_point(&self) -> bool {
        self.short(GT_RASTER_TYPE) == Some(2)
    }

    /// The same system of pixels that are points, or that are areas.
    #[must_use]
    pub(crate) fn of_points(mut self, is_point: bool) -> Self {
        let keys = self.directory.get_mut(4..).unwrap_or_default();
        if let Some(key) = keys
            .chunks_exact_mut(4)
            .find(|key| key[0] == GT_RASTER_TYPE)
        {
            key[3] = if is_point { 2 } else { 1 };
        }
        self
    }

    /// The EPSG code of the unit of longitudes and latitudes, where one is stated.
    pub fn angular_unit_code(&self) -> Option<u16> {
        self.code(GEOG_ANGULAR_UNITS)
    }

    /// The name the file gives its system.
    pub fn citation(&self) -> Option<String> {
        match &self.keys()?.get(GT_CITATION)?.value {
            GeoKeyValue::Ascii(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl std::fmt::Display for Crs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.horizontal_epsg(), self.vertical_epsg()) {
            (Some(horizontal), Some(vertical)) => write!(formatter, "EPSG:{horizontal}+{vertical}"),
            (Some(horizontal), None) => write!(formatter, "EPSG:{horizontal}"),
            _ if self.is_empty() => write!(formatter, "not stated"),
            _ => match self.citation() {
                Some(citation) => write!(formatter, "{citation} (no EPSG code)"),
                None => write!(formatter, "custom (no EPSG code)"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_what_was_said_not_what_the_number_suggests() {
        assert_eq!(Crs::projected(4647, None).kind(), CrsKind::Projected);
        assert_eq!(Crs::geographic(7844, None).kind(), CrsKind::Geographic);
        assert_eq!(Crs::projected(4647, None).horizontal_epsg(), Some(4647));
    }

    #[test]
    fn a_compound_system_names_both_parts() {
        let crs = Crs::projected(2056, Some(5728));
        assert_eq!(crs.to_string(), "EPSG:2056+5728");
        assert_eq!(Crs::default().to_string(), "not stated");
        assert_eq!(Crs::default().kind(), CrsKind::Unknown);
    }

    #[test]
    fn a_system_can_do_without_its_vertical_part() {
        let crs = Crs::projected(2056, Some(5728));
        assert_eq!(crs.horizontal(), Crs::projected(2056, None));
        assert_eq!(
            Crs::projected(2056, None).horizontal(),
            Crs::projected(2056, None)
        );
        assert_eq!(Crs::default().horizontal(), Crs::default());
        let mut stated = Crs::projected(2264, Some(6360));
        stated.directory.extend([VERTICAL_UNITS, 0, 1, 9003]);
        stated.directory[3] += 1;
        assert_eq!(stated.vertical_unit_code(), Some(9003));
        assert_eq!(stated.horizontal(), Crs::projected(2264, None));
    }

    #[test]
    fn a_damaged_directory_is_an_unknown_system() {
        let crs = Crs {
            directory: vec![1, 1],
            doubles: vec![],
            text: String::new(),
        };
        assert_eq!(
            (crs.kind(), crs.horizontal_epsg()),
            (CrsKind::Unknown, None)
        );
    }
}
