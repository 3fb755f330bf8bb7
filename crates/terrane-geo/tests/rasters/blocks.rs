//! Blocks that are absent, too long or many, and numbers that are no heights.

use terrane_geo::{GeoTiff, Mosaic, RasterSource, SampleType, Window};
use tiff_core::{Compression, Predictor};

use crate::handmade::{Image, Layout, Role, compressed, write};
use crate::{assert_same, wave};

fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Two tiles of which the second is absent.
fn half_absent(role: Role, nodata: Option<&'static str>) -> Image {
    Image {
        role,
        size: if matches!(role, Role::Image) {
            (32, 16)
        } else {
            (16, 8)
        },
        layout: Layout::Tiles,
        block: if matches!(role, Role::Image) {
            (16, 16)
        } else {
            (8, 16)
        },
        nodata,
        blocks: vec![
            Some(floats(
                &[7.0; 256][..if matches!(role, Role::Image) {
                    256
                } else {
                    128
                }],
            )),
            None,
        ],
        ..Image::plain((0, 0), SampleType::F32, Vec::new())
    }
}

/// What GDAL 3.10 reads from such a file, at full resolution and from its overview.
#[test]
fn absent_blocks_are_nodata_where_it_is_declared_and_else_zero() {
    let folder = tempfile::tempdir().unwrap();
    for (nodata, absent) in [
        (None, 0.0),
        (Some("-9999"), f64::NAN),
        (Some("nan"), f64::NAN),
    ] {
        let images = [
            half_absent(Role::Image, nodata),
            half_absent(Role::Overview, nodata),
        ];
        let path = write(folder.path(), "sparse.tif", &images);
        let raster = GeoTiff::open(&path).unwrap();
        for (level, (width, height)) in [(0, (32, 16)), (1, (16, 8))] {
            let expected: Vec<f64> = (0..width * height)
                .map(|index| {
                    if index % width < width / 2 {
                        7.0
                    } else {
                        absent
                    }
                })
                .collect();
            let grid = raster.read(level, Window::whole(width, height)).unwrap();
            assert_same(
                &grid,
                &expected,
                &format!("nodata {nodata:?}, level {level}"),
            );
            assert_eq!(grid.not_heights, 0);
        }
        let right = Window {
            column: 20,
            row: 2,
            width: 5,
            height: 5,
        };
        assert_eq!(raster.touches(right), !absent.is_nan());
        assert!(raster.touches(Window::whole(32, 16)));
        let mosaic = Mosaic::open(&[&path, &path]).unwrap();
        let grid = mosaic.read(0, right).unwrap();
        assert_same(&grid, &[absent; 25], "mosaic");
    }
}

#[test]
fn numbers_that_are_no_heights_are_counted_unless_they_are_declared_or_masked() {
    let folder = tempfile::tempdir().unwrap();
    let values = [
        5.0,
        1e30,
        -2e35,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN,
        9e29,
    ];
    for (nodata, count) in [
        (None, 5),
        (Some("-9999"), 5),
        (Some("nan"), 5),
        (Some("-3.4028234663852886e+38"), 4),
        (Some("-3.40282306073709653e+38"), 4),
        (Some("inf"), 4),
        (Some("-inf"), 4),
        (Some("1e30"), 4),
    ] {
        let mut image = Image::plain((4, 2), SampleType::F32, floats(&values));
        image.nodata = nodata;
        let path = write(folder.path(), "absurd.tif", &[image]);
        let raster = GeoTiff::open(&path).unwrap();
        let grid = raster.read(0, Window::whole(4, 2)).unwrap();
        assert_eq!(grid.not_heights, count, "{nodata:?}");
        let nan = f64::NAN;
        let expected = [5.0, nan, nan, nan, nan, nan, nan, f64::from(9e29_f32)];
        assert_same(&grid, &expected, "absurd");
        assert_eq!(
            raster.read(0, Window::whole(1, 2)).unwrap().not_heights,
            usize::from(nodata != Some("-inf"))
        );
        let mosaic = Mosaic::open(&[&path, &path]).unwrap();
        let grid = mosaic.read(0, Window::whole(4, 2)).unwrap();
        assert_eq!(grid.not_heights, 2 * count, "{nodata:?} in a mosaic");
    }

    let image = Image::plain((4, 2), SampleType::F32, floats(&values));
    let mut mask = Image::plain((4, 2), SampleType::U8, vec![255, 0, 0, 255, 0, 0, 0, 255]);
    mask.role = Role::Mask;
    let path = write(folder.path(), "masked.tif", &[image, mask]);
    let grid = GeoTiff::open(&path)
        .unwrap()
        .read(0, Window::whole(4, 2))
        .unwrap();
    assert_eq!(grid.not_heights, 1);
}

/// Codecs and predictors of 32-bit floats.
const ENCODINGS: [(Compression, Predictor); 7] = [
    (Compression::Deflate, Predictor::None),
    (Compression::Deflate, Predictor::FloatingPoint),
    (Compression::Lzw, Predictor::None),
    (Compression::Lzw, Predictor::FloatingPoint),
    (Compression::PackBits, Predictor::None),
    (Compression::Zstd, Predictor::None),
    (Compression::Zstd, Predictor::FloatingPoint),
];

fn rows(width: usize, rows: std::ops::Range<usize>) -> Vec<f32> {
    rows.flat_map(|row| (0..width).map(move |column| wave(column, row) as f32))
        .collect()
}

#[test]
fn a_block_that_decodes_to_more_than_its_pixels_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (width, height) = (50, 21);
    let expected: Vec<f64> = rows(width, 0..height).into_iter().map(f64::from).collect();
    for (compression, predictor) in ENCODINGS {
        // A last strip of full height, and a first one with a row too many.
        let strip = |rows: Vec<f32>| Some(compressed(&rows, width, compression, predictor));
        let strips = Image {
            block: (width, 8),
            compression,
            predictor,
            blocks: vec![
                strip(rows(width, 0..9)),
                strip(rows(width, 8..16)),
                strip(rows(width, 16..24)),
            ],
            ..Image::plain((width, height), SampleType::F32, Vec::new())
        };
        // Tiles with two rows too many.
        let tile = |first: usize| {
            let pixels: Vec<f32> = (0..34)
                .flat_map(|row| (first..first + 32).map(move |column| wave(column, row) as f32))
                .collect();
            Some(compressed(&pixels, 32, compression, predictor))
        };
        let tiles = Image {
            layout: Layout::Tiles,
            block: (32, 32),
            compression,
            predictor,
            blocks: vec![tile(0), tile(32)],
            ..Image::plain((width, height), SampleType::F32, Vec::new())
        };
        for (name, image) in [("strips", strips), ("tiles", tiles)] {
            let what = format!("{name}, {compression:?}, {predictor:?}");
            let path = write(folder.path(), "long.tif", &[image]);
            let raster = GeoTiff::open(&path).unwrap();
            let grid = raster.read(0, Window::whole(width, height)).unwrap();
            assert_same(&grid, &expected, &what);
            let window = Window {
                column: 21,
                row: 5,
                width: 20,
                height: 14,
            };
            let part = raster.read(0, window).unwrap();
            assert_same(&part, &grid.crop(window).heights, &what);
        }
    }
}

#[test]
fn a_block_that_decodes_to_less_than_its_pixels_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (compression, predictor) in ENCODINGS {
        let image = Image {
            compression,
            predictor,
            blocks: vec![Some(compressed(
                &rows(50, 0..20),
                50,
                compression,
                predictor,
            ))],
            ..Image::plain((50, 21), SampleType::F32, Vec::new())
        };
        let path = write(folder.path(), "short.tif", &[image]);
        let read = GeoTiff::open(&path).unwrap().read(0, Window::whole(50, 21));
        assert!(read.is_err(), "{compression:?}, {predictor:?}");
    }
}

#[test]
fn a_raster_of_350_000_columns_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (width, height) = (350_000, 40);
    let (compression, predictor) = (Compression::Deflate, Predictor::FloatingPoint);
    // Rows that differ and repeat along themselves, so that they are made quickly.
    let value = |column: usize, row: usize| (100 * row + column % 1000) as f32;
    let block = |column: usize, row: usize, (width, height): (usize, usize)| {
        let rows = row..row + height;
        let pixels: Vec<f32> = rows
            .flat_map(|row| (column..column + width).map(move |column| value(column, row)))
            .collect();
        Some(compressed(&pixels, width, compression, predictor))
    };
    for (layout, size) in [(Layout::Strips, (width, 4)), (Layout::Tiles, (512, 16))] {
        let blocks = (0..height)
            .step_by(size.1)
            .flat_map(|row| (0..width).step_by(size.0).map(move |column| (column, row)))
            .map(|(column, row)| block(column, row, size))
            .collect();
        let image = Image {
            layout,
            block: size,
            compression,
            predictor,
            blocks,
            ..Image::plain((width, height), SampleType::F32, Vec::new())
        };
        let path = write(folder.path(), "wide.tif", &[image]);
        let raster = GeoTiff::open(&path).unwrap();
        let whole = Window::whole(width, height);
        let windows = [
            whole,
            Window {
                column: 17,
                row: 3,
                width: 349_900,
                height: 30,
            },
        ];
        for window in windows {
            let grid = raster.read(0, window).unwrap();
            for (index, &height_m) in grid.heights.iter().enumerate() {
                let (column, row) = (index % window.width, index / window.width);
                let expected = value(window.column + column, window.row + row);
                assert_eq!(height_m, f64::from(expected), "{column}, {row}");
            }
        }
    }
}

/// 560 MB of samples in one window; most of the tiles are absent, so that the file is small.
#[test]
fn a_window_is_read_whatever_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let (width, height, side) = (350_000_usize, 200, 256);
    let mut blocks = vec![None; width.div_ceil(side)];
    let last = blocks.len() - 1;
    blocks[last] = Some(7.5_f64.to_le_bytes().repeat(side * side));
    let image = Image {
        layout: Layout::Tiles,
        block: (side, side),
        blocks,
        ..Image::plain((width, height), SampleType::F64, Vec::new())
    };
    let path = write(folder.path(), "wide.tif", &[image]);
    let raster = GeoTiff::open(&path).unwrap();
    let grid = raster.read(0, Window::whole(width, height)).unwrap();
    for row in [0, height - 1] {
        let row = grid.row(row);
        assert!(row[..last * side].iter().all(|&height_m| height_m == 0.0));
        assert!(row[last * side..].iter().all(|&height_m| height_m == 7.5));
    }
}
