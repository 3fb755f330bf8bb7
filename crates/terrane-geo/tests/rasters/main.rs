//! Rasters in and out: every flavour of `GeoTIFF`, hostile files, written files, mosaics, real data.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop where it is"
)]

mod blocks;
mod changing;
mod damaged;
mod derivatives;
mod flavours;
mod handmade;
mod large;
mod mosaics;
mod real;
mod sidecars;
mod written;

use std::path::{Path, PathBuf};

use terrane_geo::{Affine, Crs, Georeference, Grid};

/// Files that GDAL made, and what GDAL reads from them (`make.py` beside them).
fn flavour_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/flavours")
}

/// Equal bit for bit, missing heights included.
fn assert_same(grid: &Grid, expected: &[f64], what: &str) {
    assert_eq!(
        grid.heights.len(),
        expected.len(),
        "{what}: number of pixels"
    );
    for (index, (&ours, &theirs)) in grid.heights.iter().zip(expected).enumerate() {
        assert!(
            ours == theirs || (ours.is_nan() && theirs.is_nan()),
            "{what}: row {}, column {}: {ours} instead of {theirs}",
            index / grid.width,
            index % grid.width
        );
    }
}

/// A wavy hill of any size, cheap enough to be made row by row.
fn wave(column: usize, row: usize) -> f64 {
    let (x, y) = (column as f64, row as f64);
    let height =
        500.0 + 40.0 * (x / 97.0).sin() * (y / 71.0).cos() + 3.0 * (x / 7.0 + y / 11.0).sin();
    f64::from(height as f32)
}

fn wave_grid(width: usize, height: usize) -> Grid {
    let heights = (0..height)
        .flat_map(|row| (0..width).map(move |column| wave(column, row)))
        .collect();
    Grid::new(width, height, heights)
}

fn swiss() -> Georeference {
    Georeference::new(
        Affine::north_up(2_600_000.0, 1_200_000.0, 1.0),
        Crs::projected(2056, Some(5728)),
    )
}
