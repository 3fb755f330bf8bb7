//! What every tile of a file is to reach by itself.

use terrane_codec::{Profile, Rate};

use crate::recipe::{Codec, Gaps, Ground, Recipe, level_window, open};

/// Four tiles and one above them.
fn recipe(ground: Ground, rate: Rate) -> Recipe {
    Recipe {
        seed: 5,
        width: 256,
        height: 256,
        side: 128,
        ground,
        gaps: Gaps::None,
        codec: Codec::Context(Profile::Fast),
        rate,
        effort: 1,
        embeds_model: false,
    }
}

/// Bits per pixel of every tile, with its share of the one above.
fn rates(file: &[u8]) -> Vec<f64> {
    let terrain = open(file);
    let pyramid = &terrain.header().pyramid;
    let bits = |tile| {
        let place = terrain.reader().locate(tile).unwrap();
        place.map_or(0, |place| place.length) as f64 * 8.0
    };
    let root = pyramid.tree(0).unwrap();
    let (finest, above): (Vec<_>, Vec<_>) = pyramid
        .tree_tiles(root)
        .into_iter()
        .partition(|tile| tile.level == 0);
    let above: f64 = above.into_iter().map(bits).sum();
    let share = above / (256.0 * 256.0);
    finest
        .into_iter()
        .map(|tile| bits(tile) / (128.0 * 128.0) + share)
        .collect()
}

/// Symbols that are chosen by their cost become zeros all at once in noise: without another quantiser its rates jump from
/// 0.05 to 1.6 bits.
#[test]
fn every_tile_has_its_rate_in_noise_too() {
    for ground in [Ground::Noise, Ground::Hills] {
        for target in [0.5, 1.0, 2.0] {
            let (file, _) = recipe(ground, Rate::Bpp(target)).encode(2).unwrap();
            for rate in rates(&file) {
                // Where nearly all of a low rate goes to the tile above, all have one step, and what it gives them.
                let has_one_step = matches!(ground, Ground::Hills) && target < 1.0;
                let least = if has_one_step { 0.96 } else { 0.98 };
                let part = rate / target;
                assert!(
                    (least..1.02).contains(&part),
                    "{ground:?}: {rate} for {target}"
                );
            }
        }
    }
}

#[test]
fn every_tile_has_its_error_in_noise_too() {
    for (ground, target) in [
        (Ground::Noise, 600.0),
        (Ground::Noise, 1000.0),
        (Ground::Hills, 0.3),
    ] {
        let recipe = recipe(ground, Rate::Rmse(target));
        let (file, _) = recipe.encode(2).unwrap();
        let terrain = open(&file);
        let decoded = terrain.read(0, level_window(&terrain, 0)).unwrap();
        let heights = recipe.heights();
        for (column, row) in [(0, 0), (128, 0), (0, 128), (128, 128)] {
            let squares = (0..128 * 128).map(|index| {
                let at = (row + index / 128) * 256 + column + index % 128;
                (heights[at] - decoded[at]).powi(2)
            });
            let rmse = (squares.sum::<f64>() / (128.0 * 128.0)).sqrt();
            let part = rmse / target;
            assert!(
                part <= 1.0 && part > 0.98,
                "{ground:?}: {rmse} for {target}"
            );
        }
    }
}

#[test]
fn a_rate_above_the_lossless_one_loses_nothing() {
    for codec in [Codec::Context(Profile::Fast), Codec::Integers] {
        let lossy = Recipe {
            codec,
            ..recipe(Ground::WholeMetres, Rate::Bpp(30.0))
        };
        let lossless = Recipe {
            rate: Rate::Lossless,
            ..lossy
        };
        let (lossy, measured) = lossy.encode(2).unwrap();
        let (lossless, _) = lossless.encode(2).unwrap();
        assert_eq!(measured.max_error_m, 0.0, "{codec:?}");
        // The overviews of integers have the rate as well.
        assert!(lossy.len() < 2 * lossless.len(), "{codec:?}");
    }
}
