//! A tile as bytes.

use anyhow::{Context, Result};
use terrane_geo::Derivatives;

use terrane::GroundSample;

use super::colour::{difference_colour, product_colour, relief_colour};
use super::dataset::{Dataset, Range};
use super::layer::Layer;
use super::limits::Deadline;
use super::mercator::TileId;
use super::patch::{BlockStore, Patch};
use super::picture::{Format, Picture, terrarium};
use super::warp::Place;

/// How a tile of heights shows that there is no data.
///
/// MapLibre and others read colours through a canvas, where a transparent pixel loses its colour and becomes 32768 m
/// below zero; so a height stands there unless somebody asks for transparency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Nodata {
    /// A height: the lowest of the file where none is given.
    Height(Option<f64>),
    Transparent,
}

/// What a tile is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TileRequest {
    pub(crate) layer: Layer,
    pub(crate) tile: TileId,
    /// Pixels across.
    pub(crate) side: usize,
    pub(crate) format: Format,
    pub(crate) nodata: Nodata,
}

/// Draws a tile.
pub(crate) fn render(
    dataset: &Dataset,
    store: &BlockStore,
    request: TileRequest,
    deadline: Deadline,
) -> Result<Vec<u8>> {
    let TileRequest {
        layer, tile, side, ..
    } = request;
    let (places, patch) = dataset.patch(store, tile, side, deadline)?;
    let mut picture = Picture::clear(side);
    match layer {
        Layer::Height => heights(
            &mut picture,
            dataset,
            &places,
            patch.as_ref(),
            request.nodata,
        ),
        Layer::Relief => {
            let Range {
                lowest_m,
                highest_m,
            } = dataset.range;
            let span = (highest_m - lowest_m).max(f64::MIN_POSITIVE);
            shade(
                &mut picture,
                dataset,
                &places,
                patch.as_ref(),
                |height, derivatives| {
                    relief_colour((height - lowest_m) / span, derivatives.gradient)
                },
            )?;
        }
        Layer::Product(product) => {
            let limit = dataset.limit(layer, tile.z, side);
            shade(
                &mut picture,
                dataset,
                &places,
                patch.as_ref(),
                |_, derivatives| {
                    let value = product.from_derivatives(derivatives).unwrap_or(f64::NAN);
                    product_colour(product, value, limit)
                },
            )?;
        }
        Layer::Difference => {
            let original = dataset.original.as_deref();
            let original = original.context("there is no original to compare with")?;
            let other = original.patch(store, tile, side, deadline)?;
            let limit = dataset.limit(layer, tile.z, side);
            let at = |patch: &Option<Patch>, places: &[Place], index: usize| {
                patch.as_ref()?.height(*places.get(index)?)
            };
            for index in 0..side * side {
                let pair = (at(&patch, &places, index), at(&other.1, &other.0, index));
                let difference = match pair {
                    (None, None) => continue,
                    (Some(decoded), Some(original)) => decoded - original,
                    _ => f64::NAN,
                };
                picture.set(index, difference_colour(difference, limit));
            }
        }
    }
    picture.encode(request.format)
}

fn heights(
    picture: &mut Picture,
    dataset: &Dataset,
    places: &[Place],
    patch: Option<&Patch>,
    nodata: Nodata,
) {
    let background = match nodata {
        Nodata::Transparent => None,
        Nodata::Height(height) => Some(terrarium(height.unwrap_or(dataset.range.lowest_m))),
    };
    for index in 0..picture.side * picture.side {
        let height = patch
            .zip(places.get(index))
            .and_then(|(patch, place)| patch.height(*place));
        if let Some(colour) = height.map(terrarium).or(background) {
            picture.set(index, colour);
        }
    }
}

/// Paints every pixel with data by its height and what the surface does there.
fn shade(
    picture: &mut Picture,
    dataset: &Dataset,
    places: &[Place],
    patch: Option<&Patch>,
    colour: impl Fn(f64, &Derivatives) -> [u8; 3],
) -> Result<()> {
    let Some(patch) = patch else {
        return Ok(());
    };
    for (index, &place) in places.iter().enumerate() {
        let Some(jet) = patch.jet(place) else {
            continue;
        };
        let sample = GroundSample::new(&dataset.in_map_units(jet), dataset.unit_m(place));
        picture.set(index, colour(sample.height, &sample.derivatives));
    }
    Ok(())
}
