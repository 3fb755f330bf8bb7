//! Damaged and hostile files give an error or some pixels, never a panic or an allocation of their claimed size.

use std::path::Path;

use terrane_geo::{GeoTiff, RasterSource, Window};

use crate::flavour_folder;

/// Reads a file as a user would; what comes out does not matter, only that something does.
fn try_read(path: &Path) -> bool {
    let Ok(raster) = GeoTiff::open(path) else {
        return false;
    };
    let (width, height) = raster.info().levels[0];
    let mut is_read = true;
    for window in [
        Window {
            column: 0,
            row: 0,
            width: width.min(300),
            height: height.min(300),
        },
        Window {
            column: width.saturating_sub(40),
            row: height.saturating_sub(40),
            width: width.min(40),
            height: height.min(40),
        },
    ] {
        is_read &= raster.read(0, window).is_ok();
    }
    for level in 1..raster.info().levels.len() {
        is_read &= raster.read(level, Window::whole(1, 1)).is_ok();
    }
    is_read
}

/// One file of each decoder.
const FILES: [&str; 12] = [
    "none_strip_f32.tif",
    "none_tile_i16.tif",
    "deflate_tile_f32_pred3.tif",
    "lzw_strip_i16_pred2.tif",
    "zstd_tile_f32_pred2.tif",
    "lerc_tile_f32.tif",
    "lerc_zstd_strip_f32_nan_maxz0.05.tif",
    "packbits_tile_f32.tif",
    "cog_mask_deflate_f32_pred3.tif",
    "bigendian_bigtiff_lzw_strip_i16_pred2.tif",
    "scale_offset_i16_m.tif",
    "sparse_tile_nodata.tif",
];

#[test]
fn truncated_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.tif");
    for name in FILES {
        let bytes = std::fs::read(flavour_folder().join(name)).unwrap();
        let step = (bytes.len() / 61).max(1);
        for length in (0..bytes.len()).step_by(step).chain([1, 4, 8, 15]) {
            std::fs::write(&path, &bytes[..length.min(bytes.len())]).unwrap();
            // The end of a file may hold what no window needs; the first half never does.
            assert!(
                !try_read(&path) || length > bytes.len() / 2,
                "{name} cut to {length} bytes was read"
            );
        }
    }
}

#[test]
fn flipped_bits_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flipped.tif");
    for name in FILES {
        let original = std::fs::read(flavour_folder().join(name)).unwrap();
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        for round in 0..150 {
            let mut bytes = original.clone();
            for _ in 0..=round % 3 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                // Headers and directories stand at either end: most flips go there.
                let reach = if round % 2 == 0 {
                    bytes.len()
                } else {
                    bytes.len().min(700)
                };
                let mut offset = (state >> 33) as usize % reach;
                if round % 4 == 3 {
                    offset = bytes.len() - 1 - offset;
                }
                bytes[offset] ^= 1 << ((state >> 29) & 7);
            }
            std::fs::write(&path, &bytes).unwrap();
            try_read(&path);
        }
    }
}

/// Sets the value of a tag in the first directory of a little-endian classic TIFF.
fn set_tag(bytes: &mut [u8], code: u16, value: u32) {
    let start = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    let count = u16::from_le_bytes(bytes[start..start + 2].try_into().unwrap()) as usize;
    for entry in 0..count {
        let at = start + 2 + 12 * entry;
        if u16::from_le_bytes([bytes[at], bytes[at + 1]]) == code {
            bytes[at + 2..at + 4].copy_from_slice(&4_u16.to_le_bytes());
            bytes[at + 8..at + 12].copy_from_slice(&value.to_le_bytes());
            return;
        }
    }
    panic!("no tag {code}");
}

#[test]
fn absurd_headers_are_refused_before_anything_is_allocated() {
    const WIDTH: u16 = 256;
    const HEIGHT: u16 = 257;
    const ROWS_PER_STRIP: u16 = 278;
    const TILE_WIDTH: u16 = 322;
    const TILE_HEIGHT: u16 = 323;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("absurd.tif");
    let huge = 0xffff_fff0;
    for (name, changes) in [
        ("none_strip_f32.tif", vec![(WIDTH, huge), (HEIGHT, huge)]),
        (
            "none_strip_f32.tif",
            vec![(WIDTH, huge), (HEIGHT, huge), (ROWS_PER_STRIP, huge)],
        ),
        ("none_strip_f32.tif", vec![(WIDTH, 0)]),
        ("none_tile_f32.tif", vec![(WIDTH, huge), (HEIGHT, huge)]),
        (
            "deflate_tile_f32_pred3.tif",
            vec![
                (WIDTH, huge),
                (HEIGHT, huge),
                (TILE_WIDTH, huge),
                (TILE_HEIGHT, huge),
            ],
        ),
        ("deflate_tile_f32_pred3.tif", vec![(TILE_WIDTH, 0)]),
        (
            "lerc_tile_f32.tif",
            vec![(TILE_WIDTH, 1 << 20), (TILE_HEIGHT, 1 << 20)],
        ),
    ] {
        let mut bytes = std::fs::read(flavour_folder().join(name)).unwrap();
        for &(code, value) in &changes {
            set_tag(&mut bytes, code, value);
        }
        std::fs::write(&path, &bytes).unwrap();
        assert!(!try_read(&path), "{name} with {changes:?} was read");
    }
}

#[test]
fn what_is_no_tiff_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.tif");
    std::fs::write(&path, "this is not a raster").unwrap();
    let Err(error) = GeoTiff::open(&path) else {
        panic!("text was read")
    };
    assert!(
        error
            .to_string()
            .contains("text.tif: not a readable GeoTIFF"),
        "{error}"
    );
    let Err(error) = GeoTiff::open(&folder.path().join("none.tif")) else {
        panic!("nothing was read")
    };
    assert!(
        error.to_string().contains("none.tif: cannot be read"),
        "{error}"
    );
}
