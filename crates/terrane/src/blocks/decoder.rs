//! The transformer decoder of HUVR, whose attention the authors switched off.

use burn::module::Module;
use burn::tensor::activation::gelu;
use burn::tensor::{DType, Tensor};
use serde::{Deserialize, Serialize};

use crate::blocks::{Attention, Dense, Norm, are_sizes};
use crate::init::Init;
use crate::tape::keep;

/// Sizes of the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecoderConfig {
    /// Width of a token.
    pub width: usize,
    /// Number of layers.
    pub depth: usize,
    /// Width inside a feed-forward layer.
    pub hidden: usize,
    /// Heads of the attention; 0 switches it off, as in the authors' code.
    pub attention_heads: usize,
}

impl DecoderConfig {
    /// Whether a decoder can have these sizes.
    pub fn is_sound(&self) -> bool {
        are_sizes(&[self.width, self.depth, self.hidden])
            && self.width.is_multiple_of(self.attention_heads.max(1))
    }
}

/// Tokens to states of the same shape.
#[derive(Module, Debug)]
pub struct Decoder {
    /// The layers.
    pub layers: Vec<DecoderLayer>,
}

/// One layer: attention or none, and a feed-forward layer.
#[derive(Module, Debug)]
pub struct DecoderLayer {
    /// Normalisation before the attention.
    pub attention_norm: Option<Norm>,
    /// The attention.
    pub attention: Option<Attention>,
    /// Normalisation before the feed-forward layer.
    pub norm: Norm,
    /// Into the feed-forward layer.
    pub inner: Dense,
    /// Out of it.
    pub outer: Dense,
}

impl Decoder {
    /// A decoder of the given sizes.
    pub fn new(config: &DecoderConfig, init: &mut Init) -> Self {
        let DecoderConfig {
            width,
            depth,
            hidden,
            attention_heads,
        } = *config;
        let layers = (0..depth)
            .map(|_| {
                let has_attention = attention_heads > 0;
                DecoderLayer {
                    attention_norm: has_attention.then(|| Norm::new(width, init)),
                    attention: has_attention.then(|| Attention::new(width, attention_heads, init)),
                    norm: Norm::new(width, init),
                    inner: Dense::plain(width, hidden, init),
                    outer: Dense::plain(hidden, width, init),
                }
            })
            .collect();
        Self { layers }
    }

    /// The states after every layer; `trunk` is the precision of the matrix products.
    pub fn states(&self, mut x: Tensor<3>, trunk: DType) -> Vec<Tensor<3>> {
        let mut states = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            x = layer.forward(x, trunk);
            states.push(x.clone());
        }
        states
    }
}

impl DecoderLayer {
    fn forward(&self, x: Tensor<3>, trunk: DType) -> Tensor<3> {
        let stream = x.dtype();
        let x = match (&self.attention_norm, &self.attention) {
            (Some(norm), Some(attention)) => {
                x.clone() + attention.forward(norm.forward(x).cast(trunk)).cast(stream)
            }
            // The authors' disabled attention is an identity inside the residual: it doubles the stream.
            _ => x.mul_scalar(2.0),
        };
        let hidden = self.inner.forward(self.norm.forward(x.clone()).cast(trunk));
        keep(&hidden);
        let hidden = gelu(hidden);
        x + self.outer.forward(hidden).cast(stream)
    }
}
