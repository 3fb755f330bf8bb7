//! Multi-head self-attention with separate projections, as TransINR and the optional decoder attention use it.

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::module::attention;
use burn::tensor::ops::AttentionModuleOptions;

use crate::blocks::Dense;
use crate::init::Init;
use crate::tape::keep;

/// Self-attention: queries, keys and values without bias, the output with one.
#[derive(Module, Debug)]
pub struct Attention {
    /// Queries.
    pub query: Dense,
    /// Keys.
    pub key: Dense,
    /// Values.
    pub value: Dense,
    /// Output.
    pub output: Dense,
    heads: usize,
}

impl Attention {
    /// Attention of `heads` heads over vectors of `width`.
    pub fn new(width: usize, heads: usize, init: &mut Init) -> Self {
        Self {
            query: Dense::without_bias(width, width, init),
            key: Dense::without_bias(width, width, init),
            value: Dense::without_bias(width, width, init),
            output: Dense::plain(width, width, init),
            heads,
        }
    }

    /// Tokens `[batch, count, width]` to tokens of the same shape.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [query, key, value] = [&self.query, &self.key, &self.value]
            .map(|dense| split_heads(dense.forward(x.clone()), self.heads));
        self.output.forward(join_heads(attend(query, key, value)))
    }
}

/// Tokens `[batch, count, width]` to `[batch, heads, count, width / heads]`.
pub(crate) fn split_heads(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, count, width] = x.dims();
    x.reshape([batch, count, heads, width / heads])
        .swap_dims(1, 2)
}

/// The inverse of [`split_heads`].
pub(crate) fn join_heads(x: Tensor<4>) -> Tensor<3> {
    let [batch, heads, count, width] = x.dims();
    x.swap_dims(1, 2).reshape([batch, count, heads * width])
}

/// Softmax attention, scaled by the root of the head's width.
pub(crate) fn attend(query: Tensor<4>, key: Tensor<4>, value: Tensor<4>) -> Tensor<4> {
    keep(&query);
    keep(&key);
    keep(&value);
    attention(
        query,
        key,
        value,
        None,
        None,
        AttentionModuleOptions::default(),
    )
}
