//! Parts that two or more methods share.

mod attention;
mod colnorm;
mod decoder;
mod dense;
mod encoder;
mod fourier;
mod grid;
mod jet;
mod norm;
mod patches;
mod setting;
mod siren;

pub use attention::Attention;
pub(crate) use attention::{attend, join_heads};
pub use colnorm::{PackedWeights, normalise_columns};
pub use decoder::{Decoder, DecoderConfig};
pub use dense::Dense;
pub(crate) use dense::linear;
pub use encoder::{Encoder, EncoderConfig};
pub use fourier::fourier_features;
pub use grid::{pixel_grid, pixel_positions};
pub use jet::Jet;
pub use norm::Norm;
pub use patches::{join_patches, split_patches};
pub use setting::{Check, SettingError};
pub(crate) use setting::{are_depths, are_sizes, divides, is_frequency, is_multiple};
pub use siren::{Modulation, Siren, SirenBias};

use burn::module::Module;
use burn::tensor::Tensor;

use crate::init::Init;

/// A normalisation followed by a dense layer, as every head of these methods is.
#[derive(Module, Debug)]
pub struct Head {
    /// The normalisation.
    pub norm: Norm,
    /// The dense layer.
    pub dense: Dense,
}

/// Applies a head that may be absent, which leaves everything as it is.
pub(crate) fn through<const D: usize>(head: Option<&Head>, x: Tensor<D>) -> Tensor<D> {
    match head {
        Some(head) => head.forward(x),
        None => x,
    }
}

impl Head {
    /// A plain dense layer after a normalisation.
    pub fn plain(inputs: usize, outputs: usize, init: &mut Init) -> Self {
        Self {
            norm: Norm::new(inputs, init),
            dense: Dense::plain(inputs, outputs, init),
        }
    }

    /// Applies the head to the last axis.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        self.dense.forward(self.norm.forward(x))
    }
}
