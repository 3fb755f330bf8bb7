//! What is asked for is what comes out.

use terrane_codec::Rate;
use terrane_codec::format::{Coding, Layer, LevelTile, Method, RecordParts, TileId};

use crate::{Raster, context, integers, max_difference, open, record, tokens, whole};

#[test]
fn a_bound_holds_at_every_pixel_with_every_method() {
    let raster = Raster::hills(300, 270);
    for bound in [0.01, 0.05, 0.1, 0.5] {
        for codec in [
            integers(Rate::MaxError(bound)),
            tokens(Rate::MaxError(bound)),
            context(Rate::MaxError(bound)),
        ] {
            let (file, measured) = raster.encode(&codec, 2);
            let terrain = open(&file);
            let error = max_difference(&raster.heights, &whole(&terrain));
            assert!(error <= bound, "{error} above {bound}");
            assert!((error - measured.max_error_m).abs() < 1e-9);
            let header = terrain.header();
            assert_eq!(header.statistics.max_error_m, measured.max_error_m);
            assert_eq!(header.epsg, [2056, 5728]);
            assert_eq!(header.geo_keys.text, "CH1903+|");
        }
    }
}

#[test]
fn the_same_raster_gives_the_same_bytes_with_any_number_of_threads() {
    let raster = Raster::hills(700, 300);
    for codec in [
        integers(Rate::MaxError(0.1)),
        tokens(Rate::MaxError(0.1)),
        context(Rate::MaxError(0.1)),
    ] {
        let (one, _) = raster.encode(&codec, 1);
        for jobs in [2, 8] {
            assert!(raster.encode(&codec, jobs).0 == one, "{jobs} threads");
        }
    }
}

#[test]
fn an_encoding_that_was_stopped_goes_on_to_the_same_bytes() {
    // Three rows of two trees, and one tree of overviews above them.
    let (raster, side) = (Raster::hills(300, 700), 32);
    let codec = context(Rate::MaxError(0.1));
    let (expected, _) = raster.try_encode(&codec, 2, side).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hills.journal");
    assert!(
        raster
            .encode_until(&codec, 2, side, Some(&path), 2, None)
            .is_err()
    );
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(length > 1000);
    // The last entry was cut off in the middle, too.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(length - 100).unwrap();
    let (resumed, _) = raster
        .encode_until(&codec, 2, side, Some(&path), usize::MAX, None)
        .unwrap();
    assert!(resumed == expected);
    // Other settings do not take tiles from it.
    let (other, _) = raster
        .encode_until(
            &integers(Rate::MaxError(0.2)),
            2,
            side,
            Some(&path),
            usize::MAX,
            None,
        )
        .unwrap();
    let (expected, _) = raster
        .try_encode(&integers(Rate::MaxError(0.2)), 2, side)
        .unwrap();
    assert!(other == expected);
}

#[test]
fn lossless_is_exact() {
    let floats = Raster::hills(300, 200);
    let centimetres = Raster::new(300, 200, |column, row| {
        f64::from((f64::from((column * row) as u32 % 5000) * 0.01) as f32)
    });
    let doubles = Raster::new(40, 30, |column, row| {
        (column as f64).sqrt() - row as f64 / 3.0
    });
    let whole_metres = Raster::new(90, 80, |column, row| column as f64 - 2.0 * row as f64);
    let mut bits = Vec::new();
    for (raster, is_f32) in [
        (&floats, true),
        (&centimetres, true),
        (&doubles, false),
        (&whole_metres, false),
    ] {
        for codec in [context(Rate::Lossless), integers(Rate::Lossless)] {
            let codec = terrane_codec::TileEncoder { is_f32, ..codec };
            let (file, measured) = raster.encode(&codec, 2);
            assert_eq!(measured.max_error_m, 0.0);
            let difference = max_difference(&raster.heights, &whole(&open(&file)));
            assert!(!is_f32 || difference == 0.0);
            bits.push(file.len());
        }
    }
    // A slope of whole metres is predicted: next to a head of some 500 bytes there is almost nothing.
    assert!(bits[7] < 500 + 400, "{bits:?}");
}

#[test]
fn a_file_of_one_tile_is_little_more_than_its_tile() {
    let raster = Raster::hills(250, 240);
    for codec in [
        context(Rate::MaxError(0.1)),
        context(Rate::Lossless),
        context(Rate::Bpp(0.5)),
        integers(Rate::MaxError(0.1)),
        tokens(Rate::Tokens),
        tokens(Rate::MaxError(0.1)),
    ] {
        let (file, _) = raster.encode(&codec, 2);
        let terrain = open(&file);
        let tile = terrain.header().pyramid.tile(0).unwrap();
        assert_eq!(terrain.header().pyramid.tiles(), 1);
        let bytes = terrain.reader().bytes(tile).unwrap().unwrap();
        let parts = RecordParts::of(&bytes).unwrap();
        let payload = parts.mask + parts.flats + parts.layer + parts.residual;
        let beside = file.len() as u64 - payload;
        assert!(beside <= 600, "{}: {beside} bytes", codec.method);
    }
}

#[test]
fn rmse_and_bits_come_out_as_asked() {
    let raster = Raster::hills(512, 256);
    for target in [0.02, 0.2] {
        for codec in [
            integers(Rate::Rmse(target)),
            tokens(Rate::Rmse(target)),
            context(Rate::Rmse(target)),
        ] {
            let (_, measured) = raster.encode(&codec, 2);
            assert!(
                measured.rmse_m() <= target * 1.0001,
                "{}",
                measured.rmse_m()
            );
        }
        let (_, measured) = raster.encode(&integers(Rate::Rmse(target)), 2);
        assert!(measured.rmse_m() > 0.9 * target, "{}", measured.rmse_m());
    }
    for target in [1.5, 3.0] {
        for codec in [
            integers(Rate::Bpp(target)),
            tokens(Rate::Bpp(target)),
            context(Rate::Bpp(target)),
        ] {
            let (file, _) = raster.encode(&codec, 2);
            let terrain = open(&file);
            let tile = LevelTile {
                level: 0,
                id: TileId { column: 1, row: 0 },
            };
            let length = |tile| terrain.reader().locate(tile).unwrap().unwrap().length as f64;
            // A wavelet's tile needs the one above it, of which it is half.
            let above = if codec.method == Method::Context {
                length(tile.above(1)) / 2.0
            } else {
                0.0
            };
            let bpp = (length(tile) + above) * 8.0 / 65_536.0;
            // A wavelet's tile has a step in 16ths of the tree's, of which one takes up to 0.09 bits.
            assert!((bpp - target).abs() < 0.09, "{bpp} for {target}");
        }
    }
}

#[test]
fn fixed_widths_have_the_rates_of_the_paper_and_coded_ones_those_of_their_tables() {
    let raster = Raster::hills(256, 256);
    let model = terrane_networks::TrainedModel::built_in();
    for (bits, rate) in [(16, 2.0156), (8, 1.0117), (4, 0.5098), (2, 0.2588)] {
        let tile = LevelTile {
            level: 0,
            id: TileId { column: 0, row: 0 },
        };
        let sizes = [Coding::Fixed, Coding::Tables, Coding::Shortest].map(|coding| {
            let codec = terrane_codec::TileEncoder {
                bits,
                coding,
                ..tokens(Rate::Tokens)
            };
            let (file, _) = raster.encode(&codec, 1);
            let record = record(&open(&file), tile).unwrap().unwrap();
            let Layer::Tokens(bytes) = record.layer else {
                panic!("a tile of tokens was asked for");
            };
            bytes
        });
        // Overhead of the record: coding, width, lowest height and range.
        let bpp = (sizes[0].len() - 10) as f64 * 8.0 / 65_536.0;
        assert!((bpp - rate).abs() < 5e-5, "{bits} bits: {bpp}");
        let tokens =
            terrane_codec::format::Tokens::parse(&sizes[1], &model.tables, 257 * 32).unwrap();
        let ideal = model.tables.ideal_bits(&tokens).unwrap() / 8.0;
        let coded = (sizes[1].len() - 10 - 64) as f64;
        assert!(
            (coded / ideal - 1.0).abs() < 0.01,
            "{bits} bits: {coded} for {ideal}"
        );
        assert!(sizes[2].len() <= sizes[1].len());
    }
}
