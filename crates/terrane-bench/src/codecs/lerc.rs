//! LERC, alone and packed again, as GDAL writes it into a TIFF.

use lerc_writer::{EncodeOptions, EncoderProfile, RasterView};

use super::codec::{Codec, Coded, Goal, OFFSET_AND_SCALE, Tile, error_m, relative_errors};
use super::{CodecError, packer::Packer};

/// LERC of 32-bit floats, and of whole steps where nothing may be lost.
pub(super) struct Lerc {
    /// What its stream is packed with.
    pub(super) packer: Option<Packer>,
}

impl Lerc {
    /// Bytes of a stream as they are stored, after they have been unpacked again.
    fn stored(&self, stream: &[u8]) -> Result<usize, CodecError> {
        let Some(packer) = self.packer else {
            return Ok(stream.len());
        };
        let packed = packer.pack(stream)?;
        if packer.unpack(&packed, stream.len())? != stream {
            return Err(CodecError::NotLossless { codec: self.name() });
        }
        Ok(packed.len())
    }
}

impl Codec for Lerc {
    fn name(&self) -> String {
        match self.packer {
            None => "LERC".to_owned(),
            Some(packer) => format!("LERC + {}", packer.name()),
        }
    }

    fn is_variant(&self) -> bool {
        self.packer != Packer::ALL.last().copied()
    }

    fn qualities(&self) -> Vec<f64> {
        relative_errors()
    }

    fn code(&self, tile: &Tile, goal: Goal) -> Result<Option<Coded>, CodecError> {
        let failed = |source| CodecError::failed(&self.name(), source);
        let side = tile.side as u32;
        let options = EncodeOptions::new().with_profile(EncoderProfile::Gdal);
        let (stream, step_m, more) = match (goal, error_m(tile, goal)) {
            (Goal::Lossless(step_m), _) => {
                let steps: Vec<i32> = tile.whole_steps(step_m).map(|step| step as i32).collect();
                let raster = RasterView::new(side, side, 1, &steps).map_err(failed)?;
                // Half a step: the way to say that integers must come back.
                let options = options.with_max_z_error(0.5);
                let stream = lerc_writer::encode(raster, None, options).map_err(failed)?;
                (stream, step_m, OFFSET_AND_SCALE)
            }
            (_, error) => {
                let raster = RasterView::new(side, side, 1, &tile.heights).map_err(failed)?;
                let options = options.with_max_z_error(error.unwrap_or(0.0));
                let stream = lerc_writer::encode(raster, None, options).map_err(failed)?;
                (stream, 1.0, 0)
            }
        };
        let bytes = self.stored(&stream)? + more;
        let decoded = lerc_reader::decode_to_f64(&stream).map_err(failed)?.pixels;
        let heights = decoded.iter().map(|value| (value * step_m) as f32);
        Ok(Some(Coded {
            bytes,
            heights: heights.collect(),
        }))
    }
}
