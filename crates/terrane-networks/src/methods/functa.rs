//! Functa (Dupont et al., 2022): a network of sines shared by all tiles, shifted by a latent that three gradient steps
//! find for each tile; training differentiates through these steps.
//!
//! The gradient with respect to the latent is written out in tensor operations here, because automatic differentiation
//! works once: it differentiates the training loss, and the inner steps with it, to the second order.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::blocks::{
    Check, Dense, Jet, Modulation, Siren, SirenBias, are_depths, are_sizes, is_frequency, linear,
    pixel_grid,
};
use crate::cost::{Account, Convention, FunctaShape};
use crate::field::{Field, FieldUnits};
use crate::init::Init;
use crate::methods::{Method, Precision};
use crate::tape::kept;
use crate::wave::{cosine, sine};

/// Sizes of the method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Side of a tile.
    pub side: usize,
    /// Numbers stored per tile.
    pub latent: usize,
    /// Width of the network.
    pub width: usize,
    /// Sine layers of the network.
    pub sines: usize,
    /// Frequency factor of the sines.
    pub omega: f64,
    /// Gradient steps that find a latent.
    pub inner_steps: usize,
    /// Coordinates of the pixels.
    pub coordinates: Coordinates,
}

/// The range of the pixel coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coordinates {
    /// From 0 to 1, as Functa's authors have it.
    Unit,
    /// From −1 to 1, which doubles the frequencies.
    Symmetric,
}

/// The network.
#[derive(Module, Debug)]
pub struct Functa {
    /// The shared network.
    pub siren: Siren,
    /// The latent to shifts of all sine layers.
    pub modulation: Dense,
    /// Step sizes of the inner loop, one per number of the latent.
    pub inner_rates: Param<Tensor<1>>,
    /// Where the pixels lie.
    points: Tensor<2>,
    side: usize,
    inner_steps: usize,
    is_unit: bool,
}

impl Config {
    /// Refuses sizes that no network can have.
    pub fn check(&self) -> Check {
        are_sizes(&[
            ("method.side", self.side),
            ("method.latent", self.latent),
            ("method.width", self.width),
        ])?;
        are_depths(&[
            ("method.sines", self.sines),
            ("method.inner_steps", self.inner_steps),
        ])?;
        is_frequency("method.omega", self.omega)
    }

    /// Floats that the network and the decoding of a tile take at most, beside the weights.
    pub(crate) fn working_floats(&self) -> u128 {
        let [side, width, sines] = [self.side, self.width, self.sines].map(|size| size as u128);
        let points = side * side;
        points * (8 + 3 * width) + Siren::working_floats(width, sines, 1)
    }

    /// Floats that are kept of one tile until it is differentiated, all inner steps with them.
    pub(crate) fn recorded_floats(&self) -> u128 {
        let [side, width, sines, steps] =
            [self.side, self.width, self.sines, self.inner_steps].map(|size| size as u128);
        side * side * (8 + width * sines * (4 + 8 * steps))
    }

    /// The numbers of a latent, stored as so many tokens of one: each alone would need a step of its own.
    pub fn token_shape(&self) -> [usize; 2] {
        [self.latent, 1]
    }

    /// What the network holds, stores and computes.
    pub fn account(&self, convention: Convention) -> Account {
        FunctaShape {
            side: self.side,
            latent: self.latent,
            siren_width: self.width,
            sine_layers: self.sines,
            inner_steps: self.inner_steps,
        }
        .account(convention)
    }

    /// A network with initial weights.
    pub fn init(&self, init: &mut Init) -> Functa {
        let is_unit = self.coordinates == Coordinates::Unit;
        let points = pixel_grid(init.beside(self.side, 1), init.device());
        Functa {
            siren: Siren::new(self.width, self.sines, self.omega, SirenBias::Zero, init),
            modulation: Dense {
                weight: init.truncated_normal(
                    [self.latent, self.sines * self.width],
                    1.0 / (self.latent as f64).sqrt(),
                ),
                bias: Some(init.constant([self.sines * self.width], 0.0)),
            },
            inner_rates: init.between([self.latent], 0.005, 0.1),
            points: if is_unit {
                points.mul_scalar(0.5).add_scalar(0.5)
            } else {
                points
            },
            side: self.side,
            inner_steps: self.inner_steps,
            is_unit,
        }
    }
}

impl Functa {
    fn points(&self, like: &Tensor<3>) -> Tensor<3> {
        self.points.clone().cast(like.dtype()).unsqueeze()
    }

    /// Shifts `[batch, 1, width]` of every sine layer.
    fn shifts(&self, latents: Tensor<3>) -> Vec<Tensor<3>> {
        let shifts = self.modulation.forward(latents);
        let [_, _, all] = shifts.dims();
        let sines = self.siren.layers.len() - 1;
        let width = all / sines;
        (0..sines)
            .map(|layer| shifts.clone().narrow(2, layer * width, width))
            .collect()
    }

    /// A shift stands inside the product with ω, so its phase is ω times it.
    fn modulations(&self, latents: Tensor<3>) -> Vec<Modulation<3>> {
        let omega = self.siren.omega();
        self.shifts(latents)
            .into_iter()
            .map(|shift| Modulation {
                phase: Some(shift.mul_scalar(omega)),
                ..Modulation::default()
            })
            .collect()
    }

    /// Latents `[batch, 1, latent]` of tokens, which have one number each.
    fn latents(tokens: Tensor<3>) -> Tensor<3> {
        let [batch, count, _] = tokens.dims();
        tokens.reshape([batch, 1, count])
    }

    /// Heights `[batch, points, 1]` of latents `[batch, 1, latent]`, in [0, 1].
    fn heights(&self, latents: Tensor<3>, points: Tensor<3>) -> Tensor<3> {
        self.siren
            .forward(points, &self.modulations(latents))
            .add_scalar(0.5)
    }

    /// The gradient of each tile's own mean square error with respect to its latent.
    fn latent_gradient(
        &self,
        latents: Tensor<3>,
        points: &Tensor<3>,
        targets: &Tensor<3>,
    ) -> Tensor<3> {
        let omega = self.siren.omega();
        let (sines, last) = self.siren.parts();
        let [_, count, _] = targets.dims();

        let mut arguments = Vec::with_capacity(sines.len());
        let mut h = points.clone();
        // ω goes into weights, biases and shifts, which saves passes over all points.
        let weights: Vec<Tensor<2>> = sines
            .iter()
            .map(|layer| kept(layer.weight.val().mul_scalar(omega)))
            .collect();
        for ((layer, weight), shift) in sines.iter().zip(&weights).zip(self.shifts(latents)) {
            let shift = match &layer.bias {
                Some(bias) => shift + bias.val().unsqueeze(),
                None => shift,
            };
            let u = kept(linear(h, weight.clone(), None) + shift.mul_scalar(omega));
            arguments.push(u.clone());
            h = kept(sine(u));
        }
        let error = last.forward(h).add_scalar(0.5) - targets.clone();

        // Backwards from d(mean error²)/d(output) = 2·error/count.
        let transposed = |layer: &Dense| kept(layer.weight.val().transpose());
        let error = kept(error.mul_scalar(2.0 / count as f64));
        let mut gradient = kept(linear(error, transposed(last), None));
        let mut shifts = Vec::with_capacity(sines.len());
        for (index, u) in arguments.into_iter().enumerate().rev() {
            let slope = kept(cosine(u));
            let inner = kept(gradient * slope);
            shifts.push(inner.clone().sum_dim(1).mul_scalar(omega));
            gradient = if index > 0 {
                kept(linear(
                    inner,
                    kept(weights[index].clone().transpose()),
                    None,
                ))
            } else {
                inner
            };
        }
        shifts.reverse();
        linear(
            kept(Tensor::cat(shifts, 2)),
            transposed(&self.modulation),
            None,
        )
    }
}

impl Method for Functa {
    fn encode(&self, tiles: Tensor<3>, _: Precision) -> Tensor<3> {
        let [batch, height, width] = tiles.dims();
        let rates = self.inner_rates.val().cast(tiles.dtype()).clamp(0.0, 1.0);
        let [latent] = rates.dims();
        let rates: Tensor<3> = kept(rates.reshape([1, 1, latent]));
        let points = self.points(&tiles);
        let targets = tiles.reshape([batch, height * width, 1]);
        let mut latents = rates.zeros_like().expand([batch, 1, latent]);
        for _ in 0..self.inner_steps {
            let gradient = self.latent_gradient(latents.clone(), &points, &targets);
            latents = kept(latents - kept(gradient) * rates.clone());
        }
        // A latent is stored as tokens of one number each: they share one step.
        latents.reshape([batch, latent, 1])
    }

    fn decode(&self, tokens: Tensor<3>, _: Precision) -> Tensor<3> {
        let [batch, ..] = tokens.dims();
        let points = self.points(&tokens);
        self.heights(Self::latents(tokens), points)
            .reshape([batch, self.side, self.side])
    }

    fn decode_jet(&self, tokens: Tensor<3>) -> Option<Jet<3>> {
        let [batch, ..] = tokens.dims();
        let points = self.points(&tokens);
        let [_, count, _] = points.dims();
        let points = points.expand([batch, count, 2]);
        let jet = self
            .siren
            .jet(points, &self.modulations(Self::latents(tokens)));
        let mut jet = jet.map(|part| part.reshape([batch, self.side, self.side]));
        jet.value = jet.value.add_scalar(0.5);
        Some(jet.per_pixel(if self.is_unit { 1.0 } else { 2.0 } / self.side as f64))
    }

    fn field(&self, tokens: Tensor<3>) -> Option<Field> {
        let from = if self.is_unit { 0.0 } else { -1.0 };
        let units = FieldUnits {
            patch: self.side,
            from,
            to: 1.0,
            factor: 1.0,
        };
        Some(Field::new(
            &self.siren,
            &self.modulations(Self::latents(tokens)),
            1,
            units,
        ))
    }
}
