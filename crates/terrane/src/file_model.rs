//! The model that a file was made with, of whatever kind.

use std::sync::{Arc, OnceLock};

use burn::tensor::Device;
use sha2::{Digest, Sha256};
use terrane_context::{Codec, ProbabilityModel};
use terrane_format::MemoryLimit;

use crate::model::{ModelError, TrainedModel};

/// A context model that is ready to code tiles.
#[derive(Debug)]
pub struct ContextModel {
    /// The name of its configuration.
    pub name: String,
    /// The codec.
    pub codec: Codec,
    /// SHA-256 of its file.
    pub sha256: [u8; 32],
}

/// The models inside this program, by what matters most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Time.
    Fast,
    /// Neither more than the other.
    Standard,
    /// Size.
    Best,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Standard, Self::Best];

    /// The file of its model.
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::Fast => include_bytes!("../models/context-fast.safetensors"),
            Self::Standard => include_bytes!("../models/context.safetensors"),
            Self::Best => include_bytes!("../models/context-best.safetensors"),
        }
    }

    /// Its model.
    pub fn model(self) -> FileModel {
        static MODELS: [OnceLock<Arc<ContextModel>>; 3] = [const { OnceLock::new() }; 3];
        let model = MODELS[self as usize].get_or_init(|| {
            ContextModel::from_bytes(self.bytes())
                .map(Arc::new)
                .expect("the model in the program is whole")
        });
        FileModel::Context(model.clone())
    }
}

impl ContextModel {
    fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        let model = ProbabilityModel::from_bytes(bytes)?;
        Ok(Self {
            name: model.name.clone(),
            codec: Codec::new(model),
            sha256: Sha256::digest(bytes).into(),
        })
    }
}

/// The model of a file.
#[derive(Debug, Clone)]
pub enum FileModel {
    /// A neural representation, whose tokens are stored.
    Network(Arc<TrainedModel>),
    /// The context codec's.
    Context(Arc<ContextModel>),
}

impl FileModel {
    /// Reads a model of either kind from the bytes of its file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        Self::from_bytes_within(bytes, MemoryLimit::default())
    }

    /// As [`FileModel::from_bytes`], where a network may take so much memory.
    pub fn from_bytes_within(bytes: &[u8], memory: MemoryLimit) -> Result<Self, ModelError> {
        match ContextModel::from_bytes(bytes) {
            Ok(model) => Ok(Self::Context(Arc::new(model))),
            // Without widths it is no context model at all, and may be the other kind.
            Err(ModelError::Context(terrane_context::Error::Missing { .. })) => {
                let model = TrainedModel::from_bytes_within(bytes, &Device::flex(), memory)?;
                Ok(Self::Network(Arc::new(model)))
            }
            Err(error) => Err(error),
        }
    }

    /// The model inside this program that has a hash.
    pub fn built_in(sha256: &[u8; 32]) -> Option<Self> {
        // Kept: every file that is opened asks.
        static DIGESTS: OnceLock<[[u8; 32]; 3]> = OnceLock::new();
        let digests = DIGESTS
            .get_or_init(|| Profile::ALL.map(|profile| Sha256::digest(profile.bytes()).into()));
        Profile::ALL
            .into_iter()
            .zip(digests)
            .find(|(_, digest)| *digest == sha256)
            .map(|(profile, _)| profile.model())
            .or_else(|| {
                let network = TrainedModel::built_in();
                (network.sha256 == *sha256).then(|| Self::Network(Arc::new(network.clone())))
            })
    }

    /// The file of the model inside this program that has a hash.
    pub fn built_in_bytes(sha256: &[u8; 32]) -> Option<&'static [u8]> {
        let all = Profile::ALL.map(Profile::bytes);
        all.into_iter()
            .chain([TrainedModel::built_in_bytes()])
            .find(|bytes| Sha256::digest(bytes)[..] == sha256[..])
    }

    /// The name of its configuration.
    pub fn name(&self) -> &str {
        match self {
            Self::Network(model) => &model.name,
            Self::Context(model) => &model.name,
        }
    }

    /// SHA-256 of its file.
    pub fn sha256(&self) -> [u8; 32] {
        match self {
            Self::Network(model) => model.sha256,
            Self::Context(model) => model.sha256,
        }
    }

    /// The network, where it is one.
    pub fn network(&self) -> Option<&TrainedModel> {
        match self {
            Self::Network(model) => Some(model),
            Self::Context(_) => None,
        }
    }

    /// The context codec, where it is one.
    pub fn context(&self) -> Option<&Codec> {
        match self {
            Self::Network(_) => None,
            Self::Context(model) => Some(&model.codec),
        }
    }

    /// Memory that a tile takes beside its pixels.
    pub(crate) fn working_bytes(&self) -> u64 {
        let network = self.network();
        network.map_or(0, |model| model.config.working_bytes().unwrap_or(u64::MAX))
    }

    /// The side that tiles must have, where they must.
    pub fn side(&self) -> Option<usize> {
        self.network().map(|model| model.config.side())
    }
}
