//! Rasters that no survey makes and somebody will encode.

use terrane_codec::format::Window;
use terrane_codec::{Rate, TileEncoder};

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
fn a_bounded_file_is_never_larger_than_the_lossless_one() {
    let smooth = |x: usize, y: usize| {
        let (x, y) = (x as f64, y as f64);
        600.0 + 30.0 * (x / 61.0).sin() * (y / 47.0).cos() + 4.0 * (x / 9.0 + y / 13.0).sin()
    };
    let to = |step: f64, height: f64| (height / step).round() * step;
    let size = (200, 170);
    let raster = |at: &dyn Fn(usize, usize) -> f64| {
        Raster::new(size.0, size.1, |x, y| f64::from(at(x, y) as f32))
    };
    let rasters = [
        ("hills", raster(&smooth), 0.0),
        (
            "rough hills",
            raster(&|x, y| smooth(x, y) + noise(x, y) / 50.0),
            0.0,
        ),
        (
            "centimetres",
            raster(&|x, y| to(0.01, smooth(x, y) + noise(x, y) / 500.0)),
            0.0,
        ),
        ("terraces", raster(&|x, y| to(4.0, smooth(x, y))), 0.0),
        (
            "terraces of 0.3 m",
            raster(&|x, y| to(0.3, smooth(x, y))),
            0.0,
        ),
        ("integers", raster(&|x, y| smooth(x, y).round()), 1.0),
        (
            "rough integers",
            raster(&|x, y| (smooth(x, y) + noise(x, y) / 20.0).round()),
            1.0,
        ),
        ("noise", raster(&noise), 0.0),
        (
            "noise of integers",
            raster(&|x, y| noise(x, y).round()),
            1.0,
        ),
        (
            "plane",
            raster(&|x, y| 0.25 * x as f64 - 0.5 * y as f64),
            0.0,
        ),
        (
            "steps",
            raster(&|x, y| {
                if (x / 20 + y / 30) % 2 == 0 {
                    10.0
                } else {
                    40.0
                }
            }),
            0.0,
        ),
        (
            "spikes",
            raster(&|x, y| if x * y % 997 == 5 { 1e4 } else { 12.0 }),
            0.0,
        ),
        ("constant", raster(&|_, _| 77.25), 0.0),
        (
            "gaps",
            raster(&|x, y| {
                if noise(x, y) < 20.0 {
                    f64::NAN
                } else {
                    to(0.1, smooth(x, y))
                }
            }),
            0.0,
        ),
    ];
    let mut larger = Vec::new();
    for (name, raster, source_step_m) in &rasters {
        for codec in [context as fn(Rate) -> _, integers] {
            let bytes = |rate: Rate, side: u16| {
                let codec = TileEncoder {
                    source_step_m: *source_step_m,
                    ..codec(rate)
                };
                raster.try_encode(&codec, 2, side).unwrap().0.len()
            };
            for side in [64, 256] {
                let lossless = bytes(Rate::Lossless, side);
                for bound in [0.001, 0.01, 0.1, 0.5, 2.0] {
                    let bounded = bytes(Rate::MaxError(bound), side);
                    if bounded > lossless {
                        let method = codec(Rate::Lossless).method;
                        larger.push(format!(
                            "{name}, {method}, tiles of {side}: {bounded} bytes within {bound} m, {lossless} without loss"
                        ));
                    }
                }
            }
        }
    }
    assert!(larger.is_empty(), "{larger:#?}");
}

#[test]
fn a_lake_is_flat_at_any_rate() {
    let level = 417.37;
    // One lake inside a tile, one where four tiles meet, with a good part in each.
    let lakes = [(110.0, 120.0, 45.0), (256.0, 256.0, 60.0)];
    let is_in = |x: usize, y: usize, (column, row, radius): (f64, f64, f64)| {
        (x as f64 - column).hypot(y as f64 - row) < radius
    };
    let raster = Raster::new(520, 400, |x, y| {
        if lakes.iter().any(|&lake| is_in(x, y, lake)) {
            level
        } else {
            level + 2.0 + 20.0 * (x as f64 / 40.0).sin().abs() + noise(x, y) / 100.0
        }
    });
    let mut waves = Vec::new();
    let context = [
        Rate::MaxError(0.5),
        Rate::MaxError(0.1),
        Rate::MaxError(0.01),
        Rate::Rmse(0.2),
        Rate::Rmse(0.02),
        Rate::Bpp(0.6),
        Rate::Bpp(2.5),
        Rate::Step(0.7),
        Rate::Lossless,
    ]
    .map(context);
    let others = [
        tokens(Rate::Tokens),
        tokens(Rate::MaxError(0.5)),
        tokens(Rate::Bpp(2.5)),
        integers(Rate::MaxError(0.5)),
        integers(Rate::Rmse(0.2)),
    ];
    for codec in context.into_iter().chain(others) {
        let (rate, method) = (codec.rate, codec.method);
        let codec = TileEncoder {
            is_f32: false,
            ..codec
        };
        let (file, _) = raster.encode(&codec, 2);
        let heights = whole(&open(&file));
        for lake in lakes {
            let water = || {
                let pixels = heights.iter().enumerate();
                pixels
                    .filter(|(index, _)| is_in(index % 520, index / 520, lake))
                    .map(|(_, &height)| height)
            };
            let (low, high) = water()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), height| {
                    (height.min(low), height.max(high))
                });
            if (low, high) != (level, level) {
                waves.push(format!(
                    "{method}, {rate:?}, {lake:?}: from {low} to {high}"
                ));
            }
        }
    }
    assert!(waves.is_empty(), "{waves:#?}");
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
