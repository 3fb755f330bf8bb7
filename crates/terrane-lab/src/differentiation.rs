//! Who differentiates the loss: Burn, or the library behind the device where that has fused kernels for it.
//!
//! Burn differentiates operation by operation. LibTorch's own differentiation has one kernel for what Burn takes ten
//! for (normalisation, attention), so on its devices the loss is left to it; the network is the same code.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use terrane::tape::Recording;

#[cfg(feature = "libtorch")]
use crate::libtorch;

/// Who differentiates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Differentiation {
    /// Burn.
    Burn,
    /// LibTorch.
    #[cfg(feature = "libtorch")]
    LibTorch,
}

impl Differentiation {
    /// Who differentiates best on a device.
    pub fn on(device: &Device) -> Self {
        #[cfg(feature = "libtorch")]
        if libtorch::is_on(device) {
            return Self::LibTorch;
        }
        let _ = device;
        Self::Burn
    }

    /// The device on which a network learns.
    pub fn device(self, device: &Device) -> Device {
        match self {
            Self::Burn => device.clone().autodiff(),
            #[cfg(feature = "libtorch")]
            Self::LibTorch => device.clone(),
        }
    }

    /// Keeps what the next pass computes for as long as its differentiation needs it.
    pub fn record(self) -> Option<Recording> {
        match self {
            Self::Burn => None,
            #[cfg(feature = "libtorch")]
            Self::LibTorch => Some(Recording::start()),
        }
    }

    /// Puts one vector into the weights of a network, which then wait for gradients.
    pub fn scatter<M: Module>(self, module: M, weights: Tensor<1>) -> M {
        module.map(&mut Scatterer {
            weights,
            place: 0,
            receiver: Some(self),
        })
    }

    /// The gradient of a loss as one vector, in the order of the network's weights.
    pub fn gradient(self, loss: &Tensor<1>, module: &impl Module) -> Tensor<1> {
        let source = match self {
            Self::Burn => Source::Burn(loss.backward()),
            #[cfg(feature = "libtorch")]
            Self::LibTorch => {
                libtorch::backward(loss.clone());
                Source::LibTorch
            }
        };
        gather(module, source)
    }
}

/// All weights of a network as one vector.
pub fn weights(module: &impl Module) -> Tensor<1> {
    gather(module, Source::Weights)
}

/// Puts one vector into the weights of a network that is not to learn.
pub fn scatter_fixed<M: Module>(module: M, weights: Tensor<1>) -> M {
    module
        .map(&mut Scatterer {
            weights,
            place: 0,
            receiver: None,
        })
        .valid()
}

enum Source {
    Weights,
    Burn(Gradients),
    #[cfg(feature = "libtorch")]
    LibTorch,
}

fn gather(module: &impl Module, source: Source) -> Tensor<1> {
    let mut gatherer = Gatherer {
        source,
        parts: Vec::new(),
    };
    module.visit(&mut gatherer);
    Tensor::cat(gatherer.parts, 0)
}

struct Gatherer {
    source: Source,
    parts: Vec<Tensor<1>>,
}

impl ModuleVisitor for Gatherer {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let count: usize = value.dims().iter().product();
        // A weight that the loss does not depend on has a gradient of 0.
        let part = match &mut self.source {
            Source::Weights => value.inner(),
            Source::Burn(gradients) => value
                .grad_remove(gradients)
                .unwrap_or_else(|| value.inner().zeros_like()),
            #[cfg(feature = "libtorch")]
            Source::LibTorch => libtorch::gradient(value),
        };
        self.parts.push(part.reshape([count]));
    }
}

struct Scatterer {
    weights: Tensor<1>,
    place: usize,
    /// Who will differentiate, or nobody.
    receiver: Option<Differentiation>,
}

impl ModuleMapper for Scatterer {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|old| {
            let shape = old.dims();
            let count: usize = shape.iter().product();
            let part = self
                .weights
                .clone()
                .narrow(0, self.place, count)
                .reshape(shape);
            self.place += count;
            match self.receiver {
                Some(Differentiation::Burn) => part.autodiff().require_grad(),
                #[cfg(feature = "libtorch")]
                Some(Differentiation::LibTorch) => libtorch::leaf(part),
                None => part,
            }
        })
    }
}
