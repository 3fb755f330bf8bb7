//! Golden files: their symbols are exact, their heights within what each case states.
//!
//! With `ADD_VECTORS=1` cases that are not there yet are written; an existing one is never changed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use terrane_codec::context::{Area, Codec, Part, Picture, Transform};
use terrane_codec::format::{Coding, Layer, LevelTile, MemoryLimit, Method, Tokens, Window};
use terrane_codec::{FileModel, Profile, Rate, Terrain, TileEncoder};
use terrane_networks::TrainedModel;

use crate::{Raster, integers, open, record, tokens, whole};

#[derive(Serialize, Deserialize)]
struct Case {
    /// What the case is there for.
    tests: String,
    /// Heights may differ by this much in the mean square.
    rms_m: f64,
    /// And by this much at any pixel.
    peak_m: f64,
}

/// By how much heights of overviews may differ.
const OVERVIEW_M: f64 = 1e-6;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}

/// A small raster with a gap.
fn raster(width: usize, height: usize) -> Raster {
    Raster::new(width, height, |column, row| {
        let (x, y) = (column as f64, row as f64);
        if (x - 20.0).hypot(y - 21.0) < 6.3 {
            return f64::NAN;
        }
        let height = 812.0
            + 4.0 * (x / 11.0).sin()
            + 3.0 * (y / 9.0).cos()
            + ((column * 31 + row * 17) % 23) as f64 / 40.0;
        f64::from(height as f32)
    })
}

fn doubles() -> Raster {
    Raster::new(20, 18, |column, row| {
        (column as f64 - 7.5) * (row as f64).sqrt() / 3.0
    })
}

fn with(codec: TileEncoder, bits: u8, coding: Coding) -> TileEncoder {
    TileEncoder {
        bits,
        coding,
        ..codec
    }
}

type Made = (&'static str, &'static str, Raster, TileEncoder, u16);

/// The context codec with the small model of the golden files, which they embed.
fn small(rate: Rate) -> TileEncoder {
    let bytes = std::fs::read(folder().join(CONTEXT_MODEL)).unwrap();
    TileEncoder {
        method: Method::Context,
        model: Some(
            terrane::MODELS
                .load(&bytes, MemoryLimit::default())
                .unwrap(),
        ),
        ..integers(rate)
    }
}

const CONTEXT_MODEL: &str = "context.safetensors";

/// The cases; adding one never changes another.
#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn cases() -> Vec<Made> {
    let neural = |rate| tokens(rate);
    let shortest = Coding::Shortest;
    vec![
        (
            "integers-step",
            "integers with a step, a mask, ragged tiles, overviews",
            raster(75, 52),
            integers(Rate::MaxError(0.1)),
            32,
        ),
        (
            "integers-ponds",
            "flat areas of integers, also where they touch",
            ponds(),
            integers(Rate::MaxError(0.1)),
            64,
        ),
        (
            "integers-centimetres",
            "lossless with a step of a survey, rounded to 32-bit floats",
            Raster::new(40, 30, |x, y| {
                f64::from((f64::from((x * 7 + y * y) as u32) * 0.01) as f32)
            }),
            integers(Rate::Lossless),
            32,
        ),
        (
            "integers-bits32",
            "lossless by the bits of 32-bit floats",
            raster(48, 40),
            integers(Rate::Lossless),
            64,
        ),
        (
            "integers-bits64",
            "lossless by the bits of 64-bit floats",
            doubles(),
            TileEncoder {
                is_f32: false,
                ..integers(Rate::Lossless)
            },
            64,
        ),
        (
            "absent-tile",
            "a tile without data beside others",
            Raster::new(64, 32, |x, _| if x < 32 { f64::NAN } else { x as f64 }),
            integers(Rate::MaxError(0.5)),
            32,
        ),
        (
            "empty",
            "no data at all",
            Raster::new(20, 20, |_, _| f64::NAN),
            integers(Rate::MaxError(0.5)),
            32,
        ),
        (
            "tokens-int16",
            "tokens of 16 bits",
            raster(64, 48),
            with(neural(Rate::Tokens), 16, shortest),
            256,
        ),
        (
            "tokens-int8",
            "tokens of 8 bits, coded by what the tile teaches",
            raster(64, 48),
            with(neural(Rate::Tokens), 8, shortest),
            256,
        ),
        (
            "tokens-int8-tables",
            "tokens of 8 bits, coded by tables",
            raster(64, 48),
            with(neural(Rate::Tokens), 8, Coding::Tables),
            256,
        ),
        (
            "tokens-int16-tables",
            "tokens of 16 bits, coded by tables",
            raster(64, 48),
            with(neural(Rate::Tokens), 16, Coding::Tables),
            256,
        ),
        (
            "tokens-int4-fixed",
            "tokens of 4 bits, each in its width",
            raster(64, 48),
            with(neural(Rate::Tokens), 4, Coding::Fixed),
            256,
        ),
        (
            "tokens-int2-tables",
            "tokens of 2 bits",
            raster(64, 48),
            with(neural(Rate::Tokens), 2, Coding::Tables),
            256,
        ),
        (
            "tokens-remains",
            "tokens and what they leave over",
            raster(160, 130),
            with(neural(Rate::MaxError(0.2)), 8, shortest),
            256,
        ),
    ]
}

/// The context codec's.
fn context_cases() -> Vec<Made> {
    vec![
        (
            "context-bound",
            "trees of wavelets with corrections, masks, overviews, an embedded model",
            // Smooth, so that a wavelet is shorter than integers.
            Raster::new(140, 75, |x, y| {
                let (x, y) = (x as f64, y as f64);
                if (x - 30.0).hypot(y - 50.0) < 8.5 {
                    return f64::NAN;
                }
                300.0 + 9.0 * (x / 31.0).sin() * (y / 19.0).cos() + 0.3 * (x / 3.0 + y / 5.0).sin()
            }),
            small(Rate::MaxError(0.1)),
            32,
        ),
        (
            "context-lake",
            "flat areas within wavelets",
            Raster::new(333, 210, |x, y| {
                let (x, y) = (x as f64, y as f64);
                if (x - 90.0).hypot(y - 80.0) < 40.0 {
                    return 301.25;
                }
                300.0 + 9.0 * (x / 31.0).sin() * (y / 19.0).cos() + 0.3 * (x / 3.0 + y / 5.0).sin()
            }),
            small(Rate::MaxError(0.2)),
            64,
        ),
        (
            "context-ponds",
            "flat areas that touch, within wavelets",
            ponds(),
            small(Rate::MaxError(0.2)),
            64,
        ),
        (
            "context-deep",
            "storeys above storeys, tiles without details, gaps that whole tiles fall into",
            Raster::new(400, 330, |x, y| {
                let (x, y) = (x as f64, y as f64);
                if (x - 130.0).hypot(y - 150.0) < 70.0 {
                    return f64::NAN;
                }
                300.0 + 0.01 * x + 12.0 * (-(x - 300.0).hypot(y - 200.0) / 40.0).exp()
            }),
            small(Rate::Rmse(0.05)),
            16,
        ),
        (
            "context-per-tile",
            "finest tiles with steps of their own",
            raster(170, 130),
            small(Rate::Rmse(0.05)),
            32,
        ),
        (
            "context-rmse",
            "details of a tile of many levels",
            raster(130, 97),
            small(Rate::Rmse(0.01)),
            256,
        ),
        (
            "context-centimetres",
            "lossless details, rounded to 32-bit floats",
            // Rough, so that a wavelet is shorter than integers.
            Raster::new(150, 100, |x, y| {
                let hash = ((x as u64 * 0x9e37_79b9) ^ (y as u64 * 0xc2b2_ae3d))
                    .wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let noise =
                    [hash >> 20, hash >> 32, hash >> 44].map(|bits| (bits % 100) as f64 * 0.004);
                let noise: f64 = noise.iter().sum();
                let height = 40.0 + 7.0 * (x as f64 / 23.0).sin() * (y as f64 / 29.0).cos() + noise;
                f64::from(((height * 100.0).round() * 0.01) as f32)
            }),
            TileEncoder {
                method: Method::Context,
                model: Some(Profile::Standard.model()),
                ..integers(Rate::Lossless)
            },
            128,
        ),
        (
            "context-flat",
            "a tile of many levels of which most bands are all zero",
            Raster::new(420, 60, |x, y| {
                let bump = (x as f64 - 300.0).hypot(y as f64 - 30.0) / 12.0;
                12.0 + 0.0003 * x as f64 + 4.0 * (-bump * bump).exp()
            }),
            small(Rate::Rmse(0.02)),
            1024,
        ),
        (
            "context-slivers",
            "windows of one column and of few rows",
            Raster::new(65, 71, |x, y| {
                5.0 + (x as f64 / 4.0).sin() + (y as f64 / 7.0).cos()
            }),
            small(Rate::Rmse(0.05)),
            64,
        ),
    ]
}

/// The wavelet's picture of a tile, from its record and those above it; `None` where a tile is not stored by one.
fn picture(terrain: &Terrain, codec: &Codec, tile: LevelTile) -> Option<Picture> {
    let pyramid = &terrain.header().pyramid;
    let window = pyramid.window(tile).unwrap();
    let size = [window.width, window.height];
    let finer = usize::from(tile.level - pyramid.storey(tile.level));
    let record = record(terrain, tile).unwrap();
    let details = match record.map(|record| record.layer) {
        Some(Layer::Wavelet(layer)) => {
            let transform = if layer.is_lossless {
                Transform::Lossless
            } else {
                Transform::Lossy
            };
            return Some(codec.decode(&layer.bytes, size, transform, finer).unwrap());
        }
        Some(Layer::Details(details)) => Some(details),
        Some(_) => return None,
        None => None,
    };
    let parent = pyramid.parent(tile)?;
    let above = pyramid.window(parent).unwrap();
    let coarser = details.as_ref().map_or(0, |details| details.coarser);
    let whole = picture(terrain, codec, parent)?;
    let whole = if coarser == 0 {
        whole
    } else {
        whole.coarser(coarser)
    };
    let part = Part {
        picture: &whole,
        area: Area {
            column: window.column / 2 - above.column,
            row: window.row / 2 - above.row,
            width: window.width.div_ceil(2),
            height: window.height.div_ceil(2),
        },
    };
    let decoded = match details {
        Some(details) => codec.decode_details(part, &details.bytes, size, finer),
        None => codec.plain(part, size, finer),
    };
    Some(decoded.unwrap())
}

/// All symbols of full resolution as integers: of each tile the layer's, or the wavelet's pixels, then the residual or
/// the corrections.
fn symbols(terrain: &Terrain) -> Vec<i64> {
    let model = TrainedModel::built_in();
    let [count, channels] = model.token_shape();
    let embedded = terrain.reader().embedded_model(terrain.memory()).unwrap();
    let context = embedded.map(|bytes| {
        let model = terrane::MODELS.load(&bytes, MemoryLimit::default());
        model.unwrap()
    });
    let codec = context.as_ref().and_then(FileModel::context);
    let pyramid = &terrain.header().pyramid;
    let tiles = (0..pyramid.tiles()).map(|number| pyramid.tile(number).unwrap());
    let mut all = Vec::new();
    for tile in tiles.filter(|tile| tile.level == 0) {
        let record = record(terrain, tile).unwrap();
        match record.as_ref().map(|record| &record.layer) {
            Some(Layer::Integers(integers)) => all.extend(&integers.values),
            Some(Layer::Tokens(bytes)) => {
                let tokens = Tokens::parse(bytes, &model.tables, count * channels).unwrap();
                all.extend(tokens.symbols.iter().map(|&symbol| i64::from(symbol)));
            }
            // A tile without a record has data unless the tile above says that it has none.
            None if terrain.decode(tile).unwrap().is_none() => {}
            Some(Layer::Wavelet(_) | Layer::Details(_)) | None => {
                let picture = codec.and_then(|codec| picture(terrain, codec, tile));
                all.extend(picture.iter().flat_map(|picture| &picture.values().values));
            }
        }
        let residual = record.as_ref().and_then(|record| record.residual.as_ref());
        all.extend(residual.iter().flat_map(|residual| &residual.values));
        let corrections = record
            .as_ref()
            .and_then(|record| record.corrections.as_ref());
        if let Some(corrections) = corrections {
            let bumps = corrections.bumps.iter().flatten();
            all.extend(bumps.chain(&corrections.pixels));
        }
    }
    all
}

/// Heights of all levels above full resolution, one after another.
fn overviews(terrain: &Terrain) -> Vec<f64> {
    let pyramid = &terrain.header().pyramid;
    (1..pyramid.levels())
        .flat_map(|level| {
            let (width, height) = pyramid.size(level).unwrap();
            let window = Window::whole(width as usize, height as usize);
            terrain.read(level, window).unwrap()
        })
        .collect()
}

/// Ponds right beside each other, whose levels are no multiples of a step.
fn ponds() -> Raster {
    Raster::new(203, 150, |x, y| {
        let (column, row) = (x as f64, y as f64);
        match (x, y) {
            (20..110, 20..60) => 301.37,
            (110..150, 30..90) => 299.81,
            (40..110, 60..100) => 298.04,
            (60..140, 100..125) => 297.11,
            _ => {
                306.0
                    + 4.0 * (column / 31.0).sin() * (row / 19.0).cos()
                    + 0.3 * (column / 3.0).sin()
            }
        }
    })
}

fn add((name, tests, raster, codec, side): &Made) {
    let folder = folder().join(name);
    if folder.exists() {
        return;
    }
    std::fs::create_dir_all(&folder).unwrap();
    let small = std::fs::read(self::folder().join(CONTEXT_MODEL)).unwrap();
    let embedded = match &codec.model {
        Some(FileModel::Context(model)) if model.name == "conformance" => Some(&small[..]),
        Some(FileModel::Context(_)) => Some(Profile::Standard.bytes()),
        _ => None,
    };
    let (file, _) = raster.encode_embedding(codec, *side, embedded);
    let terrain = open(&file);
    let has_network = matches!(codec.model, Some(FileModel::Tokens(_)));
    let case = Case {
        tests: (*tests).to_owned(),
        rms_m: if has_network { 1e-4 } else { 0.0 },
        peak_m: if has_network { 5e-4 } else { 0.0 },
    };
    let bytes = |values: &[i64]| {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let heights: Vec<u8> = whole(&terrain)
        .iter()
        .flat_map(|height| height.to_le_bytes())
        .collect();
    std::fs::write(folder.join("symbols.i64"), bytes(&symbols(&terrain))).unwrap();
    std::fs::write(folder.join("heights.f64"), heights).unwrap();
    let overviews: Vec<u8> = overviews(&terrain)
        .iter()
        .flat_map(|height| height.to_le_bytes())
        .collect();
    std::fs::write(folder.join("overviews.f64"), overviews).unwrap();
    std::fs::write(folder.join("case.toml"), toml::to_string(&case).unwrap()).unwrap();
    std::fs::write(folder.join("input.trn"), file).unwrap();
}

#[test]
fn golden_files_are_read_as_ever() {
    if std::env::var_os("ADD_VECTORS").is_some() {
        cases().iter().chain(&context_cases()).for_each(add);
    }
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let name = folder.display().to_string();
        let case: Case =
            toml::from_str(&std::fs::read_to_string(folder.join("case.toml")).unwrap()).unwrap();
        let terrain = open(&std::fs::read(folder.join("input.trn")).unwrap());
        terrain.reader().check_layout().unwrap();
        let expected: Vec<i64> = numbers(&folder.join("symbols.i64"))
            .map(i64::from_le_bytes)
            .collect();
        assert!(symbols(&terrain) == expected, "{name}: symbols");
        let root = terrain.header().pyramid.tree(0).unwrap();
        if let (true, Some(first)) = (name.contains("context-"), record(&terrain, root).unwrap()) {
            assert!(
                matches!(first.layer, Layer::Wavelet(_)),
                "{name}: no picture"
            );
        }
        let expected = numbers(&folder.join("overviews.f64")).map(f64::from_le_bytes);
        let coarse = overviews(&terrain);
        assert_eq!(coarse.len(), expected.len(), "{name}");
        for (ours, golden) in coarse.iter().zip(expected) {
            let is_near = (ours - golden).abs() <= case.peak_m + OVERVIEW_M;
            assert!(
                is_near || ours.is_nan() && golden.is_nan(),
                "{name}: {ours} {golden}"
            );
        }
        let heights = whole(&terrain);
        let expected: Vec<f64> = numbers(&folder.join("heights.f64"))
            .map(f64::from_le_bytes)
            .collect();
        assert_eq!(heights.len(), expected.len(), "{name}");
        let (mut squares, mut peak, mut count) = (0.0, 0.0_f64, 0.0_f64);
        for (ours, golden) in heights.iter().zip(&expected) {
            assert_eq!(ours.is_nan(), golden.is_nan(), "{name}: gaps");
            if !ours.is_nan() {
                let error = (ours - golden).abs();
                squares += error * error;
                peak = peak.max(error);
                count += 1.0;
            }
        }
        let rms = (squares / count.max(1.0)).sqrt();
        assert!(
            rms <= case.rms_m && peak <= case.peak_m,
            "{name}: rms {rms}, peak {peak}"
        );
        seen += 1;
    }
    assert!(seen >= cases().len(), "{seen} cases");
}

fn numbers(path: &Path) -> impl ExactSizeIterator<Item = [u8; 8]> + use<> {
    let bytes = std::fs::read(path).unwrap();
    bytes
        .chunks_exact(8)
        .map(|chunk| chunk.try_into().unwrap())
        .collect::<Vec<[u8; 8]>>()
        .into_iter()
}
