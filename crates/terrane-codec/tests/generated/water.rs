//! Water has one height: every area of at least 1024 connected pixels, whatever tiles, trees and other water it touches.

use proptest::prelude::*;
use terrane_codec::{Profile, Rate};

use crate::properties::{cases, made};
use crate::recipe::{Codec, Gaps, Ground, Recipe, levels, open};

/// The pixels of each area of at least 1024 equal heights, joined by edges.
fn areas(heights: &[f64], width: usize) -> Vec<Vec<usize>> {
    let mut seen = vec![false; heights.len()];
    let mut areas = Vec::new();
    for start in 0..heights.len() {
        let mut area = vec![start];
        let mut next = 0;
        while let Some(&pixel) = area.get(next) {
            next += 1;
            if std::mem::replace(&mut seen[pixel], true) {
                continue;
            }
            let column = pixel % width;
            let beside = [
                (column > 0).then(|| pixel.wrapping_sub(1)),
                (column + 1 < width).then(|| pixel + 1),
                Some(pixel.wrapping_sub(width)),
                Some(pixel + width),
            ];
            let beside = beside.into_iter().flatten();
            area.extend(beside.filter(|&other| {
                other < heights.len() && !seen[other] && heights[other] == heights[pixel]
            }));
        }
        area.sort_unstable();
        area.dedup();
        if area.len() >= 1024 {
            areas.push(area);
        }
    }
    areas
}

fn rates() -> impl Strategy<Value = Rate> {
    let of = |values: &'static [f64]| prop::sample::select(values);
    prop_oneof![
        4 => of(&[5.0, 0.5, 0.1, 0.01, 0.001]).prop_map(Rate::MaxError),
        1 => of(&[1.0, 0.1, 0.01]).prop_map(Rate::Rmse),
        1 => of(&[8.0, 3.0, 1.0]).prop_map(Rate::Bpp),
        2 => of(&[20.0, 2.0, 0.3, 0.02]).prop_map(Rate::Step),
    ]
}

/// What is not flat, or at another height than the source's.
fn ripples(recipe: &Recipe) -> Result<usize, String> {
    let source = recipe.heights();
    let Some(file) = made(recipe) else {
        return Ok(0);
    };
    let decoded = levels(&open(&file)).remove(0);
    let areas = areas(&source, recipe.width);
    let is_f32 = recipe.encoder().is_f32;
    for area in &areas {
        let height = source[area[0]];
        // As the source stores it.
        let is_right =
            |decoded: f64| decoded == height || is_f32 && decoded as f32 == height as f32;
        if let Some(pixel) = area.iter().find(|&&pixel| !is_right(decoded[pixel])) {
            let [column, row] = [pixel % recipe.width, pixel / recipe.width];
            return Err(format!(
                "{} at {column}, {row}, in {} pixels of {height}",
                decoded[*pixel],
                area.len()
            ));
        }
    }
    Ok(areas.len())
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn water_is_flat(
        seed in 0..1000_u64,
        (width, height) in (30..300_usize, 30..300_usize),
        side in prop::sample::select(&[16_u16, 18, 32, 64, 256][..]),
        ground in prop::sample::select(&[Ground::Lakes, Ground::Terraces, Ground::WholeMetres, Ground::Sea][..]),
        gaps in prop::sample::select(&[Gaps::None, Gaps::Holes, Gaps::Half][..]),
        codec in prop::sample::select(&[Codec::Integers, Codec::Context(Profile::Fast), Codec::Context(Profile::Fast)][..]),
        rate in rates(),
        effort in 0..3_u8,
    ) {
        let recipe = Recipe { seed, width, height, side, ground, gaps, codec, rate, effort, embeds_model: false };
        if let Err(ripple) = ripples(&recipe) {
            prop_assert!(false, "{}", ripple);
        }
    }
}

/// Ponds that touch, in tiles and trees that hold few pixels of each: at every rate, by every codec.
#[test]
fn ponds_right_beside_each_other_are_flat() {
    for codec in [Codec::Integers, Codec::Context(Profile::Fast)] {
        for rate in [
            Rate::MaxError(0.5),
            Rate::MaxError(0.01),
            Rate::Rmse(0.3),
            Rate::Bpp(6.0),
            Rate::Step(4.0),
        ] {
            let recipe = Recipe {
                seed: 5,
                width: 290,
                height: 280,
                side: 32,
                ground: Ground::Lakes,
                gaps: Gaps::None,
                codec,
                rate,
                effort: 1,
                embeds_model: false,
            };
            let found =
                ripples(&recipe).unwrap_or_else(|ripple| panic!("{codec:?} {rate:?}: {ripple}"));
            assert!(found > 3, "{codec:?} {rate:?}: {found} areas");
        }
    }
}
