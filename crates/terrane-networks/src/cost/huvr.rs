//! What HUVR and HUVR+SIREN cost.

use super::{
    Account, CHANNELS, Convention, FORMED_WEIGHT, TransformerShape, Work, elements, head, learned,
    linear, norm, point_layer, siren, unbiased,
};

const OUTER_PRODUCT: usize = 1; // the rank-one factor of a weight that two tokens modulate
const HUVR_GRID: usize = 4; // points along a patch's side
const HUVR_KERNEL: usize = 9; // taps of the kernel of the upsampler

/// How tokens act on the coordinate network of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modulation {
    /// HUVR: the product of a patch's token and the global one acts on the weights of an MLP.
    RankOne,
    /// HUVR+SIREN: amplitude and phase of the sines, a head for each.
    AmplitudeShift,
    /// HUVR+SIREN with amplitude alone.
    Amplitude,
    /// HUVR+SIREN with phase alone.
    Shift,
    /// HUVR+SIREN with amplitude, frequency, phase and offset from one head.
    Incode,
}

/// HUVR, or HUVR+SIREN if sines are modulated: vision transformer, bottleneck, decoder, network of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HuvrShape {
    /// Side of a tile in pixels; a multiple of `patch`.
    pub side: usize,
    /// Side of a patch in pixels.
    pub patch: usize,
    /// The encoder, whose hidden layers are gated.
    pub encoder: TransformerShape,
    /// Width of a stored token; where it equals that of encoder or decoder there is no projection.
    pub bottleneck: usize,
    /// The decoder.
    pub decoder: TransformerShape,
    /// Whether the decoder has attention; the released one has none.
    pub decoder_attention: bool,
    /// How tokens act on the coordinate network.
    pub modulation: Modulation,
    /// Width of a layer of the coordinate network.
    pub network_width: usize,
    /// Layers of the coordinate network with that width.
    pub network_layers: usize,
    /// Numbers that HUVR's network sees of a point.
    pub network_features: usize,
}

impl HuvrShape {
    /// The paper's sizes, which HUVR and HUVR+SIREN share.
    pub const fn paper(modulation: Modulation) -> Self {
        Self {
            side: 256,
            patch: 16,
            encoder: TransformerShape::new([768, 12, 16, 2048]),
            bottleneck: 32,
            decoder: TransformerShape::new([1024, 4, 16, 4096]),
            decoder_attention: false,
            modulation,
            network_width: 256,
            network_layers: 3,
            network_features: 128,
        }
    }

    fn heads_and_point(&self, patches: usize) -> (Work, Work) {
        let (width, layers) = (self.network_width, self.network_layers);
        let head = |rows, values| head(rows, self.decoder.width, values * width);
        let (heads, values) = match self.modulation {
            // The grid is one for all patches, so that its positional encoding is a constant.
            Modulation::RankOne => {
                let deeper = point_layer(width, width, 1).times(layers - 1);
                let point = point_layer(self.network_features, width, 1) + deeper;
                return (head(patches, 1) + head(1, 1), point);
            }
            Modulation::AmplitudeShift => (2, 1),
            Modulation::Amplitude | Modulation::Shift => (1, 1),
            Modulation::Incode => (1, 4),
        };
        let point = siren(width, layers, heads * values);
        (head(patches, values).times(heads * layers), point)
    }

    /// The account of this network.
    pub fn account(&self, convention: Convention) -> Account {
        let (vit, decoder) = (&self.encoder, &self.decoder);
        let (bottleneck, width) = (self.bottleneck, self.network_width);
        let as_run = convention == Convention::AsRun;
        let huvr = self.modulation == Modulation::RankOne;
        let (pixels, patches) = (self.side.pow(2), (self.side / self.patch).pow(2));
        let tokens = patches + 1;
        let input = linear(pixels, 1, CHANNELS).when(!huvr);
        let embed = linear(patches, CHANNELS * self.patch.pow(2), vit.width) + learned(vit.width);
        let blocks = (vit.attention(tokens, linear) + vit.gated(tokens)).times(vit.depth);
        let encode = embed + blocks + norm(tokens, vit.width);
        let projection = |from, to| head(tokens, from, to).when(from != to);
        let down = projection(vit.width, bottleneck);
        let up = projection(bottleneck, decoder.width);
        let attention = decoder.attention(tokens, unbiased);
        let decode = |on| (decoder.plain(tokens) + attention.when(on)).times(decoder.depth);
        let counted = decode(self.decoder_attention || !as_run);
        let (heads, point) = self.heads_and_point(patches);
        let coarse = patches * HUVR_GRID.pow(2);
        let shuffled = CHANNELS * (self.patch / HUVR_GRID).pow(2);
        let upsampler = linear(coarse, HUVR_KERNEL * width, shuffled).when(huvr);
        let formed = elements(patches * width.pow(2) * (FORMED_WEIGHT + OUTER_PRODUCT)).when(huvr);
        let points = if as_run && huvr { coarse } else { pixels };
        let per_point = point.flops(Convention::Paper);
        let flops = [
            per_point,
            (input + encode + down.when(as_run)).flops(convention),
            (up + counted + heads.when(as_run || !huvr)).flops(convention),
            (formed + upsampler.when(as_run)).flops(convention) + points as u64 * per_point,
        ];
        let parts = [
            ("input", input),
            ("encoder", encode),
            ("down", down),
            ("up", up),
            ("decoder", decode(self.decoder_attention)),
            ("heads", heads),
            ("network", point),
            ("upsampler", upsampler),
        ];
        Account::new(&parts, [tokens * bottleneck, bottleneck, pixels], flops)
    }
}
