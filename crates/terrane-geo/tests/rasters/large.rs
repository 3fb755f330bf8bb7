//! Memory is bounded by the window, whatever the size of the raster.

use terrane_geo::{
    CogWriter, Existing, GeoTiff, Output, RasterSource, SampleType, Storage, Window,
};

use crate::{swiss, wave};

/// The most memory this process has held, in megabytes; only Linux tells.
fn peak_memory_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace()
        .nth(1)?
        .parse::<u64>()
        .ok()
        .map(|kilobytes| kilobytes / 1024)
}

/// Writes a raster row by row, then reads it tile by tile; returns the number of tiles.
fn write_and_tile(width: usize, height: usize) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.tif");
    let storage = Storage::metres(SampleType::F32, Some(-9999.0));
    let mut writer = CogWriter::create(
        &Output::named_here(&path, Existing::Refuse),
        (width, height),
        swiss(),
        storage,
    )
    .unwrap();
    let crests: Vec<f64> = (0..width).map(|column| wave(column, 0)).collect();
    for row in 0..height {
        // A full wave per pixel would cost minutes; the crest moved down the rows is as good for counting tiles.
        let offset = (row % 512) as f64 / 8.0;
        let heights: Vec<f64> = crests.iter().map(|crest| crest + offset).collect();
        writer.write_rows(&heights).unwrap();
    }
    writer.finish().unwrap();
    println!("written, peak {:?} MB", peak_memory_mb());

    let raster = GeoTiff::open(&path).unwrap();
    let grid = terrane_format::TileGrid::new(width, height, 256).unwrap();
    let mut tiles = 0;
    for id in grid.tiles() {
        let window: Window = grid.window(id).unwrap();
        let tile = raster.read(0, window).unwrap();
        let expected = crests[window.column] + (window.row % 512) as f64 / 8.0;
        assert_eq!(tile.heights[0], f64::from(expected as f32));
        tiles += 1;
    }
    tiles
}

#[test]
#[ignore = "writes a gigabyte; run by `just test-large`"]
fn a_raster_of_400_million_pixels_is_tiled_in_300_mb() {
    assert_eq!(write_and_tile(20_000, 20_000), 79 * 79);
    if let Some(peak) = peak_memory_mb() {
        println!("peak memory {peak} MB");
        assert!(peak < 300, "{peak} MB");
    }
}
