//! The passes of a network of sines: see `sines.cu`.

use std::sync::Arc;

use burn::tensor::Tensor;
use tch::Kind;

use super::passes::{Raw, raw, wrapped};
use super::{Argument, CudaError, Program, Source, address, address_of, ordinal};
use crate::fused::{Ends, FirstSums, Passes, Sums};

const SOURCE: Source = Source {
    name: "sines",
    text: include_str!("sines.cu"),
};
/// Lanes and warps of a block.
const THREADS: (u32, u32) = (32, 8);
/// Numbers of a point that a block can hold; beyond it the sums of a patch do not fit beside each other.
const MAX_WIDTH: usize = 1024;

/// What gradients are multiplied with, so that 16-bit floats hold them.
const RAISED: usize = 256;
const INVARIANT: &str = "the tensor is on a LibTorch device";

/// The kernels for networks of one width at so many points a patch.
#[derive(Debug)]
pub(crate) struct Sines {
    program: Arc<Program>,
    count: usize,
    width: usize,
    is_half: bool,
    raised: usize,
}

impl Sines {
    /// The kernels for the card that a tensor lies on.
    pub(crate) fn of<const D: usize>(
        tensor: &Tensor<D>,
        count: usize,
        width: usize,
        is_half: bool,
    ) -> Result<Self, CudaError> {
        if width == 0 || !width.is_multiple_of(THREADS.0 as usize) || width > MAX_WIDTH {
            return Err(CudaError::Sizes(format!(
                "networks of {width}: they are multiples of {} up to {MAX_WIDTH} wide",
                THREADS.0
            )));
        }
        let raised = if is_half { RAISED } else { 1 };
        Ok(Self {
            program: Program::on(
                ordinal(tensor)?,
                SOURCE,
                &[
                    ("COUNT", count),
                    ("WIDTH", width),
                    ("HALF", usize::from(is_half)),
                    ("RAISED", raised),
                ],
            )?,
            count,
            width,
            is_half,
            raised,
        })
    }

    /// The type of what goes through products.
    fn kind(&self) -> Kind {
        if self.is_half {
            Kind::Half
        } else {
            Kind::Float
        }
    }

    /// Room for outputs of a layer or gradients by its angles.
    fn narrow(&self, patches: usize, like: &Tensor<2>) -> Tensor<2> {
        let shape = [(patches * self.count) as i64, self.width as i64];
        let device = raw(like).expect(INVARIANT).device();
        wrapped(Raw::empty(shape, (self.kind(), device)))
    }

    /// The address of such numbers.
    fn narrow_address(&self, numbers: &Tensor<2>, count: usize) -> Argument {
        address_of(&raw(numbers).expect(INVARIANT), self.kind(), count)
    }

    /// What a gradient that went through products is multiplied with to be one by the mean of squares.
    fn unit(&self, patches: usize) -> f64 {
        1.0 / (self.raised * patches * self.count) as f64
    }

    fn launch(&self, name: &'static str, patches: usize, arguments: &[Argument]) {
        self.program.launch(name, patches, THREADS, arguments);
    }
}

impl Passes for Sines {
    fn product(&self, input: &Tensor<2>, weight: &Tensor<2>) -> Tensor<2> {
        if !self.is_half {
            return input.clone().matmul(weight.clone());
        }
        let [input, weight] = [input, weight].map(|x| raw(x).expect(INVARIANT));
        wrapped(input.mm_dtype(&weight.to_kind(Kind::Half), Kind::Float))
    }

    fn product_back(&self, by_angle: &Tensor<2>, weight: &Tensor<2>) -> Tensor<2> {
        let [by_angle, weight] = [by_angle, weight].map(|x| raw(x).expect(INVARIANT));
        wrapped(by_angle.mm(&weight.to_kind(self.kind()).tr()))
    }

    fn weight_back(&self, input: Tensor<2>, by_angle: &Tensor<2>, factor: f64) -> Tensor<2> {
        let factor = factor * self.unit(by_angle.dims()[0] / self.count);
        let [input, by_angle] = [&input, by_angle].map(|x| raw(x).expect(INVARIANT));
        let product = if self.is_half {
            input.tr().mm_dtype(&by_angle, Kind::Float)
        } else {
            input.tr().mm(&by_angle)
        };
        wrapped(product * factor)
    }

    fn first(
        &self,
        points: &Tensor<2>,
        weight: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
    ) -> Tensor<2> {
        let patches = amplitude.dims()[0];
        let out = self.narrow(patches, amplitude);
        self.launch(
            "first",
            patches,
            &[
                address(points, 2 * self.count),
                address(weight, 2 * self.width),
                address(amplitude, patches * self.width),
                address(shift, patches * self.width),
                self.narrow_address(&out, patches * self.count * self.width),
            ],
        );
        out
    }

    fn sine(&self, angle: &Tensor<2>, amplitude: &Tensor<2>, shift: &Tensor<2>) -> Tensor<2> {
        let patches = amplitude.dims()[0];
        let all = patches * self.count * self.width;
        let out = self.narrow(patches, amplitude);
        self.launch(
            "sine",
            patches,
            &[
                address(angle, all),
                address(amplitude, patches * self.width),
                address(shift, patches * self.width),
                self.narrow_address(&out, all),
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
        let all = patches * self.count * self.width;
        let by_angle = self.narrow(patches, amplitude);
        self.launch(
            "value_and_back",
            patches,
            &[
                address(&angle, all),
                address(amplitude, lines),
                address(shift, lines),
                address(weight, self.width),
                address(bias, 1),
                address(expected, patches * self.count),
                Argument::Float(self.unit(patches) as f32),
                self.narrow_address(&by_angle, all),
                address(&sums.amplitude, lines),
                address(&sums.shift, lines),
                address(&by_weight, lines),
                address(&by_bias, patches),
                address(&squares, patches),
            ],
        );
        Ends {
            angle: by_angle,
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
                self.narrow_address(&gradient, all),
                address(angle, all),
                address(amplitude, lines),
                address(shift, lines),
                Argument::Float(self.unit(patches) as f32),
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
                self.narrow_address(gradient, patches * self.count * self.width),
                address(points, 2 * self.count),
                address(weight, 2 * self.width),
                address(amplitude, lines),
                address(shift, lines),
                Argument::Float(self.unit(patches) as f32),
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
