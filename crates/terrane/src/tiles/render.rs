//! A tile as a picture.

use terrane_geo::Derivatives;

use super::colour::{change_colour, difference_colour, product_colour, relief_colour};
use super::error::Result;
use super::patch::Patch;
use super::warp::PixelPosition;
use super::{Deadline, HeightCode, HeightRange, Layer, MapTile, MapTiles, Picture, TileError};

/// How a tile of heights shows that there is no data.
///
/// MapLibre and others read colours through a canvas, where a transparent pixel loses its colour and becomes 32768 m
/// below zero; so a height stands there unless somebody asks for transparency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Nodata {
    /// A height: the lowest of the file where none is given.
    Height(Option<f64>),
    /// Nothing.
    Transparent,
}

/// What a tile is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TileRequest {
    /// What it shows.
    pub layer: Layer,
    /// What it covers.
    pub tile: MapTile,
    /// Pixels across.
    pub side: usize,
    /// How heights show that there is no data.
    pub nodata: Nodata,
    /// How heights become colours.
    pub code: HeightCode,
}

impl TileRequest {
    /// A tile of 256 pixels.
    pub fn new(layer: Layer, tile: MapTile) -> Self {
        Self {
            layer,
            tile,
            side: Self::SIDE,
            nodata: Nodata::Height(None),
            code: HeightCode::default(),
        }
    }

    /// Pixels across a tile of the default size.
    pub const SIDE: usize = 256;
}

impl MapTiles {
    /// Draws a tile.
    pub fn tile(&self, request: TileRequest, deadline: Deadline) -> Result<Picture> {
        let TileRequest {
            layer, tile, side, ..
        } = request;
        let mut picture = Picture::clear(side);
        if layer == Layer::Change {
            let limit = self.limit(layer, tile.z, side);
            let changes = self.changes(tile, side, deadline)?;
            for (index, change) in changes.into_iter().enumerate() {
                if !change.is_nan() {
                    picture.set(index, change_colour(change, limit));
                }
            }
            return Ok(picture);
        }
        let (positions, patch) = self.patch(tile, side, deadline)?;
        match layer {
            Layer::Height => {
                self.heights(&mut picture, &positions, patch.as_ref(), request);
            }
            Layer::Relief => {
                let HeightRange {
                    lowest_m,
                    highest_m,
                } = self.range();
                let span = (highest_m - lowest_m).max(f64::MIN_POSITIVE);
                self.shade(
                    &mut picture,
                    &positions,
                    patch.as_ref(),
                    |height, derivatives| {
                        relief_colour((height - lowest_m) / span, derivatives.gradient)
                    },
                );
            }
            Layer::Product(product) => {
                let limit = self.limit(layer, tile.z, side);
                self.shade(
                    &mut picture,
                    &positions,
                    patch.as_ref(),
                    |_, derivatives| {
                        let value = product.from_derivatives(derivatives).unwrap_or(f64::NAN);
                        product_colour(product, value, limit)
                    },
                );
            }
            Layer::Difference => {
                let original = self.original().ok_or(TileError::NoOriginal)?;
                let other = original.patch(tile, side, deadline)?;
                let limit = self.limit(layer, tile.z, side);
                let at = |patch: &Option<Patch>, positions: &[PixelPosition], index: usize| {
                    patch.as_ref()?.height(*positions.get(index)?)
                };
                for index in 0..side * side {
                    let pair = (at(&patch, &positions, index), at(&other.1, &other.0, index));
                    let difference = match pair {
                        (None, None) => continue,
                        (Some(decoded), Some(original)) => decoded - original,
                        _ => f64::NAN,
                    };
                    picture.set(index, difference_colour(difference, limit));
                }
            }
            Layer::Change => {}
        }
        Ok(picture)
    }

    fn heights(
        &self,
        picture: &mut Picture,
        positions: &[PixelPosition],
        patch: Option<&Patch>,
        request: TileRequest,
    ) {
        let colour = |height: f64| request.code.colour(height);
        let background = match request.nodata {
            Nodata::Transparent => None,
            Nodata::Height(height) => Some(colour(height.unwrap_or(self.range().lowest_m))),
        };
        for index in 0..picture.side * picture.side {
            let height = patch
                .zip(positions.get(index))
                .and_then(|(patch, position)| patch.height(*position));
            if let Some(colour) = height.map(colour).or(background) {
                picture.set(index, colour);
            }
        }
    }

    /// Paints every pixel with data by its height and the derivatives of the surface there.
    fn shade(
        &self,
        picture: &mut Picture,
        positions: &[PixelPosition],
        patch: Option<&Patch>,
        colour: impl Fn(f64, &Derivatives) -> [u8; 3],
    ) {
        let Some(patch) = patch else {
            return;
        };
        for (index, &position) in positions.iter().enumerate() {
            if let Some(sample) = self.ground(patch, position) {
                picture.set(index, colour(sample.height, &sample.derivatives));
            }
        }
    }
}
