//! The arrays of a network by name and shape, without their numbers.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};

use crate::init::Init;

/// Name and shape of an array.
pub type ArrayShape = (String, Vec<usize>);

/// Names and shapes of the arrays of a network, in its own order; `network` makes it of an [`Init`] that draws nothing.
pub(crate) fn outline<M: Module>(network: impl FnOnce(&mut Init) -> M) -> Vec<ArrayShape> {
    let mut shapes = Shapes::default();
    network(&mut Init::outline(&Device::flex())).visit(&mut shapes);
    shapes.arrays
}

#[derive(Default)]
struct Shapes {
    path: Vec<String>,
    arrays: Vec<ArrayShape>,
}

impl ModuleVisitor for Shapes {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.arrays
            .push((self.path.join("."), param.lazy_shape().to_vec()));
    }

    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
}
