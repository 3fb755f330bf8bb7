//! Files that are written to while they are read.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use terrane_geo::{
    CogWriter, Error, Existing, GeoTiff, Mosaic, Output, Piece, Pieces, RasterOptions,
    RasterSource, SampleType, Storage, Window,
};

use crate::{swiss, wave_grid};

/// Sixteen columns of a row of rasters.
fn piece(folder: &Path, index: usize) -> PathBuf {
    let path = folder.join(format!("{index}.tif"));
    let storage = Storage::metres(SampleType::F32, None);
    let georeference = swiss().cropped(16 * index, 0);
    let mut writer = CogWriter::create(
        &Output::named_here(&path, Existing::Replace),
        (16, 16),
        georeference,
        storage,
    )
    .unwrap();
    writer.write_rows(&wave_grid(16, 16).heights).unwrap();
    writer.finish().unwrap();
    path
}

/// As if the file had been written again in its place, a while later.
fn rewrite(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, bytes).unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(7))
        .unwrap();
}

fn assert_changed(result: Result<(), Error>, file: &Path) {
    match result {
        Err(Error::Changed { path }) => assert_eq!(path, file),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_raster_that_is_written_to_while_it_is_read_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = piece(folder.path(), 0);
    let raster = GeoTiff::open(&path).unwrap();
    raster.read(0, Window::whole(16, 16)).unwrap();
    raster.check_unchanged().unwrap();
    rewrite(&path);
    assert_changed(raster.check_unchanged(), &path);
    let text = raster.check_unchanged().unwrap_err().to_string();
    assert!(
        text.ends_with(
            "0.tif: changed while it was read; wait until it is written and start again"
        ),
        "{text}"
    );
    GeoTiff::open(&path).unwrap().check_unchanged().unwrap();
}

/// What cannot be read because the file is being written is said to be that, not a damaged file.
#[test]
fn a_raster_that_is_cut_off_while_it_is_read_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = piece(folder.path(), 0);
    let raster = GeoTiff::open(&path).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(300).unwrap();
    assert_changed(raster.read(0, Window::whole(16, 16)).map(drop), &path);
}

#[test]
fn a_piece_of_a_mosaic_is_compared_with_what_it_was_when_the_mosaic_was_made() {
    let folder = tempfile::tempdir().unwrap();
    // More than are held open, so that the first is closed and opened again.
    let paths: Vec<PathBuf> = (0..40).map(|index| piece(folder.path(), index)).collect();
    let mosaic = Mosaic::open(&paths).unwrap();
    let whole = Window::whole(640, 16);
    mosaic.read(0, whole).unwrap();
    mosaic.check_unchanged().unwrap();
    rewrite(&paths[0]);
    assert_changed(mosaic.check_unchanged(), &paths[0]);
    assert_changed(mosaic.read(0, whole).map(drop), &paths[0]);
}

#[test]
fn a_piece_that_was_never_read_may_change() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..2).map(|index| piece(folder.path(), index)).collect();
    let piece = |index: usize| Piece {
        path: paths[index].clone(),
        window: Window {
            column: 16 * index,
            row: 0,
            width: 16,
            height: 16,
        },
    };
    let pieces = Pieces::new(vec![piece(0), piece(1)], RasterOptions::default());
    rewrite(&paths[0]);
    pieces.read(Window::whole(16, 16)).unwrap();
    rewrite(&paths[1]);
    pieces.check_unchanged().unwrap();
    pieces.read(Window::whole(32, 16)).unwrap();
    std::fs::remove_file(&paths[1]).unwrap();
    assert_changed(pieces.check_unchanged(), &paths[1]);
}
