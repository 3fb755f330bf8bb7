//! Checks every measure against `expected.json`, which `make.py` computes with numpy on the same integer terrain.

use serde_json::{Value, to_value};
use terrane_train::measure::{
    Derivatives, Summary, mean, mean_seams, measure, measure_analytic, measure_masked,
    measure_seams, split_regimes,
};

fn expected() -> Value {
    serde_json::from_str(include_str!("expected.json")).expect("make.py writes JSON")
}

fn noise(row: usize, column: usize, salt: u32) -> u32 {
    let mut h = (row as u32).wrapping_mul(0x9E37_79B1)
        ^ (column as u32).wrapping_mul(0x85EB_CA77)
        ^ salt.wrapping_mul(0xC2B2_AE3D);
    h = (h ^ (h >> 15)).wrapping_mul(0x2C1B_3C6D);
    h = (h ^ (h >> 12)).wrapping_mul(0x297A_2D39);
    h ^ (h >> 15)
}

fn field(width: usize, height: usize, value: impl Fn(usize, usize) -> f32) -> Vec<f32> {
    let pixels = 0..width * height;
    pixels.map(|i| value(i / width, i % width)).collect()
}

fn terrain(width: usize, height: usize) -> (Vec<f32>, Vec<f32>) {
    let reference = |r: usize, c: usize| {
        let wave = 40 * ((7 * r + 3 * c) % 128).abs_diff(64);
        (32000 + 90 * r + wave + noise(r, c, 1) as usize % 64) as f32 / 64.0
    };
    let error = |r, c| ((noise(r, c, 2) % 201) as f32 - 100.0 + (r * c % 7) as f32) / 512.0;
    let reconstruction = |r, c| reference(r, c) + error(r, c);
    let reconstruction = field(width, height, reconstruction);
    (field(width, height, reference), reconstruction)
}

fn assert_close(found: impl serde::Serialize, expected: &Value) {
    let found = to_value(found).expect("measures are plain numbers");
    let expected = expected
        .as_object()
        .expect("a case is a map from name to value");
    assert_eq!(
        found.as_object().map(serde_json::Map::len),
        Some(expected.len()),
        "{found}"
    );
    for (name, expected) in expected {
        let numbers = found[name].as_f64().zip(expected.as_f64());
        let close = numbers.is_some_and(|(a, b)| (a - b).abs() <= 1e-9 * b.abs());
        assert!(close, "{name}: {} instead of {expected}", found[name]);
    }
}

#[test]
fn tiles_and_their_summary() {
    let mut tiles = vec![];
    for (name, width, height) in [("24x20", 24, 20), ("32x32", 32, 32), ("256x256", 256, 256)] {
        let (z, zhat) = terrain(width, height);
        let tile = measure(&z, &zhat, width, height).unwrap();
        assert_close(tile, &expected()["tiles"][name]);
        tiles.push(tile);
    }
    let summary = mean(&tiles).unwrap();
    assert_close(summary, &expected()["summary"]);
    let value = to_value(summary).unwrap();
    assert_eq!(serde_json::from_value::<Summary>(value).unwrap(), summary);
}

#[test]
fn given_derivatives() {
    let (z, zhat) = terrain(24, 20);
    let given = |salt| {
        field(24, 20, |r, c| {
            (noise(r, c, salt) % 2048) as f32 / 256.0 - 4.0
        })
    };
    let derivatives = Derivatives {
        gradient_y_m_per_px: &given(3),
        gradient_x_m_per_px: &given(4),
        laplacian_m_per_px2: &given(5),
    };
    let tile = measure_analytic(&z, &zhat, derivatives, 24, 20).unwrap();
    assert_close(tile, &expected()["analytic"]);
}

#[test]
fn seams() {
    let (z, zhat) = terrain(24, 20);
    let uneven = measure_seams(&z, &zhat, 24, 20, 9).unwrap();
    assert_close(uneven, &expected()["uneven_seams"]);

    let (z, zhat) = terrain(256, 256);
    let mut gaps_db = vec![];
    let mut tiles = vec![];
    for (patch_side, percent) in [(8, 73.4), (16, 41.4), (32, 20.7)] {
        let tile = measure_seams(&z, &zhat, 256, 256, patch_side).unwrap();
        assert_close(tile, &expected()["seams"][patch_side.to_string()]);
        assert!((100.0 * tile.boundary_fraction - percent).abs() < 0.05);
        gaps_db.push(tile.gap_db());
        tiles.push(tile);
    }
    let mean_gap_db = gaps_db.iter().sum::<f64>() / 3.0;
    assert!((mean_seams(&tiles).unwrap().gap_db() - mean_gap_db).abs() < 1e-12);
}

#[test]
fn regimes_of_eleven_tiles_with_ties() {
    let errors: Vec<f64> = (0..11).map(|i| f64::from(noise(i, 0, 9) % 7)).collect();
    let regimes = to_value(split_regimes(&errors).unwrap()).unwrap();
    assert_eq!(regimes, expected()["regimes"]);
}

#[test]
fn raster_with_and_without_nodata() {
    let (mut z, mut zhat) = terrain(32, 32);
    let whole = measure_masked(&z, &zhat, 32, 32).unwrap();
    let tile = measure(&z, &zhat, 32, 32).unwrap();
    assert!(whole.nodata_equal());
    assert_eq!(whole.gradient_rmse, Some(tile.gradient_rmse_m_per_px));
    assert_eq!(whole.laplacian_rmse, Some(tile.laplacian_rmse_m_per_px2));

    for i in 0..32 * 32 {
        let draw = |salt| noise(i / 32, i % 32, salt);
        if draw(6) % 17 == 0 {
            z[i] = f32::NAN;
        }
        if (z[i].is_nan() && draw(7) % 3 > 0) || draw(8) % 61 == 0 {
            zhat[i] = f32::NAN;
        }
    }
    let holed = measure_masked(&z, &zhat, 32, 32).unwrap();
    assert_close(holed, &expected()["raster"]);
    assert!(!holed.nodata_equal());
}
