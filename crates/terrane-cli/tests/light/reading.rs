//! What is said of a raster at encoding, and what is shown of it.

use std::path::{Path, PathBuf};
use std::process::Output as Outcome;

use terrane_geo::{Affine, CogWriter, Crs, Existing, Georeference, Output, SampleType, Storage};

use super::terrane;

const SIDE: usize = 300;

/// A plane that rises by half a unit to the east for every unit of its coordinates.
fn plane(folder: &Path, name: &str, crs: Crs, pixel: [f64; 2]) -> PathBuf {
    let affine = Affine::from_numbers([900_000.0, pixel[0], 0.0, 200_000.0, 0.0, -pixel[1]]);
    let path = folder.join(name);
    let output = Output::named_here(&path, Existing::Replace);
    let storage = Storage::metres(SampleType::F32, None);
    let georeference = Georeference::new(affine, crs);
    let mut writer = CogWriter::create(&output, (SIDE, SIDE), georeference, storage).unwrap();
    for _ in 0..SIDE {
        let row: Vec<f64> = (0..SIDE)
            .map(|column| 0.5 * column as f64 * pixel[0])
            .collect();
        writer.write_rows(&row).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(folder: &Path, arguments: &[&str]) -> Outcome {
    let outcome = terrane(folder, arguments);
    assert!(outcome.status.success(), "{}", text(&outcome.stderr));
    outcome
}

fn info(folder: &Path, file: &str) -> serde_json::Value {
    serde_json::from_slice(&run(folder, &["info", file, "--json"]).stdout).unwrap()
}

#[test]
fn heights_of_a_foot_system_are_metres_with_a_word_or_what_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    plane(path, "ft.tif", Crs::projected(2263, None), [3.0, 3.0]);
    let silent = run(path, &["encode", "ft.tif", "m.trn", "--lossless"]);
    let note = text(&silent.stderr);
    assert!(
        note.contains("US survey foot") && note.contains("--vertical-unit"),
        "{note}"
    );
    assert_eq!(info(path, "m.trn")["height_unit_origin"], "assumed");

    let given = run(
        path,
        &[
            "encode",
            "ft.tif",
            "ft.trn",
            "--vertical-unit",
            "us-ft",
            "--lossless",
        ],
    );
    assert_eq!(text(&given.stderr), "");
    let shown = info(path, "ft.trn");
    assert_eq!(shown["height_unit"], "US survey foot");
    assert_eq!(shown["height_unit_origin"], "band");
    assert_eq!(shown["coordinate_unit"], "US survey foot");

    // One in two is 26.6 degrees, in whatever unit both are.
    let slope = |file: &str| {
        let point = "--at=900096,199904";
        let found = run(path, &["query", file, point, "--json"]);
        let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
        found[0]["slope_deg"].as_f64().unwrap()
    };
    assert!(
        (slope("ft.trn") - 0.5_f64.atan().to_degrees()).abs() < 0.1,
        "{}",
        slope("ft.trn")
    );
    assert!(slope("m.trn") > 55.0);

    // Compared with a source that is read in the same way.
    let same = [
        "verify",
        "ft.trn",
        "--against",
        "ft.tif",
        "--vertical-unit",
        "us-ft",
    ];
    run(path, &same);
    let other = terrane(path, &same[..4]);
    assert_eq!(other.status.code(), Some(1));
}

#[test]
fn a_file_says_where_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    plane(path, "dem.tif", Crs::projected(32632, None), [5.0, 2.5]);
    run(path, &["encode", "dem.tif", "dem.trn"]);
    let shown = info(path, "dem.trn");
    assert_eq!(
        shown["extent"],
        serde_json::json!([900_000.0, 199_250.0, 901_500.0, 200_000.0])
    );
    assert_eq!(shown["pixel_size"], serde_json::json!([5.0, 2.5]));
    assert_eq!(shown["crs_name"], "WGS 84 / UTM zone 32N");
    // PROJ, of the lower corners.
    let west = shown["bounds"][0].as_f64().unwrap();
    let south = shown["bounds"][1].as_f64().unwrap();
    assert!(
        (west - 12.594_089).abs() < 1e-5 && (south - 1.799_077).abs() < 1e-5,
        "{west} {south}"
    );
    let lines = text(&run(path, &["info", "dem.trn"]).stdout);
    for expected in [
        "system      EPSG:32632, WGS 84 / UTM zone 32N",
        "extent      900000, 199250 to 901500, 200000 m",
        "pixel       5 x 2.5 m",
        "metres are assumed",
    ] {
        assert!(lines.contains(expected), "{lines}");
    }
}

#[test]
fn a_part_with_another_system_is_encoded_and_verified_whole_and_in_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    plane(path, "dem.tif", Crs::projected(32632, None), [5.0, 5.0]);
    let reading = [
        "--crs",
        "EPSG:2056",
        "--nodata",
        "-1",
        "--bbox",
        "900050,198600,901400,199950",
    ];
    let with = |arguments: &[&'static str]| [arguments, &reading[..]].concat();
    let encoded = run(path, &with(&["encode", "dem.tif", "dem.trn"]));
    assert!(
        text(&encoded.stderr).contains("EPSG:32632"),
        "{}",
        text(&encoded.stderr)
    );
    let shown = info(path, "dem.trn");
    assert_eq!(shown["width"], 270);
    assert_eq!(shown["horizontal_epsg"], 2056);
    assert_eq!(shown["nodata"], -1.0);
    run(path, &with(&["verify", "dem.trn", "--against", "dem.tif"]));

    let plan = [
        "shard",
        "plan",
        "dem.tif",
        "dem.json",
        "--tile",
        "16",
        "--shard-tiles",
        "8",
        "--json",
    ];
    let planned: serde_json::Value =
        serde_json::from_slice(&run(path, &with(&plan)).stdout).unwrap();
    let shards = planned["shards"].as_u64().unwrap();
    assert!(shards > 4, "{shards}");
    for shard in 0..shards {
        run(
            path,
            &["shard", "encode", "dem.json", "--shard", &shard.to_string()],
        );
    }
    run(path, &["shard", "merge", "dem.json", "merged.trn"]);
    run(
        path,
        &with(&["encode", "dem.tif", "whole.trn", "--tile", "16"]),
    );
    let bytes = |name: &str| std::fs::read(path.join(name)).unwrap();
    assert!(bytes("merged.trn") == bytes("whole.trn"));

    let mut damaged = bytes("whole.trn");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(path.join("damaged.trn"), damaged).unwrap();
    run(
        path,
        &with(&["repair", "damaged.trn", "repaired.trn", "--from", "dem.tif"]),
    );
    assert!(bytes("repaired.trn") == bytes("whole.trn"));
}

#[test]
fn pixels_that_are_not_quite_square_are_decoded_to_square_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    plane(
        path,
        "dem.tif",
        Crs::projected(25829, None),
        [5.0024, 5.0002],
    );
    run(path, &["encode", "dem.tif", "dem.trn", "--tile", "16"]);
    for (resolution, bound) in [
        ("0.25", serde_json::Value::Null),
        ("5", serde_json::Value::Null),
        ("12", 0.1.into()),
        ("80", serde_json::Value::Null),
    ] {
        let out = format!("{resolution}.tif");
        let made = run(
            path,
            &[
                "decode",
                "dem.trn",
                &out,
                "--resolution",
                resolution,
                "--json",
            ],
        );
        let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
        assert_eq!(made["bound_m"], bound, "{resolution}");
        let raster = terrane_geo::open(&[path.join(&out)]).unwrap();
        let side: f64 = resolution.parse().unwrap();
        let affine = raster.info().georeference.affine();
        assert_eq!(
            affine.numbers(),
            [900_000.0, side, 0.0, 200_000.0, 0.0, -side]
        );
        let width = (SIDE as f64 * 5.0024 / side).ceil() as usize;
        let height = (SIDE as f64 * 5.0002 / side).ceil() as usize;
        assert_eq!(
            (raster.info().width(), raster.info().height()),
            (width, height)
        );
        // A plane stays one, where a pixel lies within the raster.
        let row = raster
            .read(0, terrane_geo::Window::whole(width, 1))
            .unwrap();
        let middle = width / 2;
        let x = (middle as f64 + 0.5) * side;
        let expected = 0.5 * (x - 2.5012);
        let found = row.heights[middle];
        assert!(
            (found - expected).abs() < 0.2,
            "{resolution}: {found}, not {expected}"
        );
    }
}
