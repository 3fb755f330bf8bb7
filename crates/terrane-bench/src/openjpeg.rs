//! OpenJPEG itself, compiled from C: one picture of 16-bit samples to a codestream in a file, and back. Its translation to
//! Rust frees with the system's allocator what the program's own has given.
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

use crate::codecs::CodecError;

/// What it is called in tables.
pub(crate) const NAME: &str = "JPEG 2000 (OpenJPEG)";
/// The greatest sample.
pub(crate) const MOST: f64 = 65_535.0;
const BITS: u32 = 16;
/// Levels of the wavelet and one.
const RESOLUTIONS: i32 = 6;
/// Flag of a stream that states its precincts.
const STATED_PRECINCTS: i32 = 1;

/// Samples from 0 to 65,535, row by row.
pub(crate) struct Picture<'a> {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// One for each pixel.
    pub samples: &'a [i32],
}

/// How a picture is coded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coding {
    /// The wavelet, and what is kept of its coefficients.
    pub wavelet: Wavelet,
    /// How the picture is divided.
    pub division: Division,
}

/// A wavelet, and what is kept of its coefficients.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wavelet {
    /// 9/7 with the same PSNR of samples in every tile.
    Quality(f32),
    /// 9/7 with the same bits per pixel in every tile.
    Bpp(f32),
    /// 5/3 with everything.
    Lossless,
}

/// How a picture is divided.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Division {
    /// One tile in precincts of a side that are stated at every resolution.
    Precincts(i32),
    /// Independent tiles of a side.
    Tiles(i32),
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
fn image(picture: &Picture) -> Result<Owned<opj_image_t>, CodecError> {
    let samples = picture.samples;
    done(picture.width.checked_mul(picture.height) == Some(samples.len()))?;
    let size = |value: usize| u32::try_from(value).map_err(|_| refused());
    let (width, height) = (size(picture.width)?, size(picture.height)?);
    let mut component = opj_image_comptparm {
        dx: 1,
        dy: 1,
        w: width,
        h: height,
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
    // SAFETY: the image has one component, whose data are as many numbers as there are samples.
    unsafe {
        (*image.pointer).x1 = width;
        (*image.pointer).y1 = height;
        let data = (*(*image.pointer).comps).data;
        done(!data.is_null())?;
        data.copy_from_nonoverlapping(samples.as_ptr(), samples.len());
    }
    Ok(image)
}

/// Writes a picture to a file.
pub(crate) fn encode(picture: &Picture, coding: Coding, path: &Path) -> Result<(), CodecError> {
    let image = image(picture)?;
    // SAFETY: a format that the library knows.
    let engine = unsafe { opj_create_compress(OPJ_CODEC_FORMAT::OPJ_CODEC_J2K) };
    let engine: Owned<opj_codec_t> = Owned::new(engine, opj_destroy_codec)?;
    let mut parameters = parameters(coding);
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

fn parameters(coding: Coding) -> Box<opj_cparameters_t> {
    let mut parameters = Box::<opj_cparameters_t>::new_uninit();
    // SAFETY: the library fills all of it: it begins by setting every byte to zero.
    let mut parameters = unsafe {
        opj_set_default_encoder_parameters(parameters.as_mut_ptr());
        parameters.assume_init()
    };
    parameters.tcp_numlayers = 1;
    parameters.numresolution = RESOLUTIONS;
    match coding.division {
        Division::Precincts(side) => {
            parameters.csty = STATED_PRECINCTS;
            parameters.res_spec = RESOLUTIONS;
            for size in 0..RESOLUTIONS as usize {
                parameters.prcw_init[size] = side;
                parameters.prch_init[size] = side;
            }
        }
        Division::Tiles(side) => {
            parameters.tile_size_on = 1;
            (parameters.cp_tdx, parameters.cp_tdy) = (side, side);
        }
    }
    match coding.wavelet {
        Wavelet::Quality(psnr_db) => {
            parameters.irreversible = 1;
            parameters.cp_fixed_quality = 1;
            parameters.tcp_distoratio[0] = psnr_db;
        }
        Wavelet::Bpp(bpp) => {
            parameters.irreversible = 1;
            parameters.cp_disto_alloc = 1;
            parameters.tcp_rates[0] = BITS as f32 / bpp;
        }
        Wavelet::Lossless => parameters.cp_disto_alloc = 1,
    }
    parameters
}

/// Reads the samples of a picture, which must be so many.
pub(crate) fn decode(path: &Path, samples: usize) -> Result<Vec<i32>, CodecError> {
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

fn refused() -> CodecError {
    CodecError::Refused {
        codec: NAME.to_owned(),
    }
}

fn done(is_done: bool) -> Result<(), CodecError> {
    if is_done { Ok(()) } else { Err(refused()) }
}
