//! Points, and slopes that are the same wherever they are asked for.

use std::path::Path;

use terrane_geo::{
    Affine, CogWriter, Crs, Existing, GeoTiff, Georeference, Kind, RasterSource, SampleType,
    Storage, Window,
};

use crate::{complaint, json, stdout, terrane};

/// A raster of a formula.
fn raster(path: &Path, place: Georeference, (width, height): (usize, usize)) {
    let storage = Storage::metres(SampleType::F32, Some(-9999.0));
    let output = terrane_geo::Output::new(path, Existing::Refuse, Kind::Raster);
    let mut writer = CogWriter::create(&output, (width, height), place, storage).unwrap();
    for row in 0..height {
        let heights: Vec<f64> = (0..width)
            .map(|column| 500.0 + 0.3 * column as f64 + 0.2 * row as f64)
            .collect();
        writer.write_rows(&heights).unwrap();
    }
    writer.finish().unwrap();
}

fn points(folder: &Path, text: &str) -> std::process::Output {
    std::fs::write(folder.join("points.csv"), text).unwrap();
    let arguments = ["query", "dem.trn", "--points", "points.csv", "--json"];
    terrane(folder, &arguments)
}

#[test]
fn no_point_of_a_table_is_lost_or_taken_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let place = Georeference::new(
        Affine::north_up(2_600_000.0, 1_200_000.0, 1.0),
        Crs::projected(2056, None),
    );
    raster(&folder.path().join("dem.tif"), place, (64, 64));
    stdout(&terrane(folder.path(), &["encode", "dem.tif", "dem.trn"]));
    let a = "2600010.5,1199990.5\n";
    let b = "2600020.5,1199980.5\n";
    let expected = json(&points(folder.path(), &format!("{a}{b}")));
    assert_eq!(expected.as_array().unwrap().len(), 2);
    for text in [
        format!("\u{feff}{a}{b}"),
        format!("\u{feff}x,y\n{a}{b}"),
        format!("id,x,y\n1,{a}2,{b}"),
        "y;x\n1199990.5;2600010.5\n1199980.5;2600020.5\n".to_owned(),
    ] {
        assert_eq!(json(&points(folder.path(), &text)), expected, "{text:?}");
    }
    let text = complaint(&points(folder.path(), &format!("26000IO.5,1199990.5\n{b}")));
    assert!(text.contains("points.csv: line 1"), "{text}");
    let text = complaint(&points(folder.path(), &format!("{a}2600020.5\n")));
    assert!(text.contains("points.csv: line 2"), "{text}");
}

#[test]
fn slopes_on_a_web_map_are_the_same_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    // Pixels of a kilometre from 60° to 74° north: a unit of the map is from half a metre to a quarter.
    let place = Georeference::new(
        Affine::north_up(1_000_000.0, 12_500_000.0, 8_000.0),
        Crs::projected(3857, None),
    );
    raster(&folder.path().join("dem.tif"), place, (64, 520));
    stdout(&run(&[
        "encode",
        "dem.tif",
        "dem.trn",
        "--max-error",
        "0.001",
    ]));
    for mode in ["analytic", "grid"] {
        let arguments = [
            "derive",
            "dem.trn",
            "slope.tif",
            "--product",
            "slope",
            "--mode",
            mode,
        ];
        stdout(&run(&[&arguments[..], &["--overwrite"]].concat()));
        let heights = {
            let path = folder.path().join("slope.tif");
            let raster = GeoTiff::open_values(&path).unwrap();
            raster.read(0, Window::whole(64, 520)).unwrap().heights
        };
        for row in [40, 260, 480] {
            let (x, y) = (
                1_000_000.0 + 32.5 * 8_000.0,
                12_500_000.0 - (f64::from(row) + 0.5) * 8_000.0,
            );
            let at = format!("{x},{y}");
            let sample = json(&run(&["query", "dem.trn", "--at", &at, "--json"]));
            let asked = sample[0]["slope_deg"].as_f64().unwrap();
            let derived = heights[row as usize * 64 + 32];
            assert!(
                (asked / derived - 1.0).abs() < 1e-3,
                "{mode}, row {row}: {asked} {derived}"
            );
        }
    }
}

#[test]
fn coordinates_in_degrees_tell_pixels_apart() {
    let folder = tempfile::tempdir().unwrap();
    // In the middle, on the equator, a degree is as long either way.
    let place = Georeference::new(
        Affine::north_up(10.0, 8e-4, 1e-4),
        Crs::geographic(4326, None),
    );
    raster(&folder.path().join("dem.tif"), place, (3600, 16));
    stdout(&terrane(folder.path(), &["encode", "dem.tif", "dem.trn"]));
    let points = ["--at", "10.12341,0.00002", "--at", "10.12343,0.00002"];
    let text = stdout(&terrane(
        folder.path(),
        &[&["query", "dem.trn"], &points[..]].concat(),
    ));
    assert!(
        text.contains("10.123410") && text.contains("10.123430"),
        "{text}"
    );
}
