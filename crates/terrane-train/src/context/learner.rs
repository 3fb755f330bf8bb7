//! The context network while it learns: floats that behave like the integers they will be.

use burn::module::Module;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor, TensorData};
use terrane_context::{
    BANDS, LayerWeights, MAX_MAGNITUDE, PHASES, SCALE_AT_ZERO, SCALE_PER_UNIT, WEIGHT_UNIT, Widths,
    scale,
};
use terrane_networks::blocks::Dense;
use terrane_networks::init::Init;

use crate::context::samples::{Batch, INPUT_UNIT, Rows};
use crate::{Error, Result};

/// The network while it learns, layer by layer as in [`Widths::layers`].
#[derive(Module, Debug)]
pub(crate) struct ContextLearner {
    layers: Vec<Dense>,
}

/// Rounds to a multiple of 1/`unit`, and lets gradients pass as if it did not.
fn rounded<const D: usize>(value: Tensor<D>, unit: f32) -> Tensor<D> {
    let nearest = value.clone().mul_scalar(unit).round().div_scalar(unit);
    value.clone() + (nearest - value).detach()
}

fn apply(layer: &Dense, x: Tensor<2>) -> Tensor<2> {
    let max = MAX_MAGNITUDE / WEIGHT_UNIT;
    let weight = rounded(layer.weight.val().clamp(-max, max), WEIGHT_UNIT);
    let y = x.matmul(weight);
    match &layer.bias {
        Some(bias) => y + bias.val().unsqueeze(),
        None => y,
    }
}

fn activated(layer: &Dense, x: Tensor<2>) -> Tensor<2> {
    rounded(
        apply(layer, x).clamp(0.0, MAX_MAGNITUDE / INPUT_UNIT),
        INPUT_UNIT,
    )
}

fn tensor(rows: &Rows, device: &Device) -> Tensor<2> {
    let width = rows.values.len() / rows.count.max(1);
    Tensor::from_data(
        TensorData::new(rows.values.clone(), [rows.count, width]),
        device,
    )
}

fn column(values: &[f32], device: &Device) -> Tensor<1> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), device)
}

impl ContextLearner {
    pub(crate) fn new(widths: &Widths, seed: u64, device: &Device) -> Self {
        let mut init = Init::new(seed, device);
        let layers = widths
            .layers()
            .iter()
            .map(|shape| {
                // The last layer of a head starts near 0: an even guess.
                let bound =
                    if shape.outputs <= BANDS { 0.1 } else { 1.7 } / (shape.inputs as f64).sqrt();
                Dense {
                    weight: init.uniform([shape.inputs, shape.outputs], bound),
                    bias: Some(init.constant([shape.outputs], 0.0)),
                }
            })
            .collect();
        Self { layers }
    }

    /// Bits of the heads' samples, each by its weight, and the square error of the dequantiser's.
    pub(crate) fn losses(&self, batch: &Batch, device: &Device) -> (Tensor<1>, Option<Tensor<1>>) {
        let trunk = activated(&self.layers[0], tensor(&batch.trunk, device));
        let trunk = activated(&self.layers[1], trunk);
        let heads = BANDS * PHASES.len();
        let mut first = 0;
        let mut outputs = Vec::with_capacity(heads);
        for (head, rows) in batch.heads.iter().enumerate() {
            let mut x = trunk.clone().narrow(0, first, rows.count);
            if !rows.values.is_empty() {
                x = Tensor::cat(vec![x, tensor(rows, device)], 1);
            }
            first += rows.count;
            let [a, b, c] = [0, 1, 2].map(|layer| &self.layers[2 + head * 3 + layer]);
            outputs.push(apply(c, activated(b, activated(a, x))));
        }
        let outputs = Tensor::cat(outputs, 0);
        let count = first;
        let relative = outputs.clone().narrow(1, 0, 1).reshape([count]);
        let index = outputs.narrow(1, 1, 1).reshape([count]);
        let index = index
            .mul_scalar(SCALE_PER_UNIT)
            .add_scalar(SCALE_AT_ZERO)
            .clamp(0.0, 160.0);
        let octave = (scale(6.0) / scale(0.0)).ln() / 6.0;
        let scale = index.mul_scalar(octave).exp().mul_scalar(scale(0.0));
        let mean = relative.clamp(-3.0, 3.0) * scale.clone();
        // From the nearer side, where a float has its digits.
        let distance = (column(&batch.symbols, device) - mean).abs();
        let inner = sigmoid(distance.clone().sub_scalar(0.5).neg() / scale.clone());
        let outer = sigmoid(distance.add_scalar(0.5).neg() / scale);
        let bits = (inner - outer)
            .clamp_min(1e-7)
            .log()
            .mul_scalar(-std::f64::consts::LOG2_E);
        let bits = (bits * column(&batch.weights, device)).sum();
        let dequantiser = &batch.dequantiser;
        let offsets = (dequantiser.count > 0 && self.layers.len() > 2 + 3 * heads).then(|| {
            let x = trunk.narrow(0, first, dequantiser.count);
            let x = Tensor::cat(vec![x, tensor(dequantiser, device)], 1);
            let [a, b] = [0, 1].map(|layer| &self.layers[2 + 3 * heads + layer]);
            let offsets = apply(b, activated(a, x))
                .clamp(-0.5, 0.5)
                .reshape([BANDS * dequantiser.count]);
            let error = (offsets - column(&batch.offsets, device)).square();
            (error * column(&batch.offset_weights, device)).sum()
        });
        (bits, offsets)
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
                let weight = layer.weight.val().transpose();
                let [outputs, inputs] = weight.dims();
                let weights = read(weight.reshape([outputs * inputs]))?
                    .iter()
                    .map(|weight| {
                        (weight * WEIGHT_UNIT)
                            .round()
                            .clamp(-MAX_MAGNITUDE, MAX_MAGNITUDE) as i8
                    })
                    .collect();
                let bias = match &layer.bias {
                    Some(bias) => read(bias.val())?
                        .iter()
                        .map(|bias| (bias * WEIGHT_UNIT * INPUT_UNIT).round() as i32)
                        .collect(),
                    None => vec![0; outputs],
                };
                Ok(LayerWeights { weights, bias })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use terrane_codec::random::Random;
    use terrane_context::{Codec, ProbabilityModel, Taps, to_bytes};
    use terrane_geo::synthetic::{Recipe, generate};

    use super::*;
    use crate::context::config::{DataConfig, RateConfig};
    use crate::context::samples::draw;

    const WIDTHS: Widths = Widths {
        radius: 2,
        stem: 12,
        trunk: 10,
        hidden: 11,
        last: 9,
        dequantiser: 6,
    };

    /// The trainer's estimate from samples, in floats, is what the coder needs, in integers and bytes.
    #[test]
    fn what_the_trainer_counts_is_what_the_coder_writes() {
        let device = Device::flex();
        let learner = ContextLearner::new(&WIDTHS, 5, &device);
        let bytes = to_bytes("test", &WIDTHS, &learner.weights().unwrap(), &[]).unwrap();
        let codec = Codec::new(ProbabilityModel::from_bytes(&bytes).unwrap());
        let recipe = Recipe {
            width: 128,
            height: 128,
            nodata_corner: false,
            ..Recipe::default()
        };
        let terrain = generate(&recipe);
        let data = DataConfig {
            splits: Vec::new(),
            augment: true,
        };
        let taps = Taps::new(WIDTHS.radius);
        for (seed, lossless) in [(1, 0.0), (2, 0.0), (3, 1.0)] {
            let rate = RateConfig {
                finest: 2e-3,
                coarsest: 2e-2,
                dead_zone: 0.2,
                lossless,
            };
            let mut random = Random::new(seed, 0);
            let drawn = draw(&terrain.heights, 128, &data, &rate, &mut random).unwrap();
            let (bytes, _) = codec.encode(&drawn.tile, drawn.effort, 0);
            let pixels = (drawn.tile.width * drawn.tile.height) as f64;
            let batch = Batch::new(&[drawn], 3000, &taps, &mut random);
            let (bits, _) = learner.losses(&batch, &device);
            let bits: f64 = bits.into_scalar::<f32>().into();
            // The loss is weighed by the rate; undo that with the sum of the weights, which counts the coefficients.
            let weights: f64 = batch.weights.iter().map(|&weight| f64::from(weight)).sum();
            let estimate = bits / weights;
            let coded = bytes.len() as f64 * 8.0 / pixels;
            assert!((estimate / coded - 1.0).abs() < 0.05, "{estimate} {coded}");
        }
    }
}
