//! The context network while it learns: floats that behave like the integers they will be.
//!
//! All levels of a window lie on one canvas, whose layers are computed at once. Activations are counted as the codec counts
//! them, from 0 to 127; a weight of 1 is [`WEIGHT_UNIT`] there.

use burn::module::{Module, Param};
use burn::tensor::activation::log_sigmoid;
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{DType, Device, Int, Slice, Tensor, TensorData};
use terrane_context::{
    BANDS, CHANNELS, CONSTANTS, FARTHEST_MEAN, GROUP, LayerWeights, MAX_MAGNITUDE, MAX_REACH,
    PHASES, SCALE_AT_ZERO, SCALE_PER_UNIT, SUMS, SymbolTap, TAIL_RATIO, TAILS, WEIGHT_UNIT, Widths,
    scale,
};
use terrane_networks::init::Init;
use terrane_networks::tape::{Recording, kept};

use crate::context::canvas::{HEIGHT, PLACES, POSITIONS, WIDTH, level_map};
use crate::context::samples::{
    BYTES, Batch, OFFSET, OWN, RESIDUAL_UNIT, RESIDUALS, SEEN, SIGNED, VALID,
};
use crate::training::differentiation::Differentiation;
use crate::{Error, Result};

/// The network's numbers are integers; the trainer divides them by this where it adds a bias or reads an output.
const UNIT: f64 = 32.0;
/// The codec rounds halves up; floats round them to the even side, unless they are a little more. Sums are multiples of 1/64.
const HALF_UP: f64 = 1.0 / 256.0;
/// No bias is beyond this number of parts.
const MAX_BIAS: i64 = 1 << 24;
/// Symbols of neighbours are seen this far.
const BORDER: usize = MAX_REACH;
/// The largest index of a scale.
const MAX_SCALE: f64 = 110.0;
/// The shape's index at an output of 0, and by how much it grows per unit.
const SHAPE_AT_ZERO: f64 = 2.0;
const SHAPE_PER_UNIT: f64 = 2.0;
/// What a symbol has at least: an escape costs about as much.
const LEAST: f64 = 1e-7;
/// A tail that is more probable than the middle by more than e to this is as good as all.
const FAR: f64 = 80.0;

/// Weights `[outputs][inputs]` and bias of a layer.
#[derive(Module, Debug)]
struct Layer {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

/// The network while it learns, layer by layer as in [`Widths::layers`].
#[derive(Module, Debug)]
pub(crate) struct ContextLearner {
    layers: Vec<Layer>,
}

/// What a step costs.
pub(crate) struct Losses {
    /// Bits of all symbols by what they are worth, and the square errors of the dequantiser.
    pub(crate) bits: Tensor<1>,
    pub(crate) offsets: Option<Tensor<1>>,
    /// Bits per pixel.
    pub(crate) rate: Tensor<1>,
}

/// A batch on a device, as it was sent there.
pub(crate) struct Upload {
    bytes: Tensor<4, Int>,
    symbols: Tensor<4, Int>,
    constants: Tensor<3, Int>,
    worth: Tensor<4>,
    offset_worth: Tensor<4>,
    share: Tensor<4>,
}

impl Upload {
    pub(crate) fn new(batch: Batch, device: &Device) -> Self {
        let count = batch.count;
        let canvas = |channels: usize| [count, HEIGHT, WIDTH, channels];
        let column =
            |values: Vec<f32>| Tensor::from_data(TensorData::new(values, [count, 1, 1, 1]), device);
        let bytes = TensorData::new(batch.bytes, canvas(BYTES));
        let symbols = TensorData::new(batch.symbols, canvas(BANDS));
        let constants = TensorData::new(batch.constants, [count, PLACES.len(), CONSTANTS]);
        Self {
            bytes: Tensor::from_data(bytes, (device, DType::U8)),
            symbols: Tensor::from_data(symbols, (device, DType::I16)),
            constants: Tensor::from_data(constants, (device, DType::U8)),
            worth: column(batch.worth),
            offset_worth: column(batch.offset_worth),
            share: column(batch.share),
        }
    }
}

/// A batch as the network sees it; a canvas is `[windows, channels, rows, columns]` for what convolutions see, and has its
/// channels last otherwise.
pub(crate) struct Canvases {
    inputs: Tensor<4>,
    /// Positive and negative parts of the symbols with zeros after them: two groups of channels.
    seen: Tensor<4>,
    symbols: Tensor<4>,
    residuals: Tensor<4>,
    valid: Tensor<4>,
    own: Tensor<4>,
    has_offset: Tensor<4>,
    constants: Tensor<3>,
    worth: Tensor<4>,
    offset_worth: Tensor<4>,
    share: Tensor<4>,
}

/// `[windows, rows, columns, channels]` of signed numbers as positive and negative parts side by side.
fn parts(signed: Tensor<4>) -> Tensor<4> {
    let [windows, rows, columns, channels] = signed.dims();
    let signed = signed.reshape([windows, rows, columns, channels, 1]);
    let negative = signed.clone().neg().clamp_min(0.0);
    Tensor::cat(vec![signed.clamp_min(0.0), negative], 4).reshape([
        windows,
        rows,
        columns,
        2 * channels,
    ])
}

/// Channels first, as convolutions want them; in memory they stay last.
fn channels_first(tensor: Tensor<4>) -> Tensor<4> {
    tensor.permute([0, 3, 1, 2])
}

fn channels_last(tensor: Tensor<4>) -> Tensor<4> {
    tensor.permute([0, 2, 3, 1])
}

impl Canvases {
    pub(crate) fn new(upload: &Upload, device: &Device) -> Self {
        let bytes = upload.bytes.clone().float();
        let [windows, ..] = bytes.dims();
        let some = |first: usize, count: usize| bytes.clone().narrow(3, first, count);
        let signed = |first: usize, count: usize| some(first, count).sub_scalar(128.0);
        let none = Tensor::zeros([windows, HEIGHT, WIDTH, 2 * GROUP - 2 * BANDS], device);
        let seen = Tensor::cat(vec![parts(signed(SEEN, BANDS)), none], 3);
        Self {
            inputs: channels_first(parts(signed(0, SIGNED))),
            seen: channels_first(seen),
            symbols: upload.symbols.clone().float(),
            residuals: signed(RESIDUALS, BANDS).div_scalar(RESIDUAL_UNIT),
            // A tensor of its own: it is read at every layer.
            valid: channels_first(some(VALID, 1).mul_scalar(1.0)),
            own: some(OWN, BANDS),
            has_offset: some(OFFSET, BANDS),
            constants: upload.constants.clone().float(),
            worth: upload.worth.clone(),
            offset_worth: upload.offset_worth.clone(),
            share: upload.share.clone(),
        }
    }
}

/// Rows and columns of the phases as they follow from each other in memory.
const CORNERS: [[usize; 2]; 4] = [[0, 0], [0, 1], [1, 0], [1, 1]];

/// `[windows, rows, columns, sets × channels]` as `[corners × sets, positions, channels]`.
fn by_phase(tensor: Tensor<4>, sets: usize) -> Tensor<3> {
    let [windows, rows, columns, channels] = tensor.dims();
    let (rows, columns, channels) = (rows / 2, columns / 2, channels / sets);
    tensor
        .reshape([windows, rows, 2, columns, 2, sets, channels])
        .permute([2, 4, 5, 0, 1, 3, 6])
        .reshape([CORNERS.len() * sets, windows * rows * columns, channels])
}

/// Numbers of every symbol in the order of the heads' outputs.
fn in_order(values: Tensor<4>) -> Tensor<1> {
    let count: usize = values.dims().iter().product();
    by_phase(values, BANDS).reshape([count])
}

/// One pass through the network.
struct Pass<'a> {
    learner: &'a ContextLearner,
    widths: &'a Widths,
    differentiation: Differentiation,
    names: Vec<String>,
}

impl<'a> Pass<'a> {
    fn new(
        learner: &'a ContextLearner,
        widths: &'a Widths,
        differentiation: Differentiation,
    ) -> Self {
        let layers = widths.layers();
        Self {
            learner,
            widths,
            differentiation,
            names: layers.into_iter().map(|shape| shape.name).collect(),
        }
    }

    fn layer(&self, name: &str) -> &Layer {
        let index = self.names.iter().position(|other| other == name);
        &self.learner.layers[index.expect("a layer that the widths have")]
    }

    /// The weights of a layer as the integers they will be, times a factor.
    fn weight(&self, name: &str) -> Tensor<2> {
        let max = MAX_MAGNITUDE as i64;
        let weight = self.layer(name).weight.val();
        self.differentiation
            .rounded(weight, f64::from(WEIGHT_UNIT), [-max, max])
    }

    /// The bias of a layer that ends in sums.
    fn bias(&self, name: &str) -> Tensor<1> {
        let bias = self.layer(name).bias.val().mul_scalar(UNIT);
        self.differentiation
            .rounded(bias, f64::from(WEIGHT_UNIT), [-MAX_BIAS, MAX_BIAS])
    }

    /// The bias of a layer that ends in activations.
    fn raised_bias(&self, name: &str) -> Tensor<1> {
        self.bias(name).add_scalar(HALF_UP)
    }

    fn activated<const D: usize>(&self, sums: Tensor<D>) -> Tensor<D> {
        self.differentiation
            .rounded(sums, 1.0, [0, MAX_MAGNITUDE as i64])
    }

    /// The kernel of a convolution over some channels, from the inputs of a layer from one on.
    fn kernel(weight: &Tensor<2>, first: usize, channels: usize) -> Tensor<4> {
        let [outputs, _] = weight.dims();
        weight
            .clone()
            .narrow(1, first, 9 * channels)
            .reshape([outputs, 3, 3, channels])
            .permute([0, 3, 1, 2])
    }

    fn convolved(
        x: Tensor<4>,
        kernel: Tensor<4>,
        bias: Option<Tensor<1>>,
        groups: usize,
    ) -> Tensor<4> {
        conv2d(
            x,
            kernel,
            bias,
            ConvOptions::new([1, 1], [1, 1], [1, 1], groups),
        )
    }

    fn masked(&self, x: Tensor<4>, valid: &Tensor<4>) -> Tensor<4> {
        kept(self.activated(x) * valid.clone())
    }

    fn trunk(&self, canvases: &Canvases) -> Tensor<4> {
        let [windows, ..] = canvases.valid.dims();
        let width = self.widths.trunk;
        let weight = self.weight("trunk.0");
        let kernel = Self::kernel(&weight, CONSTANTS, CHANNELS);
        let sums = Self::convolved(canvases.inputs.clone(), kernel, None, 1);
        // What is the same all over a level.
        let constants = canvases
            .constants
            .clone()
            .reshape([windows * PLACES.len(), CONSTANTS]);
        let bias = kept(constants).matmul(weight.narrow(1, 0, CONSTANTS).transpose());
        let bias = bias + self.raised_bias("trunk.0").unsqueeze();
        let device = canvases.valid.device();
        let map = TensorData::new(level_map(), [1, POSITIONS, PLACES.len()]);
        let map =
            kept(Tensor::<3>::from_data(map, &device).expand([windows, POSITIONS, PLACES.len()]));
        let bias = map.matmul(kept(bias.reshape([windows, PLACES.len(), width])));
        let bias = channels_first(bias.reshape([windows, HEIGHT, WIDTH, width]));
        let mut x = self.masked(sums + bias, &canvases.valid);
        for block in 0..self.widths.blocks {
            let names = [1, 2].map(|layer| format!("trunk.{}", layer + 2 * block));
            x = self.block(x, &canvases.valid, &[names]);
        }
        x
    }

    /// A residual block; of several groups of channels side by side.
    fn block(&self, x: Tensor<4>, valid: &Tensor<4>, names: &[[String; 2]]) -> Tensor<4> {
        let channels = x.dims()[1] / names.len();
        let convolved = |x: Tensor<4>, layer: usize| {
            let kernels = names
                .iter()
                .map(|names| Self::kernel(&self.weight(&names[layer]), 0, channels))
                .collect();
            let biases = names
                .iter()
                .map(|names| self.raised_bias(&names[layer]))
                .collect();
            let bias = Tensor::cat(biases, 0);
            Self::convolved(x, Tensor::cat(kernels, 0), Some(bias), names.len())
        };
        let y = self.masked(convolved(x.clone(), 0), valid);
        let change = convolved(y, 1);
        self.masked(x + change, valid)
    }

    /// What the heads of each band see: the features of all bands side by side, or those of the trunk.
    fn bands(&self, trunk: &Tensor<4>, canvases: &Canvases) -> Tensor<4> {
        let (inputs, width) = (self.widths.trunk, self.widths.band);
        if width == 0 {
            return trunk.clone();
        }
        let device = trunk.device();
        let kernels = (0..BANDS).map(|band| {
            let weight = self.weight(&format!("band.{band}.0"));
            let kernel = Self::kernel(&weight, 0, inputs);
            let symbols = if band == 0 {
                Tensor::zeros([width, GROUP, 3, 3], &device)
            } else {
                // HL alone is known before LH.
                let known = [1.0, 1.0, (band - 1) as f32, (band - 1) as f32];
                let known = Tensor::<1>::from_floats(known, &device).reshape([1, GROUP, 1, 1]);
                Self::kernel(&weight, 9 * inputs, GROUP) * known
            };
            Tensor::cat(vec![kernel, symbols], 1)
        });
        let kernel = Tensor::cat(kernels.collect(), 0);
        let biases = (0..BANDS).map(|band| self.raised_bias(&format!("band.{band}.0")));
        let bias = Tensor::cat(biases.collect(), 0);
        let symbols = canvases.seen.clone().narrow(1, 0, GROUP);
        let inputs = kept(Tensor::cat(vec![trunk.clone(), symbols], 1));
        let mut x = self.masked(
            Self::convolved(inputs, kernel, Some(bias), 1),
            &canvases.valid,
        );
        for block in 0..self.widths.band_blocks {
            let names = [0, 1, 2]
                .map(|band| [1, 2].map(|layer| format!("band.{band}.{}", layer + 2 * block)));
            x = self.block(x, &canvases.valid, &names);
        }
        x
    }

    fn dense(&self, name: &str, x: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
        let weight = kept(self.weight(name).transpose());
        kept(x).matmul(weight) + bias.unsqueeze()
    }

    /// The sums of all heads in the order of [`by_phase`].
    fn heads(&self, features: &Tensor<4>, canvases: &Canvases) -> Tensor<2> {
        let device = features.device();
        let width = self.widths.features();
        let sets = features.dims()[1] / width;
        let [windows, ..] = features.dims();
        let features = if self.widths.look > 0 {
            Features::Around(Box::new(kept(framed(features.clone()))))
        } else {
            let features = by_phase(channels_last(features.clone()), sets);
            let parts = self.differentiation.parts(features).into_iter();
            Features::AtPosition(parts.map(kept).collect())
        };
        let padded = bordered(channels_last(canvases.seen.clone()));
        let layers = if self.widths.last == 0 { 2 } else { 3 };
        let mut outputs = Vec::new();
        for (place, [row, column]) in CORNERS.into_iter().enumerate() {
            let phase = PHASES.iter().position(|&phase| phase == [row, column]);
            let phase = phase.expect("a phase of every row and column");
            // Two bands may see the same symbols.
            let mut seen: Option<(Vec<SymbolTap>, Tensor<2>)> = None;
            for band in 0..BANDS {
                let name = |layer: usize| format!("head.{band}.{phase}.{layer}");
                let weight = self.weight(&name(0));
                let (mut x, first) = match &features {
                    Features::AtPosition(features) => {
                        let of_features = kept(weight.clone().narrow(1, 0, width).transpose());
                        let at_place = features[place * sets + band % sets].clone();
                        (at_place.matmul(of_features), width)
                    }
                    Features::Around(features) => {
                        let of_band = (**features).clone().narrow(1, band % sets * width, width);
                        let kernel = kept(Self::kernel(&weight, 0, width));
                        (around(of_band, kernel, [row, column]), 9 * width)
                    }
                };
                let taps = self.widths.symbol_taps(band, phase);
                if !taps.is_empty() {
                    let known: Vec<f32> = taps
                        .iter()
                        .flat_map(|tap| tap_is_known(tap, band, phase))
                        .collect();
                    let count = known.len();
                    if !seen.as_ref().is_some_and(|(others, _)| *others == taps) {
                        let symbols = taps
                            .iter()
                            .map(|tap| neighbour(&padded, tap, [row, column]));
                        let symbols = Tensor::cat(symbols.collect(), 3);
                        let rows = windows * POSITIONS / PHASES.len();
                        seen = Some((taps, kept(symbols.reshape([rows, count]))));
                    }
                    if let Some((_, symbols)) = &seen {
                        let known = TensorData::new(known, [1, count]);
                        let known = Tensor::<2>::from_data(known, &device);
                        let weight = kept(weight.narrow(1, first, count) * known);
                        x = x + symbols.clone().matmul(kept(weight.transpose()));
                    }
                }
                x = x + self.raised_bias(&name(0)).unsqueeze();
                for layer in 1..layers {
                    let bias = if layer + 1 == layers {
                        self.bias(&name(layer))
                    } else {
                        self.raised_bias(&name(layer))
                    };
                    x = self.dense(&name(layer), self.activated(x), bias);
                }
                outputs.push(x);
            }
        }
        Tensor::cat(outputs, 0)
    }

    fn offsets(&self, trunk: &Tensor<4>, canvases: &Canvases) -> Tensor<4> {
        let (inputs, width) = (self.widths.trunk, self.widths.dequantiser);
        let weight = self.weight("dequantiser.0");
        let is_dense = self.widths.band == 0;
        let first = if is_dense { inputs } else { 9 * inputs };
        let groups = [0, 1].map(|group| Self::kernel(&weight, first + 9 * GROUP * group, GROUP));
        let symbols = Tensor::cat(groups.to_vec(), 1);
        let kernel = if is_dense {
            // At the position alone.
            let centre = weight.narrow(1, 0, inputs).reshape([width, inputs, 1, 1]);
            let beside = || Tensor::zeros([width, inputs, 3, 1], &trunk.device());
            let above = || Tensor::zeros([width, inputs, 1, 1], &trunk.device());
            let middle = Tensor::cat(vec![above(), centre, above()], 2);
            Tensor::cat(vec![beside(), middle, beside()], 3)
        } else {
            Self::kernel(&weight, 0, inputs)
        };
        let kernel = Tensor::cat(vec![kernel, symbols], 1);
        let x = kept(Tensor::cat(vec![trunk.clone(), canvases.seen.clone()], 1));
        let sums = Self::convolved(x, kernel, Some(self.raised_bias("dequantiser.0")), 1);
        let blocks = self.widths.dequantiser_blocks;
        let mut x = if blocks > 0 {
            self.masked(sums, &canvases.valid)
        } else {
            self.activated(sums)
        };
        for block in 0..blocks {
            let names = [1, 2].map(|layer| format!("dequantiser.{}", layer + 2 * block));
            x = self.block(x, &canvases.valid, &[names]);
        }
        let x = channels_last(x);
        let [windows, rows, columns, channels] = x.dims();
        let x = x.reshape([windows * rows * columns, channels]);
        let last = format!("dequantiser.{}", 1 + 2 * blocks);
        let sums = self.dense(&last, x, self.bias(&last));
        let sums = sums.narrow(1, 0, BANDS).div_scalar(UNIT);
        sums.reshape([windows, rows, columns, BANDS])
    }
}

/// What a head sees beside symbols.
enum Features {
    /// At its position, by place and set.
    AtPosition(Vec<Tensor<2>>),
    /// Around it: the canvas with a frame of zeros.
    Around(Box<Tensor<4>>),
}

/// A canvas with one position of zeros all around: `[windows, channels, rows, columns]`.
fn framed(mut tensor: Tensor<4>) -> Tensor<4> {
    for axis in [2, 3] {
        let mut shape = tensor.dims();
        shape[axis] = 1;
        let zeros = Tensor::zeros(shape, &tensor.device());
        tensor = Tensor::cat(vec![zeros.clone(), tensor, zeros], axis);
    }
    tensor
}

/// A convolution of a framed canvas at the positions of one phase: `[positions, outputs]`.
fn around(framed: Tensor<4>, kernel: Tensor<4>, [row, column]: [usize; 2]) -> Tensor<2> {
    let [_, _, rows, columns] = framed.dims();
    // The last row and column that a phase sees, and none beyond.
    let framed = framed
        .narrow(2, row, rows - 1)
        .narrow(3, column, columns - 1);
    let sums = conv2d(
        kept(framed),
        kernel,
        None,
        ConvOptions::new([2, 2], [0, 0], [1, 1], 1),
    );
    let sums = channels_last(kept(sums));
    let [windows, rows, columns, outputs] = sums.dims();
    sums.reshape([windows * rows * columns, outputs])
}

/// With zeros around: `[windows, rows, columns, channels]`.
fn bordered(tensor: Tensor<4>) -> Tensor<4> {
    let mut tensor = tensor;
    for axis in [1, 2] {
        let mut shape = tensor.dims();
        shape[axis] = BORDER;
        let zeros = Tensor::zeros(shape, &tensor.device());
        tensor = Tensor::cat(vec![zeros.clone(), tensor, zeros], axis);
    }
    tensor
}

/// A group of symbols beside every position of a phase.
fn neighbour(padded: &Tensor<4>, tap: &SymbolTap, [row, column]: [usize; 2]) -> Tensor<4> {
    let [_, rows, columns, _] = padded.dims();
    let start = |at: usize, shift: isize| (at + BORDER).wrapping_add_signed(shift);
    let (top, left) = (start(row, tap.down), start(column, tap.right));
    let slices = [
        Slice::from(..),
        Slice::new(
            top as isize,
            Some((top + rows - 2 * BORDER - row) as isize),
            2,
        ),
        Slice::new(
            left as isize,
            Some((left + columns - 2 * BORDER - column) as isize),
            2,
        ),
        Slice::from(GROUP * tap.group..GROUP * (tap.group + 1)),
    ];
    padded.clone().slice(slices)
}

/// Which channels of a group are known when a phase of a band is coded.
fn tap_is_known(tap: &SymbolTap, band: usize, phase: usize) -> [f32; GROUP] {
    let [row, column] = PHASES[phase];
    let of = [
        (row as isize + tap.down) as usize & 1,
        (column as isize + tap.right) as usize & 1,
    ];
    let is_before = PHASES[..phase].contains(&of);
    std::array::from_fn(|channel| {
        let of = 2 * tap.group + channel / 2;
        let is_known = of < band || (of == band && is_before);
        f32::from(u8::from(is_known))
    })
}

/// Bits of symbols whose heads gave these sums.
fn bits(sums: Tensor<2>, symbols: Tensor<1>) -> Tensor<1> {
    let [count] = symbols.dims();
    let sums = kept(sums.div_scalar(UNIT));
    let output = |index: usize| sums.clone().narrow(1, index, 1).reshape([count]);
    let index = output(1)
        .mul_scalar(SCALE_PER_UNIT)
        .add_scalar(SCALE_AT_ZERO);
    let index = kept(kept(index).clamp(0.0, MAX_SCALE));
    let octave = (scale(6.0) / scale(0.0)).ln() / 6.0;
    // One over the scale.
    let sharpness = kept(kept(index.mul_scalar(-octave).exp()).mul_scalar(1.0 / scale(0.0)));
    let mean = kept(output(0)).clamp(-FARTHEST_MEAN, FARTHEST_MEAN);
    let distance = kept((symbols * sharpness.clone() - mean).abs());
    let half = kept(sharpness.mul_scalar(0.5));
    let middle = kept(interval(distance.clone(), half.clone()));
    let tail = kept(interval(
        kept(distance.div_scalar(TAIL_RATIO)),
        kept(half.div_scalar(TAIL_RATIO)),
    ));
    let shape = output(2)
        .mul_scalar(SHAPE_PER_UNIT)
        .add_scalar(SHAPE_AT_ZERO);
    let shape = kept(shape);
    let mut weight: Option<Tensor<1>> = None;
    for (index, pair) in TAILS.windows(2).enumerate() {
        let part = shape.clone().sub_scalar(index as f64);
        let part = kept(part).clamp(0.0, 1.0).mul_scalar(pair[1] - pair[0]);
        weight = Some(match weight {
            Some(sum) => sum + part,
            None => part.add_scalar(TAILS[0]),
        });
    }
    let weight = kept(weight.expect("tails differ"));
    let ratio = kept(kept(tail - middle.clone()).clamp_max(FAR).exp());
    let mixed = kept(kept(weight * ratio.sub_scalar(1.0)).add_scalar(1.0));
    let probability = kept(kept(middle + mixed.log()).exp());
    kept(probability.add_scalar(LEAST))
        .log()
        .mul_scalar(-std::f64::consts::LOG2_E)
}

/// The logarithm of what a logistic distribution has within half a step around a distance from its mean, both in scales:
/// without a difference of numbers near 1, so that it holds far out too.
fn interval(distance: Tensor<1>, half: Tensor<1>) -> Tensor<1> {
    let near = kept(distance.clone() - half.clone());
    let far = kept(distance + half.clone());
    let width = kept(half.mul_scalar(-2.0).exp()).neg().add_scalar(1.0);
    let width = kept(kept(width).clamp_min(1e-7)).log();
    kept(log_sigmoid(near.clone())) + kept(log_sigmoid(far)) + width - near
}

/// Whether a layer starts near 0: the last of a head or dequantiser, which then guesses evenly, and the second of a block,
/// which then changes nothing.
fn starts_quiet(name: &str, outputs: usize) -> bool {
    let number: Option<usize> = name.rsplit('.').next().and_then(|last| last.parse().ok());
    let is_last = outputs == SUMS && number != Some(0);
    if name.starts_with("head") || is_last {
        return is_last;
    }
    number.is_some_and(|number| number > 0 && number % 2 == 0)
}

impl ContextLearner {
    pub(crate) fn new(widths: &Widths, seed: u64, device: &Device) -> Self {
        let mut init = Init::new(seed, device);
        let layers = widths
            .layers()
            .iter()
            .map(|shape| {
                let bound = if starts_quiet(&shape.name, shape.outputs) {
                    0.1
                } else {
                    1.7
                } / (shape.inputs as f64).sqrt();
                Layer {
                    weight: init.uniform([shape.outputs, shape.inputs], bound),
                    bias: init.constant([shape.outputs], 0.0),
                }
            })
            .collect();
        Self { layers }
    }

    /// What a batch costs, with all that its differentiation needs.
    pub(crate) fn losses(
        &self,
        widths: &Widths,
        canvases: &Canvases,
        differentiation: Differentiation,
    ) -> (Losses, Option<Recording>) {
        let recording = differentiation.record();
        let pass = Pass::new(self, widths, differentiation);
        let trunk = pass.trunk(canvases);
        let features = pass.bands(&trunk, canvases);
        let sums = pass.heads(&features, canvases);
        let bits = kept(bits(sums, kept(in_order(canvases.symbols.clone()))));
        let weighed = |column: &Tensor<4>| {
            let weights = in_order(column.clone() * canvases.own.clone());
            (bits.clone() * kept(weights)).sum()
        };
        let offsets = (widths.dequantiser > 0).then(|| {
            let offsets = kept(pass.offsets(&trunk, canvases)).clamp(-0.5, 0.5);
            let error = kept(offsets - canvases.residuals.clone());
            let weights = canvases.offset_worth.clone() * canvases.has_offset.clone();
            (kept(error.square()) * kept(weights)).sum()
        });
        let losses = Losses {
            bits: weighed(&canvases.worth),
            offsets,
            rate: weighed(&canvases.share),
        };
        (losses, recording)
    }

    /// The integers that the weights stand for.
    pub(crate) fn weights(&self) -> Result<Vec<LayerWeights>> {
        let read = |tensor: Tensor<1>| -> Result<Vec<f32>> {
            tensor
                .into_data()
                .try_to_vec()
                .map_err(|error| Error::Device {
                    reason: error.to_string(),
                })
        };
        self.layers
            .iter()
            .map(|layer| {
                let weight = layer.weight.val();
                let count = weight.dims().iter().product::<usize>();
                let max = f64::from(MAX_MAGNITUDE);
                let weights = read(weight.reshape([count]))?
                    .iter()
                    .map(|&weight| {
                        let weight = f64::from(weight) * f64::from(WEIGHT_UNIT);
                        weight.round().clamp(-max, max) as i8
                    })
                    .collect();
                let bias = read(layer.bias.val())?
                    .iter()
                    .map(|&bias| (f64::from(bias) * f64::from(WEIGHT_UNIT) * UNIT).round() as i32)
                    .collect();
                Ok(LayerWeights { weights, bias })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use terrane_codec::random::Random;
    use terrane_context::{Codec, Context, Draft, ProbabilityModel, to_bytes};
    use terrane_geo::synthetic::{Recipe, generate};

    use super::*;
    use crate::context::config::{DataConfig, RateConfig};
    use crate::context::samples::{Drawn, draw};
    use crate::training::differentiation;

    const LARGE: Widths = Widths {
        trunk: 12,
        blocks: 1,
        band: 8,
        band_blocks: 1,
        look: 1,
        hidden: 12,
        last: 8,
        dequantiser: 8,
        dequantiser_blocks: 1,
        reach: 4,
    };
    const SMALL: Widths = Widths {
        trunk: 8,
        blocks: 0,
        band: 0,
        band_blocks: 0,
        look: 0,
        hidden: 8,
        last: 0,
        dequantiser: 4,
        dequantiser_blocks: 0,
        reach: 1,
    };

    fn drawn(seed: u64, lossless: f64) -> Drawn {
        let recipe = Recipe {
            width: 256,
            height: 256,
            nodata_corner: false,
            ..Recipe::default()
        };
        let data = DataConfig {
            splits: Vec::new(),
            max_resolution: 0.0,
            augment: true,
        };
        let rate = RateConfig {
            finest: 2e-3,
            coarsest: 2e-2,
            dead_zone: 0.2,
            lossless,
            chosen: 0.0,
        };
        let mut random = Random::new(seed, 0);
        draw(&generate(&recipe).heights, 256, &data, &rate, &mut random).unwrap()
    }

    /// A network whose layers all matter, and whose guesses are wide enough for every symbol: far out the coder escapes, of
    /// which the trainer knows nothing.
    fn learner(widths: &Widths, spread: f32, device: &Device) -> ContextLearner {
        let differentiation = Differentiation::Burn;
        let mut learner = ContextLearner::new(widths, 5, &differentiation.device(device));
        let mut random = Random::new(3, 0);
        for (layer, shape) in learner.layers.iter_mut().zip(widths.layers()) {
            let is_last = shape.outputs == SUMS && shape.name.starts_with("head");
            let noise = |count: usize, random: &mut Random| -> Vec<f32> {
                let spread = if is_last { spread } else { 0.16 };
                (0..count)
                    .map(|_| spread * (random.unit() as f32 - 0.5))
                    .collect()
            };
            let [outputs, inputs] = layer.weight.dims();
            let weights = TensorData::new(noise(outputs * inputs, &mut random), [outputs, inputs]);
            let mut biases = noise(outputs, &mut random);
            if is_last {
                biases[1] += 2.0;
            }
            let biases = TensorData::new(biases, [outputs]);
            layer.weight = layer.weight.clone().map(|weight| {
                let noise = Tensor::from_data(weights.clone(), &weight.device());
                weight + noise
            });
            layer.bias = layer.bias.clone().map(|bias| {
                let noise = Tensor::from_data(biases.clone(), &bias.device());
                bias + noise
            });
        }
        let weights = differentiation::weights(&learner);
        differentiation.scatter(learner, weights)
    }

    /// What the trainer counts, in floats, is what the coder needs, in integers and bytes.
    #[test]
    fn what_the_trainer_counts_is_what_the_coder_writes() {
        let device = Device::flex();
        for widths in [LARGE, SMALL] {
            let learner = learner(&widths, 0.16, &device);
            let bytes = to_bytes("test", &widths, &learner.weights().unwrap(), &[]).unwrap();
            let codec = Codec::new(ProbabilityModel::from_bytes(&bytes).unwrap());
            for (seed, lossless) in [(1, 0.0), (2, 0.0), (3, 1.0)] {
                let drawn = drawn(seed, lossless);
                let (bytes, _) = codec.encode(&drawn.tile, drawn.effort, 0);
                let mut batch = Batch::new(1);
                batch.set(0, &drawn, &mut Random::new(seed, 1));
                let canvases = Canvases::new(&Upload::new(batch, &device), &device);
                let (losses, _) = learner.losses(&widths, &canvases, Differentiation::Burn);
                let rate: f64 = losses.rate.inner().into_scalar::<f32>().into();
                let coded = bytes.len() as f64 * 8.0 / (256.0 * 256.0);
                assert!((rate / coded - 1.0).abs() < 0.03, "{rate} {coded}");
            }
        }
    }
    /// The trainer's network, in floats, gives the contexts of the codec's, in integers.
    #[test]
    fn contexts_are_those_of_the_codec() {
        let device = Device::flex();
        for widths in [LARGE, SMALL] {
            let learner = learner(&widths, 3.0, &device);
            let bytes = to_bytes("test", &widths, &learner.weights().unwrap(), &[]).unwrap();
            let codec = Codec::new(ProbabilityModel::from_bytes(&bytes).unwrap());
            let drawn = drawn(4, 0.0);
            let finest = Draft::new(&codec, &drawn.tile, drawn.effort)
                .unwrap()
                .choose(drawn.effort);
            let mut batch = Batch::new(1);
            batch.set(0, &drawn, &mut Random::new(1, 1));
            let canvases = Canvases::new(&Upload::new(batch, &device), &device);
            let pass = Pass::new(&learner, &widths, Differentiation::Burn);
            let trunk = pass.trunk(&canvases);
            let features = pass.bands(&trunk, &canvases);
            let sums = pass.heads(&features, &canvases).inner();
            let sums: Vec<f32> = sums.into_data().try_to_vec().unwrap();
            let (mut same, mut others) = (0, std::collections::HashSet::new());
            for (band, contexts) in finest.contexts.iter().enumerate() {
                for (index, context) in contexts.values.iter().enumerate() {
                    let row = PLACES[0].row + index / contexts.width;
                    let column = PLACES[0].column + index % contexts.width;
                    let corner = row % 2 * 2 + column % 2;
                    let place = row / 2 * (WIDTH / 2) + column / 2;
                    let first = ((corner * BANDS + band) * (POSITIONS / 4) + place) * SUMS;
                    let [mean, scale, shape] =
                        [0, 1, 2].map(|sum| (sums[first + sum] * WEIGHT_UNIT).round() as i32);
                    same += usize::from(Context::new(mean, scale, shape) == *context);
                    others.insert(context.table);
                }
            }
            // Floats lose a bit here and there.
            let part = same as f64 / (BANDS * 128 * 128) as f64;
            assert!(part > 0.999 && others.len() > 50, "{part} {}", others.len());
        }
    }
}
