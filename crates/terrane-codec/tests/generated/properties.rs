//! What holds for every file. `PROPTEST_CASES` asks for more cases than the few that every run tries.

use proptest::prelude::*;
use terrane_codec::format::Window;
use terrane_codec::{Error, Profile, Rate};

use crate::recipe::{Codec, Gaps, Ground, Recipe, crop, level_window, levels, open};

pub(crate) fn cases(count: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let cases = asked.and_then(|text| text.parse().ok()).unwrap_or(count);
    ProptestConfig {
        cases,
        // Beside the tests, to be committed.
        failure_persistence: Some(Box::new(
            proptest::test_runner::FileFailurePersistence::WithSource("regressions"),
        )),
        ..ProptestConfig::default()
    }
}

fn rates() -> impl Strategy<Value = Rate> {
    let of = |values: &'static [f64]| prop::sample::select(values);
    prop_oneof![
        3 => Just(Rate::Lossless),
        4 => of(&[5.0, 0.5, 0.1, 0.01, 0.001]).prop_map(Rate::MaxError),
        1 => of(&[1.0, 0.1, 0.01]).prop_map(Rate::Rmse),
        1 => of(&[8.0, 3.0, 1.0]).prop_map(Rate::Bpp),
    ]
}

fn codecs() -> impl Strategy<Value = Codec> {
    prop_oneof![
        3 => Just(Codec::Integers),
        6 => Just(Codec::Context(Profile::Fast)),
        1 => Just(Codec::Context(Profile::Standard)),
    ]
}

/// Recipes of rasters up to so many pixels wide and high.
fn recipes(size: usize) -> impl Strategy<Value = Recipe> {
    let parts = (
        0..1000_u64,
        (1..=size, 1..=size),
        prop::sample::select(&[16_u16, 18, 32, 64, 256][..]),
        prop::sample::select(&Ground::ALL[..]),
        prop::sample::select(&Gaps::ALL[..]),
        codecs(),
        rates(),
        0..3_u8,
    );
    parts.prop_map(
        |(seed, (width, height), side, ground, gaps, codec, rate, effort)| Recipe {
            seed,
            width,
            height,
            side,
            ground,
            gaps,
            codec,
            rate,
            effort,
            embeds_model: false,
        },
    )
}

/// The file of a recipe; `None` where a tile cannot have its rate, which is said.
pub(crate) fn made(recipe: &Recipe) -> Option<Vec<u8>> {
    match recipe.encode(1) {
        Ok((file, _)) => Some(file),
        Err(Error::Unreachable { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn is_same(a: &[f64], b: &[f64]) -> bool {
    let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// A height of an overview that lies farther beyond all those of full resolution than steep ground takes it, where the rate
/// keeps overviews near.
fn beyond_the_ground(recipe: &Recipe, levels: &[Vec<f64>]) -> Option<f64> {
    let bound = match recipe.rate {
        Rate::Lossless => 0.0,
        Rate::MaxError(bound) => bound,
        _ => return None,
    };
    let valid = |level: usize| {
        levels[level]
            .iter()
            .copied()
            .filter(|height| !height.is_nan())
    };
    let (lowest, highest) = (
        valid(0).fold(f64::INFINITY, f64::min),
        valid(0).fold(f64::NEG_INFINITY, f64::max),
    );
    (1..levels.len()).find_map(|level| {
        let rounding = 1e-9 * lowest.abs().max(highest.abs());
        let most = (highest - lowest) + bound * f64::from(2 << level) + rounding;
        valid(level).find(|height| lowest - height > most || height - highest > most)
    })
}

/// Found by the second reader: the last columns of an overview lay nearly at the same place, and one pixel was 440 m high where
/// the ground is 155 to 240 m.
#[test]
fn a_narrow_last_tile_stays_near_the_ground() {
    let recipe = Recipe::of_number(1385);
    assert_eq!((recipe.width, recipe.height, recipe.side), (171, 17, 16));
    let levels = levels(&open(&made(&recipe).unwrap()));
    assert_eq!(beyond_the_ground(&recipe, &levels), None);
}

proptest! {
    #![proptest_config(cases(48))]

    /// Every height is as near as was asked for, what is missing stays so and nothing else does, and the head says what
    /// there is.
    #[test]
    fn what_comes_back_is_what_was_asked_for(recipe in recipes(90)) {
        let source = recipe.heights();
        let Some(file) = made(&recipe) else { return Ok(()) };
        let terrain = open(&file);
        terrain.reader().check_layout().unwrap();
        let levels = levels(&terrain);
        let (mut largest, mut squares, mut pixels) = (0.0_f64, 0.0, 0_u64);
        let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
        for (index, (height, back)) in source.iter().zip(&levels[0]).enumerate() {
            prop_assert_eq!(height.is_nan(), back.is_nan(), "pixel {}", index);
            if back.is_nan() {
                continue;
            }
            if recipe.rate == Rate::Lossless {
                prop_assert_eq!(height.to_bits(), back.to_bits(), "pixel {}: {} {}", index, height, back);
            }
            largest = largest.max((height - back).abs());
            squares += (height - back).powi(2);
            pixels += 1;
            (lowest, highest) = (lowest.min(*back), highest.max(*back));
        }
        if let Rate::MaxError(bound) = recipe.rate {
            prop_assert!(largest <= bound, "{} of {}", largest, bound);
        }
        let rmse = (squares / pixels.max(1) as f64).sqrt();
        if let Rate::Rmse(target) = recipe.rate {
            prop_assert!(rmse <= 1.02 * target, "{} of {}", rmse, target);
        }
        let said = terrain.header().statistics;
        prop_assert_eq!(said.pixels, pixels);
        if pixels > 0 {
            prop_assert_eq!(said.max_error_m, largest);
            prop_assert_eq!((said.lowest_m, said.highest_m), (lowest, highest));
            prop_assert!((said.rmse_m - rmse).abs() <= 1e-9 * rmse, "{} {}", said.rmse_m, rmse);
        }
        // A pixel of an overview has data where one of those below it has.
        for (level, pair) in levels.windows(2).enumerate() {
            let below = level_window(&terrain, level as u8);
            let above = level_window(&terrain, level as u8 + 1);
            for (index, height) in pair[1].iter().enumerate() {
                let (column, row) = (index % above.width * 2, index / above.width * 2);
                let has_data = (row..(row + 2).min(below.height))
                    .flat_map(|row| (column..(column + 2).min(below.width)).map(move |column| (column, row)))
                    .any(|(column, row)| !pair[0][row * below.width + column].is_nan());
                prop_assert_eq!(!height.is_nan(), has_data, "level {}, pixel {}", level + 1, index);
                prop_assert!(height.is_nan() || height.is_finite());
            }
        }
        prop_assert_eq!(beyond_the_ground(&recipe, &levels), None);
    }

    /// A window is that part of the whole, read with a cache or on several threads.
    #[test]
    fn windows_are_parts_of_the_whole(recipe in recipes(90), places in prop::collection::vec(any::<[u16; 4]>(), 4)) {
        let Some(file) = made(&recipe) else { return Ok(()) };
        let (terrain, cold) = (open(&file), open(&file));
        for (level, heights) in levels(&terrain).iter().enumerate() {
            let whole = level_window(&terrain, level as u8);
            for place in &places {
                let [column, row, width, height] = place.map(usize::from);
                let (column, row) = (column % whole.width, row % whole.height);
                let window = Window {
                    column,
                    row,
                    width: 1 + width % (whole.width - column),
                    height: 1 + height % (whole.height - row),
                };
                let expected = crop(heights, whole.width, window);
                let found = cold.read(level as u8, window).unwrap();
                prop_assert!(is_same(&found, &expected), "{:?}", window);
                let found = cold.read_with(level as u8, window, 3).unwrap();
                prop_assert!(is_same(&found, &expected), "{:?} on threads", window);
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(24))]

    /// Threads, shards and a stop on the way change no byte.
    #[test]
    fn a_file_is_the_same_however_it_is_made(recipe in recipes(300), jobs in 2..9_usize, shards in 1..7_usize, trees in 1..4_usize) {
        // Trees of few pixels, so that there are several.
        let recipe = Recipe { side: 16 + recipe.side % 7 / 2 * 2, ..recipe };
        let Some(file) = made(&recipe) else { return Ok(()) };
        prop_assert!(recipe.encode(jobs).unwrap().0 == file, "{} threads", jobs);
        prop_assert!(recipe.encode_in_shards(shards).unwrap() == file, "{} shards", shards);
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        if recipe.encode_until(jobs, Some(&journal), trees).is_err() {
            let length = std::fs::metadata(&journal).unwrap().len();
            // What was written last may be cut off.
            let cut = std::fs::OpenOptions::new().write(true).open(&journal).unwrap();
            cut.set_len(length - length.min(recipe.seed % 50)).unwrap();
        }
        let (resumed, _) = recipe.encode_until(jobs, Some(&journal), usize::MAX).unwrap();
        prop_assert!(resumed == file, "stopped after {} trees", trees);
    }
}

/// Found by the properties above: a tile of one height and trees of whole metres lost the sign of −0.
#[test]
fn a_zero_below_zero_comes_back() {
    let negative = |height: &f64| height.to_bits() == (-0.0_f64).to_bits();
    for codec in [Codec::Integers, Codec::Context(Profile::Fast)] {
        for (ground, gaps, side) in [
            (Ground::Odd, Gaps::AllButOne, 16),
            (Ground::Sea, Gaps::None, 64),
            (Ground::Sea, Gaps::Holes, 16),
        ] {
            let recipe = Recipe {
                seed: 438,
                width: 57,
                height: 73,
                side,
                ground,
                gaps,
                codec,
                rate: Rate::Lossless,
                effort: 1,
                embeds_model: false,
            };
            let source = recipe.heights();
            assert!(source.iter().any(negative), "{ground:?}");
            let heights = levels(&open(&made(&recipe).unwrap())).remove(0);
            assert!(is_same(&heights, &source), "{ground:?} {codec:?}");
        }
    }
}
