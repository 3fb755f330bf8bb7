//! Numbers of the TIFF tags that are read or written here.

pub(crate) const NEW_SUBFILE_TYPE: u16 = 254;
pub(crate) const IMAGE_WIDTH: u16 = 256;
pub(crate) const IMAGE_LENGTH: u16 = 257;
pub(crate) const BITS_PER_SAMPLE: u16 = 258;
pub(crate) const COMPRESSION: u16 = 259;
pub(crate) const PHOTOMETRIC: u16 = 262;
pub(crate) const SAMPLES_PER_PIXEL: u16 = 277;
pub(crate) const PLANAR_CONFIGURATION: u16 = 284;
pub(crate) const PREDICTOR: u16 = 317;
pub(crate) const TILE_WIDTH: u16 = 322;
pub(crate) const TILE_LENGTH: u16 = 323;
pub(crate) const TILE_OFFSETS: u16 = 324;
pub(crate) const TILE_BYTE_COUNTS: u16 = 325;
pub(crate) const SAMPLE_FORMAT: u16 = 339;
pub(crate) const MODEL_PIXEL_SCALE: u16 = 33550;
pub(crate) const MODEL_TIEPOINT: u16 = 33922;
pub(crate) const MODEL_TRANSFORMATION: u16 = 34264;
pub(crate) const GEO_KEY_DIRECTORY: u16 = 34735;
pub(crate) const GEO_DOUBLE_PARAMS: u16 = 34736;
pub(crate) const GEO_ASCII_PARAMS: u16 = 34737;
pub(crate) const GDAL_METADATA: u16 = 42112;
pub(crate) const GDAL_NODATA: u16 = 42113;

/// Bit of the subfile type: an overview.
pub(crate) const REDUCED: u32 = 1;
/// Bit of the subfile type: a mask.
pub(crate) const MASK: u32 = 4;
