//! Rasters that no survey makes and somebody will encode.

use terrane_codec::Rate;
use terrane_codec::format::Window;

use crate::{Raster, context, integers, max_difference, open, tokens, whole};

fn noise(column: usize, row: usize) -> f64 {
    let mut state = (column as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (row as u64 + 1).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    state ^= state >> 29;
    state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state ^= state >> 32;
    (state % 100_000) as f64 / 1000.0
}

#[test]
fn extremes_come_back_within_the_bound() {
    let rasters = [
        ("noise", Raster::new(256, 256, noise)),
        (
            "plane",
            Raster::new(256, 256, |x, y| 3.0 * x as f64 - y as f64),
        ),
        (
            "step",
            Raster::new(256, 256, |x, _| if x < 100 { 0.0 } else { 900.0 }),
        ),
        (
            "spikes",
            Raster::new(256, 256, |x, y| if x * y % 997 == 5 { 1e6 } else { 12.0 }),
        ),
        (
            "checks",
            Raster::new(256, 256, |x, y| if (x + y) % 2 == 0 { -40.0 } else { 40.0 }),
        ),
        ("constant", Raster::new(256, 256, |_, _| 77.25)),
        ("one wide", Raster::new(1, 300, |_, y| y as f64 * 0.3)),
        ("one pixel", Raster::new(1, 1, |_, _| -11_000.0)),
        (
            "huge",
            Raster::new(64, 64, |x, y| if x > y { 1e6 } else { -1e6 }),
        ),
        (
            "absurd",
            Raster::new(64, 64, |x, y| if (x, y) == (3, 3) { 9e29 } else { 0.125 }),
        ),
        ("tiny", Raster::new(64, 64, |x, _| x as f64 * 1e-12)),
    ];
    for (name, raster) in &rasters {
        for bound in [0.1, 0.01] {
            for codec in [
                integers(Rate::MaxError(bound)),
                tokens(Rate::MaxError(bound)),
                context(Rate::MaxError(bound)),
            ] {
                let (file, _) = raster.encode(&codec, 1);
                let error = max_difference(&raster.heights, &whole(&open(&file)));
                assert!(error <= bound, "{name}: {error} above {bound}");
                let raw = raster.heights.len() as f64 * 4.0;
                // Tokens are as many for the smallest tile.
                let tokens = 9000.0 * f64::from(u8::from(codec.method.has_tokens()));
                assert!(
                    (file.len() as f64) < raw * 1.01 + tokens + 1000.0,
                    "{name}: {} of {raw}",
                    file.len()
                );
            }
        }
    }
}

#[test]
fn gaps_anywhere_stay_gaps() {
    let empty = Raster::new(300, 300, |_, _| f64::NAN);
    let (file, measured) = empty.encode(&integers(Rate::MaxError(0.1)), 2);
    let terrain = open(&file);
    assert_eq!((measured.pixels, terrain.header().statistics.tiles), (0, 0));
    assert!(whole(&terrain).iter().all(|height| height.is_nan()));
    assert!(file.len() < terrain.reader().head().len() + 16);

    // One tile without data beside others, a lone pixel, a frayed edge.
    let frayed = Raster::new(600, 300, |x, y| {
        if x < 256 && y < 256 || noise(x, y) < 20.0 && x > 500 {
            f64::NAN
        } else {
            400.0 + x as f64 * 0.1
        }
    });
    let lone = Raster::new(
        300,
        300,
        |x, y| if (x, y) == (299, 1) { 5.0 } else { f64::NAN },
    );
    for raster in [&frayed, &lone] {
        for codec in [
            integers(Rate::MaxError(0.05)),
            tokens(Rate::MaxError(0.05)),
            context(Rate::MaxError(0.05)),
        ] {
            let (file, _) = raster.encode(&codec, 2);
            let terrain = open(&file);
            assert!(max_difference(&raster.heights, &whole(&terrain)) <= 0.05);
            let last = terrain.header().pyramid.levels() - 1;
            let (width, height) = terrain.header().pyramid.size(last).unwrap();
            let top = terrain
                .read(last, Window::whole(width as usize, height as usize))
                .unwrap();
            assert!(top.iter().any(|height| !height.is_nan()));
        }
    }
}

#[test]
fn what_is_no_height_is_refused() {
    let raster = Raster::new(20, 20, |x, _| if x == 7 { f64::INFINITY } else { 0.0 });
    let error = raster
        .try_encode(&integers(Rate::MaxError(0.1)), 1, 256)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a tile holds a value that is not a height at row 0, column 7"
    );
}
