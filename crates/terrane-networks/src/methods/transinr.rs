//! TransINR (Chen and Wang, 2022): a transformer turns a tile into tokens that scale the weights of a ReLU network.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::activation::{gelu, relu};
use serde::{Deserialize, Serialize};

use crate::blocks::{
    Attention, Check, Dense, Head, Norm, PackedWeights, SettingError, are_depths, are_sizes,
    divides, fourier_features, normalise_columns,
};
use crate::init::Init;
use crate::methods::{Method, Precision};
use crate::tape::{keep, kept};

/// Side of a patch, and the margin of zeros around a tile; at 256 pixels the last five rows and columns are not seen.
const PATCH: usize = 9;
const MARGIN: usize = 1;

/// Sizes of the method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Side of a tile.
    pub side: usize,
    /// Width of a token.
    pub width: usize,
    /// Layers of the transformer.
    pub depth: usize,
    /// Heads of its attention.
    pub heads: usize,
    /// Width inside its feed-forward layers.
    pub hidden: usize,
    /// Most tokens per layer of the ReLU network.
    pub groups: usize,
    /// Layers of the ReLU network.
    pub mlp_depth: usize,
    /// Width of the ReLU network.
    pub mlp_width: usize,
    /// Frequencies per coordinate that it sees.
    pub frequencies: usize,
}

/// The network.
#[derive(Module, Debug)]
pub struct TransInr {
    /// Patches to tokens.
    pub tokenizer: Dense,
    /// Positions of the patches.
    pub positions: Param<Tensor<2>>,
    /// Tokens that become weights.
    pub weight_tokens: Param<Tensor<2>>,
    /// The transformer.
    pub layers: Vec<TransformerLayer>,
    /// Tokens to columns of weights, one head per layer of the ReLU network.
    pub heads: Vec<Head>,
    /// The weights that the columns scale.
    pub base: Vec<PackedWeights>,
    side: usize,
    groups: usize,
    /// Fourier features of the pixels.
    points: Tensor<2>,
}

/// One layer of the transformer.
#[derive(Module, Debug)]
pub struct TransformerLayer {
    /// Normalisation before the attention.
    pub attention_norm: Norm,
    /// The attention.
    pub attention: Attention,
    /// Normalisation before the feed-forward layer.
    pub norm: Norm,
    /// Into the feed-forward layer.
    pub inner: Dense,
    /// Out of it.
    pub outer: Dense,
}

impl Config {
    fn patches_across(&self) -> usize {
        (self.side + 2 * MARGIN) / PATCH
    }

    /// Inputs and outputs of every layer of the ReLU network.
    fn shapes(&self) -> Vec<(usize, usize)> {
        (0..self.mlp_depth)
            .map(|layer| {
                let inputs = if layer == 0 {
                    4 * self.frequencies
                } else {
                    self.mlp_width
                };
                (
                    inputs,
                    if layer + 1 == self.mlp_depth {
                        1
                    } else {
                        self.mlp_width
                    },
                )
            })
            .collect()
    }

    /// Refuses sizes that no network can have.
    pub fn check(&self) -> Check {
        are_sizes(&[
            ("method.side", self.side),
            ("method.width", self.width),
            ("method.heads", self.heads),
            ("method.hidden", self.hidden),
            ("method.groups", self.groups),
            ("method.mlp_width", self.mlp_width),
            ("method.frequencies", self.frequencies),
        ])?;
        are_depths(&[
            ("method.depth", self.depth),
            ("method.mlp_depth", self.mlp_depth),
        ])?;
        if self.patches_across() == 0 {
            let least = PATCH - 2 * MARGIN;
            let must = format!("be at least {least}, so that a patch fits");
            return Err(SettingError::new("method.side", must, self.side));
        }
        divides(("method.heads", self.heads), ("method.width", self.width))?;
        // A layer never has more tokens than columns.
        divides(
            ("method.groups", self.groups.min(self.mlp_width)),
            ("method.mlp_width", self.mlp_width),
        )
    }

    /// Floats that the network and the decoding of a tile take at most, beside the weights.
    pub(crate) fn working_floats(&self) -> u128 {
        let [side, width, depth, features] = [
            self.side,
            self.mlp_width,
            self.mlp_depth,
            4 * self.frequencies,
        ]
        .map(|size| size as u128);
        let widest = width.max(features);
        side * side * (16 + 3 * features / 2 + 3 * width) + 8 * widest * width + 4 * depth * widest
    }

    /// Floats that are kept of one tile until it is differentiated.
    pub(crate) fn recorded_floats(&self) -> u128 {
        let [tokens, _] = self.token_shape();
        let patches = self.patches_across().pow(2);
        let [
            side,
            tokens,
            width,
            depth,
            heads,
            hidden,
            mlp_width,
            mlp_depth,
        ] = [
            self.side,
            patches + tokens,
            self.width,
            self.depth,
            self.heads,
            self.hidden,
            self.mlp_width,
            self.mlp_depth,
        ]
        .map(|size| size as u128);
        depth * (tokens * (14 * width + 4 * hidden) + 3 * heads * tokens * tokens)
            + side * side * (4 + 3 * mlp_width * mlp_depth)
            + self.working_floats()
    }

    /// Tokens of a tile and the numbers of each.
    pub fn token_shape(&self) -> [usize; 2] {
        let tokens = self
            .shapes()
            .iter()
            .map(|&(_, outputs)| self.groups.min(outputs))
            .sum();
        [tokens, self.width]
    }

    /// A network with initial weights.
    pub fn init(&self, init: &mut Init) -> TransInr {
        let shapes = self.shapes();
        let [tokens, _] = self.token_shape();
        let width = self.width;
        TransInr {
            tokenizer: Dense::plain(PATCH * PATCH, width, init),
            positions: init.normal([self.patches_across().pow(2), width], 1.0),
            weight_tokens: init.normal([tokens, width], 1.0),
            layers: (0..self.depth)
                .map(|_| TransformerLayer {
                    attention_norm: Norm::new(width, init),
                    attention: Attention::new(width, self.heads, init),
                    norm: Norm::new(width, init),
                    inner: Dense::plain(width, self.hidden, init),
                    outer: Dense::plain(self.hidden, width, init),
                })
                .collect(),
            heads: shapes
                .iter()
                .map(|&(inputs, _)| Head::plain(width, inputs, init))
                .collect(),
            base: shapes
                .iter()
                .map(|&(inputs, outputs)| PackedWeights::new(inputs, outputs, init))
                .collect(),
            side: self.side,
            groups: self.groups,
            points: fourier_features(
                init.beside(self.side, 1),
                init.beside(self.frequencies, 1),
                init.device(),
            ),
        }
    }
}

impl TransInr {
    /// Patches `[batch, count, 81]` of the tile with its margin.
    fn patches(&self, tiles: Tensor<3>) -> Tensor<3> {
        let [batch, ..] = tiles.dims();
        let across = (self.side + 2 * MARGIN) / PATCH;
        let seen = across * PATCH;
        let tiles = tiles
            .pad((MARGIN, MARGIN, MARGIN, MARGIN), 0.0)
            .narrow(1, 0, seen)
            .narrow(2, 0, seen);
        tiles
            .reshape([batch, across, PATCH, across, PATCH])
            .swap_dims(2, 3)
            .reshape([batch, across * across, PATCH * PATCH])
    }
}

impl Method for TransInr {
    fn encode(&self, tiles: Tensor<3>, precision: Precision) -> Tensor<3> {
        let trunk = precision.trunk(tiles.dtype());
        let patches =
            self.tokenizer.forward(self.patches(tiles)) + self.positions.val().unsqueeze();
        let [batch, count, width] = patches.dims();
        let weights = self.weight_tokens.val();
        let [tokens, _] = weights.dims();
        let mut x = Tensor::cat(
            vec![
                patches,
                weights.unsqueeze::<3>().expand([batch, tokens, width]),
            ],
            1,
        );
        let stream = x.dtype();
        for layer in &self.layers {
            let attended = layer
                .attention
                .forward(layer.attention_norm.forward(x.clone()).cast(trunk));
            x = x + attended.cast(stream);
            let hidden = layer
                .inner
                .forward(layer.norm.forward(x.clone()).cast(trunk));
            keep(&hidden);
            let hidden = gelu(hidden);
            x = x + layer.outer.forward(hidden).cast(stream);
        }
        x.narrow(1, count, tokens)
    }

    fn decode(&self, tokens: Tensor<3>, _: Precision) -> Tensor<3> {
        let [batch, ..] = tokens.dims();
        let mut h: Tensor<3> = self.points.clone().cast(tokens.dtype()).unsqueeze();
        let mut first = 0;
        for (index, (head, base)) in self.heads.iter().zip(&self.base).enumerate() {
            let weight = base.weight();
            let [_, outputs] = weight.dims();
            let groups = self.groups.min(outputs);
            // Column j of the weights is scaled by token j modulo the number of tokens.
            let columns = head
                .forward(tokens.clone().narrow(1, first, groups))
                .swap_dims(1, 2);
            let columns = columns.repeat_dim(2, outputs / groups);
            first += groups;
            let weight = kept(kept(weight).unsqueeze::<3>() * kept(columns));
            let weight = kept(normalise_columns(weight));
            h = kept(h).matmul(weight) + base.bias().unsqueeze();
            if index + 1 < self.base.len() {
                h = kept(relu(h));
            }
        }
        h.reshape([batch, self.side, self.side]).add_scalar(0.5)
    }
}
