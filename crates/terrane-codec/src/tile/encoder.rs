//! Heights to a record: which codec takes a tile, and what is measured of it.

use serde::{Deserialize, Serialize};
use terrane_format::record::{CodedRecord, Layer, Record, Residual};
use terrane_format::tokens::Coding;
use terrane_format::{Corrections, Flats, LevelTile, Method, ParentMask, Pyramid, TileId, Window};

use super::decoder::{TileDecoder, alone};
use super::heights::{TileHeights, range};
use super::residual;
use crate::Error;
use crate::measured::Measured;
use crate::model::FileModel;
use crate::portable;
use crate::tree::TreeEncoder;
use crate::water;

/// What a file is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// The tokens of the method alone, whatever their error.
    Tokens,
    /// No valid pixel farther off than so many metres.
    MaxError(f64),
    /// A root mean square error of so many metres in every tile.
    Rmse(f64),
    /// So many bits per pixel in every tile.
    Bpp(f64),
    /// The context codec's step in metres in every tile, and so the least error for the bits of the whole file.
    Step(f64),
    /// Every height as it was.
    Lossless,
    /// An overview of a file with an error bound, which holds at full resolution alone: within so many metres, or what
    /// the eye and the source's own step allow where that is more.
    Overview {
        /// The bound, as much coarser as the pixels are larger; 0 where nothing may be lost at full resolution.
        bound_m: f64,
        /// The level.
        level: u8,
    },
}

/// Half a centimetre is enough for the first overview of any survey, and twice as much for the next.
const OVERVIEW_M: f64 = 0.005;
/// An overview is at least so much finer than the range of a tile.
const OVERVIEW_PARTS: f64 = 2048.0;
/// Bytes that a tile takes at the least, whatever its pixels: one whose share of a rate is below cannot reach it.
const MIN_BYTES: f64 = 64.0;
/// How far above its rate a tile may end.
const NEAR: f64 = 1.02;
/// Memory that encoding takes per pixel of a tile beside what the model sees of it, as measured.
const ENCODING_BYTES: u64 = 116;

/// A height as a 32-bit float is off by at most this part of it.
pub(crate) const FLOAT_MARGIN: f64 = 1.0 / 16_777_216.0;

/// Codes tiles with one method at one rate.
#[derive(Debug, Clone)]
pub struct TileEncoder {
    /// The method.
    pub method: Method,
    /// Its model, where it has one.
    pub model: Option<FileModel>,
    /// Bits of a token's symbol.
    pub bits: u8,
    /// How a token's symbols are stored.
    pub coding: Coding,
    /// What is to be reached.
    pub rate: Rate,
    /// Whether the source holds 32-bit floats, which a lossless file gives back as such.
    pub is_f32: bool,
    /// Metres from one height that the source can hold to the next, where it holds integers; 0 where it holds floats.
    pub source_step_m: f64,
    /// How hard the context codec tries, from 0 to 3; decoding does not depend on it.
    pub effort: u8,
}

/// A coded tile.
#[derive(Debug)]
pub struct CodedTile {
    /// Its record in a file of one tile.
    pub bytes: Vec<u8>,
    /// What comes back, measured against its heights.
    pub measured: Measured,
}

/// One way to code a tile: its symbols, and the heights that come back.
pub(crate) struct Candidate {
    /// `None` where it is what the tile above says.
    pub(crate) layer: Option<Layer>,
    pub(crate) residual: Option<Residual>,
    pub(crate) corrections: Option<Corrections>,
    /// Areas that stay flat.
    pub(crate) flats: Option<Flats>,
    pub(crate) heights: Vec<f64>,
}

impl Candidate {
    /// A layer and its residual; `heights` are those of the layer alone.
    pub(super) fn new(layer: Layer, residual: Option<Residual>, heights: Vec<f64>) -> Self {
        let mut heights = heights;
        if let Some(residual) = &residual {
            residual::add(&mut heights, residual);
        }
        Self {
            residual,
            ..Self::of_layer(Some(layer), heights)
        }
    }

    /// A layer alone, and its heights.
    pub(crate) fn of_layer(layer: Option<Layer>, heights: Vec<f64>) -> Self {
        Self {
            layer,
            residual: None,
            corrections: None,
            flats: None,
            heights,
        }
    }

    /// Its record, below a tile of a tree or by itself; `None` where it has no layer.
    pub(crate) fn record(
        &self,
        tile: &TileHeights,
        parent: Option<&ParentMask>,
    ) -> Option<CodedRecord> {
        Some(self.coded(tile, self.layer.clone()?, parent))
    }

    /// Its record with a layer.
    pub(crate) fn coded(
        &self,
        tile: &TileHeights,
        layer: Layer,
        parent: Option<&ParentMask>,
    ) -> CodedRecord {
        let record = Record {
            missing: tile.missing.clone(),
            flats: self.flats.clone(),
            layer,
            residual: self.residual.clone(),
            corrections: self.corrections.clone(),
        };
        record.code(tile.window.width, parent)
    }

    /// Bytes of its record by itself.
    pub(crate) fn bytes(&self, tile: &TileHeights) -> usize {
        self.record(tile, None).map_or(0, |record| record.len())
    }
}

impl TileEncoder {
    /// Codes the heights of a window as a file of one tile does, NaN where there is no data, and measures what comes back;
    /// `None` where there is no data at all.
    pub fn encode(&self, heights: &[f64], window: Window) -> Result<Option<CodedTile>, Error> {
        let pyramid = alone(window)?;
        let trees = TreeEncoder {
            encoder: self,
            pyramid: &pyramid,
            jobs: 1,
        };
        let id = TileId { column: 0, row: 0 };
        let water = match self.rate {
            Rate::Lossless => None,
            _ => water::find(heights, window.width, None)?,
        };
        let tree = trees.encode(LevelTile { level: 0, id }, heights.to_vec(), water)?;
        let tile = tree.tiles.into_iter().next();
        let tile = tile.filter(|tile| !tile.bytes.is_empty());
        Ok(tile.map(|tile| CodedTile {
            bytes: tile.bytes,
            measured: tile.measured,
        }))
    }

    /// What the encoding of a window of a raster reads of it: water is followed beyond the window, where something may be
    /// lost.
    pub fn reads(&self, window: Window, pyramid: &Pyramid) -> Window {
        if self.rate == Rate::Lossless {
            return window;
        }
        let (width, height) = pyramid.size(0).unwrap_or_default();
        let column = window.column.saturating_sub(water::REACH);
        let row = window.row.saturating_sub(water::REACH);
        Window {
            column,
            row,
            width: (window.column + window.width + water::REACH).min(width as usize) - column,
            height: (window.row + window.height + water::REACH).min(height as usize) - row,
        }
    }

    /// A tile by itself: by the method's codec, or as integers where that has none.
    pub(crate) fn candidate(&self, tile: &TileHeights) -> Result<Candidate, Error> {
        if let Some(height) = tile.flat() {
            // Water stays flat, at its height, at any rate.
            return Ok(self.encode_flat(tile, height));
        }
        let rate = self.rate_alone(tile);
        let coded = self.encode_layer(tile, rate)?;
        Ok(coded.unwrap_or_else(|| self.shortest_integers(tile, rate)))
    }

    /// A tile as integers.
    pub(crate) fn integers_alone(&self, tile: &TileHeights) -> Candidate {
        if let Some(height) = tile.flat() {
            return self.encode_flat(tile, height);
        }
        let rate = self.rate_alone(tile);
        self.shortest_integers(tile, rate)
    }

    /// The rate of a tile that is coded by itself.
    fn rate_alone(&self, tile: &TileHeights) -> Rate {
        match self.rate {
            Rate::Overview { bound_m, level } => {
                Rate::MaxError(self.overview_bound(&tile.heights, bound_m, level))
            }
            rate => rate,
        }
    }

    /// The rate of the trees of a storey, by its first level: an overview's error may be larger than that of full
    /// resolution, and it is no more than a few bytes anyway.
    pub(crate) fn rate_of_storey(&self, first: u8, heights: &[f64]) -> Rate {
        if first == 0 {
            return self.rate;
        }
        let factor = portable::exp2(f64::from(first) / 2.0);
        let least_m = || 2.0 * self.overview_bound(heights, 0.0, first);
        match self.rate {
            Rate::MaxError(bound) => {
                Rate::Step(2.0 * self.overview_bound(heights, bound * factor, first))
            }
            Rate::Lossless => Rate::Step(least_m()),
            // What comes near the error of a target, and no finer than overviews of a file without loss.
            Rate::Rmse(target) => Rate::Step((3.0 * target * factor).max(least_m())),
            Rate::Step(step_m) => Rate::Step((step_m * factor).max(least_m())),
            rate => rate,
        }
    }

    /// Whether a tile with a record of so many bytes reaches a rate of its own.
    pub(crate) fn is_reached(&self, bytes: usize, window: Window) -> bool {
        let Rate::Bpp(target) = self.rate else {
            return true;
        };
        let pixels = (window.width * window.height) as f64;
        bytes as f64 * 8.0 <= target * NEAR * pixels || target * pixels / 8.0 < MIN_BYTES
    }

    /// Refuses a tile that does not reach a rate of its own; `bytes` is its record.
    pub(crate) fn check_reached(&self, bytes: &[u8], window: Window) -> Result<(), Error> {
        match self.rate {
            Rate::Bpp(target) if !self.is_reached(bytes.len(), window) => Err(Error::Unreachable {
                column: window.column,
                row: window.row,
                target,
                reached: bytes.len() as f64 * 8.0 / (window.width * window.height) as f64,
            }),
            _ => Ok(()),
        }
    }

    /// How far an overview may be off.
    pub(crate) fn overview_bound(&self, heights: &[f64], bound_m: f64, level: u8) -> f64 {
        let (low, high) = range(heights.iter().copied().filter(|height| !height.is_nan()));
        let enough = OVERVIEW_M * portable::exp2(f64::from(level.saturating_sub(1)));
        bound_m
            .max(self.source_step_m / 2.0)
            .max(enough.min((high - low) / OVERVIEW_PARTS))
            // No finer than the floats that a decoded raster holds.
            .max(4.0 * FLOAT_MARGIN * low.abs().max(high.abs()))
    }

    /// What decodes its records.
    pub fn decoder(&self) -> TileDecoder {
        TileDecoder {
            method: self.method,
            model: self.model.clone(),
            as_f32: self.rate == Rate::Lossless && self.is_f32,
        }
    }

    /// Memory that the encoding of a tile takes.
    pub(crate) fn encoding_bytes(&self, side: usize) -> u64 {
        let model = self.model.as_ref();
        ENCODING_BYTES * (side * side) as u64 + model.map_or(0, |model| model.working_bytes(side))
    }

    /// The encoder of an overview of a file without loss.
    pub(crate) fn of_lossless_overview(&self, level: u8) -> Self {
        let rate = Rate::Overview {
            bound_m: 0.0,
            level,
        };
        Self {
            rate,
            ..self.clone()
        }
    }

    /// The encoder of an overview: an error bound holds for full resolution, and an overview may be as much coarser in
    /// height as its pixels are larger. Otherwise overviews take half of a file.
    #[must_use]
    pub fn for_level(&self, level: u8) -> Self {
        let factor = portable::exp2(f64::from(level));
        let rate = match self.rate {
            rate if level == 0 => rate,
            Rate::MaxError(bound) => Rate::Overview {
                bound_m: bound * factor,
                level,
            },
            Rate::Lossless => return self.of_lossless_overview(level),
            Rate::Rmse(target) => Rate::Rmse(target * factor),
            Rate::Step(step_m) => Rate::Step(step_m * factor),
            rate @ (Rate::Tokens | Rate::Bpp(_) | Rate::Overview { .. }) => rate,
        };
        Self {
            rate,
            ..self.clone()
        }
    }
}
