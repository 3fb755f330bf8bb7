//! All files of one raster: at rates, within bounds, and without loss.

use rayon::prelude::*;
use terrane::{Profile, Target};

use super::cog;
use super::derived::{Derived, Reference};
#[cfg(feature = "openjpeg")]
use super::jpeg2000::Jpeg2000;
use super::lerc;
use super::source::Source;
use super::stored::{Errors, Stored};
use super::{Options, terrane_file};
use crate::codecs::{CodecError, within_bound};
use crate::{Error, Result};

/// A file at a rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rated {
    /// Every byte of it.
    pub bytes: u64,
    /// Bits for each pixel with data.
    pub bpp: f64,
    /// How far its heights are off; of the other codec at exactly our bytes.
    pub errors: Errors,
    /// What is derived from its heights.
    pub derived: Derived,
}

/// Our file at a rate, and that of JPEG 2000 of the same bytes.
#[derive(Debug)]
pub(super) struct RateOutcome {
    /// The raster.
    pub raster: String,
    /// Which of our models.
    pub profile: Profile,
    /// The rate that was asked for.
    pub asked_bpp: f64,
    /// Our file.
    pub ours: Rated,
    /// That of JPEG 2000, where this program has it.
    pub theirs: Option<Rated>,
}

impl RateOutcome {
    /// How much better ours is, in dB; NaN where there is nothing to compare with, or both lose nothing.
    pub(super) fn gain_db(&self) -> f64 {
        let theirs = self.theirs.map_or(f64::NAN, |theirs| theirs.errors.psnr_db);
        self.ours.errors.psnr_db - theirs
    }
}

/// A file within a bound.
#[derive(Debug)]
pub(super) struct SizeOutcome {
    /// The raster.
    pub raster: String,
    /// The bound; `None` without loss.
    pub bound_m: Option<f64>,
    /// What wrote it.
    pub codec: String,
    /// Every byte of it.
    pub bytes: u64,
    /// Bits for each pixel with data.
    pub bpp: f64,
    /// How far its heights are off.
    pub errors: Errors,
}

/// What one raster gives.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Files at rates.
    pub rates: Vec<RateOutcome>,
    /// Rates that no file of ours is as small as: the raster, which of our models, and the rate.
    pub unreached: Vec<(String, Profile, f64)>,
    /// Files within bounds.
    pub sizes: Vec<SizeOutcome>,
}

impl Outcome {
    /// Adds what others give.
    pub(super) fn join(&mut self, other: Self) {
        self.rates.extend(other.rates);
        self.unreached.extend(other.unreached);
        self.sizes.extend(other.sizes);
    }
}

/// A file to make.
enum Task {
    Rate(Profile, f64),
    Size(Codec, Option<f64>),
}

/// What is compared within bounds.
#[derive(Clone, Copy)]
enum Codec {
    Terrane(Profile),
    Lerc,
    Cog(cog::Sample),
    #[cfg(feature = "openjpeg")]
    Jpeg2000,
}

impl Codec {
    /// What its files are called in tables.
    fn name(self, bound_m: Option<f64>) -> String {
        match self {
            Self::Terrane(profile) => terrane_file::name(profile),
            Self::Lerc => lerc::name(),
            Self::Cog(_) if bound_m.is_none() => cog::LOSSLESS.to_owned(),
            Self::Cog(sample) => sample.name().to_owned(),
            #[cfg(feature = "openjpeg")]
            Self::Jpeg2000 => crate::openjpeg::NAME.to_owned(),
        }
    }

    /// Its file; `None` where it has none of the kind.
    fn file(
        self,
        source: &Source,
        bound_m: Option<f64>,
        options: &Options,
    ) -> Result<Option<Stored>> {
        let Some(bound_m) = bound_m else {
            return match self {
                Self::Terrane(profile) => {
                    terrane_file::through(source, profile, Target::Lossless, options.resources)
                }
                Self::Lerc => lerc::through(source, 0.0).map(Some),
                Self::Cog(_) => cog::lossless(source).map(Some),
                #[cfg(feature = "openjpeg")]
                Self::Jpeg2000 => Jpeg2000::integers(source)
                    .map(|samples| samples.lossless())
                    .transpose(),
            };
        };
        let write = |level_m: f64| match self {
            Self::Terrane(profile) => {
                let target = Target::MaxError(level_m);
                terrane_file::through(source, profile, target, options.resources)
            }
            Self::Lerc => lerc::through(source, level_m).map(Some),
            Self::Cog(sample) => sample.rounded(source, 2.0 * level_m).map(Some),
            #[cfg(feature = "openjpeg")]
            Self::Jpeg2000 => Ok(None),
        };
        if let Self::Terrane(_) = self {
            // It guarantees its bound, and gets no second try.
            return write(bound_m);
        }
        within_bound(bound_m, |level_m| {
            let stored = write(level_m)?;
            Ok(stored.map(|stored| (stored.errors(source).max_error_m, stored)))
        })
    }
}

/// Makes and reads all files of a raster.
pub(super) fn measure(source: &Source, options: &Options) -> Result<Outcome> {
    let reference = Reference::of(source);
    let mut outcome = Outcome::default();
    let made: Vec<Outcome> = tasks(options)
        .into_par_iter()
        .map(|task| {
            let mut made = Outcome::default();
            match task {
                Task::Rate(profile, bpp) => {
                    match rate(&reference, source, profile, bpp, options)? {
                        Some(outcome) => made.rates.push(outcome),
                        None => made.unreached.push((source.name.clone(), profile, bpp)),
                    }
                }
                Task::Size(codec, bound_m) => {
                    made.sizes.extend(size(source, codec, bound_m, options)?);
                }
            }
            Ok(made)
        })
        .collect::<Result<_>>()?;
    for made in made {
        outcome.join(made);
    }
    Ok(outcome)
}

fn tasks(options: &Options) -> Vec<Task> {
    let mut tasks = Vec::new();
    for &profile in &options.profiles {
        tasks.extend(options.rates.iter().map(|&bpp| Task::Rate(profile, bpp)));
    }
    let bounds = options.bounds_m.iter().map(|&bound_m| Some(bound_m));
    for bound_m in bounds.chain([None]) {
        let ours = options
            .profiles
            .iter()
            .map(|&profile| Codec::Terrane(profile));
        tasks.extend(ours.map(|codec| Task::Size(codec, bound_m)));
        tasks.push(Task::Size(Codec::Lerc, bound_m));
        if bound_m.is_some() {
            let cogs = cog::Sample::ALL.map(Codec::Cog);
            tasks.extend(cogs.map(|codec| Task::Size(codec, bound_m)));
        } else {
            tasks.push(Task::Size(Codec::Cog(cog::Sample::Floats), None));
            #[cfg(feature = "openjpeg")]
            tasks.push(Task::Size(Codec::Jpeg2000, None));
        }
    }
    tasks
}

fn rate(
    reference: &Reference,
    source: &Source,
    profile: Profile,
    asked_bpp: f64,
    options: &Options,
) -> Result<Option<RateOutcome>> {
    let target = Target::Bpp(asked_bpp);
    let Some(ours) = terrane_file::through(source, profile, target, options.resources)? else {
        return Ok(None);
    };
    let rated = |stored: &Stored, errors: Errors| Rated {
        bytes: stored.bytes,
        bpp: source.bpp(stored.bytes),
        errors,
        derived: reference.compare(&stored.heights),
    };
    #[cfg(feature = "openjpeg")]
    let theirs = {
        let same = Jpeg2000::new(source).of_bytes(ours.bytes)?;
        Some(rated(&same.stored, same.errors))
    };
    #[cfg(not(feature = "openjpeg"))]
    let theirs = None;
    Ok(Some(RateOutcome {
        raster: source.name.clone(),
        profile,
        asked_bpp,
        ours: rated(&ours, ours.errors(source)),
        theirs,
    }))
}

fn size(
    source: &Source,
    codec: Codec,
    bound_m: Option<f64>,
    options: &Options,
) -> Result<Option<SizeOutcome>> {
    let Some(stored) = codec.file(source, bound_m, options)? else {
        return Ok(None);
    };
    let errors = stored.errors(source);
    let name = codec.name(bound_m);
    match bound_m {
        None if errors.max_error_m > 0.0 => {
            return Err(CodecError::NotLossless { codec: name }.into());
        }
        Some(bound_m) if errors.max_error_m > bound_m => {
            return Err(Error::BoundExceeded {
                raster: source.name.clone(),
                codec: name,
                bound_m,
                max_error_m: errors.max_error_m,
            });
        }
        _ => {}
    }
    Ok(Some(SizeOutcome {
        raster: source.name.clone(),
        bound_m,
        codec: name,
        bytes: stored.bytes,
        bpp: source.bpp(stored.bytes),
        errors,
    }))
}
