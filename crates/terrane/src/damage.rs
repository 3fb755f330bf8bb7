//! What of a file is damaged, and which tiles it reaches.

use std::fmt;
use std::ops::Range;

use serde_json::{Value, json};
use terrane_codec::format::{
    Error as FormatError, Header, LevelTile, Pyramid, Stored, TileId, Window,
};
use terrane_codec::{Error, Terrain};

use crate::sentence;
use crate::verify::Report;

type Result<T> = std::result::Result<T, Error>;

/// Damaged parts that are listed; more are counted, so that a file of nothing but damage takes no memory.
const LISTED: usize = 1 << 16;
/// Tiles that are decoded at a time, at least, where the file has so many.
const TILES: usize = 64;

/// Whether an error says that a file is not what it should be, rather than that it could not be read or checked.
pub fn is_damage(error: &Error) -> bool {
    match error {
        Error::Format(error) => matches!(
            error,
            FormatError::NotTerrane
                | FormatError::Malformed { .. }
                | FormatError::Checksum { .. }
                | FormatError::Length { .. }
                | FormatError::LimitExceeded { .. }
        ),
        Error::Tile { source, .. } => is_damage(source),
        Error::Model(error) => !matches!(error, terrane_codec::ModelError::Memory(_)),
        _ => false,
    }
}

/// A part of a file that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DamagedPart {
    /// The record of a tile.
    Tile(LevelTile),
    /// A page of the index: so many trees, row by row, from the root of the first to that of the last of each level.
    Index(Vec<(LevelTile, LevelTile, u64)>),
    /// The model inside the file.
    Model,
    /// The order of the parts.
    Layout,
}

/// The tiles that a damage reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// Tiles of full resolution.
    pub tiles: u64,
    /// Tiles of overviews.
    pub overviews: u64,
    /// The smallest window that holds those of full resolution, in pixels.
    pub window: Option<Window>,
}

impl Reach {
    /// What a damaged record reaches: its tile and, where tiles hold what those above them do not, all below it in its tree.
    fn of(header: &Header, tile: LevelTile) -> Self {
        let pyramid = &header.pyramid;
        let first = match header.method.stored() {
            Stored::Wavelet => pyramid.storey(tile.level),
            _ => tile.level,
        };
        let mut reach = Self::default();
        for level in first..=tile.level {
            let below = pyramid.tiles_below(tile, level);
            if level > 0 {
                reach.overviews += below.len() as u64;
                continue;
            }
            reach.tiles += below.len() as u64;
            for corner in [below.first(), below.last()].into_iter().flatten() {
                reach.cover(pyramid.window(*corner).ok());
            }
        }
        reach
    }

    /// Adds another.
    fn add(&mut self, other: &Self) {
        self.tiles += other.tiles;
        self.overviews += other.overviews;
        self.cover(other.window);
    }

    /// Makes the window hold another as well.
    fn cover(&mut self, other: Option<Window>) {
        let (Some(a), Some(b)) = (self.window, other) else {
            self.window = self.window.or(other);
            return;
        };
        let (column, row) = (a.column.min(b.column), a.row.min(b.row));
        let right = (a.column + a.width).max(b.column + b.width);
        let bottom = (a.row + a.height).max(b.row + b.height);
        self.window = Some(Window {
            column,
            row,
            width: right - column,
            height: bottom - row,
        });
    }
}

/// Something damaged: what, why, and the tiles that cannot be read for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The part of the file.
    pub part: DamagedPart,
    /// What cannot be read for it.
    pub reach: Reach,
    /// What is wrong, in a sentence.
    pub reason: String,
}

impl Damage {
    /// The damage as JSON.
    pub fn json(&self) -> Value {
        let place = |tile: &LevelTile| json!({ "column": tile.id.column, "row": tile.id.row });
        let mut value = match &self.part {
            DamagedPart::Tile(tile) => json!({
                "part": "tile", "level": tile.level, "column": tile.id.column, "row": tile.id.row,
            }),
            DamagedPart::Index(trees) => {
                let trees: Vec<Value> = trees
                    .iter()
                    .map(|(first, last, count)| {
                        json!({
                            "level": first.level, "count": count, "first": place(first), "last": place(last),
                        })
                    })
                    .collect();
                json!({ "part": "index", "trees": trees })
            }
            DamagedPart::Model => json!({ "part": "model" }),
            DamagedPart::Layout => json!({ "part": "layout" }),
        };
        value["tiles"] = self.reach.tiles.into();
        value["overviews"] = self.reach.overviews.into();
        value["window"] = self.reach.window.map_or(Value::Null, |window| {
            json!({
                "column": window.column, "row": window.row, "width": window.width, "height": window.height,
            })
        });
        value["reason"] = self.reason.as_str().into();
        value
    }
}

/// One or more of something.
fn count(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// Trees of a level that follow each other, row by row.
fn name_trees((first, last, number): &(LevelTile, LevelTile, u64)) -> String {
    let place = |tile: &LevelTile| format!("column {}, row {}", tile.id.column, tile.id.row);
    let level = first.level;
    if *number == 1 {
        return format!("the tree at {} of level {level}", place(first));
    }
    let (first, last) = (place(first), place(last));
    format!("the {number} trees of level {level} from {first} to {last}")
}

impl fmt::Display for Reach {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let tiles = count(
            self.tiles,
            "tile of full resolution",
            "tiles of full resolution",
        );
        let overviews = count(self.overviews, "tile of overviews", "tiles of overviews");
        let Some(window) = self.window else {
            return formatter.write_str(&overviews);
        };
        write!(
            formatter,
            "{tiles} ({} x {} pixels from column {}, row {})",
            window.width, window.height, window.column, window.row
        )?;
        if self.overviews > 0 {
            write!(formatter, " and {overviews}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match &self.part {
            DamagedPart::Tile(LevelTile {
                level,
                id: TileId { column, row },
            }) => write!(
                formatter,
                "the tile at column {column}, row {row} of level {level}, which reaches {}: {}",
                self.reach, self.reason
            ),
            DamagedPart::Index(trees) => {
                let names: Vec<String> = trees.iter().map(name_trees).collect();
                let names = names.join(" and ");
                write!(
                    formatter,
                    "the page of the index with {names}, which reaches {}: {}",
                    self.reach, self.reason
                )
            }
            DamagedPart::Model | DamagedPart::Layout => formatter.write_str(&self.reason),
        }
    }
}

/// All that is damaged.
#[derive(Debug, Default)]
pub(crate) struct Damages {
    pub(crate) listed: Vec<Damage>,
    /// How many more there are.
    pub(crate) unlisted: u64,
    /// Tiles that cannot be read, each counted once.
    pub(crate) unreadable: Reach,
    /// Tiles that were decoded and have data.
    pub(crate) with_data: u64,
}

impl Damages {
    fn add(&mut self, part: DamagedPart, reach: Reach, error: &Error) {
        if self.listed.len() == LISTED {
            self.unlisted += 1;
            return;
        }
        self.listed.push(Damage {
            part,
            reach,
            reason: sentence(error),
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// All in one sentence, with the first in full.
    pub(crate) fn sentence(&self, header: &Header) -> String {
        let parts = self.listed.len() as u64 + self.unlisted;
        let first = self.listed.first().map(ToString::to_string);
        let of = header.pyramid.grid(0);
        let of = of.map_or(0, |grid| grid.columns() as u64 * grid.rows() as u64);
        format!(
            "{} damaged, and {} of {} of full resolution and {} of overviews cannot be read{}{}",
            count(parts, "part is", "parts are"),
            self.unreadable.tiles,
            count(of, "tile", "tiles"),
            self.unreadable.overviews,
            if parts == 1 { ": " } else { "; the first: " },
            first.unwrap_or_default(),
        )
    }
}

/// What became of a tile.
enum Outcome {
    Data,
    NoData,
    /// Its own record is damaged.
    Damaged(Error),
    /// It lies below one whose record is damaged; and its own may be, too.
    Below(Option<Error>),
}

/// Checks every part of a file and decodes every tile of every level, tree by tree.
pub(crate) fn find_damage(
    terrain: &Terrain,
    jobs: usize,
    progress: &mut Report,
) -> Result<Damages> {
    let (reader, header) = (terrain.reader(), terrain.header());
    let mut found = Damages::default();
    let mut pages_are_whole = true;
    if let Err(error) = reader.embedded_model(terrain.memory()) {
        let error = damage(error.into())?;
        found.add(DamagedPart::Model, Reach::default(), &error);
    }
    let (of, mut done) = (header.pyramid.tiles(), 0);
    for (page, trees) in reader.page_trees().enumerate() {
        if let Err(error) = reader.check_page(page) {
            let error = damage(error.into())?;
            let (part, reach) = page_reach(&header.pyramid, trees);
            done += reach.tiles + reach.overviews;
            found.unreadable.add(&reach);
            found.add(part, reach, &error);
            pages_are_whole = false;
            continue;
        }
        let mut roots = Vec::new();
        let mut tiles = 0;
        let last = trees.end;
        for number in trees {
            let Some(root) = header.pyramid.tree(number) else {
                continue;
            };
            tiles += header.pyramid.tree_tiles(root).len();
            roots.push(root);
            if tiles >= TILES || number + 1 == last {
                check_trees(terrain, &roots, jobs, &mut found)?;
                done += tiles as u64;
                progress("verify", done, of, "tiles");
                roots.clear();
                tiles = 0;
            }
        }
    }
    if pages_are_whole && let Err(error) = reader.check_layout() {
        let error = damage(error.into())?;
        found.add(DamagedPart::Layout, Reach::default(), &error);
    }
    Ok(found)
}

/// Passes an error on that says nothing about the file.
fn damage(error: Error) -> Result<Error> {
    if is_damage(&error) {
        Ok(error)
    } else {
        Err(error)
    }
}

/// The trees of a page of the index, and what is lost with it.
fn page_reach(pyramid: &Pyramid, trees: Range<u64>) -> (DamagedPart, Reach) {
    let mut levels: Vec<(LevelTile, LevelTile, u64)> = Vec::new();
    let mut reach = Reach::default();
    for root in trees.filter_map(|number| pyramid.tree(number)) {
        match levels.last_mut() {
            Some((first, last, count)) if first.level == root.level => {
                *last = root;
                *count += 1;
            }
            _ => levels.push((root, root, 1)),
        }
        for tile in pyramid.tree_tiles(root) {
            let is_overview = tile.level > 0;
            reach.add(&Reach {
                tiles: u64::from(!is_overview),
                overviews: u64::from(is_overview),
                window: pyramid.window(tile).ok().filter(|_| !is_overview),
            });
        }
    }
    (DamagedPart::Index(levels), reach)
}

/// Decodes the tiles of some trees and notes what is wrong with them.
fn check_trees(
    terrain: &Terrain,
    roots: &[LevelTile],
    jobs: usize,
    found: &mut Damages,
) -> Result<()> {
    let outcomes = terrain.decode_trees(roots, jobs, &|tile, decoded| {
        let outcome = match decoded {
            Ok(None) => Outcome::NoData,
            Ok(Some(_)) => Outcome::Data,
            Err(error) => match damage(error)? {
                Error::Tile { tile: above, .. } if above != tile => {
                    let own = terrain.reader().bytes(tile).err();
                    Outcome::Below(own.map(|error| damage(error.into())).transpose()?)
                }
                Error::Tile { source, .. } => Outcome::Damaged(*source),
                error => Outcome::Damaged(error),
            },
        };
        Ok((tile, outcome))
    })?;
    for (tile, outcome) in outcomes {
        let error = match outcome {
            Outcome::NoData => continue,
            Outcome::Data => {
                found.with_data += 1;
                continue;
            }
            Outcome::Damaged(error) => Some(error),
            Outcome::Below(error) => error,
        };
        if tile.level == 0 {
            found.unreadable.tiles += 1;
        } else {
            found.unreadable.overviews += 1;
        }
        if let Some(error) = error {
            let reach = Reach::of(terrain.header(), tile);
            found.add(DamagedPart::Tile(tile), reach, &error);
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use terrane_codec::TerrainOptions;
    use terrane_codec::format::Method;
    use terrane_geo::{
        Affine, Crs, Georeference, Grid, MemoryRaster, RasterOptions, SampleType, Storage,
    };

    use super::*;
    use crate::{Settings, Target, Verification, fixture, verify};

    /// A file of hills with a gap and a lake.
    pub(crate) fn file(width: usize, height: usize, settings: &Settings) -> Vec<u8> {
        let at = |pixel: usize| {
            let (x, y) = ((pixel % width) as f64, (pixel / width) as f64);
            if (x - 40.0).hypot(y - 50.0) < 17.5 {
                return f64::NAN;
            }
            let height = 431.0 + 12.0 * (x / 31.0).sin() * (y / 17.0).cos() + (x / 3.0).sin();
            f64::from((height as f32).max(425.0))
        };
        let place = Georeference::new(
            Affine::north_up(2_600_000.0, 1_200_000.0, 1.0),
            Crs::projected(2056, None),
        );
        let raster = MemoryRaster::new(
            "hills",
            Grid::new(width, height, (0..width * height).map(at).collect()),
            place,
            Storage::metres(SampleType::F32, None),
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hills.trn");
        fixture::write(&raster, settings, &path);
        std::fs::read(&path).unwrap()
    }

    pub(crate) fn settings(method: Method, tile: u16) -> Settings {
        Settings {
            method: Some(method),
            profile: terrane_codec::Profile::Fast,
            tile: Some(tile),
            target: Target::MaxError(0.05),
            ..Settings::default()
        }
    }

    fn open(file: &[u8]) -> Terrain {
        let options = TerrainOptions {
            models: crate::MODELS,
            ..TerrainOptions::default()
        };
        Terrain::open(Box::new(file.to_vec()), options).unwrap()
    }

    fn check(file: &[u8]) -> Verification {
        verify(
            &open(file),
            &[],
            &RasterOptions::default(),
            2,
            &mut |_, _, _, _| {},
        )
        .unwrap()
    }

    fn all(pyramid: &Pyramid) -> impl Iterator<Item = LevelTile> + use<'_> {
        (0..pyramid.tiles()).filter_map(|number| pyramid.tile(number))
    }

    #[test]
    fn a_damaged_record_reaches_the_tiles_below_it_and_no_others() {
        // Trees of 256 pixels, four of them, and one of the tile above.
        for method in [Method::Context, Method::Integers] {
            let file = file(300, 270, &settings(method, 32));
            let terrain = open(&file);
            let pyramid = &terrain.header().pyramid;
            assert_eq!((pyramid.levels(), pyramid.trees()), (5, 5));
            let whole = check(&file);
            assert!(whole.failed.is_empty() && whole.damaged.is_empty());
            let with_data = whole.report["tiles"].as_u64().unwrap();
            for tile in all(pyramid) {
                let Some(location) = terrain.reader().locate(tile).unwrap() else {
                    continue;
                };
                let mut damaged = file.clone();
                damaged[(location.offset + location.length / 2) as usize] ^= 16;
                let found = check(&damaged);
                assert_eq!(found.damaged.len(), 1, "{tile:?}");
                let [damage] = &found.damaged[..] else {
                    panic!("{:?}", found.damaged);
                };
                assert_eq!(damage.part, DamagedPart::Tile(tile));
                let below: Vec<LevelTile> = all(pyramid)
                    .filter(|&other| {
                        let is_below = other.level <= tile.level
                            && pyramid.root(other) == pyramid.root(tile)
                            && other.above(tile.level - other.level) == tile;
                        other == tile || (method == Method::Context && is_below)
                    })
                    .collect();
                let tiles = below.iter().filter(|tile| tile.level == 0).count() as u64;
                let overviews = below.len() as u64 - tiles;
                assert_eq!(
                    (damage.reach.tiles, damage.reach.overviews),
                    (tiles, overviews)
                );
                assert_eq!(found.report["tiles_unreadable"], tiles);
                assert_eq!(found.report["overviews_unreadable"], overviews);
                let read = found.report["tiles"].as_u64().unwrap();
                assert!(read >= with_data - below.len() as u64 && read < with_data);
                assert_eq!(damage.reach.window.is_some(), tiles > 0);
                if let Some(window) = damage.reach.window {
                    let side = 32 << tile.level;
                    let (column, row) = (tile.id.column * side, tile.id.row * side);
                    assert_eq!((window.column, window.row), (column, row));
                    assert_eq!(window.width, side.min(300 - column));
                    assert_eq!(window.height, side.min(270 - row));
                }
                let listed = &found.report["damaged"][0];
                assert_eq!(listed["level"], tile.level);
                assert_eq!(listed["column"], tile.id.column);
                assert_eq!(listed["row"], tile.id.row);
                let place = format!("column {}, row {} of level", tile.id.column, tile.id.row);
                assert!(found.failed[0].contains(&place), "{:?}", found.failed);
                // Whoever reads it is told the same.
                let error = sentence(&open(&damaged).decode(tile).unwrap_err());
                assert!(
                    error.contains(&place) && error.contains("checksum"),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn damage_below_damage_is_listed_too() {
        let mut file = file(200, 200, &settings(Method::Context, 32));
        let terrain = open(&file);
        let pyramid = terrain.header().pyramid.clone();
        let mut tiles: Vec<LevelTile> = all(&pyramid).collect();
        for tile in &tiles {
            let location = terrain.reader().locate(*tile).unwrap().unwrap();
            file[location.offset as usize + 6] ^= 1;
        }
        let found = check(&file);
        let mut listed: Vec<LevelTile> = found
            .damaged
            .iter()
            .map(|damage| match damage.part {
                DamagedPart::Tile(tile) => tile,
                _ => panic!("{damage}"),
            })
            .collect();
        assert_eq!(listed[0], *tiles.last().unwrap());
        listed.sort_unstable();
        tiles.sort_unstable();
        assert_eq!(listed, tiles);
        // Each tile is counted once, however much reaches it.
        assert_eq!(found.report["tiles_unreadable"], 49);
        assert_eq!(found.report["tiles"], 0);
        assert!(found.failed[0].contains("49 of 49 tiles of full resolution"));
    }

    #[test]
    fn a_damaged_page_of_the_index_names_its_trees() {
        // Trees of 128 pixels: 9 by 8 of them and one above, and so two pages.
        let mut file = file(1100, 1000, &settings(Method::Integers, 16));
        let terrain = open(&file);
        let pages: Vec<_> = terrain.reader().page_trees().collect();
        assert_eq!(pages, [0..64, 64..73]);
        let with_data = check(&file).report["tiles"].as_u64().unwrap();
        // The last bytes of a file are its last page.
        let last = file.len() - 1;
        file[last] ^= 1;
        let found = check(&file);
        let [damage] = &found.damaged[..] else {
            panic!("{:?}", found.damaged);
        };
        let text = damage.to_string();
        assert!(
            text.contains("the 8 trees of level 3 from column 1, row 7 to column 8, row 7"),
            "{text}"
        );
        let trees = &found.report["damaged"][0]["trees"];
        assert_eq!(trees[0]["level"], 3);
        assert_eq!(trees[0]["count"], 8);
        assert_eq!(trees[0]["first"]["column"], 1);
        let window = damage.reach.window.unwrap();
        assert_eq!((window.column, window.row), (128, 896));
        assert_eq!((window.width, window.height), (972, 104));
        assert_eq!(damage.reach.tiles, 61 * 7);
        let lost = damage.reach.tiles + damage.reach.overviews;
        assert_eq!(found.report["tiles"], with_data - lost);
    }

    #[test]
    fn no_flipped_byte_behind_the_head_ends_the_check_or_goes_unnoticed() {
        let settings = Settings {
            embed_model: true,
            ..settings(Method::Context, 16)
        };
        let file = file(90, 70, &settings);
        let head = open(&file).reader().head().len();
        let mut damaged = file.clone();
        for offset in (head..file.len()).step_by(23) {
            damaged[offset] ^= 1 << (offset % 8);
            let found = check(&damaged);
            assert!(!found.failed.is_empty(), "byte {offset}");
            assert_eq!(found.report["holds"], false);
            damaged[offset] ^= 1 << (offset % 8);
        }
        // The program has the model, too: everything else can be read.
        damaged[head + 99] ^= 1;
        let found = check(&damaged);
        assert_eq!(found.damaged[0].part, DamagedPart::Model);
        assert_eq!(found.report["tiles"], check(&file).report["tiles"]);
    }

    #[test]
    fn a_damaged_file_is_not_compared() {
        let mut file = file(90, 70, &settings(Method::Context, 16));
        let middle = file.len() / 2;
        file[middle] ^= 1;
        let nothing = ["nowhere.tif".into()];
        let found = verify(
            &open(&file),
            &nothing,
            &RasterOptions::default(),
            1,
            &mut |_, _, _, _| {},
        )
        .unwrap();
        assert!(found.failed[1].contains("not compared"));
    }
}
