//! Several files are one raster.

use std::path::{Path, PathBuf};

use terrane_geo::{
    Affine, CogWriter, Crs, Error, Existing, Georeference, Grid, Output, SampleType, Storage,
    Window,
};

use crate::{assert_same, swiss, wave_grid};

fn piece(folder: &Path, name: &str, whole: &Grid, window: Window, sample: SampleType) -> PathBuf {
    let path = folder.join(name);
    let georeference = swiss().cropped(window.column, window.row);
    let storage = Storage::metres(sample, Some(-9999.0));
    let mut writer = CogWriter::create(
        &Output::named_here(&path, Existing::Refuse),
        (window.width, window.height),
        georeference,
        storage,
    )
    .unwrap();
    writer.write_rows(&whole.crop(window).heights).unwrap();
    writer.finish().unwrap();
    path
}

#[test]
fn pieces_in_any_order_are_the_raster_they_were_cut_from() {
    let folder = tempfile::tempdir().unwrap();
    let mut whole = wave_grid(500, 400);
    let windows = [
        Window {
            column: 250,
            row: 190,
            width: 250,
            height: 210,
        },
        Window {
            column: 0,
            row: 0,
            width: 260,
            height: 200,
        },
        Window {
            column: 0,
            row: 200,
            width: 250,
            height: 200,
        },
    ];
    let paths: Vec<_> = windows
        .iter()
        .enumerate()
        .map(|(index, &window)| {
            piece(
                folder.path(),
                &format!("{index}.tif"),
                &whole,
                window,
                SampleType::F32,
            )
        })
        .collect();
    // Nothing covers the top right.
    for row in 0..190 {
        whole.heights[row * 500 + 260..(row + 1) * 500].fill(f64::NAN);
    }
    let mosaic = terrane_geo::open(&paths).unwrap();
    assert_eq!(mosaic.info().levels, [(500, 400)]);
    assert_eq!(mosaic.info().georeference, swiss());
    assert_same(
        &mosaic.read(0, Window::whole(500, 400)).unwrap(),
        &whole.heights,
        "mosaic",
    );
    let window = Window {
        column: 200,
        row: 150,
        width: 120,
        height: 90,
    };
    assert_same(
        &mosaic.read(0, window).unwrap(),
        &whole.crop(window).heights,
        "window",
    );
}

#[test]
fn more_pieces_than_open_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let whole = wave_grid(16 * 40, 16);
    let paths: Vec<_> = (0..40)
        .map(|index| {
            let window = Window {
                column: 16 * index,
                row: 0,
                width: 16,
                height: 16,
            };
            piece(
                folder.path(),
                &format!("{index}.tif"),
                &whole,
                window,
                SampleType::F32,
            )
        })
        .collect();
    let mosaic = terrane_geo::open(&paths).unwrap();
    for _ in 0..2 {
        assert_same(
            &mosaic.read(0, Window::whole(640, 16)).unwrap(),
            &whole.heights,
            "mosaic",
        );
    }
}

#[test]
fn a_missing_height_does_not_hide_one_beneath_it() {
    let folder = tempfile::tempdir().unwrap();
    let whole = wave_grid(64, 64);
    let mut holes = whole.clone();
    holes.heights[100..200].fill(f64::NAN);
    let window = Window::whole(64, 64);
    let below = piece(folder.path(), "a.tif", &whole, window, SampleType::F32);
    let above = piece(folder.path(), "b.tif", &holes, window, SampleType::F64);
    let mosaic = terrane_geo::open(&[below, above]).unwrap();
    assert_eq!(mosaic.info().storage.sample, SampleType::F64);
    assert_same(&mosaic.read(0, window).unwrap(), &whole.heights, "overlap");
}

#[test]
fn rasters_that_do_not_fit_together_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = wave_grid(64, 64);
    let first = piece(
        folder.path(),
        "first.tif",
        &whole,
        Window::whole(64, 64),
        SampleType::F32,
    );
    let swiss_affine = Affine::north_up(2_600_000.0, 1_200_000.0, 1.0);
    for (name, georeference, reason) in [
        (
            "shifted",
            Georeference::new(swiss_affine.shifted(0.5, 0.0), swiss().crs),
            "off the grid",
        ),
        (
            "coarse",
            Georeference::new(swiss_affine.scaled(2.0), swiss().crs),
            "its pixels are 2 across",
        ),
        (
            "austrian",
            Georeference::new(swiss_affine, Crs::projected(31287, None)),
            "its system is EPSG:31287",
        ),
        (
            "nowhere",
            Georeference::of_pixels(Crs::default()),
            "not georeferenced",
        ),
    ] {
        let path = folder.path().join(name);
        let storage = Storage::metres(SampleType::F32, None);
        let mut writer = CogWriter::create(
            &Output::named_here(&path, Existing::Refuse),
            (64, 64),
            georeference,
            storage,
        )
        .unwrap();
        writer.write_rows(&whole.heights).unwrap();
        writer.finish().unwrap();
        match terrane_geo::open(&[&first, &path]) {
            Err(error @ Error::Mosaic { .. }) => {
                assert!(error.to_string().contains(reason), "{error}");
            }
            Err(error) => panic!("{name}: {error}"),
            Ok(_) => panic!("{name} was accepted"),
        }
    }
    assert!(matches!(
        terrane_geo::open(&[] as &[PathBuf]),
        Err(Error::NoInput)
    ));
}

/// What a mosaic costs goes by its rasters, not by what lies between them.
#[test]
fn rasters_far_apart_are_one_mosaic() {
    let folder = tempfile::tempdir().unwrap();
    let whole = wave_grid(64, 64);
    let near = piece(
        folder.path(),
        "near.tif",
        &whole,
        Window::whole(64, 64),
        SampleType::F32,
    );
    let far = folder.path().join("far.tif");
    let away = 900_000_000;
    let storage = Storage::metres(SampleType::F32, Some(-9999.0));
    let georeference = swiss().cropped(away, away);
    let mut writer = CogWriter::create(
        &Output::named_here(&far, Existing::Refuse),
        (64, 64),
        georeference,
        storage,
    )
    .unwrap();
    writer.write_rows(&whole.heights).unwrap();
    writer.finish().unwrap();

    let mosaic = terrane_geo::open(&[&near, &far]).unwrap();
    assert_eq!(mosaic.info().levels, [(away + 64, away + 64)]);
    let at = |column: usize, row: usize| Window {
        column,
        row,
        width: 64,
        height: 64,
    };
    for (window, is_there) in [
        (at(0, 0), true),
        (at(63, 63), true),
        (at(64, 0), false),
        (at(0, 64), false),
        (at(away / 2, away / 2), false),
        (at(away - 64, away), false),
        (at(away - 63, away - 63), true),
        (at(away, away), true),
        (Window::whole(away + 64, 1), true),
        (
            Window {
                row: 64,
                ..Window::whole(away + 64, away - 64)
            },
            false,
        ),
    ] {
        assert_eq!(mosaic.touches(window), is_there, "{window:?}");
    }
    assert_same(
        &mosaic.read(0, at(away, away)).unwrap(),
        &whole.heights,
        "far",
    );
    assert_same(
        &mosaic.read(0, at(away - 64, 0)).unwrap(),
        &vec![f64::NAN; 64 * 64],
        "between",
    );
}
