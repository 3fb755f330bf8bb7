//! Overviews: where they lie, how they alias, where they have data, and what is said of their error.

use std::f64::consts::TAU;

use terrane_codec::format::{Window, halve};
use terrane_codec::{Rate, Terrain, TileEncoder};

use crate::{Raster, context, integers, open};

/// Small tiles have many borders: trees of 128 pixels, and overviews in two storeys.
const SIDE: u16 = 16;
const SIZE: (usize, usize) = (464, 400);

fn encoded(codec: &TileEncoder, step_m: f64, height_at: impl Fn(f64, f64) -> f64) -> Terrain {
    let raster = Raster::new(SIZE.0, SIZE.1, |x, y| {
        (height_at(x as f64, y as f64) / step_m).round() * step_m
    });
    let (file, _) = raster.try_encode(codec, 2, SIDE).unwrap();
    open(&file)
}

/// An overview with its columns.
fn level(terrain: &Terrain, level: u8) -> (Vec<f64>, usize) {
    let (width, height) = terrain.header().pyramid.size(level).unwrap();
    let window = Window::whole(width as usize, height as usize);
    (terrain.read(level, window).unwrap(), window.width)
}

/// Means of two by two pixels, so many times.
fn means(height_at: impl Fn(f64, f64) -> f64, level: u8) -> Vec<f64> {
    let raster = Raster::new(SIZE.0, SIZE.1, |x, y| height_at(x as f64, y as f64));
    let (mut heights, mut width) = (raster.heights, SIZE.0);
    for _ in 0..level {
        heights = halve(&heights, width);
        width = width.div_ceil(2);
    }
    heights
}

/// The middle of a pixel of an overview, in pixels of the raster, the first of which has its own middle at 0.
fn middle(pixel: usize, level: u8) -> f64 {
    (pixel as f64 + 0.5) * f64::from(level).exp2() - 0.5
}

/// The root of the mean square of values around their mean.
fn deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / count).sqrt()
}

/// Every way that overviews are made, with what heights are rounded to: the 9/7, the 5/3, and means.
fn codecs() -> [(&'static str, TileEncoder, f64); 3] {
    [
        ("lossy", context(Rate::Step(0.02)), 1e-9),
        ("lossless", context(Rate::Lossless), 1.0 / 64.0),
        ("integers", integers(Rate::MaxError(0.01)), 1e-9),
    ]
}

/// What was found beside its place, each with how far.
fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_plane_lies_right_in_every_overview() {
    // Not in whole metres: the 5/3 rounds to the source's step.
    let slope = 1.0 / 64.0;
    let plane = |x: f64, y: f64| 500.0 + (3.0 + slope) * x - (2.0 + slope) * y;
    let mut wrong = Vec::new();
    for (name, codec, step_m) in codecs() {
        let terrain = encoded(&codec, step_m, plane);
        for above in 1..terrain.header().pyramid.levels() {
            let (heights, width) = level(&terrain, above);
            let size = f64::from(above).exp2();
            let whole = |pixel: usize, count: usize| (pixel + 1) << above <= count;
            let (mut most, mut at) = (0.0, (0, 0));
            for (index, height) in heights.iter().enumerate() {
                let (column, row) = (index % width, index / width);
                // Pixels that the raster's edge cuts have no middle of their own.
                if !whole(column, SIZE.0) || !whole(row, SIZE.1) {
                    continue;
                }
                let expected = plane(middle(column, above), middle(row, above));
                let pixels = (height - expected).abs() / (3.0_f64.hypot(2.0) * size);
                if pixels > most {
                    (most, at) = (pixels, (column, row));
                }
            }
            if most > 0.01 {
                wrong.push(format!(
                    "{name}, level {above}: by {most:.4} pixels at {at:?}"
                ));
            }
        }
    }
    assert_none(&wrong);
}

/// By how many pixels of an overview a wave of so many of the raster's pixels lies beside its place, among some columns.
fn wave_shift(
    (heights, width): (&[f64], usize),
    (above, period): (u8, f64),
    is_seen: impl Fn(usize) -> bool,
) -> f64 {
    // Least squares for a·sin + b·cos + c.
    let mut sums = [[0.0; 4]; 3];
    for (index, height) in heights.iter().enumerate() {
        let column = index % width;
        if is_seen(column) {
            let (sin, cos) = (TAU * middle(column, above) / period).sin_cos();
            let terms = [sin, cos, 1.0];
            for (row, a) in terms.iter().enumerate() {
                for (slot, b) in sums[row].iter_mut().zip([sin, cos, 1.0, *height]) {
                    *slot += a * b;
                }
            }
        }
    }
    for pivot in 0..3 {
        for row in 0..3 {
            if row != pivot {
                let from = sums[pivot];
                let factor = sums[row][pivot] / from[pivot];
                for (slot, value) in sums[row].iter_mut().zip(from) {
                    *slot -= factor * value;
                }
            }
        }
    }
    let [sin, cos] = [0, 1].map(|row| sums[row][3] / sums[row][row]);
    assert!(sin > 5.0, "the wave is gone: {sin}");
    cos.atan2(sin) / TAU * period / f64::from(above).exp2()
}

#[test]
fn a_wave_lies_right_in_every_overview() {
    let period = 58.0;
    let wave = |x: f64, _: f64| 300.0 + 10.0 * (TAU * x / period).sin();
    let mut wrong = Vec::new();
    for (name, codec, step_m) in codecs() {
        // With tiles of 16 pixels half of the coarsest overview lies beside borders, where a wave is bent and a plane is not.
        let terrain = encoded(&codec, step_m, wave);
        for above in 1..4 {
            let (heights, width) = level(&terrain, above);
            let side = usize::from(SIDE);
            let tree = 128 >> above;
            let near = |column: usize, every: usize| {
                column > 1 && column + 2 < width && (column + 2) % every < 4
            };
            for (place, most, shift) in [
                (
                    "everywhere",
                    0.015,
                    wave_shift((&heights, width), (above, period), |_| true),
                ),
                (
                    "beside tiles' borders",
                    0.02,
                    wave_shift((&heights, width), (above, period), |column| {
                        near(column, side)
                    }),
                ),
                (
                    "beside trees' borders",
                    0.02,
                    wave_shift((&heights, width), (above, period), |column| {
                        near(column, tree)
                    }),
                ),
            ] {
                if shift.abs() > most {
                    wrong.push(format!(
                        "{name}, level {above}, {place}: by {shift:.4} pixels"
                    ));
                }
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn what_an_overview_cannot_hold_is_no_stronger_in_it_than_in_means() {
    let check = |x: f64, y: f64| {
        if (x + y) % 2.0 == 0.0 { 40.0 } else { -40.0 }
    };
    // What is left of the wavelet's steps, of an amplitude of 40 m.
    let left = 0.05;
    let mut wrong = Vec::new();
    for (name, codec, step_m) in codecs() {
        let terrain = encoded(&codec, step_m, check);
        for above in 1..terrain.header().pyramid.levels() {
            let (heights, _) = level(&terrain, above);
            let ours = deviation(&heights);
            if ours > left {
                wrong.push(format!("{name}, checks, level {above}: {ours:.3} m"));
            }
        }
        // Waves that are too short for a level: from half a wave to a whole one per pixel of it.
        for above in 1..=2_u8 {
            for (x_part, y_part) in [(1.0, 0.0), (0.8, 0.6)] {
                let (mut ours, mut theirs) = (0.0, 0.0);
                for waves in [0.53, 0.59, 0.65, 0.71, 0.77, 0.83, 0.89, 0.95] {
                    let per_pixel = TAU * waves / f64::from(above).exp2();
                    let wave =
                        |x: f64, y: f64| 40.0 * (per_pixel * (x_part * x + y_part * y)).sin();
                    let (heights, _) = level(&encoded(&codec, step_m, wave), above);
                    let own = deviation(&heights);
                    let of_means = deviation(&means(wave, above));
                    ours += own.powi(2);
                    theirs += of_means.powi(2);
                }
                if ours > 1.001 * theirs {
                    let ratio = ours / theirs;
                    wrong.push(format!(
                        "{name}, level {above}, waves along {x_part}, {y_part}: {ratio:.2} times the energy"
                    ));
                }
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn an_overview_has_data_where_any_pixel_below_has() {
    // A gap as wide as a tree, gaps of a pixel, lone pixels in a gap, and a ragged edge.
    let raster = Raster::new(301, 217, |x, y| {
        let noise = (x * 7919 + y * 104_729) % 101;
        let is_lone = noise == 3 && x % 2 == 0;
        let is_gap = (x < 135 && (60..200).contains(&y) && !is_lone)
            || noise < 2
            || x > 280 + (y * 13 % 17)
            || (150..170).contains(&x) && noise < 90;
        if is_gap {
            f64::NAN
        } else {
            (400.0 + (x as f64 / 20.0).sin() * 8.0 + y as f64 / 8.0).round() / 8.0
        }
    });
    for codec in [
        context(Rate::MaxError(0.1)),
        context(Rate::Lossless),
        context(Rate::Rmse(0.1)),
        context(Rate::Bpp(6.0)),
        integers(Rate::MaxError(0.1)),
    ] {
        let (file, _) = raster.try_encode(&codec, 2, SIDE).unwrap();
        let terrain = open(&file);
        let (mut expected, mut width) = (raster.heights.clone(), raster.width);
        for above in 0..terrain.header().pyramid.levels() {
            let (heights, wide) = level(&terrain, above);
            assert_eq!(wide, width);
            for (index, (ours, theirs)) in heights.iter().zip(&expected).enumerate() {
                assert_eq!(
                    ours.is_nan(),
                    theirs.is_nan(),
                    "{:?}, level {above}, column {}, row {}",
                    codec.rate,
                    index % width,
                    index / width
                );
            }
            expected = halve(&expected, width);
            width = width.div_ceil(2);
        }
    }
}

#[test]
fn the_error_of_every_overview_is_stated() {
    let raster = Raster::hills(300, 270);
    for codec in [
        context(Rate::MaxError(0.1)),
        context(Rate::Lossless),
        context(Rate::Rmse(0.05)),
        integers(Rate::MaxError(0.1)),
    ] {
        let (file, _) = raster.try_encode(&codec, 2, 32).unwrap();
        let terrain = open(&file);
        let stated = &terrain.header().overviews;
        assert_eq!(
            stated.len(),
            usize::from(terrain.header().pyramid.levels()) - 1
        );
        let (mut means, mut width) = (raster.heights.clone(), raster.width);
        for (index, stated) in stated.iter().enumerate() {
            means = halve(&means, width);
            width = width.div_ceil(2);
            let (heights, _) = level(&terrain, index as u8 + 1);
            let differences = || {
                let pairs = heights.iter().zip(&means);
                pairs
                    .map(|(a, b)| (a - b).abs())
                    .filter(|difference| !difference.is_nan())
            };
            let most = differences().fold(0.0, f64::max);
            let squares: f64 = differences()
                .map(|difference| difference * difference)
                .sum();
            let rmse = (squares / differences().count() as f64).sqrt();
            let name = format!("{:?}, level {}", codec.rate, index + 1);
            let (stated_most, stated_rmse) =
                (f64::from(stated.max_error_m), f64::from(stated.rmse_m));
            assert!(
                most <= stated_most && stated_most <= most * 1.000_001 + 1e-9,
                "{name}: {most}, stated {stated_most}"
            );
            assert!(
                (stated_rmse / rmse - 1.0).abs() < 1e-5,
                "{name}: {rmse}, stated {stated_rmse}"
            );
        }
    }
}
