//! Models of every method, as files; untrained, which is enough to code with.

use burn::tensor::Device;
use terrane_codec::format::TokenTables;
use terrane_codec::format::tokens::alphabet;
use terrane_networks::model::{CONFIG_KEY, table_arrays};
use terrane_networks::weights::Weights;
use terrane_train::config::Config;

use crate::{complaint, json, stdout, terrane};

/// A model of a preset with initial weights and flat tables.
pub(crate) fn untrained(preset: &str) -> Weights {
    let config = Config::preset(preset, &[]).unwrap();
    let mut weights = Weights::of(&config.method.init(7, &Device::flex()));
    let [_, channels] = config.method.token_shape();
    let tables = TokenTables::from_counts(channels, |bits, _| vec![1; alphabet(bits)]).unwrap();
    weights.arrays.extend(table_arrays(&tables));
    let text = terrane_train::config::preset_text(preset).unwrap();
    weights.metadata.insert(CONFIG_KEY.into(), text.into());
    weights
}

#[test]
fn every_method_goes_through_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    let size = ["generate", "dem.tif", "--size", "300x270", "--seed", "3"];
    stdout(&run(&size));
    for (method, preset) in [
        ("context", None),
        ("integers", None),
        ("huvr-siren", None),
        ("transinr", Some("transinr-small")),
        ("functa", Some("functa-small")),
        ("huvr", Some("huvr-small")),
        ("huvr-siren", Some("huvr-siren-small")),
    ] {
        let mut model = Vec::new();
        if let Some(preset) = preset {
            let path = folder.path().join("model.safetensors");
            std::fs::write(path, untrained(preset).to_bytes().unwrap()).unwrap();
            model = vec!["--model", "model.safetensors"];
        }
        let encode = [
            "encode",
            "dem.tif",
            "x.trn",
            "--method",
            method,
            "--overwrite",
        ];
        let bound = ["--max-error", "0.25"];
        stdout(&run(&[&encode[..], &bound, &model].concat()));
        let verify = ["verify", "x.trn", "--against", "dem.tif", "--json"];
        let report = json(&run(&[&verify[..], &model].concat()));
        assert_eq!(report["holds"], true, "{method}: {report}");
        let info = json(&run(&["info", "x.trn", "--json"]));
        assert_eq!(info["method"], method);
        stdout(&run(&[
            &["decode", "x.trn", "back.tif", "--overwrite"],
            &model[..],
        ]
        .concat()));
        let query = ["query", "x.trn", "--at", "500100.5,5199900.5", "--json"];
        let sample = json(&run(&[&query[..], &model].concat()));
        assert!(sample[0]["slope_deg"].is_number(), "{method}: {sample}");
    }
}

#[test]
fn a_rate_is_reached_or_said_not_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    let size = ["generate", "dem.tif", "--size", "520x512", "--seed", "3"];
    stdout(&run(&size));
    let path = folder.path().join("model.safetensors");
    std::fs::write(path, untrained("transinr-small").to_bytes().unwrap()).unwrap();
    let encode = [
        "encode",
        "dem.tif",
        "x.trn",
        "--overwrite",
        "--json",
        "--method",
    ];
    let rate = |method: &[&str], bpp: &str| run(&[&encode[..], method, &["--bpp", bpp]].concat());
    for method in [
        &["integers"][..],
        &["context"],
        &["huvr-siren"],
        &["transinr", "--model", "model.safetensors"],
    ] {
        let report = json(&rate(method, "3"));
        let reached = report["bpp"].as_f64().unwrap();
        assert!((reached / 3.0 - 1.0).abs() < 0.02, "{method:?}: {reached}");
    }
    // Less than the tokens take, or the head.
    for method in [
        &["integers"][..],
        &["context"],
        &["huvr-siren"],
        &["transinr", "--model", "model.safetensors"],
    ] {
        let text = complaint(&rate(method, "0.1"));
        assert!(
            text.contains("of 0.1 cannot be reached: it is still"),
            "{text}"
        );
    }
    let text = complaint(&rate(&["huvr-siren", "--per-tile"], "0.3"));
    assert!(
        text.contains("cannot be brought to 0.3 bits per pixel"),
        "{text}"
    );
}
