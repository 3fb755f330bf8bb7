//! Weights from PyTorch checkpoints (.pth, .pt).

use std::path::Path;

use half::{bf16, f16};
use pytorch_reader::{DType, PytorchReader, Tensor};
use terrane_networks::weights::{Array, Weights, WeightsError};

/// Where training scripts put the weights beside other things; the first that is there counts.
const WRAPPERS: [&str; 3] = ["state_dict.", "model.", "module."];

/// Whether a file's name says that PyTorch wrote it.
pub(super) fn is_checkpoint(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "pth" || extension == "pt")
}

/// Reads the weights of a checkpoint, wherever in it they are; what is no floating-point number is passed over.
pub(super) fn read(path: &Path) -> Result<Weights, WeightsError> {
    let malformed = |reason: String| WeightsError::Malformed { reason };
    let reader = PytorchReader::new(path).map_err(|error| malformed(error.to_string()))?;
    let mut tensors: Vec<(String, Tensor)> = reader.into_tensors().into_iter().collect();
    for wrapper in WRAPPERS {
        if tensors.iter().any(|(name, _)| name.starts_with(wrapper)) {
            tensors = tensors
                .into_iter()
                .filter_map(|(name, tensor)| Some((name.strip_prefix(wrapper)?.to_owned(), tensor)))
                .collect();
        }
    }
    let mut weights = Weights::default();
    for (name, tensor) in tensors {
        let bytes = tensor
            .read()
            .map_err(|error| malformed(error.to_string()))?;
        let values: Vec<f32> = match tensor.dtype() {
            DType::F32 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|&chunk| f32::from_ne_bytes(chunk))
                .collect(),
            DType::F64 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|&chunk| f64::from_ne_bytes(chunk) as f32)
                .collect(),
            DType::F16 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|&chunk| f16::from_ne_bytes(chunk).to_f32())
                .collect(),
            DType::BF16 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|&chunk| bf16::from_ne_bytes(chunk).to_f32())
                .collect(),
            _ => continue,
        };
        weights.arrays.insert(
            name,
            Array {
                shape: tensor.shape().to_vec(),
                values,
            },
        );
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_training_checkpoint_gives_its_weights() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checkpoints/tiny.pth");
        assert!(is_checkpoint(&path));
        let weights = read(&path).unwrap();
        let names: Vec<&String> = weights.arrays.keys().collect();
        assert_eq!(
            names,
            ["layer.brain", "layer.half", "layer.turned", "layer.weight"]
        );
        assert_eq!(weights.arrays["layer.weight"].shape, [2, 3]);
        assert_eq!(
            weights.arrays["layer.turned"].values,
            [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
        );
        assert_eq!(weights.arrays["layer.half"].values, [0.5, -2.0]);
        assert_eq!(weights.arrays["layer.brain"].values, [1.5]);
    }

    #[test]
    fn what_is_no_checkpoint_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pth");
        std::fs::write(&path, b"no checkpoint").unwrap();
        assert!(matches!(read(&path), Err(WeightsError::Malformed { .. })));
    }
}
