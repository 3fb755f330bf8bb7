//! What is lost saves bytes: no file with an error is longer than the one without. Bounds are above half of what separates a
//! float of 32 bits from the next: below that, a bound on decimals asks for more than a lossless file of floats holds.

use proptest::prelude::*;
use terrane_codec::{Profile, Rate};

use crate::properties::{cases, made};
use crate::recipe::{Codec, Gaps, Ground, Recipe, levels, open};

fn rates() -> impl Strategy<Value = Rate> {
    let of = |values: &'static [f64]| prop::sample::select(values);
    prop_oneof![
        5 => of(&[2.0, 1.0, 0.5, 0.1, 0.01, 0.001, 1e-4]).prop_map(Rate::MaxError),
        1 => of(&[1.0, 0.01, 1e-4]).prop_map(Rate::Rmse),
        1 => of(&[100.0, 30.0, 8.0]).prop_map(Rate::Bpp),
        2 => of(&[2.0, 0.3, 0.01, 1e-4]).prop_map(Rate::Step),
    ]
}

/// What is wrong with the file of a recipe beside the one without loss.
fn beside_lossless(recipe: Recipe) -> Option<String> {
    let lossless = made(&Recipe {
        rate: Rate::Lossless,
        ..recipe
    })?
    .len();
    let file = made(&recipe)?;
    if file.len() > lossless {
        return Some(format!("{} bytes, {lossless} without loss", file.len()));
    }
    // The tie is won by what loses nothing, as floats of 32 bits where the source has those.
    let source = recipe.heights();
    let back = levels(&open(&file)).remove(0);
    let is_f32 = recipe.encoder().is_f32;
    let is_same = |(a, b): (&f64, &f64)| a == b || a.is_nan() || is_f32 && *a as f32 == *b as f32;
    (file.len() == lossless && !source.iter().zip(&back).all(is_same))
        .then(|| format!("{lossless} bytes, but with loss"))
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn no_file_is_longer_than_the_one_without_loss(
        seed in 0..1000_u64,
        (width, height) in (1..150_usize, 1..150_usize),
        side in prop::sample::select(&[16_u16, 32, 64, 256][..]),
        ground in prop::sample::select(&Ground::ALL[..]),
        gaps in prop::sample::select(&Gaps::ALL[..]),
        codec in prop::sample::select(&[Codec::Integers, Codec::Context(Profile::Fast), Codec::Context(Profile::Fast)][..]),
        rate in rates(),
        effort in 0..3_u8,
    ) {
        let recipe = Recipe { seed, width, height, side, ground, gaps, codec, rate, effort, embeds_model: false };
        if let Some(wrong) = beside_lossless(recipe) {
            prop_assert!(false, "{}", wrong);
        }
    }
}

/// Found from outside: counts near 2³¹ at every bound, floats with scattered gaps at a tenth of a millimetre, more bits than
/// there are, and whole metres within half a metre.
#[test]
fn types_of_sources_stay_where_nothing_is_lost() {
    for codec in [Codec::Integers, Codec::Context(Profile::Fast)] {
        for (ground, gaps, rate) in [
            (Ground::Counts, Gaps::None, Rate::MaxError(0.1)),
            (Ground::Counts, Gaps::None, Rate::MaxError(2.0)),
            (Ground::Hills, Gaps::Pixels, Rate::MaxError(1e-4)),
            (Ground::Noise, Gaps::Pixels, Rate::MaxError(1e-4)),
            (Ground::Centimetres, Gaps::None, Rate::Bpp(100.0)),
            (Ground::Centimetres, Gaps::None, Rate::Step(1e-6)),
            (Ground::WholeMetres, Gaps::None, Rate::MaxError(0.5)),
        ] {
            let recipe = Recipe {
                seed: 11,
                width: 150,
                height: 130,
                side: 64,
                ground,
                gaps,
                codec,
                rate,
                effort: 1,
                embeds_model: false,
            };
            let wrong = beside_lossless(recipe);
            assert_eq!(wrong, None, "{codec:?} {ground:?} {rate:?}");
            // A wavelet may take fewer bytes with half a metre to lose.
            let is_whole = ground == Ground::Counts
                || ground == Ground::WholeMetres && codec == Codec::Integers;
            if is_whole && rate != Rate::MaxError(2.0) {
                // Then a decoded raster has the source's type.
                let terrain = open(&made(&recipe).unwrap());
                assert_eq!(
                    terrain.header().statistics.max_error_m,
                    0.0,
                    "{codec:?} {ground:?}"
                );
            }
        }
    }
}
