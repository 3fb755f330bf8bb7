//! A small network in integers.
//!
//! Weights are integers from −127 to 127, activations from 0 to 127; a sum of their products is divided by 64,
//! rounded half up and clamped to that range. The sums run in 32 bits: a layer whose weights could exceed that is refused.

use crate::grid::LANES;
use crate::kernel::{self, MAX_ACTIVATION, OUTPUTS, ROUNDING, Sum, Target};
use crate::planes::{CONSTANTS, GROUP, MAPS};
use crate::wavelet::BANDS;
use crate::widths::Widths;
use crate::{Error, Result};

/// Parts of a weight's unit.
pub const WEIGHT_UNIT: f32 = 64.0;
/// The largest magnitude of a weight and of an activation.
pub const MAX_MAGNITUDE: f32 = MAX_ACTIVATION as f32;

/// A layer: every output is a sum over all inputs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layer {
    inputs: usize,
    outputs: usize,
    /// By four outputs, then four inputs: a word of weights per output.
    weights: Vec<[i32; OUTPUTS]>,
    bias: Vec<[i32; OUTPUTS]>,
    /// Of the first inputs, which are the same at all positions: `[outputs][constants]`.
    constants: Vec<i8>,
}

impl Layer {
    /// A layer with weights `[outputs][inputs]` and a bias in parts of 1/64 of an activation, whose first inputs are
    /// constants.
    pub(crate) fn new(
        inputs: usize,
        constants: usize,
        weights: &[i8],
        bias: &[i32],
    ) -> Result<Self> {
        let outputs = bias.len();
        let is_whole = outputs.is_multiple_of(OUTPUTS)
            && inputs > constants
            && (inputs - constants).is_multiple_of(GROUP);
        if weights.len() != inputs * outputs || !is_whole {
            return Err(Error::Shape {
                expected: inputs * outputs,
                found: weights.len(),
            });
        }
        for (row, &bias) in weights.chunks_exact(inputs).zip(bias) {
            let sum: i64 = row.iter().map(|&weight| i64::from(weight).abs()).sum();
            let largest =
                sum * i64::from(MAX_ACTIVATION) + i64::from(bias).abs() + i64::from(ROUNDING);
            if largest > i64::from(i32::MAX) {
                return Err(Error::TooLarge);
            }
        }
        let mut words = Vec::with_capacity(outputs * inputs / GROUP / OUTPUTS);
        let mut of_constants = Vec::with_capacity(outputs * constants);
        for rows in weights.chunks_exact(OUTPUTS * inputs) {
            let rows: [&[i8]; OUTPUTS] = std::array::from_fn(|output| {
                let (first, varying) = rows[output * inputs..][..inputs].split_at(constants);
                of_constants.extend_from_slice(first);
                varying
            });
            for first in (0..inputs - constants).step_by(GROUP) {
                words.push(rows.map(|row| {
                    let bytes: [u8; GROUP] =
                        std::array::from_fn(|channel| row[first + channel].cast_unsigned());
                    i32::from_le_bytes(bytes)
                }));
            }
        }
        Ok(Self {
            inputs,
            outputs,
            weights: words,
            bias: bias.as_chunks().0.to_vec(),
            constants: of_constants,
        })
    }

    /// Groups of outputs.
    pub(crate) fn groups(&self) -> usize {
        self.outputs / OUTPUTS
    }

    /// The bias of activations: with constants worked in, if the layer has them, and rounding.
    pub(crate) fn rounded_bias(&self, constants: &[u8; CONSTANTS]) -> Vec<[i32; OUTPUTS]> {
        let mut bias = self.bias.clone();
        let rows = self.constants.chunks_exact(CONSTANTS);
        for (bias, row) in bias.as_flattened_mut().iter_mut().zip(rows) {
            let products = row.iter().zip(constants);
            *bias += products
                .map(|(&weight, &constant)| i32::from(weight) * i32::from(constant))
                .sum::<i32>();
        }
        for bias in bias.as_flattened_mut() {
            *bias += ROUNDING;
        }
        bias
    }

    /// Its activations at `blocks` times [`LANES`] positions from `from` on, with a bias that holds the rounding.
    #[inline]
    pub(crate) fn activations(
        &self,
        values: &mut [u32],
        bias: &[[i32; OUTPUTS]],
        (inputs, from): (&[usize], usize),
        blocks: usize,
        target: &Target,
    ) {
        let sum = Sum {
            bias,
            weights: &self.weights,
            inputs,
            from,
        };
        kernel::activations(values, &sum, blocks, target);
    }
}

/// The network: a trunk that sees the coarser image, layers per band, a head per band and phase, and a dequantiser.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Widths of its layers.
    pub widths: Widths,
    layers: Vec<Layer>,
    /// The bias of each layer with rounding; that of the first lacks the constants.
    rounded: Vec<Vec<[i32; OUTPUTS]>>,
}

/// Where a network's maps lie among those of a level, and the room for layers that are computed a few positions at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// The first map of the trunk.
    pub(crate) trunk: usize,
    /// Of the layer inside a residual block.
    pub(crate) inside: usize,
    /// Of a band's features.
    pub(crate) band: usize,
    /// All maps.
    pub(crate) maps: usize,
    /// Words after the maps.
    pub(crate) room: usize,
}

/// A layer and the bias of its activations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounded<'a> {
    pub(crate) layer: &'a Layer,
    pub(crate) bias: &'a [[i32; OUTPUTS]],
}

impl Network {
    /// A network of layers in the order of [`Widths::layers`].
    pub(crate) fn new(widths: Widths, layers: Vec<Layer>) -> Result<Self> {
        let shapes = widths.layers();
        let is_right = layers.len() == shapes.len()
            && layers.iter().zip(&shapes).all(|(layer, shape)| {
                layer.inputs == shape.inputs && layer.outputs == shape.outputs
            });
        if widths.is_sound() && is_right {
            let none = [0; CONSTANTS];
            let rounded = layers.iter().map(|layer| layer.rounded_bias(&none));
            Ok(Self {
                widths,
                rounded: rounded.collect(),
                layers,
            })
        } else {
            Err(Error::Shape {
                expected: shapes.len(),
                found: layers.len(),
            })
        }
    }

    pub(crate) fn layout(&self) -> Layout {
        let Widths {
            trunk,
            blocks,
            band,
            band_blocks,
            hidden,
            last,
            dequantiser,
            ..
        } = self.widths;
        let in_trunk = if blocks > 0 { trunk } else { 0 };
        let in_band = if band_blocks > 0 { band } else { 0 };
        let inside = MAPS + trunk / GROUP;
        let first_band = inside + in_trunk.max(in_band) / GROUP;
        Layout {
            trunk: MAPS,
            inside,
            band: first_band,
            maps: first_band + band / GROUP,
            room: (hidden + last).max(dequantiser) / GROUP * LANES,
        }
    }

    fn layer(&self, index: usize) -> Rounded<'_> {
        Rounded {
            layer: &self.layers[index],
            bias: &self.rounded[index],
        }
    }

    /// The first layer of the trunk.
    pub(crate) fn first(&self) -> &Layer {
        &self.layers[0]
    }

    /// The two layers of a block of the trunk.
    pub(crate) fn trunk_block(&self, block: usize) -> [Rounded<'_>; 2] {
        [0, 1].map(|layer| self.layer(1 + 2 * block + layer))
    }

    fn band_layer(&self, band: usize, layer: usize) -> Rounded<'_> {
        let per_band = 1 + 2 * self.widths.band_blocks;
        self.layer(1 + 2 * self.widths.blocks + band * per_band + layer)
    }

    /// The first layer of a band.
    pub(crate) fn band(&self, band: usize) -> Rounded<'_> {
        self.band_layer(band, 0)
    }

    /// The two layers of a block of a band.
    pub(crate) fn band_block(&self, band: usize, block: usize) -> [Rounded<'_>; 2] {
        [0, 1].map(|layer| self.band_layer(band, 1 + 2 * block + layer))
    }

    /// The layers of a head, by band and phase; the last gives sums.
    pub(crate) fn head(&self, head: usize) -> impl Iterator<Item = Rounded<'_>> {
        let per_band = 1 + 2 * self.widths.band_blocks;
        let bands = if self.widths.band > 0 {
            BANDS * per_band
        } else {
            0
        };
        let per_head = self.widths.head_outputs().count();
        let first = 1 + 2 * self.widths.blocks + bands + head * per_head;
        (first..first + per_head).map(|index| self.layer(index))
    }

    /// The two layers of the dequantiser, where there is one.
    pub(crate) fn dequantiser(&self) -> Option<[Rounded<'_>; 2]> {
        let first = self.layers.len().checked_sub(2)?;
        (self.widths.dequantiser > 0).then(|| [0, 1].map(|layer| self.layer(first + layer)))
    }
}

impl Layer {
    /// The sums of [`LANES`] positions from `from` on.
    #[inline]
    pub(crate) fn sums(
        &self,
        values: &[u32],
        (inputs, from): (&[usize], usize),
        out: &mut [[i32; LANES]; OUTPUTS],
    ) {
        let sum = Sum {
            bias: &self.bias,
            weights: &self.weights,
            inputs,
            from,
        };
        kernel::sums(values, &sum, out);
    }
}
