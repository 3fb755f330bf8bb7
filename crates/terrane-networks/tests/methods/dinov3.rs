//! The teacher and the distillation against the NumPy implementations in `tests/parity`.

use std::path::Path;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde_json::Value;
use terrane_networks::dinov3::{Teacher, TeacherConfig, TeacherFeatures, prepare};
use terrane_networks::distillation::{DistillationConfig, DistillationWidths, koleo};
use terrane_networks::init::Init;
use terrane_networks::methods::Precision;
use terrane_networks::weights::{Array, Weights, WeightsError, fill};

/// Largest difference, as a part of the largest expected value.
const TOLERANCE: f64 = 1e-5;

const SMALL: TeacherConfig = TeacherConfig {
    width: 32,
    depth: 2,
    heads: 2,
    hidden: 64,
    patch: 8,
};

fn read(file: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity");
    std::fs::read(folder.join(file)).unwrap()
}

fn weights(name: &str) -> Weights {
    Weights::from_bytes(&read(&format!("{name}.safetensors"))).unwrap()
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec::<f32>().unwrap()
}

fn features(weights: &Weights) -> TeacherFeatures {
    let device = Device::flex();
    let image = recorded("test.image");
    let image = Tensor::from_data(TensorData::new(image.values, image.shape), &device);
    let teacher = Teacher::load(weights, &SMALL, &device).unwrap();
    teacher.forward(image, Precision::Full)
}

/// An input or an expected output; only the file with the original names has them.
fn recorded(name: &str) -> Array {
    weights("dinov3").arrays[name].clone()
}

fn assert_close(name: &str, ours: &[f32], expected: &[f32]) {
    assert_eq!(ours.len(), expected.len(), "{name}");
    let largest = expected
        .iter()
        .fold(1e-30_f64, |most, &value| most.max(f64::from(value).abs()));
    let worst = ours
        .iter()
        .zip(expected)
        .map(|(&ours, &theirs)| (f64::from(ours) - f64::from(theirs)).abs())
        .fold(0.0, f64::max);
    println!("{name}: {:.2e}", worst / largest);
    // The maximum passes over what is not a number.
    assert!(ours.iter().all(|value| value.is_finite()), "{name}");
    assert!(
        worst <= TOLERANCE * largest,
        "{name}: off by {worst:e} of {largest:e}"
    );
}

fn assert_features(name: &str, ours: TeacherFeatures) {
    let class = recorded("test.cls").values;
    let patches = recorded("test.patches").values;
    assert_close(&format!("{name}, class"), &values(ours.class), &class);
    assert_close(&format!("{name}, patches"), &values(ours.patches), &patches);
}

#[test]
fn the_teacher_equals_its_reference_under_all_names() {
    for name in ["dinov3", "dinov3_hf", "dinov3_timm"] {
        assert_features(name, features(&weights(name)));
    }
}

#[test]
fn a_leading_model_is_passed_over_on_some_names_or_all() {
    for everywhere in [true, false] {
        let mut renamed = Weights::default();
        for (name, array) in weights("dinov3_hf").arrays {
            let name = if everywhere || name.starts_with("layer.") {
                format!("model.{name}")
            } else {
                name
            };
            renamed.arrays.insert(name, array);
        }
        assert_features("dinov3_hf", features(&renamed));
    }
}

#[test]
fn timm_may_leave_out_biases_of_zero() {
    let mut original = weights("dinov3");
    let mut timm = weights("dinov3_timm");
    for (name, array) in &mut original.arrays {
        if name.ends_with("qkv.bias") {
            array.values.fill(0.0);
        }
    }
    timm.arrays
        .retain(|name, _| !name.ends_with("q_bias") && !name.ends_with("v_bias"));
    let (ours, expected) = (features(&timm), features(&original));
    assert_close("class", &values(ours.class), &values(expected.class));
    assert_close("patches", &values(ours.patches), &values(expected.patches));
}

#[test]
fn weights_that_do_not_fit_are_named_as_in_their_file() {
    let device = Device::flex();
    let fault = |weights: &Weights, config: &TeacherConfig| {
        Teacher::load(weights, config, &device)
            .map(drop)
            .unwrap_err()
    };
    let shallow = TeacherConfig { depth: 1, ..SMALL };
    let surplus = WeightsError::Surplus {
        name: "layer.1".into(),
    };
    assert_eq!(fault(&weights("dinov3_hf"), &shallow), surplus);

    for (file, name) in [
        ("dinov3", "blocks.1.attn.qkv.bias"),
        ("dinov3", "blocks.0.ls1.gamma"),
        ("dinov3_hf", "layer.1.attention.v_proj.bias"),
        ("dinov3_hf", "embeddings.patch_embeddings.weight"),
        ("dinov3_timm", "blocks.0.attn.q_bias"),
        ("dinov3_timm", "blocks.1.mlp.fc2.weight"),
    ] {
        let mut weights = weights(file);
        weights.arrays.remove(name).unwrap();
        let missing = WeightsError::Missing { name: name.into() };
        assert_eq!(fault(&weights, &SMALL), missing);
    }

    let wide = TeacherConfig {
        hidden: 128,
        ..SMALL
    };
    let shape = WeightsError::Shape {
        name: "blocks.0.mlp.fc1.weight".into(),
        expected: vec![128, 32],
        found: vec![64, 32],
    };
    assert_eq!(fault(&weights("dinov3"), &wide), shape);
}

#[test]
fn sizes_are_read_from_the_weights() {
    let mut published = Weights::default();
    let mut insert = |name: &str, shape: &[usize]| {
        let values = vec![0.0; shape.iter().product()];
        let shape = shape.to_vec();
        published
            .arrays
            .insert(name.into(), Array { shape, values });
    };
    insert("model.embeddings.cls_token", &[1, 1, 128]);
    insert(
        "model.embeddings.patch_embeddings.weight",
        &[128, 3, 16, 16],
    );
    for block in 0..3 {
        insert(&format!("model.layer.{block}.norm1.weight"), &[128]);
        insert(
            &format!("model.layer.{block}.mlp.up_proj.weight"),
            &[512, 128],
        );
    }
    assert_eq!(
        TeacherConfig::of(&published).unwrap(),
        TeacherConfig {
            width: 128,
            depth: 3,
            heads: 2,
            hidden: 512,
            patch: 16,
        }
    );
    // No published network is 32 wide, and nothing in the file says how many heads this one has.
    assert!(matches!(
        TeacherConfig::of(&weights("dinov3")),
        Err(WeightsError::Shape { .. })
    ));
}

#[test]
fn the_base_teacher_has_as_many_parameters_as_published() {
    let device = Device::flex();
    let config = TeacherConfig::vit_base_16();
    let teacher = config.init(&Init::new(1, &device));
    // The published count has one token more, which stands for masked patches in training.
    assert_eq!(teacher.num_params() + config.width, 85_669_632);
}

#[test]
fn tiles_become_three_normalised_channels() {
    let device = Device::flex();
    let tiles = Tensor::from_data(
        TensorData::new(vec![0.0_f32, 0.25, 0.5, 1.0], [1, 2, 2]),
        &device,
    );
    let images = prepare(tiles);
    assert_eq!(images.dims(), [1, 3, 2, 2]);
    let expected: Vec<f32> = [(0.485_f32, 0.229_f32), (0.456, 0.224), (0.406, 0.225)]
        .into_iter()
        .flat_map(|(mean, deviation)| {
            [0.0_f32, 0.25, 0.5, 1.0].map(|height| (height - mean) / deviation)
        })
        .collect();
    assert_close("channels", &values(images), &expected);
}

#[test]
fn koleo_equals_its_reference() {
    let losses: Value = serde_json::from_slice(&read("losses.json")).unwrap();
    let rows: Vec<Vec<f32>> = serde_json::from_value(losses["koleo"]["input"].clone()).unwrap();
    let expected = losses["koleo"]["expected"].as_f64().unwrap();
    let data = TensorData::new(rows.concat(), [rows.len(), rows[0].len()]);
    let loss = koleo(Tensor::from_data(data, &Device::flex()));
    assert_close("koleo", &values(loss), &[expected as f32]);
}

#[test]
fn equal_tiles_do_not_break_koleo() {
    let device = Device::flex().autodiff();
    let data = TensorData::new(vec![0.5_f32; 16], [2, 8]);
    let vectors = Tensor::<2>::from_data(data, &device).require_grad();
    let gradients = koleo(vectors.clone()).backward();
    let gradient = values(vectors.grad(&gradients).unwrap());
    assert!(gradient.iter().all(|value| value.is_finite()));
}

#[test]
fn head_counts_are_those_of_the_specification() {
    let device = Device::flex();
    for (teacher, expected) in [(768, 2_762_752), (1024, 3_681_280)] {
        let widths = DistillationWidths {
            encoder: 768,
            decoder: 1024,
            teacher,
        };
        let heads = DistillationConfig::default().init(&widths, &mut Init::new(1, &device));
        assert_eq!(heads.num_params(), expected);
    }
}

#[test]
fn the_loss_weighs_its_parts_and_reaches_the_heads() {
    let device = Device::flex().autodiff();
    let widths = DistillationWidths {
        encoder: 6,
        decoder: 5,
        teacher: 4,
    };
    let heads = DistillationConfig::default().init(&widths, &mut Init::new(1, &device));
    // Heads of zeros predict 0, so every part is the mean square of the teacher's features.
    let heads = fill(heads, |_, shape| {
        Ok(Array {
            shape: shape.to_vec(),
            values: vec![0.0; shape.iter().product()],
        })
    })
    .unwrap();
    let plain = Device::flex();
    let teacher = TeacherFeatures {
        class: Tensor::full([2, 4], 2.0, &plain),
        patches: Tensor::full([2, 3, 4], 3.0, &plain),
    };
    let mut tokens = vec![1.0_f32; 2 * 4 * 6];
    // The tokens of the two whole tiles are at a right angle, √2 apart.
    tokens[..6].copy_from_slice(&[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    tokens[24..30].copy_from_slice(&[0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    let tokens = Tensor::<3>::from_data(TensorData::new(tokens, [2, 4, 6]), &device);
    let states = Tensor::<3>::ones([2, 4, 5], &device);
    let loss = heads.loss(tokens.clone(), states.clone(), &teacher);
    let expected = 5.0 * 4.0 + 5.0 * 9.0 - 0.1 * 2_f64.sqrt().ln();
    assert_close("loss", &values(loss.clone()), &[expected as f32]);

    let gradients = loss.backward();
    for head in [
        &heads.encoder_class,
        &heads.encoder_patches,
        &heads.decoder_class,
        &heads.decoder_patches,
    ] {
        let bias = head.dense.bias.as_ref().unwrap().val();
        let gradient = values(bias.grad(&gradients).unwrap());
        assert!(gradient.iter().all(|&value| value < 0.0));
    }

    let one = TeacherFeatures {
        class: teacher.class.narrow(0, 0, 1),
        patches: teacher.patches.narrow(0, 0, 1),
    };
    let loss = heads.loss(tokens.narrow(0, 0, 1), states.narrow(0, 0, 1), &one);
    assert_close("one tile", &values(loss), &[65.0]);
}
