//! Damaged files: an error, never a wrong height.

use std::sync::Arc;

use terrane_codec::format::{LevelTile, Method, Pyramid, TileId};
use terrane_codec::{FileModel, Rate, Terrain};

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

/// Whether a tile is another or lies below it in its tree.
fn is_at_or_below(pyramid: &Pyramid, tile: LevelTile, other: LevelTile) -> bool {
    tile.level <= other.level
        && pyramid.root(tile) == pyramid.root(other)
        && tile.above(other.level - tile.level) == other
}

#[test]
fn a_damaged_byte_names_its_tile_and_reaches_only_those_below() {
    // Two trees of four levels, and one of overviews above them.
    let raster = Raster::hills(90, 180);
    for codec in [context(Rate::MaxError(0.2)), integers(Rate::MaxError(0.2))] {
        let (file, _) = raster.try_encode(&codec, 2, 16).unwrap();
        let whole = crate::open(&file);
        let pyramid = whole.header().pyramid.clone();
        assert_eq!(pyramid.trees(), 3);
        let tiles: Vec<LevelTile> = (0..pyramid.tiles())
            .map(|number| pyramid.tile(number).unwrap())
            .collect();
        let read = |terrain: &Terrain, tile| {
            terrain
                .decode(tile)
                .map(|tile| tile.map(|tile| (tile.heights, tile.missing)))
        };
        let expected: Vec<_> = tiles
            .iter()
            .map(|&tile| read(&whole, tile).unwrap())
            .collect();
        let located: Vec<_> = tiles
            .iter()
            .filter_map(|&tile| Some((tile, whole.reader().locate(tile).unwrap()?)))
            .collect();
        let first = whole.reader().head().len();
        let (mut in_records, mut in_index) = (0, 0);
        for offset in (first..file.len()).step_by(11).chain([file.len() - 1]) {
            let mut damaged_file = file.clone();
            damaged_file[offset] ^= 1 << (offset % 8);
            let terrain = crate::open(&damaged_file);
            let hit = located
                .iter()
                .find(|(_, at)| (at.offset..at.offset + at.length).contains(&(offset as u64)));
            let hit = hit.map(|&(tile, _)| tile);
            for (&tile, expected) in tiles.iter().zip(&expected) {
                let found = read(&terrain, tile);
                let Some(hit) = hit else {
                    // A page of the index, and all trees are in it.
                    let named = damaged(&found.unwrap_err());
                    assert!(
                        named.is_some_and(|named| is_at_or_below(&pyramid, tile, named)),
                        "byte {offset}, {tile:?}: {named:?}"
                    );
                    continue;
                };
                let reaches = if codec.method == Method::Context {
                    is_at_or_below(&pyramid, tile, hit)
                } else {
                    tile == hit
                };
                if reaches {
                    assert_eq!(damaged(&found.unwrap_err()), Some(hit), "byte {offset}");
                } else {
                    assert!(found.unwrap() == *expected, "byte {offset}, {tile:?}");
                }
            }
            match hit {
                Some(_) => in_records += 1,
                None => in_index += 1,
            }
        }
        assert!(in_records > 100 && in_index > 5, "{in_records} {in_index}");
    }
}

#[test]
fn a_damaged_page_of_the_index_reaches_only_its_trees() {
    // Nine by eight trees of one tile with data each, and two trees above: a page of 64, and another.
    let raster = Raster::new(1100, 1000, |x, y| {
        if x % 128 < 16 && y % 128 < 16 {
            (x * y) as f64 / 128.0
        } else {
            f64::NAN
        }
    });
    let (file, _) = raster
        .try_encode(&integers(Rate::MaxError(0.5)), 2, 16)
        .unwrap();
    let whole = crate::open(&file);
    let pyramid = &whole.header().pyramid;
    let roots: Vec<LevelTile> = (0..pyramid.trees())
        .map(|number| pyramid.tree(number).unwrap())
        .collect();
    assert!(roots.len() > 64);
    // The pages are the end of the file, the second the last.
    let mut changed = file.clone();
    *changed.last_mut().unwrap() ^= 1;
    let terrain = crate::open(&changed);
    for (number, &root) in roots.iter().enumerate() {
        let found = terrain.tile(root);
        if number < 64 {
            let expected = whole.tile(root).unwrap().map(|tile| tile.heights.clone());
            assert!(found.unwrap().map(|tile| tile.heights.clone()) == expected);
        } else {
            assert_eq!(damaged(&found.unwrap_err()), Some(root));
        }
    }
}
