//! What the specification promises of each method: counts, initial outputs, invariances, derivatives.

use burn::module::Module;
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use terrane_networks::blocks::{DecoderConfig, EncoderConfig, pixel_grid};
use terrane_networks::cost::{self, Convention};
use terrane_networks::init::Init;
use terrane_networks::methods::huvr_siren::ModulationKind;
use terrane_networks::methods::{Method, Precision, functa, huvr, huvr_siren, transinr};

const ENCODER: EncoderConfig = EncoderConfig {
    width: 768,
    depth: 12,
    heads: 16,
};
const DECODER: DecoderConfig = DecoderConfig {
    width: 1024,
    depth: 4,
    hidden: 4096,
    attention_heads: 0,
};

pub(crate) fn paper(modulation: ModulationKind) -> huvr_siren::Config {
    huvr_siren::Config {
        side: 256,
        patch: 16,
        bottleneck: 32,
        encoder: ENCODER,
        decoder: DECODER,
        siren_width: 256,
        omega: 10.0,
        modulation,
    }
}

fn small() -> huvr_siren::Config {
    huvr_siren::Config {
        side: 32,
        patch: 8,
        bottleneck: 6,
        encoder: EncoderConfig {
            width: 32,
            depth: 2,
            heads: 2,
        },
        decoder: DecoderConfig {
            width: 24,
            depth: 2,
            hidden: 48,
            attention_heads: 0,
        },
        siren_width: 16,
        omega: 10.0,
        modulation: ModulationKind::AmplitudeShift,
    }
}

pub(crate) fn tiles(count: usize, side: usize, seed: u64) -> Tensor<3> {
    let mut random = terrane_codec::random::Random::new(seed, 0);
    let values: Vec<f32> = (0..count * side * side)
        .map(|_| random.unit() as f32)
        .collect();
    Tensor::from_data(
        TensorData::new(values, [count, side, side]),
        &Device::flex(),
    )
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec::<f32>().unwrap()
}

fn largest_difference<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> f32 {
    values(a)
        .iter()
        .zip(values(b))
        .map(|(x, y)| (x - y).abs())
        .fold(0.0, f32::max)
}

/// Counted on the network itself, without drawing a hundred million numbers more than once.
#[test]
fn parameter_counts_are_those_of_the_specification() {
    let device = Device::flex();
    let mut init = Init::new(1, &device);
    let network = paper(ModulationKind::AmplitudeShift).init(&mut init);
    assert_eq!(network.encoder.num_params(), 85_708_800);
    assert_eq!(network.decoder.num_params(), 33_583_104);
    assert_eq!(network.siren.num_params(), 132_609);
    assert_eq!(network.num_params(), 121_071_207);
    let rest = 121_071_207 - network.amplitudes.num_params() - network.phases.num_params();
    drop(network);

    // Only the heads differ between the modulations, so tiny trunks show their sizes.
    let heads = |modulation| {
        let mut config = paper(modulation);
        config.encoder = EncoderConfig {
            width: 48,
            depth: 1,
            heads: 4,
        };
        config.decoder.depth = 1;
        config.decoder.hidden = 8;
        let network = config.init(&mut Init::new(1, &Device::flex()));
        network.amplitudes.num_params() + network.phases.num_params() + network.incode.num_params()
    };
    assert_eq!(rest + heads(ModulationKind::Amplitude), 120_277_863);
    assert_eq!(rest + heads(ModulationKind::Shift), 120_277_863);
    assert_eq!(rest + heads(ModulationKind::Incode), 122_639_463);

    let huvr = huvr::Config {
        side: 256,
        patch: 16,
        bottleneck: 32,
        encoder: EncoderConfig {
            depth: 0,
            ..ENCODER
        },
        decoder: DecoderConfig {
            depth: 0,
            ..DECODER
        },
        mlp_width: 256,
        frequencies: 32,
    };
    // A block of the encoder has 7,092,992 parameters, the decoder 33,583,104; both were counted above.
    assert_eq!(
        huvr.init(&mut init).num_params() + 12 * 7_092_992 + 33_583_104,
        120_156_048
    );

    let transinr = transinr::Config {
        side: 256,
        width: 768,
        depth: 6,
        heads: 12,
        hidden: 3072,
        groups: 64,
        mlp_depth: 5,
        mlp_width: 256,
        frequencies: 64,
    };
    assert_eq!(transinr.init(&mut init).num_params(), 44_631_297);
    assert_eq!(paper_functa().init(&mut init).num_params(), 724_225);
}

fn paper_functa() -> functa::Config {
    functa::Config {
        side: 256,
        latent: 512,
        width: 256,
        sines: 4,
        omega: 30.0,
        inner_steps: 3,
        coordinates: functa::Coordinates::Unit,
    }
}

#[test]
fn the_accounts_agree_with_the_networks() {
    let accounts = [
        (
            cost::HuvrShape::paper(cost::Modulation::AmplitudeShift).account(Convention::AsRun),
            121_071_207,
        ),
        (
            cost::HuvrShape::paper(cost::Modulation::RankOne).account(Convention::AsRun),
            120_156_048,
        ),
        (
            cost::TransInrShape::paper().account(Convention::AsRun),
            44_631_297,
        ),
        (
            cost::FunctaShape::paper().account(Convention::AsRun),
            724_225,
        ),
    ];
    for (account, parameters) in accounts {
        assert_eq!(account.parameters(), parameters);
    }
}

#[test]
fn huvr_siren_starts_with_the_same_patch_everywhere() {
    let network = small().init(&mut Init::new(3, &Device::flex()));
    let output = network.decode(
        network.encode(tiles(2, 32, 1), Precision::Full),
        Precision::Full,
    );
    let first = output
        .clone()
        .narrow(0, 0, 1)
        .narrow(1, 0, 8)
        .narrow(2, 0, 8);
    for (tile, row, column) in [(0, 8, 0), (0, 24, 16), (1, 0, 0), (1, 16, 24)] {
        let other = output
            .clone()
            .narrow(0, tile, 1)
            .narrow(1, row, 8)
            .narrow(2, column, 8);
        assert!(largest_difference(first.clone(), other) < 1e-6);
    }
}

/// A network whose heads do something, as after some training.
fn trained() -> huvr_siren::HuvrSiren {
    trained_with(0)
}

fn trained_with(attention_heads: usize) -> huvr_siren::HuvrSiren {
    let mut random = terrane_codec::random::Random::new(9, 0);
    let mut config = small();
    config.decoder.attention_heads = attention_heads;
    let network = config.init(&mut Init::new(3, &Device::flex()));
    terrane_networks::weights::fill(network, |path, shape| {
        let is_head = path.starts_with("amplitudes") || path.starts_with("phases");
        let scale = match path {
            _ if is_head && path.ends_with("dense.weight") => 0.3,
            // As smooth as a trained network: rough ones have no central differences to speak of.
            _ if path.starts_with("siren.layers.0") => 0.3,
            _ if path.starts_with("siren") => 0.03,
            _ => 0.2,
        };
        let offset = if path.ends_with("norm.weight")
            || path.ends_with("norm1.weight")
            || path.ends_with("norm2.weight")
        {
            1.0
        } else {
            0.0
        };
        let values = (0..shape.iter().product())
            .map(|_| (offset + scale * random.normal()) as f32)
            .collect();
        Ok(terrane_networks::weights::Array {
            shape: shape.to_vec(),
            values,
        })
    })
    .unwrap()
}

/// Training leaves out what does not reach the tiles.
#[test]
fn the_error_of_training_is_that_of_decoded_tiles() {
    for attention_heads in [0, 2] {
        let network = trained_with(attention_heads);
        let tiles = tiles(3, 32, 4);
        let tokens = network.encode(tiles.clone(), Precision::Full);
        let decoded = network.decode(tokens, Precision::Full);
        let expected = (decoded - tiles.clone()).square().mean();
        let error = network.square_error(tiles, Precision::Full);
        let [error, expected] = [error, expected].map(|error| values(error)[0]);
        assert!((error / expected - 1.0).abs() < 1e-5, "{error} {expected}");
    }
}

#[test]
fn a_patch_is_decoded_from_its_own_token_alone() {
    let network = trained();
    let tokens = network.encode(tiles(1, 32, 2), Precision::Full);
    let output = network.decode(tokens.clone(), Precision::Full);
    let changed = |token: usize| {
        let [_, count, width] = tokens.dims();
        let mut noise = vec![0.0_f32; count * width];
        noise[token * width] = 0.7;
        tokens.clone()
            + Tensor::from_data(TensorData::new(noise, [1, count, width]), &Device::flex())
    };
    // Token 6 is the patch of the second row and the second column.
    let difference = values(network.decode(changed(6), Precision::Full) - output.clone());
    for (pixel, &change) in difference.iter().enumerate() {
        let (row, column) = (pixel / 32, pixel % 32);
        let is_inside = (8..16).contains(&row) && (8..16).contains(&column);
        assert!(
            is_inside || change == 0.0,
            "row {row}, column {column}: {change}"
        );
    }
    assert!(difference.iter().any(|change| change.abs() > 1e-3));
    // The token of the whole tile changes nothing.
    assert_eq!(
        largest_difference(network.decode(changed(0), Precision::Full), output.clone()),
        0.0
    );
    // Nor do a positive factor and a shift of a token, up to the norm's epsilon.
    let moved = tokens.mul_scalar(40.0).add_scalar(3.0);
    assert!(largest_difference(network.decode(moved, Precision::Full), output) < 2e-3);
}

#[test]
fn huvr_knows_columns_by_direction_and_the_whole_tile_by_sign() {
    let config = huvr::Config {
        side: 32,
        patch: 8,
        bottleneck: 6,
        encoder: EncoderConfig {
            width: 32,
            depth: 1,
            heads: 2,
        },
        decoder: DecoderConfig {
            width: 24,
            depth: 1,
            hidden: 32,
            attention_heads: 0,
        },
        mlp_width: 16,
        frequencies: 4,
    };
    let network = config.init(&mut Init::new(5, &Device::flex()));
    let tokens = network.encode(tiles(1, 32, 3), Precision::Full);
    let output = network.decode(tokens.clone(), Precision::Full);
    let scaled = |part: &'static str, factor: f32, rows: std::ops::Range<usize>| {
        let network = terrane_networks::weights::fill(network.clone(), |path, shape| {
            let mut array = terrane_networks::weights::Weights::of(&network).arrays[path].clone();
            if path == part {
                let columns = *shape.last().unwrap();
                for row in rows.clone() {
                    array.values[row * columns + 1] *= factor;
                }
            }
            Ok(array)
        })
        .unwrap();
        network.decode(tokens.clone(), Precision::Full)
    };
    // Columns of the layers and of the convolution count by direction; the last row is the bias.
    assert!(largest_difference(scaled("layers.0.packed", 3.0, 0..16), output.clone()) < 1e-5);
    assert!(largest_difference(scaled("layers.1.packed", 3.0, 0..16), output.clone()) < 1e-5);
    assert!(largest_difference(scaled("convolution.packed", 3.0, 0..144), output.clone()) < 1e-5);
    assert!(largest_difference(scaled("layers.1.packed", -1.0, 0..16), output) > 1e-6);
}

#[test]
fn transinr_does_not_see_the_last_five_rows_and_columns() {
    let config = transinr::Config {
        side: 256,
        width: 24,
        depth: 1,
        heads: 2,
        hidden: 24,
        groups: 4,
        mlp_depth: 3,
        mlp_width: 8,
        frequencies: 4,
    };
    let network = config.init(&mut Init::new(7, &Device::flex()));
    let tile = tiles(1, 256, 4);
    let mut changed = values(tile.clone());
    for index in 0..256 {
        for last in 251..256 {
            changed[index * 256 + last] = 0.5;
            changed[last * 256 + index] = 0.5;
        }
    }
    let changed = Tensor::from_data(TensorData::new(changed, [1, 256, 256]), &Device::flex());
    let encode = |tile| network.encode(tile, Precision::Full);
    assert_eq!(
        largest_difference(encode(tile.clone()), encode(changed)),
        0.0
    );
    let mut seen = values(tile.clone());
    seen[250 * 256 + 250] += 1.0;
    let seen = Tensor::from_data(TensorData::new(seen, [1, 256, 256]), &Device::flex());
    assert!(largest_difference(encode(tile), encode(seen)) > 0.0);
}

#[test]
fn functa_without_steps_or_with_steps_of_nought_keeps_a_latent_of_nought() {
    let mut config = paper_functa();
    config.side = 16;
    config.latent = 8;
    config.width = 12;
    let network = config.init(&mut Init::new(1, &Device::flex()));
    assert!(
        values(network.encode(tiles(2, 16, 5), Precision::Full))
            .iter()
            .any(|&value| value != 0.0)
    );
    let still = terrane_networks::weights::fill(network.clone(), |path, shape| {
        let mut array = terrane_networks::weights::Weights::of(&network).arrays[path].clone();
        if path == "inner_rates" {
            array.values = vec![-1.0; shape[0]];
        }
        Ok(array)
    })
    .unwrap();
    assert!(
        values(still.encode(tiles(2, 16, 5), Precision::Full))
            .iter()
            .all(|&value| value == 0.0)
    );
    config.inner_steps = 0;
    let plain = config.init(&mut Init::new(1, &Device::flex()));
    assert!(
        values(plain.encode(tiles(2, 16, 5), Precision::Full))
            .iter()
            .all(|&value| value == 0.0)
    );
}

#[test]
fn jets_are_the_derivatives_of_the_surface() {
    // In double precision, against central differences of the same network.
    let device = Device::flex();
    let network = trained();
    let tokens = network
        .encode(tiles(1, 32, 6), Precision::Full)
        .cast(FloatDType::F64);
    let points = pixel_grid(5, &device).cast(FloatDType::F64);
    let value_at = |row: f64, column: f64| {
        let shift = Tensor::<2>::from_data([[row, column]], &device).cast(FloatDType::F64);
        network
            .jet_at(tokens.clone(), points.clone() + shift)
            .value
            .into_data()
            .try_to_vec::<f64>()
            .unwrap()
    };
    let jet = network.jet_at(tokens.clone(), points.clone());
    let step = 1e-4;
    let part = |tensor: Tensor<3>| tensor.into_data().try_to_vec::<f64>().unwrap();
    let (value, row, column) = (part(jet.value), part(jet.row), part(jet.column));
    let (row_row, row_column, column_column) = (
        part(jet.row_row),
        part(jet.row_column),
        part(jet.column_column),
    );
    let scale = |values: &[f64]| {
        values
            .iter()
            .fold(0.0_f64, |most, value| most.max(value.abs()))
    };
    let [up, down, left, right] = [
        value_at(-step, 0.0),
        value_at(step, 0.0),
        value_at(0.0, -step),
        value_at(0.0, step),
    ];
    let [nw, ne, sw, se] = [
        value_at(-step, -step),
        value_at(-step, step),
        value_at(step, -step),
        value_at(step, step),
    ];
    let (s1, s2) = (
        scale(&row).max(scale(&column)),
        scale(&row_row).max(scale(&column_column)),
    );
    for index in 0..value.len() {
        let check = |ours: f64, theirs: f64, size: f64| {
            assert!((ours - theirs).abs() < 1e-5 * size, "{ours} {theirs}");
        };
        check(row[index], (down[index] - up[index]) / (2.0 * step), s1);
        check(
            column[index],
            (right[index] - left[index]) / (2.0 * step),
            s1,
        );
        check(
            row_row[index],
            (down[index] - 2.0 * value[index] + up[index]) / (step * step),
            s2,
        );
        check(
            column_column[index],
            (right[index] - 2.0 * value[index] + left[index]) / (step * step),
            s2,
        );
        check(
            row_column[index],
            (se[index] - sw[index] - ne[index] + nw[index]) / (4.0 * step * step),
            s2,
        );
    }
}
