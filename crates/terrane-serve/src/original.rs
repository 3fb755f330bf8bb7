//! Whether a raster is the one that a file was made from.

use terrane_codec::Terrain;
use terrane_codec::format::{ErrorBound, LevelTile, TileId};
use terrane_geo::{Affine, Crs, RasterSource};

use terrane::georeferencing::georeference;

/// Pixels whose heights are compared.
const COMPARED: usize = 1 << 20;
/// Tiles that are looked at for them.
const MAX_TILES: u32 = 256;
/// Parts of a pixel that a corner may be off, as where a transform was written with fewer digits.
const TOLERANCE: f64 = 0.01;

/// Steps of a sequence of points that fill a square evenly: powers of the root of x³ = x + 1.
const ACROSS: f64 = 0.754_877_666_246_692_8;
const DOWN: f64 = 0.569_840_290_998_053_3;

/// What tells a raster from the one that a file was made from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Another size.
    #[error("it has {} x {} pixels, and the file has {} x {}", found.0, found.1, expected.0, expected.1)]
    Size {
        /// The raster's columns and rows.
        found: (usize, usize),
        /// The file's.
        expected: (usize, usize),
    },
    /// Another coordinate system.
    #[error("its system is {found}, and the file's is {expected}")]
    System {
        /// The raster's.
        found: Box<Crs>,
        /// The file's.
        expected: Box<Crs>,
    },
    /// Another transform.
    #[error("it lies elsewhere: its transform is {found:?}, and the file's is {expected:?}")]
    Transform {
        /// The raster's.
        found: Box<[f64; 6]>,
        /// The file's.
        expected: Box<[f64; 6]>,
    },
    /// A pixel that has a height in one of them alone.
    #[error("at column {column}, row {row} only one of them has a height")]
    Gaps {
        /// Its column.
        column: usize,
        /// Its row.
        row: usize,
    },
    /// A height that differs by more than the file states.
    #[error(
        "at column {column}, row {row} their heights differ by {off_m:.3} m, and the file {}",
        stated(*bound, *measured_m)
    )]
    Heights {
        /// The column of the worst pixel.
        column: usize,
        /// Its row.
        row: usize,
        /// By how much they differ.
        off_m: f64,
        /// The file's error bound.
        bound: ErrorBound,
        /// The error that was measured when the file was made.
        measured_m: f64,
    },
    /// The raster cannot be read.
    #[error(transparent)]
    Raster(#[from] terrane_geo::Error),
    /// The file cannot be read.
    #[error(transparent)]
    Terrain(#[from] terrane_codec::Error),
}

/// What a file says of its errors.
fn stated(bound: ErrorBound, measured_m: f64) -> String {
    match bound {
        ErrorBound::MaxError(bound) => format!("guarantees at most {bound} m"),
        ErrorBound::Lossless { .. } => "guarantees every height".to_owned(),
        ErrorBound::None => format!("states at most {measured_m:.3} m"),
    }
}

/// Compares size, transform and, in some tiles, heights. A system may be described in other words: what counts is its code.
pub(crate) fn check(terrain: &Terrain, raster: &dyn RasterSource) -> Result<(), Mismatch> {
    let info = raster.info();
    let header = terrain.header();
    let (width, height) = header.pyramid.size(0).unwrap_or_default();
    let expected = (width as usize, height as usize);
    let found = (info.width(), info.height());
    if found != expected {
        return Err(Mismatch::Size { found, expected });
    }
    let (own, other) = (georeference(header), &info.georeference);
    if own.crs.horizontal_epsg() != other.crs.horizontal_epsg() {
        return Err(Mismatch::System {
            found: Box::new(other.crs.clone()),
            expected: Box::new(own.crs),
        });
    }
    let (ours, theirs) = (own.affine(), other.affine());
    if own.is_georeferenced != other.is_georeferenced || !is_near(&ours, &theirs, expected) {
        return Err(Mismatch::Transform {
            found: Box::new(theirs.numbers()),
            expected: Box::new(ours.numbers()),
        });
    }
    check_heights(terrain, raster)
}

/// Whether two transforms put the corners of a raster at the same points.
fn is_near(a: &Affine, b: &Affine, (width, height): (usize, usize)) -> bool {
    let (width, height) = (width as f64, height as f64);
    let corners = [(0.0, 0.0), (width, 0.0), (0.0, height), (width, height)];
    corners.into_iter().all(|(column, row)| {
        let (from, to) = (a.apply(column, row), b.apply(column, row));
        (from.0 - to.0).hypot(from.1 - to.1) <= TOLERANCE * a.pixel_size()
    })
}

/// Compares whole tiles all over the raster, until enough heights were seen.
fn check_heights(terrain: &Terrain, raster: &dyn RasterSource) -> Result<(), Mismatch> {
    let header = terrain.header();
    let measured_m = header.statistics.max_error_m;
    let allowed_m = match header.bound {
        ErrorBound::MaxError(bound) => bound,
        ErrorBound::Lossless { .. } => 0.0,
        // Measured where the file was made; the networks of another machine may round otherwise.
        ErrorBound::None => 1.01 * measured_m + 1e-3,
    };
    let Some(grid) = header.pyramid.grid(0) else {
        return Ok(());
    };
    let mut compared = 0;
    for number in 0..MAX_TILES {
        let id = TileId {
            column: spread(number, ACROSS, grid.columns()),
            row: spread(number, DOWN, grid.rows()),
        };
        let tile = LevelTile { level: 0, id };
        let window = header
            .pyramid
            .window(tile)
            .map_err(terrane_codec::Error::from)?;
        let decoded = match terrain.decode(tile)? {
            Some(tile) => tile.valid_heights(),
            None => vec![f64::NAN; window.width * window.height],
        };
        let source = raster.read(0, window)?.heights;
        let at = |index: usize| {
            let (column, row) = (index % window.width, index / window.width);
            (window.column + column, window.row + row)
        };
        let (mut worst, mut gap) = ((0, 0.0), None);
        for (index, (height, back)) in source.iter().zip(&decoded).enumerate() {
            let off_m = (height - back).abs();
            // Not a number is not greater.
            if off_m > worst.1 {
                worst = (index, off_m);
            }
            if height.is_nan() != back.is_nan() {
                gap = Some(index);
            }
        }
        if worst.1 > allowed_m {
            let (column, row) = at(worst.0);
            return Err(Mismatch::Heights {
                column,
                row,
                off_m: worst.1,
                bound: header.bound,
                measured_m,
            });
        }
        if let Some(index) = gap {
            let (column, row) = at(index);
            return Err(Mismatch::Gaps { column, row });
        }
        compared += source.iter().filter(|height| !height.is_nan()).count();
        if compared >= COMPARED {
            break;
        }
    }
    Ok(())
}

/// The `number`th of indices that fill a length evenly, the first at its middle.
fn spread(number: u32, step: f64, length: usize) -> usize {
    let part = (0.5 + f64::from(number) * step).fract();
    ((part * length as f64) as usize).min(length - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_looked_at_all_over() {
        let seen: std::collections::HashSet<_> = (0..24)
            .map(|number| (spread(number, ACROSS, 4), spread(number, DOWN, 4)))
            .collect();
        assert_eq!(seen.len(), 16);
        assert_eq!(spread(0, 0.3, 16), 8);
        assert_eq!(spread(7, 0.3, 1), 0);
    }
}
