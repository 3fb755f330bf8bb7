//! What a file takes beside full resolution, and what integers and water become.

use std::path::Path;

use terrane_codec::format::{LocalFile, Reader};
use terrane_geo::{
    Affine, CogWriter, Crs, Existing, Georeference, Kind, Output, SampleType, Storage, Window,
};

use crate::{json, stdout, terrane};

fn write(
    path: &Path,
    sample: SampleType,
    (width, height): (usize, usize),
    at: impl Fn(f64, f64) -> f64,
) {
    let place = Georeference::new(
        Affine::north_up(500_000.0, 5_200_000.0, 10.0),
        Crs::projected(32632, None),
    );
    let nodata = if sample.is_float() { -9999.0 } else { -32768.0 };
    let storage = Storage::metres(sample, Some(nodata));
    let output = Output::new(path, Existing::Refuse, Kind::Raster);
    let mut writer = CogWriter::create(&output, (width, height), place, storage).unwrap();
    for row in 0..height {
        let heights: Vec<f64> = (0..width)
            .map(|column| at(column as f64, row as f64))
            .collect();
        writer.write_rows(&heights).unwrap();
    }
    writer.finish().unwrap();
}

/// Hills with a little noise that is the same everywhere.
fn hills(x: f64, y: f64) -> f64 {
    let noise = (x * 12.9898 + y * 78.233).sin() * 43_758.545;
    900.0
        + 300.0 * (x / 90.0).sin() * (y / 70.0).cos()
        + 20.0 * (x / 9.0 + y / 13.0).sin()
        + 4.0 * (noise - noise.floor())
}

#[test]
fn a_lossless_file_is_smaller_than_its_raster_and_a_bounded_one_smaller_still() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&at("i16.tif"), SampleType::I16, (900, 700), |x, y| {
        hills(x, y).round()
    });
    write(&at("f32.tif"), SampleType::F32, (900, 700), |x, y| {
        f64::from(hills(x, y) as f32)
    });
    write(&at("cm.tif"), SampleType::F32, (900, 700), |x, y| {
        f64::from(((hills(x, y) * 100.0).round() / 100.0) as f32)
    });
    let bytes = |name: &str| std::fs::metadata(at(name)).unwrap().len();
    for name in ["i16", "f32", "cm"] {
        let source = format!("{name}.tif");
        let mut sizes = Vec::new();
        for (rate, out) in [("--lossless", "lossless"), ("--max-error=0.1", "bounded")] {
            let file = format!("{name}-{out}.trn");
            stdout(&terrane(folder.path(), &["encode", &source, &file, rate]));
            let report = json(&terrane(
                folder.path(),
                &["verify", &file, "--against", &source, "--json"],
            ));
            assert_eq!(report["holds"], true, "{file}: {report}");
            sizes.push(bytes(&file));
        }
        assert!(
            sizes[0] < bytes(&source),
            "{name}: {sizes:?} of {}",
            bytes(&source)
        );
        assert!(sizes[1] <= sizes[0], "{name}: {sizes:?}");
    }
    // Integers that nothing was lost of come back as integers.
    let decoded = json(&terrane(
        folder.path(),
        &["decode", "i16-bounded.trn", "back.tif", "--json"],
    ));
    assert_eq!(decoded["sample_type"], "int16");
    assert_eq!(decoded["nodata"], -32768.0);
    let text = stdout(&terrane(
        folder.path(),
        &["decode", "i16-bounded.trn", "half.tif", "--level", "1"],
    ));
    assert!(
        text.contains("float32") && text.contains("(the source: int16, nodata -32768)"),
        "{text}"
    );
}

/// The file states how far its overviews are from means of the raster; decoded, they are no farther.
#[test]
fn overviews_of_a_lossless_file_are_as_near_the_mean_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&at("f32.tif"), SampleType::F32, (900, 700), |x, y| {
        f64::from(hills(x, y) as f32)
    });
    stdout(&terrane(
        folder.path(),
        &["encode", "f32.tif", "x.trn", "--lossless", "--tile", "256"],
    ));
    let file = LocalFile::open(&at("x.trn")).unwrap();
    let reader = Reader::open(Box::new(file)).unwrap();
    let stated = &reader.header().overviews;
    assert_eq!(stated.len(), 2);
    let whole = terrane_geo::open(&[at("f32.tif")]).unwrap();
    let mut expected = whole.read(0, Window::whole(900, 700)).unwrap();
    for (level, stated) in ["1", "2"].into_iter().zip(stated) {
        expected = expected.halved();
        let out = format!("{level}.tif");
        stdout(&terrane(
            folder.path(),
            &["decode", "x.trn", &out, "--level", level],
        ));
        let raster = terrane_geo::open(&[at(&out)]).unwrap();
        let (width, height) = (raster.info().width(), raster.info().height());
        assert_eq!((width, height), (expected.width, expected.height));
        let found = raster.read(0, Window::whole(width, height)).unwrap();
        let pairs = found.heights.iter().zip(&expected.heights);
        let (squares, most) = pairs.fold((0.0, 0.0_f64), |(squares, most), (a, b)| {
            (squares + (a - b).powi(2), most.max((a - b).abs()))
        });
        let rmse = (squares / found.heights.len() as f64).sqrt();
        assert!(
            most <= f64::from(stated.max_error_m) + 1e-4
                && (rmse - f64::from(stated.rmse_m)).abs() < 1e-4,
            "level {level}: rmse {rmse}, most {most}: {stated:?}"
        );
        // The noise of the ground has a root mean square of 1.15 m.
        assert!(rmse < 0.7, "level {level}: {rmse}");
    }
}

#[test]
fn flat_ground_stays_flat() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&at("flat.tif"), SampleType::F32, (700, 600), |_, _| 400.0);
    for rate in [
        "--max-error=0.1",
        "--rmse=0.05",
        "--bpp=3",
        "--lossless",
        "--bits=8",
        "--method=integers",
    ] {
        stdout(&terrane(
            folder.path(),
            &["encode", "flat.tif", "x.trn", rate, "--overwrite"],
        ));
        for level in ["0", "1"] {
            stdout(&terrane(
                folder.path(),
                &[
                    "decode",
                    "x.trn",
                    "back.tif",
                    "--level",
                    level,
                    "--overwrite",
                ],
            ));
            let raster = terrane_geo::open(&[at("back.tif")]).unwrap();
            let window = Window::whole(raster.info().width(), raster.info().height());
            let heights = raster.read(0, window).unwrap().heights;
            assert!(
                heights.iter().all(|&height| height == 400.0),
                "{rate}, level {level}"
            );
        }
    }
}
