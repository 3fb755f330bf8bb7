//! The ground of a tree to the records of its tiles.
//!
//! Up, the LL bands of tiles make the pictures of the tiles above. Down, the root is coded as a whole, and every other tile by
//! its details, in the context of the decoded picture above it.

use sha2::{Digest, Sha256};
use terrane_context::{Area, Codec, Coefficients, Draft, Matrix, Picture, Quantiser, Transform};
use terrane_format::record::{CodedRecord, Details, Layer, WaveletLayer};
use terrane_format::{LevelTile, ParentMask, Pyramid, Stored};

use super::bounded::{self, Search};
use super::branch::{Branch, Place, Scale};
use super::source::TreeSource;
use crate::Error;
use crate::fill::fill;
use crate::measured::Measured;
use crate::model::FileModel;
use crate::parallel::in_parallel;
use crate::tile::{Candidate, Rate, Tile, TileEncoder, TileHeights, range};

/// A tile, ready to be written.
#[derive(Debug, Clone, Default)]
pub(crate) struct EncodedTile {
    /// Its record; empty where it has none.
    pub(crate) bytes: Vec<u8>,
    /// What comes back, measured against the source, or against means of it where this is an overview.
    pub(crate) measured: Measured,
}

/// A tree, ready to be written: its tiles in the order of a file.
#[derive(Debug)]
pub(crate) struct EncodedTree {
    pub(crate) number: u64,
    pub(crate) tiles: Vec<EncodedTile>,
}

/// Length and measures of a tile, before the records of a tree that is kept.
const ENTRY: usize = 4 + Measured::BYTES;

impl EncodedTree {
    /// The tree as it is kept in a journal or a shard: an entry for each tile with their SHA-256, then the records, which
    /// have checksums of their own.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for tile in &self.tiles {
            bytes.extend((tile.bytes.len() as u32).to_le_bytes());
            bytes.extend(tile.measured.to_bytes());
        }
        let digest = Sha256::digest(&bytes);
        bytes.extend(digest);
        for tile in &self.tiles {
            bytes.extend_from_slice(&tile.bytes);
        }
        bytes
    }

    /// Reads a tree that was kept, and checks its records; `None` where they are not as they were.
    pub(crate) fn parse(pyramid: &Pyramid, number: u64, bytes: &[u8]) -> Option<Self> {
        let places = pyramid.tree_tiles(pyramid.tree(number)?);
        let (entries, rest) = bytes.split_at_checked(places.len() * ENTRY)?;
        let (digest, mut rest) = rest.split_at_checked(32)?;
        if Sha256::digest(entries)[..] != *digest {
            return None;
        }
        let mut tiles = Vec::with_capacity(places.len());
        let most = u64::from(pyramid.side()).pow(2);
        for (place, entry) in places.into_iter().zip(entries.chunks_exact(ENTRY)) {
            let length = u32::from_le_bytes(std::array::from_fn(|at| entry[at]));
            let (record, after) = rest.split_at_checked(length as usize)?;
            rest = after;
            if !record.is_empty() {
                terrane_format::record::check(record, pyramid.number(place).ok()?).ok()?;
            }
            tiles.push(EncodedTile {
                bytes: record.to_vec(),
                measured: Measured::from_bytes(&std::array::from_fn(|at| entry[4 + at]), most)?,
            });
        }
        rest.is_empty().then_some(Self { number, tiles })
    }

    /// Whether any tile has data.
    pub(crate) fn has_data(&self) -> bool {
        self.tiles.iter().any(|tile| !tile.bytes.is_empty())
    }
}

/// Makes records of trees.
pub(crate) struct TreeEncoder<'a> {
    pub(crate) encoder: &'a TileEncoder,
    pub(crate) pyramid: &'a Pyramid,
    /// Threads.
    pub(crate) jobs: usize,
}

/// A tile that is coded, but for its number.
pub(super) struct CodedTile {
    /// `None` where it has no data or no details.
    pub(super) record: Option<CodedRecord>,
    pub(super) measured: Measured,
}

impl CodedTile {
    pub(super) fn bytes(&self) -> usize {
        self.record.as_ref().map_or(0, CodedRecord::len)
    }

    fn empty() -> Self {
        Self {
            record: None,
            measured: Measured::default(),
        }
    }
}

/// A tree that is coded: its tiles from the root down.
pub(super) struct CodedTree {
    pub(super) tiles: Vec<CodedTile>,
}

impl CodedTree {
    /// Bytes of all records.
    pub(super) fn bytes(&self) -> usize {
        self.tiles.iter().map(CodedTile::bytes).sum()
    }
}

/// How a tree is to be coded by a wavelet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) scale: Scale,
    pub(super) quantiser: Quantiser,
    /// What the finest tiles must reach by themselves.
    pub(super) leaves: Leaves,
    /// How hard they try.
    pub(super) search: Search,
}

impl Plan {
    /// The bound of the finest tiles in steps, where their symbols are searched for it.
    fn searched_bound(&self) -> Option<f64> {
        match self.leaves {
            Leaves::Within(within)
                if within > 0.0
                    && self.search.searches > 0
                    && self.scale.transform == Transform::Lossy =>
            {
                Some(within / self.scale.step_m)
            }
            _ => None,
        }
    }

    /// The heights of a tile in steps, NaN where they do not matter.
    fn in_steps(&self, heights: &TileHeights) -> Option<Matrix<f64>> {
        let offset = self.scale.offset as f64;
        let values = heights.heights.iter();
        let values = values.map(|height| height / self.scale.step_m - offset);
        let mut values: Vec<f64> = values.collect();
        heights.clear_water(&mut values);
        Matrix::from_values(heights.window.width, heights.window.height, values)
    }
}

/// What the finest tiles of a tree must reach by themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Leaves {
    /// Nothing.
    Free,
    /// No valid pixel farther off than so many metres.
    Within(f64),
    /// A root mean square error.
    Rmse(f64),
    /// Bits per pixel of their own records.
    Bpp(f64),
}

/// The pictures of a tree before anything is coded, in steps; NaN where there is no data.
struct Pictures {
    scale: Scale,
    /// From the one above the finest on; the finest is made of the heights.
    coarser: Vec<Matrix<f64>>,
}

impl Pictures {
    /// The picture of a tile without gaps; `None` where it has no data.
    fn tile(&self, source: &TreeSource, tile: LevelTile) -> Result<Option<Matrix<f64>>, Error> {
        let depth = tile.level - source.pyramid.storey(tile.level);
        let window = source.pyramid.window(tile)?;
        let (width, height) = (window.width, window.height);
        let picture = depth
            .checked_sub(1)
            .map(|above| &self.coarser[usize::from(above)]);
        let mut values = if let Some(picture) = picture {
            let ground = source.window(depth);
            let area = Area {
                column: window.column - ground.column,
                row: window.row - ground.row,
                width,
                height,
            };
            picture.cropped(area).values
        } else {
            let offset = self.scale.offset as f64;
            let Some(heights) = source.tile(tile)? else {
                return Ok(None);
            };
            let mut values = heights.heights;
            for value in &mut values {
                let steps = *value / self.scale.step_m;
                *value = match self.scale.transform {
                    Transform::Lossy => steps - offset,
                    // After the gaps are filled.
                    Transform::Lossless => steps,
                };
            }
            values
        };
        if values.iter().all(|value| value.is_nan()) {
            return Ok(None);
        }
        fill(&mut values, width);
        if depth == 0 && self.scale.transform == Transform::Lossless {
            for value in &mut values {
                *value = value.round() - self.scale.offset as f64;
            }
        }
        Ok(Matrix::from_values(width, height, values))
    }
}

impl TreeEncoder<'_> {
    /// Encodes the tree of a root from the heights of its ground, and those that are water.
    pub(crate) fn encode(
        &self,
        root: LevelTile,
        heights: Vec<f64>,
        water: Option<Vec<bool>>,
    ) -> Result<EncodedTree, Error> {
        let number = self.pyramid.tree_number(root)?;
        let source = TreeSource::new(self.pyramid, root, heights, water)?;
        let tiles = self.pyramid.tree_tiles(root);
        if !source.has_data() {
            return Ok(EncodedTree {
                number,
                tiles: vec![EncodedTile::default(); tiles.len()],
            });
        }
        let coded = self.code(&source)?;
        let tiles = tiles.into_iter().zip(coded.tiles);
        let sealed = tiles.map(|(tile, coded)| {
            let number = self.pyramid.number(tile)?;
            let bytes = coded.record.map(|record| record.seal(number));
            Ok(EncodedTile {
                bytes: bytes.unwrap_or_default(),
                measured: coded.measured,
            })
        });
        let tiles = sealed.collect::<Result<Vec<_>, Error>>()?;
        let first = self.pyramid.storey(root.level);
        if first == 0 {
            self.check_reached(root, &tiles)?;
        }
        Ok(EncodedTree { number, tiles })
    }

    /// Refuses a tree with a tile that does not reach a rate of its own.
    fn check_reached(&self, root: LevelTile, tiles: &[EncodedTile]) -> Result<(), Error> {
        for (tile, encoded) in self.pyramid.tree_tiles(root).into_iter().zip(tiles) {
            if tile.level == 0 {
                let window = self.pyramid.window(tile)?;
                self.encoder.check_reached(&encoded.bytes, window)?;
            }
        }
        Ok(())
    }

    pub(super) fn code(&self, source: &TreeSource) -> Result<CodedTree, Error> {
        let coded = match self.encoder.method.stored() {
            Stored::Wavelet => self.code_wavelet(source)?,
            Stored::Integers | Stored::Tokens => None,
        };
        match coded {
            Some(coded) => Ok(coded),
            None => self.code_apart(source),
        }
    }

    /// Every tile by itself: tokens, and what no wavelet takes.
    fn code_apart(&self, source: &TreeSource) -> Result<CodedTree, Error> {
        let is_tree = self.encoder.method.stored() == Stored::Wavelet;
        let mut all = Vec::new();
        let mut above: Vec<(LevelTile, Option<Branch>)> = Vec::new();
        for depth in (0..=source.depth()).rev() {
            let tiles = source.tiles(depth);
            let made = in_parallel(tiles.len(), self.jobs, &|index| {
                let tile = tiles[index];
                let Some(heights) = source.tile_with_water(tile, self.encoder)? else {
                    return Ok((CodedTile::empty(), None));
                };
                let encoder = self.encoder.for_level(tile.level);
                let mut candidate = if is_tree {
                    encoder.integers_alone(&heights)
                } else {
                    encoder.candidate(&heights)?
                };
                if tile.level > 0
                    && self.encoder.rate != Rate::Lossless
                    && matches!(candidate.layer, Some(Layer::Integers(_)))
                {
                    // No overview needs more than one of a file without loss.
                    let enough = self.encoder.of_lossless_overview(tile.level);
                    let enough = enough.integers_alone(&heights);
                    if enough.bytes(&heights) < candidate.bytes(&heights) {
                        candidate = enough;
                    }
                }
                let parent = parent_of(self.pyramid, tile, &above).filter(|_| is_tree);
                let place = Place::of(self.pyramid, tile)?;
                let mask = parent.map(|parent| parent.mask(&place));
                let measured = heights.measure(&candidate.heights);
                let record = candidate.record(&heights, mask.as_ref());
                let branch = is_tree.then(|| {
                    let missing = heights.missing.clone();
                    Branch::alone(Tile::of_heights(place.window, candidate.heights, missing))
                });
                Ok((CodedTile { record, measured }, branch))
            })?;
            let (coded, branches): (Vec<_>, Vec<_>) = made.into_iter().unzip();
            above = tiles.into_iter().zip(branches).collect();
            all.extend(coded);
        }
        Ok(CodedTree { tiles: all })
    }

    pub(super) fn codec(&self) -> Result<&Codec, Error> {
        FileModel::codec(self.encoder.model.as_ref())
    }

    /// The scale of a tree with a step: its heights are counted from their middle. `None` where that is too far out.
    pub(super) fn scale(source: &TreeSource, transform: Transform, step_m: f64) -> Option<Scale> {
        let (low, high) = range(source.valid());
        let offset = ((low / 2.0 + high / 2.0) / step_m).round();
        (step_m.is_normal() && step_m > 0.0 && offset.abs() < 1e12).then_some(Scale {
            transform,
            step_m,
            offset: offset as i64,
        })
    }

    /// A tree by a wavelet; `None` where its heights are beyond that.
    pub(super) fn code_plan(
        &self,
        source: &TreeSource,
        plan: &Plan,
    ) -> Result<Option<CodedTree>, Error> {
        let Some(pictures) = self.pictures(source, plan.scale)? else {
            return Ok(None);
        };
        let Some(picture) = pictures.tile(source, source.root)? else {
            return Ok(None);
        };
        let top = source.depth();
        let Some(coefficients) = Coefficients::new(&picture, plan.scale.transform) else {
            return Ok(None);
        };
        let Some(root) = source.tile_with_water(source.root, self.encoder)? else {
            return Ok(None);
        };
        let place = Place::of(self.pyramid, source.root)?;
        let (coded, branch) = self.root(&root, &coefficients, plan, &place)?;
        let mut all = vec![coded];
        let mut above = vec![(source.root, branch)];
        for depth in (0..top).rev() {
            let tiles = source.tiles(depth);
            let made = in_parallel(tiles.len(), self.jobs, &|index| {
                let tile = tiles[index];
                let parent = parent_of(self.pyramid, tile, &above);
                let picture = pictures.tile(source, tile)?;
                let (Some(heights), Some(picture), Some(parent)) =
                    (source.tile_with_water(tile, self.encoder)?, picture, parent)
                else {
                    return Ok((CodedTile::empty(), None));
                };
                // A second time: all subbands at once would take as much memory as the heights.
                let subbands = plan.scale.transform.forward(&picture);
                let beyond = || Error::NotAHeight {
                    row: heights.window.row,
                    column: heights.window.column,
                };
                let bands = subbands.ok_or_else(beyond)?.bands;
                let place = Place::of(self.pyramid, tile)?;
                self.below(&heights, &bands, plan, &place, parent)
            })?;
            let (coded, branches): (Vec<_>, Vec<_>) = made.into_iter().unzip();
            above = tiles.into_iter().zip(branches).collect();
            all.extend(coded);
        }
        Ok(Some(CodedTree { tiles: all }))
    }

    /// The coarser pictures of a tree, each made of the LL bands of the finer one's tiles. `None` where heights are beyond a
    /// wavelet.
    fn pictures(&self, source: &TreeSource, scale: Scale) -> Result<Option<Pictures>, Error> {
        let mut pictures = Pictures {
            scale,
            coarser: Vec::new(),
        };
        for depth in 0..source.depth() {
            let tiles = source.tiles(depth);
            let bands = in_parallel(tiles.len(), self.jobs, &|index| {
                let Some(picture) = pictures.tile(source, tiles[index])? else {
                    return Ok(Some(None));
                };
                let subbands = scale.transform.forward(&picture);
                Ok(subbands.map(|subbands| Some(subbands.ll)))
            })?;
            let Some(bands) = bands.into_iter().collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            let above = source.window(depth + 1);
            let mut picture = Matrix::new(above.width, above.height);
            picture.values.fill(f64::NAN);
            for (tile, ll) in tiles.iter().zip(bands) {
                let window = self.pyramid.window(*tile)?;
                if let Some(ll) = ll {
                    let (column, row) = (window.column / 2, window.row / 2);
                    picture.paste(&ll, column - above.column, row - above.row);
                }
            }
            pictures.coarser.push(picture);
        }
        Ok(Some(pictures))
    }

    /// The root of a tree, which may be its only tile.
    fn root(
        &self,
        heights: &TileHeights,
        coefficients: &Coefficients,
        plan: &Plan,
        place: &Place,
    ) -> Result<(CodedTile, Option<Branch>), Error> {
        let codec = self.codec()?;
        let finer = place.depth.into();
        let bound = plan.searched_bound().filter(|_| place.depth == 0);
        let searched = bound.and_then(|bound| {
            let values = plan.in_steps(heights)?;
            let draft = Draft::new(codec, coefficients, plan.quantiser)?;
            let (bytes, picture) =
                bounded::encode(codec, &draft, plan.quantiser, &values, bound, plan.search);
            Some((bytes?, picture))
        });
        let (bytes, picture) =
            searched.unwrap_or_else(|| codec.encode(coefficients, plan.quantiser, finer));
        let layer = |bytes| {
            Layer::Wavelet(WaveletLayer {
                is_lossless: plan.scale.transform == Transform::Lossless,
                step_m: plan.scale.step_m,
                offset: plan.scale.offset,
                bytes,
            })
        };
        let missing = heights.missing.clone();
        let branch = Branch::new(plan.scale, picture, 0, missing, place, None, true);
        if place.depth > 0 {
            let measured = heights.measure(&branch.tile.heights);
            let candidate = Candidate::of_layer(Some(layer(bytes)), Vec::new());
            let record = record_of(heights, &candidate, None);
            return Ok((CodedTile { record, measured }, Some(branch)));
        }
        let leaf = self.leaf(heights, Some(layer(bytes)), &branch, plan, None);
        Ok((leaf, None))
    }

    /// A tile below another.
    fn below(
        &self,
        heights: &TileHeights,
        bands: &[Matrix<f64>; 3],
        plan: &Plan,
        place: &Place,
        parent: &Branch,
    ) -> Result<(CodedTile, Option<Branch>), Error> {
        let codec = self.codec()?;
        let finer = place.depth.into();
        let code = |coarser: u16, quantiser: Quantiser| -> Option<(Option<Layer>, Branch)> {
            let scaled;
            let bands = if coarser == 0 {
                bands
            } else {
                let factor = 16.0 / (16.0 + f64::from(coarser));
                scaled = bands
                    .each_ref()
                    .map(|band| band.map(|value| value * factor));
                &scaled
            };
            let bound = plan.searched_bound().filter(|_| place.depth == 0);
            let values = bound.and_then(|_| plan.in_steps(heights));
            let (bytes, picture): (Option<Vec<u8>>, Picture) =
                parent.with_part(place, coarser, |part| match bound.zip(values.as_ref()) {
                    None => codec.encode_details(part, bands, quantiser, finer),
                    Some((bound, values)) => {
                        let draft = Draft::below(codec, part, bands);
                        bounded::encode(codec, &draft, quantiser, values, bound, plan.search)
                    }
                })?;
            // A step of its own must be said even where there are no details.
            let bytes = bytes.or_else(|| {
                (coarser > 0).then(|| Codec::no_details([place.window.width, place.window.height]))
            });
            let layer = bytes.map(|bytes| Layer::Details(Details { coarser, bytes }));
            let missing = heights.missing.clone();
            let branch = Branch::new(
                plan.scale,
                picture,
                coarser,
                missing,
                place,
                Some(parent),
                true,
            );
            Some((layer, branch))
        };
        let outside = || Error::TreeSize {
            expected: place.window.width,
            found: parent.tile.window.width,
        };
        let mask = parent.mask(place);
        if place.depth > 0 {
            let (layer, branch) = code(0, plan.quantiser).ok_or_else(outside)?;
            let measured = heights.measure(&branch.tile.heights);
            let candidate = Candidate::of_layer(layer, Vec::new());
            let record = record_of(heights, &candidate, Some(&mask));
            return Ok((CodedTile { record, measured }, Some(branch)));
        }
        let leaf = |coarser: u16, quantiser: Quantiser| {
            let (layer, branch) = code(coarser, quantiser)?;
            Some(self.leaf(heights, layer, &branch, plan, Some(&mask)))
        };
        let coded = match plan.leaves {
            Leaves::Free | Leaves::Within(_) => leaf(0, plan.quantiser),
            Leaves::Rmse(_) | Leaves::Bpp(_) => {
                let coded = Self::search_leaf(plan.leaves, place, plan.quantiser, leaf);
                coded.map(|coded| self.or_exact(heights, coded, &mask))
            }
        };
        Ok((coded.ok_or_else(outside)?, None))
    }
}

/// The record of a tile; `None` where it is what the tile above says.
pub(super) fn record_of(
    heights: &TileHeights,
    candidate: &Candidate,
    mask: Option<&ParentMask>,
) -> Option<CodedRecord> {
    let (width, height) = (heights.window.width, heights.window.height);
    let inherited = mask.and_then(|mask| mask.inherited(width, height));
    let adds_nothing = candidate.layer.is_none()
        && candidate.flats.is_none()
        && candidate.residual.is_none()
        && candidate.corrections.is_none();
    if adds_nothing && inherited == heights.missing {
        return None;
    }
    let empty = || {
        Layer::Details(Details {
            coarser: 0,
            bytes: Codec::no_details([width, height]),
        })
    };
    let layer = candidate.layer.clone().unwrap_or_else(empty);
    Some(candidate.coded(heights, layer, mask))
}

/// The tile above another, of those that were made.
fn parent_of<'a>(
    pyramid: &Pyramid,
    tile: LevelTile,
    above: &'a [(LevelTile, Option<Branch>)],
) -> Option<&'a Branch> {
    let parent = pyramid.parent(tile)?;
    let index = above.binary_search_by_key(&(parent.id.row, parent.id.column), |(tile, _)| {
        (tile.id.row, tile.id.column)
    });
    above[index.ok()?].1.as_ref()
}
