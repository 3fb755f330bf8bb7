//! What can go wrong.

/// A fault in a model or in coded bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The coded bytes are wrong.
    #[error(transparent)]
    Format(#[from] terrane_format::Error),
    /// A model's file cannot be read.
    #[error("the model is no safetensors file of a context codec: {reason}")]
    Safetensors {
        /// Why.
        reason: String,
    },
    /// A model's file lacks something.
    #[error("the model has no {what}")]
    Missing {
        /// What it lacks.
        what: String,
    },
    /// Arrays that do not fit together.
    #[error("the model has an array of {found} numbers where {expected} are needed")]
    Shape {
        /// Numbers needed.
        expected: usize,
        /// Numbers found.
        found: usize,
    },
    /// Weights so large that sums would not be exact.
    #[error("the model's weights are too large to be summed exactly")]
    TooLarge,
    /// Symbols of another size than any encoder writes.
    #[error("a tile's payload is malformed: {reason}")]
    Payload {
        /// Why.
        reason: &'static str,
    },
}

/// What a function of this crate gives back.
pub type Result<T, E = Error> = std::result::Result<T, E>;
