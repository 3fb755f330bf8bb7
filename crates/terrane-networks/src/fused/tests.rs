//! The error and its gradients beside those of a library.

use burn::module::{Module, ModuleVisitor};
use burn::tensor::{Device, Distribution};

use super::*;
use crate::blocks::{SirenBias, pixel_grid};
use crate::init::Init;

/// Gradients by all weights of a network.
struct Gradients<'a> {
    of: &'a burn::tensor::Gradients,
    found: Vec<Vec<f32>>,
}

impl ModuleVisitor for Gradients<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.found
            .push(numbers_of(param.val().grad(self.of).unwrap()));
    }
}

fn numbers_of<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

#[test]
fn error_and_gradients_are_those_of_a_library() {
    let device = Device::flex().autodiff();
    let mut init = Init::new(3, &device);
    for sines in [2, 3, 4] {
        let siren = Siren::new(8, sines, 7.0, SirenBias::LikeWeights, &mut init);
        let points = pixel_grid(4, &device);
        let plain = Device::flex();
        let draw = |shape: [usize; 3], mean: f64| {
            let spread = Distribution::Normal(mean, 0.5);
            Tensor::<3>::random(shape, spread, &plain)
                .autodiff()
                .require_grad()
        };
        let modulations: Vec<Modulation<3>> = (0..sines)
            .map(|_| Modulation {
                amplitude: Some(draw([5, 1, 8], 1.0)),
                phase: Some(draw([5, 1, 8], 0.0)),
                ..Modulation::default()
            })
            .collect();
        let expected = Tensor::<2>::random([5, 16], Distribution::Default, &plain);

        let values = siren.forward(points.clone().unsqueeze(), &modulations);
        let library = (values.reshape([5, 16]) - expected.clone().autodiff())
            .square()
            .mean();
        let parts = Parts::of(&siren, &points.inner(), &modulations).unwrap();
        let ours = parts.square_error(&Plain, &expected);
        let [error, fused] = [&library, &ours].map(|loss| numbers_of(loss.clone().inner())[0]);
        assert!((error - fused).abs() < 1e-6 * error, "{error} {fused}");

        let gradients = [library, ours].map(|loss| {
            let of = loss.backward();
            let mut weights = Gradients {
                of: &of,
                found: Vec::new(),
            };
            siren.visit(&mut weights);
            for modulation in &modulations {
                for part in [&modulation.amplitude, &modulation.phase] {
                    let gradient = part.as_ref().unwrap().grad(&of).unwrap();
                    weights.found.push(numbers_of(gradient));
                }
            }
            weights.found
        });
        let [library, ours] = gradients;
        assert_eq!(library.len(), 2 * (sines + 1) + 2 * sines);
        for (index, (a, b)) in library.iter().zip(&ours).enumerate() {
            let largest = a.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            assert!(largest > 0.0);
            for (a, b) in a.iter().zip(b) {
                assert!(
                    (a - b).abs() < 1e-5 * largest,
                    "{sines} sines, {index}: {a} {b}"
                );
            }
        }
    }
}
