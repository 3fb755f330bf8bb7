//! HUVR (arXiv 2601.14256) as the paper's authors ported it to terrain: the tokens modulate one layer of a ReLU network
//! on a 4×4 grid per patch, and a convolution brings its output to the pixels.

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use serde::{Deserialize, Serialize};

use crate::blocks::{
    Check, Decoder, DecoderConfig, Encoder, EncoderConfig, Head, PackedWeights, are_sizes, divides,
    fourier_features, is_multiple, linear, normalise_columns, split_patches, through,
};
use crate::cost::{Account, Convention, HuvrShape, Modulation};
use crate::init::Init;
use crate::methods::{Method, Precision, States};
use crate::tape::{keep, kept};

/// Points of the ReLU network along the side of a patch.
const QUERIES: usize = 4;
/// Channels in and out: the tile is copied to three, and three are averaged.
const CHANNELS: usize = 3;
/// Side of the last convolution's kernel.
const KERNEL: usize = 3;

/// Sizes of the method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Side of a tile.
    pub side: usize,
    /// Side of a patch.
    pub patch: usize,
    /// Numbers stored per patch.
    pub bottleneck: usize,
    /// The encoder.
    pub encoder: EncoderConfig,
    /// The decoder.
    pub decoder: DecoderConfig,
    /// Width of the ReLU network.
    pub mlp_width: usize,
    /// Frequencies per coordinate that the ReLU network sees.
    pub frequencies: usize,
}

/// The network.
#[derive(Module, Debug)]
pub struct Huvr {
    /// Patches to tokens.
    pub encoder: Encoder,
    /// Tokens to what is stored; absent where the bottleneck is as wide as the encoder.
    pub down: Option<Head>,
    /// What is stored to the decoder's width; absent where they are equal.
    pub up: Option<Head>,
    /// Tokens to states.
    pub decoder: Decoder,
    /// A patch's state to factors on the rows of the second layer.
    pub patch_head: Head,
    /// The whole tile's state to factors on its columns.
    pub global_head: Head,
    /// The three layers of the ReLU network.
    pub layers: Vec<PackedWeights>,
    /// The last convolution, `[256·3·3 + 1, 3·(patch/4)²]`.
    pub convolution: PackedWeights,
    patch: usize,
    /// Fourier features of the queries.
    points: Tensor<2>,
}

impl Config {
    /// Refuses sizes that no network can have.
    pub fn check(&self) -> Check {
        are_sizes(&[
            ("method.side", self.side),
            ("method.patch", self.patch),
            ("method.bottleneck", self.bottleneck),
            ("method.mlp_width", self.mlp_width),
            ("method.frequencies", self.frequencies),
        ])?;
        divides(("method.patch", self.patch), ("method.side", self.side))?;
        // The convolution gives as many pixels to every point of the ReLU network.
        is_multiple(
            ("method.patch", self.patch),
            QUERIES,
            "the points along a patch",
        )?;
        self.encoder.check()?;
        self.decoder.check()
    }

    /// Floats that the network and the decoding of a tile take at most, beside the weights.
    pub(crate) fn working_floats(&self) -> u128 {
        let [side, patch, width, outputs] = [
            self.side,
            self.patch,
            self.mlp_width,
            CHANNELS * (self.patch / QUERIES).pow(2),
        ]
        .map(|size| size as u128);
        let patches = (side / patch).pow(2);
        let tokens = patches + 1;
        let kernel = (KERNEL * KERNEL) as u128;
        let features = patches * (QUERIES * QUERIES) as u128 * width;
        self.encoder.table_floats(tokens)
            + self.decoder.working_floats(tokens)
            + tokens * 6 * width
            + 4 * features
            + 4 * kernel * width * outputs
            + 8 * width * width
            + 16 * side * side
    }

    /// Floats that are kept of one tile until it is differentiated.
    pub(crate) fn recorded_floats(&self) -> u128 {
        let [side, patch, width] = [self.side, self.patch, self.mlp_width].map(|size| size as u128);
        let patches = (side / patch).pow(2);
        let tokens = patches + 1;
        let features = patches * (QUERIES * QUERIES) as u128 * width;
        let pixels = CHANNELS as u128 * side * side;
        self.encoder.recorded_floats(tokens, pixels / patches)
            + self.decoder.recorded_floats(tokens)
            + features * (8 + (KERNEL * KERNEL) as u128)
            + 4 * pixels
    }

    /// Tokens of a tile, the whole tile's first, and the numbers of each.
    pub fn token_shape(&self) -> [usize; 2] {
        [1 + (self.side / self.patch).pow(2), self.bottleneck]
    }

    /// What the network holds, stores and computes.
    pub fn account(&self, convention: Convention) -> Account {
        HuvrShape {
            side: self.side,
            patch: self.patch,
            encoder: self.encoder.shape(),
            bottleneck: self.bottleneck,
            decoder: self.decoder.shape(),
            decoder_attention: self.decoder.attention_heads > 0,
            modulation: Modulation::RankOne,
            network_width: self.mlp_width,
            network_layers: 3,
            network_features: 4 * self.frequencies,
        }
        .account(convention)
    }

    /// A network with initial weights.
    pub fn init(&self, init: &mut Init) -> Huvr {
        let &Self {
            side,
            patch,
            bottleneck,
            encoder,
            decoder,
            mlp_width,
            frequencies,
        } = self;
        let scale = patch / QUERIES;
        let outputs = CHANNELS * scale * scale;
        let encoder_network = Encoder::new(&encoder, side / patch, CHANNELS * patch * patch, init);
        let down =
            (bottleneck != encoder.width).then(|| Head::plain(encoder.width, bottleneck, init));
        let up =
            (bottleneck != decoder.width).then(|| Head::plain(bottleneck, decoder.width, init));
        let decoder_network = Decoder::new(&decoder, init);
        let patch_head = Head::plain(decoder.width, mlp_width, init);
        let global_head = Head::plain(decoder.width, mlp_width, init);
        let layers = [4 * frequencies, mlp_width, mlp_width]
            .map(|inputs| PackedWeights::new(inputs, mlp_width, init))
            .into();
        let inputs = mlp_width * KERNEL * KERNEL;
        // The authors make the kernel `[in, out, k, k]`, so PyTorch counts the outputs as what comes in.
        let bound = 1.0 / ((outputs * KERNEL * KERNEL) as f64).sqrt();
        let convolution = PackedWeights::within(inputs, outputs, bound, init);
        Huvr {
            encoder: encoder_network,
            down,
            up,
            decoder: decoder_network,
            patch_head,
            global_head,
            layers,
            convolution,
            points: fourier_features(QUERIES, init.beside(frequencies, 1), init.device()),
            patch,
        }
    }
}

impl Huvr {
    /// Features `[batch, patches, 16, width]` of the modulated ReLU network.
    fn features(&self, states: &Tensor<3>) -> Tensor<4> {
        let [_, count, _] = states.dims();
        let rows = self
            .patch_head
            .forward(states.clone().narrow(1, 1, count - 1));
        let columns = self.global_head.forward(states.clone().narrow(1, 0, 1));
        let [first, second, third] = [0, 1, 2].map(|layer| &self.layers[layer]);

        let points = self.points.clone().cast(states.dtype());
        let weight = kept(normalise_columns(first.weight()));
        let h = kept(relu(points.matmul(weight) + first.bias()));

        // The second layer's weights are colnorm(W ⊙ rows·columnsᵀ). A column's factor leaves only its sign, so no
        // matrix per patch is needed: ((h ⊙ rows) W) ⊙ sign(columns) / ‖W ⊙ rows‖.
        keep(&rows);
        let weight = kept(second.weight());
        let squares = linear(
            kept(rows.clone().square()),
            kept(weight.clone().square()),
            None,
        );
        let length = kept(kept(kept(squares).sqrt()).clamp_min(1e-12));
        let factor = kept(kept(columns.sign()) / length);
        let h = kept(h.unsqueeze::<4>() * rows.unsqueeze_dim::<4>(2));
        let h = kept(linear(h, weight, None)) * factor.unsqueeze_dim::<4>(2);
        let h = kept(relu(h + second.bias().unsqueeze()));
        let weight = kept(normalise_columns(third.weight()));
        kept(relu(linear(h, weight, None) + third.bias().unsqueeze()))
    }

    /// Features on one grid to pixels, by a convolution and a pixel shuffle.
    fn upsample(&self, features: Tensor<4>) -> Tensor<3> {
        let [batch, patches, _, width] = features.dims();
        let across = patches.isqrt();
        let side = across * QUERIES;
        let map = kept(
            features
                .reshape([batch, across, across, QUERIES, QUERIES, width])
                .permute([0, 5, 1, 3, 2, 4])
                .reshape([batch, width, side, side]),
        );
        let weight = kept(normalise_columns(self.convolution.weight()));
        let [_, outputs] = weight.dims();
        let weight = weight
            .reshape([width, KERNEL, KERNEL, outputs])
            .permute([3, 0, 1, 2]);
        let bias = self.convolution.bias().reshape([outputs]);
        let options = ConvOptions::new([1, 1], [KERNEL / 2, KERNEL / 2], [1, 1], 1);
        let channels = conv2d(map, weight, Some(bias), options);
        let scale = self.patch / QUERIES;
        channels
            .reshape([batch, CHANNELS, scale, scale, side, side])
            .permute([0, 1, 4, 2, 5, 3])
            .reshape([batch, CHANNELS, side * scale, side * scale])
            .mean_dim(1)
            .squeeze_dim(1)
    }
}

impl Huvr {
    /// The encoder's output `[batch, 1 + patches, width]`.
    fn encoder_output(&self, tiles: Tensor<3>, precision: Precision) -> Tensor<3> {
        let trunk = precision.trunk(tiles.dtype());
        let patches = split_patches(tiles.mul_scalar(2.0).sub_scalar(1.0), self.patch);
        self.encoder
            .forward(Tensor::cat(vec![patches; CHANNELS], 2), trunk)
    }

    /// The decoder's state after its first layer, and the tiles.
    fn decode_with_state(&self, tokens: Tensor<3>, precision: Precision) -> (Tensor<3>, Tensor<3>) {
        let x = through(self.up.as_ref(), tokens);
        let trunk = precision.trunk(x.dtype());
        let mut states = self.decoder.states(x, trunk);
        let last = states.swap_remove(states.len() - 1);
        let tiles = self
            .upsample(self.features(&last))
            .mul_scalar(0.5)
            .add_scalar(0.5);
        (states.into_iter().next().unwrap_or(last), tiles)
    }
}

impl Method for Huvr {
    fn encode(&self, tiles: Tensor<3>, precision: Precision) -> Tensor<3> {
        through(self.down.as_ref(), self.encoder_output(tiles, precision))
    }

    fn decode(&self, tokens: Tensor<3>, precision: Precision) -> Tensor<3> {
        self.decode_with_state(tokens, precision).1
    }

    fn forward_states(&self, tiles: Tensor<3>, precision: Precision) -> Option<States> {
        let encoder = self.encoder_output(tiles, precision);
        let tokens = through(self.down.as_ref(), encoder.clone());
        let (decoder, output) = self.decode_with_state(tokens, precision);
        Some(States {
            encoder,
            decoder,
            output,
        })
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn the_convolution_starts_in_the_range_of_the_released_code() {
        let config = Config {
            side: 32,
            patch: 16,
            bottleneck: 8,
            encoder: EncoderConfig {
                width: 32,
                depth: 1,
                heads: 2,
            },
            decoder: DecoderConfig {
                width: 32,
                depth: 1,
                hidden: 32,
                attention_heads: 0,
            },
            mlp_width: 256,
            frequencies: 4,
        };
        let device = Device::flex();
        let network = config.init(&mut Init::new(1, &device));
        let largest = |tensor: Tensor<2>| tensor.abs().max().into_scalar::<f32>();
        // torch.nn.init.kaiming_uniform_(torch.empty(256, 48, 3, 3), a=5 ** 0.5) is within 1/√(48·9), and the bias is
        // spread over its fan-out, 1/√(256·9).
        let weight = largest(network.convolution.weight());
        assert!((0.047..=0.048_113).contains(&weight), "{weight}");
        let bias = largest(network.convolution.bias());
        assert!((0.018..=0.020_834).contains(&bias), "{bias}");
    }
}
