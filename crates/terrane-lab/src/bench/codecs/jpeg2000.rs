//! JPEG 2000 by the Rust port of OpenJPEG, which gives the same streams as the C library.

use std::path::Path;

use openjp2::{
    Codec as Engine, OPJ_CLRSPC_GRAY, OPJ_CODEC_J2K, Stream, opj_cparameters_t, opj_dparameters_t,
    opj_image, opj_image_comptparm,
};

use super::CodecError;
use super::codec::{Codec, Coded, Goal, OFFSET_AND_SCALE, Tile};

const BITS: u32 = 16;
const MOST: f64 = 65_535.0;
/// Levels of the wavelet and one.
const RESOLUTIONS: i32 = 6;
/// Side of a precinct.
const PRECINCT: i32 = 256;
/// Flag of a stream that states its precincts.
const STATED_PRECINCTS: i32 = 1;
const BUFFER: usize = 1 << 20;

/// JPEG 2000: 9/7 with a PSNR of the 16-bit samples, 5/3 where nothing may be lost.
pub(super) struct Jpeg2000;

/// How samples are coded.
#[derive(Clone, Copy)]
enum Wavelet {
    /// 9/7 at a PSNR.
    Lossy(f32),
    /// 5/3.
    Lossless,
}

impl Codec for Jpeg2000 {
    fn name(&self) -> String {
        "JPEG 2000 (OpenJPEG)".to_owned()
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
                let wavelet = Wavelet::Lossy(psnr_db as f32);
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

/// Codes and decodes samples and makes them heights. The port reads and writes files only.
fn through(
    samples: &[i32],
    side: usize,
    wavelet: Wavelet,
    height: impl Fn(f64) -> f64,
) -> Result<Option<Coded>, CodecError> {
    let file = tempfile::NamedTempFile::new().map_err(failed)?;
    encode(samples, side, wavelet, file.path())?;
    let bytes = file.as_file().metadata().map_err(failed)?.len();
    let decoded = decode(file.path(), samples.len())?;
    let heights = decoded.iter().map(|&sample| height(sample.into()) as f32);
    Ok(Some(Coded {
        bytes: bytes as usize + OFFSET_AND_SCALE,
        heights: heights.collect(),
    }))
}

fn encode(samples: &[i32], side: usize, wavelet: Wavelet, path: &Path) -> Result<(), CodecError> {
    let side = side as u32;
    let component = opj_image_comptparm {
        dx: 1,
        dy: 1,
        w: side,
        h: side,
        x0: 0,
        y0: 0,
        prec: BITS,
        bpp: BITS,
        sgnd: 0,
    };
    let mut image = opj_image::create(&[component], OPJ_CLRSPC_GRAY).ok_or_else(refused)?;
    (image.x1, image.y1) = (side, side);
    let component = image.comps_mut().and_then(<[_]>::first_mut);
    done(component.is_some_and(|component| component.set_data(samples)))?;
    let mut engine = Engine::new_encoder(OPJ_CODEC_J2K).ok_or_else(refused)?;
    done(engine.setup_encoder(&mut parameters(wavelet), &mut image) != 0)?;
    let mut stream = Stream::new_file(path, BUFFER, false).map_err(failed)?;
    done(engine.start_compress(&mut image, &mut stream) != 0)?;
    done(engine.encode(&mut stream) != 0)?;
    done(engine.end_compress(&mut stream) != 0)?;
    stream.flush().map_err(failed)
}

fn parameters(wavelet: Wavelet) -> opj_cparameters_t {
    let mut parameters = opj_cparameters_t {
        tcp_numlayers: 1,
        numresolution: RESOLUTIONS,
        csty: STATED_PRECINCTS,
        res_spec: RESOLUTIONS,
        ..opj_cparameters_t::default()
    };
    // As the benchmark's table was made: stated at every resolution, which costs six bytes.
    for size in 0..RESOLUTIONS as usize {
        parameters.prcw_init[size] = PRECINCT;
        parameters.prch_init[size] = PRECINCT;
    }
    match wavelet {
        Wavelet::Lossy(psnr_db) => {
            parameters.irreversible = 1;
            parameters.cp_fixed_quality = 1;
            parameters.tcp_distoratio[0] = psnr_db;
        }
        Wavelet::Lossless => parameters.cp_disto_alloc = 1,
    }
    parameters
}

fn decode(path: &Path, samples: usize) -> Result<Vec<i32>, CodecError> {
    let mut engine = Engine::new_decoder(OPJ_CODEC_J2K).ok_or_else(refused)?;
    done(engine.setup_decoder(&mut opj_dparameters_t::default()) != 0)?;
    let mut stream = Stream::new_file(path, BUFFER, true).map_err(failed)?;
    let mut image = engine.read_header(&mut stream).ok_or_else(refused)?;
    done(engine.decode(&mut stream, &mut image) != 0)?;
    done(engine.end_decompress(&mut stream) != 0)?;
    let component = image.comps().and_then(<[_]>::first);
    let decoded = component.and_then(|component| component.data());
    let decoded = decoded.filter(|decoded| decoded.len() == samples);
    decoded.map(<[_]>::to_vec).ok_or_else(refused)
}

fn failed(source: std::io::Error) -> CodecError {
    CodecError::failed(&Jpeg2000.name(), source)
}

fn refused() -> CodecError {
    CodecError::Refused {
        codec: Jpeg2000.name(),
    }
}

fn done(is_done: bool) -> Result<(), CodecError> {
    if is_done { Ok(()) } else { Err(refused()) }
}
