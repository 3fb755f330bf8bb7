//! Every flavour is read pixel for pixel as GDAL reads it, or refused by name.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use terrane_geo::{CrsKind, Error, GeoTiff, RasterSource, Window};

use crate::{assert_same, flavour_folder};

#[derive(Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "it is a row of the manifest")]
struct Flavour {
    file: String,
    #[serde(default)]
    refused: bool,
    #[serde(default)]
    may_refuse: bool,
    width: usize,
    height: usize,
    dtype: String,
    crs_epsg: Option<u16>,
    vertical_epsg: Option<u16>,
    is_projected: bool,
    is_geographic: bool,
    transform: [f64; 6],
    area_or_point: Option<String>,
    #[serde(default)]
    is_point_unclear: bool,
    nodata: serde_json::Value,
    unit: Option<String>,
    overviews: Vec<(usize, usize)>,
    expected: Option<String>,
    expected_overview1: Option<String>,
    expected_union: Option<String>,
}

fn expected(folder: &Path, name: &str, unit: Option<&str>) -> Vec<f64> {
    let bytes = std::fs::read(folder.join("expected").join(name)).unwrap();
    // GDAL leaves heights in the file's unit; here they are metres.
    let metres = if unit == Some("ft") { 0.3048 } else { 1.0 };
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&chunk| f64::from_le_bytes(chunk) * metres)
        .collect()
}

fn flavours(folder: &Path) -> Vec<Flavour> {
    serde_json::from_str(&std::fs::read_to_string(folder.join("manifest.json")).unwrap()).unwrap()
}

/// Compares one file with GDAL's reading of it; what is said of it where it is refused.
fn compare_one(folder: &Path, flavour: &Flavour) -> Option<String> {
    let name = &flavour.file;
    let raster = match GeoTiff::open(&folder.join(name)) {
        Err(
            error @ (Error::Unsupported { .. }
            | Error::SeveralBands { .. }
            | Error::CrsBeside { .. }),
        ) if flavour.refused || flavour.may_refuse => {
            return Some(error.to_string());
        }
        raster => raster.unwrap_or_else(|error| panic!("{name}: {error}")),
    };
    assert!(!flavour.refused, "{name} should have been refused");

    let info = raster.info();
    assert_eq!(
        (info.width(), info.height()),
        (flavour.width, flavour.height),
        "{name}"
    );
    assert_eq!(info.storage.sample.name(), flavour.dtype, "{name}");
    assert_eq!(info.levels[1..], flavour.overviews, "{name}");
    let crs = &info.georeference.crs;
    assert_eq!(crs.horizontal_epsg(), flavour.crs_epsg, "{name}");
    assert_eq!(crs.vertical_epsg(), flavour.vertical_epsg, "{name}");
    assert_eq!(
        crs.kind() == CrsKind::Projected,
        flavour.is_projected,
        "{name}"
    );
    assert_eq!(
        crs.kind() == CrsKind::Geographic,
        flavour.is_geographic,
        "{name}"
    );
    let is_point = flavour.area_or_point.as_deref() == Some("Point");
    assert!(
        flavour.is_point_unclear || crs.pixel_is_point() == is_point,
        "{name}"
    );
    let transform = info.georeference.affine().numbers();
    for (ours, theirs) in transform.iter().zip(flavour.transform) {
        assert!(
            (ours - theirs).abs() <= 1e-12 * theirs.abs().max(1.0),
            "{name}: {transform:?}"
        );
    }
    match (&flavour.nodata, info.storage.nodata) {
        (serde_json::Value::Null, None) => {}
        (serde_json::Value::String(_), Some(nodata)) => assert!(nodata.is_nan(), "{name}"),
        (value, nodata) => {
            // The tag is text, and GDAL gives what the type makes of it.
            let held = |value: f64| match &flavour.dtype[..] {
                "float32" => f64::from(value as f32),
                _ => value,
            };
            assert_eq!(value.as_f64().map(held), nodata.map(held), "{name}");
        }
    }

    // Where a mask lies over nodata, GDAL takes nodata for heights; here both count.
    let heights = flavour
        .expected_union
        .as_ref()
        .or(flavour.expected.as_ref())
        .unwrap();
    let expected_heights = expected(folder, heights, flavour.unit.as_deref());
    let whole = Window::whole(flavour.width, flavour.height);
    let grid = raster.read(0, whole).unwrap();
    assert_same(&grid, &expected_heights, name);

    // A window across block borders is the same part of the same pixels.
    let window = Window {
        column: flavour.width / 3,
        row: flavour.height / 3,
        width: flavour.width.div_ceil(2),
        height: flavour.height.div_ceil(2),
    };
    assert_same(
        &raster.read(0, window).unwrap(),
        &grid.crop(window).heights,
        name,
    );

    if let Some(overview) = &flavour.expected_overview1 {
        let (width, height) = flavour.overviews[0];
        let expected_overview = expected(folder, overview, flavour.unit.as_deref());
        let grid = raster.read(1, Window::whole(width, height)).unwrap();
        assert_same(&grid, &expected_overview, &format!("{name}, overview"));
    }
    None
}

fn compare(folder: &Path) -> (usize, usize) {
    let flavours = flavours(folder);
    let refused = flavours
        .iter()
        .filter_map(|flavour| compare_one(folder, flavour))
        .inspect(|reason| println!("refused: {reason}"))
        .count();
    (flavours.len() - refused, refused)
}

#[test]
fn every_flavour_is_read_as_gdal_reads_it_or_refused() {
    let (read, refused) = compare(&flavour_folder());
    assert_eq!(read + refused, flavours(&flavour_folder()).len());
    assert!(
        read >= 105 && refused >= 5,
        "{read} read, {refused} refused"
    );
}

/// The same matrix at full size: `make.py --out DIR --size 900 700 --block 256`.
#[test]
#[ignore = "needs the large matrix; run by `just test-gdal`"]
fn every_large_flavour_is_read_as_gdal_reads_it_or_refused() {
    let folder = std::env::var("TERRANE_FLAVOURS")
        .expect("TERRANE_FLAVOURS names the folder that make.py wrote");
    let (read, refused) = compare(Path::new(&folder));
    println!("{read} read, {refused} refused");
}

/// Random rasters: `generate.py --out DIR --count N`.
#[test]
#[ignore = "needs generated rasters; run by `just test-rasters`"]
fn every_generated_raster_is_read_as_gdal_reads_it_or_refused() {
    let folder = std::env::var("TERRANE_RASTERS")
        .expect("TERRANE_RASTERS names the folder that generate.py wrote");
    let folder = Path::new(&folder);
    let (mut read, mut wrong) = (0, 0);
    let mut refused = BTreeMap::<String, usize>::new();
    for flavour in flavours(folder) {
        let path = folder.join(&flavour.file).display().to_string();
        // Each is told of, not only the first.
        match std::panic::catch_unwind(|| compare_one(folder, &flavour)) {
            Ok(None) => read += 1,
            Ok(Some(reason)) => *refused.entry(reason.replace(&path, "…")).or_default() += 1,
            Err(_) => wrong += 1,
        }
    }
    for (reason, count) in &refused {
        println!("{count} refused: {reason}");
    }
    let sum: usize = refused.values().sum();
    println!("{read} read as GDAL reads them, {sum} refused, {wrong} wrong");
    assert!(read > 0 && wrong == 0);
}

#[test]
fn lzma_is_refused_by_name() {
    let Err(error) = GeoTiff::open(&flavour_folder().join("lzma_tile_f32.tif")) else {
        panic!("LZMA was read")
    };
    let text = error.to_string();
    assert!(
        text.contains("LZMA compression is not supported") && text.contains("gdal_translate"),
        "{text}"
    );
}

#[test]
fn a_window_outside_and_a_level_that_is_not_there_are_refused() {
    let raster = GeoTiff::open(&flavour_folder().join("none_tile_f32.tif")).unwrap();
    let outside = Window {
        column: 60,
        row: 0,
        width: 20,
        height: 1,
    };
    assert!(matches!(
        raster.read(0, outside),
        Err(Error::OutsideRaster { .. })
    ));
    assert!(matches!(
        raster.read(3, Window::whole(1, 1)),
        Err(Error::NoSuchLevel { last: 0, .. })
    ));
}
