//! Damaged files: an error, never a wrong height.

use std::sync::Arc;

use terrane_codec::format::{LevelTile, TileId};
use terrane_codec::{FileModel, Rate};

use crate::{Raster, context, integers, tokens};

/// Everything a careful reader does.
fn read_all(file: &[u8]) -> Result<(), terrane_codec::Error> {
    let terrain = crate::try_open(file.to_vec(), None)?;
    terrain.reader().check_layout()?;
    let pyramid = terrain.header().pyramid.clone();
    for number in 0..pyramid.tiles() {
        crate::record(&terrain, pyramid.tile(number).unwrap())?;
    }
    Ok(())
}

/// The tile that an error names.
fn damaged(error: &terrane_codec::Error) -> Option<LevelTile> {
    match error {
        terrane_codec::Error::Tile { tile, .. } => Some(*tile),
        _ => None,
    }
}

#[test]
fn a_flipped_bit_anywhere_is_an_error() {
    let raster = Raster::hills(90, 180);
    for codec in [
        integers(Rate::MaxError(0.5)),
        tokens(Rate::MaxError(0.5)),
        context(Rate::MaxError(0.5)),
    ] {
        let (file, _) = raster.encode(&codec, 1);
        read_all(&file).unwrap();
        let mut damaged = file.clone();
        for offset in 0..file.len() {
            let bit = 1 << (offset % 8);
            damaged[offset] ^= bit;
            assert!(read_all(&damaged).is_err(), "byte {offset}");
            damaged[offset] ^= bit;
        }
    }
}

#[test]
fn a_file_that_was_cut_off_or_added_to_is_an_error() {
    let (file, _) = Raster::hills(90, 180).encode(&integers(Rate::MaxError(0.5)), 1);
    for cut in (0..file.len()).step_by(61) {
        assert!(read_all(&file[..cut]).is_err(), "{cut} bytes");
    }
    let mut longer = file.clone();
    longer.push(0);
    assert!(
        read_all(&longer)
            .unwrap_err()
            .to_string()
            .contains("cut off or added to")
    );
    assert!(
        read_all(b"II*\0 a TIFF")
            .unwrap_err()
            .to_string()
            .contains("not a terrane file")
    );
}

#[test]
fn another_model_is_refused() {
    let (file, _) = Raster::hills(90, 90).encode(&tokens(Rate::Tokens), 1);
    let mut other = terrane_networks::TrainedModel::built_in().clone();
    other.sha256[0] ^= 1;
    let error = crate::try_open(file, Some(FileModel::Tokens(Arc::new(other)))).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("made with the model huvr-siren-small"),
        "{error}"
    );
}

#[test]
fn a_tile_that_is_absent_is_not_one_that_is_damaged() {
    let raster = Raster::new(300, 20, |x, _| if x < 256 { f64::NAN } else { 3.0 });
    let (mut file, _) = raster.encode(&integers(Rate::MaxError(0.1)), 1);
    let tile = |column| LevelTile {
        level: 0,
        id: TileId { column, row: 0 },
    };
    let terrain = crate::open(&file);
    assert!(terrain.tile(tile(0)).unwrap().is_none());
    let at = terrain.reader().locate(tile(1)).unwrap().unwrap();
    file[at.offset as usize + 5] ^= 1;
    let terrain = crate::open(&file);
    assert!(terrain.tile(tile(0)).unwrap().is_none());
    let error = terrain.tile(tile(1)).unwrap_err();
    assert_eq!(damaged(&error), Some(tile(1)));
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("checksum"), "{cause}");
}
