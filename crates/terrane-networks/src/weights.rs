//! Weights of a network as named arrays, in safetensors files.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{FloatDType, Tensor, TensorData};
use half::{bf16, f16};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};

use crate::outline::ArrayShape;

/// An array of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its numbers, the last axis fastest.
    pub values: Vec<f32>,
}

/// Named arrays with notes, such as the configuration of the network they belong to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Weights {
    /// The arrays.
    pub arrays: BTreeMap<String, Array>,
    /// The notes.
    pub metadata: BTreeMap<String, String>,
}

/// What can be wrong with weights.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The bytes are no safetensors file.
    #[error("not a safetensors file: {reason}")]
    Malformed {
        /// What is wrong.
        reason: String,
    },
    /// An array is of a type that is no floating-point number.
    #[error("\"{name}\" holds {found}, not floating-point numbers")]
    NotFloat {
        /// Name of the array.
        name: String,
        /// Its type.
        found: String,
    },
    /// The network needs an array that is not there.
    #[error("\"{name}\" is missing")]
    Missing {
        /// Name of the array.
        name: String,
    },
    /// An array has another shape than the network's.
    #[error("\"{name}\" is {found:?}, the network needs {expected:?}")]
    Shape {
        /// Name of the array.
        name: String,
        /// The shape the network needs.
        expected: Vec<usize>,
        /// The shape that is there.
        found: Vec<usize>,
    },
    /// The network has no place for an array.
    #[error("\"{name}\" has no place in the network")]
    Surplus {
        /// Name of the array.
        name: String,
    },
}

impl Weights {
    /// The weights of a network, by the path of each parameter.
    pub fn of(module: &impl Module) -> Self {
        let mut collector = Collector {
            path: Vec::new(),
            arrays: BTreeMap::new(),
        };
        module.visit(&mut collector);
        Self {
            arrays: collector.arrays,
            metadata: BTreeMap::new(),
        }
    }

    /// Refuses weights that are not those of a network with these arrays: every one must be there, and nothing else.
    /// No network is needed for it, so that one is only made where its weights are at hand.
    pub fn check(&self, arrays: &[ArrayShape]) -> Result<(), WeightsError> {
        let mut unused: BTreeMap<&String, &Array> = self.arrays.iter().collect();
        for (name, shape) in arrays {
            let array = unused
                .remove(name)
                .ok_or_else(|| WeightsError::Missing { name: name.clone() })?;
            if array.shape != *shape {
                return Err(WeightsError::Shape {
                    name: name.clone(),
                    expected: shape.clone(),
                    found: array.shape.clone(),
                });
            }
        }
        match unused.into_keys().next() {
            Some(name) => Err(WeightsError::Surplus { name: name.clone() }),
            None => Ok(()),
        }
    }

    /// Puts the weights into a network of the same shape; every parameter must be there, and nothing else.
    pub fn load_into<M: Module>(&self, module: M) -> Result<M, WeightsError> {
        let mut unused: BTreeMap<&String, &Array> = self.arrays.iter().collect();
        let module = fill(module, |name, _| {
            unused
                .remove(&name.to_owned())
                .cloned()
                .ok_or_else(|| WeightsError::Missing {
                    name: name.to_owned(),
                })
        })?;
        match unused.into_keys().next() {
            Some(name) => Err(WeightsError::Surplus { name: name.clone() }),
            None => Ok(module),
        }
    }

    /// Reads a safetensors file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WeightsError> {
        let malformed = |error: safetensors::SafeTensorError| WeightsError::Malformed {
            reason: error.to_string(),
        };
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(malformed)?;
        let metadata = header
            .metadata()
            .clone()
            .unwrap_or_default()
            .into_iter()
            .collect();
        let tensors = SafeTensors::deserialize(bytes).map_err(malformed)?;
        let mut arrays = BTreeMap::new();
        for (name, view) in tensors.tensors() {
            let values = floats(&name, &view)?;
            arrays.insert(
                name,
                Array {
                    shape: view.shape().to_vec(),
                    values,
                },
            );
        }
        Ok(Self { arrays, metadata })
    }

    /// Writes a safetensors file; the same weights give the same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WeightsError> {
        let malformed = |error: safetensors::SafeTensorError| WeightsError::Malformed {
            reason: error.to_string(),
        };
        let bytes: Vec<(&String, &Array, Vec<u8>)> = self
            .arrays
            .iter()
            .map(|(name, array)| {
                (
                    name,
                    array,
                    array
                        .values
                        .iter()
                        .flat_map(|value| value.to_le_bytes())
                        .collect(),
                )
            })
            .collect();
        let views = bytes
            .iter()
            .map(|(name, array, bytes)| {
                Ok((
                    *name,
                    TensorView::new(Dtype::F32, array.shape.clone(), bytes).map_err(malformed)?,
                ))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let metadata =
            (!self.metadata.is_empty()).then(|| self.metadata.clone().into_iter().collect());
        serialize(views, metadata).map_err(malformed)
    }
}

fn floats(name: &str, view: &TensorView) -> Result<Vec<f32>, WeightsError> {
    let bytes = view.data();
    Ok(match view.dtype() {
        Dtype::F32 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|&chunk| f32::from_le_bytes(chunk))
            .collect(),
        Dtype::F64 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|&chunk| f64::from_le_bytes(chunk) as f32)
            .collect(),
        Dtype::BF16 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|&chunk| bf16::from_le_bytes(chunk).to_f32())
            .collect(),
        Dtype::F16 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|&chunk| f16::from_le_bytes(chunk).to_f32())
            .collect(),
        other => {
            return Err(WeightsError::NotFloat {
                name: name.to_owned(),
                found: format!("{other:?}"),
            });
        }
    })
}

/// Fills a network from a source of arrays, which is asked for each parameter by its path and shape.
pub fn fill<M: Module>(
    module: M,
    source: impl FnMut(&str, &[usize]) -> Result<Array, WeightsError>,
) -> Result<M, WeightsError> {
    let mut filler = Filler {
        path: Vec::new(),
        source,
        fault: None,
    };
    let module = module.map(&mut filler);
    match filler.fault {
        Some(fault) => Err(fault),
        None => Ok(module),
    }
}

struct Collector {
    path: Vec<String>,
    arrays: BTreeMap<String, Array>,
}

impl ModuleVisitor for Collector {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let data = param.val().cast(FloatDType::F32).into_data();
        let shape = data.shape().to_vec();
        let values = data.try_to_vec().expect("the tensor was cast to f32");
        self.arrays
            .insert(self.path.join("."), Array { shape, values });
    }

    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
}

struct Filler<S> {
    path: Vec<String>,
    source: S,
    fault: Option<WeightsError>,
}

impl<S: FnMut(&str, &[usize]) -> Result<Array, WeightsError>> ModuleMapper for Filler<S> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.fault.is_some() {
            return param;
        }
        let name = self.path.join(".");
        let expected = param.val().dims().to_vec();
        match (self.source)(&name, &expected) {
            Ok(array) if array.shape == expected => param.map(|old| {
                let new =
                    Tensor::from_data(TensorData::new(array.values, array.shape), &old.device());
                new.set_require_grad(old.is_require_grad())
            }),
            Ok(array) => {
                self.fault = Some(WeightsError::Shape {
                    name,
                    expected,
                    found: array.shape,
                });
                param
            }
            Err(fault) => {
                self.fault = Some(fault);
                param
            }
        }
    }

    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::blocks::Dense;
    use crate::init::Init;

    fn dense(seed: u64) -> Dense {
        Dense::plain(3, 2, &mut Init::new(seed, &Device::flex()))
    }

    #[test]
    fn weights_survive_a_file() {
        let mut weights = Weights::of(&dense(1));
        weights
            .metadata
            .insert("config".into(), "kind = \"dense\"".into());
        assert_eq!(
            weights.arrays.keys().collect::<Vec<_>>(),
            ["bias", "weight"]
        );
        let again = Weights::from_bytes(&weights.to_bytes().unwrap()).unwrap();
        assert_eq!(again, weights);
        let loaded = again.load_into(dense(2)).unwrap();
        assert_eq!(Weights::of(&loaded).arrays, weights.arrays);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let weights = Weights::of(&dense(1));
        let mut missing = weights.clone();
        missing.arrays.remove("bias");
        let mut surplus = weights.clone();
        surplus.arrays.insert(
            "gamma".into(),
            Array {
                shape: vec![1],
                values: vec![0.0],
            },
        );
        let mut shape = weights.clone();
        shape.arrays.insert(
            "bias".into(),
            Array {
                shape: vec![3],
                values: vec![0.0; 3],
            },
        );
        let arrays: Vec<_> = [("weight", vec![3, 2]), ("bias", vec![2])]
            .map(|(name, shape)| (name.to_owned(), shape))
            .into();
        assert_eq!(weights.check(&arrays), Ok(()));
        for other in [&missing, &surplus, &shape] {
            let fault = other.check(&arrays).unwrap_err();
            assert_eq!(fault, other.load_into(dense(2)).unwrap_err());
        }
        assert_eq!(
            missing.load_into(dense(2)).unwrap_err(),
            WeightsError::Missing {
                name: "bias".into()
            }
        );
        assert_eq!(
            surplus.load_into(dense(2)).unwrap_err(),
            WeightsError::Surplus {
                name: "gamma".into()
            }
        );
        assert!(matches!(
            shape.load_into(dense(2)),
            Err(WeightsError::Shape { .. })
        ));
        assert!(matches!(
            Weights::from_bytes(b"nonsense"),
            Err(WeightsError::Malformed { .. })
        ));
    }

    #[test]
    fn half_floats_are_read() {
        let bytes: Vec<u8> = [f16::from_f32(-2.5), f16::from_f32(65504.0)]
            .iter()
            .flat_map(|half| half.to_le_bytes())
            .collect();
        let view = TensorView::new(Dtype::F16, vec![2], &bytes).unwrap();
        assert_eq!(floats("a", &view).unwrap(), [-2.5, 65504.0]);
        let bytes = bf16::from_f32(1.5).to_le_bytes();
        let view = TensorView::new(Dtype::BF16, vec![1], &bytes).unwrap();
        assert_eq!(floats("a", &view).unwrap(), [1.5]);
        let view = TensorView::new(Dtype::I16, vec![1], &bytes).unwrap();
        assert!(matches!(
            floats("a", &view),
            Err(WeightsError::NotFloat { .. })
        ));
    }
}
