//! The benchmark of whole files from the command line, on terrains of our own.

use std::path::Path;

use serde_json::Value;
use terrane_geo::{
    Affine, CogWriter, Crs, Existing, Georeference, Kind, Output, SampleType, Storage,
};

use crate::{complaint, json, stdout, terrane};

fn generate(folder: &Path, name: &str, seed: &str) {
    let arguments = ["generate", name, "--size", "300x280", "--seed", seed];
    stdout(&terrane(folder, &arguments));
}

/// Tables of a benchmark of rasters.
fn bench(folder: &Path, rasters: &[&str], out: &str, more: &[&str]) -> Value {
    let arguments = [
        &["bench", "files"],
        rasters,
        &["--out", out, "--json"],
        more,
    ]
    .concat();
    json(&terrane(folder, &arguments))["tables"].take()
}

fn rows<'a>(tables: &'a Value, name: &str) -> &'a [Value] {
    tables[name].as_array().unwrap()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"))
}

/// The rows of a codec.
fn of<'a>(rows: &'a [Value], codec: &str) -> Vec<&'a Value> {
    let is_it = |row: &&Value| row["codec"].as_str().unwrap().contains(codec);
    rows.iter().filter(is_it).collect()
}

#[test]
fn every_byte_of_a_file_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    generate(path, "dem.tif", "3");
    let more = ["--bpp", "3,6", "--bound", "0.1", "--profile", "fast"];
    let tables = bench(path, &["dem.tif"], "out", &more);

    let bytes_of = |name: &str, rate: &[&str]| {
        let arguments = [&["encode", "dem.tif", name, "--profile", "fast"], rate].concat();
        stdout(&terrane(path, &arguments));
        std::fs::metadata(path.join(name)).unwrap().len()
    };
    let sizes = rows(&tables, "files-sizes");
    let ours = of(sizes, "terrane fast");
    assert_eq!(ours.len(), 2);
    assert_eq!(ours[0]["bytes"], bytes_of("a.trn", &["--max-error", "0.1"]));
    assert_eq!(ours[1]["bytes"], bytes_of("b.trn", &["--lossless"]));
    let rates = rows(&tables, "files-rates");
    assert_eq!(rates[0]["bytes"], bytes_of("c.trn", &["--bpp", "3"]));
    assert_eq!(rates[1]["bytes"], bytes_of("d.trn", &["--bpp", "6"]));

    // No file is off by more than its bound, and all say by how much.
    for codec in ["terrane", "LERC", "COG"] {
        let files = of(sizes, codec);
        assert!(files.len() >= 2, "{codec}");
        for file in files {
            let (bound, error) = (number(file, "bound_m"), number(file, "max_error_m"));
            assert!(error <= bound, "{file}");
            assert_eq!(error > 0.0, bound > 0.0, "{file}");
        }
    }
    // Heights are floats: there is no JPEG 2000 without loss.
    assert!(of(sizes, "JPEG").is_empty());

    for rate in rates {
        let (ours, theirs) = (number(rate, "bytes"), number(rate, "jpeg2000_bytes"));
        assert!((theirs / ours - 1.0).abs() < 0.02, "{rate}");
        let gain = number(rate, "psnr_db") - number(rate, "jpeg2000_psnr_db");
        assert!((number(rate, "gain_db") - gain).abs() < 1e-9);
    }
    // More bytes say more, of either codec.
    let derived = rows(&tables, "files-derived");
    assert_eq!(derived.len(), 4);
    for (coarse, fine) in derived.iter().zip(&derived[2..]) {
        assert_eq!(coarse["codec"], fine["codec"]);
        for key in ["slope_rmse_deg", "aspect_rmse_deg", "contour_distance_px"] {
            assert!(number(coarse, key) > number(fine, key), "{key}");
        }
        for key in ["flow_agreement", "viewshed_iou"] {
            let (coarse, fine) = (number(coarse, key), number(fine, key));
            assert!(0.0 < coarse && coarse < fine && fine <= 1.0, "{key}");
        }
    }
    let names = ["rates", "rates-mean", "sizes", "sizes-mean", "derived"];
    for name in names {
        for ending in ["csv", "json"] {
            assert!(path.join(format!("out/files-{name}.{ending}")).exists());
        }
    }
    for name in [
        "report.html",
        "report.md",
        "files-gain.svg",
        "files-sizes.svg",
    ] {
        assert!(path.join("out").join(name).exists(), "{name}");
    }
}

#[test]
fn integers_with_gaps_go_through_every_codec() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let file = path.join("whole-metres.tif");
    let output = Output::new(&file, Existing::Refuse, Kind::Raster);
    let georeference = Georeference::new(
        Affine::north_up(2_600_000.0, 1_200_000.0, 5.0),
        Crs::projected(2056, None),
    );
    let storage = Storage::metres(SampleType::I16, Some(-32_768.0));
    let size = (180, 150);
    let mut writer = CogWriter::create(&output, size, georeference, storage).unwrap();
    let heights = (0..size.0 * size.1).map(|pixel| {
        let (x, y) = ((pixel % size.0) as f64, (pixel / size.0) as f64);
        if (x - 40.0).hypot(y - 60.0) < 12.0 {
            return f64::NAN;
        }
        (900.0 + 300.0 * (x / 31.0).sin() * (y / 23.0).cos() + 40.0 * (x * y / 500.0).sin()).round()
    });
    writer.write_rows(&heights.collect::<Vec<f64>>()).unwrap();
    writer.finish().unwrap();

    let more = ["--bpp", "8", "--bound", "2,0.3"];
    let tables = bench(path, &["whole-metres.tif"], "out", &more);
    let sizes = rows(&tables, "files-sizes");
    for codec in ["terrane", "LERC", "COG", "JPEG"] {
        let lossless = of(sizes, codec).into_iter();
        let lossless = lossless.filter(|row| number(row, "bound_m") == 0.0);
        let lossless: Vec<&Value> = lossless.collect();
        assert_eq!(lossless.len(), 1, "{codec}");
        assert_eq!(number(lossless[0], "max_error_m"), 0.0);
    }
    // The gaps are no part of the windows.
    let window = ["--window", "100", "--bpp", "20", "--bound", "2"];
    let tables = bench(path, &["whole-metres.tif"], "windows", &window);
    assert_eq!(rows(&tables, "files-rates").len(), 1);
    let text = std::fs::read_to_string(path.join("windows/report.md")).unwrap();
    assert!(text.contains("(100×100)"), "{text}");
}

#[test]
fn rasters_are_taken_from_folders_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::create_dir(path.join("rasters")).unwrap();
    for (name, seed) in [("b", "1"), ("a", "2"), ("c", "3")] {
        generate(path, &format!("rasters/{name}.tif"), seed);
    }
    let more = ["--window", "192", "--bpp", "6", "--bound", "0.5"];
    let more = [more.as_slice(), &["--profile", "fast", "--limit", "2"]].concat();
    let tables = bench(path, &["rasters"], "out", &more);
    let rates = rows(&tables, "files-rates");
    assert_eq!(rates.len(), 2);
    assert_eq!(
        (&rates[0]["raster"], &rates[1]["raster"]),
        (&"a".into(), &"b".into())
    );
    assert_ne!(rates[0]["psnr_db"], rates[1]["psnr_db"]);
    let means = rows(&tables, "files-rates-mean");
    assert_eq!(means[0]["rasters"], 2);
    let mean = f64::midpoint(number(&rates[0], "gain_db"), number(&rates[1], "gain_db"));
    assert!((number(&means[0], "gain_db") - mean).abs() < 1e-9);

    // No file is as small as this.
    let small = [
        "--window", "192", "--bpp", "0.001", "--bound", "0.5", "--limit", "1",
    ];
    let tables = bench(path, &["rasters"], "small", &small);
    assert!(rows(&tables, "files-rates").is_empty());
    let text = std::fs::read_to_string(path.join("small/report.md")).unwrap();
    assert!(
        text.contains("Not reached: a (terrane standard, 0.001 bpp)"),
        "{text}"
    );

    let fails = |more: &[&str]| {
        let arguments = [&["bench", "files", "rasters"], more].concat();
        complaint(&terrane(path, &arguments))
    };
    let text = fails(&["--out", "none", "--window", "281"]);
    assert!(
        text.contains("3 have no window of 281 × 281 pixels"),
        "{text}"
    );
    let text = fails(&["--out", "none", "--bound", "0.1,0"]);
    assert!(text.contains("--bound is 0; it must be above 0"), "{text}");
    let text = fails(&["--out", "rasters"]);
    assert!(text.contains("rasters: is the input"), "{text}");
    assert!(!path.join("none").exists());
}
