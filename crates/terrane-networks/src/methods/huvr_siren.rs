//! HUVR+SIREN, the paper's method: a vision transformer gives every patch 32 numbers, which modulate a network of sines.
//!
//! ```text
//! tile ─► 3 channels ─► encoder ─► down ─► tokens ─► up ─► decoder ─► heads ─► α, φ
//!                                  (1+P)×D                            per patch │
//!                                            pixel centres of a patch ─► SIREN ─┴─► patch ─► tile
//! ```

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::blocks::{
    Check, Decoder, DecoderConfig, Dense, Encoder, EncoderConfig, Head, Jet, Modulation, Norm,
    Siren, SirenBias, are_sizes, divides, is_frequency, join_patches, pixel_grid, split_patches,
    through,
};
use crate::cost::{self, Account, Convention, HuvrShape};
use crate::field::{Field, FieldUnits, OVERLAP};
use crate::fused;
use crate::init::Init;
use crate::methods::{Method, Overlap, Precision, States};

/// Sine layers of the network.
const SINES: usize = 3;
/// INCODE's exponents are kept within ± this.
const EXPONENT_BOUND: f64 = 5.0;

/// What the heads control in a sine layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModulationKind {
    /// Amplitude and phase: the paper's choice.
    AmplitudeShift,
    /// Amplitude alone.
    Amplitude,
    /// Phase alone.
    Shift,
    /// Amplitude, frequency, phase and offset, as INCODE does.
    Incode,
}

/// Sizes of the method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Side of a tile.
    pub side: usize,
    /// Side of a patch.
    pub patch: usize,
    /// Numbers stored per patch.
    pub bottleneck: usize,
    /// The encoder.
    pub encoder: EncoderConfig,
    /// The decoder.
    pub decoder: DecoderConfig,
    /// Width of the network of sines.
    pub siren_width: usize,
    /// Frequency factor of the sines.
    pub omega: f64,
    /// What the heads control.
    pub modulation: ModulationKind,
}

/// The network.
#[derive(Module, Debug)]
pub struct HuvrSiren {
    /// One channel to three.
    pub input: Dense,
    /// Patches to tokens.
    pub encoder: Encoder,
    /// Tokens to what is stored; absent where the bottleneck is as wide as the encoder.
    pub down: Option<Head>,
    /// What is stored to the decoder's width; absent where they are equal.
    pub up: Option<Head>,
    /// Tokens to states.
    pub decoder: Decoder,
    /// States to amplitudes, one head per sine layer.
    pub amplitudes: Vec<Head>,
    /// States to phases.
    pub phases: Vec<Head>,
    /// States to INCODE's four parts.
    pub incode: Vec<Head>,
    /// The network of sines, shared by all patches.
    pub siren: Siren,
    /// Pixel centres of a patch.
    points: Tensor<2>,
    side: usize,
    patch: usize,
}

impl Config {
    /// Refuses sizes that no network can have.
    pub fn check(&self) -> Check {
        are_sizes(&[
            ("method.side", self.side),
            ("method.patch", self.patch),
            ("method.bottleneck", self.bottleneck),
            ("method.siren_width", self.siren_width),
        ])?;
        divides(("method.patch", self.patch), ("method.side", self.side))?;
        is_frequency("method.omega", self.omega)?;
        self.encoder.check()?;
        self.decoder.check()
    }

    /// Floats that the network and the decoding of a tile take at most, beside the weights.
    pub(crate) fn working_floats(&self) -> u128 {
        let [side, patch, width, sines, margin] =
            [self.side, self.patch, self.siren_width, SINES, OVERLAP].map(|size| size as u128);
        let patches = (side / patch).pow(2);
        let tokens = patches + 1;
        let parts = match self.modulation {
            ModulationKind::AmplitudeShift => 2,
            ModulationKind::Amplitude | ModulationKind::Shift => 1,
            ModulationKind::Incode => 4,
        };
        let points = patches * (patch + 2 * margin).pow(2);
        self.encoder.table_floats(tokens)
            + self.decoder.working_floats(tokens)
            + points * (4 + 3 * width)
            + patches * parts * Siren::working_floats(width, sines, 0)
            + Siren::working_floats(width, sines, 1)
            + 16 * side * side
    }

    /// Floats that are kept of one tile until it is differentiated.
    pub(crate) fn recorded_floats(&self) -> u128 {
        let [side, patch, width, sines] =
            [self.side, self.patch, self.siren_width, SINES].map(|size| size as u128);
        let patches = (side / patch).pow(2);
        let tokens = patches + 1;
        self.encoder.recorded_floats(tokens, 3 * patch * patch)
            + self.decoder.recorded_floats(tokens)
            + side * side * (12 + 5 * width * sines)
    }

    /// Tokens of a tile, the whole tile's first, and the numbers of each.
    pub fn token_shape(&self) -> [usize; 2] {
        [1 + (self.side / self.patch).pow(2), self.bottleneck]
    }

    /// What the network holds, stores and computes.
    pub fn account(&self, convention: Convention) -> Account {
        HuvrShape {
            side: self.side,
            patch: self.patch,
            encoder: self.encoder.shape(),
            bottleneck: self.bottleneck,
            decoder: self.decoder.shape(),
            decoder_attention: self.decoder.attention_heads > 0,
            modulation: match self.modulation {
                ModulationKind::AmplitudeShift => cost::Modulation::AmplitudeShift,
                ModulationKind::Amplitude => cost::Modulation::Amplitude,
                ModulationKind::Shift => cost::Modulation::Shift,
                ModulationKind::Incode => cost::Modulation::Incode,
            },
            network_width: self.siren_width,
            network_layers: SINES,
            network_features: 2,
        }
        .account(convention)
    }

    /// A network with initial weights.
    pub fn init(&self, init: &mut Init) -> HuvrSiren {
        let &Self {
            side,
            patch,
            bottleneck,
            encoder,
            decoder,
            siren_width,
            omega,
            modulation,
        } = self;
        let input = Dense {
            weight: init.normal([1, 3], std::f64::consts::SQRT_2),
            bias: Some(init.constant([3], 0.0)),
        };
        let encoder_network = Encoder::new(&encoder, side / patch, 3 * patch * patch, init);
        let down =
            (bottleneck != encoder.width).then(|| Head::plain(encoder.width, bottleneck, init));
        let up =
            (bottleneck != decoder.width).then(|| Head::plain(bottleneck, decoder.width, init));
        let decoder_network = Decoder::new(&decoder, init);
        // Heads start constant, so that every patch is the same at first.
        let heads = |is_used: bool, width: usize, bias: f32| -> Vec<Head> {
            (0..if is_used { SINES } else { 0 })
                .map(|_| Head {
                    norm: Norm::new(decoder.width, init),
                    dense: Dense::constant(decoder.width, width, bias, init),
                })
                .collect()
        };
        let amplitudes = heads(
            matches!(
                modulation,
                ModulationKind::AmplitudeShift | ModulationKind::Amplitude
            ),
            siren_width,
            1.0,
        );
        let phases = heads(
            matches!(
                modulation,
                ModulationKind::AmplitudeShift | ModulationKind::Shift
            ),
            siren_width,
            0.0,
        );
        let incode = heads(modulation == ModulationKind::Incode, 4 * siren_width, 0.0);
        HuvrSiren {
            input,
            encoder: encoder_network,
            down,
            up,
            decoder: decoder_network,
            amplitudes,
            phases,
            incode,
            siren: Siren::new(siren_width, SINES, omega, SirenBias::LikeWeights, init),
            points: pixel_grid(init.beside(patch, 1), init.device()),
            side,
            patch,
        }
    }
}

impl HuvrSiren {
    /// The encoder's output `[batch, 1 + patches, width]`.
    fn encoder_output(&self, tiles: Tensor<3>, precision: Precision) -> Tensor<3> {
        let [batch, ..] = tiles.dims();
        let trunk = precision.trunk(tiles.dtype());
        let patches = split_patches(tiles.mul_scalar(2.0).sub_scalar(1.0), self.patch);
        let [_, count, pixels] = patches.dims();
        let dtype = patches.dtype();
        let channel = |values: Tensor<1>| values.cast(dtype).reshape([1, 1, 3, 1]);
        let weight = channel(self.input.weight.val().reshape([3]));
        let mut channels = patches.unsqueeze_dim::<4>(2) * weight;
        if let Some(bias) = &self.input.bias {
            channels = channels + channel(bias.val());
        }
        self.encoder
            .forward(channels.reshape([batch, count, 3 * pixels]), trunk)
    }

    /// Decoder states after every layer, `[batch, 1 + patches, width]`.
    fn states(&self, tokens: Tensor<3>, precision: Precision) -> Vec<Tensor<3>> {
        let x = through(self.up.as_ref(), tokens);
        let trunk = precision.trunk(x.dtype());
        self.decoder.states(x, trunk)
    }

    /// Tiles from the last decoder states.
    fn tiles(&self, states: &Tensor<3>) -> Tensor<3> {
        self.modulated(&self.modulations(states), states)
    }

    /// Tiles of as many and the type that the states have.
    fn modulated(&self, modulations: &[Modulation<3>], states: &Tensor<3>) -> Tensor<3> {
        let [batch, ..] = states.dims();
        let points = self.points.clone().cast(states.dtype());
        let f = self.siren.forward(points.unsqueeze(), modulations);
        let patches = f.reshape([
            batch,
            (self.side / self.patch).pow(2),
            self.patch * self.patch,
        ]);
        join_patches(patches, self.patch)
            .mul_scalar(0.5)
            .add_scalar(0.5)
    }

    /// The modulation of every sine layer, with each part `[batch · patches, 1, width]`.
    fn modulations(&self, states: &Tensor<3>) -> Vec<Modulation<3>> {
        self.modulations_of(&without_tile(states.clone()))
    }

    /// The same from the states of patches alone.
    fn modulations_of(&self, states: &Tensor<3>) -> Vec<Modulation<3>> {
        let part = |heads: &[Head], layer: usize| {
            heads.get(layer).map(|head| {
                let values = head.forward(states.clone());
                let [batch, patches, width] = values.dims();
                values.reshape([batch * patches, 1, width])
            })
        };
        (0..SINES)
            .map(|layer| match part(&self.incode, layer) {
                Some(parts) => {
                    let [_, _, width] = parts.dims();
                    let quarter =
                        |index: usize| parts.clone().narrow(2, index * width / 4, width / 4);
                    let exponential =
                        |values: Tensor<3>| values.clamp(-EXPONENT_BOUND, EXPONENT_BOUND).exp();
                    Modulation {
                        amplitude: Some(exponential(quarter(0))),
                        frequency: Some(exponential(quarter(1))),
                        phase: Some(quarter(2)),
                        offset: Some(quarter(3)),
                    }
                }
                None => Modulation {
                    amplitude: part(&self.amplitudes, layer),
                    phase: part(&self.phases, layer),
                    ..Modulation::default()
                },
            })
            .collect()
    }

    /// Derivatives of the raw output `f` in every patch at points `[points, 2]` of its own coordinates from −1 to 1;
    /// each part is `[batch, patches, points]`.
    pub fn jet_at(&self, tokens: Tensor<3>, points: Tensor<2>) -> Jet<3> {
        let [batch, ..] = tokens.dims();
        let [count, _] = points.dims();
        let states = last(self.states(tokens, Precision::Full));
        let jet = self
            .siren
            .jet(points.unsqueeze(), &self.modulations(&states));
        jet.map(|part| part.reshape([batch, (self.side / self.patch).pow(2), count]))
    }
}

/// Tokens or states of the patches alone: that of the whole tile comes first and is not used.
fn without_tile(all: Tensor<3>) -> Tensor<3> {
    let [_, count, _] = all.dims();
    all.narrow(1, 1, count - 1)
}

/// The last of the decoder's states; every decoder has a layer.
fn last(mut states: Vec<Tensor<3>>) -> Tensor<3> {
    states.swap_remove(states.len() - 1)
}

impl Method for HuvrSiren {
    fn encode(&self, tiles: Tensor<3>, precision: Precision) -> Tensor<3> {
        through(self.down.as_ref(), self.encoder_output(tiles, precision))
    }

    fn decode(&self, tokens: Tensor<3>, precision: Precision) -> Tensor<3> {
        self.tiles(&last(self.states(tokens, precision)))
    }

    fn square_error(&self, tiles: Tensor<3>, precision: Precision) -> Tensor<1> {
        let tokens = self.encode(tiles.clone(), precision);
        // Where states depend on their own token alone, the whole tile's is left out before anything is done with it.
        let states = if self.decoder.has_attention() {
            without_tile(last(self.states(tokens, precision)))
        } else {
            last(self.states(without_tile(tokens), precision))
        };
        let modulations = self.modulations_of(&states);
        let patches = split_patches(tiles.clone(), self.patch);
        let [batch, count, pixels] = patches.dims();
        // In units of the network, whose values are twice the heights.
        let expected = patches
            .reshape([batch * count, pixels])
            .mul_scalar(2.0)
            .sub_scalar(1.0);
        let is_half = precision == Precision::Half;
        match fused::square_error(&self.siren, &self.points, &modulations, &expected, is_half) {
            Some(error) => error.mul_scalar(0.25),
            None => (self.modulated(&modulations, &states) - tiles)
                .square()
                .mean(),
        }
    }

    fn forward_states(&self, tiles: Tensor<3>, precision: Precision) -> Option<States> {
        let encoder = self.encoder_output(tiles, precision);
        let states = self.states(through(self.down.as_ref(), encoder.clone()), precision);
        let decoder = states[0].clone();
        Some(States {
            encoder,
            decoder,
            output: self.tiles(&last(states)),
        })
    }

    fn decode_jet(&self, tokens: Tensor<3>) -> Option<Jet<3>> {
        let points = self.points.clone().cast(tokens.dtype());
        let mut jet = self
            .jet_at(tokens, points)
            .map(|part| join_patches(part, self.patch).mul_scalar(0.5));
        jet.value = jet.value.add_scalar(0.5);
        // A patch spans 2 of its own units, so a pixel is 2/patch of one.
        Some(jet.per_pixel(2.0 / self.patch as f64))
    }

    fn field(&self, tokens: Tensor<3>) -> Option<Field> {
        let states = last(self.states(tokens, Precision::Full));
        let modulations = self.modulations(&states);
        Some(Field::new(
            &self.siren,
            &modulations,
            self.side / self.patch,
            FieldUnits {
                patch: self.patch,
                from: -1.0,
                to: 1.0,
                factor: 0.5,
            },
        ))
    }

    fn decode_overlapping(&self, tokens: Tensor<3>, margin: usize) -> Option<Overlap> {
        let states = last(self.states(tokens, Precision::Full));
        let side = self.patch + 2 * margin;
        let pixel = 2.0 / self.patch as f64;
        let position = |index: usize| (-1.0 + pixel * (index as f64 - margin as f64 + 0.5)) as f32;
        let points: Vec<f32> = (0..side * side)
            .flat_map(|index| [position(index / side), position(index % side)])
            .collect();
        let points =
            Tensor::<2>::from_data(TensorData::new(points, [side * side, 2]), &states.device())
                .cast(states.dtype());
        let f = self
            .siren
            .forward(points.unsqueeze(), &self.modulations(&states))
            .mul_scalar(0.5)
            .add_scalar(0.5);
        let values = f.into_data().convert::<f32>().try_to_vec().ok()?;
        Some(Overlap {
            patch: self.patch,
            margin,
            values,
        })
    }
}
