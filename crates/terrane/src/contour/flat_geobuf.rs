//! Lines as FlatGeobuf, sorted and with an index, so that clients read the part they show.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use flatgeobuf::{ColumnType, FgbCrs, FgbWriter, FgbWriterOptions, GeometryType};
use geozero::{ColumnValue, GeomProcessor, GeozeroGeometry, PropertyProcessor};
use terrane_geo::AtomicFile;

use super::ContourLine;
use super::geo_json::shortest;
use crate::{Error, Result};

/// A file that is being written. Features are kept in a temporary file until all are known, since they are sorted.
pub(super) struct FlatGeobuf {
    file: AtomicFile,
    path: PathBuf,
    writer: FgbWriter<'static>,
}

impl FlatGeobuf {
    /// Starts a file in the system of a code, where it has one.
    pub(super) fn create(file: AtomicFile, path: &Path, epsg: Option<u16>) -> Result<Self> {
        let options = FgbWriterOptions {
            detect_type: false,
            promote_to_multi: false,
            crs: FgbCrs {
                org: epsg.map(|_| "EPSG"),
                code: epsg.unwrap_or_default().into(),
                ..FgbCrs::default()
            },
            ..FgbWriterOptions::default()
        };
        let writer = FgbWriter::create_with_options("contours", GeometryType::LineString, options);
        let mut writer = writer.map_err(|error| failed(path, error))?;
        writer.add_column("height_m", ColumnType::Double, |_, column| {
            column.nullable = false;
        });
        writer.add_column("index", ColumnType::Bool, |_, column| {
            column.nullable = false;
        });
        Ok(Self {
            file,
            path: path.to_owned(),
            writer,
        })
    }

    /// Adds a line.
    pub(super) fn add(&mut self, line: &ContourLine) -> Result<()> {
        let added = self.writer.add_feature_geom(Points(line), |feature| {
            // What is written to memory cannot fail.
            let _ = feature.property(0, "height_m", &ColumnValue::Double(shortest(line.height)));
            let _ = feature.property(1, "index", &ColumnValue::Bool(line.is_index));
        });
        added.map_err(|error| failed(&self.path, error))
    }

    /// Sorts the lines and completes the file.
    pub(super) fn finish(mut self) -> Result<()> {
        let mut out = BufWriter::new(self.file.file());
        self.writer
            .write(&mut out)
            .map_err(|error| failed(&self.path, error))?;
        out.flush().map_err(|source| terrane_geo::Error::Io {
            path: self.path.clone(),
            action: "be written",
            source,
        })?;
        drop(out);
        Ok(self.file.commit()?)
    }
}

fn failed(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::FlatGeobuf {
        path: path.to_owned(),
        source: Box::new(error),
    }
}

struct Points<'a>(&'a ContourLine);

impl GeozeroGeometry for Points<'_> {
    fn process_geom<P: GeomProcessor>(&self, processor: &mut P) -> geozero::error::Result<()> {
        let points = &self.0.points;
        processor.linestring_begin(true, points.len(), 0)?;
        for (index, [x, y]) in points.iter().enumerate() {
            processor.xy(*x, *y, index)?;
        }
        processor.linestring_end(true, 0)
    }
}
