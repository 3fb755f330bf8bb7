//! Written rasters come back as they were; failed writes leave nothing behind.

use std::path::Path;

use terrane_geo::{
    Affine, BandMetadata, CogWriter, Crs, Error, Existing, GeoTiff, Georeference, Grid, HeightUnit,
    Output, RasterSource, SampleType, Storage, Window,
};

use crate::{assert_same, flavour_folder, swiss, wave_grid};

fn write(
    path: &Path,
    grid: &Grid,
    georeference: Georeference,
    storage: Storage,
) -> Result<(), Error> {
    let mut writer = CogWriter::create(
        &Output::named_here(path, Existing::Refuse),
        (grid.width, grid.height),
        georeference,
        storage,
    )?;
    for rows in grid.heights.chunks(grid.width * 37) {
        writer.write_rows(rows)?;
    }
    writer.finish().map(drop)
}

fn read(path: &Path) -> (GeoTiff, Grid) {
    let raster = GeoTiff::open(path).unwrap();
    let grid = raster
        .read(
            0,
            Window::whole(raster.info().width(), raster.info().height()),
        )
        .unwrap();
    (raster, grid)
}

#[test]
fn floating_point_comes_back_bit_for_bit_with_its_overviews() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    let mut grid = wave_grid(701, 523);
    for row in 100..300 {
        grid.heights[row * 701 + 50..row * 701 + 200].fill(f64::NAN);
    }
    let storage = Storage::metres(SampleType::F32, Some(-9999.0));
    write(&path, &grid, swiss(), storage.clone()).unwrap();
    let (raster, back) = read(&path);
    assert_same(&back, &grid.heights, "full resolution");
    assert_eq!(raster.info().levels, [(701, 523), (351, 262), (176, 131)]);
    assert_eq!(raster.info().georeference, swiss());
    assert_eq!(raster.info().storage, storage);

    let half = grid.halved();
    let overview = raster.read(1, Window::whole(351, 262)).unwrap();
    for (ours, theirs) in overview.heights.iter().zip(&half.heights) {
        assert!(
            ours.is_nan() == theirs.is_nan() && (theirs.is_nan() || (ours - theirs).abs() < 1e-4)
        );
    }
}

#[test]
fn scale_offset_unit_and_description_are_written_and_applied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    let mut grid = wave_grid(300, 270);
    grid.heights[5] = f64::NAN;
    let band = BandMetadata {
        scale: 0.01,
        offset: 100.0,
        unit: "ft".into(),
        description: "ground & water".into(),
        ..BandMetadata::default()
    };
    let storage = Storage {
        sample: SampleType::I32,
        nodata: Some(-2_147_483_648.0),
        band,
    };
    write(&path, &grid, swiss(), storage.clone()).unwrap();
    let (raster, back) = read(&path);
    assert_eq!(raster.info().storage, storage);
    assert_eq!(raster.info().unit, HeightUnit::Foot);
    assert!(back.heights[5].is_nan());
    let half_step = 0.005 * 0.3048 + 1e-9;
    for (ours, theirs) in back.heights.iter().zip(&grid.heights) {
        assert!(
            theirs.is_nan() || (ours - theirs).abs() <= half_step,
            "{ours} {theirs}"
        );
    }
}

/// A band that is no height keeps its values and its unit whatever the vertical system, and is never read as heights.
#[test]
fn another_quantity_keeps_its_values_and_is_not_taken_for_heights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    let mut values = wave_grid(300, 270);
    values.heights[5] = f64::NAN;
    let feet = Georeference::new(swiss().anchor, Crs::projected(2264, Some(6360)));
    for (name, unit) in [
        ("slope", "degree"),
        ("hillshade", ""),
        ("tri", "m"),
        ("x", "1/m"),
    ] {
        let storage = Storage::other(SampleType::F32, Some(-9999.0), name, unit);
        write(&path, &values, feet.clone(), storage.clone()).unwrap();
        let raster = GeoTiff::open_values(&path).unwrap();
        assert_eq!(raster.info().storage, storage);
        // A vertical system would give GDAL a unit for a band that states none.
        assert_eq!(raster.info().georeference.crs, Crs::projected(2264, None));
        let back = raster.read(0, Window::whole(300, 270)).unwrap();
        assert_same(&back, &values.heights, name);

        let Err(error @ Error::Unsupported { .. }) = GeoTiff::open(&path) else {
            panic!("{name} was read as heights")
        };
        let expected = format!("a.tif: a raster of {name} instead of heights is not supported");
        assert!(error.to_string().contains(&expected), "{error}");
        std::fs::remove_file(&path).unwrap();
    }

    // As other programs write slopes: the unit alone says that they are none.
    let mut storage = Storage::metres(SampleType::F32, None);
    storage.band.unit = "degree".into();
    let refused = write(&path, &values, feet.clone(), storage).unwrap_err();
    assert!(
        refused.to_string().contains("the height unit \"degree\""),
        "{refused}"
    );
}

#[test]
fn every_number_type_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    for sample in SampleType::ALL {
        let path = folder.path().join(format!("{}.tif", sample.name()));
        let heights = (0..40_000).map(|index| f64::from(index % 101)).collect();
        let grid = Grid::new(400, 100, heights);
        write(&path, &grid, swiss(), Storage::metres(sample, None)).unwrap();
        let (raster, back) = read(&path);
        assert_eq!(raster.info().storage.sample, sample);
        assert_same(&back, &grid.heights, sample.name());
    }
}

#[test]
fn whatever_gdal_wrote_keeps_its_place_and_its_system_verbatim() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "crs_custom_tmerc.tif",
        "crs_epsg2056_5728.tif",
        "crs_epsg4326.tif",
        "crs_epsg4647.tif",
        "crs_none.tif",
        "crs_none_no_transform.tif",
        "transform_rotated.tif",
        "transform_south_up.tif",
        "transform_pixel_is_point.tif",
        "transform_pixel_is_point_rotated.tif",
        "transform_oblong_pixels.tif",
        "nodata_f32min.tif",
        "nodata_nan.tif",
        "scale_offset_i16_ft.tif",
    ] {
        let (original, grid) = read(&flavour_folder().join(name));
        let path = folder.path().join(name);
        let info = original.info();
        write(
            &path,
            &grid,
            info.georeference.clone(),
            info.storage.clone(),
        )
        .unwrap();
        let (copy, back) = read(&path);
        assert_same(&back, &grid.heights, name);
        assert_eq!(copy.info().georeference, info.georeference, "{name}");
        assert_eq!(
            format!("{:?}", copy.info().storage),
            format!("{:?}", info.storage),
            "{name}"
        );
    }
}

#[test]
fn failed_writes_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    let grid = wave_grid(300, 300);
    let refused = |storage: Storage, grid: &Grid| write(&path, grid, swiss(), storage).unwrap_err();

    let too_high = refused(Storage::metres(SampleType::I8, None), &grid);
    assert!(
        matches!(
            &too_high,
            Error::Height {
                row: 0,
                column: 0,
                ..
            }
        ),
        "{too_high}"
    );
    let mut holes = grid.clone();
    holes.heights[301] = f64::NAN;
    let no_nodata = refused(Storage::metres(SampleType::I16, None), &holes);
    assert!(
        matches!(
            &no_nodata,
            Error::Height {
                row: 1,
                column: 1,
                ..
            }
        ),
        "{no_nodata}"
    );
    let collision = refused(
        Storage::metres(SampleType::F32, Some(grid.heights[0])),
        &grid,
    );
    assert!(
        collision.to_string().contains("read back as nodata"),
        "{collision}"
    );

    let mut writer = CogWriter::create(
        &Output::named_here(&path, Existing::Refuse),
        (300, 300),
        swiss(),
        Storage::metres(SampleType::F32, None),
    )
    .unwrap();
    writer.write_rows(&grid.heights[..300]).unwrap();
    assert!(matches!(
        writer.finish(),
        Err(Error::RowCount { given: 1, .. })
    ));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_same_heights_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.tif"), folder.path().join("b.tif"));
    let grid = wave_grid(600, 300);
    let storage = Storage::metres(SampleType::F32, Some(-9999.0));
    write(&a, &grid, swiss(), storage.clone()).unwrap();
    let mut writer = CogWriter::create(
        &Output::named_here(&b, Existing::Refuse),
        (600, 300),
        swiss(),
        storage,
    )
    .unwrap();
    writer.write_rows(&grid.heights).unwrap();
    writer.finish().unwrap();
    assert_eq!(std::fs::read(a).unwrap(), std::fs::read(b).unwrap());
}

/// Writes rasters for `check_cogs.py`, which validates them with rio-cogeo and reads them with GDAL.
#[test]
#[ignore = "needs Python with rasterio and rio-cogeo; run by `just test-gdal`"]
fn written_cogs_for_gdal() {
    let folder = std::env::var("TERRANE_COGS").expect("TERRANE_COGS names a folder to write to");
    let folder = Path::new(&folder);
    let mut grid = wave_grid(1300, 900);
    for row in 300..520 {
        grid.heights[row * 1300 + 50..row * 1300 + 400].fill(f64::NAN);
    }
    let float = Storage::metres(SampleType::F32, Some(-9999.0));
    let band = BandMetadata {
        scale: 0.01,
        offset: 100.0,
        unit: "m".into(),
        description: "height".into(),
        ..BandMetadata::default()
    };
    let centimetres = Storage {
        sample: SampleType::I32,
        nodata: Some(-99_999.0),
        band,
    };
    let rotated = Affine {
        x_per_row: 0.3,
        y_per_column: 0.2,
        ..Affine::north_up(500_000.0, 5_000_000.0, 1.0)
    };
    for (name, georeference, storage) in [
        ("float32", swiss(), float.clone()),
        (
            "nan",
            swiss(),
            Storage::metres(SampleType::F32, Some(f64::NAN)),
        ),
        (
            "float64",
            swiss(),
            Storage::metres(SampleType::F64, Some(-9999.0)),
        ),
        ("centimetres", swiss(), centimetres),
        (
            "rotated",
            Georeference::new(rotated, Crs::projected(32632, None)),
            float.clone(),
        ),
        (
            "geographic",
            Georeference::new(
                Affine::north_up(8.0, 47.0, 1e-5),
                Crs::geographic(7844, None),
            ),
            float.clone(),
        ),
        (
            "projected4647",
            Georeference::new(
                Affine::north_up(32_500_000.0, 5_000_000.0, 1.0),
                Crs::projected(4647, None),
            ),
            float,
        ),
        (
            "slope",
            swiss(),
            Storage::other(SampleType::F32, Some(-9999.0), "slope", "degree"),
        ),
        (
            "hillshade",
            swiss(),
            Storage::other(SampleType::F32, Some(-9999.0), "hillshade", ""),
        ),
    ] {
        write(
            &folder.join(format!("{name}.tif")),
            &grid,
            georeference,
            storage,
        )
        .unwrap();
    }
    let bytes: Vec<u8> = grid
        .heights
        .iter()
        .flat_map(|height| height.to_le_bytes())
        .collect();
    std::fs::write(folder.join("heights.f64"), bytes).unwrap();
}
