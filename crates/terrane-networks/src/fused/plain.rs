//! The passes by Burn's operations.

use super::{Ends, FirstSums, Passes, Plain, Sums, Tensor};

/// `[patches · count, width]` as `[patches, count, width]`.
fn by_patch(all: Tensor<2>, patches: usize) -> Tensor<3> {
    let [rows, width] = all.dims();
    all.reshape([patches, rows / patches, width])
}

fn joined(all: Tensor<3>) -> Tensor<2> {
    let [patches, count, width] = all.dims();
    all.reshape([patches * count, width])
}

fn sum(all: Tensor<3>) -> Tensor<2> {
    all.sum_dim(1).squeeze_dim(1)
}

fn angles(points: &Tensor<2>, weight: &Tensor<2>, patches: usize) -> Tensor<2> {
    points.clone().matmul(weight.clone()).repeat_dim(0, patches)
}

impl Passes for Plain {
    fn first(
        &self,
        points: &Tensor<2>,
        weight: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
    ) -> Tensor<2> {
        let [patches, _] = amplitude.dims();
        self.sine(&angles(points, weight, patches), amplitude, shift)
    }

    fn sine(&self, angle: &Tensor<2>, amplitude: &Tensor<2>, shift: &Tensor<2>) -> Tensor<2> {
        let [patches, _] = amplitude.dims();
        let angle = by_patch(angle.clone(), patches) + shift.clone().unsqueeze_dim(1);
        joined(angle.sin() * amplitude.clone().unsqueeze_dim(1))
    }

    fn value(
        &self,
        angle: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
        weight: &Tensor<2>,
        bias: &Tensor<1>,
    ) -> Tensor<2> {
        let [patches, _] = amplitude.dims();
        let f =
            self.sine(angle, amplitude, shift).matmul(weight.clone()) + bias.clone().unsqueeze();
        by_patch(f, patches).squeeze_dim(2)
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
        let off = self.value(&angle, amplitude, shift, weight, bias) - expected.clone();
        let count = off.shape().num_elements();
        let by_value = off
            .clone()
            .mul_scalar(2.0 / count as f64)
            .reshape([count, 1]);
        let output = self.sine(&angle, amplitude, shift);
        let by_output = by_value.clone().matmul(weight.clone().transpose());
        let (by_angle, sums) = self.sine_back(by_output, &angle, amplitude, shift);
        Ends {
            angle: by_angle,
            sums,
            weight: output.transpose().matmul(by_value.clone()),
            bias: by_value.sum(),
            error: off.square().mean(),
        }
    }

    fn sine_back(
        &self,
        gradient: Tensor<2>,
        angle: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
    ) -> (Tensor<2>, Sums) {
        let [patches, _] = amplitude.dims();
        let angle = by_patch(angle.clone(), patches) + shift.clone().unsqueeze_dim(1);
        let gradient = by_patch(gradient, patches);
        let by_angle = gradient.clone() * amplitude.clone().unsqueeze_dim(1) * angle.clone().cos();
        let sums = Sums {
            amplitude: sum(gradient * angle.sin()),
            shift: sum(by_angle.clone()),
        };
        (joined(by_angle), sums)
    }

    fn first_back(
        &self,
        gradient: &Tensor<2>,
        points: &Tensor<2>,
        weight: &Tensor<2>,
        amplitude: &Tensor<2>,
        shift: &Tensor<2>,
    ) -> FirstSums {
        let [patches, _] = amplitude.dims();
        let angle = angles(points, weight, patches);
        let (by_angle, sums) = self.sine_back(gradient.clone(), &angle, amplitude, shift);
        let points = points.clone().repeat_dim(0, patches);
        FirstSums {
            sums,
            weight: points.transpose().matmul(by_angle),
        }
    }
}
