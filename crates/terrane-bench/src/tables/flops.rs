//! What methods compute for a tile, in the paper's convention and as they run.

use terrane_networks::cost::{
    Account, Convention, FunctaShape, HuvrShape, Modulation, TransInrShape, TransformerShape,
};
use terrane_networks::methods::MethodConfig;
use terrane_networks::methods::huvr_siren::ModulationKind;
use terrane_report::table::{Column, Table};

use crate::Result;
use crate::runs::{Runs, Variant, methods};

/// Feed-forward width of the HUVR family's encoder over its token's.
const GATED: (usize, usize) = (8, 3);
/// Patches of TransINR's tokeniser, and the zero padding around the tile.
const TRANSINR_PATCH: usize = 9;
const TRANSINR_PAD: usize = 1;

/// The account of a method of these sizes.
pub(crate) fn account(method: &MethodConfig, convention: Convention) -> Account {
    let transformer = |width, depth, heads, hidden| TransformerShape {
        width,
        depth,
        heads,
        hidden,
    };
    match method {
        MethodConfig::TransInr(config) => TransInrShape {
            side: config.side,
            patch: TRANSINR_PATCH,
            pad: TRANSINR_PAD,
            transformer: transformer(config.width, config.depth, config.heads, config.hidden),
            groups: config.groups.min(config.mlp_width),
            features: 4 * config.frequencies,
            network_width: config.mlp_width,
            hidden_layers: config.mlp_depth - 1,
        }
        .account(convention),
        MethodConfig::Functa(config) => FunctaShape {
            side: config.side,
            latent: config.latent,
            siren_width: config.width,
            sine_layers: config.sines,
            inner_steps: config.inner_steps,
        }
        .account(convention),
        MethodConfig::Huvr(config) => HuvrShape {
            side: config.side,
            patch: config.patch,
            encoder: transformer(
                config.encoder.width,
                config.encoder.depth,
                config.encoder.heads,
                config.encoder.width * GATED.0 / GATED.1,
            ),
            bottleneck: config.bottleneck,
            decoder: transformer(
                config.decoder.width,
                config.decoder.depth,
                config.decoder.attention_heads.max(1),
                config.decoder.hidden,
            ),
            decoder_attention: config.decoder.attention_heads > 0,
            modulation: Modulation::RankOne,
            network_width: config.mlp_width,
            network_layers: 3,
            network_features: 4 * config.frequencies,
        }
        .account(convention),
        MethodConfig::HuvrSiren(config) => HuvrShape {
            side: config.side,
            patch: config.patch,
            encoder: transformer(
                config.encoder.width,
                config.encoder.depth,
                config.encoder.heads,
                config.encoder.width * GATED.0 / GATED.1,
            ),
            bottleneck: config.bottleneck,
            decoder: transformer(
                config.decoder.width,
                config.decoder.depth,
                config.decoder.attention_heads.max(1),
                config.decoder.hidden,
            ),
            decoder_attention: config.decoder.attention_heads > 0,
            modulation: match config.modulation {
                ModulationKind::AmplitudeShift => Modulation::AmplitudeShift,
                ModulationKind::Amplitude => Modulation::Amplitude,
                ModulationKind::Shift => Modulation::Shift,
                ModulationKind::Incode => Modulation::Incode,
            },
            network_width: config.siren_width,
            network_layers: 3,
            network_features: 2,
        }
        .account(convention),
    }
}

/// GFLOPs of a tile of each method, the benchmark's networks and the paper's.
pub(crate) fn flops(runs: &Runs) -> Result<Table> {
    let note = "Operations for one tile: a product with a sum is two. The paper counts attention that its decoder does not have and HUVR's network at every pixel; “as run” counts what runs. Training is one step's share for a tile; Functa's inner loop is in inference and training.";
    let columns = vec![
        Column::new("method", "method", 0),
        Column::new("size", "size", 0),
        Column::new("convention", "convention", 0),
        Column::new("parameters", "parameters", 0),
        Column::new("encoder_gflop", "encoder GF", 2),
        Column::new("decoder_gflop", "decoder GF", 2),
        Column::new("neural_decoder_gflop", "coordinate network GF", 2),
        Column::new("point_flop", "FLOP per point", 0),
        Column::new("inference_gflop", "inference GF", 2),
        Column::new("training_gflop", "training GF", 2),
    ];
    let mut table = Table::new("flops", "Operations and parameters", note, columns);
    let mut add = |method: &str,
                   size: &str,
                   account: fn(&MethodConfig, Convention) -> Account,
                   config: &MethodConfig| {
        for (name, convention) in [("paper", Convention::Paper), ("as run", Convention::AsRun)] {
            let account = account(config, convention);
            let giga = |flops: u64| flops as f64 / 1e9;
            table.row(vec![
                method.into(),
                size.into(),
                name.into(),
                account.parameters().into(),
                giga(account.encoder).into(),
                giga(account.decoder).into(),
                giga(account.neural_decoder).into(),
                account.point.into(),
                giga(account.inference).into(),
                giga(account.training).into(),
            ]);
        }
    };
    for method in methods() {
        let paper = terrane_train::config::Config::preset(method, &[])?.method;
        add(method, "paper", account, &paper);
        if method == "functa" {
            // The paper's row describes a larger network than its text.
            add(
                method,
                "paper's table",
                |_, convention| FunctaShape::flops_table().account(convention),
                &paper,
            );
        }
        let ours = runs.config(&Variant::plain(method))?.method;
        if ours != paper {
            add(method, "here", account, &ours);
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use burn::module::Module;
    use burn::tensor::Device;
    use terrane_train::config::{Config, Experiment, preset_names, preset_text};

    use super::*;

    #[test]
    fn accounts_hold_the_parameters_of_the_networks() {
        for name in preset_names()
            .into_iter()
            .filter(|name| name.ends_with("-small") && !name.starts_with("context"))
        {
            for change in [
                "",
                "method.bottleneck=48",
                "method.modulation=\"incode\"",
                "method.patch=32",
            ] {
                let changes: Vec<String> = (!change.is_empty())
                    .then(|| change.to_owned())
                    .into_iter()
                    .collect();
                let Ok(config) = Config::preset(name, &changes) else {
                    continue;
                };
                let network = config.method.init(0, &Device::flex());
                let counted = account(&config.method, Convention::AsRun).parameters();
                assert_eq!(counted, network.num_params() as u64, "{name} {change}");
            }
        }
        for (name, parameters) in [
            ("huvr", 120_156_048),
            ("huvr-siren", 121_071_207),
            ("transinr", 44_631_297),
            ("functa", 724_225),
        ] {
            let config = Config::preset(name, &[]).unwrap();
            assert_eq!(
                account(&config.method, Convention::AsRun).parameters(),
                parameters
            );
        }
    }
    /// What is known of a network beforehand is what its account says.
    #[test]
    fn every_preset_has_the_parameters_of_its_account() {
        for name in preset_names() {
            let Ok(Experiment::Method(config)) = Experiment::parse(preset_text(name).unwrap(), &[])
            else {
                continue;
            };
            let account = account(&config.method, Convention::AsRun);
            assert_eq!(
                config.method.parameters(),
                Some(account.parameters()),
                "{name}"
            );
        }
    }
}
