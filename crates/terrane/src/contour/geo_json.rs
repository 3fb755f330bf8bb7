//! Lines as GeoJSON, written one after the other.

use std::io::Write;
use std::path::{Path, PathBuf};

use terrane_geo::AtomicFile;

use super::ContourLine;
use crate::Result;

/// Bytes that are collected before they are written.
const BUFFER: usize = 1 << 16;
/// Decimals of degrees and of other units: a micrometre, since lines may be so near to each other that a tenth of a
/// millimetre would make them touch.
const DECIMALS_OF_DEGREES: usize = 11;
const DECIMALS: usize = 6;

/// A file that is being written.
pub(super) struct GeoJson {
    file: AtomicFile,
    path: PathBuf,
    text: Vec<u8>,
    decimals: usize,
    /// Whether every feature is a text of its own.
    is_lines: bool,
    is_first: bool,
}

impl GeoJson {
    /// Starts a file; `epsg` is named where coordinates are not longitudes and latitudes, as GDAL does.
    pub(super) fn create(
        file: AtomicFile,
        path: &Path,
        epsg: Option<u16>,
        is_degrees: bool,
        is_lines: bool,
    ) -> Self {
        let mut text = Vec::with_capacity(2 * BUFFER);
        if !is_lines {
            text.extend(b"{\"type\":\"FeatureCollection\",\"name\":\"contours\",");
            if let Some(epsg) = epsg {
                text.extend(
                    format!(
                        "\"crs\":{{\"type\":\"name\",\"properties\":{{\"name\":\"urn:ogc:def:crs:EPSG::{epsg}\"}}}},"
                    )
                    .as_bytes(),
                );
            }
            text.extend(b"\"features\":[");
        }
        Self {
            file,
            path: path.to_owned(),
            text,
            decimals: if is_degrees {
                DECIMALS_OF_DEGREES
            } else {
                DECIMALS
            },
            is_lines,
            is_first: true,
        }
    }

    /// Adds a line.
    pub(super) fn add(&mut self, line: &ContourLine) -> Result<()> {
        let between: &[u8] = match (self.is_lines, self.is_first) {
            (true, true) => b"",
            (false, false) => b",\n",
            _ => b"\n",
        };
        self.is_first = false;
        self.text.extend(between);
        let head = format!(
            "{{\"type\":\"Feature\",\"properties\":{{\"height_m\":{:?},\"index\":{}}},\"geometry\":{{\"type\":\"LineString\",\"coordinates\":[",
            shortest(line.height),
            line.is_index
        );
        self.text.extend(head.as_bytes());
        for (index, [x, y]) in line.points.iter().enumerate() {
            let between = if index == 0 { "" } else { "," };
            let decimals = self.decimals;
            let point = format!("{between}[{x:.decimals$},{y:.decimals$}]");
            self.text.extend(point.as_bytes());
        }
        self.text.extend(b"]}}");
        if self.text.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> Result<()> {
        if !self.is_lines {
            self.text.extend(b"\n]}");
        }
        self.text.extend(b"\n");
        self.flush()?;
        Ok(self.file.commit()?)
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.file.file().write_all(&self.text);
        self.text.clear();
        written.map_err(|source| {
            terrane_geo::Error::Io {
                path: self.path.clone(),
                action: "be written",
                source,
            }
            .into()
        })
    }
}

/// A height as people write it: 0.3 rather than 3 × 0.1.
pub(super) fn shortest(height: f64) -> f64 {
    (height * 1e9).round() / 1e9
}
