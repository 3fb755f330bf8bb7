//! Transformers by the twins of the kernels beside those by the library.

use burn::tensor::{Device, Distribution};

use super::*;
use crate::blocks::{Decoder, DecoderConfig, Encoder, EncoderConfig};
use crate::cuda::passes::IS_TWIN;
use crate::init::Init;
use crate::tape::Recording;

fn device() -> Device {
    Device::libtorch()
}

/// Gradients by all of a module's weights and by an input, of a sum with fixed weights.
fn gradients<M: burn::module::Module>(
    module: &M,
    input: &Tensor<3>,
    is_twin: bool,
    forward: impl Fn(&M, Tensor<3>) -> Tensor<3>,
) -> Vec<Vec<f32>> {
    struct Leaves;
    impl burn::module::ModuleMapper for Leaves {
        fn map_float<const D: usize>(
            &mut self,
            param: burn::module::Param<Tensor<D>>,
        ) -> burn::module::Param<Tensor<D>> {
            param.map(leaf)
        }
    }
    struct Found(Vec<Vec<f32>>);
    impl burn::module::ModuleVisitor for Found {
        fn visit_float<const D: usize>(&mut self, param: &burn::module::Param<Tensor<D>>) {
            self.0.push(gradient(&param.val()));
        }
    }
    fn leaf<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
        let raw = raw(&tensor)
            .unwrap()
            .detach()
            .copy()
            .set_requires_grad(true);
        wrapped(raw)
    }
    fn gradient<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
        let gradient = raw(tensor).unwrap().grad();
        Vec::<f32>::try_from(gradient.to_kind(Kind::Float).reshape([-1])).unwrap()
    }
    IS_TWIN.set(is_twin);
    let module = module.clone().map(&mut Leaves);
    let input = leaf(input.clone());
    let recording = Recording::start();
    let out = forward(&module, input.clone());
    let out = raw(&out).unwrap();
    let weights = Raw::arange(out.numel() as i64, (Kind::Float, out.device()));
    let sum = (out.reshape([-1]) * weights.sin()).sum(Kind::Float);
    sum.backward();
    drop(recording);
    IS_TWIN.set(false);
    let mut found = Found(vec![vec![sum.double_value(&[]) as f32], gradient(&input)]);
    module.visit(&mut found);
    found.0
}

/// How far arrays are from others, as parts of their lengths.
fn apart(arrays: &[Vec<f32>], others: &[Vec<f32>]) -> Vec<f64> {
    assert_eq!(arrays.len(), others.len());
    let square = |x: f32| f64::from(x) * f64::from(x);
    arrays
        .iter()
        .zip(others)
        .map(|(a, b)| {
            let off: f64 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
            let all: f64 = b.iter().map(|&b| square(b)).sum();
            assert!(all > 0.0, "nothing to compare");
            (off / all).sqrt()
        })
        .collect()
}

/// Gradients in full precision are the library's; with a trunk of bf16 they are as near to those as the library's.
fn compare<M: burn::module::Module>(
    name: &str,
    module: &M,
    input: &Tensor<3>,
    forward: impl Fn(&M, Tensor<3>, DType) -> Tensor<3>,
) {
    let of = |is_twin: bool, trunk: DType| {
        gradients(module, input, is_twin, |module, x| {
            forward(module, x, trunk)
        })
    };
    let full = of(false, DType::F32);
    for (index, apart) in apart(&of(true, DType::F32), &full).iter().enumerate() {
        assert!(*apart < 1e-4, "{name}, array {index}: {apart:.2e} apart");
    }
    let [library, ours] = [false, true].map(|is_twin| apart(&of(is_twin, DType::BF16), &full));
    for (index, (library, ours)) in library.iter().zip(&ours).enumerate().skip(1) {
        assert!(
            *ours < 1.5 * library + 1e-3 && *ours < 0.2,
            "{name}, array {index}: {ours:.2e} off, the library {library:.2e}"
        );
    }
}

fn disturbed<M: burn::module::Module>(module: M) -> M {
    struct Noise;
    impl burn::module::ModuleMapper for Noise {
        fn map_float<const D: usize>(
            &mut self,
            param: burn::module::Param<Tensor<D>>,
        ) -> burn::module::Param<Tensor<D>> {
            param.map(|value| {
                let noise = value.random_like(Distribution::Normal(0.0, 0.1));
                value + noise
            })
        }
    }
    module.map(&mut Noise)
}

#[test]
fn gradients_of_a_transformer_are_those_of_the_library() {
    let device = device();
    let mut init = Init::new(5, &device);
    let config = EncoderConfig {
        width: 384,
        depth: 2,
        heads: 4,
    };
    let encoder = disturbed(Encoder::new(&config, 3, 10, &mut init));
    let config = DecoderConfig {
        width: 128,
        depth: 2,
        hidden: 256,
        attention_heads: 0,
    };
    let decoder = disturbed(Decoder::new(&config, &mut init));
    let draw = |shape| Tensor::<3>::random(shape, Distribution::Normal(0.0, 1.0), &device);
    let (patches, states) = (draw([2, 9, 10]), draw([2, 5, 128]));
    compare("encoder", &encoder, &patches, Encoder::forward);
    compare("decoder", &decoder, &states, |decoder, x, trunk| {
        decoder.states(x, trunk).pop().unwrap()
    });
}
