//! Who differentiates the loss: Burn, or the library behind the device where that has fused kernels for it.
//!
//! Burn differentiates operation by operation. LibTorch's own differentiation has one kernel for what Burn takes ten
//! for (normalisation, attention), so on its devices the loss is left to it; the network is the same code.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use terrane_networks::tape::Recording;

#[cfg(feature = "libtorch")]
use crate::training::libtorch;

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
    pub(crate) fn device(self, device: &Device) -> Device {
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
        self.scatter_into(module, weights, &Choice::All)
    }

    /// As [`Differentiation::scatter`] for some of the weights; the others stay as they are and get no gradients.
    pub fn scatter_into<M: Module>(self, module: M, weights: Tensor<1>, choice: &Choice) -> M {
        module.map(&mut Scatterer {
            weights,
            offset: 0,
            choice: choice.clone(),
            visited: 0,
            receiver: Some(self),
        })
    }

    /// The gradient of a loss as one vector, in the order of the network's weights.
    pub(crate) fn gradient(self, loss: &Tensor<1>, module: &impl Module) -> Tensor<1> {
        self.gradient_of(loss, module, &Choice::All)
    }

    /// The gradient of a loss for some of the weights.
    pub fn gradient_of(self, loss: &Tensor<1>, module: &impl Module, choice: &Choice) -> Tensor<1> {
        gather(module, self.backward(loss), choice)
    }

    /// The weights that a loss depends on, of a network whose weights all wait for gradients.
    pub fn reached(self, loss: &Tensor<1>, module: &impl Module) -> Choice {
        let mut finder = Finder {
            source: self.backward(loss),
            reached: Vec::new(),
        };
        module.visit(&mut finder);
        Choice::These(finder.reached)
    }

    /// The network as a constant in what is differentiated.
    pub fn constant<M: Module>(self, module: M) -> M {
        module.map(&mut Fixer(self))
    }

    /// Rounds to parts of 1, so many per unit, and cuts what is beyond a least and a largest number of parts; gradients pass as if
    /// it were not rounded.
    pub(crate) fn rounded<const D: usize>(
        self,
        tensor: Tensor<D>,
        unit: f64,
        [least, largest]: [i64; 2],
    ) -> Tensor<D> {
        match self {
            Self::Burn => {
                let cut = tensor.clamp(least as f64 / unit, largest as f64 / unit);
                let nearest = cut.clone().mul_scalar(unit).round().div_scalar(unit);
                cut.clone() + (nearest - cut).detach()
            }
            #[cfg(feature = "libtorch")]
            Self::LibTorch => libtorch::rounded(tensor, unit, [least, largest]),
        }
    }

    /// The parts of a tensor along its first axis.
    pub(crate) fn parts(self, tensor: Tensor<3>) -> Vec<Tensor<2>> {
        match self {
            Self::Burn => {
                let [count, rows, columns] = tensor.dims();
                let parts = tensor.chunk(count, 0).into_iter();
                parts.map(|part| part.reshape([rows, columns])).collect()
            }
            #[cfg(feature = "libtorch")]
            Self::LibTorch => libtorch::parts(tensor),
        }
    }

    /// The numbers of a tensor alone, without what led to them.
    pub fn numbers<const D: usize>(self, tensor: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Burn => tensor.inner(),
            #[cfg(feature = "libtorch")]
            Self::LibTorch => libtorch::detach(tensor),
        }
    }

    fn backward(self, loss: &Tensor<1>) -> Source {
        match self {
            Self::Burn => Source::Burn(loss.backward()),
            #[cfg(feature = "libtorch")]
            Self::LibTorch => {
                libtorch::backward(loss.clone());
                Source::LibTorch
            }
        }
    }
}

/// Weights of an array that start where the next one may: matrix products of a card are quick at multiples of 32 bytes alone.
const ALIGNMENT: usize = 8;

/// Places that an array of so many weights takes in the vector of all.
fn padded(count: usize) -> usize {
    count.next_multiple_of(ALIGNMENT)
}

/// Which weights of a network take part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// All.
    All,
    /// Those that are true, in the order in which a network is visited.
    These(Vec<bool>),
}

impl Choice {
    fn has(&self, index: usize) -> bool {
        match self {
            Self::All => true,
            Self::These(chosen) => chosen[index],
        }
    }
}

/// How many weights of a network take part.
pub fn count(module: &impl Module, choice: &Choice) -> usize {
    let mut counter = Counter {
        choice,
        visited: 0,
        count: 0,
    };
    module.visit(&mut counter);
    counter.count
}

struct Counter<'a> {
    choice: &'a Choice,
    visited: usize,
    count: usize,
}

impl ModuleVisitor for Counter<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.visited += 1;
        if self.choice.has(self.visited - 1) {
            self.count += param.val().shape().num_elements();
        }
    }
}

/// All weights of a network as one vector, each array at a multiple of some places.
pub fn weights(module: &impl Module) -> Tensor<1> {
    weights_of(module, &Choice::All)
}

/// Some weights of a network as one vector.
pub fn weights_of(module: &impl Module, choice: &Choice) -> Tensor<1> {
    gather(module, Source::Weights, choice)
}

/// Puts one vector into the weights of a network that is not to learn.
pub(crate) fn scatter_fixed<M: Module>(module: M, weights: Tensor<1>) -> M {
    scatter_fixed_into(module, weights, &Choice::All)
}

/// A module with some of its weights replaced by a vector, not to be differentiated; the others stay as they are.
pub fn scatter_fixed_into<M: Module>(module: M, weights: Tensor<1>, choice: &Choice) -> M {
    module
        .map(&mut Scatterer {
            weights,
            offset: 0,
            choice: choice.clone(),
            visited: 0,
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

fn gather(module: &impl Module, source: Source, choice: &Choice) -> Tensor<1> {
    let mut gatherer = Gatherer {
        source,
        choice,
        visited: 0,
        parts: Vec::new(),
    };
    module.visit(&mut gatherer);
    Tensor::cat(gatherer.parts, 0)
}

struct Gatherer<'a> {
    source: Source,
    choice: &'a Choice,
    visited: usize,
    parts: Vec<Tensor<1>>,
}

impl ModuleVisitor for Gatherer<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.visited += 1;
        if !self.choice.has(self.visited - 1) {
            return;
        }
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
        let part = part.reshape([count]);
        if let rest @ 1.. = padded(count) - count {
            let padding = Tensor::<1>::zeros([rest], &part.device()).cast(part.dtype());
            self.parts.extend([part, padding]);
        } else {
            self.parts.push(part);
        }
    }
}

/// Finds the weights that have a gradient.
struct Finder {
    source: Source,
    reached: Vec<bool>,
}

impl ModuleVisitor for Finder {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.reached.push(match &self.source {
            Source::Weights => true,
            Source::Burn(gradients) => param.val().grad(gradients).is_some(),
            #[cfg(feature = "libtorch")]
            Source::LibTorch => libtorch::has_gradient(param.val()),
        });
    }
}

/// Makes constants of weights.
struct Fixer(Differentiation);

impl ModuleMapper for Fixer {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| match self.0 {
            // With Burn's differentiation all the same, since some parts compute otherwise where there is none.
            Differentiation::Burn => value.inner().autodiff(),
            #[cfg(feature = "libtorch")]
            Differentiation::LibTorch => libtorch::detach(value),
        })
    }
}

struct Scatterer {
    weights: Tensor<1>,
    offset: usize,
    choice: Choice,
    visited: usize,
    /// Who will differentiate, or nobody.
    receiver: Option<Differentiation>,
}

impl ModuleMapper for Scatterer {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.visited += 1;
        if !self.choice.has(self.visited - 1) {
            return param;
        }
        param.map(|old| {
            let shape = old.dims();
            let count: usize = shape.iter().product();
            let part = self
                .weights
                .clone()
                .narrow(0, self.offset, count)
                .reshape(shape);
            self.offset += padded(count);
            match self.receiver {
                Some(Differentiation::Burn) => part.autodiff().require_grad(),
                #[cfg(feature = "libtorch")]
                Some(Differentiation::LibTorch) => libtorch::leaf(part),
                None => part,
            }
        })
    }
}
