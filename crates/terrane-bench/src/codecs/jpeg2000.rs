//! JPEG 2000, a tile as one picture.

use super::CodecError;
use super::codec::{Codec, Coded, Goal, OFFSET_AND_SCALE, Tile};
use crate::openjpeg::{Coding, Division, MOST, NAME, Picture, Wavelet, decode, encode};

/// As the benchmark's table was made: precincts that are stated, which costs six bytes.
const DIVISION: Division = Division::Precincts(256);

/// JPEG 2000: 9/7 with a PSNR of the 16-bit samples, 5/3 where nothing may be lost.
pub(super) struct Jpeg2000;

impl Codec for Jpeg2000 {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn qualities(&self) -> Vec<f64> {
        (0..27).map(|index| 34.0 + 2.5 * f64::from(index)).collect()
    }

    fn code(&self, tile: &Tile, goal: Goal) -> Result<Option<Coded>, CodecError> {
        match goal {
            Goal::Quality(psnr_db) => {
                // As they are stored.
                let (low, range) = (tile.low_m as f32, tile.range_m as f32);
                let (low, scale) = (f64::from(low), f64::from(range) / MOST);
                let sample = |&height: &f32| {
                    let sample = (f64::from(height) - low) / scale;
                    sample.round_ties_even() as i32
                };
                let samples: Vec<i32> = tile.heights.iter().map(sample).collect();
                let wavelet = Wavelet::Quality(psnr_db as f32);
                through(&samples, tile.side, wavelet, |sample| sample * scale + low)
            }
            Goal::Lossless(step_m) if tile.range_m / step_m < MOST => {
                let low = (tile.low_m / step_m).round();
                let samples = tile.whole_steps(step_m).map(|step| (step - low) as i32);
                let samples: Vec<i32> = samples.collect();
                let height = |sample| (sample + low) * step_m;
                through(&samples, tile.side, Wavelet::Lossless, height)
            }
            Goal::Lossless(_) | Goal::Bound(_) => Ok(None),
        }
    }
}

/// Codes and decodes samples and makes them heights. The library reads and writes files.
fn through(
    samples: &[i32],
    side: usize,
    wavelet: Wavelet,
    height: impl Fn(f64) -> f64,
) -> Result<Option<Coded>, CodecError> {
    let failed = |source| CodecError::failed(NAME, source);
    let file = tempfile::NamedTempFile::new().map_err(failed)?;
    let picture = Picture {
        width: side,
        height: side,
        samples,
    };
    let coding = Coding {
        wavelet,
        division: DIVISION,
    };
    encode(&picture, coding, file.path())?;
    let bytes = file.as_file().metadata().map_err(failed)?.len();
    let decoded = decode(file.path(), samples.len())?;
    let heights = decoded.iter().map(|&sample| height(sample.into()) as f32);
    Ok(Some(Coded {
        bytes: bytes as usize + OFFSET_AND_SCALE,
        heights: heights.collect(),
    }))
}
