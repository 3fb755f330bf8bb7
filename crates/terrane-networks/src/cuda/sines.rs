//! The passes of a network of sines: see `sines.cu`.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::{Argument, CudaError, Program, Source, address, ordinal};
use crate::fused::{Ends, FirstSums, Passes, Sums};

const SOURCE: Source = Source {
    name: "sines",
    text: include_str!("sines.cu"),
};
/// Lanes and warps of a block.
const THREADS: (u32, u32) = (32, 8);
/// Numbers of a point that a block can hold; beyond it the sums of a patch do not fit beside each other.
const MAX_WIDTH: usize = 1024;

/// The kernels for networks of one width at so many points a patch.
#[derive(Debug)]
pub(crate) struct Sines {
    program: Arc<Program>,
    count: usize,
    width: usize,
}

impl Sines {
    /// The kernels for the card that a tensor lies on.
    pub(crate) fn of<const D: usize>(
        tensor: &Tensor<D>,
        count: usize,
        width: usize,
    ) -> Result<Self, CudaError> {
        if width == 0 || !width.is_multiple_of(THREADS.0 as usize) || width > MAX_WIDTH {
            return Err(CudaError::Driver(format!(
                "networks are multiples of {} wide, not {width}",
                THREADS.0
            )));
        }
        Ok(Self {
            program: Program::on(
                ordinal(tensor)?,
                SOURCE,
                &[("COUNT", count), ("WIDTH", width)],
            )?,
            count,
            width,
        })
    }

    fn launch(&self, name: &'static str, patches: usize, arguments: &[Argument]) {
        self.program.launch(name, patches, THREADS, arguments);
    }
}

impl Passes for Sines {
    fn first(
        &self,
        points: &Tensor<2>,
        weight: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
    ) -> Tensor<2> {
        let patches = amplitude.dims()[0];
        let out = Tensor::empty([patches * self.count, self.width], &amplitude.device());
        self.launch(
            "first",
            patches,
            &[
                address(points, 2 * self.count),
                address(weight, 2 * self.width),
                address(amplitude, patches * self.width),
                address(shift, patches * self.width),
                address(&out, patches * self.count * self.width),
            ],
        );
        out
    }

    fn sine(&self, angle: &Tensor<2>, amplitude: &Tensor<2>, shift: &Tensor<2>) -> Tensor<2> {
        let patches = amplitude.dims()[0];
        let all = patches * self.count * self.width;
        let out = Tensor::empty([patches * self.count, self.width], &amplitude.device());
        self.launch(
            "sine",
            patches,
            &[
                address(angle, all),
                address(amplitude, patches * self.width),
                address(shift, patches * self.width),
                address(&out, all),
            ],
        );
        out
    }

    fn value(
        &self,
        angle: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
        weight: &Tensor<2>,
        bias: &Tensor<1>,
    ) -> Tensor<2> {
        let patches = amplitude.dims()[0];
        let out = Tensor::empty([patches, self.count], &amplitude.device());
        self.launch(
            "value",
            patches,
            &[
                address(angle, patches * self.count * self.width),
                address(amplitude, patches * self.width),
                address(shift, patches * self.width),
                address(weight, self.width),
                address(bias, 1),
                address(&out, patches * self.count),
            ],
        );
        out
    }

    fn value_and_back(
        &self,
        angle: Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
        weight: &Tensor<2>,
        bias: &Tensor<1>,
        expected: &Tensor<2>,
    ) -> Ends {
        let patches = amplitude.dims()[0];
        let device = amplitude.device();
        let line = || Tensor::<2>::empty([patches, self.width], &device);
        let sums = Sums {
            amplitude: line(),
            shift: line(),
        };
        let by_weight = line();
        let [by_bias, squares] = [(); 2].map(|()| Tensor::<1>::empty([patches], &device));
        let count = (patches * self.count) as f64;
        let lines = patches * self.width;
        self.launch(
            "value_and_back",
            patches,
            &[
                address(&angle, patches * self.count * self.width),
                address(amplitude, lines),
                address(shift, lines),
                address(weight, self.width),
                address(bias, 1),
                address(expected, patches * self.count),
                Argument::Float((1.0 / count) as f32),
                address(&sums.amplitude, lines),
                address(&sums.shift, lines),
                address(&by_weight, lines),
                address(&by_bias, patches),
                address(&squares, patches),
            ],
        );
        Ends {
            angle,
            sums,
            weight: by_weight.sum_dim(0).swap_dims(0, 1),
            bias: by_bias.sum(),
            error: squares.sum().div_scalar(count),
        }
    }

    fn sine_back(
        &self,
        gradient: Tensor<2>,
        angle: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
    ) -> (Tensor<2>, Sums) {
        let patches = amplitude.dims()[0];
        let (lines, all) = (patches * self.width, patches * self.count * self.width);
        let device = amplitude.device();
        let line = || Tensor::<2>::empty([patches, self.width], &device);
        let sums = Sums {
            amplitude: line(),
            shift: line(),
        };
        self.launch(
            "sine_back",
            patches,
            &[
                address(&gradient, all),
                address(angle, all),
                address(amplitude, lines),
                address(shift, lines),
                address(&sums.amplitude, lines),
                address(&sums.shift, lines),
            ],
        );
        (gradient, sums)
    }

    fn first_back(
        &self,
        gradient: &Tensor<2>,
        points: &Tensor<2>,
        weight: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
    ) -> FirstSums {
        let patches = amplitude.dims()[0];
        let lines = patches * self.width;
        let device = amplitude.device();
        let line = || Tensor::<2>::empty([patches, self.width], &device);
        let sums = Sums {
            amplitude: line(),
            shift: line(),
        };
        let by_weight = [line(), line()];
        self.launch(
            "first_back",
            patches,
            &[
                address(gradient, patches * self.count * self.width),
                address(points, 2 * self.count),
                address(weight, 2 * self.width),
                address(amplitude, lines),
                address(shift, lines),
                address(&sums.amplitude, lines),
                address(&sums.shift, lines),
                address(&by_weight[0], lines),
                address(&by_weight[1], lines),
            ],
        );
        let weight = by_weight.map(|part| part.sum_dim(0));
        FirstSums {
            sums,
            weight: Tensor::cat(weight.into(), 0),
        }
    }
}
