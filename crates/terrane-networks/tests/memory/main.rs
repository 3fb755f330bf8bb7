//! What decoding a tile takes of memory, against what the configuration says; each in a process of its own.

use std::process::Command;

use burn::tensor::{Device, Tensor};
use terrane_networks::blocks::{DecoderConfig, EncoderConfig};
use terrane_networks::field::OVERLAP;
use terrane_networks::methods::functa::Coordinates;
use terrane_networks::methods::huvr_siren::ModulationKind;
use terrane_networks::methods::{
    Method, MethodConfig, Precision, functa, huvr, huvr_siren, transinr,
};

/// What a process takes for itself.
const SPARE: u64 = 16 << 20;

/// A value of this process in bytes, as Linux tells it.
fn status(key: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

fn decode(config: &MethodConfig) {
    let device = Device::flex();
    let network = config.init(0, &device);
    let [count, channels] = config.token_shape();
    let tokens = Tensor::<3>::zeros([1, count, channels], &device);
    match network.decode_overlapping(tokens.clone(), OVERLAP) {
        Some(overlap) => drop(overlap.blend(config.side())),
        None => drop(network.decode(tokens.clone(), Precision::Full).into_data()),
    }
    drop(network.field(tokens));
}

/// Networks of which the points, the patches, the weights or the tables take most.
fn configs() -> Vec<MethodConfig> {
    let encoder = EncoderConfig {
        width: 96,
        depth: 1,
        heads: 4,
    };
    let decoder = |attention_heads| DecoderConfig {
        width: 128,
        depth: 2,
        hidden: 256,
        attention_heads,
    };
    let siren = |side, patch, siren_width, attention_heads, modulation| {
        MethodConfig::HuvrSiren(huvr_siren::Config {
            side,
            patch,
            bottleneck: 32,
            encoder,
            decoder: decoder(attention_heads),
            siren_width,
            omega: 10.0,
            modulation,
        })
    };
    let huvr = |side, patch, mlp_width, attention_heads| {
        MethodConfig::Huvr(huvr::Config {
            side,
            patch,
            bottleneck: 32,
            encoder,
            decoder: decoder(attention_heads),
            mlp_width,
            frequencies: 16,
        })
    };
    let functa = |side, width, sines| {
        MethodConfig::Functa(functa::Config {
            side,
            latent: 128,
            width,
            sines,
            omega: 30.0,
            inner_steps: 1,
            coordinates: Coordinates::Unit,
        })
    };
    let transinr = |side, mlp_width, frequencies| {
        MethodConfig::TransInr(transinr::Config {
            side,
            width: 64,
            depth: 1,
            heads: 1,
            hidden: 128,
            groups: 32,
            mlp_depth: 3,
            mlp_width,
            frequencies,
        })
    };
    vec![
        siren(256, 16, 32, 0, ModulationKind::AmplitudeShift),
        siren(512, 16, 256, 0, ModulationKind::AmplitudeShift),
        siren(512, 8, 32, 0, ModulationKind::Incode),
        siren(256, 2, 32, 0, ModulationKind::Incode),
        siren(256, 8, 16, 4, ModulationKind::Shift),
        huvr(256, 16, 64, 0),
        huvr(1024, 16, 128, 0),
        huvr(1024, 4, 32, 0),
        huvr(512, 8, 16, 4),
        functa(256, 32, 3),
        functa(512, 256, 2),
        functa(2048, 1, 1),
        functa(16, 1024, 4),
        transinr(256, 32, 32),
        transinr(512, 256, 64),
        transinr(256, 32, 1024),
        transinr(16, 1024, 64),
    ]
}

/// The number of the configuration that a process of its own decodes.
const NUMBER: &str = "TERRANE_TEST_CONFIG";

#[test]
#[ignore = "run by the other test, in a process of its own"]
fn decode_one() {
    let number: usize = std::env::var(NUMBER).unwrap().parse().unwrap();
    let before = status("VmRSS").unwrap();
    decode(&configs()[number]);
    println!("taken {}", status("VmHWM").unwrap() - before);
}

#[test]
fn decoding_takes_no_more_than_its_configuration_says() {
    if status("VmHWM").is_none() {
        println!("skipped: this system does not tell what memory a process takes");
        return;
    }
    for (number, config) in configs().iter().enumerate() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "decode_one", "--ignored", "--nocapture"])
            .env(NUMBER, number.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let taken = text.lines().find_map(|line| line.split_once("taken "));
        let taken: u64 = taken.unwrap().1.parse().unwrap();
        let weights = 4 * config.parameters().unwrap();
        let said = config.working_bytes().unwrap();
        println!(
            "{taken:>11} bytes with weights of {weights:>9}, said {said:>11}, {:.2} of it: {config:?}",
            taken.saturating_sub(weights) as f64 / said as f64
        );
        // The program itself and its threads take a little too.
        assert!(taken <= weights + said + SPARE, "{config:?}");
        assert!(said <= 8 * taken + SPARE, "{config:?}");
    }
}
