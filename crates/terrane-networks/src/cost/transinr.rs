//! What TransINR costs.

use super::{
    Account, Convention, FORMED_WEIGHT, TransformerShape, elements, head, learned, linear,
    point_layer, unbiased,
};

const ENCODED_FEATURE: usize = 2; // product with the frequency, sine or cosine

/// TransINR: a transformer that turns learned weight tokens into the columns of an MLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransInrShape {
    /// Side of a tile in pixels.
    pub side: usize,
    /// Side of a patch in pixels; pixels beyond the last whole patch are not seen.
    pub patch: usize,
    /// Zero pixels around the tile.
    pub pad: usize,
    /// The transformer.
    pub transformer: TransformerShape,
    /// Weight tokens of a hidden layer of the MLP.
    pub groups: usize,
    /// Width of the positional encoding.
    pub features: usize,
    /// Width of the hidden layers of the MLP.
    pub network_width: usize,
    /// Hidden layers of the MLP, before the linear one.
    pub hidden_layers: usize,
}

impl TransInrShape {
    /// The paper's sizes.
    pub const fn paper() -> Self {
        Self {
            side: 256,
            patch: 9,
            pad: 1,
            transformer: TransformerShape::new([768, 6, 12, 3072]),
            groups: 64,
            features: 256,
            network_width: 256,
            hidden_layers: 4,
        }
    }

    /// The account of this network.
    pub fn account(&self, convention: Convention) -> Account {
        let (net, groups) = (&self.transformer, self.groups);
        let (features, inputs, hidden) = (self.features, self.network_width, self.hidden_layers);
        let inner = hidden.saturating_sub(1);
        let (width, pixels) = (net.width, self.side.pow(2));
        let data = ((self.side + 2 * self.pad) / self.patch).pow(2);
        let weights = hidden * groups + 1;
        let tokens = data + weights;
        let tokeniser = linear(data, self.patch.pow(2), width);
        let positions = learned(data * width) + elements(data * width);
        let layers = (net.attention(tokens, unbiased) + net.plain(tokens)).times(net.depth);
        let heads = head(groups, width, features)
            + head(groups, width, inputs).times(inner)
            + head(1, width, inputs);
        let mlp = point_layer(features, inputs, 1)
            + point_layer(inputs, inputs, 1).times(inner)
            + linear(1, inputs, 1);
        let point = (elements(ENCODED_FEATURE * features) + mlp).flops(Convention::Paper);
        let formed = elements(FORMED_WEIGHT * inputs * (features + inner * inputs + 1));
        let parts = [
            ("tokeniser", tokeniser),
            ("positions", positions),
            ("weight tokens", learned(weights * width)),
            ("transformer", layers),
            ("heads", heads),
            ("network", mlp),
        ];
        let flops = [
            point,
            (tokeniser + positions + layers).flops(convention),
            heads.flops(convention),
            formed.flops(convention) + pixels as u64 * point,
        ];
        Account::new(&parts, [weights * width, width, pixels], flops)
    }
}
