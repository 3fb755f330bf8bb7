//! What comes back for all inputs alike. `PROPTEST_CASES` asks for more cases than the few that every run tries.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::coder::{AdaptiveBit, Decoder, Encoder};
use crate::header::Header;
use crate::index::{PageLocation, TreeLocation, page};
use crate::integers::Prediction;
use crate::{
    ErrorBound, Extent, Flats, GeoKeys, Method, ModelId, OverviewStatistics, ParentMask, Pyramid,
    Samples, Statistics, integers, mask,
};

fn cases(count: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: asked.and_then(|text| text.parse().ok()).unwrap_or(count),
        // Beside the tests, to be committed.
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

/// Numbers of all sizes, and those that are none.
fn numbers() -> impl Strategy<Value = f64> {
    prop_oneof![any::<u64>().prop_map(f64::from_bits), -1e7..1e7]
}

/// A mask and its width.
fn masks(size: usize) -> impl Strategy<Value = (Vec<bool>, usize)> {
    let share = prop::sample::select(&[0.0, 0.02, 0.5, 0.97, 1.0][..]);
    (1..=size, 1..=size, share).prop_flat_map(|(width, height, share)| {
        let pixel = prop::bool::weighted(share);
        (prop::collection::vec(pixel, width * height), Just(width))
    })
}

/// The mask of the tile above one: missing where all pixels below are.
fn above(missing: &[bool], width: usize) -> (Vec<bool>, usize) {
    let height = missing.len() / width;
    let (across, down) = (width.div_ceil(2), height.div_ceil(2));
    let coarse = (0..across * down).map(|index| {
        let (column, row) = (index % across * 2, index / across * 2);
        (row..(row + 2).min(height)).all(|row| {
            (column..(column + 2).min(width)).all(|column| missing[row * width + column])
        })
    });
    (coarse.collect(), across)
}

/// One entry of a stream.
#[derive(Debug, Clone, Copy)]
enum Entry {
    Bit(usize, bool),
    Raw(u64, u32),
    Symbol(u16, u32),
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let symbol = (any::<u16>(), any::<u16>()).prop_map(|(cumulative, more)| {
        let most = (1 << 16) - u32::from(cumulative);
        Entry::Symbol(cumulative, 1 + u32::from(more) % most)
    });
    let raw = (any::<u64>(), 0..=64_u32)
        .prop_map(|(value, count)| Entry::Raw(value & low_bits(count), count));
    let bit = (0..4_usize, any::<bool>()).prop_map(|(context, value)| Entry::Bit(context, value));
    let rare = (0..4_usize, prop::bool::weighted(0.003))
        .prop_map(|(context, value)| Entry::Bit(context, value));
    prop::collection::vec(prop_oneof![symbol, raw, bit, rare], 0..600)
}

fn low_bits(count: u32) -> u64 {
    u64::MAX.checked_shr(64 - count).unwrap_or(0)
}

fn text() -> &'static str {
    "\\PC{0,40}"
}

fn samples() -> impl Strategy<Value = Samples> {
    (
        text(),
        prop::option::of(numbers()),
        (numbers(), numbers()),
        (text(), text()),
    )
        .prop_map(
            |(kind, nodata, (scale, offset), (unit, description))| Samples {
                kind,
                nodata,
                scale,
                offset,
                unit,
                description,
            },
        )
}

fn models() -> impl Strategy<Value = ModelId> {
    let embedded =
        (any::<u64>(), 0..1_u64 << 34, any::<u32>()).prop_map(|(offset, length, crc)| Extent {
            offset,
            length,
            crc,
        });
    (
        any::<[u8; 32]>(),
        text(),
        text(),
        prop::option::of(embedded),
    )
        .prop_map(|(sha256, name, address, embedded)| ModelId {
            sha256,
            name,
            address,
            embedded,
        })
}

fn heads() -> impl Strategy<Value = Header> {
    let pyramid = (1..5000_u32, 1..5000_u32, 8..200_u16)
        .prop_map(|(width, height, half)| Pyramid::complete(width, height, 2 * half).unwrap());
    let keys = (
        prop::collection::vec(any::<u16>(), 0..40),
        prop::collection::vec(numbers(), 0..20),
        text(),
    )
        .prop_map(|(directory, doubles, text)| GeoKeys {
            directory,
            doubles,
            text,
        });
    let bound = prop_oneof![
        Just(ErrorBound::None),
        numbers().prop_map(ErrorBound::MaxError),
        any::<bool>().prop_map(|as_f32| ErrorBound::Lossless { as_f32 }),
    ];
    let statistics = (
        any::<(u64, u64)>(),
        (numbers(), numbers(), numbers(), numbers()),
    )
        .prop_map(
            |((pixels, tiles), (rmse_m, max_error_m, lowest_m, highest_m))| Statistics {
                pixels,
                tiles,
                rmse_m,
                max_error_m,
                lowest_m,
                highest_m,
            },
        );
    let place = (
        prop::array::uniform6(numbers()),
        any::<(bool, bool)>(),
        any::<[u32; 2]>(),
        text(),
    );
    (
        pyramid,
        place,
        keys,
        samples(),
        bound,
        statistics,
        models(),
        any::<f32>(),
    )
        .prop_map(
            |(pyramid, place, geo_keys, samples, bound, statistics, model, error)| {
                let (affine, (is_georeferenced, pixel_is_point), epsg, wkt) = place;
                let overviews = (1..pyramid.levels()).map(|level| OverviewStatistics {
                    rmse_m: error,
                    max_error_m: f32::from(level),
                });
                Header {
                    overviews: overviews.collect(),
                    pyramid,
                    method: Method::Context,
                    affine,
                    is_georeferenced,
                    pixel_is_point,
                    epsg,
                    geo_keys,
                    wkt,
                    samples,
                    bound,
                    statistics,
                    model: Some(model),
                }
            },
        )
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn masks_come_back_alone_and_below_others((missing, width) in masks(40)) {
        let height = missing.len() / width;
        let alone = mask::encode(&missing, width, None);
        prop_assert_eq!(&mask::decode(&alone, width, height, None).unwrap(), &missing);
        let (coarse, across) = above(&missing, width);
        let parent = ParentMask { missing: Some(&coarse), width: across, column: 0, row: 0 };
        let below = mask::encode(&missing, width, Some(&parent));
        prop_assert_eq!(&mask::decode(&below, width, height, Some(&parent)).unwrap(), &missing);
    }

    #[test]
    fn streams_come_back(entries in entries()) {
        let mut encoder = Encoder::default();
        let mut bits = [AdaptiveBit::default(); 4];
        for &entry in &entries {
            match entry {
                Entry::Bit(context, value) => encoder.bit(&mut bits[context], value),
                Entry::Raw(value, count) => encoder.raw(value, count),
                Entry::Symbol(cumulative, frequency) => encoder.encode(cumulative, frequency),
            }
        }
        let bytes = encoder.finish();
        let mut decoder = Decoder::new(&bytes);
        let mut bits = [AdaptiveBit::default(); 4];
        for &entry in &entries {
            match entry {
                Entry::Bit(context, value) => prop_assert_eq!(decoder.bit(&mut bits[context]), value),
                Entry::Raw(value, count) => prop_assert_eq!(decoder.raw(count), value),
                Entry::Symbol(cumulative, frequency) => {
                    let target = u32::from(decoder.decode_target());
                    let first = u32::from(cumulative);
                    prop_assert!((first..first + frequency).contains(&target));
                    decoder.consume(cumulative, frequency);
                }
            }
        }
        prop_assert!(decoder.end().is_ok());
    }

    #[test]
    fn integers_come_back(
        (missing, width) in masks(24),
        seed in any::<i64>(),
        shift in 0..64_u32,
        is_median in any::<bool>(),
        has_mask in any::<bool>(),
    ) {
        let mut state = seed;
        let values: Vec<i64> = missing.iter().map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> shift
        }).collect();
        let prediction = if is_median { Prediction::Median } else { Prediction::Zero };
        let mask = has_mask.then_some(&missing[..]);
        let bytes = integers::encode(&values, width, prediction, mask);
        let back = integers::decode(&bytes, width, values.len(), prediction, mask).unwrap();
        for (index, (value, back)) in values.iter().zip(&back).enumerate() {
            prop_assert!(has_mask && missing[index] || value == back, "pixel {}: {} {}", index, value, back);
        }
    }

    #[test]
    fn flat_areas_come_back((flat, width) in masks(40), seed in any::<u64>(), levels in 1..9_u64) {
        let mut state = seed;
        let heights: Vec<f64> = flat.iter().map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1.0 + ((state >> 40) % levels) as f64
        }).collect();
        let pixels = heights.iter().zip(&flat);
        let lakes: Vec<f64> = pixels.map(|(&height, &flat)| if flat { height } else { f64::NAN }).collect();
        if let Some(flats) = Flats::new(&lakes, width) {
            let back = Flats::parse(&flats.to_bytes(width), width, heights.len() / width).unwrap();
            let mut laid = vec![0.0; heights.len()];
            back.apply(&mut laid);
            for ((laid, height), flat) in laid.iter().zip(&heights).zip(&flat) {
                prop_assert_eq!(*laid, if *flat { *height } else { 0.0 });
            }
            prop_assert_eq!(back.to_bytes(width), flats.to_bytes(width));
        }
    }

    #[test]
    fn heads_of_all_kinds_come_back(header in heads(), length in any::<u64>(), page in any::<(u64, u32)>()) {
        let pages = [PageLocation { offset: page.0, length: 77, crc: page.1 }];
        let trees = u32::try_from(header.pyramid.trees().max(4096)).unwrap();
        let bytes = header.to_bytes(length, trees, &pages).unwrap();
        let back = Header::parse(&bytes).unwrap();
        prop_assert_eq!((back.length, back.file_length, back.page_trees), (bytes.len(), length, trees));
        prop_assert_eq!(&back.pages[..], &pages[..]);
        // By their bytes, since some numbers are none.
        prop_assert_eq!(back.header.to_bytes(length, trees, &pages).unwrap(), bytes);
    }

    #[test]
    fn index_pages_come_back(
        trees in prop::collection::vec((0..1_u64 << 50, prop::collection::vec(0..1_u32 << 30, 1..30)), 0..40),
    ) {
        let records: Vec<usize> = trees.iter().map(|(_, lengths)| lengths.len()).collect();
        let trees: Vec<TreeLocation> = trees
            .into_iter()
            .map(|(offset, lengths)| {
                if lengths.iter().all(|&length| length == 0) {
                    TreeLocation::default()
                } else {
                    TreeLocation { offset, lengths }
                }
            })
            .collect();
        let bytes = page(&trees);
        let location = PageLocation { offset: 0, length: u32::try_from(bytes.len()).unwrap(), crc: crc32c::crc32c(&bytes) };
        prop_assert_eq!(location.parse(&bytes, &records).unwrap(), trees);
    }
}
