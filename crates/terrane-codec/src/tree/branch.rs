//! A decoded tile of a tree, with what the tiles below it need.

use terrane_context::{Area, Codec, Matrix, Part, Picture, Transform};
use terrane_format::record::{Details, Layer, Record, WaveletLayer};
use terrane_format::{LevelTile, ParentMask, Pyramid, Window};

use super::overview::{Above, Axis, Extended};
use crate::Error;
use crate::model::{FileModel, ModelError};
use crate::tile::{Tile, TileDecoder, residual, round_to_f32};

/// What a tree's numbers mean in metres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    pub(crate) transform: Transform,
    pub(crate) step_m: f64,
    /// Steps that are added to all heights.
    pub(crate) offset: i64,
}

impl Scale {
    /// Of a root's layer.
    fn of(layer: &WaveletLayer) -> Self {
        Self {
            transform: if layer.is_lossless {
                Transform::Lossless
            } else {
                Transform::Lossy
            },
            step_m: layer.step_m,
            offset: layer.offset,
        }
    }

    /// Metres of a picture so many levels above the finest of its storey.
    pub(crate) fn metres(&self, values: &Matrix<i64>, depth: u8, coarser: u16) -> Vec<f64> {
        let unit = self.transform.substeps();
        if depth == 0 && coarser == 0 {
            // As exact as can be: heights that lost nothing come back as they were.
            let offset = self.offset.wrapping_mul(unit);
            let step_m = self.step_m / unit as f64;
            let heights = values.values.iter();
            return heights
                .map(|&value| value.wrapping_add(offset) as f64 * step_m)
                .collect();
        }
        let growth = self.transform.growth().powi(depth.into());
        let longer = 1.0 + f64::from(coarser) / 16.0;
        let (factor, origin_m) = (
            self.step_m * longer / (unit as f64 * growth),
            self.offset as f64 * self.step_m,
        );
        let heights = values.values.iter();
        heights
            .map(|&value| value as f64 * factor + origin_m)
            .collect()
    }
}

/// A tile's place in its tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) pyramid: &'a Pyramid,
    pub(crate) tile: LevelTile,
    pub(crate) number: u64,
    pub(crate) window: Window,
    /// Levels below it in its tree.
    pub(crate) depth: u8,
}

impl<'a> Place<'a> {
    pub(crate) fn of(pyramid: &'a Pyramid, tile: LevelTile) -> Result<Self, Error> {
        Ok(Self {
            pyramid,
            tile,
            number: pyramid.number(tile)?,
            window: pyramid.window(tile)?,
            depth: tile.level - pyramid.storey(tile.level),
        })
    }

    fn size(&self) -> [usize; 2] {
        [self.window.width, self.window.height]
    }

    /// Where in the tile above it starts.
    fn within(&self, above: &Window) -> [usize; 2] {
        [
            (self.window.column / 2).saturating_sub(above.column),
            (self.window.row / 2).saturating_sub(above.row),
        ]
    }
}

/// A tile that others may lie below.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) tile: Tile,
    /// What the details of those are details of.
    below: Option<Below>,
}

#[derive(Debug)]
struct Below {
    scale: Scale,
    picture: Picture,
    /// What lies around it, where there are overviews below it.
    extended: Option<Extended>,
}

impl Branch {
    /// A tile that no details lie below.
    pub(crate) fn alone(tile: Tile) -> Self {
        Self { tile, below: None }
    }

    /// Of a picture, at a place below another tile or at the top. One that is not shown is there for those below it
    /// alone: it has no heights.
    pub(crate) fn new(
        scale: Scale,
        picture: Picture,
        coarser: u16,
        missing: Option<Vec<bool>>,
        place: &Place,
        above: Option<&Self>,
        is_shown: bool,
    ) -> Self {
        let window = place.window;
        if place.depth > 0 && !is_shown {
            return Self {
                tile: Tile::of_heights(window, Vec::new(), missing),
                below: Some(Below {
                    scale,
                    picture,
                    extended: None,
                }),
            };
        }
        let heights = scale.metres(picture.values(), place.depth, coarser);
        if place.depth == 0 {
            return Self::alone(Tile::of_heights(window, heights, missing));
        }
        let above = above.and_then(|above| {
            let [column, row] = place.within(&above.tile.window);
            let picture = above.below.as_ref()?.extended.as_ref()?;
            Some(Above {
                picture,
                column,
                row,
            })
        });
        let axis = |is_rows: bool| {
            let above = above.as_ref().map(|above| {
                let [columns, rows] = above.picture.axes();
                if is_rows {
                    (rows, above.row)
                } else {
                    (columns, above.column)
                }
            });
            Axis::of(place.pyramid, place.tile, scale.transform, is_rows, above)
        };
        let extended = Extended::new(&heights, [axis(false), axis(true)], above);
        let shown = extended.shown(place.depth, scale.transform);
        Self {
            tile: Tile::of_heights(window, shown, missing),
            below: Some(Below {
                scale,
                picture,
                extended: (place.depth > 1).then_some(extended),
            }),
        }
    }

    /// The scale of its tree, where tiles with details may lie below it.
    pub(crate) fn scale(&self) -> Option<Scale> {
        self.below.as_ref().map(|below| below.scale)
    }

    /// Its mask, as seen from a tile below it.
    pub(crate) fn mask(&self, place: &Place) -> ParentMask<'_> {
        let [column, row] = place.within(&self.tile.window);
        ParentMask {
            missing: self.tile.missing.as_deref(),
            width: self.tile.window.width,
            column,
            row,
        }
    }

    /// Calls a function with the part of its picture that lies above a tile, in that tile's steps.
    pub(crate) fn with_part<T>(
        &self,
        place: &Place,
        coarser: u16,
        work: impl FnOnce(Part) -> T,
    ) -> Option<T> {
        let picture = &self.below.as_ref()?.picture;
        let [column, row] = place.within(&self.tile.window);
        let area = Area {
            column,
            row,
            width: place.window.width.div_ceil(2),
            height: place.window.height.div_ceil(2),
        };
        let size = picture.values();
        if area.column + area.width > size.width || area.row + area.height > size.height {
            return None;
        }
        Some(if coarser == 0 {
            work(Part { picture, area })
        } else {
            let picture = &picture.coarser(coarser);
            work(Part { picture, area })
        })
    }
}

fn malformed(reason: &'static str) -> Error {
    Error::Format(terrane_format::Error::Malformed {
        what: "tile",
        offset: 0,
        reason,
    })
}

impl TileDecoder {
    fn codec(&self) -> Result<&Codec, Error> {
        FileModel::codec(self.model.as_ref())
    }

    /// Decodes a tile of a tree below another, or its root; `None` where it has no data. A tile without a record has no
    /// details: it is what the tile above says.
    pub(crate) fn branch(
        &self,
        place: &Place,
        bytes: Option<&[u8]>,
        above: Option<&Branch>,
        is_shown: bool,
    ) -> Result<Option<Branch>, Error> {
        let mask = above.map(|above| above.mask(place));
        let Some(bytes) = bytes else {
            return match above {
                Some(above) => self.inherited(place, above, is_shown),
                None => Ok(None),
            };
        };
        let record = Record::parse(bytes, place.number, place.window, mask.as_ref())?;
        record.check_method(self.method)?;
        if record.flats.is_some() && place.depth > 0 {
            return Err(malformed("an overview has flat areas of its own"));
        }
        let (scale, picture, coarser) = match &record.layer {
            Layer::Wavelet(_) if above.is_some() => {
                return Err(malformed(
                    "a tile below another is stored as a whole picture",
                ));
            }
            Layer::Wavelet(layer) => {
                let scale = Scale::of(layer);
                let finer = place.depth.into();
                let picture =
                    self.codec()?
                        .decode(&layer.bytes, place.size(), scale.transform, finer);
                (scale, picture.map_err(ModelError::from)?, 0)
            }
            Layer::Details(details) => {
                let above = above.ok_or_else(|| malformed("details have no tile above them"))?;
                let scale = above.scale();
                let scale =
                    scale.ok_or_else(|| malformed("the tile above details is no picture"))?;
                let picture = self.details(details, place, above, scale)?;
                (scale, picture, details.coarser)
            }
            Layer::Integers(_) | Layer::Tokens(_) => {
                return Ok(Some(Branch::alone(self.decode(&record, place.window)?)));
            }
        };
        let is_lossless = scale.transform == Transform::Lossless;
        if record.corrections.is_some() && (place.depth > 0 || is_lossless) {
            return Err(malformed("corrections lie where nothing is left over"));
        }
        let mut branch = Branch::new(
            scale,
            picture,
            coarser,
            record.missing,
            place,
            above,
            is_shown,
        );
        if let Some(corrections) = &record.corrections {
            residual::correct(&mut branch.tile.heights, corrections, place.window.width);
        }
        if let Some(flats) = &record.flats {
            flats.apply(&mut branch.tile.heights);
        }
        self.round(&mut branch, scale, place);
        Ok(Some(branch))
    }

    fn details(
        &self,
        details: &Details,
        place: &Place,
        above: &Branch,
        scale: Scale,
    ) -> Result<Picture, Error> {
        let coarser = details.coarser;
        if coarser != 0 && (place.depth > 0 || scale.transform == Transform::Lossless) {
            return Err(malformed("a tile has a step of its own where none can be"));
        }
        let codec = self.codec()?;
        let finer = place.depth.into();
        let picture = above.with_part(place, coarser, |part| {
            codec.decode_details(part, &details.bytes, place.size(), finer)
        });
        let picture = picture.ok_or_else(|| malformed("it lies beside the tile above it"))?;
        Ok(picture.map_err(ModelError::from)?)
    }

    /// A tile without a record, below another.
    fn inherited(
        &self,
        place: &Place,
        above: &Branch,
        is_shown: bool,
    ) -> Result<Option<Branch>, Error> {
        let [width, height] = place.size();
        let missing = above.mask(place).inherited(width, height);
        let is_empty = missing
            .as_ref()
            .is_some_and(|missing| !missing.contains(&false));
        let Some(scale) = above.scale().filter(|_| !is_empty) else {
            return Ok(None);
        };
        let codec = self.codec()?;
        let finer = place.depth.into();
        let picture = above.with_part(place, 0, |part| codec.plain(part, place.size(), finer));
        let picture = picture.ok_or_else(|| malformed("it lies beside the tile above it"))?;
        let picture = picture.map_err(ModelError::from)?;
        let mut branch = Branch::new(scale, picture, 0, missing, place, Some(above), is_shown);
        self.round(&mut branch, scale, place);
        Ok(Some(branch))
    }

    /// Rounds heights that lost nothing to the source's floats.
    fn round(&self, branch: &mut Branch, scale: Scale, place: &Place) {
        if self.as_f32 && scale.transform == Transform::Lossless && place.depth == 0 {
            round_to_f32(&mut branch.tile.heights);
        }
    }
}
