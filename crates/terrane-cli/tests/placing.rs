//! Rasters in all kinds of coordinate systems: on the ground, on the Earth, and across the meridian of 180°.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

use std::path::Path;
use std::process::{Command, Output as Outcome};

use serde_json::Value;
use terrane_geo::{
    Affine, CogWriter, Crs, Existing, GeoTiff, Georeference, Kind, Output, RasterSource,
    SampleType, Storage, Window,
};

fn terrane(folder: &Path, arguments: &[&str]) -> Outcome {
    command(folder).args(arguments).output().unwrap()
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_terrane"));
    command.current_dir(folder).env_remove("PROJ_DATA");
    command
}

fn stdout(outcome: &Outcome) -> String {
    let complaint = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success(), "{complaint}");
    String::from_utf8(outcome.stdout.clone()).unwrap()
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&stdout(outcome)).unwrap()
}

/// What PROJ says of the ground under maps.
const EXPECTED: &str = include_str!("../../terrane-geo/tests/ground/expected.tsv");
const SIDE: usize = 40;

/// A raster whose heights are a function of its map coordinates.
fn write(path: &Path, affine: Affine, crs: &Crs, size: usize, height_m: impl Fn(f64, f64) -> f64) {
    let storage = Storage::metres(SampleType::F64, None);
    let output = Output::new(path, Existing::Replace, Kind::Raster);
    let place = Georeference::new(affine, crs.clone());
    let mut writer = CogWriter::create(&output, (size, size), place, storage).unwrap();
    for row in 0..size {
        let heights: Vec<f64> = (0..size)
            .map(|column| {
                let (x, y) = affine.apply(column as f64 + 0.5, row as f64 + 0.5);
                height_m(x, y)
            })
            .collect();
        writer.write_rows(&heights).unwrap();
    }
    writer.finish().unwrap();
}

/// A slope of 45° that rises to the map's east by 0.8 and to its north by 0.6, wherever it lies and however its raster does.
#[test]
fn a_plane_has_one_slope_in_every_system() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    let path = |name: &str| folder.path().join(name);
    let mut count = 0;
    for line in EXPECTED.lines().filter(|line| line.starts_with("EPSG:")) {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |index: usize| fields[index].parse::<f64>().unwrap();
        let code: u16 = fields[0][5..].parse().unwrap();
        // Its x runs south.
        if code == 2065 {
            continue;
        }
        let crs = if [4326, 4807].contains(&code) {
            Crs::geographic(code, None)
        } else {
            Crs::projected(code, None)
        };
        let (x, y, x_m, y_m, cosine) = (number(1), number(2), number(3), number(4), number(5));
        let sine = (1.0 - cosine * cosine).sqrt();
        let (along_x, along_y) = ((0.8 * sine + 0.6 * cosine) * x_m, 0.6 * y_m);
        let height_m = |at_x: f64, at_y: f64| 500.0 + (at_x - x) * along_x + (at_y - y) * along_y;
        let pixel = number(6) / 200.0;
        let half = SIDE as f64 / 2.0 * pixel;
        let upright = Affine::north_up(x - half, y + half, pixel);
        let south_up = Affine {
            y: y - half,
            y_per_row: pixel,
            ..upright
        };
        let oblong = Affine {
            y: y + 2.0 * half,
            y_per_row: -2.0 * pixel,
            ..upright
        };
        let turned = Affine {
            x: x - 1.4 * half,
            x_per_column: 0.8 * pixel,
            x_per_row: 0.6 * pixel,
            y: y + 0.2 * half,
            y_per_column: 0.6 * pixel,
            y_per_row: -0.8 * pixel,
        };
        for affine in [upright, south_up, oblong, turned] {
            write(&path("dem.tif"), affine, &crs, SIDE, height_m);
            let encode = ["encode", "dem.tif", "dem.trn", "--lossless", "--overwrite"];
            stdout(&run(&encode));
            let at = format!("{x},{y}");
            let sample = json(&run(&["query", "dem.trn", &format!("--at={at}"), "--json"]));
            let near = |degrees: f64, expected: f64, part: f64, what: &str| {
                let is_near = (degrees - expected).abs() <= part;
                assert!(is_near, "{line}\n{affine:?}: {what} {degrees}");
            };
            // A part of 1e-4 of the gradient, at 45°.
            let part = 1e-4_f64.to_degrees() / 2.0;
            let down = 180.0 + 0.8_f64.atan2(0.6).to_degrees();
            near(
                sample[0]["slope_deg"].as_f64().unwrap(),
                45.0,
                part,
                "slope",
            );
            near(
                sample[0]["aspect_deg"].as_f64().unwrap(),
                down,
                part,
                "aspect",
            );
            for (mode, part) in [("analytic", part), ("grid", 0.6)] {
                for (product, expected) in [("slope", 45.0), ("aspect", down)] {
                    let arguments = ["derive", "dem.trn", "out.tif", "--overwrite"];
                    let more = ["--product", product, "--mode", mode];
                    stdout(&run(&[&arguments[..], &more].concat()));
                    let raster = GeoTiff::open_values(&path("out.tif")).unwrap();
                    let values = raster.read(0, Window::whole(SIDE, SIDE)).unwrap().heights;
                    let middle = values[SIDE / 2 * SIDE + SIDE / 2];
                    near(middle, expected, part, &format!("{mode} {product}"));
                }
            }
        }
        count += 1;
    }
    assert!(count > 25, "{count}");
}

#[test]
fn info_says_how_near_a_file_is_to_wgs_84() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    for (code, x, y, expected) in [
        (31287, 400_000.0, 400_000.0, "WGS 84 within 1.5 m"),
        (32633, 500_000.0, 5_300_000.0, "WGS 84 within 0 m"),
        (5514, -744_215.0, -1_041_500.0, "WGS 84 within 1 m"),
        (
            27200,
            2_600_000.0,
            6_000_000.0,
            "EPSG:27200 cannot be used here",
        ),
    ] {
        let affine = Affine::north_up(x, y, 10.0);
        write(
            &folder.path().join("dem.tif"),
            affine,
            &Crs::projected(code, None),
            SIDE,
            |x, _| x,
        );
        stdout(&run(&["encode", "dem.tif", "dem.trn", "--overwrite"]));
        let text = stdout(&run(&["info", "dem.trn"]));
        assert!(text.contains(expected), "{text}");
        let facts = json(&run(&["info", "dem.trn", "--json"]));
        assert_eq!(facts["unplaced"].is_null(), code != 27200, "{facts}");
    }
}

/// A grid of shifts in the format `NTv2`, of as many seconds northwards and eastwards everywhere in Germany.
fn ntv2(north: f32, east: f32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut add = |key: &str, value: [u8; 8]| {
        bytes.extend(format!("{key:8}").as_bytes());
        bytes.extend(value);
    };
    let whole = |value: i32| {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let text = |value: &str| <[u8; 8]>::try_from(format!("{value:8}").as_bytes()).unwrap();
    for (key, value) in [("NUM_OREC", 11), ("NUM_SREC", 11), ("NUM_FILE", 1)] {
        add(key, whole(value));
    }
    for (key, value) in [
        ("GS_TYPE", "SECONDS"),
        ("VERSION", "1"),
        ("SYSTEM_F", "DHDN"),
        ("SYSTEM_T", "ETRS89"),
    ] {
        add(key, text(value));
    }
    for (key, metres) in [
        ("MAJOR_F", 6_377_397.155),
        ("MINOR_F", 6_356_078.963),
        ("MAJOR_T", 6_378_137.0),
        ("MINOR_T", 6_356_752.314_f64),
    ] {
        add(key, metres.to_le_bytes());
    }
    for (key, value) in [
        ("SUB_NAME", "DE"),
        ("PARENT", "NONE"),
        ("CREATED", "01012000"),
        ("UPDATED", "01012000"),
    ] {
        add(key, text(value));
    }
    // West counts.
    for (key, degrees) in [
        ("S_LAT", 47.0),
        ("N_LAT", 56.0),
        ("E_LONG", -16.0),
        ("W_LONG", -5.0),
        ("LAT_INC", 1.0),
        ("LONG_INC", 1.0_f64),
    ] {
        add(key, (degrees * 3600.0).to_le_bytes());
    }
    let nodes = 10 * 12;
    add("GS_COUNT", whole(nodes));
    for _ in 0..nodes {
        for value in [north, -east, 0.0, 0.0] {
            bytes.extend(value.to_le_bytes());
        }
    }
    bytes.extend(b"END     ");
    bytes.extend([0; 8]);
    bytes
}

#[test]
fn grids_of_the_users_own_shift_datums() {
    let folder = tempfile::tempdir().unwrap();
    let affine = Affine::north_up(3_499_900.0, 5_540_401.0, 5.0);
    let crs = Crs::projected(31467, None);
    write(
        &folder.path().join("dem.tif"),
        affine,
        &crs,
        SIDE,
        |_, _| 100.0,
    );
    stdout(&terrane(folder.path(), &["encode", "dem.tif", "dem.trn"]));
    std::fs::write(folder.path().join("BETA2007.gsb"), ntv2(-3.6, 7.2)).unwrap();
    let with_grid = |arguments: &[&str]| {
        let mut command = command(folder.path());
        command.env("PROJ_DATA", folder.path()).args(arguments);
        stdout(&command.output().unwrap())
    };
    // 9° east and 50° north on DHDN, by the shift of the grid.
    let at = [
        "query",
        "dem.trn",
        "--at=9.002,49.999",
        "--crs",
        "EPSG:4326",
        "--json",
    ];
    let samples: Value = serde_json::from_str(&with_grid(&at)).unwrap();
    let (x, y) = (
        samples[0]["x"].as_f64().unwrap(),
        samples[0]["y"].as_f64().unwrap(),
    );
    assert!((x - 3_500_000.0).hypot(y - 5_540_279.542) < 0.01, "{x} {y}");
    assert!(with_grid(&["info", "dem.trn"]).contains("WGS 84 within 1 m"));
    let without = stdout(&terrane(folder.path(), &["info", "dem.trn"]));
    assert!(without.contains("WGS 84 within 3 m"), "{without}");
}

/// All longitudes of a geometry.
fn longitudes(value: &Value, found: &mut Vec<f64>) {
    let Some(values) = value.as_array() else {
        return;
    };
    match values.first().and_then(Value::as_f64) {
        Some(longitude) => found.push(longitude),
        None => values.iter().for_each(|value| longitudes(value, found)),
    }
}

/// A raster of 700 × 700 seconds from 179.9° east on, and the same at Greenwich.
#[test]
fn a_raster_across_180_degrees_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    let second = 1.0 / 3600.0;
    let mut tiles = Vec::new();
    for (name, west) in [("across", 179.9), ("beyond", -180.1), ("greenwich", -0.1)] {
        let affine = Affine::north_up(west, 0.1, second);
        let height_m = |x: f64, y: f64| 500.0 + 2000.0 * (x - west) + 900.0 * y;
        let (tif, trn) = (format!("{name}.tif"), format!("{name}.trn"));
        write(
            &folder.path().join(&tif),
            affine,
            &Crs::geographic(4326, None),
            700,
            height_m,
        );
        stdout(&run(&["encode", &tif, &trn, "--max-error", "0.1"]));
        let pmtiles = format!("{name}.pmtiles");
        let report = json(&run(&["tiles", &trn, &pmtiles, "--json"]));
        tiles.push(report["tiles"].as_u64().unwrap());
        let bytes = std::fs::read(folder.path().join(&pmtiles)).unwrap();
        let degrees =
            |at: usize| f64::from(i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())) / 1e7;
        let header = [102, 110, 119].map(degrees);
        // Least and greatest longitude, and the middle's.
        if name == "greenwich" {
            assert!(
                (header[0] + 0.1).abs() < 1e-6 && header[1] > 0.09,
                "{header:?}"
            );
        } else {
            assert_eq!(header[..2], [-180.0, 180.0]);
            assert!(header[2].abs() > 179.99, "{header:?}");
        }
    }
    assert_eq!(tiles, [tiles[2]; 3]);

    let ask = |file: &str, more: &[&str]| {
        let at = ["query", file, "--at=-179.95,0", "--at=179.95,0", "--json"];
        let samples = json(&run(&[&at[..], more].concat()));
        [0, 1].map(|index| samples[index]["height_m"].as_f64().unwrap())
    };
    let expected = [500.0 + 2000.0 * 0.15, 500.0 + 2000.0 * 0.05];
    for (file, more) in [
        ("across.trn", &[][..]),
        ("across.trn", &["--crs", "EPSG:4326"]),
        ("beyond.trn", &[]),
    ] {
        let found = ask(file, more);
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 0.2, "{file} {more:?}: {found}");
        }
    }

    stdout(&run(&[
        "contour",
        "across.trn",
        "lines.geojson",
        "--interval",
        "50",
    ]));
    let text = std::fs::read_to_string(folder.path().join("lines.geojson")).unwrap();
    let lines: Value = serde_json::from_str(&text).unwrap();
    let (mut found, mut cut) = (Vec::new(), 0);
    for feature in lines["features"].as_array().unwrap() {
        longitudes(&feature["geometry"]["coordinates"], &mut found);
        cut += usize::from(feature["geometry"]["type"] == "MultiLineString");
    }
    assert!(found.iter().all(|longitude| longitude.abs() <= 180.0));
    assert!(found.iter().any(|longitude| *longitude < -179.9) && cut > 0);
    assert!(found.iter().any(|longitude| *longitude > 179.9));
}
