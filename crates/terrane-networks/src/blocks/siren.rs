//! A network of sines whose amplitudes and phases are modulated from outside.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rayon::prelude::*;

use crate::blocks::{Dense, Jet, linear};
use crate::fused;
use crate::init::Init;
use crate::tape::keep;
use crate::wave::sine;

/// Networks that are worth a thread.
const MIN_SHARE: usize = 16;

/// What one sine layer is modulated by; absent parts leave the layer as it is. All are `[…, 1, width]`.
#[derive(Debug, Clone, Default)]
pub struct Modulation<const D: usize> {
    /// Factor on the sine.
    pub amplitude: Option<Tensor<D>>,
    /// Factor on the argument of the sine, before the phase.
    pub frequency: Option<Tensor<D>>,
    /// Added to the argument of the sine.
    pub phase: Option<Tensor<D>>,
    /// Added to the layer's output.
    pub offset: Option<Tensor<D>>,
}

impl<const D: usize> Modulation<D> {
    fn all(&self) -> [&Option<Tensor<D>>; 4] {
        [&self.amplitude, &self.frequency, &self.phase, &self.offset]
    }

    /// How many networks it modulates.
    fn count(&self) -> Option<usize> {
        self.shape().map(|shape| shape[0])
    }

    fn shape(&self) -> Option<[usize; D]> {
        self.all().into_iter().flatten().map(Tensor::dims).next()
    }

    /// That of some of the networks.
    fn narrow(&self, start: usize, count: usize) -> Self {
        let [amplitude, frequency, phase, offset] = self.all().map(|part| {
            part.as_ref()
                .map(|part| part.clone().narrow(0, start, count))
        });
        Self {
            amplitude,
            frequency,
            phase,
            offset,
        }
    }
}

/// Sine layers `2 → width → … → width` and a linear layer to one value.
#[derive(Module, Debug)]
pub struct Siren {
    /// The layers, the last one linear.
    pub layers: Vec<Dense>,
    omega: f64,
}

impl Siren {
    /// `sines` sine layers of `width`, with the first frequencies spread over ±½ and the others over ±√(6/width)/ω.
    pub fn new(width: usize, sines: usize, omega: f64, bias: SirenBias, init: &mut Init) -> Self {
        let mut layer = |inputs: usize, outputs: usize, bound: f64| Dense {
            weight: init.uniform([inputs, outputs], bound),
            bias: Some(match bias {
                SirenBias::LikeWeights => init.uniform([outputs], bound),
                SirenBias::Zero => init.constant([outputs], 0.0),
            }),
        };
        let inner = (6.0 / width as f64).sqrt() / omega;
        let layers = (0..=sines)
            .map(|index| match index {
                0 => layer(2, width, 0.5),
                _ if index < sines => layer(width, width, inner),
                _ => layer(width, 1, inner),
            })
            .collect();
        Self { layers, omega }
    }

    /// Floats of modulations of `sines` layers with one part, and of `networks` copies of the weights.
    pub(crate) fn working_floats(width: u128, sines: u128, networks: u128) -> u128 {
        // Single points are computed with 64 bits: see `Field`.
        let modulations = 6 * sines * width;
        let weights = 3 * width * (width * (sines - 1) + sines + 4);
        modulations + networks * weights
    }

    /// The sine layers and the linear one.
    pub(crate) fn parts(&self) -> (&[Dense], &Dense) {
        let last = self.layers.len() - 1;
        (&self.layers[..last], &self.layers[last])
    }

    /// ω₀, the factor on the argument of every sine.
    pub fn omega(&self) -> f64 {
        self.omega
    }

    /// Values `[…, points, 1]` at points `[…, points, 2]`, each sine layer with its modulation.
    pub fn forward<const D: usize>(
        &self,
        points: Tensor<D>,
        modulations: &[Modulation<D>],
    ) -> Tensor<D> {
        let shared = points.dims()[0] == 1;
        let count = modulations.iter().find_map(Modulation::count).unwrap_or(1);
        // Burn adds and scales on one core; on a CPU the others take a share of the networks. Not where anything is
        // differentiated, which the weights say (devices are equal with and without it): recording is for one thread.
        let device = self.layers[0].weight.val().device();
        let threads = rayon::current_num_threads().min(count / MIN_SHARE);
        if !shared || threads < 2 || device != Device::flex() || device.is_autodiff() {
            return self.part(points, modulations);
        }
        let parts: Vec<Tensor<D>> = (0..threads)
            .into_par_iter()
            .map(|index| {
                let (start, end) = (index * count / threads, (index + 1) * count / threads);
                let modulations: Vec<_> = modulations
                    .iter()
                    .map(|modulation| modulation.narrow(start, end - start))
                    .collect();
                self.part(points.clone(), &modulations)
            })
            .collect();
        Tensor::cat(parts, 0)
    }

    fn part<const D: usize>(&self, points: Tensor<D>, modulations: &[Modulation<D>]) -> Tensor<D> {
        if let Some(values) = fused::values(self, &points, modulations)
            && let Some(mut shape) = modulations.iter().find_map(Modulation::shape)
        {
            shape[D - 2..].copy_from_slice(&[points.dims()[D - 2], 1]);
            return values.reshape(shape);
        }
        let (last, sines) = self
            .layers
            .split_last()
            .expect("a network has a last layer");
        let mut h = points;
        for (layer, modulation) in sines.iter().zip(modulations) {
            h = self.sine(layer, h, modulation);
        }
        last.forward(h)
    }

    fn sine<const D: usize>(
        &self,
        layer: &Dense,
        h: Tensor<D>,
        modulation: &Modulation<D>,
    ) -> Tensor<D> {
        // ω goes into weights and bias, which saves a pass over all points.
        keep(&h);
        let dtype = h.dtype();
        let weight = layer.weight.val().cast(dtype).mul_scalar(self.omega);
        let bias = layer
            .bias
            .as_ref()
            .map(|bias| bias.val().cast(dtype).mul_scalar(self.omega));
        let u = match (bias, &modulation.frequency, &modulation.phase) {
            // Two shifts are one pass over all points.
            (Some(bias), None, Some(phase)) => {
                linear(h, weight, None) + (phase.clone() + bias.unsqueeze())
            }
            (bias, frequency, phase) => {
                let mut u = linear(h, weight, bias);
                if let Some(frequency) = frequency {
                    u = u * frequency.clone();
                }
                if let Some(phase) = phase {
                    u = u + phase.clone();
                }
                u
            }
        };
        keep(&u);
        let mut h = sine(u);
        keep(&h);
        if let Some(amplitude) = &modulation.amplitude {
            h = h * amplitude.clone();
        }
        match &modulation.offset {
            Some(offset) => h + offset.clone(),
            None => h,
        }
    }

    /// Values with their analytic derivatives along the point's row and column.
    pub fn jet<const D: usize>(&self, points: Tensor<D>, modulations: &[Modulation<D>]) -> Jet<D> {
        let (last, sines) = self
            .layers
            .split_last()
            .expect("a network has a last layer");
        let mut h = Jet::identity(points);
        for (layer, modulation) in sines.iter().zip(modulations) {
            let dtype = h.value.dtype();
            let weight = layer.weight.val().cast(dtype).mul_scalar(self.omega);
            let mut u = h.map(|part| linear(part, weight.clone(), None));
            if let Some(bias) = &layer.bias {
                u.value = u.value + bias.val().cast(dtype).mul_scalar(self.omega).unsqueeze();
            }
            if let Some(frequency) = &modulation.frequency {
                u = u.map(|part| part * frequency.clone());
            }
            if let Some(phase) = &modulation.phase {
                u.value = u.value + phase.clone();
            }
            h = u.sin();
            if let Some(amplitude) = &modulation.amplitude {
                h = h.map(|part| part * amplitude.clone());
            }
            if let Some(offset) = &modulation.offset {
                h.value = h.value + offset.clone();
            }
        }
        let dtype = h.value.dtype();
        let weight = last.weight.val().cast(dtype);
        let mut f = h.map(|part| linear(part, weight.clone(), None));
        if let Some(bias) = &last.bias {
            f.value = f.value + bias.val().cast(dtype).unsqueeze();
        }
        f
    }
}

/// How the biases of a network of sines start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SirenBias {
    /// Spread as the weights of their layer (HUVR+SIREN).
    LikeWeights,
    /// At 0 (Functa).
    Zero,
}
