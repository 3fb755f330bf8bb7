//! A trained model: a method's network with its name, its tables, and the hash that files know it by.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use burn::tensor::{Device, Tensor, TensorData};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use terrane_codec::{
    BuiltInNetwork, Error, ModelError, Networks, Normalise, TokenModel, TokenSurface,
};
use terrane_format::tokens::{WIDTHS, alphabet};
use terrane_format::{Error as FormatError, MemoryError, MemoryLimit, TokenTables};

use crate::field::OVERLAP;
use crate::methods::{Method as _, MethodConfig, Model, Precision, SettingError};
use crate::weights::{Array, Weights, WeightsError};

/// The note of a weights file that holds its configuration.
pub const CONFIG_KEY: &str = "config";
/// HUVR+SIREN of the small preset, trained on the training rasters of the benchmark.
const BUILT_IN: &[u8] = include_bytes!("../models/huvr-siren-small.safetensors");

/// A network that is ready to code tiles.
#[derive(Debug, Clone)]
pub struct TrainedModel {
    /// The name of its configuration.
    pub name: String,
    /// The method.
    pub config: MethodConfig,
    /// How tiles are normalised.
    pub normalise: Normalise,
    /// The network.
    pub network: Model,
    /// Frequencies of its symbols.
    pub tables: TokenTables,
    /// SHA-256 of its file.
    pub sha256: [u8; 32],
    /// Where it computes.
    device: Device,
}

/// What can be wrong with the model of a network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The weights are not those of the configuration.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The configuration cannot be read.
    #[error("its configuration cannot be read")]
    Config(#[from] toml::de::Error),
    /// The tables are not those of the network.
    #[error("its tables cannot be used")]
    Tables(#[from] FormatError),
    /// The configuration has sizes that no network can have.
    #[error("its configuration cannot be used")]
    Sizes(#[from] SettingError),
    /// Its network would take more memory than may be taken.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// There are no tables, or not those of the network.
    #[error(
        "it has no tables for its symbols; the command `terrane tables` makes a model that has"
    )]
    NoTables,
}

impl From<NetworkError> for ModelError {
    fn from(error: NetworkError) -> Self {
        match error {
            NetworkError::Memory(error) => Self::Memory(error),
            error => Self::Network(Box::new(error)),
        }
    }
}

/// What a model needs of the configuration it was trained with.
#[derive(Deserialize)]
struct Settings {
    name: String,
    data: DataSettings,
    method: MethodConfig,
}

#[derive(Deserialize)]
struct DataSettings {
    normalise: Normalise,
}

/// The name of the tables of a width in a weights file.
pub fn table_name(bits: u8) -> String {
    format!("tables.int{bits}")
}

/// Tables as arrays of a weights file.
pub fn table_arrays(tables: &TokenTables) -> Vec<(String, Array)> {
    WIDTHS
        .iter()
        .filter_map(|&bits| {
            let tables = tables.of(bits)?;
            let values = tables
                .iter()
                .flat_map(|table| {
                    table
                        .frequencies()
                        .map(|size| size as f32)
                        .collect::<Vec<_>>()
                })
                .collect();
            Some((
                table_name(bits),
                Array {
                    shape: vec![tables.len(), alphabet(bits)],
                    values,
                },
            ))
        })
        .collect()
}

impl TrainedModel {
    /// Reads a model from the bytes of its file.
    pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<Self, NetworkError> {
        Self::from_bytes_within(bytes, device, MemoryLimit::default())
    }

    /// As [`TrainedModel::from_bytes`], where the network may take so much memory.
    pub fn from_bytes_within(
        bytes: &[u8],
        device: &Device,
        memory: MemoryLimit,
    ) -> Result<Self, NetworkError> {
        let mut weights = Weights::from_bytes(bytes)?;
        let missing = || WeightsError::Missing {
            name: CONFIG_KEY.into(),
        };
        let settings: Settings =
            toml::from_str(weights.metadata.get(CONFIG_KEY).ok_or_else(missing)?)?;
        let mut arrays = Vec::new();
        for bits in WIDTHS {
            arrays.push(
                weights
                    .arrays
                    .remove(&table_name(bits))
                    .ok_or(NetworkError::NoTables)?,
            );
        }
        settings.method.check()?;
        let [_, channels] = settings.method.token_shape();
        for (bits, array) in WIDTHS.iter().zip(&arrays) {
            let is_part = |size: &f32| size.fract() == 0.0 && (1.0..65_536.0).contains(size);
            if array.shape != [channels, alphabet(*bits)] || !array.values.iter().all(is_part) {
                return Err(NetworkError::NoTables);
            }
        }
        let tables = TokenTables::from_frequencies(channels, |bits| {
            let index = WIDTHS.iter().position(|&width| width == bits).unwrap_or(0);
            arrays[index]
                .values
                .iter()
                .map(|&size| size as u16)
                .collect()
        })?;
        // Nothing is made before everything that it is made of is there: a small file must not ask for a large network.
        for (name, shape) in settings.method.arrays()? {
            match weights.arrays.get(&name) {
                None => return Err(WeightsError::Missing { name }.into()),
                Some(array) if array.shape != shape => {
                    return Err(WeightsError::Shape {
                        name,
                        expected: shape,
                        found: array.shape.clone(),
                    }
                    .into());
                }
                Some(_) => {}
            }
        }
        let working = settings.method.working_bytes().unwrap_or(u64::MAX);
        memory.check("a tile of this model", working, "")?;
        let network = weights.load_into(settings.method.init(0, device))?;
        Ok(Self {
            name: settings.name,
            config: settings.method,
            normalise: settings.data.normalise,
            network,
            tables,
            sha256: Sha256::digest(bytes).into(),
            device: device.clone(),
        })
    }

    /// The model inside this program: HUVR+SIREN of the small preset.
    pub fn built_in() -> &'static Self {
        static MODEL: LazyLock<TrainedModel> = LazyLock::new(|| {
            TrainedModel::from_bytes(BUILT_IN, &Device::flex())
                .expect("the model in the program is whole")
        });
        &MODEL
    }

    /// The file of the built-in model.
    pub fn built_in_bytes() -> &'static [u8] {
        BUILT_IN
    }

    /// Tokens of a tile and their channels.
    pub fn token_shape(&self) -> [usize; 2] {
        self.config.token_shape()
    }

    fn tokens(&self, tokens: &[f32]) -> Tensor<3> {
        let [count, channels] = self.token_shape();
        let data = TensorData::new(tokens.to_vec(), [1, count, channels]);
        Tensor::from_data(data, &self.device)
    }
}

fn floats(tensor: Tensor<3>) -> Result<Vec<f32>, Error> {
    let data = tensor.into_data().convert::<f32>();
    data.try_to_vec().map_err(|_| Error::Device)
}

/// Runs work on a thread that is alone in its pool: what a network computes must not depend on how many threads share a
/// matrix product.
fn alone<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    // Kept for the next: callers' threads come and go with every strip of a raster.
    static IDLE: Mutex<Vec<ThreadPool>> = Mutex::new(Vec::new());
    let idle = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = idle().pop();
    let pool = match kept {
        Some(pool) => pool,
        None => ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .map_err(|error| Error::Threads(error.to_string()))?,
    };
    let made = pool.install(work);
    idle().push(pool);
    made
}

impl TokenModel for TrainedModel {
    fn method(&self) -> terrane_format::Method {
        self.config.method()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    fn side(&self) -> usize {
        self.config.side()
    }

    fn token_shape(&self) -> [usize; 2] {
        self.config.token_shape()
    }

    fn normalise(&self) -> Normalise {
        self.normalise
    }

    fn tables(&self) -> &TokenTables {
        &self.tables
    }

    fn working_bytes(&self) -> u64 {
        self.config.working_bytes().unwrap_or(u64::MAX)
    }

    fn encode(&self, values: Vec<f32>) -> Result<Vec<f32>, Error> {
        let side = self.config.side();
        alone(|| {
            let data = TensorData::new(values, [1, side, side]);
            let tile = Tensor::from_data(data, &self.device);
            floats(self.network.encode(tile, Precision::Full))
        })
    }

    /// Patches pass into each other along their borders.
    fn decode(&self, tokens: &[f32]) -> Result<Vec<f64>, Error> {
        alone(|| {
            let tokens = self.tokens(tokens);
            if let Some(overlap) = self.network.decode_overlapping(tokens.clone(), OVERLAP) {
                return Ok(overlap.blend(self.config.side()));
            }
            let values = floats(self.network.decode(tokens, Precision::Full))?;
            Ok(values.into_iter().map(f64::from).collect())
        })
    }

    fn surface(&self, tokens: &[f32]) -> Option<Box<dyn TokenSurface>> {
        let field = self.network.field(self.tokens(tokens))?;
        Some(Box::new(field))
    }
}

/// Reads models with burn, on the CPU.
#[derive(Debug)]
pub struct BurnNetworks;

/// The networks of this crate, for [`terrane_codec::Models::with`].
pub static NETWORKS: BurnNetworks = BurnNetworks;

impl Networks for BurnNetworks {
    fn load(&self, bytes: &[u8], memory: MemoryLimit) -> Result<Arc<dyn TokenModel>, ModelError> {
        let model = TrainedModel::from_bytes_within(bytes, &Device::flex(), memory)?;
        Ok(Arc::new(model))
    }

    fn built_in_methods(&self) -> &'static [terrane_format::Method] {
        &[terrane_format::Method::HuvrSiren]
    }

    fn built_in(&self) -> &[BuiltInNetwork] {
        static MODELS: LazyLock<[BuiltInNetwork; 1]> =
            LazyLock::new(|| [(Arc::new(TrainedModel::built_in().clone()) as _, BUILT_IN)]);
        MODELS.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_inside_are_of_the_methods_that_are_said() {
        let models = NETWORKS.built_in().iter();
        let methods: Vec<_> = models.map(|(model, _)| model.method()).collect();
        assert_eq!(methods, NETWORKS.built_in_methods());
    }
}
