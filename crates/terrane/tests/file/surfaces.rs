//! The continuous surface.

use terrane_codec::format::Window;
use terrane_codec::resample::Resampled;
use terrane_codec::{Rate, Surface, Terrain};

use crate::{Raster, context, integers, open, tokens, whole};

/// Points inside patches, on their borders, beside and on borders of tiles, and at the edge of the raster.
const PIXELS: [(f64, f64); 12] = [
    (200.3, 100.7),
    (16.0, 64.0),
    (31.2, 95.9),
    (255.9, 77.3),
    (256.0, 80.0),
    (256.3, 130.2),
    (255.6, 255.8),
    (100.0, 256.2),
    (0.2, 0.2),
    (299.9, 269.9),
    (128.5, 128.5),
    (112.0, 255.5),
];

fn point(pixel: (f64, f64)) -> (f64, f64) {
    (2_600_000.0 + 2.0 * pixel.0, 1_200_000.0 - 2.0 * pixel.1)
}

fn check_derivatives(surface: &Surface, (x, y): (f64, f64)) {
    let h = 1e-4;
    let f = |x: f64, y: f64| surface.at(x, y).unwrap().height;
    let sample = surface.at(x, y).unwrap();
    let gradient = [
        (f(x + h, y) - f(x - h, y)) / (2.0 * h),
        (f(x, y + h) - f(x, y - h)) / (2.0 * h),
    ];
    let slope = |x: f64, y: f64| surface.at(x, y).unwrap().gradient;
    let hessian = [
        (slope(x + h, y)[0] - slope(x - h, y)[0]) / (2.0 * h),
        (slope(x, y + h)[0] - slope(x, y - h)[0]) / (2.0 * h),
        (slope(x, y + h)[1] - slope(x, y - h)[1]) / (2.0 * h),
    ];
    for (ours, theirs) in sample.gradient.iter().zip(gradient) {
        assert!(
            (ours - theirs).abs() < 1e-5 * (1.0 + theirs.abs()),
            "{x} {y}: {ours} {theirs}"
        );
    }
    for (ours, theirs) in sample.hessian.iter().zip(hessian) {
        assert!(
            (ours - theirs).abs() < 2e-3 * (1.0 + theirs.abs()),
            "{x} {y}: {ours} {theirs}"
        );
    }
}

#[test]
fn derivatives_are_those_of_the_height_everywhere() {
    let raster = Raster::hills(300, 270);
    for codec in [
        integers(Rate::MaxError(0.1)),
        tokens(Rate::Tokens),
        tokens(Rate::MaxError(0.1)),
        context(Rate::MaxError(0.1)),
    ] {
        let (file, _) = raster.encode(&codec, 2);
        let terrain = open(&file);
        let surface = terrain.surface().unwrap();
        for pixel in PIXELS {
            check_derivatives(&surface, point(pixel));
        }
    }
}

#[test]
fn the_surface_passes_through_the_decoded_pixels() {
    let raster = Raster::hills(300, 270);
    for (codec, tolerance) in [
        (integers(Rate::MaxError(0.1)), 1e-9),
        (tokens(Rate::MaxError(0.1)), 2e-4),
    ] {
        let (file, _) = raster.encode(&codec, 2);
        let terrain = open(&file);
        let heights = whole(&terrain);
        let surface = terrain.surface().unwrap();
        for index in (0..heights.len()).step_by(577) {
            let (column, row) = (index % 300, index / 300);
            let (x, y) = point((column as f64 + 0.5, row as f64 + 0.5));
            match surface.at(x, y) {
                Ok(sample) => assert!(
                    (sample.height - heights[index]).abs() < tolerance,
                    "{column} {row}: {} {}",
                    sample.height,
                    heights[index]
                ),
                Err(_) => assert!(heights[index].is_nan(), "{column} {row}"),
            }
        }
        assert!(surface.at(2_599_999.0, 1_200_001.0).is_err());
    }
}

#[test]
fn raster_methods_have_the_derivatives_of_the_raster_across_tiles() {
    let raster = Raster::hills(300, 270);
    let (file, _) = raster.encode(&integers(Rate::MaxError(0.01)), 2);
    let terrain = open(&file);
    let heights = whole(&terrain);
    let surface = terrain.surface().unwrap();
    for (column, row) in [(255_usize, 255_usize), (256, 100), (255, 30), (200, 256)] {
        let sample = surface
            .at(
                2_600_000.0 + 2.0 * (column as f64 + 0.5),
                1_200_000.0 - 2.0 * (row as f64 + 0.5),
            )
            .unwrap();
        let at = |x: usize, y: usize| heights[y * 300 + x];
        let central = (at(column + 1, row) - at(column - 1, row)) / 4.0;
        let laplacian =
            (at(column + 1, row) + at(column - 1, row) + at(column, row + 1) + at(column, row - 1)
                - 4.0 * at(column, row))
                / 4.0;
        assert!((sample.gradient[0] - central).abs() < 1e-9);
        assert!((sample.hessian[0] + sample.hessian[2] - laplacian).abs() < 1e-9);
    }
}

#[test]
fn other_pixel_sizes_sample_or_average_the_surface() {
    let raster = Raster::new(320, 300, |x, y| 100.0 + 0.25 * x as f64 - 0.125 * y as f64);
    let (file, _) = raster.encode(&integers(Rate::Lossless), 2);
    let terrain = open(&file);
    let window = Window {
        column: 10,
        row: 20,
        width: 90,
        height: 60,
    };
    for factor in [0.3, 1.0, 2.5, 6.0] {
        let grid = Resampled::new(&terrain, window, [factor; 2]).unwrap();
        let heights = grid.rows(0..grid.height(), 2).unwrap();
        for index in (0..heights.len()).step_by(7) {
            // A plane's mean is its value in the middle of what is covered; parts of pixels count with the pixel's mean.
            let (column, row) = (index % grid.width(), index / grid.width());
            let (x, y) = (
                10.0 + (column as f64 + 0.5) * factor - 0.5,
                20.0 + (row as f64 + 0.5) * factor - 0.5,
            );
            let expected = 100.0 + 0.25 * x - 0.125 * y;
            let tolerance = if factor > 1.0 && factor.fract() != 0.0 {
                0.02
            } else {
                1e-6
            };
            assert!(
                (heights[index] - expected).abs() < tolerance,
                "{factor}: {column} {row} {} {expected}",
                heights[index]
            );
        }
    }
}

#[test]
fn gaps_and_narrow_last_tiles_do_not_bend_the_surface() {
    // A slope with a gap at its upper left, where predictions of missing pixels start at zero.
    let gap = Raster::new(300, 270, |x, y| {
        if x < 100 && y < 120 {
            f64::NAN
        } else {
            500.0 + 0.1 * x as f64
        }
    });
    // The last column of tiles is one pixel wide, the last row two.
    let narrow = Raster::new(257, 258, |x, y| 500.0 + 0.1 * x as f64 - 0.3 * y as f64);
    for (raster, points) in [
        (&gap, [(100.1, 50.3), (100.5, 100.5), (160.2, 120.05)]),
        (&narrow, [(256.9, 100.2), (256.5, 257.5), (30.0, 257.9)]),
    ] {
        let (file, _) = raster.encode(&integers(Rate::MaxError(0.001)), 2);
        let terrain = open(&file);
        let surface = terrain.surface().unwrap();
        for (column, row) in points {
            let (x, y) = point((column, row));
            let sample = surface.at(x, y).unwrap();
            // Beside a gap the surface leans on what fills it, which is level.
            let (y_slope, tolerance) = if raster.width == 257 {
                (-0.3, 0.005)
            } else {
                (0.0, 0.15)
            };
            let expected = 500.0 + 0.1 * (column - 0.5) + y_slope * (row - 0.5);
            assert!(
                (sample.height - expected).abs() < tolerance,
                "{column} {row}: {} {expected}",
                sample.height
            );
            // A pixel is two units wide, and rows run south.
            if raster.width == 257 {
                assert!(
                    (sample.gradient[0] - 0.05).abs() < 0.005,
                    "{column} {row}: {:?}",
                    sample.gradient
                );
                assert!(
                    (sample.gradient[1] - 0.15).abs() < 0.005,
                    "{column} {row}: {:?}",
                    sample.gradient
                );
            }
        }
    }
}

/// Bytes in memory that count how often they are read.
struct Counted {
    bytes: Vec<u8>,
    reads: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl terrane_codec::format::ByteSource for Counted {
    fn read(&self, offset: u64, length: usize) -> terrane_codec::format::Result<Vec<u8>> {
        self.reads
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.bytes.read(offset, length)
    }

    fn length(&self) -> terrane_codec::format::Result<u64> {
        self.bytes.length()
    }
}

#[test]
fn scattered_points_decode_every_tile_about_once() {
    // 240 tiles, of which 64 are kept.
    let raster = Raster::hills(16 * 64, 15 * 64);
    let (bytes, _) = raster
        .try_encode(&integers(Rate::MaxError(0.1)), 2, 64)
        .unwrap();
    let reads = std::sync::Arc::default();
    let counted = Counted {
        bytes,
        reads: std::sync::Arc::clone(&reads),
    };
    let terrain =
        Terrain::open(Box::new(counted), terrane_codec::TerrainOptions::default()).unwrap();
    let surface = terrain.surface().unwrap();
    let points: Vec<(f64, f64)> = (0..5000_u32)
        .map(|index| {
            let at = |factor: u32, size: f64| {
                f64::from(index.wrapping_mul(factor) >> 8) / f64::from(1 << 24) * size
            };
            (
                2_600_000.0 + at(2_654_435_761, 2048.0),
                1_200_000.0 - at(2_246_822_519, 1920.0),
            )
        })
        .chain([(0.0, 0.0), (f64::NAN, 1.0)])
        .collect();
    reads.store(0, std::sync::atomic::Ordering::Relaxed);
    let samples = surface.at_points(&points, 2).unwrap();
    let count = reads.load(std::sync::atomic::Ordering::Relaxed);
    // One read for each tile and for each page of the index; a few for neighbours across a border.
    assert!(count < 240 + 60, "{count} reads");
    assert_eq!(samples.len(), points.len());
    for (sample, &(x, y)) in samples.iter().zip(&points).step_by(97) {
        assert_eq!(*sample, surface.at(x, y).ok(), "{x}, {y}");
    }
    assert!(samples[5000].is_none() && samples[5001].is_none());
}
