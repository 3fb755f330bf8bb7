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
    is_degrees: bool,
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
            is_degrees,
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
        let parts = if self.is_degrees {
            cut(&line.points)
        } else {
            vec![line.points.clone()]
        };
        let (kind, open, close) = match parts.len() {
            1 => ("LineString", "", ""),
            _ => ("MultiLineString", "[", "]"),
        };
        let head = format!(
            "{{\"type\":\"Feature\",\"properties\":{{\"height_m\":{:?},\"index\":{}}},\"geometry\":{{\"type\":\"{kind}\",\"coordinates\":{open}",
            shortest(line.height),
            line.is_index
        );
        self.text.extend(head.as_bytes());
        for (index, part) in parts.iter().enumerate() {
            self.text
                .extend(if index == 0 { "[" } else { ",[" }.as_bytes());
            self.add_points(part);
            self.text.push(b']');
        }
        self.text.extend(format!("{close}}}}}").as_bytes());
        if self.text.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    fn add_points(&mut self, points: &[[f64; 2]]) {
        let decimals = self.decimals;
        for (index, [x, y]) in points.iter().enumerate() {
            let between = if index == 0 { "" } else { "," };
            let point = format!("{between}[{x:.decimals$},{y:.decimals$}]");
            self.text.extend(point.as_bytes());
        }
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

/// The parts of a line of longitudes and latitudes on this side of 180° and beyond it (RFC 7946, 3.1.9), each from −180 to
/// 180. A step of more than half the Earth is one across that meridian.
fn cut(points: &[[f64; 2]]) -> Vec<Vec<[f64; 2]>> {
    let Some(&[first, _]) = points.first() else {
        return vec![Vec::new()];
    };
    let mut parts = Vec::new();
    // Whole turns that the part lies away from the map, and the point before, on the map of the part.
    let mut turn = (first / 360.0).round() * 360.0;
    let mut part: Vec<[f64; 2]> = Vec::new();
    for &[x, y] in points {
        let mut x = x - turn;
        if let Some(&[last_x, last_y]) = part.last() {
            let nearer = ((last_x - x) / 360.0).round() * 360.0;
            x += nearer;
            turn -= nearer;
            while x.abs() > 180.0 {
                let edge = 180_f64.copysign(x);
                let share = (edge - last_x) / (x - last_x);
                let crossing = last_y + (y - last_y) * share;
                if last_x.abs() < 180.0 {
                    part.push([edge, crossing]);
                }
                parts.push(std::mem::replace(&mut part, vec![[-edge, crossing]]));
                x -= 2.0 * edge;
                turn += 2.0 * edge;
            }
        }
        if part.last() != Some(&[x, y]) || points.len() == 1 {
            part.push([x, y]);
        }
    }
    parts.push(part);
    parts.retain(|part| part.len() > 1);
    parts
}

/// A height as people write it: 0.3 rather than 3 × 0.1.
pub(super) fn shortest(height: f64) -> f64 {
    (height * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_180_degrees_and_go_on_beyond() {
        let near = vec![[7.0, 46.0], [7.1, 46.2], [7.0, 46.0]];
        assert_eq!(cut(&near), [near]);
        // Longitudes that go on, and ones that jump.
        for east in [[180.5, 1.0], [-179.5, 1.0]] {
            let parts = cut(&[[179.5, 0.0], east, [179.5, 2.0]]);
            let expected = [
                vec![[179.5, 0.0], [180.0, 0.5]],
                vec![[-180.0, 0.5], [-179.5, 1.0], [-180.0, 1.5]],
                vec![[180.0, 1.5], [179.5, 2.0]],
            ];
            assert_eq!(parts, expected);
        }
        // Beyond it all along, and up to it.
        let beyond = cut(&[[180.2, 0.0], [180.4, 1.0]]);
        assert_eq!(beyond.len(), 1);
        assert!((beyond[0][0][0] + 179.8).abs() < 1e-9);
        let touching = cut(&[[179.0, 0.0], [180.0, 1.0], [179.0, 2.0]]);
        assert_eq!(touching.len(), 1);
        let through = cut(&[[179.0, 0.0], [180.0, 1.0], [181.0, 2.0]]);
        assert_eq!(
            through,
            [
                vec![[179.0, 0.0], [180.0, 1.0]],
                vec![[-180.0, 1.0], [-179.0, 2.0]]
            ]
        );
    }
}
