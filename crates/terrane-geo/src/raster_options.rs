//! What the reader of a raster says of it, instead of what the raster says itself.

use std::path::Path;

use crate::{Crs, CrsTextError, Georeference, HeightUnit, Note, Storage, UnitOrigin};

/// How rasters are read: what is given here counts before what their files state. By default they are read as they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RasterOptions {
    /// Which band holds the heights, from 1; a raster of several bands is read only with it.
    pub band: Option<u16>,
    /// The coordinate reference system, horizontal and vertical.
    pub crs: Option<Crs>,
    /// The stored number that means "no data".
    pub nodata: Option<f64>,
    /// The unit of the heights.
    pub vertical_unit: Option<HeightUnit>,
    /// The part to read, in the raster's own coordinates: left, bottom, right, top; every pixel that it touches.
    pub bbox: Option<[f64; 4]>,
}

/// A setting that is none, or a value that it cannot have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RasterOptionError {
    /// There is no such setting.
    #[error("rasters are not read with `{name}`")]
    Unknown {
        /// Its name.
        name: String,
    },
    /// The value is none of the setting's.
    #[error("`{name}` must be {must}, not {value}")]
    Value {
        /// The setting.
        name: &'static str,
        /// What it must be.
        must: &'static str,
        /// What it was.
        value: String,
    },
    /// The coordinate reference system is not understood.
    #[error("`crs` cannot be used")]
    Crs(#[from] CrsTextError),
}

impl RasterOptions {
    /// The names of all settings.
    pub const NAMES: [&'static str; 5] = ["band", "crs", "nodata", "vertical_unit", "bbox"];

    /// Gives a setting its value, both as text: for front ends and files.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), RasterOptionError> {
        let must = |name, must| RasterOptionError::Value {
            name,
            must,
            value: value.to_owned(),
        };
        match name {
            "band" => self.band = Some(parse_band(value).map_err(|text| must("band", text))?),
            "crs" => self.crs = Some(value.parse()?),
            "nodata" => {
                self.nodata = Some(parse_number(value).map_err(|text| must("nodata", text))?);
            }
            "vertical_unit" => {
                let unit = parse_unit(value).map_err(|text| must("vertical_unit", text))?;
                self.vertical_unit = Some(unit);
            }
            "bbox" => self.bbox = Some(parse_bbox(value).map_err(|text| must("bbox", text))?),
            name => return Err(RasterOptionError::Unknown { name: name.into() }),
        }
        Ok(())
    }

    /// The settings that are given, by name and as the text that [`RasterOptions::set`] takes.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, String)> {
        let numbers = |box_: [f64; 4]| box_.map(|number| number.to_string()).join(",");
        let values = [
            self.band.map(|band| band.to_string()),
            self.crs.as_ref().map(ToString::to_string),
            self.nodata.map(|nodata| nodata.to_string()),
            self.vertical_unit.map(|unit| unit.name().to_owned()),
            self.bbox.map(numbers),
        ];
        let named = Self::NAMES.into_iter().zip(values);
        named.filter_map(|(name, value)| Some((name, value?)))
    }
}

impl RasterOptions {
    /// Puts what is given over what a file states, and notes where they differ.
    pub(crate) fn apply(
        &self,
        path: &Path,
        georeference: &mut Georeference,
        storage: &mut Storage,
        notes: &mut Vec<Note>,
    ) {
        let mut note = |what, stated: String, given: String| {
            if stated != given {
                notes.push(Note::Overridden {
                    path: path.to_owned(),
                    what,
                    stated,
                    given,
                });
            }
        };
        if let Some(nodata) = self.nodata {
            if let Some(stated) = storage.nodata {
                note("nodata", stated.to_string(), nodata.to_string());
            }
            storage.nodata = Some(nodata);
        }
        let stated = storage.unit_with_origin(&georeference.crs);
        if let Some(crs) = &self.crs {
            let old = &georeference.crs;
            if !old.is_empty() {
                note("the system", old.to_string(), crs.to_string());
            }
            let crs = crs.clone().of_points(old.pixel_is_point());
            // A unit that the old vertical system states stays that of the heights, as in gdal_translate -a_srs.
            if let Ok((unit, UnitOrigin::VerticalSystem)) = stated
                && unit != HeightUnit::Metre
                && crs.vertical_epsg().is_none()
            {
                unit.name().clone_into(&mut storage.band.unit);
            }
            georeference.crs = crs;
        }
        if let Some(unit) = self.vertical_unit {
            match stated {
                Ok((_, UnitOrigin::Assumed)) => {}
                Ok((stated, _)) => note("heights in", stated.name().into(), unit.name().into()),
                Err(stated) => note("", stated, unit.name().into()),
            }
            unit.name().clone_into(&mut storage.band.unit);
        }
    }
}

/// The number of a band.
pub fn parse_band(text: &str) -> Result<u16, &'static str> {
    let band = text.trim().parse().ok().filter(|&band| band > 0);
    band.ok_or("the number of a band, from 1")
}

/// The value of pixels without data, which may be no number.
pub fn parse_number(text: &str) -> Result<f64, &'static str> {
    text.trim().parse().map_err(|_| "a number, or nan")
}

/// A unit of height by its name.
pub fn parse_unit(text: &str) -> Result<HeightUnit, &'static str> {
    let unit = HeightUnit::from_name(text).filter(|_| !text.trim().is_empty());
    unit.ok_or("m, ft, us-ft or another unit that is known")
}

/// A box from its lower-left and its upper-right corner.
pub fn parse_bbox(text: &str) -> Result<[f64; 4], &'static str> {
    const MUST: &str =
        "four numbers, the lower-left and the upper-right corner: LEFT,BOTTOM,RIGHT,TOP";
    let numbers: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    let numbers = numbers.map_err(|_| MUST)?;
    match <[f64; 4]>::try_from(numbers) {
        Ok([left, bottom, right, top]) if left < right && bottom < top => {
            Ok([left, bottom, right, top])
        }
        _ => Err(MUST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_text_and_come_back() {
        let given = [
            ("band", "2"),
            ("crs", "EPSG:2056+5728"),
            ("nodata", "-9999"),
            ("vertical_unit", "US survey foot"),
            ("bbox", "0,-1.5,10,20"),
        ];
        let mut options = RasterOptions::default();
        assert_eq!(options.settings().count(), 0);
        for (name, value) in given {
            options.set(name, value).unwrap();
        }
        let found: Vec<_> = options.settings().collect();
        assert_eq!(found, given.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(options.bbox, Some([0.0, -1.5, 10.0, 20.0]));
        assert_eq!(options.vertical_unit, Some(HeightUnit::UsSurveyFoot));
        options.set("nodata", "nan").unwrap();
        assert!(options.nodata.is_some_and(f64::is_nan));
    }

    #[test]
    fn nonsense_is_refused_with_what_would_be_right() {
        for (name, value) in [
            ("band", "0"),
            ("band", "one"),
            ("nodata", "none"),
            ("vertical_unit", "fathom"),
            ("vertical_unit", ""),
            ("bbox", "1,2,3"),
            ("bbox", "10,0,5,5"),
            ("bbox", "0,0,nan,5"),
            ("crs", "Switzerland"),
            ("colour", "red"),
        ] {
            let error = RasterOptions::default().set(name, value).unwrap_err();
            assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
        }
    }
}
