//! Changes that are known, between files that were made for them.

use std::path::Path;
use std::sync::Arc;

use terrane_codec::Terrain;
use terrane_codec::format::Window;
use terrane_geo::{
    Affine, Crs, Existing, Georeference, Grid, GroundScale, Kind, MemoryRaster, Output, SampleType,
    Storage,
};

use super::{Change, ChangeArrays, ChangeReport, Side, Unproven};
use crate::tiles::{
    Before, BlockCache, Deadline, Layer, MapTile, MapTiles, TileRequest, degrees, position,
};
use crate::{Error, Settings, Target, fixture};

const SIZE: (usize, usize) = (230, 170);
const BOUND: f64 = 0.1;

/// Rough hills with a gap; the noise is such that a decoded pixel is off nearly everywhere.
fn ground(size: (usize, usize), (left, top): (usize, usize)) -> Grid {
    let mut grid = Grid::missing(size.0, size.1);
    for (index, height) in grid.heights.iter_mut().enumerate() {
        let (column, row) = (left + index % size.0, top + index / size.0);
        let (x, y) = (column as f64, row as f64);
        if (x - 40.0).hypot(y - 120.0) > 12.0 {
            let noise = ((column * 7919 + row * 104_729) % 997) as f64 / 997.0;
            *height = 431.0 + 12.0 * (x / 31.0).sin() * (y / 27.0).cos() + 0.4 * noise;
        }
    }
    grid
}

/// A heap and a pit of 3 m, and a step of 0.15 m, which is below both bounds together.
fn built(column: usize, row: usize) -> f64 {
    let (x, y) = (column as f64, row as f64);
    let hill = |at: (f64, f64), radius: f64, height: f64| {
        height * (1.0 - ((x - at.0).hypot(y - at.1) / radius).powi(2)).max(0.0)
    };
    let step = if (150..200).contains(&column) && (20..60).contains(&row) {
        0.15
    } else {
        0.0
    };
    hill((100.0, 60.0), 14.0, 3.0) + hill((160.0, 110.0), 11.0, -3.0) + step
}

fn changed(mut grid: Grid, (left, top): (usize, usize)) -> Grid {
    let width = grid.width;
    for (index, height) in grid.heights.iter_mut().enumerate() {
        *height += built(left + index % width, top + index / width);
    }
    grid
}

fn place(left: usize, top: usize) -> Georeference {
    let affine = Affine::north_up(2_600_000.0, 1_200_000.0, 2.0);
    let affine = affine.shifted(left as f64, top as f64);
    Georeference::new(affine, Crs::projected(2056, Some(5728)))
}

fn file(folder: &Path, grid: Grid, georeference: Georeference, target: Target) -> Terrain {
    let storage = Storage::metres(SampleType::F64, Some(-9999.0));
    let raster = MemoryRaster::new("ground", grid, georeference, storage);
    let path = folder.join("file.trn");
    let settings = Settings {
        target,
        tile: Some(64),
        ..Settings::default()
    };
    fixture::write(&raster, &settings, &path);
    let terrain = crate::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    terrain
}

fn arrays(change: &Change) -> ChangeArrays {
    change.arrays(2, &mut |_, _| Ok(())).unwrap()
}

/// True fill and cut of some pixels, by the sources.
fn volumes(truth: &[f64], is_counted: impl Fn(usize) -> bool, area: f64) -> (f64, f64) {
    let mut sums = (0.0, 0.0);
    for (index, value) in truth.iter().enumerate() {
        if !value.is_nan() && is_counted(index) {
            sums.0 += value.max(0.0) * area;
            sums.1 += (-value).max(0.0) * area;
        }
    }
    sums
}

/// Encodes both within the bound and holds what is said of their change against the truth.
fn check_known_change(before: Grid, after: Grid, georeference: Georeference) -> ChangeReport {
    let folder = tempfile::tempdir().unwrap();
    let truth: Vec<f64> = after
        .heights
        .iter()
        .zip(&before.heights)
        .map(|(new, old)| new - old)
        .collect();
    let affine = georeference.affine();
    let (x, y) = affine.apply(SIZE.0 as f64 / 2.0, SIZE.1 as f64 / 2.0);
    let scale = GroundScale::of(&georeference.crs).unwrap().at(x, y);
    let area = affine.pixel_size().powi(2) * scale.area();
    let bounded = Target::MaxError(BOUND);
    let old = file(folder.path(), before, georeference.clone(), bounded);
    let new = file(folder.path(), after, georeference, bounded);
    let change = Change::between(&new, &old, None).unwrap();
    assert_eq!(change.bound_m(), Ok(0.2));
    let ChangeArrays {
        difference,
        proven,
        report,
    } = arrays(&change);
    let proven = proven.unwrap();
    let mut worst: f64 = 0.0;
    for (index, &truth) in truth.iter().enumerate() {
        let found = f64::from(difference[index]);
        assert_eq!(found.is_nan(), truth.is_nan());
        if truth.is_nan() {
            assert!(!proven[index]);
            continue;
        }
        worst = worst.max((found - truth).abs());
        assert!((found - truth).abs() <= report.stored_bound_m.unwrap());
        // Every pixel of the mask is true change to the same side, and what changed by more than twice the bound is in it.
        if proven[index] {
            assert!(truth != 0.0 && (truth > 0.0) == (found > 0.0));
        }
        assert!(proven[index] || truth.abs() <= 0.4 + 1e-9);
    }
    // The errors are there: a test of perfect copies would prove nothing.
    assert!(worst > 0.05, "{worst}");
    let sums = report.volumes.proven.unwrap();
    assert!(sums.pixels > 600, "{}", sums.pixels);
    let area_m2 = area * sums.pixels as f64;
    assert!((sums.area_m2 / area_m2 - 1.0).abs() < 1e-5, "{sums:?}");
    let (fill, cut) = volumes(&truth, |index| proven[index], area);
    assert!((fill - sums.fill_m3).abs() <= sums.fill_bound_m3 && fill > 500.0 * area);
    assert!((cut - sums.cut_m3).abs() <= sums.cut_bound_m3 && cut > 500.0 * area);
    let (fill, cut) = volumes(&truth, |_| true, area);
    let all = &report.volumes;
    let within = |value: f64, interval: super::Interval| {
        assert!(
            value >= interval.low && value <= interval.high,
            "{value} {interval:?}"
        );
    };
    within(fill, all.fill.unwrap());
    within(cut, all.cut.unwrap());
    let net = all.fill_m3 - all.cut_m3;
    assert!((fill - cut - net).abs() <= all.net_bound_m3.unwrap());
    assert_eq!(all.pixels + report.nodata_pixels, truth.len() as u64);
    report
}

#[test]
fn proven_change_is_true_change_and_volumes_are_within_their_bounds() {
    let (before, after) = (ground(SIZE, (0, 0)), changed(ground(SIZE, (0, 0)), (0, 0)));
    let report = check_known_change(before, after, place(0, 0));
    assert!(report.nodata_pixels > 400 && report.warnings.is_empty());
}

#[test]
fn change_of_real_terrain_is_proven() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/m1_si_tm1_564_146.tif");
    if !path.exists() {
        eprintln!("skipped: there is no {}", path.display());
        return;
    }
    let raster = terrane_geo::open(&[path]).unwrap();
    let info = raster.info();
    let window = Window::whole(info.width(), info.height());
    let before = raster.read(0, window).unwrap();
    let after = changed(before.clone(), (0, 0));
    check_known_change(before, after, info.georeference.clone());
}

#[test]
fn grids_that_are_shifted_by_whole_pixels_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let (left, top) = (37, 21);
    let lossless = Target::Lossless;
    let old = file(folder.path(), ground(SIZE, (0, 0)), place(0, 0), lossless);
    // Anchored at pixel centres, and beyond the old file in the east and south.
    let grid = changed(ground(SIZE, (left, top)), (left, top));
    let mut anchored = place(left, top);
    anchored.crs.directory[11] = 2;
    anchored.anchor = anchored.anchor.shifted(0.5, 0.5);
    assert!(anchored.crs.pixel_is_point());
    let new = file(folder.path(), grid, anchored, lossless);
    let change = Change::between(&new, &old, None).unwrap();
    assert_eq!(change.bound_m(), Ok(0.0));
    let found = arrays(&change);
    let proven = found.proven.unwrap();
    for (index, &value) in found.difference.iter().enumerate() {
        let (column, row) = (left + index % SIZE.0, top + index / SIZE.0);
        if column >= SIZE.0 || row >= SIZE.1 {
            assert!(value.is_nan() && !proven[index]);
        } else if !value.is_nan() {
            let truth = built(column, row);
            assert!((f64::from(value) - truth).abs() < 1e-6);
            // Nothing is lost, so that every change is proven, and nothing else.
            assert_eq!(proven[index], truth != 0.0, "{column} {row}");
        }
    }
    let sums = found.report.volumes.proven.unwrap();
    // Areas alone may be off.
    assert!(sums.fill_bound_m3 < 3e-5 * sums.fill_m3 && sums.cut_bound_m3 < 3e-5 * sums.cut_m3);
}

#[test]
fn rotated_grids_and_blocks_of_pixels_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let mut rotated = place(0, 0);
    rotated.anchor = Affine {
        x_per_column: 1.6,
        x_per_row: 1.2,
        y_per_column: 1.2,
        y_per_row: -1.6,
        ..rotated.anchor
    };
    let bounded = Target::MaxError(BOUND);
    let (before, after) = (ground(SIZE, (0, 0)), changed(ground(SIZE, (0, 0)), (0, 0)));
    let old = file(folder.path(), before, rotated.clone(), bounded);
    let new = file(folder.path(), after, rotated, bounded);
    let change = Change::between(&new, &old, Some(8.0)).unwrap();
    assert_eq!(change.size(), (58, 43));
    let found = arrays(&change);
    let proven = found.proven.unwrap();
    assert!(proven.iter().filter(|proven| **proven).count() > 30);
    for (index, &value) in found.difference.iter().enumerate() {
        let (left, top) = (4 * (index % 58), 4 * (index / 58));
        let pixels = (top..(top + 4).min(SIZE.1))
            .flat_map(|row| (left..(left + 4).min(SIZE.0)).map(move |column| (column, row)))
            .filter(|&(x, y)| (x as f64 - 40.0).hypot(y as f64 - 120.0) > 12.0);
        let truth: Vec<f64> = pixels.map(|(column, row)| built(column, row)).collect();
        assert_eq!(value.is_nan(), truth.is_empty());
        if truth.is_empty() {
            continue;
        }
        let mean = truth.iter().sum::<f64>() / truth.len() as f64;
        assert!((f64::from(value) - mean).abs() <= found.report.stored_bound_m.unwrap());
        assert!(!proven[index] || mean != 0.0);
    }
    // Volumes are those of pixels, whatever the blocks.
    let fine = arrays(&Change::between(&new, &old, None).unwrap()).report;
    assert_eq!(fine.volumes, found.report.volumes);
    assert!(matches!(
        Change::between(&new, &old, Some(3.0)),
        Err(Error::NotWhole { .. })
    ));
}

#[test]
fn without_common_pixels_or_bounds_there_is_a_difference_and_no_proof() {
    let folder = tempfile::tempdir().unwrap();
    let bounded = Target::MaxError(BOUND);
    let smooth = |column: f64, row: f64| 431.0 + 12.0 * (column / 31.0).sin() * (row / 27.0).cos();
    let grid = |shift: f64, more: f64| {
        let mut grid = Grid::missing(SIZE.0, SIZE.1);
        for (index, height) in grid.heights.iter_mut().enumerate() {
            let (column, row) = ((index % SIZE.0) as f64, (index / SIZE.0) as f64);
            *height = smooth(column + shift, row + shift) + more;
        }
        grid
    };
    let old = file(folder.path(), grid(0.0, 0.0), place(0, 0), bounded);
    // Half a pixel off.
    let mut shifted = place(0, 0);
    shifted.anchor = shifted.anchor.shifted(0.5, 0.5);
    let new = file(folder.path(), grid(0.5, 2.0), shifted, bounded);
    let change = Change::between(&new, &old, None).unwrap();
    assert_eq!(change.bound_m(), Err(Unproven::OtherPixels));
    let found = arrays(&change);
    assert!(found.proven.is_none() && found.report.volumes.proven.is_none());
    let near = |value: &f32| value.is_nan() || (value - 2.0).abs() < 0.25;
    assert!(found.difference.iter().all(near));
    assert!(found.report.volumes.pixels > 37_000);
    // The mask is refused with a sentence, the difference is not.
    let path = folder.path().join("change.tif");
    let out = Output::new(&path, Existing::Refuse, Kind::Raster);
    let mask = folder.path().join("mask.tif");
    let mask = Output::new(&mask, Existing::Refuse, Kind::Raster);
    let refused = change.write(&out, Some(&mask), 1, &mut |_, _| Ok(()));
    assert!(matches!(refused, Err(Error::Unproven(_))) && !path.exists());
    change.write(&out, None, 1, &mut |_, _| Ok(())).unwrap();

    // Through a projection: the same place in another system, a few decimetres coarser or finer.
    let projected = |epsg| {
        let projection = projection(2056, epsg);
        projection.apply(2_600_230.0, 1_199_830.0).unwrap()
    };
    let (x, y) = projected(32632);
    let anchor = Affine::north_up(x - 20.0, y + 20.0, 1.0);
    let elsewhere = Georeference::new(anchor, Crs::projected(32632, Some(5728)));
    let flat = Grid::new(40, 40, vec![431.0; 1600]);
    let new = file(folder.path(), flat, elsewhere, Target::Lossless);
    let found = arrays(&Change::between(&new, &old, None).unwrap());
    assert_eq!(found.report.nodata_pixels, 0);
    for (index, value) in found.difference.iter().enumerate().step_by(37) {
        let (x, y) = anchor.apply((index % 40) as f64 + 0.5, (index / 40) as f64 + 0.5);
        let back = projection(32632, 2056);
        let (x, y) = back.apply(x, y).unwrap();
        let height = old.surface().unwrap().at(x, y).unwrap().height;
        assert!((f64::from(*value) - (431.0 - height)).abs() < 1e-4);
    }

    // Without a bound.
    let new = file(
        folder.path(),
        grid(0.0, 2.0),
        place(0, 0),
        Target::Rmse(0.1),
    );
    let change = Change::between(&new, &old, None).unwrap();
    assert_eq!(change.bound_m(), Err(Unproven::NoBound(Side::New)));
    let report = arrays(&change).report;
    assert!(report.json()["fill_m3"].is_null() && report.json()["all_fill_m3"].is_number());
}

#[test]
fn what_cannot_be_compared_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let flat = || Grid::new(20, 20, vec![5.0; 400]);
    let file = |georeference| file(folder.path(), flat(), georeference, Target::Lossless);
    let here = file(place(0, 0));
    let mut other = place(0, 0);
    other.crs = Crs::projected(2056, Some(5773));
    let other = file(other);
    let refused = Change::between(&other, &here, None);
    assert!(matches!(refused, Err(Error::VerticalSystems { .. })));
    let nowhere = file(Georeference::of_pixels(Crs::default()));
    let refused = Change::between(&nowhere, &here, None);
    assert!(matches!(refused, Err(Error::NoPlace { side: Side::New })));
    // Without any place both are counted in pixels.
    let change = Change::between(&nowhere, &nowhere, None).unwrap();
    assert_eq!(change.bound_m(), Ok(0.0));
    let far = file(place(500, 0));
    let change = Change::between(&far, &here, None).unwrap();
    let refused = change.arrays(1, &mut |_, _| Ok(()));
    assert!(matches!(refused, Err(Error::NothingShared)));
    // A vertical system that is stated once is taken for both, and that is said.
    let mut silent = place(0, 0);
    silent.crs = Crs::projected(2056, None);
    let report = arrays(&Change::between(&file(silent), &here, None).unwrap()).report;
    assert!(
        report.warnings[0].contains("EPSG:5728"),
        "{:?}",
        report.warnings
    );
}

fn projection(from: u16, to: u16) -> terrane_geo::Projection {
    let system = |code| terrane_geo::System::epsg(code).unwrap();
    terrane_geo::Projection::new(&system(from), &system(to)).unwrap()
}

/// Pixels of a map in degrees are narrower in the north.
#[test]
fn areas_are_those_of_the_ground() {
    let folder = tempfile::tempdir().unwrap();
    let degrees = Georeference::new(
        Affine::north_up(7.0, 60.0, 0.001),
        Crs::geographic(4326, None),
    );
    let file = |height: f64| {
        let grid = Grid::new(16, 1000, vec![height; 16_000]);
        file(folder.path(), grid, degrees.clone(), Target::Lossless)
    };
    let report = arrays(&Change::between(&file(6.0), &file(5.0), None).unwrap()).report;
    let sums = report.volumes.proven.unwrap();
    // pyproj's `Geod(ellps="WGS84")`, along whose edges of equal latitude are 200 points.
    let expected = 100_956_890.704;
    assert!((sums.area_m2 / expected - 1.0).abs() < 1e-7, "{sums:?}");
    assert!((sums.fill_m3 / expected - 1.0).abs() < 1e-7);
    assert!((sums.fill_m3 - expected).abs() <= sums.fill_bound_m3);
}

/// Boxes whose areas PROJ's geodesics say, filled by a metre: nothing was lost, so that the bound is that of the area alone.
#[test]
fn volumes_are_within_their_bounds_in_every_system() {
    const EXPECTED: &str = include_str!("../../../terrane-geo/tests/ground/expected.tsv");
    let folder = tempfile::tempdir().unwrap();
    for line in EXPECTED.lines().filter(|line| line.starts_with("EPSG:")) {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |index: usize| fields[index].parse::<f64>().unwrap();
        let code = fields[0][5..].parse().unwrap();
        let crs = match code {
            4326 | 4807 => Crs::geographic(code, None),
            _ => Crs::projected(code, None),
        };
        let pixel = number(6) / 40.0;
        let corner = (number(1) - 20.0 * pixel, number(2) + 20.0 * pixel);
        let place = Georeference::new(Affine::north_up(corner.0, corner.1, pixel), crs);
        let file = |height: f64| {
            let grid = Grid::new(40, 40, vec![height; 1600]);
            file(folder.path(), grid, place.clone(), Target::Lossless)
        };
        let volumes = arrays(&Change::between(&file(6.0), &file(5.0), None).unwrap())
            .report
            .volumes;
        let (expected, proven) = (number(7), volumes.proven.unwrap());
        let off = (proven.fill_m3 - expected).abs();
        assert!(off <= proven.fill_bound_m3, "{line}: {proven:?}");
        assert!(proven.fill_bound_m3 < 1e-4 * expected, "{line}: {proven:?}");
        let fill = volumes.fill.unwrap();
        assert!(
            fill.low <= expected && expected <= fill.high,
            "{line}: {fill:?}"
        );
        assert!(off <= volumes.net_bound_m3.unwrap(), "{line}");
    }
}

/// The layer of a web map, of files with gaps, which is drawn from pixels alone, and without, which is drawn from overviews too.
#[test]
fn what_is_drawn_as_change_is_true_change() {
    let folder = tempfile::tempdir().unwrap();
    let whole = || {
        let mut grid = ground(SIZE, (0, 0));
        for height in &mut grid.heights {
            *height = if height.is_nan() { 431.0 } else { *height };
        }
        grid
    };
    for (before, coarsest) in [(ground(SIZE, (0, 0)), 14), (whole(), 13)] {
        let after = changed(before.clone(), (0, 0));
        let bounded = Target::MaxError(BOUND);
        let cache = Arc::new(BlockCache::new(1 << 24));
        let open = |grid| {
            let terrain = Arc::new(file(folder.path(), grid, place(0, 0), bounded));
            let tiles = MapTiles::open(terrain.clone(), &cache).unwrap();
            (terrain, tiles)
        };
        let (_, old) = open(before);
        let (terrain, new) = open(after);
        assert!(!new.has_layer(Layer::Change));
        let before = Before::new(&terrain, Arc::new(old)).unwrap();
        let new = new.with_before(Some(before));
        let zooms = new.zooms(Layer::Change);
        assert!(*zooms.start() <= coarsest, "{zooms:?}");
        for z in zooms {
            let drawn = check_drawn(&new, z);
            // The heap and the pit have some 1000 pixels of 2 m, which are as many at zoom 15; overviews prove less.
            let least = 300_u64 << (2 * z) >> 36;
            assert!(drawn > least, "{drawn} pixels at zoom {z}");
        }
    }
}

/// Draws the middle tiles of a zoom; how many pixels show a change, each of which must be true.
fn check_drawn(tiles: &MapTiles, z: u8) -> u64 {
    let affine = place(0, 0).affine();
    let [west, south, east, north] = tiles.bounds();
    let across = f64::from(1_u32 << z);
    let corner = |longitude, latitude| {
        let (u, v) = position(longitude, latitude);
        ((u * across) as u32, (v * across) as u32)
    };
    let ((left, top), (right, bottom)) = (corner(west, north), corner(east, south));
    let mut drawn = 0;
    for (x, y) in (top..=bottom).flat_map(|y| (left..=right).map(move |x| (x, y))) {
        let tile = MapTile::new(z, x, y).unwrap();
        let request = TileRequest::new(Layer::Change, tile);
        let picture = tiles.tile(request, Deadline::NONE).unwrap();
        for (index, pixel) in picture.rgba.chunks_exact(4).enumerate() {
            if pixel[3] == 0 {
                continue;
            }
            drawn += 1;
            let at =
                |tile: u32, pixel: usize| (f64::from(tile) + (pixel as f64 + 0.5) / 256.0) / across;
            let (longitude, latitude) = degrees(at(x, index % 256), at(y, index / 256));
            let (x, y) = tiles.map_point(longitude, latitude).unwrap();
            let (column, row) = affine.invert(x, y).unwrap();
            // A pixel of the map is so many of the file across, and what it shows lies around it.
            let reach = (2.0 * (tiles.native_zoom() - f64::from(z)).exp2())
                .max(1.0)
                .ceil() as usize;
            let around = |at: f64| (at as usize).saturating_sub(reach)..at as usize + reach + 1;
            let is_lower = pixel[0] > pixel[2];
            let is_true = around(row)
                .flat_map(|row| around(column).map(move |column| built(column, row)))
                .any(|truth| if is_lower { truth < 0.0 } else { truth > 0.0 });
            assert!(is_true, "zoom {z}: {column} {row}");
        }
    }
    drawn
}
