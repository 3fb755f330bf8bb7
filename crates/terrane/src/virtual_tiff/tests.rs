//! A file as a `GeoTIFF`, beside what `terrane decode` writes.

use std::path::PathBuf;

use terrane_geo::{
    Affine, BandMetadata, Crs, Existing, Georeference, Kind, MemoryRaster, Output, RasterSource,
    SampleType,
};

use super::*;
use crate::{Decoding, Settings, Target, fixture};

const SWISS: Affine = Affine {
    x: 2_600_000.0,
    x_per_column: 0.5,
    x_per_row: 0.0,
    y: 1_200_000.0,
    y_per_column: 0.0,
    y_per_row: -0.5,
};

/// Hills with a gap at a corner.
fn hills(column: usize, row: usize) -> f64 {
    if column + 2 * row < 50 {
        return f64::NAN;
    }
    let (x, y) = (column as f64, row as f64);
    f64::from((400.0 + 90.0 * (x / 31.0).sin() * (y / 23.0).cos() + (x * y).sin()) as f32)
}

struct Case {
    folder: tempfile::TempDir,
    terrain: Arc<Terrain>,
}

impl Case {
    fn new(
        (width, height): (usize, usize),
        height_at: impl Fn(usize, usize) -> f64,
        georeference: Georeference,
        storage: Storage,
        settings: Settings,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let heights = (0..width * height).map(|index| height_at(index % width, index / width));
        let grid = Grid::new(width, height, heights.collect());
        let raster = MemoryRaster::new("made", grid, georeference, storage);
        let path = folder.path().join("made.trn");
        fixture::write(&raster, &settings, &path);
        Self {
            terrain: Arc::new(crate::open(&path).unwrap()),
            folder,
        }
    }

    fn tiff(&self) -> VirtualTiff {
        tiff(&self.terrain)
    }

    /// What the bytes are for a reader of GeoTIFFs, and what `terrane decode` writes.
    fn rasters(&self) -> [Box<dyn RasterSource>; 2] {
        let (made, decoded) = (
            self.folder.path().join("virtual.tif"),
            self.folder.path().join("decoded.tif"),
        );
        std::fs::write(&made, all(&self.tiff(), 1 << 20)).unwrap();
        let out = Output::new(&decoded, Existing::Refuse, Kind::Raster);
        Decoding::default()
            .write(&self.terrain, &out, 2, &mut |_, _| Ok(()))
            .unwrap();
        [made, decoded].map(|path| terrane_geo::open(&[path]).unwrap())
    }

    /// Compares with what `terrane decode` writes, and overviews with those of the file, to within a number.
    fn check(&self, within_m: f64) {
        let [made, decoded] = self.rasters();
        let (ours, theirs) = (made.info(), decoded.info());
        assert_eq!(ours.levels[0], theirs.levels[0]);
        assert_eq!(ours.georeference, theirs.georeference);
        assert_eq!(
            format!("{:?}", ours.storage),
            format!("{:?}", theirs.storage)
        );
        let pyramid = &self.terrain.header().pyramid;
        assert_eq!(ours.levels.len(), usize::from(pyramid.levels()));
        for (level, &(width, height)) in ours.levels.iter().enumerate() {
            let window = Window::whole(width, height);
            let found = made.read(level, window).unwrap().heights;
            let (expected, within_m) = if level == 0 {
                (decoded.read(0, window).unwrap().heights, 0.0)
            } else {
                (self.terrain.read(level as u8, window).unwrap(), within_m)
            };
            for (found, expected) in found.iter().zip(&expected) {
                let is_same = found.is_nan() == expected.is_nan()
                    && (found.is_nan() || (found - expected).abs() <= within_m);
                assert!(is_same, "level {level}: {found} for {expected}");
            }
        }
    }
}

fn tiff(terrain: &Arc<Terrain>) -> VirtualTiff {
    let cache = Arc::new(TiffCache::new(1 << 24));
    VirtualTiff::new(terrain.clone(), Path::new("made"), &cache).unwrap()
}

/// All bytes, so many at a time.
fn all(tiff: &VirtualTiff, step: usize) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(tiff.length()).unwrap()];
    let mut at = 0;
    for part in bytes.chunks_mut(step) {
        assert_eq!(tiff.read_at(at, part).unwrap(), part.len());
        at += part.len() as u64;
    }
    bytes
}

fn lossless(tile: u16) -> Settings {
    Settings {
        target: Target::Lossless,
        tile: Some(tile),
        ..Settings::default()
    }
}

fn within(metres: f64, tile: u16) -> Settings {
    Settings {
        target: Target::MaxError(metres),
        ..lossless(tile)
    }
}

fn swiss() -> Georeference {
    Georeference::new(SWISS, Crs::projected(2056, Some(5728)))
}

#[test]
fn it_is_what_decode_writes() {
    let size = (300, 210);
    let floats = Storage::metres(SampleType::F32, Some(-9999.0));
    Case::new(size, hills, swiss(), floats.clone(), within(0.05, 64)).check(1e-4);
    // Tiles that no TIFF can have.
    Case::new(size, hills, swiss(), floats, within(0.05, 50)).check(1e-4);
    let rotated = Affine {
        x_per_row: 0.25,
        ..SWISS
    };
    let rotated = Georeference::new(rotated, Crs::projected(2056, None));
    let doubles = Storage::metres(SampleType::F64, None);
    let finer = |column, row| hills(column, row) + 1e-7 * column as f64;
    Case::new(size, finer, rotated, doubles, lossless(64)).check(1e-9);
}

#[test]
fn integers_stay_integers() {
    let mut crs = Crs::geographic(4326, None);
    // GTRasterTypeGeoKey: from an area to a point.
    let raster_type = crs.directory.chunks_exact_mut(4).find(|key| key[0] == 1025);
    raster_type.unwrap()[3] = 2;
    let place = Georeference::new(Affine::north_up(7.0, 47.0, 1.0 / 3600.0), crs);
    let storage = Storage {
        sample: SampleType::I16,
        nodata: Some(0.0),
        band: BandMetadata {
            scale: 0.5,
            offset: 100.0,
            unit: "ft".to_owned(),
            description: "above the <sea>".to_owned(),
            ..BandMetadata::default()
        },
    };
    // Stored numbers on both sides of the one that means no data.
    let height_at = |column: usize, row: usize| {
        let raw = (hills(column, row) - 400.0).round();
        let raw = if raw == 0.0 { 1.0 } else { raw };
        (raw * 0.5 + 100.0) * 0.3048
    };
    let case = Case::new((300, 210), height_at, place, storage, lossless(64));
    assert_eq!(case.tiff().storage().sample, SampleType::I16);
    // Half a step, and a whole one beside nodata.
    case.check(0.3048 * 0.75);
    let bytes = Storage::metres(SampleType::U8, None);
    let cliff = |column: usize, row: usize| {
        if (column / 7 + row / 5).is_multiple_of(2) {
            0.0
        } else {
            255.0
        }
    };
    let case = Case::new((100, 90), cliff, swiss(), bytes, lossless(16));
    assert_eq!(case.tiff().storage().nodata, None);
    case.check(f64::INFINITY);
}

#[test]
fn any_range_is_a_part_of_the_whole() {
    let floats = Storage::metres(SampleType::F32, Some(-9999.0));
    let case = Case::new((90, 70), hills, swiss(), floats, within(0.05, 32));
    let tiff = case.tiff();
    let whole = all(&tiff, usize::MAX);
    for step in [1, 7, 13, 4096, 5001] {
        assert!(all(&tiff, step) == whole, "{step}");
    }
    let mut bytes = [1; 10];
    let end = tiff.length();
    assert_eq!(tiff.read_at(end - 3, &mut bytes).unwrap(), 3);
    assert_eq!(tiff.read_at(end, &mut bytes).unwrap(), 0);
    assert_eq!(tiff.read_at(u64::MAX, &mut bytes).unwrap(), 0);
    let mut at = 0;
    while at < end {
        let next = tiff.piece_end(at);
        assert!(next > at && next - at <= 1 << 20);
        at = next;
    }
    assert_eq!(at, end);
    // The last block has 26 of 32 columns and 6 of 32 rows; the rest is nodata.
    let block = whole.last_chunk::<{ 32 * 32 * 4 }>().unwrap();
    let value = |column: usize, row: usize| {
        let at = 4 * (32 * row + column);
        f32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
    };
    assert!(value(25, 5) > 0.0);
    assert_eq!([value(26, 5), value(25, 6), value(31, 31)], [-9999.0; 3]);
    // Threads may read at once.
    std::thread::scope(|scope| {
        for first in 0..4 {
            let (tiff, whole) = (&tiff, &whole);
            scope.spawn(move || {
                let mut bytes = [0; 777];
                for at in (first * 1009..whole.len() - 777).step_by(4001) {
                    tiff.read_at(at as u64, &mut bytes).unwrap();
                    assert_eq!(bytes, whole[at..at + 777]);
                }
            });
        }
    });
}

#[test]
fn a_block_is_a_tile_and_the_directories_are_none() {
    let floats = Storage::metres(SampleType::F32, Some(-9999.0));
    let case = Case::new((300, 210), hills, swiss(), floats, within(0.05, 64));
    let tiff = case.tiff();
    let decoded = || tiff.source.cache.decoded();
    let first = tiff.length() - 20 * 64 * 64 * 4;
    let mut head = vec![0; 1 << 14];
    tiff.read_at(0, &mut head).unwrap();
    assert_eq!(decoded(), 0);
    let mut part = [0; 100];
    for at in [0, 500, 16_000] {
        tiff.read_at(first + at, &mut part).unwrap();
    }
    assert_eq!(decoded(), 1);
}

/// What has no data at all is not even asked for.
#[test]
fn trees_without_data_are_left_out() {
    let land = |column: usize, row: usize| {
        if column < 100 {
            hills(column, row)
        } else {
            f64::NAN
        }
    };
    let floats = Storage::metres(SampleType::F32, Some(-9999.0));
    let case = Case::new((700, 200), land, swiss(), floats.clone(), within(0.05, 16));
    case.check(1e-4);
    let tiff = case.tiff();
    let empty = (0..44).filter(|&column| SourceOf(&tiff).is_empty(0, column, 3));
    // Trees have 8 tiles across.
    assert_eq!(empty.count(), 44 - 8);
    // Without a nodata value a reader would take them for zeros.
    let bare = Storage {
        nodata: None,
        ..floats
    };
    let case = Case::new((700, 200), land, swiss(), bare, lossless(16));
    case.check(1e-3);
}

#[test]
fn golden_files_are_what_decode_writes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path().join("input.trn");
        let Ok(terrain) = crate::open(&path) else {
            continue;
        };
        let case = Case {
            folder: tempfile::tempdir().unwrap(),
            terrain: Arc::new(terrain),
        };
        case.check(1e-3);
        checked += 1;
    }
    // Those of tokens need networks.
    assert!(checked >= 13, "{checked}");
}

#[test]
fn a_damaged_tile_is_an_error_and_the_others_are_read() {
    let floats = Storage::metres(SampleType::F32, Some(-9999.0));
    let case = Case::new((300, 210), hills, swiss(), floats, within(0.05, 64));
    let mut bytes = std::fs::read(case.folder.path().join("made.trn")).unwrap();
    let tile = tile(0, 2, 1);
    let place = case.terrain.reader().locate(tile).unwrap().unwrap();
    bytes[usize::try_from(place.offset).unwrap() + 9] ^= 1;
    let path = case.folder.path().join("damaged.trn");
    std::fs::write(&path, bytes).unwrap();
    let damaged = Arc::new(crate::open(&path).unwrap());
    let tiff = tiff(&damaged);
    let first = tiff.length() - 20 * 64 * 64 * 4;
    let mut block = vec![0; 64 * 64 * 4];
    let mut read = |index: u64| tiff.read_at(first + index * 64 * 64 * 4, &mut block);
    assert_eq!(read(6).unwrap(), 64 * 64 * 4);
    assert!(read(7).is_err());
}
