//! Every codec of this program on a generated tile, and what Python printed once.

use super::codec::Goal;
use super::curve::Errors;
use super::*;

const SIDE: usize = 64;

/// Hills, a ridge and some roughness, in metres.
fn heights(phase: f64) -> Vec<f32> {
    (0..SIDE * SIDE)
        .map(|index| {
            let (x, y) = ((index % SIDE) as f64, (index / SIDE) as f64);
            let hills = 8.0 * (x / 11.0 + phase).sin() * (y / 17.0).cos();
            let ridge = -0.2 * (x - y + 10.0 * phase).abs();
            let rough = 0.05 * ((x * 12.9898 + y * 78.233 + phase).sin() * 43_758.545).fract();
            (431.0 + hills + ridge + rough) as f32
        })
        .collect()
}

fn tile() -> Tile {
    Tile::new(heights(0.3), SIDE).unwrap().unwrap()
}

fn silent(_: usize, _: usize) {}

#[test]
fn every_codec_gives_better_heights_for_more_bytes() {
    let tile = tile();
    for codec in built_in().0 {
        let name = codec.name();
        let outcome = codec.qualities().into_iter().filter_map(|quality| {
            let coded = codec.code(&tile, Goal::Quality(quality)).unwrap()?;
            Some((coded.bytes, tile.measure(&coded).unwrap().rmse_m))
        });
        let points: Vec<(usize, f64)> = outcome.collect();
        assert!(points.len() >= 20, "{name}: {} points", points.len());
        for pair in points.windows(2) {
            // A few bytes up and down are a head's or a table's, and near float precision luck of the packer.
            assert!(
                pair[1].0 + pair[1].0 / 50 + 64 >= pair[0].0,
                "{name}: {pair:?}"
            );
        }
        let (first, last) = (points[0], points[points.len() - 1]);
        assert!(last.0 > 4 * first.0, "{name}: {first:?} to {last:?}");
        assert!(last.1 < first.1 / 50.0, "{name}: {first:?} to {last:?}");
    }
}

#[test]
fn what_promises_a_bound_keeps_it_and_what_promises_all_gives_all() {
    let tile = tile();
    let (codecs, absent) = built_in();
    let mut bounded = Vec::new();
    let mut lossless = Vec::new();
    for codec in &codecs {
        for bound_m in BOUNDS_M {
            if let Some((coded, measures)) = codec::within(codec.as_ref(), &tile, bound_m).unwrap()
            {
                assert!(measures.max_error_m <= bound_m, "{}", codec.name());
                assert!(coded.bytes > 100);
                bounded.push(codec.name());
            }
        }
        let rounded = tile.rounded(LOSSLESS_STEP_M).unwrap().unwrap();
        let goal = Goal::Lossless(LOSSLESS_STEP_M);
        if let Some(coded) = codec.code(&rounded, goal).unwrap() {
            assert_eq!(coded.heights, rounded.heights, "{}", codec.name());
            lossless.push(codec.name());
        }
    }
    let jpeg2000 = usize::from(cfg!(feature = "openjpeg"));
    let zfp = usize::from(cfg!(feature = "zfp"));
    assert_eq!(bounded.len(), BOUNDS_M.len() * (codecs.len() - jpeg2000));
    assert_eq!(lossless.len(), codecs.len() - zfp);
    let off = [
        cfg!(feature = "openjpeg"),
        cfg!(feature = "zfp"),
        cfg!(feature = "zstd"),
    ];
    assert_eq!(absent.len(), off.iter().filter(|is_on| !*is_on).count());
}

#[test]
fn a_flat_tile_is_left_out_and_a_broken_one_refused() {
    assert_eq!(Tile::new(vec![3.0; 16], 4).unwrap(), None);
    assert!(matches!(
        Tile::new(vec![3.0; 15], 4),
        Err(CodecError::TileSize { side: 4, found: 15 })
    ));
    let mut broken = heights(0.0);
    broken[70] = f32::NAN;
    assert!(matches!(
        Tile::new(broken, SIDE),
        Err(CodecError::NotAHeight { index: 70 })
    ));
    let options = Options {
        python: None,
        others: Vec::new(),
        progress: &silent,
    };
    assert!(matches!(
        codecs(vec![vec![3.0; 16]], 4, &options),
        Err(CodecError::NoTiles { flat: 1 })
    ));
}

/// A curve of three tiles, the last of which is beyond all sense.
fn other() -> Curve {
    let point = |bpp, psnr_db| Point {
        quality: 8.0,
        bytes: 512,
        bpp,
        errors: Errors {
            psnr_db,
            rmse_m: 0.1,
            max_error_m: 0.4,
            gradient_rmse_m_per_px: 0.1,
            laplacian_rmse_m_per_px2: 0.2,
        },
    };
    let tile = |least| vec![point(0.5, least), point(2.0, least + 10.0)];
    Curve {
        codec: "another".to_owned(),
        is_variant: false,
        tiles: vec![tile(40.0), tile(42.0), tile(900.0)],
    }
}

#[test]
fn tables_name_every_codec_that_is_absent_and_those_measured_elsewhere() {
    let mut options = Options {
        python: None,
        others: vec![other()],
        progress: &silent,
    };
    let tiles = vec![heights(0.3), heights(1.1), vec![7.0; SIDE * SIDE]];
    let (comparison, section) = codecs(tiles, SIDE, &options).unwrap();
    assert_eq!((comparison.tiles.len(), comparison.flat), (2, 1));
    let absent = &section.paragraphs[1];
    for name in [
        "HTJ2K 9/7",
        "JPEG XL",
        "HEVC intra",
        "AVIF",
        "SPERR",
        "SZ3",
        "JPEG-LS",
    ] {
        assert!(absent.contains(name), "{name} in {absent}");
    }
    assert!(absent.contains("pip install numpy imagecodecs av"));
    let rows = |name: &str| {
        let table = section.tables.iter().find(|table| table.name == name);
        table.unwrap().rows.len()
    };
    let count = built_in().0.len();
    // One more for the paper, and one from elsewhere.
    assert_eq!(rows("codecs"), count + 2);
    let last = comparison.outcomes.curves.last().unwrap();
    assert_eq!(last.codec, "another");
    // Without the flat tile.
    assert!((last.at(1.0).unwrap().errors.psnr_db - 46.0).abs() < 1e-9);
    assert_eq!(
        rows("codecs-lossless"),
        count - usize::from(cfg!(feature = "zfp"))
    );
    assert_eq!(section.figures.len(), 4);
    options.others[0].tiles.pop();
    assert!(matches!(
        codecs(vec![heights(0.3)], SIDE, &options),
        Err(CodecError::OtherTiles {
            found: 2,
            expected: 1,
            ..
        })
    ));
}

/// A small tile and what `crates/terrane-bench/src/codecs/peers.py` printed of it (`--only SZ3 JPEG-LS HEVC` with av missing).
fn recorded() -> (Tile, String) {
    let heights: Vec<f32> = (0..64)
        .map(|index| (index % 8 * 3 + index / 8 * index / 8) as f32)
        .collect();
    let tile = Tile::new(heights, 8).unwrap().unwrap();
    (tile, include_str!("recorded.json").to_owned())
}

#[test]
fn the_output_of_python_is_read() {
    let (tile, json) = recorded();
    let outcomes = python::parse(json.as_bytes(), &[tile]).unwrap();
    let names: Vec<&str> = outcomes
        .curves
        .iter()
        .map(|curve| curve.codec.as_str())
        .collect();
    assert_eq!(names, ["quantised, JPEG-LS", "SZ3"]);
    assert!(outcomes.curves[0].is_variant && !outcomes.curves[1].is_variant);
    assert_eq!(outcomes.lossless[0].codec, "JPEG-LS");
    assert_eq!(outcomes.bounds.len(), 2 * BOUNDS_M.len());
    assert!(
        outcomes
            .bounds
            .iter()
            .all(|bounded| bounded.mean().is_some())
    );
    assert_eq!(outcomes.absent[0].name, "HEVC intra, 12 bits (x265 slow)");
}

#[test]
fn output_that_measures_otherwise_or_names_other_tiles_is_refused() {
    let (tile, json) = recorded();
    let refuse = |json: String| {
        let error = python::parse(json.as_bytes(), std::slice::from_ref(&tile)).unwrap_err();
        error.to_string()
    };
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut other = value.clone();
    other["check"][0][1] = 1.0.into();
    assert!(refuse(other.to_string()).contains("measures 1 on tile 0"));
    let mut other = value.clone();
    other["codecs"][0]["points"][0][0] = 1.into();
    assert!(refuse(other.to_string()).contains("a tile that is not there"));
    let mut other = value.clone();
    other["codecs"][0]["bounds"][0][4] = 9.0.into();
    assert!(refuse(other.to_string()).contains("beyond its bound"));
    let mut other = value;
    other["format"] = 2.into();
    assert!(refuse(other.to_string()).contains("format is 2"));
    assert!(refuse(json[..200].to_owned()).contains("cannot be used"));
}
