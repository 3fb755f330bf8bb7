//! The shape of a network: what trainer, file and codec agree on.

use crate::grid::PHASES;
use crate::json::Json;
use crate::planes::{CHANNELS, CONSTANTS, GROUP};
use crate::wavelet::BANDS;

/// The largest width that a file may ask for.
pub const MAX_WIDTH: usize = 512;
/// The most residual blocks that a file may ask for in one place.
pub const MAX_BLOCKS: usize = 16;
/// The largest radius in which a head sees symbols: what grids have room for.
pub const MAX_REACH: usize = 4;
/// Positions that a convolution sees: three by three.
pub const WINDOW: usize = 9;
/// Sums that a head and a dequantiser end with.
pub const SUMS: usize = GROUP;

/// Widths of the layers; all are multiples of four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Widths {
    /// Of the trunk, which sees the coarser image and the parents.
    pub trunk: usize,
    /// Residual blocks of the trunk.
    pub blocks: usize,
    /// Of the layers of a band, which see the trunk and the bands before; 0 for none.
    pub band: usize,
    /// Residual blocks of a band.
    pub band_blocks: usize,
    /// Radius of the neighbourhood in which a head sees the features: 0 or 1.
    pub look: usize,
    /// Of a head's first layer.
    pub hidden: usize,
    /// Of a head's second layer; 0 for none.
    pub last: usize,
    /// Of the dequantiser; 0 for none.
    pub dequantiser: usize,
    /// Residual blocks of the dequantiser.
    pub dequantiser_blocks: usize,
    /// Radius of the neighbourhood in which a head sees symbols of its own band, from 1.
    pub reach: usize,
}

/// Names a layer and its shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerShape {
    /// The name of its arrays in a file, before `.weight` and `.bias`.
    pub name: String,
    /// Number of inputs.
    pub inputs: usize,
    /// Number of outputs.
    pub outputs: usize,
}

/// Four channels of symbols that a head sees at a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolTap {
    /// 0 for HL and LH, 1 for HH.
    pub group: usize,
    /// Rows down.
    pub down: isize,
    /// Columns to the right.
    pub right: isize,
}

/// The neighbours within a radius, row by row.
pub(crate) fn window(radius: isize) -> impl Iterator<Item = [isize; 2]> {
    (-radius..=radius).flat_map(move |down| (-radius..=radius).map(move |right| [down, right]))
}

impl Widths {
    /// The widths that a model's file has as JSON.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let json = Json::read(text.as_bytes())?;
        let number = |key| json.get(key)?.number();
        let widths = Self {
            trunk: number("trunk")?,
            blocks: number("blocks")?,
            band: number("band")?,
            band_blocks: number("band_blocks")?,
            look: number("look")?,
            hidden: number("hidden")?,
            last: number("last")?,
            dequantiser: number("dequantiser")?,
            dequantiser_blocks: number("dequantiser_blocks")?,
            reach: number("reach")?,
        };
        // A width that is not known here would change what the network is.
        (json.object()?.len() == 10).then_some(widths)
    }

    /// Whether a network of these widths can be built.
    pub fn is_sound(&self) -> bool {
        let all = [
            self.trunk,
            self.band,
            self.hidden,
            self.last,
            self.dequantiser,
        ];
        all.iter()
            .all(|width| width.is_multiple_of(GROUP) && *width <= MAX_WIDTH)
            && self.trunk > 0
            && self.hidden > 0
            && self.blocks <= MAX_BLOCKS
            && self.band_blocks <= MAX_BLOCKS
            && (self.band > 0 || self.band_blocks == 0)
            && (self.band.min(self.dequantiser) > 0 || self.dequantiser_blocks == 0)
            && self.dequantiser_blocks <= MAX_BLOCKS
            && self.look <= 1
            && (1..=MAX_REACH).contains(&self.reach)
    }

    /// Channels of the features that a head sees.
    pub fn features(&self) -> usize {
        if self.band > 0 { self.band } else { self.trunk }
    }

    /// Symbols that the head of a band and phase sees beside the features, in the order of its inputs: its own group where it
    /// is known, and without layers of bands all around it in the group of the bands before.
    pub fn symbol_taps(&self, band: usize, phase: usize) -> Vec<SymbolTap> {
        let [row, column] = PHASES[phase].map(|parity| parity as isize);
        let is_before = |down: isize, right: isize| {
            let parities = [(row + down) & 1, (column + right) & 1].map(|parity| parity as usize);
            PHASES[..phase].contains(&parities)
        };
        let is_near = |down: isize, right: isize| down.abs().max(right.abs()) <= 1;
        let sees_siblings = self.band == 0;
        let own = window(self.reach as isize).filter(|&[down, right]| {
            is_before(down, right) || (sees_siblings && band == 1 && is_near(down, right))
        });
        let siblings = window(1).filter(|_| sees_siblings && band == 2);
        own.map(|at| (band / 2, at))
            .chain(siblings.map(|at| (0, at)))
            .map(|(group, [down, right])| SymbolTap { group, down, right })
            .collect()
    }

    /// All layers in the order in which they stand in a network: the trunk's, those of the bands, those of the heads by band
    /// and phase, the dequantiser's.
    ///
    /// The inputs of a convolution are, source by source and neighbour by neighbour (row by row), its channels. Those of the
    /// first layer start with the constants.
    pub fn layers(&self) -> Vec<LayerShape> {
        let mut layers = Vec::new();
        let mut push = |name: String, inputs, outputs| {
            layers.push(LayerShape {
                name,
                inputs,
                outputs,
            });
        };
        push("trunk.0".into(), CONSTANTS + WINDOW * CHANNELS, self.trunk);
        for index in 0..2 * self.blocks {
            push(
                format!("trunk.{}", 1 + index),
                WINDOW * self.trunk,
                self.trunk,
            );
        }
        if self.band > 0 {
            for band in 0..BANDS {
                let channels = self.trunk + if band > 0 { GROUP } else { 0 };
                push(format!("band.{band}.0"), WINDOW * channels, self.band);
                for index in 0..2 * self.band_blocks {
                    let name = format!("band.{band}.{}", 1 + index);
                    push(name, WINDOW * self.band, self.band);
                }
            }
        }
        for band in 0..BANDS {
            for phase in 0..PHASES.len() {
                let window = if self.look > 0 { WINDOW } else { 1 };
                let taps = self.symbol_taps(band, phase).len();
                let mut inputs = window * self.features() + GROUP * taps;
                for (index, outputs) in self.head_outputs().enumerate() {
                    push(format!("head.{band}.{phase}.{index}"), inputs, outputs);
                    inputs = outputs;
                }
            }
        }
        if self.dequantiser > 0 {
            let trunk = if self.band > 0 { WINDOW } else { 1 } * self.trunk;
            let inputs = trunk + WINDOW * 2 * GROUP;
            push("dequantiser.0".into(), inputs, self.dequantiser);
            for index in 0..2 * self.dequantiser_blocks {
                let name = format!("dequantiser.{}", 1 + index);
                push(name, WINDOW * self.dequantiser, self.dequantiser);
            }
            let name = format!("dequantiser.{}", 1 + 2 * self.dequantiser_blocks);
            push(name, self.dequantiser, SUMS);
        }
        layers
    }

    /// Widths of a head's layers.
    pub(crate) fn head_outputs(&self) -> impl Iterator<Item = usize> {
        let last = (self.last > 0).then_some(self.last);
        [self.hidden].into_iter().chain(last).chain([SUMS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_read_as_the_trainer_writes_them() {
        let text = serde_json::to_string(&SMALLEST).unwrap();
        assert_eq!(Widths::read(&text), Some(SMALLEST));
        let more = text.replace('}', ",\"other\":1}");
        let fewer = text.replace("\"reach\"", "\"rich\"");
        for text in [&more, &fewer, "{}", "8"] {
            assert_eq!(Widths::read(text), None, "{text}");
        }
    }

    const SMALLEST: Widths = Widths {
        trunk: 8,
        blocks: 0,
        band: 0,
        band_blocks: 0,
        hidden: 8,
        look: 0,
        last: 0,
        dequantiser: 4,
        dequantiser_blocks: 0,
        reach: 1,
    };

    #[test]
    fn layers_have_the_shapes_of_the_design() {
        let shape = |widths: &Widths, name: &str| {
            let layers = widths.layers();
            let layer = layers.iter().find(|layer| layer.name == name);
            layer.map(|layer| (layer.inputs, layer.outputs))
        };
        assert!(SMALLEST.is_sound());
        assert_eq!(shape(&SMALLEST, "trunk.0"), Some((17 + 180, 8)));
        assert_eq!(shape(&SMALLEST, "trunk.1"), None);
        assert_eq!(shape(&SMALLEST, "head.0.0.0"), Some((8, 8)));
        assert_eq!(shape(&SMALLEST, "head.0.0.1"), Some((8, 4)));
        assert_eq!(shape(&SMALLEST, "head.0.1.0"), Some((8 + 16, 8)));
        assert_eq!(shape(&SMALLEST, "head.0.2.0"), Some((8 + 16, 8)));
        assert_eq!(shape(&SMALLEST, "head.0.3.0"), Some((8 + 32, 8)));
        assert_eq!(shape(&SMALLEST, "head.1.3.0"), Some((8 + 36, 8)));
        assert_eq!(shape(&SMALLEST, "head.2.3.0"), Some((8 + 68, 8)));
        assert_eq!(shape(&SMALLEST, "dequantiser.0"), Some((8 + 72, 4)));
        let large = Widths {
            blocks: 2,
            band: 12,
            band_blocks: 1,
            last: 16,
            reach: 2,
            ..SMALLEST
        };
        assert!(large.is_sound());
        assert_eq!(shape(&large, "trunk.4"), Some((72, 8)));
        assert_eq!(shape(&large, "band.0.0"), Some((72, 12)));
        assert_eq!(shape(&large, "band.1.0"), Some((108, 12)));
        assert_eq!(shape(&large, "band.1.2"), Some((108, 12)));
        assert_eq!(shape(&large, "head.0.1.0"), Some((12 + 16, 8)));
        assert_eq!(shape(&large, "head.0.2.0"), Some((12 + 4 * 12, 8)));
        assert_eq!(shape(&large, "head.2.3.2"), Some((16, 4)));
        assert_eq!(shape(&large, "dequantiser.0"), Some((9 * 8 + 72, 4)));
        let widest = Widths {
            look: 1,
            dequantiser_blocks: 1,
            reach: 4,
            ..large
        };
        assert!(widest.is_sound());
        assert_eq!(shape(&widest, "head.0.0.0"), Some((9 * 12, 8)));
        assert_eq!(shape(&widest, "head.0.1.0"), Some((9 * 12 + 4 * 16, 8)));
        assert_eq!(shape(&widest, "head.0.3.0"), Some((9 * 12 + 4 * 56, 8)));
        assert_eq!(shape(&widest, "dequantiser.2"), Some((36, 4)));
        assert_eq!(shape(&widest, "dequantiser.3"), Some((4, 4)));
        assert!(!Widths { trunk: 6, ..large }.is_sound());
        assert!(!Widths { band: 0, ..large }.is_sound());
    }
}
