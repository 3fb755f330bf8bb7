//! ZFP with a maximum error.

use zfp_rs::{ZfpBitStream, ZfpConfig, ZfpField, ZfpFieldMut, ZfpHeaderMask, ZfpScalarType};

use super::CodecError;
use super::codec::{Codec, Coded, Goal, Tile, error_m, geometric};

/// Bytes of the height that was taken off all others.
const OFFSET: usize = 4;

/// ZFP of 32-bit floats around their mean; its errors stay well below its bound.
pub(super) struct Zfp;

impl Codec for Zfp {
    fn name(&self) -> String {
        "ZFP".to_owned()
    }

    fn qualities(&self) -> Vec<f64> {
        geometric(2.0, 1e-4, 22)
    }

    fn code(&self, tile: &Tile, goal: Goal) -> Result<Option<Coded>, CodecError> {
        let Some(error) = error_m(tile, goal) else {
            return Ok(None);
        };
        let sum: f64 = tile.heights.iter().map(|&height| f64::from(height)).sum();
        let mean = f64::from((sum / tile.heights.len() as f64) as f32);
        let values: Vec<f32> = tile
            .heights
            .iter()
            .map(|&height| (f64::from(height) - mean) as f32)
            .collect();
        let (bytes, decoded) = through(&values, tile.side, error)?;
        let heights = decoded
            .iter()
            .map(|&value| (f64::from(value) + mean) as f32);
        Ok(Some(Coded {
            bytes: bytes + OFFSET,
            heights: heights.collect(),
        }))
    }
}

fn failed(source: impl std::error::Error + Send + Sync + 'static) -> CodecError {
    CodecError::failed("ZFP", source)
}

/// Bytes of a stream with its head, and what comes out of it.
fn through(values: &[f32], side: usize, error: f64) -> Result<(usize, Vec<f32>), CodecError> {
    let size = [side, side];
    let config = ZfpConfig::fixed_accuracy(error);
    let field = ZfpField::new(values, size).map_err(failed)?;
    // A block that does not shrink grows by its own head; the largest size that the crate states may not be enough.
    let capacity = config.maximum_size(ZfpScalarType::F32, field.dims());
    let mut stream =
        ZfpBitStream::new(capacity.unwrap_or(values.len() * 8 + 64)).map_err(failed)?;
    stream
        .write_header(&config, &field.metadata(), ZfpHeaderMask::FULL)
        .map_err(failed)?;
    stream.compress(&config, &field).map_err(failed)?;
    let bytes = stream.as_bytes().len();
    stream.rewind();
    stream.read_header(ZfpHeaderMask::FULL).map_err(failed)?;
    let mut decoded = vec![0.0_f32; values.len()];
    let mut field = ZfpFieldMut::new(&mut decoded, size).map_err(failed)?;
    stream.decompress(&config, &mut field).map_err(failed)?;
    Ok((bytes, decoded))
}
