//! Outputs, derivatives and gradients equal those of the NumPy implementations in `tests/parity`.

use std::path::Path;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde_json::Value;
use terrane_networks::blocks::{DecoderConfig, EncoderConfig};
use terrane_networks::methods::huvr_siren::ModulationKind;
use terrane_networks::methods::{Method, Precision, functa, huvr, huvr_siren, transinr};
use terrane_networks::released::load_released;
use terrane_networks::weights::{Array, Weights, WeightsError, fill};

/// Largest difference, as a part of the largest expected value.
const TOLERANCE: f64 = 1e-5;

struct Case {
    weights: Weights,
    config: Value,
}

impl Case {
    fn read(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity");
        let read =
            |file: &str| Weights::from_bytes(&std::fs::read(folder.join(file)).unwrap()).unwrap();
        let mut weights = read(&format!("{name}.safetensors"));
        let config: Value = serde_json::from_str(&weights.metadata["config"]).unwrap();
        // Large parts that several cases have in common are kept once.
        if let Some(file) = config["shared"]["file"].as_str() {
            let prefixes: Vec<&str> = config["shared"]["prefixes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|prefix| prefix.as_str().unwrap())
                .collect();
            for (key, array) in read(file).arrays {
                if prefixes.iter().any(|prefix| key.starts_with(prefix)) {
                    weights.arrays.entry(key).or_insert(array);
                }
            }
        }
        Self { weights, config }
    }

    fn size(&self, key: &str) -> usize {
        self.config[key]
            .as_u64()
            .unwrap_or_else(|| panic!("no {key}")) as usize
    }

    fn tensor<const D: usize>(&self, name: &str) -> Tensor<D> {
        let array = &self.weights.arrays[name];
        Tensor::from_data(
            TensorData::new(array.values.clone(), array.shape.clone()),
            &Device::flex(),
        )
    }

    fn assert_close<const D: usize>(&self, name: &str, ours: Tensor<D>, factor: f64) {
        let expected = &self.weights.arrays[name];
        let ours = ours.into_data().try_to_vec::<f32>().unwrap();
        assert_eq!(ours.len(), expected.values.len(), "{name}");
        let largest = expected
            .values
            .iter()
            .fold(1e-30_f64, |most, &value| most.max(f64::from(value).abs()));
        let worst = ours
            .iter()
            .zip(&expected.values)
            .map(|(&ours, &theirs)| (f64::from(ours) * factor - f64::from(theirs)).abs())
            .fold(0.0, f64::max);
        println!("{name}: {:.2e}", worst / largest);
        assert!(
            worst <= TOLERANCE * largest,
            "{name}: off by {worst:e} of {largest:e}"
        );
    }

    fn encoder(&self) -> EncoderConfig {
        EncoderConfig {
            width: self.size("width"),
            depth: self.size("depth"),
            heads: self.size("heads"),
        }
    }

    fn decoder(&self) -> DecoderConfig {
        let has_attention = self.config["decoder_attention"] == true;
        DecoderConfig {
            width: self.size("decoder_width"),
            depth: self.size("decoder_depth"),
            hidden: self.size("decoder_hidden"),
            attention_heads: if has_attention {
                self.size("decoder_heads")
            } else {
                0
            },
        }
    }
}

fn check_huvr_siren(name: &str, modulation: ModulationKind) {
    let case = Case::read(name);
    let config = huvr_siren::Config {
        side: case.size("side"),
        patch: case.size("patch"),
        bottleneck: case.size("bottleneck"),
        encoder: case.encoder(),
        decoder: case.decoder(),
        siren_width: case.size("siren_width"),
        omega: case.config["omega"].as_f64().unwrap(),
        modulation,
    };
    let device = Device::flex();
    let network = load_released(
        &case.weights,
        config.init(&mut terrane_networks::init::Init::new(1, &device)),
    )
    .unwrap();
    let tokens = network.encode(case.tensor("test.tiles"), Precision::Full);
    case.assert_close("test.tokens", tokens.clone(), 1.0);
    case.assert_close(
        "test.output",
        network.decode(tokens.clone(), Precision::Full),
        1.0,
    );
    let jet = network.decode_jet(tokens).unwrap();
    // The reference has derivatives of f = 2v − 1 in the patch's own coordinates; a pixel is 2/patch of them.
    let pixel = config.patch as f64 / 2.0;
    case.assert_close("test.output", jet.value, 1.0);
    case.assert_close("test.dy", jet.row, 2.0 * pixel);
    case.assert_close("test.dx", jet.column, 2.0 * pixel);
    case.assert_close("test.dyy", jet.row_row, 2.0 * pixel * pixel);
    case.assert_close("test.dxy", jet.row_column, 2.0 * pixel * pixel);
    case.assert_close("test.dxx", jet.column_column, 2.0 * pixel * pixel);
}

#[test]
fn huvr_siren_equals_its_reference() {
    check_huvr_siren("huvr_siren", ModulationKind::AmplitudeShift);
}

#[test]
fn its_modulations_equal_their_references() {
    check_huvr_siren("huvr_siren_amplitude", ModulationKind::Amplitude);
    check_huvr_siren("huvr_siren_shift", ModulationKind::Shift);
    check_huvr_siren("huvr_siren_incode", ModulationKind::Incode);
}

#[test]
fn its_decoder_attention_equals_its_reference() {
    check_huvr_siren("huvr_siren_attention", ModulationKind::AmplitudeShift);
}

#[test]
fn huvr_equals_its_reference() {
    let case = Case::read("huvr");
    let config = huvr::Config {
        side: case.size("side"),
        patch: case.size("patch"),
        bottleneck: case.size("bottleneck"),
        encoder: case.encoder(),
        decoder: case.decoder(),
        mlp_width: case.size("mlp_width"),
        frequencies: case.size("frequencies"),
    };
    let device = Device::flex();
    let network = load_released(
        &case.weights,
        config.init(&mut terrane_networks::init::Init::new(1, &device)),
    )
    .unwrap();
    let tokens = network.encode(case.tensor("test.tiles"), Precision::Full);
    case.assert_close("test.tokens", tokens.clone(), 1.0);
    case.assert_close("test.output", network.decode(tokens, Precision::Full), 1.0);
}

fn transposed(array: &Array) -> Array {
    let &[outputs, inputs] = array.shape.as_slice() else {
        panic!("a matrix")
    };
    let values = (0..inputs)
        .flat_map(|input| (0..outputs).map(move |output| array.values[output * inputs + input]))
        .collect();
    Array {
        shape: vec![inputs, outputs],
        values,
    }
}

fn rows(array: &Array, from: usize, count: usize) -> Array {
    let width = array.shape[1];
    Array {
        shape: vec![count, width],
        values: array.values[from * width..(from + count) * width].to_vec(),
    }
}

#[test]
fn transinr_equals_its_reference() {
    let case = Case::read("transinr");
    let config = transinr::Config {
        side: case.size("side"),
        width: case.size("width"),
        depth: case.size("depth"),
        heads: case.size("heads"),
        hidden: case.size("hidden"),
        groups: case.size("groups"),
        mlp_depth: case.size("inr_layers"),
        mlp_width: case.size("inr_width"),
        frequencies: case.size("frequencies"),
    };
    let device = Device::flex();
    let network = config.init(&mut terrane_networks::init::Init::new(1, &device));
    let arrays = &case.weights.arrays;
    let network = fill(network, |path, _| {
        let parts: Vec<&str> = path.split('.').collect();
        let width = config.width;
        Ok(match *parts.as_slice() {
            ["tokenizer", "weight"] => transposed(&arrays["tokenizer.weight"]),
            ["tokenizer", "bias"] => arrays["tokenizer.bias"].clone(),
            ["positions"] => arrays["posemb"].clone(),
            ["weight_tokens"] => arrays["wtokens"].clone(),
            ["layers", layer, "attention_norm", leaf] => {
                arrays[&format!("transformer.layers.{layer}.0.norm.{leaf}")].clone()
            }
            ["layers", layer, "attention", part, leaf] => {
                let get =
                    |name: &str| &arrays[&format!("transformer.layers.{layer}.0.fn.{name}.{leaf}")];
                match (part, leaf) {
                    ("query", _) => transposed(get("to_q")),
                    ("key", _) => transposed(&rows(get("to_kv"), 0, width)),
                    ("value", _) => transposed(&rows(get("to_kv"), width, width)),
                    (_, "weight") => transposed(get("to_out")),
                    _ => get("to_out").clone(),
                }
            }
            ["layers", layer, "norm", leaf] => {
                arrays[&format!("transformer.layers.{layer}.1.norm.{leaf}")].clone()
            }
            ["layers", layer, part, leaf] => {
                let index = if part == "inner" { 0 } else { 2 };
                let array = &arrays[&format!("transformer.layers.{layer}.1.fn.net.{index}.{leaf}")];
                if leaf == "weight" {
                    transposed(array)
                } else {
                    array.clone()
                }
            }
            ["heads", layer, "norm", leaf] => arrays[&format!("heads.{layer}.0.{leaf}")].clone(),
            ["heads", layer, _, "weight"] => {
                transposed(&arrays[&format!("heads.{layer}.1.weight")])
            }
            ["heads", layer, _, leaf] => arrays[&format!("heads.{layer}.1.{leaf}")].clone(),
            ["base", layer, _] => arrays[&format!("base.wb{layer}")].clone(),
            _ => {
                return Err(WeightsError::Missing {
                    name: path.to_owned(),
                });
            }
        })
    })
    .unwrap();
    let tokens = network.encode(case.tensor("test.tiles"), Precision::Full);
    case.assert_close("test.tokens", tokens.clone(), 1.0);
    case.assert_close("test.output", network.decode(tokens, Precision::Full), 1.0);
}

fn functa_name(path: &str) -> String {
    path.replace("siren.layers.", "siren.")
}

#[test]
fn functa_equals_its_reference_to_the_second_order() {
    let case = Case::read("functa");
    let config = functa::Config {
        side: case.size("side"),
        latent: case.size("latent"),
        width: case.size("width"),
        sines: case.size("depth") - 1,
        omega: case.config["omega"].as_f64().unwrap(),
        inner_steps: case.size("inner_steps"),
        coordinates: functa::Coordinates::Unit,
    };
    let device = Device::flex().autodiff();
    let network = config.init(&mut terrane_networks::init::Init::new(1, &device));
    let arrays = &case.weights.arrays;
    let network = fill(network, |path, shape| {
        let array = &arrays[&functa_name(path)];
        Ok(if shape.len() == 2 {
            transposed(array)
        } else {
            array.clone()
        })
    })
    .unwrap();
    let tiles = Tensor::<3>::from_data(case.tensor::<3>("test.tiles").into_data(), &device);
    let latents = network.encode(tiles.clone(), Precision::Full);
    case.assert_close("test.latent", latents.clone(), 1.0);
    let output = network.decode(latents.clone(), Precision::Full);
    case.assert_close("test.output", output.clone(), 1.0);

    let jet = network.decode_jet(latents).unwrap();
    let pixel = config.side as f64;
    case.assert_close("test.dy", jet.row, pixel);
    case.assert_close("test.dx", jet.column, pixel);
    case.assert_close("test.dyy", jet.row_row, pixel * pixel);
    case.assert_close("test.dxy", jet.row_column, pixel * pixel);
    case.assert_close("test.dxx", jet.column_column, pixel * pixel);

    let gradients = (output - tiles).square().mean().backward();
    let mut seen = 0;
    let mut visitor = GradientVisitor {
        path: Vec::new(),
        visit: |path: &str, array: Array| {
            let ours = if array.shape.len() == 2 {
                transposed(&array)
            } else {
                array
            };
            let name = format!("test.grad.{}", functa_name(path));
            let tensor = Tensor::<1>::from_data(ours.values.as_slice(), &Device::flex());
            case.assert_close(&name, tensor, 1.0);
            seen += 1;
        },
        gradients: &gradients,
    };
    network.visit(&mut visitor);
    assert_eq!(seen, 11);
}

struct GradientVisitor<'a, V> {
    path: Vec<String>,
    visit: V,
    gradients: &'a burn::tensor::Gradients,
}

impl<V: FnMut(&str, Array)> burn::module::ModuleVisitor for GradientVisitor<'_, V> {
    fn visit_float<const D: usize>(&mut self, param: &burn::module::Param<Tensor<D>>) {
        let path = self.path.join(".");
        let gradient = param
            .val()
            .grad(self.gradients)
            .unwrap_or_else(|| panic!("no gradient for {path}"));
        let data = gradient.into_data();
        let shape = data.shape().to_vec();
        (self.visit)(
            &path,
            Array {
                shape,
                values: data.try_to_vec().unwrap(),
            },
        );
    }

    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
}
