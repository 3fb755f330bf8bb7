//! Rate–distortion of our codec against the codecs that others use, on the same tiles.
//!
//! A codec is one implementation of [`Codec`]. Every tile is coded at a row of qualities; its curve is read at fixed rates and
//! the readings are averaged over tiles. Bytes are all that a decoder needs for the tile alone.

mod bound;
mod codec;
mod cog;
mod context;
mod curve;
mod error;
#[cfg(feature = "openjpeg")]
mod jpeg2000;
mod lerc;
mod outcome;
mod packer;
mod python;
mod section;
#[cfg(feature = "zfp")]
mod zfp;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use bound::within_bound;
use codec::{Codec, Tile};
use cog::{Cog, Sample};
use context::Context;
pub(crate) use curve::{Curve, Point};
pub use error::CodecError;
use lerc::Lerc;
use outcome::TileOutcome;
use outcome::{Absent, Outcomes};
pub(crate) use packer::Packer;
use rayon::prelude::*;
use terrane_codec::Profile;
use terrane_report::Section;

/// Rates at which codecs are compared, in bits per pixel.
pub(crate) const RATES: [f64; 7] = [0.125, 0.25, 0.5, 0.82, 1.0, 2.0, 4.0];
/// Bounds within which they are compared.
pub(crate) const BOUNDS_M: [f64; 3] = [0.1, 0.05, 0.01];
/// What heights are rounded to before they are stored without loss.
pub(crate) const LOSSLESS_STEP_M: f64 = 0.01;

/// How codecs are compared.
pub(crate) struct Options<'a> {
    /// A Python with numpy, imagecodecs and av, for the codecs that come as Python packages.
    pub python: Option<PathBuf>,
    /// Curves measured elsewhere on all the tiles, such as those of trained methods.
    pub others: Vec<Curve>,
    /// Called with the number of tiles done and their total.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// What the comparison gives.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    /// The tiles that were compared.
    pub tiles: Vec<Tile>,
    /// Tiles that were left out because they are flat.
    pub flat: usize,
    /// What was measured.
    pub outcomes: Outcomes,
}

/// Compares codecs on square tiles, and presents them in tables and figures.
pub(crate) fn codecs(
    tiles: Vec<Vec<f32>>,
    side: usize,
    options: &Options,
) -> Result<(Comparison, Section), CodecError> {
    let comparison = compare(tiles, side, options)?;
    let section = section::section(&comparison);
    Ok((comparison, section))
}

fn compare(tiles: Vec<Vec<f32>>, side: usize, options: &Options) -> Result<Comparison, CodecError> {
    let checked: Vec<Option<Tile>> = tiles
        .into_iter()
        .map(|heights| Tile::new(heights, side))
        .collect::<Result<_, _>>()?;
    let is_kept: Vec<bool> = checked.iter().map(Option::is_some).collect();
    let tiles: Vec<Tile> = checked.into_iter().flatten().collect();
    let flat = is_kept.len() - tiles.len();
    if tiles.is_empty() {
        return Err(CodecError::NoTiles { flat });
    }
    let others: Vec<Curve> = options
        .others
        .iter()
        .map(|curve| curve.only(&is_kept))
        .collect::<Result<_, _>>()?;
    let (codecs, absent) = built_in();
    let mut outcomes = run(&codecs, &tiles, options.progress)?;
    outcomes.absent = absent;
    match &options.python {
        Some(python) => {
            outcomes.join(python::run(python, &tiles, rayon::current_num_threads())?);
        }
        None => outcomes.absent.extend(python::absent()),
    }
    outcomes.curves.extend(others);
    Ok(Comparison {
        tiles,
        flat,
        outcomes,
    })
}

/// Every tile through every codec, by all threads.
fn run(
    codecs: &[Box<dyn Codec>],
    tiles: &[Tile],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Outcomes, CodecError> {
    let total = codecs.len() * tiles.len();
    let done = AtomicUsize::new(0);
    let mut coded: Vec<TileOutcome> = (0..total)
        .into_par_iter()
        .map(|number| {
            let codec = &codecs[number / tiles.len()];
            let outcome = TileOutcome::of(codec.as_ref(), &tiles[number % tiles.len()]);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            outcome
        })
        .collect::<Result<_, _>>()?;
    let mut outcomes = Outcomes::default();
    for codec in codecs.iter().rev() {
        outcomes.add(codec.as_ref(), coded.split_off(coded.len() - tiles.len()));
    }
    Ok(outcomes)
}

/// The codecs that this program was built with, and those that it could be.
fn built_in() -> (Vec<Box<dyn Codec>>, Vec<Absent>) {
    let mut codecs: Vec<Box<dyn Codec>> = Vec::new();
    for profile in Profile::ALL {
        codecs.push(Box::new(Context(profile)));
    }
    codecs.push(Box::new(Lerc { packer: None }));
    for &packer in Packer::ALL {
        codecs.push(Box::new(Lerc {
            packer: Some(packer),
        }));
        for sample in [Sample::Integers, Sample::Floats] {
            codecs.push(Box::new(Cog { sample, packer }));
        }
    }
    #[cfg(feature = "openjpeg")]
    codecs.push(Box::new(jpeg2000::Jpeg2000));
    #[cfg(feature = "zfp")]
    codecs.push(Box::new(zfp::Zfp));
    let features = [
        (cfg!(feature = "openjpeg"), "JPEG 2000", "openjpeg"),
        (cfg!(feature = "zfp"), "ZFP", "zfp"),
        (cfg!(feature = "zstd"), "LERC and COG with zstd", "zstd"),
    ];
    let absent = features
        .into_iter()
        .filter(|(is_there, _, _)| !is_there)
        .map(|(_, name, feature)| Absent {
            name: name.to_owned(),
            reason: format!("build with the feature `{feature}`"),
        });
    (codecs, absent.collect())
}

#[cfg(test)]
mod tests;
