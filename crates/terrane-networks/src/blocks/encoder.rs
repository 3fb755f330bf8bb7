//! The encoder of HUVR: a vision transformer with rotary positions and SwiGLU layers that normalise inside.

use burn::module::{Module, Param};
use burn::tensor::activation::sigmoid;
use burn::tensor::{DType, Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::blocks::attention::{attend, join_heads};
use crate::blocks::{Check, Dense, Norm, are_depths, are_sizes, is_multiple, linear};
use crate::cost::TransformerShape;
use crate::init::Init;
use crate::tape::keep;
#[cfg(feature = "libtorch")]
use crate::{cuda, libtorch};

/// Deviation of the initial weights.
const DEVIATION: f64 = 0.02;
/// The base of the rotary frequencies.
const ROTARY_BASE: f64 = 10_000.0;

/// Sizes of the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderConfig {
    /// Width of a token.
    pub width: usize,
    /// Number of blocks.
    pub depth: usize,
    /// Heads of the attention; each must be a multiple of 4 wide.
    pub heads: usize,
}

/// Width inside a gated feed-forward layer.
fn hidden_width(width: usize) -> usize {
    width * 8 / 3
}

impl EncoderConfig {
    /// Its sizes, for what it costs.
    pub fn shape(&self) -> TransformerShape {
        TransformerShape {
            width: self.width,
            depth: self.depth,
            heads: self.heads,
            hidden: hidden_width(self.width),
        }
    }

    /// Refuses sizes that no encoder can have; keys are those of a method's configuration.
    pub fn check(&self) -> Check {
        are_sizes(&[("method.encoder.width", self.width)])?;
        are_depths(&[("method.encoder.depth", self.depth)])?;
        are_sizes(&[("method.encoder.heads", self.heads)])?;
        // Half of a head turns with the row and half with the column, in pairs.
        is_multiple(
            ("method.encoder.width", self.width),
            4 * self.heads,
            "4 times method.encoder.heads",
        )
    }

    /// Floats that are kept for an encoder of so many tokens, beside its weights.
    pub(crate) fn table_floats(&self, tokens: u128) -> u128 {
        let head = (self.width / self.heads) as u128;
        // The angles are 64 bits wide while the tables are made.
        4 * tokens * head + 2 * head * head
    }

    /// Floats that are kept of one tile until it is differentiated.
    pub(crate) fn recorded_floats(&self, tokens: u128, features: u128) -> u128 {
        let [width, depth, heads] = [self.width, self.depth, self.heads].map(|size| size as u128);
        let hidden = hidden_width(self.width) as u128;
        tokens * 2 * features
            + depth * (tokens * (22 * width + 7 * hidden) + 3 * heads * tokens * tokens)
    }
}

/// Patches `[batch, patches, features]` to tokens `[batch, 1 + patches, width]`, the first one for the whole tile.
#[derive(Module, Debug)]
pub struct Encoder {
    /// Patches to tokens.
    pub embed: Dense,
    /// The token of the whole tile.
    pub class_token: Param<Tensor<3>>,
    /// The blocks.
    pub blocks: Vec<EncoderBlock>,
    /// The last normalisation.
    pub norm: Norm,
    rotary: Rotary,
}

impl Encoder {
    /// An encoder of `across` × `across` patches of `features` numbers.
    pub fn new(config: &EncoderConfig, across: usize, features: usize, init: &mut Init) -> Self {
        let EncoderConfig {
            width,
            depth,
            heads,
        } = *config;
        let embed = Dense {
            weight: init.uniform([features, width], (6.0 / (features + width) as f64).sqrt()),
            bias: Some(init.uniform([width], 1.0 / (features as f64).sqrt())),
        };
        Self {
            embed,
            class_token: init.normal([1, 1, width], DEVIATION),
            blocks: (1..=depth)
                .map(|layer| EncoderBlock::new(width, heads, layer, init))
                .collect(),
            norm: Norm::new(width, init),
            rotary: Rotary::new(
                init.beside(across, 1),
                init.beside(width / heads, 4),
                init.device(),
            ),
        }
    }

    /// Encodes patches; `trunk` is the precision of the matrix products.
    pub fn forward(&self, patches: Tensor<3>, trunk: DType) -> Tensor<3> {
        let x = self.embed.forward(patches);
        let [batch, _, width] = x.dims();
        let class_token = self.class_token.val().expand([batch, 1, width]);
        let mut x = Tensor::cat(vec![class_token, x], 1);
        for block in &self.blocks {
            x = block.forward(x, &self.rotary, trunk);
        }
        self.norm.forward(x)
    }
}

/// One block: attention and a SwiGLU layer, each on a normalised residual stream.
#[derive(Module, Debug)]
pub struct EncoderBlock {
    /// Normalisation before the attention.
    pub norm1: Norm,
    /// Queries, keys and values in one layer.
    pub qkv: Dense,
    /// Output of the attention.
    pub proj: Dense,
    /// Normalisation before the SwiGLU layer.
    pub norm2: Norm,
    /// The gate.
    pub w1: Dense,
    /// What the gate lets through.
    pub w2: Dense,
    /// Normalisation inside the SwiGLU layer.
    pub inner_norm: Norm,
    /// Output of the SwiGLU layer.
    pub w3: Dense,
    heads: usize,
}

impl EncoderBlock {
    fn new(width: usize, heads: usize, layer: usize, init: &mut Init) -> Self {
        let hidden = hidden_width(width);
        // Outputs are damped with depth, so that the sum of all blocks starts small.
        let damped = DEVIATION / ((2 * layer) as f64).sqrt();
        Self {
            norm1: Norm::new(width, init),
            qkv: Dense::normal(width, 3 * width, DEVIATION, init),
            proj: Dense::normal(width, width, damped, init),
            norm2: Norm::new(width, init),
            w1: Dense::normal(width, hidden, DEVIATION, init),
            w2: Dense::normal(width, hidden, DEVIATION, init),
            inner_norm: Norm::new(hidden, init),
            w3: Dense::normal(hidden, width, damped, init),
            heads,
        }
    }

    fn forward(&self, x: Tensor<3>, rotary: &Rotary, trunk: DType) -> Tensor<3> {
        #[cfg(feature = "libtorch")]
        if let Some(x) = cuda::trunk::encoder_block(&x, &self.layers(), &rotary.turns(), trunk) {
            return x;
        }
        let stream = x.dtype();
        let [batch, count, width] = x.dims();
        let heads = self.heads;
        let qkv = self
            .qkv
            .forward(self.norm1.forward(x.clone()).cast(trunk))
            .reshape([batch, count, 3 * heads, width / heads]);
        let [turning, values] = split(qkv, 2 * heads, 2);
        let [queries, keys] = split(rotary.turn(turning), heads, 2);
        let [queries, keys, values] = [queries, keys, values].map(|part| part.swap_dims(1, 2));
        let attended = attend(queries, keys, values);
        let x = x + self.proj.forward(join_heads(attended)).cast(stream);

        let normed = self.norm2.forward(x.clone()).cast(trunk);
        let gate = silu(self.w1.forward(normed.clone()));
        let through = self.w2.forward(normed);
        keep(&gate);
        keep(&through);
        let gated = gate * through;
        x + self
            .w3
            .forward(self.inner_norm.forward(gated).cast(trunk))
            .cast(stream)
    }
}

#[cfg(feature = "libtorch")]
impl EncoderBlock {
    fn layers(&self) -> cuda::trunk::BlockLayers<'_> {
        cuda::trunk::BlockLayers {
            norm1: &self.norm1,
            qkv: &self.qkv,
            proj: &self.proj,
            norm2: &self.norm2,
            w1: &self.w1,
            w2: &self.w2,
            inner_norm: &self.inner_norm,
            w3: &self.w3,
            heads: self.heads,
        }
    }
}

/// `x · sigmoid(x)`.
fn silu(x: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "libtorch")]
    if let Some(y) = libtorch::silu(&x) {
        return y;
    }
    keep(&x);
    let openness = sigmoid(x.clone());
    keep(&openness);
    x * openness
}

/// The first `count` along an axis, and the rest.
fn split(x: Tensor<4>, count: usize, axis: usize) -> [Tensor<4>; 2] {
    #[cfg(feature = "libtorch")]
    if let Some(parts) = libtorch::split(&x, count, axis) {
        parts.iter().for_each(keep);
        return parts;
    }
    let rest = x.dims()[axis] - count;
    [
        x.clone().narrow(axis, 0, count),
        x.narrow(axis, count, rest),
    ]
}

/// Rotary positions: pairs of neighbouring numbers turn with the row in one half of a head, with the column in the other.
#[derive(Module, Debug)]
struct Rotary {
    cosines: Tensor<4>,
    sines: Tensor<4>,
    /// Exchanges the two numbers of each pair and turns the sign of the first: a product is one step on any device.
    quarter_turn: Tensor<2>,
}

impl Rotary {
    fn new(across: usize, width: usize, device: &Device) -> Self {
        let half = width / 2;
        let frequency = |pair: usize| ROTARY_BASE.powf(-2.0 * pair as f64 / half as f64);
        // The token of the whole tile comes first and does not turn.
        let mut angles = vec![0.0; width];
        for row in 0..across {
            for column in 0..across {
                for index in 0..width {
                    let position = if index < half { row } else { column };
                    angles.push(position as f64 * frequency(index % half / 2));
                }
            }
        }
        let table = |function: fn(f64) -> f64| {
            let values: Vec<f32> = angles.iter().map(|&angle| function(angle) as f32).collect();
            Tensor::from_data(
                TensorData::new(values, [1, 1 + across * across, 1, width]),
                device,
            )
        };
        let mut turn = vec![0.0_f32; width * width];
        for pair in (0..width).step_by(2) {
            turn[(pair + 1) * width + pair] = -1.0;
            turn[pair * width + pair + 1] = 1.0;
        }
        Self {
            cosines: table(f64::cos),
            sines: table(f64::sin),
            quarter_turn: Tensor::from_data(TensorData::new(turn, [width, width]), device),
        }
    }

    #[cfg(feature = "libtorch")]
    fn turns(&self) -> cuda::trunk::Turns<'_> {
        cuda::trunk::Turns {
            cosines: &self.cosines,
            sines: &self.sines,
        }
    }

    /// Turns queries or keys `[batch, count, heads, width]`.
    fn turn(&self, x: Tensor<4>) -> Tensor<4> {
        keep(&x);
        let dtype = x.dtype();
        let turned = linear(x.clone(), self.quarter_turn.clone().cast(dtype), None);
        x * self.cosines.clone().cast(dtype) + turned * self.sines.clone().cast(dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One head at all positions of a 3×3 grid, the whole tile's token first.
    fn turned(values: &[f32]) -> Vec<Vec<f32>> {
        let device = Device::flex();
        let rotary = Rotary::new(3, 8, &device);
        let x = Tensor::from_data(TensorData::new(values.repeat(10), [1, 10, 1, 8]), &device);
        rotary
            .turn(x)
            .into_data()
            .try_to_vec::<f32>()
            .unwrap()
            .chunks(8)
            .map(<[f32]>::to_vec)
            .collect()
    }

    #[test]
    fn pairs_are_neighbours_and_the_first_token_does_not_turn() {
        let x = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let rows = turned(&x);
        assert_eq!(rows[0], x);
        // The patch in the second row turns the first pair by one radian; its column does not matter.
        for patch in &rows[4..7] {
            assert!((patch[0] - 1_f32.cos()).abs() < 1e-6 && (patch[1] - 1_f32.sin()).abs() < 1e-6);
        }
        let columns = turned(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        assert!(
            (columns[2][4] + 1_f32.sin()).abs() < 1e-6
                && (columns[2][5] - 1_f32.cos()).abs() < 1e-6
        );
    }

    #[test]
    fn products_depend_on_offsets_alone() {
        let query = turned(&[0.3, -1.0, 0.5, 0.2, 0.9, 0.1, -0.4, 0.7]);
        let key = turned(&[-0.2, 0.4, 1.0, 0.6, 0.3, -0.8, 0.5, 0.1]);
        let dot = |a: usize, b: usize| {
            query[a]
                .iter()
                .zip(&key[b])
                .map(|(x, y)| x * y)
                .sum::<f32>()
        };
        // Patch (r, c) is token 1 + 3r + c; both pairs are one row and one column apart.
        assert!((dot(1, 5) - dot(5, 9)).abs() < 1e-5);
        assert!((dot(1, 5) - dot(1, 2)).abs() > 1e-3);
    }
}
