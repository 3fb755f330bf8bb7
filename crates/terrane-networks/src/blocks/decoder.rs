//! The transformer decoder of HUVR, whose attention the authors switched off.

use burn::module::Module;
use burn::tensor::activation::gelu;
use burn::tensor::{DType, Tensor};
use serde::{Deserialize, Serialize};

use crate::blocks::{Attention, Check, Dense, Norm, are_depths, are_sizes, divides};
use crate::cost::TransformerShape;
#[cfg(feature = "libtorch")]
use crate::cuda;
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
    /// Its sizes, for what it costs.
    pub fn shape(&self) -> TransformerShape {
        TransformerShape {
            width: self.width,
            depth: self.depth,
            heads: self.attention_heads.max(1),
            hidden: self.hidden,
        }
    }

    /// Refuses sizes that no decoder can have; keys are those of a method's configuration.
    pub fn check(&self) -> Check {
        are_sizes(&[
            ("method.decoder.width", self.width),
            ("method.decoder.hidden", self.hidden),
        ])?;
        are_depths(&[("method.decoder.depth", self.depth)])?;
        if self.attention_heads == 0 {
            return Ok(());
        }
        divides(
            ("method.decoder.attention_heads", self.attention_heads),
            ("method.decoder.width", self.width),
        )
    }

    /// Floats that so many tokens take at most on their way through, all states with them.
    pub(crate) fn working_floats(&self, tokens: u128) -> u128 {
        let [width, hidden, depth] = [self.width, self.hidden, self.depth].map(|size| size as u128);
        // Attention never has all its scores at once, unless it is differentiated.
        tokens * (depth * width + 6 * width + 3 * hidden)
    }

    /// Floats that are kept of one tile until it is differentiated.
    pub(crate) fn recorded_floats(&self, tokens: u128) -> u128 {
        let [width, hidden, depth, heads] =
            [self.width, self.hidden, self.depth, self.attention_heads].map(|size| size as u128);
        let attention = if heads > 0 {
            10 * tokens * width + 3 * heads * tokens * tokens
        } else {
            0
        };
        depth * (tokens * (6 * width + 4 * hidden) + attention)
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

    /// Whether a token's state depends on other tokens.
    pub(crate) fn has_attention(&self) -> bool {
        self.layers.iter().any(|layer| layer.attention.is_some())
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
        #[cfg(feature = "libtorch")]
        if self.attention.is_none()
            && let Some(x) =
                cuda::trunk::decoder_layer(&x, &self.norm, &self.inner, &self.outer, trunk)
        {
            return x;
        }
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
