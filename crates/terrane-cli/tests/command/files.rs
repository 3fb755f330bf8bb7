//! Terrane files from the command line.

use std::path::Path;
use std::process::Output;

use terrane_geo::{
    Affine, BandMetadata, CogWriter, Crs, Existing, GeoTiff, Georeference, Product, RasterSource,
    SampleType, Storage, Window,
};

use crate::{complaint, json, stdout, terrane};

fn generated(folder: &Path) {
    stdout(&terrane(
        folder,
        &["generate", "dem.tif", "--size", "300x280", "--seed", "3"],
    ));
}

fn heights(path: &Path) -> (Vec<f64>, (usize, usize)) {
    let raster = terrane_geo::open(&[path]).unwrap();
    let (width, height) = (raster.info().width(), raster.info().height());
    let grid = raster.read(0, Window::whole(width, height)).unwrap();
    (grid.heights, (width, height))
}

/// The values of a derived raster and their unit.
fn derived(path: &Path) -> (Vec<f64>, String) {
    let raster = GeoTiff::open_values(path).unwrap();
    let info = raster.info();
    let whole = Window::whole(info.width(), info.height());
    let values = raster.read(0, whole).unwrap().heights;
    (values, info.storage.band.unit.clone())
}

/// Two rasters have the same size, gaps in the same places, and heights within a bound.
fn assert_within(source: &Path, back: &Path, bound: f64) {
    let name = source.display();
    let ((source, size), (back, back_size)) = (heights(source), heights(back));
    assert_eq!(size, back_size, "{name}");
    for (a, b) in source.iter().zip(&back) {
        assert_eq!(a.is_nan(), b.is_nan(), "{name}");
        assert!(a.is_nan() || (a - b).abs() <= bound, "{name}: {a} {b}");
    }
}

/// A file holds what it guarantees, with the gaps and the georeference of its source.
fn assert_holds(report: &serde_json::Value, source: &str) {
    for key in ["holds", "nodata_equal", "georeference_equal"] {
        assert_eq!(report[key], true, "{source}: {key}");
    }
}

fn failed_check(output: &Output) -> String {
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_raster_goes_in_and_comes_back_within_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    generated(folder.path());
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    for (method, bound) in [("integers", 0.1), ("huvr-siren", 0.2)] {
        let encoded = json(&run(&[
            "encode",
            "dem.tif",
            "dem.trn",
            "--method",
            method,
            "--max-error",
            &bound.to_string(),
            "--overwrite",
            "--json",
        ]));
        assert!(encoded["max_error_m"].as_f64().unwrap() <= bound);
        let info = json(&run(&["info", "dem.trn", "--json"]));
        assert_eq!(
            (info["width"].as_u64(), info["method"].as_str()),
            (Some(300), Some(method))
        );
        assert_eq!(info["bound_m"], bound);
        assert!(stdout(&run(&["info", "dem.trn"])).contains("EPSG:"));
        let report = json(&run(&[
            "verify",
            "dem.trn",
            "--against",
            "dem.tif",
            "--json",
        ]));
        assert_holds(&report, "dem.tif");
        assert!(report["max_error_m"].as_f64().unwrap() <= bound);

        stdout(&run(&["decode", "dem.trn", "back.tif", "--overwrite"]));
        assert_within(&at("dem.tif"), &at("back.tif"), bound);
        let info = |name: &str| {
            terrane_geo::open(&[at(name)])
                .unwrap()
                .info()
                .georeference
                .clone()
        };
        assert_eq!(info("dem.tif"), info("back.tif"));
    }
}

#[test]
fn points_products_and_parts_agree_with_the_decoded_raster() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    generated(folder.path());
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    stdout(&run(&[
        "encode",
        "dem.tif",
        "dem.trn",
        "--tile",
        "256",
        "--max-error",
        "0.05",
    ]));
    stdout(&run(&["decode", "dem.trn", "back.tif"]));
    let (back, (width, _)) = heights(&at("back.tif"));
    let affine = terrane_geo::open(&[at("back.tif")])
        .unwrap()
        .info()
        .georeference
        .affine();
    // A pixel centre has the pixel's height, and the slope that its neighbours give.
    let (column, row) = (120, 90);
    let (x, y) = affine.apply(f64::from(column) + 0.5, f64::from(row) + 0.5);
    let index = row as usize * width + column as usize;
    let samples = json(&run(&[
        "query",
        "dem.trn",
        "--at",
        &format!("{x},{y}"),
        "--at",
        "0,0",
        "--json",
    ]));
    let sample = &samples[0];
    assert!((sample["height_m"].as_f64().unwrap() - back[index]).abs() < 1e-4);
    let east = (back[index + 1] - back[index - 1]) / 2.0;
    assert!((sample["gradient_east"].as_f64().unwrap() - east).abs() < 1e-4);
    assert!(samples[1]["height_m"].is_null());
    std::fs::write(at("points.csv"), format!("x,y,name\n{x},{y},here\n")).unwrap();
    assert!(stdout(&run(&["query", "dem.trn", "--points", "points.csv"])).contains("height m"));

    stdout(&run(&[
        "derive",
        "dem.trn",
        "slope.tif",
        "--product",
        "slope",
    ]));
    let (slopes, _) = derived(&at("slope.tif"));
    assert!((slopes[index] - sample["slope_deg"].as_f64().unwrap()).abs() < 1e-3);
    stdout(&run(&[
        "derive",
        "dem.trn",
        "shade.tif",
        "--product",
        "hillshade",
        "--mode",
        "grid",
    ]));
    let (shades, _) = derived(&at("shade.tif"));
    assert!(shades[0].is_nan() && (1.0..=255.0).contains(&shades[index]));

    // Half the resolution by an overview, a third by means, and a box at a quarter of a pixel.
    stdout(&run(&["decode", "dem.trn", "half.tif", "--level", "1"]));
    assert_eq!(heights(&at("half.tif")).1, (150, 140));
    stdout(&run(&[
        "decode",
        "dem.trn",
        "third.tif",
        "--resolution",
        "3",
    ]));
    let (third, size) = heights(&at("third.tif"));
    assert_eq!(size, (100, 94));
    let mean: f64 = (0..9)
        .map(|k| back[(90 + k / 3) * width + 120 + k % 3])
        .sum::<f64>()
        / 9.0;
    assert!((third[30 * 100 + 40] - mean).abs() < 1e-3);
    let (x1, y1) = affine.apply(130.0, 80.0);
    let (x0, y0) = affine.apply(120.0, 90.0);
    let bbox = format!("{x0},{y0},{x1},{y1}");
    stdout(&run(&[
        "decode",
        "dem.trn",
        "fine.tif",
        "--resolution",
        "0.25",
        "--bbox",
        &bbox,
    ]));
    assert_eq!(heights(&at("fine.tif")).1, (40, 40));
}

/// What is derived is stored as it is, in its own unit, though the heights of the source are in feet; and nothing takes
/// it for heights.
#[test]
fn derived_rasters_carry_their_own_unit() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    // A plane that rises by one in ten eastwards.
    let rise: Vec<f64> = (0..1200)
        .map(|index| 100.0 + 0.1 * f64::from(index % 40))
        .collect();
    for (name, vertical) in [("metres", None), ("feet", Some(6360))] {
        let affine = Affine::north_up(2_600_000.0, 1_200_000.0, 1.0);
        let place = Georeference::new(affine, Crs::projected(2056, vertical));
        let storage = Storage::metres(SampleType::F64, None);
        let source = at(&format!("{name}.tif"));
        let mut writer = CogWriter::create(
            &terrane_geo::Output::named_here(&source, Existing::Refuse),
            (40, 30),
            place,
            storage,
        )
        .unwrap();
        writer.write_rows(&rise).unwrap();
        writer.finish().unwrap();
        let (tif, trn) = (format!("{name}.tif"), format!("{name}.trn"));
        stdout(&run(&["encode", &tif, &trn, "--lossless"]));
        for product in Product::ALL {
            let out = format!("{name}-{}.tif", product.name());
            let arguments = [
                "derive",
                &trn,
                &out,
                "--product",
                product.name(),
                "--mode",
                "grid",
            ];
            stdout(&run(&arguments));
            let (values, unit) = derived(&at(&out));
            assert_eq!(unit, product.unit(), "{out}");
            let middle = values[15 * 40 + 20];
            match product {
                Product::Slope => assert!((middle - 0.1_f64.atan().to_degrees()).abs() < 1e-3),
                Product::Aspect => assert!((middle - 270.0).abs() < 1e-3),
                Product::Roughness => assert!((middle - 0.2).abs() < 1e-3),
                _ => assert!(!middle.is_nan()),
            }
            let refused = complaint(&run(&["encode", &out, "no.trn"]));
            let expected = format!("{out}: a raster of {} instead of heights", product.name());
            assert!(refused.contains(&expected), "{refused}");
        }
    }
}

#[test]
fn lossless_files_give_integers_and_floats_back() {
    let folder = tempfile::tempdir().unwrap();
    generated(folder.path());
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    stdout(&run(&["encode", "dem.tif", "dem.trn", "--lossless"]));
    let report = json(&run(&[
        "verify",
        "dem.trn",
        "--against",
        "dem.tif",
        "--json",
    ]));
    assert_eq!(
        (&report["max_error_m"], &report["holds"]),
        (&0.0.into(), &true.into())
    );
    stdout(&run(&["decode", "dem.trn", "back.tif"]));
    let report = terrane(
        folder.path(),
        &["verify", "dem.trn", "--against", "back.tif", "--json"],
    );
    assert_eq!(json(&report)["max_error_m"], 0.0);
}

#[test]
fn mistakes_are_answered_with_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    generated(folder.path());
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    stdout(&run(&[
        "encode",
        "dem.tif",
        "dem.trn",
        "--max-error",
        "0.5",
    ]));
    assert!(complaint(&run(&["encode", "dem.tif", "dem.trn"])).contains("--overwrite"));
    assert!(
        complaint(&run(&["encode", "dem.tif", "a.trn", "--max-error", "0"]))
            .contains("--max-error must be above 0")
    );
    assert!(
        complaint(&run(&["encode", "dem.tif", "a.trn", "--method", "functa"])).contains("--model")
    );
    assert!(complaint(&run(&["info", "dem.tif"])).contains("not a terrane file"));
    assert!(complaint(&run(&["info", "none.trn"])).contains("none.trn"));
    assert!(
        complaint(&run(&["decode", "dem.trn", "a.tif", "--level", "9"]))
            .contains("there is no level 9")
    );
    assert!(
        complaint(&run(&["decode", "dem.trn", "a.tif", "--bbox", "0,0,1,1"]))
            .contains("outside the raster")
    );
    assert!(complaint(&run(&["query", "dem.trn"])).contains("--at"));
    assert!(!folder.path().join("a.trn").exists());

    assert!(
        complaint(&run(&[
            "encode", "dem.tif", "a.trn", "--method", "integers", "--bits", "8"
        ]))
        .contains("leave out --bits")
    );

    // A damaged file and a broken bound end with 1.
    let path = folder.path().join("dem.trn");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 200;
    bytes[last] ^= 4;
    std::fs::write(folder.path().join("bad.trn"), &bytes).unwrap();
    assert!(failed_check(&run(&["verify", "bad.trn"])).contains("damaged"));
    stdout(&run(&[
        "generate",
        "other.tif",
        "--size",
        "300x280",
        "--seed",
        "4",
    ]));
    assert!(
        failed_check(&run(&["verify", "dem.trn", "--against", "other.tif"]))
            .contains("above the bound of")
    );
}

#[test]
fn rates_of_whole_files_come_out_as_asked_in_every_profile() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    stdout(&run(&["generate", "dem.tif", "--size", "700x500"]));
    let encoded = |arguments: &[&str]| {
        let mut all = vec!["encode", "dem.tif", "a.trn", "--overwrite", "--json"];
        all.extend_from_slice(arguments);
        json(&run(&all))
    };
    let near = |value: &serde_json::Value, target: f64| {
        let value = value.as_f64().unwrap();
        assert!((value / target - 1.0).abs() < 0.02, "{value} for {target}");
    };
    near(&encoded(&["--bpp", "1.5"])["bpp"], 1.5);
    near(&encoded(&["--rmse", "0.04"])["rmse_m"], 0.04);
    let impossible = ["encode", "dem.tif", "b.trn", "--bpp", "0.01"];
    assert!(complaint(&run(&impossible)).contains("of 0.01 cannot be reached"));
    assert!(!folder.path().join("b.trn").exists());
    let mut sizes = Vec::new();
    for profile in ["fast", "standard", "best"] {
        let report = encoded(&["--profile", profile, "--max-error", "0.1"]);
        assert!(report["max_error_m"].as_f64().unwrap() <= 0.1);
        stdout(&run(&["verify", "a.trn", "--against", "dem.tif"]));
        sizes.push(report["bytes"].as_u64().unwrap());
    }
    let hard = encoded(&["--max-error", "0.1", "--effort", "3"])["bytes"]
        .as_u64()
        .unwrap();
    let easy = encoded(&["--max-error", "0.1", "--effort", "0"])["bytes"]
        .as_u64()
        .unwrap();
    assert!(
        hard <= sizes[1] && sizes[1] < easy,
        "{hard} {sizes:?} {easy}"
    );
    assert!(sizes[1] < sizes[0], "{sizes:?}");
}

#[test]
#[ignore = "takes minutes; run by `just test-files`"]
fn every_raster_of_the_data_comes_back_within_its_bounds() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let Ok(entries) = std::fs::read_dir(&data) else {
        eprintln!("skipped: there is no {}", data.display());
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut rasters: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "tif"))
        .collect();
    rasters.sort();
    for method in ["context", "integers", "huvr-siren"] {
        for bound in ["0.01", "0.05", "0.1", "0.5"] {
            let mut most = 0.0_f64;
            for raster in &rasters {
                let raster = raster.to_str().unwrap();
                stdout(&terrane(
                    folder.path(),
                    &[
                        "encode",
                        raster,
                        "a.trn",
                        "--method",
                        method,
                        "--max-error",
                        bound,
                        "--overwrite",
                        "--progress",
                        "none",
                    ],
                ));
                let report = json(&terrane(
                    folder.path(),
                    &[
                        "verify",
                        "a.trn",
                        "--against",
                        raster,
                        "--json",
                        "--progress",
                        "none",
                    ],
                ));
                assert_holds(&report, raster);
                most = most.max(report["max_error_m"].as_f64().unwrap());
            }
            eprintln!(
                "{method}, bound {bound} m: {} rasters, greatest error {most:.6} m",
                rasters.len()
            );
        }
    }
}

#[test]
fn nodata_and_small_bounds_survive_the_way_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let place = || {
        Georeference::new(
            Affine::north_up(2_600_000.0, 1_200_000.0, 1.0),
            Crs::projected(2056, None),
        )
    };
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    // Heights that a bound may round to the nodata value, and millimetres that a 32-bit float cannot tell apart.
    let near_nought = |index: usize| {
        if index.is_multiple_of(7) {
            f64::NAN
        } else {
            0.08 + index as f64 * 1e-5
        }
    };
    let high = |index: usize| {
        if index.is_multiple_of(7) {
            f64::NAN
        } else {
            8848.0 + (index % 97) as f64 * 0.001
        }
    };
    let millimetres = BandMetadata {
        scale: 0.001,
        ..BandMetadata::default()
    };
    let sources: [(&str, Storage, Vec<f64>, f64); 2] = [
        (
            "low.tif",
            Storage::metres(SampleType::F32, Some(0.0)),
            (0..1200).map(near_nought).collect(),
            0.1,
        ),
        (
            "high.tif",
            Storage {
                sample: SampleType::I32,
                nodata: Some(-1.0),
                band: millimetres,
            },
            (0..1200).map(high).collect(),
            1e-4,
        ),
    ];
    for (name, storage, source, bound) in sources {
        let mut writer = CogWriter::create(
            &terrane_geo::Output::named_here(&at(name), Existing::Refuse),
            (40, 30),
            place(),
            storage,
        )
        .unwrap();
        writer.write_rows(&source).unwrap();
        writer.finish().unwrap();
        for rate in [
            vec!["--max-error".to_owned(), bound.to_string()],
            vec!["--lossless".to_owned()],
        ] {
            let mut arguments = vec!["encode", name, "a.trn", "--overwrite"];
            arguments.extend(rate.iter().map(String::as_str));
            stdout(&run(&arguments));
            stdout(&run(&["verify", "a.trn", "--against", name]));
            stdout(&run(&["decode", "a.trn", "back.tif", "--overwrite"]));
            assert_within(&at(name), &at("back.tif"), bound);
        }
    }
}

/// Values that are no heights are stored as no data, and that is said: by encode, by a shard, and by verify.
#[test]
fn what_is_no_height_is_counted_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dem.tif");
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    // Our own writer refuses such values, so they are put into the bytes of a plain TIFF.
    let (width, height) = (64_u32, 40_u32);
    let mut file = vec![b'I', b'I', 42, 0, 8, 0, 0, 0];
    let tags: [(u16, u16, u32); 10] = [
        (256, 4, width),
        (257, 4, height),
        (258, 3, 32),
        (259, 3, 1),
        (262, 3, 1),
        (273, 4, 8 + 2 + 12 * 10 + 4),
        (277, 3, 1),
        (278, 4, height),
        (279, 4, width * height * 4),
        (339, 3, 3),
    ];
    file.extend((tags.len() as u16).to_le_bytes());
    for (code, kind, value) in tags {
        file.extend(code.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(1_u32.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    for index in 0..width * height {
        let height = match index {
            70 => f32::INFINITY,
            71 => -2e30,
            200 => f32::NAN,
            _ => index as f32 / 100.0,
        };
        file.extend(height.to_le_bytes());
    }
    std::fs::write(&path, &file).unwrap();
    let encoded = run(&["encode", "dem.tif", "dem.trn", "--lossless", "--json"]);
    let warning = String::from_utf8(encoded.stderr.clone()).unwrap();
    assert!(
        warning.contains("warning: 2 pixels hold infinity or 1e30"),
        "{warning}"
    );
    let report = json(&encoded);
    assert_eq!(report["not_heights"], 2);
    assert_eq!(report["pixels"], u64::from(width * height) - 3);
    let report = json(&run(&[
        "verify",
        "dem.trn",
        "--against",
        "dem.tif",
        "--json",
    ]));
    assert_eq!(
        (&report["not_heights"], &report["holds"]),
        (&2.into(), &true.into())
    );
    stdout(&run(&[
        "shard",
        "plan",
        "dem.tif",
        "plan.json",
        "--shards",
        "1",
    ]));
    let shard = run(&["shard", "encode", "plan.json", "--shard", "0"]);
    let warning = String::from_utf8(shard.stderr).unwrap();
    assert!(warning.contains("warning: 2 pixels"), "{warning}");
}
