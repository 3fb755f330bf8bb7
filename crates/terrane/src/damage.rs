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
                "the tile at column {column}, row {row} of level {level}, and so {}: {}",
                self.reach, self.reason
            ),
            DamagedPart::Index(trees) => {
                formatter.write_str("the page of the index with the ")?;
                for (place, (first, last, number)) in trees.iter().enumerate() {
                    write!(
                        formatter,
                        "{}{} of level {} from column {}, row {} to column {}, row {}",
                        if place > 0 { ", the " } else { "" },
                        count(*number, "tree", "trees"),
                        first.level,
                        first.id.column,
                        first.id.row,
                        last.id.column,
                        last.id.row,
                    )?;
                }
                write!(formatter, ", and so {}: {}", self.reach, self.reason)
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
