//! Codecs that come as Python packages, by one program whose output is read here.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use terrane_train::measure::measure;

use super::codec::Tile;
use super::curve::{Curve, Errors, Point};
use super::outcome::{Absent, Bounded, Held, Lossless, Outcomes};
use super::{BOUNDS_M, CodecError, LOSSLESS_STEP_M, RATES};

/// The program, which also stands alone.
const SCRIPT: &str = include_str!("peers.py");
/// What starts the line before a codec of the program, and what ends its name.
const MARKS: [&str; 2] = ["@codec(\"", "@lossless(\""];
/// What adds the codecs that are absent.
pub(super) const ADVICE: &str = "`pip install numpy imagecodecs av` and `--python python3` add it";
const FORMAT: u32 = 1;
/// Part by which the same measure of both sides may differ.
const TOLERANCE: f64 = 1e-6;

/// What the program prints.
#[derive(Deserialize)]
struct Output {
    format: u32,
    versions: std::collections::BTreeMap<String, String>,
    check: Vec<[f64; 5]>,
    codecs: Vec<Coded>,
    lossless: Vec<Sizes>,
    absent: Vec<Absent>,
}

/// Tile, quality, bytes and measures.
type Measured = (usize, f64, usize, f64, f64, f64, f64, f64);

#[derive(Deserialize)]
struct Coded {
    name: String,
    variant: bool,
    points: Vec<Measured>,
    /// Tile, bound, bytes, RMSE and maximum error.
    bounds: Vec<(usize, f64, usize, f64, f64)>,
}

#[derive(Deserialize)]
struct Sizes {
    name: String,
    bytes: Vec<Option<usize>>,
}

/// The codecs of the program, all absent.
pub(super) fn absent() -> Vec<Absent> {
    names()
        .map(|name| Absent {
            name: name.to_owned(),
            reason: ADVICE.to_owned(),
        })
        .collect()
}

/// Names of the program's codecs, as it registers them.
fn names() -> impl Iterator<Item = &'static str> {
    SCRIPT.lines().filter_map(|line| {
        let rest = MARKS.iter().find_map(|mark| line.strip_prefix(mark))?;
        rest.split('"').next()
    })
}

/// Runs the program on tiles.
pub(super) fn run(python: &Path, tiles: &[Tile], jobs: usize) -> Result<Outcomes, CodecError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| CodecError::Write { path, source }
    };
    let folder = tempfile::tempdir().map_err(io(&std::env::temp_dir()))?;
    let (script, heights) = (
        folder.path().join("codecs.py"),
        folder.path().join("tiles.f32"),
    );
    std::fs::write(&script, SCRIPT).map_err(io(&script))?;
    let bytes: Vec<u8> = tiles
        .iter()
        .flat_map(|tile| tile.heights.iter().flat_map(|height| height.to_le_bytes()))
        .collect();
    std::fs::write(&heights, bytes).map_err(io(&heights))?;
    let output = Command::new(python)
        .arg(&script)
        .arg(&heights)
        .args(["--side", &tiles[0].side.to_string()])
        .args(["--max-rate", &RATES[RATES.len() - 1].to_string()])
        .args(["--step", &LOSSLESS_STEP_M.to_string()])
        .args(["--jobs", &jobs.to_string()])
        .arg("--bounds")
        .args(BOUNDS_M.map(|bound| bound.to_string()))
        .output()
        .map_err(|source| CodecError::Start {
            python: python.to_owned(),
            source,
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let message = said.lines().rev().find(|line| !line.trim().is_empty());
        return Err(CodecError::Python {
            python: python.to_owned(),
            message: message.unwrap_or("it said nothing").to_owned(),
        });
    }
    parse(&output.stdout, tiles)
}

/// Reads what the program printed of these tiles.
pub(super) fn parse(json: &[u8], tiles: &[Tile]) -> Result<Outcomes, CodecError> {
    let wrong = |reason: String| CodecError::Output { reason };
    let output: Output = serde_json::from_slice(json).map_err(|error| wrong(error.to_string()))?;
    if output.format != FORMAT {
        let reason = format!("its format is {}, not {FORMAT}", output.format);
        return Err(wrong(reason));
    }
    check(&output.check, tiles)?;
    let mut outcomes = Outcomes::default();
    for codec in output.codecs {
        outcomes.bounds.extend(codec.held(tiles)?);
        outcomes.curves.push(codec.curve(tiles)?);
    }
    for codec in output.lossless {
        if codec.bytes.len() != tiles.len() {
            let (name, count) = (codec.name, codec.bytes.len());
            let reason = format!("{name} has {count} lossless tiles of {}", tiles.len());
            return Err(wrong(reason));
        }
        outcomes.lossless.push(Lossless {
            codec: codec.name,
            bytes: codec.bytes,
        });
    }
    outcomes.absent = output.absent;
    outcomes.versions = output.versions.into_iter().collect();
    Ok(outcomes)
}

/// Sees that both sides measure alike: every tile against itself upside down.
fn check(theirs: &[[f64; 5]], tiles: &[Tile]) -> Result<(), CodecError> {
    if theirs.len() != tiles.len() {
        let reason = format!("it is of {} tiles, not {}", theirs.len(), tiles.len());
        return Err(CodecError::Output { reason });
    }
    for (index, (theirs, tile)) in theirs.iter().zip(tiles).enumerate() {
        let rows = tile.heights.chunks_exact(tile.side).rev();
        let upside_down: Vec<f32> = rows.flatten().copied().collect();
        let ours = measure(&tile.heights, &upside_down, tile.side, tile.side)?;
        let ours = as_array(&ours.into());
        for (theirs, ours) in theirs.iter().zip(ours) {
            // NaN is not near anything.
            let is_near = (theirs - ours).abs() <= TOLERANCE * ours.abs().max(1e-3);
            if !is_near {
                let reason =
                    format!("it measures {theirs} on tile {index} where this program has {ours}");
                return Err(CodecError::Output { reason });
            }
        }
    }
    Ok(())
}

/// In the order in which the program prints them.
fn as_array(errors: &Errors) -> [f64; 5] {
    [
        errors.psnr_db,
        errors.rmse_m,
        errors.max_error_m,
        errors.gradient_rmse_m_per_px,
        errors.laplacian_rmse_m_per_px2,
    ]
}

impl Coded {
    fn wrong(&self, what: &str) -> CodecError {
        let reason = format!("{} has {what}", self.name);
        CodecError::Output { reason }
    }

    fn curve(&self, tiles: &[Tile]) -> Result<Curve, CodecError> {
        let mut curve = Curve {
            codec: self.name.clone(),
            is_variant: self.variant,
            tiles: vec![Vec::new(); tiles.len()],
        };
        for &(tile, quality, bytes, psnr_db, rmse_m, max_error_m, gradient, laplacian) in
            &self.points
        {
            let errors = Errors {
                psnr_db,
                rmse_m,
                max_error_m,
                gradient_rmse_m_per_px: gradient,
                laplacian_rmse_m_per_px2: laplacian,
            };
            let is_number = as_array(&errors).iter().all(|value| value.is_finite());
            if bytes == 0 || !is_number {
                return Err(self.wrong("a point that is no measurement"));
            }
            let points = curve.tiles.get_mut(tile);
            let points = points.ok_or_else(|| self.wrong("a point of a tile that is not there"))?;
            points.push(Point {
                quality,
                bytes,
                bpp: tiles[tile].bpp(bytes),
                errors,
            });
        }
        Ok(curve)
    }

    /// Its tiles within every bound, where it keeps bounds.
    fn held(&self, tiles: &[Tile]) -> Result<Vec<Bounded>, CodecError> {
        let mut bounds: Vec<Bounded> = Vec::new();
        for &(tile, bound_m, bytes, rmse_m, max_error_m) in &self.bounds {
            let known = bounds.iter().position(|bounded| bounded.bound_m == bound_m);
            let known = known.unwrap_or_else(|| {
                bounds.push(Bounded {
                    codec: self.name.clone(),
                    bound_m,
                    tiles: vec![None; tiles.len()],
                });
                bounds.len() - 1
            });
            // As a number it must be within; NaN is not.
            let is_within = max_error_m <= bound_m;
            if !is_within || bytes == 0 || !rmse_m.is_finite() {
                return Err(self.wrong("a tile beyond its bound"));
            }
            let held = bounds[known].tiles.get_mut(tile);
            *held.ok_or_else(|| self.wrong("a bound of a tile that is not there"))? = Some(Held {
                bpp: tiles[tile].bpp(bytes),
                rmse_m,
                max_error_m,
            });
        }
        Ok(bounds)
    }
}
