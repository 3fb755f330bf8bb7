//! A small network in integers.
//!
//! Weights are whole numbers from −127 to 127, activations from 0 to 127; a sum of their products is divided by 64,
//! rounded half up and cut to that range. The sums run in 32-bit floats, which hold every integer below 2^24 exactly:
//! a layer whose weights could exceed that is refused. So the result does not depend on the order of the additions or
//! on the width of the registers, and machines without integer dot products are as fast as those with.

use crate::planes::{CONSTANTS, LANES, PHASES, dequantiser_taps, head_taps, trunk_taps};
use crate::wavelet::BANDS;
use crate::{Error, Result};

/// Parts of a weight's unit.
pub const WEIGHT_UNIT: f32 = 64.0;
/// The greatest activation and weight.
pub const GREATEST: f32 = 127.0;
/// Integers below this are exact in 32-bit floats.
const EXACT: f32 = 16_777_216.0;
/// Outputs computed side by side.
const TOGETHER: usize = 8;

/// A layer that is fully connected.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    inputs: usize,
    outputs: usize,
    /// `[outputs rounded up to a multiple][inputs]`, in blocks of [`TOGETHER`] outputs: `[block][input][output]`.
    blocks: Vec<f32>,
    bias: Vec<f32>,
}

impl Layer {
    /// A layer with weights `[outputs][inputs]` and a bias in parts of 1/64 of an activation.
    pub fn new(inputs: usize, weights: &[i8], bias: &[i32]) -> Result<Self> {
        let outputs = bias.len();
        if weights.len() != inputs * outputs {
            return Err(Error::Shape {
                expected: inputs * outputs,
                found: weights.len(),
            });
        }
        for (row, &bias) in weights.chunks_exact(inputs.max(1)).zip(bias) {
            let sum: f32 = row.iter().map(|&weight| f32::from(weight).abs()).sum();
            if sum * GREATEST + (bias as f32).abs() + WEIGHT_UNIT >= EXACT {
                return Err(Error::TooLarge);
            }
        }
        let padded = outputs.div_ceil(TOGETHER) * TOGETHER;
        let mut blocks = vec![0.0; padded * inputs];
        for (output, row) in weights.chunks_exact(inputs.max(1)).enumerate() {
            for (input, &weight) in row.iter().enumerate() {
                let block = (output / TOGETHER) * inputs * TOGETHER;
                blocks[block + input * TOGETHER + output % TOGETHER] = f32::from(weight);
            }
        }
        let mut bias: Vec<f32> = bias.iter().map(|&bias| bias as f32).collect();
        bias.resize(padded, 0.0);
        Ok(Self {
            inputs,
            outputs,
            blocks,
            bias,
        })
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The sums for [`LANES`] places at once: inputs `[inputs][LANES]`, `out` `[outputs][LANES]` rounded up to whole
    /// blocks; the first inputs may be constants, which are the same for all places and already part of `bias`.
    #[inline(always)]
    fn sums(&self, skip: usize, bias: &[f32], inputs: &[f32], out: &mut [f32]) {
        const WIDE: usize = 16;
        let count = self.inputs - skip;
        let inputs = &inputs[..count * LANES];
        for (block, out) in out.chunks_exact_mut(TOGETHER * LANES).enumerate() {
            let start = (block * self.inputs + skip) * TOGETHER;
            let weights = &self.blocks[start..start + count * TOGETHER];
            let bias: &[f32; TOGETHER] = bias[block * TOGETHER..][..TOGETHER]
                .try_into()
                .expect("a block has so many outputs");
            for lane in (0..LANES).step_by(WIDE) {
                let mut sums = [[0.0_f32; WIDE]; TOGETHER];
                for (sum, &bias) in sums.iter_mut().zip(bias) {
                    *sum = [bias; WIDE];
                }
                for (weights, inputs) in weights
                    .chunks_exact(TOGETHER)
                    .zip(inputs.chunks_exact(LANES))
                {
                    let weights: &[f32; TOGETHER] =
                        weights.try_into().expect("a chunk has that length");
                    let inputs: &[f32; WIDE] = inputs[lane..lane + WIDE]
                        .try_into()
                        .expect("a slice has that length");
                    for (sum, &weight) in sums.iter_mut().zip(weights) {
                        for (sum, &input) in sum.iter_mut().zip(inputs) {
                            *sum += weight * input;
                        }
                    }
                }
                for (out, sum) in out.chunks_exact_mut(LANES).zip(&sums) {
                    out[lane..lane + WIDE].copy_from_slice(sum);
                }
            }
        }
    }

    /// As [`Layer::sums`], then divided, rounded and cut.
    #[inline(always)]
    fn activations(&self, skip: usize, bias: &[f32], inputs: &[f32], out: &mut [f32]) {
        let out = &mut out[..self.padded() * LANES];
        self.sums(skip, bias, inputs, out);
        for value in out {
            *value = activation(*value);
        }
    }

    fn padded(&self) -> usize {
        self.bias.len()
    }

    /// The bias with constant first inputs worked in.
    fn with_constants(&self, constants: &[f32]) -> Vec<f32> {
        let mut bias = self.bias.clone();
        for (output, bias) in bias.iter_mut().enumerate() {
            let block = (output / TOGETHER) * self.inputs * TOGETHER;
            for (input, constant) in constants.iter().enumerate() {
                *bias += self.blocks[block + input * TOGETHER + output % TOGETHER] * constant;
            }
        }
        bias
    }
}

#[inline(always)]
fn activation(sum: f32) -> f32 {
    let value = (sum as i32 + 32) >> 6;
    value.clamp(0, 127) as f32
}

/// Widths of the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Widths {
    /// How many places around the trunk looks at: 1 or 2.
    pub reach: usize,
    /// Of the trunk's first layer.
    pub stem: usize,
    /// Of the trunk's second layer, which all heads see.
    pub trunk: usize,
    /// Of a head's first layer.
    pub hidden: usize,
    /// Of a head's second layer.
    pub last: usize,
    /// Of the dequantiser's layer; 0 for none.
    pub dequantiser: usize,
}

/// Limit of any width: what a hostile file may ask for.
const MOST_WIDTH: usize = 512;

/// Names a layer and its shape: what trainer, file and network agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerShape {
    /// The name of its arrays in a file, before `.weight` and `.bias`.
    pub name: String,
    /// Number of inputs.
    pub inputs: usize,
    /// Number of outputs.
    pub outputs: usize,
}

impl Widths {
    /// Whether a network of these can be built.
    pub fn is_sound(&self) -> bool {
        let all = [self.stem, self.trunk, self.hidden, self.last];
        (1..=2).contains(&self.reach)
            && all.iter().all(|width| (1..=MOST_WIDTH).contains(width))
            && self.dequantiser <= MOST_WIDTH
    }

    /// All layers in the order in which they stand in a network: two of the trunk, three per head by band and phase,
    /// two of the dequantiser.
    pub fn layers(&self) -> Vec<LayerShape> {
        let layer = |name: String, inputs, outputs| LayerShape {
            name,
            inputs,
            outputs,
        };
        let stem = CONSTANTS + trunk_taps(self.reach).len();
        let mut layers = vec![
            layer("trunk.0".into(), stem, self.stem),
            layer("trunk.1".into(), self.stem, self.trunk),
        ];
        for band in 0..BANDS {
            for phase in 0..PHASES.len() {
                let inputs = self.trunk + head_taps(band, phase).len();
                let name = |layer: usize| format!("head.{band}.{phase}.{layer}");
                layers.push(layer(name(0), inputs, self.hidden));
                layers.push(layer(name(1), self.hidden, self.last));
                layers.push(layer(name(2), self.last, 2));
            }
        }
        if self.dequantiser > 0 {
            let inputs = self.trunk + dequantiser_taps().len();
            layers.push(layer("dequantiser.0".into(), inputs, self.dequantiser));
            layers.push(layer("dequantiser.1".into(), self.dequantiser, BANDS));
        }
        layers
    }
}

/// The network: a trunk that sees the coarser picture, a head per band and phase, and a dequantiser.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Widths of its layers.
    pub widths: Widths,
    layers: Vec<Layer>,
}

/// Sums and activations on their way through the network.
#[derive(Debug)]
pub struct Scratch {
    a: Vec<f32>,
    b: Vec<f32>,
}

impl Scratch {
    /// Room for a network.
    pub fn new(network: &Network) -> Self {
        let widest = network
            .layers
            .iter()
            .map(|layer| layer.inputs.max(layer.padded()))
            .max()
            .unwrap_or(0);
        Self {
            a: vec![0.0; widest * LANES],
            b: vec![0.0; widest * LANES],
        }
    }

    /// Where the inputs go.
    #[inline(always)]
    pub fn inputs(&mut self) -> &mut [f32] {
        &mut self.a
    }
}

impl Network {
    /// A network of layers in the order of [`Widths::layers`].
    pub fn new(widths: Widths, layers: Vec<Layer>) -> Result<Self> {
        let shapes = widths.layers();
        let is_right = layers.len() == shapes.len()
            && layers.iter().zip(&shapes).all(|(layer, shape)| {
                layer.inputs == shape.inputs && layer.outputs == shape.outputs
            });
        if widths.is_sound() && is_right {
            Ok(Self { widths, layers })
        } else {
            Err(Error::Shape {
                expected: shapes.len(),
                found: layers.len(),
            })
        }
    }

    /// The bias of the trunk's first layer on a level.
    pub fn trunk_bias(&self, constants: &[f32; CONSTANTS]) -> Vec<f32> {
        self.layers[0].with_constants(constants)
    }

    /// The trunk for [`LANES`] places whose inputs are in `scratch`, to `out` `[trunk][LANES]`.
    #[inline(always)]
    pub fn trunk<'a>(&self, bias: &[f32], scratch: &'a mut Scratch) -> &'a [f32] {
        let [first, second] = [&self.layers[0], &self.layers[1]];
        first.activations(CONSTANTS, bias, &scratch.a, &mut scratch.b);
        second.activations(0, &second.bias, &scratch.b, &mut scratch.a);
        &scratch.a[..self.widths.trunk * LANES]
    }

    /// Sums for mean and scale of [`LANES`] places of a band's phase, whose inputs are in `scratch`.
    #[inline(always)]
    pub fn head<'a>(&self, band: usize, phase: usize, scratch: &'a mut Scratch) -> &'a [f32] {
        let first = 2 + (band * PHASES.len() + phase) * 3;
        let [a, b, c] = [
            &self.layers[first],
            &self.layers[first + 1],
            &self.layers[first + 2],
        ];
        a.activations(0, &a.bias, &scratch.a, &mut scratch.b);
        b.activations(0, &b.bias, &scratch.b, &mut scratch.a);
        let out = &mut scratch.b[..c.padded() * LANES];
        c.sums(0, &c.bias, &scratch.a, out);
        &out[..2 * LANES]
    }

    /// Sums for the offsets of the three bands at [`LANES`] places, whose inputs are in `scratch`.
    #[inline(always)]
    pub fn dequantiser<'a>(&self, scratch: &'a mut Scratch) -> Option<&'a [f32]> {
        let [.., a, b] = &self.layers[..] else {
            return None;
        };
        if self.widths.dequantiser == 0 {
            return None;
        }
        a.activations(0, &a.bias, &scratch.a, &mut scratch.b);
        let out = &mut scratch.a[..b.padded() * LANES];
        b.sums(0, &b.bias, &scratch.b, out);
        Some(&out[..BANDS * LANES])
    }
}
