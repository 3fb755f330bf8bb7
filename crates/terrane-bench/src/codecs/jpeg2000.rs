//! JPEG 2000 by OpenJPEG itself, compiled from C. Its translation to Rust frees with the system's allocator what the
//! program's own has given.
#![expect(unsafe_code, reason = "a library in C")]

use std::ffi::{CString, c_char};
use std::path::Path;

use openjpeg_sys::{
    OPJ_CODEC_FORMAT, OPJ_COLOR_SPACE, opj_codec_t, opj_cparameters_t, opj_create_compress,
    opj_create_decompress, opj_decode, opj_destroy_codec, opj_dparameters_t, opj_encode,
    opj_end_compress, opj_end_decompress, opj_image_comptparm, opj_image_create, opj_image_destroy,
    opj_image_t, opj_read_header, opj_set_default_decoder_parameters,
    opj_set_default_encoder_parameters, opj_setup_decoder, opj_setup_encoder, opj_start_compress,
    opj_stream_create_default_file_stream, opj_stream_destroy, opj_stream_t,
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

/// Codes and decodes samples and makes them heights. The library reads and writes files.
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

/// Something of the library's that is given back when it goes out of use.
struct Owned<T> {
    pointer: *mut T,
    destroy: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    /// What a function of the library returned; it returns null where it cannot.
    fn new(pointer: *mut T, destroy: unsafe extern "C" fn(*mut T)) -> Result<Self, CodecError> {
        done(!pointer.is_null())?;
        Ok(Self { pointer, destroy })
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer is the library's, not null, and nothing else destroys it.
        unsafe { (self.destroy)(self.pointer) }
    }
}

fn stream(path: &Path, is_read: bool) -> Result<Owned<opj_stream_t>, CodecError> {
    let path = path.to_str().and_then(|path| CString::new(path).ok());
    let path = path.ok_or_else(refused)?;
    // SAFETY: the name ends in a zero and is only read during the call.
    let stream = unsafe {
        opj_stream_create_default_file_stream(path.as_ptr().cast::<c_char>(), is_read.into())
    };
    Owned::new(stream, opj_stream_destroy)
}

/// An image of one component that holds the samples.
fn image(samples: &[i32], side: usize) -> Result<Owned<opj_image_t>, CodecError> {
    done(samples.len() == side * side)?;
    let side = u32::try_from(side).map_err(|_| refused())?;
    let mut component = opj_image_comptparm {
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
    // SAFETY: one component is described, and one is asked for.
    let image =
        unsafe { opj_image_create(1, &raw mut component, OPJ_COLOR_SPACE::OPJ_CLRSPC_GRAY) };
    let image = Owned::new(image, opj_image_destroy)?;
    // SAFETY: the image has one component, whose data are side² numbers, as many as there are samples.
    unsafe {
        (*image.pointer).x1 = side;
        (*image.pointer).y1 = side;
        let data = (*(*image.pointer).comps).data;
        done(!data.is_null())?;
        data.copy_from_nonoverlapping(samples.as_ptr(), samples.len());
    }
    Ok(image)
}

fn encode(samples: &[i32], side: usize, wavelet: Wavelet, path: &Path) -> Result<(), CodecError> {
    let image = image(samples, side)?;
    // SAFETY: a format that the library knows.
    let engine = unsafe { opj_create_compress(OPJ_CODEC_FORMAT::OPJ_CODEC_J2K) };
    let engine: Owned<opj_codec_t> = Owned::new(engine, opj_destroy_codec)?;
    let mut parameters = parameters(wavelet);
    let stream = stream(path, false)?;
    let (engine, image, stream) = (engine.pointer, image.pointer, stream.pointer);
    // SAFETY: all are the library's own, alive until the end of this function, and used by this thread alone.
    unsafe {
        done(opj_setup_encoder(engine, &raw mut *parameters, image) != 0)?;
        done(opj_start_compress(engine, image, stream) != 0)?;
        done(opj_encode(engine, stream) != 0)?;
        done(opj_end_compress(engine, stream) != 0)
    }
}

fn parameters(wavelet: Wavelet) -> Box<opj_cparameters_t> {
    let mut parameters = Box::<opj_cparameters_t>::new_uninit();
    // SAFETY: the library fills all of it: it begins by setting every byte to zero.
    let mut parameters = unsafe {
        opj_set_default_encoder_parameters(parameters.as_mut_ptr());
        parameters.assume_init()
    };
    parameters.tcp_numlayers = 1;
    parameters.numresolution = RESOLUTIONS;
    parameters.csty = STATED_PRECINCTS;
    parameters.res_spec = RESOLUTIONS;
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
    // SAFETY: a format that the library knows.
    let engine = unsafe { opj_create_decompress(OPJ_CODEC_FORMAT::OPJ_CODEC_J2K) };
    let engine: Owned<opj_codec_t> = Owned::new(engine, opj_destroy_codec)?;
    let mut parameters = Box::<opj_dparameters_t>::new_uninit();
    // SAFETY: as above.
    let mut parameters = unsafe {
        opj_set_default_decoder_parameters(parameters.as_mut_ptr());
        parameters.assume_init()
    };
    let stream = stream(path, true)?;
    let mut image: *mut opj_image_t = std::ptr::null_mut();
    // SAFETY: engine and stream are the library's own and alive; the image is made by it and destroyed once.
    unsafe {
        done(opj_setup_decoder(engine.pointer, &raw mut *parameters) != 0)?;
        let is_read = opj_read_header(stream.pointer, engine.pointer, &raw mut image) != 0;
        let image = Owned::new(image, opj_image_destroy)?;
        done(is_read)?;
        done(opj_decode(engine.pointer, stream.pointer, image.pointer) != 0)?;
        done(opj_end_decompress(engine.pointer, stream.pointer) != 0)?;
        done((*image.pointer).numcomps == 1)?;
        let component = &*(*image.pointer).comps;
        let count = component.w as usize * component.h as usize;
        done(!component.data.is_null() && count == samples)?;
        Ok(std::slice::from_raw_parts(component.data, count).to_vec())
    }
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
