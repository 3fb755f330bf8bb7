//! The model that a file was made with: the context codec's, or a network whose tokens are stored.
//!
//! Networks live in another crate, which a program that reads and writes context and integer files does not need. What
//! a file of tokens needs of them is [`TokenModel`]; [`Networks`] makes one of a model's file.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};
use terrane_context::{Codec, ProbabilityModel};
use terrane_format::{MemoryError, MemoryLimit, Method, TokenTables};

use crate::Error;
use crate::kernel::PixelJet;
use crate::normalise::Normalise;

/// What a file of tokens needs of a trained network.
///
/// The same tokens give the same numbers on whatever thread they are decoded, and however many threads work at once.
pub trait TokenModel: Debug + Send + Sync {
    /// Its method.
    fn method(&self) -> Method;

    /// The name of its configuration.
    fn name(&self) -> &str;

    /// SHA-256 of its file.
    fn sha256(&self) -> [u8; 32];

    /// Side of the tiles it works on.
    fn side(&self) -> usize;

    /// Tokens of a tile as they are stored, and the numbers of each.
    fn token_shape(&self) -> [usize; 2];

    /// How tiles are normalised.
    fn normalise(&self) -> Normalise;

    /// Frequencies of its symbols.
    fn tables(&self) -> &TokenTables;

    /// Memory that a tile takes beside its pixels.
    fn working_bytes(&self) -> u64;

    /// Normalised heights of a tile, row by row, to its tokens.
    fn encode(&self, values: Vec<f32>) -> Result<Vec<f32>, Error>;

    /// Tokens to normalised heights at pixel centres, row by row.
    fn decode(&self, tokens: &[f32]) -> Result<Vec<f64>, Error>;

    /// The continuous surface of tokens; `None` for methods that have none to speak of.
    fn surface(&self, tokens: &[f32]) -> Option<Box<dyn TokenSurface>>;
}

/// The normalised surface of one tile.
pub trait TokenSurface: Debug + Send + Sync {
    /// Value and derivatives at a point in pixels from the tile's corner, which may lie a little outside.
    fn jet(&self, column: f64, row: f64) -> PixelJet;
}

/// A context model that comes with a program, and its file.
type BuiltInContext = (FileModel, &'static [u8]);

/// A network that comes with a program, and its file.
pub type BuiltInNetwork = (Arc<dyn TokenModel>, &'static [u8]);

/// What reads the models of networks.
pub trait Networks: Sync {
    /// Reads a model from the bytes of its file, in so much memory.
    fn load(&self, bytes: &[u8], memory: MemoryLimit) -> Result<Arc<dyn TokenModel>, ModelError>;

    /// The methods of the models that come with it, known without reading them.
    fn built_in_methods(&self) -> &'static [Method];

    /// The models that come with it, with their files.
    fn built_in(&self) -> &[BuiltInNetwork];
}

/// What can be wrong with a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// It is no whole context model.
    #[error(transparent)]
    Context(#[from] terrane_context::Error),
    /// It is no whole model of a network.
    #[error(transparent)]
    Network(Box<dyn std::error::Error + Send + Sync>),
    /// It would take more memory than may be taken.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// This build has no networks.
    #[error(
        "it is the model of a network, and this build of terrane has none: build with the feature `networks`"
    )]
    NoNetworks,
}

/// The models inside this program and the readers of others.
#[derive(Clone, Copy)]
pub struct Models {
    /// Finds a context model inside this program by its hash. A pointer, so that a program which has [`Models::NONE`] alone
    /// does not hold their files.
    context: fn(&[u8; 32]) -> Option<BuiltInContext>,
    networks: Option<&'static dyn Networks>,
}

impl Default for Models {
    fn default() -> Self {
        Self::LIGHT
    }
}

impl Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let has_networks = self.networks.is_some();
        f.debug_struct("Models")
            .field("has_networks", &has_networks)
            .finish_non_exhaustive()
    }
}

impl Models {
    /// None inside the program: a file holds its model, or it is given.
    pub const NONE: Self = Self {
        context: |_| None,
        networks: None,
    };

    /// Context models alone.
    pub const LIGHT: Self = Self {
        context: Profile::find,
        networks: None,
    };

    /// Context models, and networks.
    pub const fn with(networks: &'static dyn Networks) -> Self {
        Self {
            networks: Some(networks),
            ..Self::LIGHT
        }
    }

    /// Whether files of tokens can be read.
    pub fn has_networks(&self) -> bool {
        self.networks.is_some()
    }

    /// Reads a model of either kind from the bytes of its file, in so much memory.
    pub fn load(&self, bytes: &[u8], memory: MemoryLimit) -> Result<FileModel, ModelError> {
        match ContextModel::from_bytes(bytes) {
            Ok(model) => Ok(FileModel::Context(Arc::new(model))),
            // Without widths it is no context model at all, and may be the other kind.
            Err(ModelError::Context(terrane_context::Error::Missing { .. })) => {
                let networks = self.networks.ok_or(ModelError::NoNetworks)?;
                networks.load(bytes, memory).map(FileModel::Tokens)
            }
            Err(error) => Err(error),
        }
    }

    fn networks(&self) -> &'static [BuiltInNetwork] {
        self.networks.map_or(&[], Networks::built_in)
    }

    /// The model inside this program that has a hash.
    pub fn built_in(&self, sha256: &[u8; 32]) -> Option<FileModel> {
        if let Some((model, _)) = (self.context)(sha256) {
            return Some(model);
        }
        let mut networks = self.networks().iter();
        let (model, _) = networks.find(|(model, _)| model.sha256() == *sha256)?;
        Some(FileModel::Tokens(model.clone()))
    }

    /// Whether there is a network of a method inside this program.
    pub fn has_built_in(&self, method: Method) -> bool {
        let networks = self.networks;
        networks.is_some_and(|networks| networks.built_in_methods().contains(&method))
    }

    /// The network of a method inside this program, with its file.
    pub fn built_in_of(&self, method: Method) -> Option<(FileModel, &'static [u8])> {
        let mut networks = self.networks().iter();
        let (model, bytes) = networks.find(|(model, _)| model.method() == method)?;
        Some((FileModel::Tokens(model.clone()), bytes))
    }

    /// The file of the model inside this program that has a hash.
    pub fn built_in_bytes(&self, sha256: &[u8; 32]) -> Option<&'static [u8]> {
        if let Some((_, bytes)) = (self.context)(sha256) {
            return Some(bytes);
        }
        let mut networks = self.networks().iter().map(|&(_, bytes)| bytes);
        networks.find(|bytes| Sha256::digest(bytes)[..] == sha256[..])
    }
}

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

/// The context models inside this program, by what matters most.
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

    /// Its name, as users type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Standard => "standard",
            Self::Best => "best",
        }
    }

    /// What it is for, in a few words.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Fast => "the quickest to decode",
            Self::Standard => "between the two",
            Self::Best => "the smallest files",
        }
    }

    /// The file of its model.
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::Fast => include_bytes!("../models/context-fast.safetensors"),
            Self::Standard => include_bytes!("../models/context.safetensors"),
            Self::Best => include_bytes!("../models/context-best.safetensors"),
        }
    }

    /// The one whose file has a hash, ready to use.
    fn find(sha256: &[u8; 32]) -> Option<BuiltInContext> {
        // Kept: every file that is opened asks.
        static DIGESTS: OnceLock<[[u8; 32]; 3]> = OnceLock::new();
        let digests =
            DIGESTS.get_or_init(|| Self::ALL.map(|profile| Sha256::digest(profile.bytes()).into()));
        let mut all = Self::ALL.into_iter().zip(digests);
        let (profile, _) = all.find(|(_, digest)| *digest == sha256)?;
        Some((profile.model(), profile.bytes()))
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

/// A name that is no profile's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile {name:?}; profiles are fast, standard and best")]
pub struct UnknownProfile {
    /// What was asked for.
    pub name: String,
}

impl std::str::FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        let mut all = Self::ALL.into_iter();
        all.find(|profile| profile.name() == name)
            .ok_or_else(|| UnknownProfile {
                name: name.to_owned(),
            })
    }
}

/// The model of a file.
#[derive(Debug, Clone)]
pub enum FileModel {
    /// A network, whose tokens are stored.
    Tokens(Arc<dyn TokenModel>),
    /// The context codec's.
    Context(Arc<ContextModel>),
}

impl FileModel {
    /// The method that it is for.
    pub fn method(&self) -> Method {
        match self {
            Self::Tokens(model) => model.method(),
            Self::Context(_) => Method::Context,
        }
    }

    /// The name of its configuration.
    pub fn name(&self) -> &str {
        match self {
            Self::Tokens(model) => model.name(),
            Self::Context(model) => &model.name,
        }
    }

    /// SHA-256 of its file.
    pub fn sha256(&self) -> [u8; 32] {
        match self {
            Self::Tokens(model) => model.sha256(),
            Self::Context(model) => model.sha256,
        }
    }

    /// The network, where it is one.
    pub fn tokens(&self) -> Option<&dyn TokenModel> {
        match self {
            Self::Tokens(model) => Some(model.as_ref()),
            Self::Context(_) => None,
        }
    }

    /// The context codec of a file's model, which must be one.
    pub(crate) fn codec(model: Option<&Self>) -> Result<&Codec, Error> {
        model.and_then(Self::context).ok_or(Error::NoModel)
    }

    /// The context codec, where it is one.
    pub fn context(&self) -> Option<&Codec> {
        match self {
            Self::Tokens(_) => None,
            Self::Context(model) => Some(&model.codec),
        }
    }

    /// Memory that a tile of a side takes for what the model sees of it.
    pub(crate) fn working_bytes(&self, side: usize) -> u64 {
        match self {
            Self::Tokens(model) => model.working_bytes(),
            Self::Context(model) => model.codec.map_bytes([side, side]),
        }
    }

    /// The side that tiles must have, where they must.
    pub fn side(&self) -> Option<usize> {
        self.tokens().map(TokenModel::side)
    }
}
