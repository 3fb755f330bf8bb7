//! Real rasters, where they are at hand.

use std::path::Path;

use terrane_geo::{GeoTiff, RasterSource, Window};

#[test]
fn every_real_raster_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: no real data beside the project");
        return;
    };
    let mut read = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "tif") {
            continue;
        }
        let raster = GeoTiff::open(&path).unwrap_or_else(|error| panic!("{error}"));
        let info = raster.info();
        let grid = raster
            .read(0, Window::whole(info.width(), info.height()))
            .unwrap();
        let valid = grid.heights.iter().filter(|height| !height.is_nan());
        let (low, high) = valid.fold((f64::MAX, f64::MIN), |(low, high), &height| {
            (low.min(height), high.max(height))
        });
        assert!(
            low > -12_000.0 && high < 9_000.0 && low < high,
            "{}: {low} to {high} m",
            path.display()
        );
        read += 1;
    }
    println!("{read} real rasters read");
    assert!(read > 0);
}
