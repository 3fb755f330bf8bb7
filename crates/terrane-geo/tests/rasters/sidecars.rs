//! Files beside a raster count as they do for GDAL, and what is given counts before what files state.

use std::path::{Path, PathBuf};

use terrane_geo::{
    Affine, BandMetadata, CogWriter, Crs, Error, Existing, GeoTiff, Georeference, HeightUnit,
    Mosaic, Note, Output, RasterOptions, RasterSource, SampleType, Storage, Window, open_with,
};

use crate::handmade::{self, Image, Planes};
use crate::{assert_same, flavour_folder, swiss, wave_grid};

const SIDE: usize = 40;

fn write(folder: &Path, name: &str, georeference: Georeference, storage: Storage) -> PathBuf {
    let path = folder.join(name);
    let output = Output::named_here(&path, Existing::Replace);
    let mut writer = CogWriter::create(&output, (SIDE, SIDE), georeference, storage).unwrap();
    writer.write_rows(&wave_grid(SIDE, SIDE).heights).unwrap();
    writer.finish().unwrap();
    path
}

fn floats() -> Storage {
    Storage::metres(SampleType::F32, Some(-9999.0))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn pam(path: &Path, inside: &str) {
    let text = format!("<PAMDataset>{inside}</PAMDataset>");
    std::fs::write(beside(path, ".aux.xml"), text).unwrap();
}

fn options(settings: &[(&str, &str)]) -> RasterOptions {
    let mut options = RasterOptions::default();
    for (name, value) in settings {
        options.set(name, value).unwrap();
    }
    options
}

#[test]
fn gdals_file_beside_a_raster_places_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.tif", swiss(), floats());
    pam(&path, "<SRS>EPSG:32632</SRS>");
    let found = GeoTiff::open(&path).unwrap().info().georeference.clone();
    assert_eq!(found.crs, Crs::projected(32632, None));
    assert_eq!(found.anchor, swiss().anchor);

    pam(&path, "<GeoTransform>1,2,0,3,0,-2</GeoTransform>");
    let found = GeoTiff::open(&path).unwrap().info().georeference.clone();
    assert_eq!(found.crs, swiss().crs);
    assert_eq!(found.affine().numbers(), [1.0, 2.0, 0.0, 3.0, 0.0, -2.0]);

    // Both, over pixels that are points: GDAL's transform is from the corner, whatever pixels are.
    let point = flavour_folder().join("transform_pixel_is_point.tif");
    let path = folder.path().join("point.tif");
    std::fs::copy(&point, &path).unwrap();
    let own = GeoTiff::open(&path).unwrap().info().georeference.clone();
    pam(&path, "<GeoTransform>1,2,0,3,0,-2</GeoTransform>");
    let found = GeoTiff::open(&path).unwrap().info().georeference.clone();
    assert!(found.crs.pixel_is_point());
    assert_eq!(found.affine().numbers(), [1.0, 2.0, 0.0, 3.0, 0.0, -2.0]);
    pam(&path, "<SRS>EPSG:32632</SRS>");
    let found = GeoTiff::open(&path).unwrap().info().georeference.clone();
    assert!(!found.crs.pixel_is_point());
    assert_eq!(found.affine(), own.affine());
}

#[test]
fn gdals_file_beside_a_raster_says_what_its_numbers_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.tif", swiss(), floats());
    let whole = Window::whole(SIDE, SIDE);
    let plain = GeoTiff::open(&path).unwrap().read(0, whole).unwrap();
    let missing = plain.heights[77];
    pam(
        &path,
        &format!(
            "<PAMRasterBand band=\"1\"><NoDataValue>{missing}</NoDataValue>\
             <Scale>2</Scale><Offset>10</Offset><UnitType>ft</UnitType></PAMRasterBand>"
        ),
    );
    let raster = GeoTiff::open(&path).unwrap();
    assert_eq!(raster.info().unit, HeightUnit::Foot);
    let expected: Vec<f64> = plain
        .heights
        .iter()
        .map(|&raw| {
            if raw == missing {
                f64::NAN
            } else {
                (raw * 2.0 + 10.0) * 0.3048
            }
        })
        .collect();
    assert_same(&raster.read(0, whole).unwrap(), &expected, "scaled feet");

    // A change of it is a change of the raster.
    assert!(raster.check_unchanged().is_ok());
    pam(&path, "");
    assert!(matches!(
        raster.check_unchanged(),
        Err(Error::Changed { .. })
    ));
}

#[test]
fn what_versions_of_gdal_read_otherwise_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut feet = floats();
    feet.band = BandMetadata {
        unit: "ft".into(),
        scale: 0.5,
        ..BandMetadata::default()
    };
    let path = write(folder.path(), "a.tif", swiss(), feet);
    for (inside, is_read) in [
        (
            "<PAMRasterBand band=\"1\"><UnitType>ft</UnitType><Scale>0.5</Scale></PAMRasterBand>",
            true,
        ),
        (
            "<PAMRasterBand band=\"1\"><UnitType>m</UnitType></PAMRasterBand>",
            false,
        ),
        (
            "<PAMRasterBand band=\"1\"><Scale>0.25</Scale></PAMRasterBand>",
            false,
        ),
        ("<SRS>rubbish</SRS>", false),
        ("<GCPList><GCP/></GCPList>", false),
    ] {
        pam(&path, inside);
        assert_eq!(GeoTiff::open(&path).is_ok(), is_read, "{inside}");
    }
    // A system that is given counts before one that is not understood.
    pam(&path, "<SRS>rubbish</SRS>");
    let given = options(&[("crs", "EPSG:2056")]);
    assert!(GeoTiff::open_with(&path, &given).is_ok());
}

#[test]
fn a_world_file_places_a_raster_that_nothing_else_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(
        folder.path(),
        "a.tif",
        Georeference::of_pixels(Crs::default()),
        floats(),
    );
    let expected = [99.0, 2.0, 0.0, 201.0, 0.0, -2.0];
    for ending in ["tfw", "TFW", "tifw", "wld"] {
        let world = folder.path().join(format!("a.{ending}"));
        std::fs::write(&world, "2\n0\n0\n-2\n100\n200\n").unwrap();
        let raster = GeoTiff::open(&path).unwrap();
        let georeference = &raster.info().georeference;
        assert!(georeference.is_georeferenced, "{ending}");
        assert_eq!(georeference.affine().numbers(), expected, "{ending}");
        std::fs::remove_file(&world).unwrap();
    }
    std::fs::write(folder.path().join("a.tfw"), "2\n0\n").unwrap();
    assert!(GeoTiff::open(&path).is_err());
    std::fs::write(folder.path().join("a.tfw"), "2\n0\n0\n-2\n100\n200\n").unwrap();
    pam(&path, "<GeoTransform>1,2,0,3,0,-2</GeoTransform>");
    let found = GeoTiff::open(&path).unwrap().info().georeference.affine();
    assert_eq!(found.x, 1.0, "GDAL's own file counts first");

    // A raster that says where it lies does not ask.
    let placed = write(folder.path(), "b.tif", swiss(), floats());
    std::fs::write(folder.path().join("b.tfw"), "nonsense").unwrap();
    assert_eq!(GeoTiff::open(&placed).unwrap().info().georeference, swiss());
    std::fs::write(folder.path().join("a.tab"), "!table").unwrap();
    assert!(GeoTiff::open(&path).is_err());
}

#[test]
fn a_raster_of_several_bands_is_read_by_one_of_them() {
    const SIZE: (usize, usize) = (20, 12);
    let folder = tempfile::tempdir().unwrap();
    let value = |band: usize, column: usize, row: usize| (1000 * band + 20 * row + column) as i16;
    let row_of = |band: usize, row: usize| (0..SIZE.0).map(move |column| value(band, column, row));
    for planes in [Planes::Together, Planes::Apart] {
        let mut blocks = Vec::new();
        // Strips of five rows, the last one of two.
        let strip =
            |numbers: Vec<i16>| Some(numbers.iter().flat_map(|x| x.to_le_bytes()).collect());
        let rows = [0..5, 5..10, 10..12];
        match planes {
            Planes::Together => blocks.extend(rows.map(|rows| {
                strip(
                    rows.flat_map(|row| (0..SIZE.0).map(move |column| (column, row)))
                        .flat_map(|(column, row)| (0..3).map(move |band| value(band, column, row)))
                        .collect(),
                )
            })),
            Planes::Apart => {
                for band in 0..3 {
                    for rows in rows.clone() {
                        blocks.push(strip(rows.flat_map(|row| row_of(band, row)).collect()));
                    }
                }
                // A block that is absent, of one band alone.
                blocks[4] = None;
            }
        }
        let image = Image {
            block: (SIZE.0, 5),
            bands: (3, planes),
            nodata: Some("-9999"),
            blocks,
            ..Image::plain(SIZE, SampleType::I16, Vec::new())
        };
        let path = handmade::write(folder.path(), "bands.tif", &[image]);
        assert!(matches!(
            GeoTiff::open(&path),
            Err(Error::SeveralBands { bands: 3, .. })
        ));
        for band in 0..3 {
            let number = (band + 1).to_string();
            let raster = GeoTiff::open_with(&path, &options(&[("band", &number)])).unwrap();
            let found = raster.read(0, Window::whole(SIZE.0, SIZE.1)).unwrap();
            let is_absent = |row| planes == Planes::Apart && band == 1 && (5..10).contains(&row);
            let height = |column, row| {
                if is_absent(row) {
                    f64::NAN
                } else {
                    f64::from(value(band, column, row))
                }
            };
            let expected: Vec<f64> = (0..SIZE.1)
                .flat_map(|row| (0..SIZE.0).map(move |column| (column, row)))
                .map(|(column, row)| height(column, row))
                .collect();
            assert_same(&found, &expected, &format!("band {number}"));
        }
        let none = GeoTiff::open_with(&path, &options(&[("band", "4")]));
        assert!(matches!(
            none,
            Err(Error::NoBand {
                bands: 3,
                band: 4,
                ..
            })
        ));
    }
}

#[test]
fn what_is_given_counts_and_is_noted_where_the_file_states_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let feet = Georeference::new(
        Affine::north_up(1_000_000.0, 200_000.0, 3.0),
        Crs::projected(2263, None),
    );
    let path = write(folder.path(), "ft.tif", feet.clone(), floats());
    // Nothing states the unit of the heights, and the coordinates are in feet.
    let raster = GeoTiff::open(&path).unwrap();
    let [Note::UnitAssumed { .. }] = raster.notes() else {
        panic!("{:?}", raster.notes())
    };
    let text = raster.notes()[0].to_string();
    assert!(
        text.contains("US survey foot") && text.contains("`vertical_unit`"),
        "{text}"
    );

    let raster = GeoTiff::open_with(&path, &options(&[("vertical_unit", "us-ft")])).unwrap();
    assert!(raster.notes().is_empty());
    assert_eq!(raster.info().unit, HeightUnit::UsSurveyFoot);
    assert_eq!(raster.info().storage.band.unit, "US survey foot");

    let given = options(&[
        ("crs", "EPSG:32618"),
        ("nodata", "-1"),
        ("vertical_unit", "m"),
    ]);
    let raster = GeoTiff::open_with(&path, &given).unwrap();
    let info = raster.info();
    assert_eq!(
        info.georeference,
        Georeference::new(feet.anchor, Crs::projected(32618, None))
    );
    assert_eq!(info.storage.nodata, Some(-1.0));
    let notes: Vec<String> = raster.notes().iter().map(ToString::to_string).collect();
    assert!(
        notes.len() == 2 && notes[0].contains("-9999") && notes[1].contains("EPSG:2263"),
        "{notes:?}"
    );

    // The unit that a system states is not lost with the system.
    let heights_in_feet = Georeference::new(feet.anchor, Crs::projected(2263, Some(6360)));
    let path = write(folder.path(), "high.tif", heights_in_feet, floats());
    let raster = GeoTiff::open_with(&path, &options(&[("crs", "EPSG:32618")])).unwrap();
    assert_eq!(raster.info().unit, HeightUnit::UsSurveyFoot);

    // Pixels that are points stay so.
    let point = flavour_folder().join("transform_pixel_is_point.tif");
    let own = GeoTiff::open(&point).unwrap().info().georeference.affine();
    let raster = GeoTiff::open_with(&point, &options(&[("crs", "EPSG:32618")])).unwrap();
    assert_eq!(raster.info().georeference.affine(), own);
}

#[test]
fn a_box_is_the_same_part_of_one_raster_and_of_a_mosaic() {
    let folder = tempfile::tempdir().unwrap();
    let grid = wave_grid(SIDE, SIDE);
    let path = write(folder.path(), "a.tif", swiss(), floats());
    let bbox = options(&[("bbox", "2600003.5,1199970,2600020,1199990.25")]);
    let expected = Window {
        column: 3,
        row: 9,
        width: 17,
        height: 21,
    };
    for paths in [vec![&path], vec![&path, &path]] {
        let raster = open_with(&paths, &bbox).unwrap();
        let (width, height) = raster.info().levels[0];
        assert_eq!((width, height), (expected.width, expected.height));
        let found = raster.read(0, Window::whole(width, height)).unwrap();
        assert_same(&found, &grid.crop(expected).heights, "a part");
        let (x, y) = raster.info().georeference.affine().apply(0.0, 0.0);
        assert_eq!((x, y), (2_600_003.0, 1_199_991.0));
    }
    let outside = options(&[("bbox", "0,0,5,5")]);
    assert!(matches!(
        open_with(&[&path], &outside),
        Err(Error::OutsideBox { .. })
    ));
}

#[test]
fn options_hold_for_every_raster_of_a_mosaic() {
    let folder = tempfile::tempdir().unwrap();
    let pixels = || Georeference::of_pixels(Crs::default());
    let mut paths = Vec::new();
    for (name, x) in [("a", 100.0), ("b", 140.0)] {
        paths.push(write(
            folder.path(),
            &format!("{name}.tif"),
            pixels(),
            floats(),
        ));
        let world = format!("1\n0\n0\n-1\n{}\n200\n", x + 0.5);
        std::fs::write(folder.path().join(format!("{name}.tfw")), world).unwrap();
    }
    let given = options(&[("crs", "EPSG:2056"), ("vertical_unit", "ft")]);
    let mosaic = Mosaic::open_with(&paths, &given).unwrap();
    assert_eq!(mosaic.info().georeference.crs, Crs::projected(2056, None));
    assert_eq!(mosaic.info().levels, [(2 * SIDE, SIDE)]);
    let row = mosaic.read(0, Window::whole(2 * SIDE, 1)).unwrap();
    assert_eq!(row.heights[0], row.heights[SIDE]);
    let plain = GeoTiff::open(&paths[0]).unwrap();
    let plain = plain.read(0, Window::whole(1, 1)).unwrap();
    assert_eq!(row.heights[0], plain.heights[0] * 0.3048);
}

#[test]
fn other_formats_are_named_with_the_way_to_a_geotiff() {
    let folder = tempfile::tempdir().unwrap();
    for (name, start, format) in [
        ("a.vrt", &b"<VRTDataset rasterXSize=\"5\">"[..], "VRT"),
        ("a.asc", b"ncols 4\nnrows 4\n", "ASCII grid"),
        ("n47e008.hgt", &[0; 64], "HGT"),
        ("a.png", b"\x89PNG\r\n\x1a\n", "PNG"),
        ("really.tif", b"CDF\x01", "NetCDF"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, start).unwrap();
        let Err(error @ Error::OtherFormat { .. }) = GeoTiff::open(&path) else {
            panic!("{name}")
        };
        let text = error.to_string();
        assert!(
            text.contains(format) && text.contains("gdal_translate"),
            "{text}"
        );
        assert!(
            !text.ends_with(&format!("{0} {0}", path.display())),
            "{text}"
        );
    }
    let path = folder.path().join("a.trn");
    std::fs::write(&path, b"\x89TRN\r\n\x1a\n").unwrap();
    assert!(matches!(GeoTiff::open(&path), Err(Error::IsTerrane { .. })));
}
