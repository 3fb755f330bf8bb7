//! General compressors of bytes, as TIFF has them.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::CodecError;

/// Level of zstd: the slowest that needs no more memory to decode.
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 19;

/// A general compressor at its strongest ordinary level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packer {
    /// Deflate in a zlib frame, level 9.
    Deflate,
    /// Zstandard, level 19.
    #[cfg(feature = "zstd")]
    Zstd,
}

impl Packer {
    /// All that this program was built with.
    pub(crate) const ALL: &[Self] = &[
        Self::Deflate,
        #[cfg(feature = "zstd")]
        Self::Zstd,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Deflate => "deflate",
            #[cfg(feature = "zstd")]
            Self::Zstd => "zstd",
        }
    }

    pub(crate) fn pack(self, bytes: &[u8]) -> Result<Vec<u8>, CodecError> {
        let packed = match self {
            Self::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(bytes).and_then(|()| encoder.finish())
            }
            #[cfg(feature = "zstd")]
            Self::Zstd => zstd::bulk::compress(bytes, ZSTD_LEVEL),
        };
        packed.map_err(|source| CodecError::failed(self.name(), source))
    }

    /// Unpacks so many bytes.
    pub(super) fn unpack(self, packed: &[u8], length: usize) -> Result<Vec<u8>, CodecError> {
        let unpacked = match self {
            Self::Deflate => {
                let mut bytes = vec![0; length];
                ZlibDecoder::new(packed)
                    .read_exact(&mut bytes)
                    .map(|()| bytes)
            }
            #[cfg(feature = "zstd")]
            Self::Zstd => zstd::bulk::decompress(packed, length),
        };
        unpacked.map_err(|source| CodecError::failed(self.name(), source))
    }
}
