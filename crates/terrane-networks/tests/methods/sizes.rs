//! What is known of a network from its configuration alone.

use burn::module::Module;
use burn::tensor::Device;
use terrane_networks::blocks::{DecoderConfig, EncoderConfig};
use terrane_networks::methods::functa::Coordinates;
use terrane_networks::methods::huvr_siren::ModulationKind;
use terrane_networks::methods::{MethodConfig, functa, huvr, huvr_siren, transinr};
use terrane_networks::weights::Weights;

use crate::acceptance::paper;

const ENCODER: EncoderConfig = EncoderConfig {
    width: 24,
    depth: 2,
    heads: 3,
};
const DECODER: DecoderConfig = DecoderConfig {
    width: 20,
    depth: 3,
    hidden: 7,
    attention_heads: 0,
};
const FUNCTA: functa::Config = functa::Config {
    side: 9,
    latent: 5,
    width: 7,
    sines: 3,
    omega: 30.0,
    inner_steps: 2,
    coordinates: Coordinates::Unit,
};
const TRANSINR: transinr::Config = transinr::Config {
    side: 16,
    width: 12,
    depth: 2,
    heads: 3,
    hidden: 5,
    groups: 4,
    mlp_depth: 3,
    mlp_width: 8,
    frequencies: 3,
};
const HUVR: huvr::Config = huvr::Config {
    side: 24,
    patch: 8,
    bottleneck: 6,
    encoder: ENCODER,
    decoder: DECODER,
    mlp_width: 10,
    frequencies: 3,
};

fn huvr_siren(modulation: ModulationKind) -> huvr_siren::Config {
    huvr_siren::Config {
        side: 21,
        patch: 7,
        bottleneck: 6,
        encoder: ENCODER,
        decoder: DECODER,
        siren_width: 9,
        omega: 10.0,
        modulation,
    }
}

/// Every method in sizes that share no factor by chance, with every part that can be absent once there and once not.
pub(crate) fn odd() -> Vec<MethodConfig> {
    let shift = huvr_siren(ModulationKind::Shift);
    let attention = DecoderConfig {
        attention_heads: 5,
        ..DECODER
    };
    vec![
        MethodConfig::Functa(FUNCTA),
        MethodConfig::Functa(functa::Config { sines: 1, ..FUNCTA }),
        MethodConfig::TransInr(TRANSINR),
        MethodConfig::TransInr(transinr::Config {
            groups: 100,
            mlp_depth: 1,
            side: 7,
            ..TRANSINR
        }),
        MethodConfig::Huvr(HUVR),
        MethodConfig::Huvr(huvr::Config {
            bottleneck: ENCODER.width,
            decoder: attention,
            patch: 4,
            frequencies: 1,
            ..HUVR
        }),
        MethodConfig::HuvrSiren(huvr_siren(ModulationKind::AmplitudeShift)),
        MethodConfig::HuvrSiren(huvr_siren(ModulationKind::Amplitude)),
        MethodConfig::HuvrSiren(huvr_siren(ModulationKind::Incode)),
        MethodConfig::HuvrSiren(huvr_siren::Config {
            bottleneck: DECODER.width,
            decoder: attention,
            patch: 21,
            ..shift
        }),
        MethodConfig::HuvrSiren(huvr_siren::Config {
            side: 1,
            patch: 1,
            ..shift
        }),
    ]
}

#[test]
fn arrays_are_those_of_the_network() {
    let device = Device::flex();
    for config in odd() {
        config.check().unwrap();
        let network = config.init(1, &device);
        let weights = Weights::of(&network);
        let expected: Vec<(String, Vec<usize>)> = weights
            .arrays
            .iter()
            .map(|(name, array)| (name.clone(), array.shape.clone()))
            .collect();
        let mut found = config.arrays().unwrap();
        found.sort();
        assert_eq!(found, expected, "{config:?}");
        assert_eq!(config.parameters(), Some(network.num_params() as u64));
        assert!(config.working_bytes().unwrap() > 0);
    }
}

/// The counts of the papers' networks, none of which is made.
#[test]
fn large_networks_are_counted_without_their_memory() {
    let siren = paper(ModulationKind::AmplitudeShift);
    let functa = functa::Config {
        side: 256,
        latent: 512,
        width: 256,
        sines: 4,
        ..FUNCTA
    };
    let greatest = functa::Config {
        side: 16_384,
        latent: 16_384,
        width: 16_384,
        sines: 1024,
        ..FUNCTA
    };
    let expected =
        16_384_u64.pow(2) * 1023 + 16_384 * 1027 + 1 + 1024 * 16_384 * (16_384 + 1) + 16_384;
    for (config, count) in [
        (MethodConfig::HuvrSiren(siren), 121_071_207),
        (MethodConfig::Functa(functa), 724_225),
        (MethodConfig::Functa(greatest), expected),
    ] {
        assert_eq!(config.parameters(), Some(count));
    }
}

#[test]
fn sizes_that_no_network_can_have_are_named() {
    let patch = |patch| MethodConfig::Huvr(huvr::Config { patch, ..HUVR });
    let encoder = |width, heads| {
        MethodConfig::Huvr(huvr::Config {
            encoder: EncoderConfig {
                width,
                heads,
                ..ENCODER
            },
            ..HUVR
        })
    };
    let decoder = |attention_heads| {
        MethodConfig::Huvr(huvr::Config {
            decoder: DecoderConfig {
                attention_heads,
                ..DECODER
            },
            ..HUVR
        })
    };
    let functa = |width, omega| {
        MethodConfig::Functa(functa::Config {
            width,
            omega,
            ..FUNCTA
        })
    };
    let transinr = |side, heads, groups| {
        MethodConfig::TransInr(transinr::Config {
            side,
            heads,
            groups,
            ..TRANSINR
        })
    };
    for (config, expected) in [
        (
            patch(7),
            "method.patch must divide method.side (24), and is 7",
        ),
        (patch(0), "method.patch must be from 1 to 16384, and is 0"),
        (
            patch(6),
            "method.patch must be a multiple of the points along a patch (4), and is 6",
        ),
        (
            encoder(24, 4),
            "method.encoder.width must be a multiple of 4 times method.encoder.heads (16), and is 24",
        ),
        (
            encoder(24, 0),
            "method.encoder.heads must be from 1 to 16384, and is 0",
        ),
        (
            decoder(3),
            "method.decoder.attention_heads must divide method.decoder.width (20), and is 3",
        ),
        (
            functa(100_000_000, 30.0),
            "method.width must be from 1 to 16384, and is 100000000",
        ),
        (
            functa(7, f64::NAN),
            "method.omega must be a number above 0, and is NaN",
        ),
        (
            functa(7, 0.0),
            "method.omega must be a number above 0, and is 0",
        ),
        (
            transinr(6, 3, 4),
            "method.side must be at least 7, so that a patch fits, and is 6",
        ),
        (
            transinr(16, 5, 4),
            "method.heads must divide method.width (12), and is 5",
        ),
        (
            transinr(16, 3, 3),
            "method.groups must divide method.mlp_width (8), and is 3",
        ),
    ] {
        assert_eq!(config.check().unwrap_err().to_string(), expected);
        assert!(config.arrays().is_err() && !config.is_sound());
        assert_eq!((config.parameters(), config.working_bytes()), (None, None));
    }
}
