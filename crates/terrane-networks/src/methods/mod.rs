//! The methods: how heights become tokens and come back.
//!
//! A method is one file here and one name in the list below. The list makes [`MethodConfig`] (what a preset says under
//! `[method]`), [`Model`] (the network, whichever it is) and their common behaviour.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

pub use crate::blocks::SettingError;
use crate::blocks::{Check, Jet};
use crate::cost::{Account, Convention};
use crate::field::{Field, patch_weights};
use crate::init::Init;
use crate::outline::{ArrayShape, outline};
pub use crate::precision::{Precision, PrecisionScope};

/// Bytes of a weight in training: itself, its gradient, and the means of both gradient and square.
const OPTIMISED: u128 = 16;

/// What a pass leaves behind for a distillation.
#[derive(Debug)]
pub struct States {
    /// The encoder's output `[batch, 1 + patches, width]`.
    pub encoder: Tensor<3>,
    /// The decoder's state after its first layer.
    pub decoder: Tensor<3>,
    /// The tiles.
    pub output: Tensor<3>,
}

/// What every method does. Tiles are normalised to [0, 1].
pub trait Method: Module {
    /// Tiles `[batch, side, side]` to tokens `[batch, count, channels]`: what is stored.
    fn encode(&self, tiles: Tensor<3>, precision: Precision) -> Tensor<3>;

    /// Tokens to tiles at their pixel centres.
    fn decode(&self, tokens: Tensor<3>, precision: Precision) -> Tensor<3>;

    /// The mean square error of a whole pass, as the start of a differentiation.
    fn square_error(&self, tiles: Tensor<3>, precision: Precision) -> Tensor<1> {
        let tokens = self.encode(tiles.clone(), precision);
        (self.decode(tokens, precision) - tiles).square().mean()
    }

    /// A whole pass with the states that a teacher is compared with; `None` for methods without such states.
    fn forward_states(&self, tiles: Tensor<3>, precision: Precision) -> Option<States> {
        let _ = (tiles, precision);
        None
    }

    /// Tokens to tiles with analytic derivatives per pixel, `[batch, side, side]` each; `None` for methods whose
    /// surface has none to speak of.
    fn decode_jet(&self, tokens: Tensor<3>) -> Option<Jet<3>> {
        let _ = tokens;
        None
    }

    /// The surface of one tile as functions that can be evaluated anywhere; `None` as for [`Method::decode_jet`].
    fn field(&self, tokens: Tensor<3>) -> Option<Field> {
        let _ = tokens;
        None
    }

    /// Every patch of one tile with so many pixels around it, where patches are functions of their own that go on
    /// beyond their borders; `None` for methods without such patches.
    fn decode_overlapping(&self, tokens: Tensor<3>, margin: usize) -> Option<Overlap> {
        let _ = (tokens, margin);
        None
    }
}

/// Patches of a tile with a margin of pixels that their neighbours cover too.
#[derive(Debug, Clone)]
pub struct Overlap {
    /// Side of a patch without its margin.
    pub patch: usize,
    /// Pixels of the margin on each side.
    pub margin: usize,
    /// Normalised heights, patch by patch and row by row, each `patch + 2 · margin` pixels across.
    pub values: Vec<f32>,
}

impl Overlap {
    /// The tile of `side` pixels: along their borders patches pass into each other.
    pub fn blend(&self, side: usize) -> Vec<f64> {
        let &Self { patch, margin, .. } = self;
        let (across, wide) = (side / patch, patch + 2 * margin);
        let all: Vec<_> = (0..side)
            .map(|index| patch_weights(index as f64 + 0.5, across, patch))
            .collect();
        let mut values = Vec::with_capacity(side * side);
        for (row, rows) in all.iter().enumerate() {
            for (column, columns) in all.iter().enumerate() {
                let mut sum = 0.0;
                for &(j, [y, ..]) in rows {
                    for &(i, [x, ..]) in columns {
                        let pixel = (row + margin - j * patch) * wide + column + margin - i * patch;
                        sum +=
                            x * y * f64::from(self.values[(j * across + i) * wide * wide + pixel]);
                    }
                }
                values.push(sum);
            }
        }
        values
    }
}

macro_rules! methods {
    ($($module:ident :: $name:ident),+ $(,)?) => {
        $(pub mod $module;)+

        /// The configuration of a method, chosen by `kind`.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum MethodConfig {
            $(
                #[doc = concat!("See [`", stringify!($module), "`].")]
                $name($module::Config),
            )+
        }

        /// The network of a method.
        #[derive(Module, Debug)]
        #[expect(clippy::large_enum_variant, reason = "there is one, and it is handles to weights")]
        pub enum Model {
            $(
                #[doc = concat!("See [`", stringify!($module), "`].")]
                $name($module::$name),
            )+
        }

        impl MethodConfig {
            /// A network with initial weights drawn from a seed.
            pub fn init(&self, seed: u64, device: &Device) -> Model {
                let mut init = Init::new(seed, device);
                match self {
                    $(Self::$name(config) => Model::$name(config.init(&mut init)),)+
                }
            }

            /// Refuses sizes that no network can have; a model from elsewhere may say anything. Everything else here
            /// is for a configuration that passed.
            pub fn check(&self) -> Check {
                match self {
                    $(Self::$name(config) => config.check(),)+
                }
            }

            /// Whether a network can have these sizes.
            pub fn is_sound(&self) -> bool {
                self.check().is_ok()
            }

            /// Names and shapes of the network's arrays, found without making it: those of [`Weights::of`].
            ///
            /// [`Weights::of`]: crate::weights::Weights::of
            pub fn arrays(&self) -> Result<Vec<ArrayShape>, SettingError> {
                self.check()?;
                Ok(match self {
                    $(Self::$name(config) => outline(|init| Model::$name(config.init(init))),)+
                })
            }

            /// The number of the network's parameters; `None` where no network can have these sizes, or nobody could
            /// count them.
            pub fn parameters(&self) -> Option<u64> {
                let size = |shape: &[usize]| {
                    shape
                        .iter()
                        .try_fold(1_u64, |size, &side| size.checked_mul(side as u64))
                };
                self.arrays()
                    .ok()?
                    .iter()
                    .try_fold(0_u64, |sum, (_, shape)| sum.checked_add(size(shape)?))
            }

            /// Bytes that the network and the decoding of one tile take at most, beside the weights; an estimate that
            /// is up to a few times too high. `None` as for [`MethodConfig::parameters`].
            pub fn working_bytes(&self) -> Option<u64> {
                self.check().ok()?;
                let floats = match self {
                    $(Self::$name(config) => config.working_floats(),)+
                };
                u64::try_from(4 * floats).ok()
            }

            /// Bytes that a training with so many tiles at a time takes, as far as one can tell beforehand: weights
            /// with what the optimiser remembers of them, and what is kept of every tile until it is differentiated.
            /// `None` as for [`MethodConfig::parameters`].
            pub fn training_bytes(&self, batch: usize) -> Option<u64> {
                let floats = match self {
                    $(Self::$name(config) => {
                        config.check().ok()?;
                        config.recorded_floats()
                    })+
                };
                let tiles = 4_u128.checked_mul(floats)?.checked_mul(batch as u128)?;
                let weights = u128::from(self.parameters()?) * OPTIMISED;
                u64::try_from(weights.checked_add(tiles)?).ok()
            }

            /// What the network holds, stores and computes.
            pub fn account(&self, convention: Convention) -> Account {
                match self {
                    $(Self::$name(config) => config.account(convention),)+
                }
            }

            /// Tokens of a tile as they are stored, and the numbers of each.
            pub fn token_shape(&self) -> [usize; 2] {
                match self {
                    $(Self::$name(config) => config.token_shape(),)+
                }
            }

            /// The method as files know it.
            pub fn method(&self) -> terrane_format::Method {
                match self {
                    $(Self::$name(_) => terrane_format::Method::$name,)+
                }
            }

            /// Side of the tiles it works on.
            pub fn side(&self) -> usize {
                match self {
                    $(Self::$name(config) => config.side,)+
                }
            }
        }

        impl Method for Model {
            fn encode(&self, tiles: Tensor<3>, precision: Precision) -> Tensor<3> {
                let _scope = precision.scope();
                match self {
                    $(Self::$name(method) => method.encode(tiles, precision),)+
                }
            }

            fn decode(&self, tokens: Tensor<3>, precision: Precision) -> Tensor<3> {
                let _scope = precision.scope();
                match self {
                    $(Self::$name(method) => method.decode(tokens, precision),)+
                }
            }

            fn square_error(&self, tiles: Tensor<3>, precision: Precision) -> Tensor<1> {
                let _scope = precision.scope();
                match self {
                    $(Self::$name(method) => method.square_error(tiles, precision),)+
                }
            }

            fn forward_states(&self, tiles: Tensor<3>, precision: Precision) -> Option<States> {
                let _scope = precision.scope();
                match self {
                    $(Self::$name(method) => method.forward_states(tiles, precision),)+
                }
            }

            fn decode_jet(&self, tokens: Tensor<3>) -> Option<Jet<3>> {
                let _scope = Precision::Full.scope();
                match self {
                    $(Self::$name(method) => method.decode_jet(tokens),)+
                }
            }

            fn field(&self, tokens: Tensor<3>) -> Option<Field> {
                let _scope = Precision::Full.scope();
                match self {
                    $(Self::$name(method) => method.field(tokens),)+
                }
            }

            fn decode_overlapping(&self, tokens: Tensor<3>, margin: usize) -> Option<Overlap> {
                let _scope = Precision::Full.scope();
                match self {
                    $(Self::$name(method) => method.decode_overlapping(tokens, margin),)+
                }
            }
        }
    };
}

methods! { transinr::TransInr, functa::Functa, huvr::Huvr, huvr_siren::HuvrSiren }
