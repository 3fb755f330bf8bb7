//! What was measured: curves, tiles within bounds, tiles without loss, and codecs that could not be run.

use serde::Deserialize;

use super::codec::{Codec, Goal, Tile, within};
use super::curve::{Curve, Point};
use super::{BOUNDS_M, CodecError, LOSSLESS_STEP_M, RATES};

/// Everything measured, codec by codec.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcomes {
    /// Rate–distortion curves.
    pub curves: Vec<Curve>,
    /// Tiles within bounds, of codecs that keep bounds.
    pub bounds: Vec<Bounded>,
    /// Tiles without loss, of codecs that have such a mode.
    pub lossless: Vec<Lossless>,
    /// Codecs that could not be run.
    pub absent: Vec<Absent>,
    /// Names and versions of what was run beside this program.
    pub versions: Vec<(String, String)>,
}

/// A codec that could not be run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Absent {
    /// Its name.
    pub name: String,
    /// Why, or what adds it.
    pub reason: String,
}

/// A codec's tiles within one bound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bounded {
    /// The codec's name.
    pub codec: String,
    /// The bound.
    pub bound_m: f64,
    /// Every tile, where the codec can keep the bound.
    pub tiles: Vec<Option<Held>>,
}

/// A tile within a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Held {
    /// Bits per pixel.
    pub bpp: f64,
    /// Root mean square error.
    pub rmse_m: f64,
    /// Maximum error.
    pub max_error_m: f64,
}

impl Bounded {
    /// Means of bits per pixel and RMSE and the maximum error; `None` where a tile is missing.
    pub(crate) fn mean(&self) -> Option<Held> {
        let held: Vec<Held> = self.tiles.iter().copied().collect::<Option<_>>()?;
        let count = held.len() as f64;
        Some(Held {
            bpp: held.iter().map(|held| held.bpp).sum::<f64>() / count,
            rmse_m: held.iter().map(|held| held.rmse_m).sum::<f64>() / count,
            max_error_m: held.iter().map(|held| held.max_error_m).fold(0.0, f64::max),
        })
    }
}

/// A codec's tiles, rounded to whole steps, without loss.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lossless {
    /// The codec's name.
    pub codec: String,
    /// Bytes of every tile that it can code.
    pub bytes: Vec<Option<usize>>,
}

impl Outcomes {
    /// Adds what was measured elsewhere.
    pub(super) fn join(&mut self, other: Self) {
        self.curves.extend(other.curves);
        self.bounds.extend(other.bounds);
        self.lossless.extend(other.lossless);
        self.absent.extend(other.absent);
        self.versions.extend(other.versions);
    }

    /// Gathers the tiles of one codec.
    pub(super) fn add(&mut self, codec: &dyn Codec, tiles: Vec<TileOutcome>) {
        for (index, bound_m) in BOUNDS_M.into_iter().enumerate() {
            let held: Vec<_> = tiles.iter().map(|tile| tile.bounds[index]).collect();
            if held.iter().any(Option::is_some) {
                self.bounds.push(Bounded {
                    codec: codec.name(),
                    bound_m,
                    tiles: held,
                });
            }
        }
        let bytes: Vec<_> = tiles.iter().map(|tile| tile.lossless).collect();
        if bytes.iter().any(Option::is_some) {
            self.lossless.push(Lossless {
                codec: codec.name(),
                bytes,
            });
        }
        self.curves.push(Curve {
            codec: codec.name(),
            is_variant: codec.is_variant(),
            tiles: tiles.into_iter().map(|tile| tile.points).collect(),
        });
    }
}

/// One tile through one codec.
pub(super) struct TileOutcome {
    points: Vec<Point>,
    bounds: [Option<Held>; BOUNDS_M.len()],
    lossless: Option<usize>,
}

impl TileOutcome {
    /// Codes a tile at every quality until the maximum rate is passed, within every bound and without loss.
    pub(super) fn of(codec: &dyn Codec, tile: &Tile) -> Result<Self, CodecError> {
        let mut points: Vec<Point> = Vec::new();
        let mut best = f64::NEG_INFINITY;
        for quality in codec.qualities() {
            let Some(coded) = codec.code(tile, Goal::Quality(quality))? else {
                continue;
            };
            let point = Point {
                quality,
                bytes: coded.bytes,
                bpp: tile.bpp(coded.bytes),
                errors: tile.measure(&coded)?.into(),
            };
            points.push(point);
            // What no point before it beats: the curve is then known up to the maximum rate.
            if point.bpp > RATES[RATES.len() - 1] && point.errors.psnr_db > best {
                break;
            }
            best = best.max(point.errors.psnr_db);
        }
        let mut bounds = [None; BOUNDS_M.len()];
        for (held, bound_m) in bounds.iter_mut().zip(BOUNDS_M) {
            let coded = within(codec, tile, bound_m)?;
            *held = coded.map(|(coded, measures)| Held {
                bpp: tile.bpp(coded.bytes),
                rmse_m: measures.rmse_m,
                max_error_m: measures.max_error_m,
            });
        }
        Ok(Self {
            points,
            bounds,
            lossless: lossless(codec, tile)?,
        })
    }
}

/// Bytes of a tile, rounded to whole steps, without loss.
fn lossless(codec: &dyn Codec, tile: &Tile) -> Result<Option<usize>, CodecError> {
    let Some(rounded) = tile.rounded(LOSSLESS_STEP_M)? else {
        return Ok(None);
    };
    let Some(coded) = codec.code(&rounded, Goal::Lossless(LOSSLESS_STEP_M))? else {
        return Ok(None);
    };
    if coded.heights != rounded.heights {
        let codec = codec.name();
        return Err(CodecError::NotLossless { codec });
    }
    Ok(Some(coded.bytes))
}
