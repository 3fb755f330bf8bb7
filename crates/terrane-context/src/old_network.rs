//! A small network in integers.
//!
//! Weights are integers from −127 to 127, activations from 0 to 127; a sum of their products is divided by 64,
//! rounded half up and clamped to that range. The sums run in 32-bit floats, which hold every integer below 2^24 exactly:
//! a layer whose weights could exceed that is refused. So the result does not depend on the order of the additions or
//! on the width of the registers, and machines without integer dot products are as fast as those with.

use std::borrow::Borrow;

use crate::old_planes::{CONSTANTS, LANES, PHASES, dequantiser_taps, head_taps, trunk_taps};
use crate::wavelet::BANDS;
use crate::{Error, Result};

/// Parts of a weight's unit.
pub const WEIGHT_UNIT: f32 = 64.0;
/// The largest magnitude of a weight and of an activation.
pub const MAX_MAGNITUDE: f32 = 127.0;
/// Integers below this are exact in 32-bit floats.
const EXACT: f32 = 16_777_216.0;
/// Outputs and inputs of a block that stays in registers.
const BLOCK: usize = 4;

/// A layer that is fully connected.
#[derive(Debug, Clone, PartialEq)]
pub struct DenseLayer {
    inputs: usize,
    outputs: usize,
    /// By four outputs, then four inputs, `[outputs][inputs]`, both padded with zeros.
    blocks: Vec<[[f32; BLOCK]; BLOCK]>,
    bias: Vec<f32>,
    /// Of the first inputs, which are the same at all positions: `[outputs][constants]`.
    constants: Vec<f32>,
}

impl DenseLayer {
    /// A layer with weights `[outputs][inputs]` and a bias in parts of 1/64 of an activation, whose first inputs are
    /// constants.
    pub fn new(inputs: usize, constants: usize, weights: &[i8], bias: &[i32]) -> Result<Self> {
        let outputs = bias.len();
        if weights.len() != inputs * outputs || inputs <= constants {
            return Err(Error::Shape {
                expected: inputs * outputs,
                found: weights.len(),
            });
        }
        for (row, &bias) in weights.chunks_exact(inputs).zip(bias) {
            let sum: f32 = row.iter().map(|&weight| f32::from(weight).abs()).sum();
            if sum * MAX_MAGNITUDE + (bias as f32).abs() + WEIGHT_UNIT >= EXACT {
                return Err(Error::TooLarge);
            }
        }
        let varying = inputs - constants;
        let across = varying.div_ceil(BLOCK);
        let mut blocks = vec![[[0.0; BLOCK]; BLOCK]; outputs.div_ceil(BLOCK) * across];
        let mut of_constants = Vec::with_capacity(outputs * constants);
        for (output, row) in weights.chunks_exact(inputs).enumerate() {
            let (constant, row) = row.split_at(constants);
            of_constants.extend(constant.iter().map(|&weight| f32::from(weight)));
            for (input, &weight) in row.iter().enumerate() {
                let block = output / BLOCK * across + input / BLOCK;
                blocks[block][output % BLOCK][input % BLOCK] = f32::from(weight);
            }
        }
        Ok(Self {
            inputs,
            outputs,
            blocks,
            bias: bias.iter().map(|&bias| bias as f32).collect(),
            constants: of_constants,
        })
    }

    /// Rows of inputs that are read, of which the last may be padding.
    fn rows_in(&self) -> usize {
        self.blocks.len() / self.outputs.div_ceil(BLOCK).max(1) * BLOCK
    }

    /// Rows of outputs that are written.
    fn rows_out(&self) -> usize {
        self.outputs.next_multiple_of(BLOCK)
    }

    /// The sums for [`LANES`] positions at once: rows of inputs, padded to a multiple of four, to rows of outputs.
    #[inline(always)]
    fn sums<const FUSED: bool>(&self, bias: &[f32], inputs: &[impl Borrow<Row>], out: &mut [Row]) {
        let across = self.rows_in() / BLOCK;
        for ((blocks, out), first) in self
            .blocks
            .chunks_exact(across)
            .zip(out.chunks_exact_mut(BLOCK))
            .zip((0..).step_by(BLOCK))
        {
            let [a, b, c, d] = out else { continue };
            for (row, output) in [&mut *a, &mut *b, &mut *c, &mut *d]
                .into_iter()
                .zip(first..)
            {
                *row = [bias.get(output).copied().unwrap_or(0.0); LANES];
            }
            for (block, inputs) in blocks.iter().zip(inputs.chunks_exact(BLOCK)) {
                let [p, q, r, s] = inputs else { continue };
                let [p, q, r, s]: [&Row; 4] = [p.borrow(), q.borrow(), r.borrow(), s.borrow()];
                let [wa, wb, wc, wd] = block;
                for lane in 0..LANES {
                    let x = [p[lane], q[lane], r[lane], s[lane]];
                    a[lane] = dot::<FUSED>(a[lane], wa, x);
                    b[lane] = dot::<FUSED>(b[lane], wb, x);
                    c[lane] = dot::<FUSED>(c[lane], wc, x);
                    d[lane] = dot::<FUSED>(d[lane], wd, x);
                }
            }
        }
    }

    /// As [`DenseLayer::sums`], then divided, rounded and clamped.
    #[inline(always)]
    fn activations<const FUSED: bool>(
        &self,
        bias: &[f32],
        inputs: &[impl Borrow<Row>],
        out: &mut [Row],
    ) {
        self.sums::<FUSED>(bias, inputs, out);
        for value in out[..self.rows_out()].as_flattened_mut() {
            *value = activation(*value);
        }
    }

    /// The bias with constants worked in.
    fn with_constants(&self, constants: &[f32]) -> Vec<f32> {
        let products = self.constants.chunks_exact(constants.len());
        let sums = products.map(|row| row.iter().zip(constants).map(|(a, b)| a * b).sum::<f32>());
        self.bias
            .iter()
            .zip(sums)
            .map(|(bias, sum)| bias + sum)
            .collect()
    }
}

/// A sum with four products more. All numbers are integers below 2^24, so that fusing changes nothing.
#[inline(always)]
fn dot<const FUSED: bool>(sum: f32, weights: &[f32; BLOCK], x: [f32; BLOCK]) -> f32 {
    if FUSED {
        let sum = weights[0].mul_add(x[0], sum);
        let sum = weights[1].mul_add(x[1], sum);
        let sum = weights[2].mul_add(x[2], sum);
        weights[3].mul_add(x[3], sum)
    } else {
        sum + weights[0] * x[0] + weights[1] * x[1] + weights[2] * x[2] + weights[3] * x[3]
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
    /// Radius of the neighbourhoods that the trunk sees: 1 or 2. Model files call it `reach`.
    #[serde(rename = "reach")]
    pub radius: usize,
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

/// The largest width that a file may ask for.
pub const MAX_WIDTH: usize = 512;

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
    /// Whether a network of these widths can be built.
    pub fn is_sound(&self) -> bool {
        let all = [self.stem, self.trunk, self.hidden, self.last];
        (1..=2).contains(&self.radius)
            && all.iter().all(|width| (1..=MAX_WIDTH).contains(width))
            && self.dequantiser <= MAX_WIDTH
    }

    /// All layers in the order in which they stand in a network: two of the trunk, three per head by band and phase,
    /// two of the dequantiser.
    pub fn layers(&self) -> Vec<LayerShape> {
        let layer = |name: String, inputs, outputs| LayerShape {
            name,
            inputs,
            outputs,
        };
        let stem = CONSTANTS + trunk_taps(self.radius).len();
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

/// The network: a trunk that sees the coarser image, a head per band and phase, and a dequantiser.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Widths of its layers.
    pub widths: Widths,
    layers: Vec<DenseLayer>,
}

/// One number for each of [`LANES`] positions.
pub(crate) type Row = [f32; LANES];

/// Padding of the inputs.
const ZERO: Row = [0.0; LANES];

/// Activations on their way through the network.
#[derive(Debug)]
pub(crate) struct Scratch {
    a: Vec<Row>,
    b: Vec<Row>,
}

impl Scratch {
    /// Room for a network.
    pub(crate) fn new(network: &Network) -> Self {
        let widest = network
            .layers
            .iter()
            .map(|layer| layer.rows_in().max(layer.rows_out()))
            .max()
            .unwrap_or(0);
        Self {
            a: vec![ZERO; widest],
            b: vec![ZERO; widest],
        }
    }
}

/// Rows of inputs, wherever they lie.
pub(crate) struct Inputs<'a> {
    rows: Vec<&'a Row>,
}

impl<'a> Inputs<'a> {
    #[inline(always)]
    pub(crate) fn new(rows: impl Iterator<Item = &'a Row>, count: usize) -> Self {
        let mut all = Vec::with_capacity(count + BLOCK);
        all.extend(rows);
        while !all.len().is_multiple_of(BLOCK) {
            all.push(&ZERO);
        }
        Self { rows: all }
    }
}

impl Network {
    /// A network of layers in the order of [`Widths::layers`].
    pub fn new(widths: Widths, layers: Vec<DenseLayer>) -> Result<Self> {
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
    pub(crate) fn trunk_bias(&self, constants: &[f32; CONSTANTS]) -> Vec<f32> {
        self.layers[0].with_constants(constants)
    }

    /// The trunk for [`LANES`] positions.
    #[inline(always)]
    pub(crate) fn trunk<'a, const FUSED: bool>(
        &self,
        bias: &[f32],
        inputs: &Inputs,
        scratch: &'a mut Scratch,
    ) -> &'a [Row] {
        let [first, second] = [&self.layers[0], &self.layers[1]];
        first.activations::<FUSED>(bias, &inputs.rows, &mut scratch.b);
        second.activations::<FUSED>(&second.bias, &scratch.b, &mut scratch.a);
        &scratch.a[..self.widths.trunk]
    }

    /// Sums for mean and scale of [`LANES`] positions of a band's phase.
    #[inline(always)]
    pub(crate) fn head<'a, const FUSED: bool>(
        &self,
        head: usize,
        inputs: &Inputs,
        scratch: &'a mut Scratch,
    ) -> &'a [Row] {
        let first = 2 + head * 3;
        let [a, b, c] = [
            &self.layers[first],
            &self.layers[first + 1],
            &self.layers[first + 2],
        ];
        a.activations::<FUSED>(&a.bias, &inputs.rows, &mut scratch.b);
        b.activations::<FUSED>(&b.bias, &scratch.b, &mut scratch.a);
        c.sums::<FUSED>(&c.bias, &scratch.a, &mut scratch.b);
        &scratch.b[..2]
    }

    /// Sums for the offsets of the three bands at [`LANES`] positions, where the network has a dequantiser.
    #[inline(always)]
    pub(crate) fn dequantiser<'a, const FUSED: bool>(
        &self,
        inputs: &Inputs,
        scratch: &'a mut Scratch,
    ) -> Option<&'a [Row]> {
        let [.., a, b] = &self.layers[..] else {
            return None;
        };
        if self.widths.dequantiser == 0 {
            return None;
        }
        a.activations::<FUSED>(&a.bias, &inputs.rows, &mut scratch.b);
        b.sums::<FUSED>(&b.bias, &scratch.b, &mut scratch.a);
        Some(&scratch.a[..BANDS])
    }
}
