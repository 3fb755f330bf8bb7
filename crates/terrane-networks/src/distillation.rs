//! Distillation: an encoder and its decoder learn to predict what a frozen teacher sees in the same tile.
//!
//! The option needs the teacher's weights, which are not part of this program: see [`MISSING_WEIGHTS`].

use burn::module::Module;
use burn::tensor::{Bool, Tensor};
use serde::{Deserialize, Serialize};

use crate::blocks::Head;
use crate::dinov3::TeacherFeatures;
use crate::init::Init;

/// What to tell someone who asks for a distillation and names no file.
pub const MISSING_WEIGHTS: &str = "a distillation needs the weights of a DINOv3 teacher: \
    dinov3_vitb16_pretrain_lvd1689m-73cec8be.pth, or the same weights as safetensors \
    (facebook/dinov3-vitb16-pretrain-lvd1689m on Hugging Face); \
    Meta gives them to those who accept the DINOv3 License";

/// Added to distances, so that those of equal tiles have a logarithm and a gradient.
const EPSILON: f64 = 1e-8;

/// Weights of the parts of the loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistillationConfig {
    /// Of the whole tile, from the encoder.
    pub encoder_class: f64,
    /// Of the patches, from the encoder.
    pub encoder_patches: f64,
    /// Of the whole tile, from the decoder's first layer.
    pub decoder_class: f64,
    /// Of the patches, from the decoder's first layer.
    pub decoder_patches: f64,
    /// Of [`koleo`].
    pub koleo: f64,
}

impl Default for DistillationConfig {
    /// The weights of HUVR's authors.
    fn default() -> Self {
        Self {
            encoder_class: 4.0,
            encoder_patches: 4.0,
            decoder_class: 1.0,
            decoder_patches: 1.0,
            koleo: 0.1,
        }
    }
}

/// Widths of the networks that a distillation connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DistillationWidths {
    /// Width of the encoder's tokens, before they are reduced to what is stored.
    pub encoder: usize,
    /// Width of the decoder's states.
    pub decoder: usize,
    /// Width of the teacher's features.
    pub teacher: usize,
}

/// The heads that predict the teacher's features; they are trained with the network and thrown away after it.
#[derive(Module, Debug)]
pub struct Distillation {
    /// The encoder's token of the whole tile to the teacher's features of it.
    pub encoder_class: Head,
    /// The encoder's tokens of the patches to the teacher's features of them.
    pub encoder_patches: Head,
    /// The decoder's state of the whole tile to the teacher's features of it.
    pub decoder_class: Head,
    /// The decoder's states of the patches to the teacher's features of them.
    pub decoder_patches: Head,
    #[module(skip)]
    config: DistillationConfig,
}

impl DistillationConfig {
    /// Heads with initial weights.
    pub fn init(&self, widths: &DistillationWidths, init: &mut Init) -> Distillation {
        let mut head = |from: usize| Head::plain(from, widths.teacher, init);
        Distillation {
            encoder_class: head(widths.encoder),
            encoder_patches: head(widths.encoder),
            decoder_class: head(widths.decoder),
            decoder_patches: head(widths.decoder),
            config: *self,
        }
    }
}

impl Distillation {
    /// The loss `[1]`, of the encoder's tokens `[batch, 1 + patches, width]` and the decoder's states after its first
    /// layer `[batch, 1 + patches, width]`, both with the whole tile first.
    pub fn loss(
        &self,
        encoder_tokens: Tensor<3>,
        decoder_states: Tensor<3>,
        teacher: &TeacherFeatures,
    ) -> Tensor<1> {
        let weights = self.config;
        let (encoder_class, encoder_patches) = split(encoder_tokens);
        let (decoder_class, decoder_patches) = split(decoder_states);
        let of_class =
            |head: &Head, x: Tensor<2>| mean_square(head.forward(x) - teacher.class.clone());
        let of_patches =
            |head: &Head, x: Tensor<3>| mean_square(head.forward(x) - teacher.patches.clone());
        let loss =
            of_class(&self.encoder_class, encoder_class.clone()).mul_scalar(weights.encoder_class);
        let loss = loss
            + of_patches(&self.encoder_patches, encoder_patches)
                .mul_scalar(weights.encoder_patches);
        let loss =
            loss + of_class(&self.decoder_class, decoder_class).mul_scalar(weights.decoder_class);
        let loss = loss
            + of_patches(&self.decoder_patches, decoder_patches)
                .mul_scalar(weights.decoder_patches);
        let [batch, _] = encoder_class.dims();
        // One tile has no neighbour to be kept away from.
        if batch < 2 {
            return loss;
        }
        loss + koleo(encoder_class).mul_scalar(weights.koleo)
    }
}

/// The first token and the others.
fn split(tokens: Tensor<3>) -> (Tensor<2>, Tensor<3>) {
    let [_, count, _] = tokens.dims();
    let class = tokens.clone().narrow(1, 0, 1).squeeze_dim::<2>(1);
    (class, tokens.narrow(1, 1, count - 1))
}

fn mean_square<const D: usize>(difference: Tensor<D>) -> Tensor<1> {
    difference.square().mean()
}

/// The regulariser of Kozachenko and Leonenko (Sablayrolles et al., 2019): minus the mean logarithm of the distance
/// from each of at least two vectors `[batch, width]`, brought to unit length, to the one nearest to it.
pub fn koleo(vectors: Tensor<2>) -> Tensor<1> {
    let [count, _] = vectors.dims();
    let length = vectors.clone().square().sum_dim(1).sqrt();
    let x = vectors / length.clamp_min(EPSILON);

    // Which one is nearest is a choice without a gradient; the distance to it has one at both ends.
    let fixed = x.clone().detach();
    let itself = Tensor::<2, Bool>::diag_mask([count, count], 0, &x.device()).bool_not();
    let products = fixed.clone().matmul(fixed.transpose());
    let nearest = products.mask_fill(itself, -1.0).argmax(1);

    let difference = x.clone() - x.select(0, nearest.squeeze_dim::<1>(1));
    // Added to each component too, as PyTorch's pairwise distance does: the root has no gradient at 0.
    let distance = difference.add_scalar(EPSILON).square().sum_dim(1).sqrt();
    distance.add_scalar(EPSILON).log().mean().neg()
}
