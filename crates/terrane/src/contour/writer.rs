//! Contour lines as a file of lines.

use std::path::Path;

use serde::Serialize;
use terrane_codec::Terrain;
use terrane_geo::geodesy::WGS_84;
use terrane_geo::{AtomicFile, CrsKind, Output, Projection, System};

use super::flat_geobuf::FlatGeobuf;
use super::geo_json::GeoJson;
use super::{ContourLine, Contouring};
use crate::georeferencing::{georeference, size};
use crate::{Error, Result};

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFormat {
    /// GeoJSON, RFC 7946.
    GeoJson,
    /// A GeoJSON feature on every line.
    GeoJsonLines,
    /// FlatGeobuf with its index.
    FlatGeobuf,
}

impl LineFormat {
    /// The format that the ending of a name says.
    pub fn of(path: &Path) -> Result<Self> {
        let ending = path.extension().and_then(|ending| ending.to_str());
        match ending.map(str::to_ascii_lowercase).as_deref() {
            Some("geojson") => Ok(Self::GeoJson),
            Some("geojsonl") => Ok(Self::GeoJsonLines),
            Some("fgb") => Ok(Self::FlatGeobuf),
            _ => Err(Error::LineFormat {
                path: path.to_owned(),
            }),
        }
    }

    /// The system that files of this format are in unless another is asked for: GeoJSON must be in longitudes and
    /// latitudes.
    pub fn usual_crs(self) -> LineCrs {
        match self {
            Self::GeoJson | Self::GeoJsonLines => LineCrs::Epsg(WGS_84),
            Self::FlatGeobuf => LineCrs::Own,
        }
    }
}

/// The coordinate system of written lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineCrs {
    /// That of the file.
    Own,
    /// That of an EPSG code.
    Epsg(u16),
}

/// Lines that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ContourReport {
    /// All lines.
    pub lines: u64,
    /// Those that are closed.
    pub closed: u64,
    /// Points of all lines.
    pub points: u64,
}

enum Writer {
    GeoJson(GeoJson),
    FlatGeobuf(Box<FlatGeobuf>),
}

impl Contouring {
    /// Writes the lines as the ending of the name says, in its usual system or another; `progress` is told rows done and
    /// rows in all, and may stop it.
    pub fn write(
        &self,
        terrain: &Terrain,
        out: &Output,
        crs: Option<LineCrs>,
        jobs: usize,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<ContourReport> {
        out.check()?;
        let format = LineFormat::of(out.path())?;
        let own = georeference(terrain.header());
        let own_code = own.crs.horizontal_epsg();
        let (projection, code) = match crs.unwrap_or(format.usual_crs()) {
            LineCrs::Own => (None, own_code),
            LineCrs::Epsg(code) if own_code == Some(code) => (None, own_code),
            LineCrs::Epsg(code) => {
                if own.crs.is_empty() {
                    return Err(Error::LinesNotOnEarth);
                }
                let from = System::of_raster(&own, size(terrain))?;
                let projection = Projection::new(&from, &System::epsg(code)?)?;
                (Some(projection), Some(code))
            }
        };
        let is_degrees = match (&projection, code) {
            (Some(_), Some(code)) => terrane_geo::geodesy::is_geographic(code).unwrap_or_default(),
            _ => own.crs.kind() == CrsKind::Geographic,
        };
        let file = AtomicFile::create(out)?;
        let mut writer = match format {
            LineFormat::GeoJson | LineFormat::GeoJsonLines => Writer::GeoJson(GeoJson::create(
                file,
                out.path(),
                code.filter(|code| *code != WGS_84),
                is_degrees,
                format == LineFormat::GeoJsonLines,
            )),
            LineFormat::FlatGeobuf => {
                let writer = FlatGeobuf::create(file, out.path(), code)?;
                Writer::FlatGeobuf(Box::new(writer))
            }
        };
        let mut report = ContourReport::default();
        self.trace(terrain, jobs, progress, &mut |mut line: ContourLine| {
            if let Some(projection) = &projection {
                for point in &mut line.points {
                    *point = projection.apply(point[0], point[1])?.into();
                }
            }
            report.lines += 1;
            report.closed += u64::from(line.is_closed());
            report.points += line.points.len() as u64;
            match &mut writer {
                Writer::GeoJson(writer) => writer.add(&line),
                Writer::FlatGeobuf(writer) => writer.add(&line),
            }
        })?;
        match writer {
            Writer::GeoJson(writer) => writer.finish()?,
            Writer::FlatGeobuf(writer) => writer.finish()?,
        }
        Ok(report)
    }
}
