//! The precision of matrix products, and the switches of a library for it.

#[cfg(not(feature = "libtorch"))]
use std::sync::atomic::{AtomicU32, Ordering};

use burn::tensor::DType;
use serde::{Deserialize, Serialize};

#[cfg(feature = "libtorch")]
use crate::cuda::{allow_tf32, allowed_tf32};

/// The switches of LibTorch as one number: the products of matrices (cuBLAS) and convolutions (cuDNN).
const ALL_SWITCHES: u32 = 0b11;

/// The precision of matrix products; coordinates and sums are always in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// As the tiles are given.
    Full,
    /// With factors of 10 bits on NVIDIA cards under LibTorch (TF32), in full elsewhere.
    Tf32,
    /// 16-bit brain floats in the trunk, with weights kept in full, and the rest as in [`Precision::Tf32`].
    Bf16,
    /// As [`Precision::Bf16`], and 16-bit floats in networks of sines while they are trained, where kernels of our own compute them.
    Half,
}

impl Precision {
    pub(crate) fn trunk(self, full: DType) -> DType {
        match self {
            Self::Full | Self::Tf32 => full,
            Self::Bf16 | Self::Half => DType::BF16,
        }
    }

    /// Lets a library multiply in this precision until the scope ends.
    ///
    /// Its switches are those of the whole process: threads that compute at the same time are in one scope.
    pub fn scope(self) -> PrecisionScope {
        let before = allowed_tf32();
        allow_tf32(if self == Self::Full { 0 } else { ALL_SWITCHES });
        PrecisionScope { before }
    }

    /// Whether the products of this process may be rounded now.
    pub fn may_round() -> bool {
        allowed_tf32() != 0
    }
}

/// Products in one [`Precision`] while this lives; then the switches are as they were before.
#[derive(Debug)]
#[must_use = "the precision ends with its scope"]
pub struct PrecisionScope {
    before: u32,
}

impl Drop for PrecisionScope {
    fn drop(&mut self) {
        allow_tf32(self.before);
    }
}

/// Where no library has switches, what they would be at: scopes are the same in every build.
#[cfg(not(feature = "libtorch"))]
static SWITCHES: AtomicU32 = AtomicU32::new(0);

#[cfg(not(feature = "libtorch"))]
fn allowed_tf32() -> u32 {
    SWITCHES.load(Ordering::Relaxed)
}

#[cfg(not(feature = "libtorch"))]
fn allow_tf32(switches: u32) {
    SWITCHES.store(switches, Ordering::Relaxed);
}
