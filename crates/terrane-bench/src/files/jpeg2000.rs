//! JPEG 2000 of a whole raster: independent tiles with their own resolutions, one quality layer, as one codestream.

use std::path::Path;

use terrane_codec::fill;

use super::source::Source;
use super::stored::{Errors, Stored};
use crate::Result;
use crate::codecs::CodecError;
use crate::openjpeg::{Coding, Division, MOST, NAME, Picture, Wavelet, decode, encode};

/// Side of a tile.
const TILE: i32 = 512;
/// Bytes of the offset and the scale that a reader needs beside the codestream.
const OFFSET_AND_SCALE: u64 = 8;
/// How much larger than asked for a file is at most that is taken for one of as many bytes.
const NEAR: f64 = 1e-3;
/// How often a file is tried.
const TRIES: usize = 24;

/// A raster as samples of 16 bits.
pub(super) struct Jpeg2000<'a> {
    source: &'a Source,
    samples: Vec<i32>,
    low_m: f64,
    step_m: f64,
}

/// What as many bytes give.
///
/// Files of the library come in steps of up to one part in a hundred, so there need not be one of as many bytes.
pub(super) struct SameSize {
    /// The next file that is not smaller; the largest where there is none.
    pub stored: Stored,
    /// How far heights are off at exactly as many bytes, between that file and the next smaller one.
    pub errors: Errors,
}

/// The two ways in which the library shares bits among tiles.
#[derive(Clone, Copy)]
enum Sharing {
    /// The same PSNR for every tile, in dB.
    Quality,
    /// The same bits per pixel for every tile, as their logarithm.
    Rate,
}

impl Sharing {
    const ALL: [Self; 2] = [Self::Quality, Self::Rate];

    fn wavelet(self, value: f64) -> Wavelet {
        match self {
            Self::Quality => Wavelet::Quality(value as f32),
            Self::Rate => Wavelet::Bpp(value.exp() as f32),
        }
    }

    /// Where a search begins.
    fn start(self, bpp: f64) -> f64 {
        match self {
            Self::Quality => 60.0 + 6.0 * bpp,
            Self::Rate => bpp.ln(),
        }
    }

    /// Its first step.
    fn step(self) -> f64 {
        match self {
            Self::Quality => 3.0,
            Self::Rate => 0.02,
        }
    }

    /// How far it goes.
    fn end(self) -> f64 {
        match self {
            Self::Quality => 140.0,
            Self::Rate => 3.0,
        }
    }

    /// Values as near as this give files between which nothing of interest lies.
    fn resolution(self) -> f64 {
        match self {
            Self::Quality => 0.01,
            Self::Rate => 0.001,
        }
    }
}

impl<'a> Jpeg2000<'a> {
    /// The range of heights on 16 bits.
    pub(super) fn new(source: &'a Source) -> Self {
        Self::of(source, source.low_m, source.range_m / MOST)
    }

    /// Steps of integers as they are; `None` where heights are not integers, or too many.
    pub(super) fn integers(source: &'a Source) -> Option<Self> {
        let storage = source.storage();
        let step_m = storage.band.scale.abs();
        let is_fit = !storage.sample.is_float() && source.range_m / step_m <= MOST;
        is_fit.then(|| Self::of(source, source.low_m, step_m))
    }

    fn of(source: &'a Source, low_m: f64, step_m: f64) -> Self {
        let mut heights = source.heights.clone();
        // There is no mask: gaps are filled with what costs least, and what would say where they are is not counted.
        fill(&mut heights, source.width());
        let sample = |height: f64| ((height - low_m) / step_m).round_ties_even() as i32;
        Self {
            source,
            samples: heights.into_iter().map(sample).collect(),
            low_m,
            step_m,
        }
    }

    /// The better of the two ways to share bits among tiles, at so many bytes.
    pub(super) fn of_bytes(&self, bytes: u64) -> Result<SameSize> {
        let [quality, rate] = Sharing::ALL.map(|sharing| self.search(sharing, bytes));
        let (quality, rate) = (quality?, rate?);
        Ok(if quality.errors.rmse_m <= rate.errors.rmse_m {
            quality
        } else {
            rate
        })
    }

    /// All samples as they are.
    pub(super) fn lossless(&self) -> Result<Stored> {
        self.through(Wavelet::Lossless)
    }

    /// The files next to so many bytes.
    fn search(&self, sharing: Sharing, bytes: u64) -> Result<SameSize> {
        let target = bytes as f64;
        let mut value = sharing.start(self.source.bpp(bytes));
        let mut step = sharing.step();
        // A value that gives too little, and one that gives enough, each with the logarithm of its part of the bytes.
        let mut below: Option<(f64, f64)> = None;
        let mut above: Option<(f64, f64)> = None;
        for _ in 0..TRIES {
            let part = (self.bytes(sharing.wavelet(value))? as f64 / target).ln();
            let place = if part < 0.0 { &mut below } else { &mut above };
            *place = Some((value, part));
            value = match (below, above) {
                (_, Some((_, part))) if part <= NEAR => break,
                (Some((low, _)), None) if low >= sharing.end() => break,
                (Some((low, _)), None) => (low + step).min(sharing.end()),
                (None, Some((high, _))) => high - step,
                (Some((low, _)), Some((high, _))) if high - low < sharing.resolution() => break,
                (Some((low, missing)), Some((high, extra))) => {
                    let part = -missing / (extra - missing);
                    low + (high - low) * part.clamp(0.1, 0.9)
                }
                (None, None) => value,
            };
            step *= 2.0;
        }
        let file =
            |(value, part)| -> Result<_> { Ok((self.through(sharing.wavelet(value))?, part)) };
        let below = below.map(file).transpose()?;
        let above = above.map(file).transpose()?;
        self.same_size(below, above)
    }

    /// What lies between two files, each with the logarithm of its part of the bytes.
    fn same_size(
        &self,
        below: Option<(Stored, f64)>,
        above: Option<(Stored, f64)>,
    ) -> Result<SameSize> {
        let errors = |stored: &Stored| stored.errors(self.source);
        match (below, above) {
            (Some((below, missing)), Some((above, extra))) if extra > NEAR => {
                let part = -missing / (extra - missing);
                Ok(SameSize {
                    errors: errors(&below).mixed(&errors(&above), part),
                    stored: above,
                })
            }
            (_, Some((stored, _))) | (Some((stored, _)), None) => Ok(SameSize {
                errors: errors(&stored),
                stored,
            }),
            (None, None) => Err(CodecError::Refused {
                codec: NAME.to_owned(),
            }
            .into()),
        }
    }

    /// Bytes of a file.
    fn bytes(&self, wavelet: Wavelet) -> Result<u64> {
        self.written(wavelet, |_, bytes| Ok(bytes))
    }

    /// A file, and what it gives back.
    fn through(&self, wavelet: Wavelet) -> Result<Stored> {
        self.written(wavelet, |path, bytes| {
            let samples = decode(path, self.samples.len())?;
            let height = |sample: i32| f64::from(sample) * self.step_m + self.low_m;
            Ok(Stored {
                bytes,
                heights: samples.into_iter().map(height).collect(),
            })
        })
    }

    fn written<T>(
        &self,
        wavelet: Wavelet,
        then: impl FnOnce(&Path, u64) -> Result<T>,
    ) -> Result<T> {
        let failed = |source| CodecError::failed(NAME, source);
        let file = tempfile::NamedTempFile::new().map_err(failed)?;
        let picture = Picture {
            width: self.source.width(),
            height: self.source.height(),
            samples: &self.samples,
        };
        let coding = Coding {
            wavelet,
            division: Division::Tiles(TILE),
        };
        encode(&picture, coding, file.path())?;
        let length = file.as_file().metadata().map_err(failed)?.len();
        then(file.path(), length + OFFSET_AND_SCALE)
    }
}
