//! Models of every method, as files; untrained, which is enough to code with.

use burn::tensor::Device;
use terrane_codec::format::tokens::alphabet;
use terrane_codec::format::{Method, TokenTables};
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

/// Every method of the table goes through a file: encoded, decoded, asked, verified. Those without a model in the program
/// take an untrained one of their small preset, which a method without fails here for lack of.
#[test]
fn every_method_goes_through_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    let size = ["generate", "dem.tif", "--size", "300x270", "--seed", "3"];
    stdout(&run(&size));
    for method in Method::ALL {
        let name = method.name();
        let mut model = Vec::new();
        if method.has_tokens() {
            let path = folder.path().join("model.safetensors");
            let weights = untrained(&format!("{name}-small"));
            std::fs::write(path, weights.to_bytes().unwrap()).unwrap();
            model = vec!["--model", "model.safetensors"];
        }
        let with_model = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().chain(&model).copied().collect();
            run(&arguments)
        };
        let bound = ["--max-error", "0.25", "--overwrite"];
        let encode = ["encode", "dem.tif", "x.trn", "--method", name];
        stdout(&with_model(&[&encode[..], &bound].concat()));
        let info = json(&run(&["info", "x.trn", "--json"]));
        assert_eq!(info["method"], name);
        assert_eq!(info["model"].is_object(), method.needs_model());
        stdout(&with_model(&["decode", "x.trn", "back.tif", "--overwrite"]));
        let point = ["--at", "500100.5,5199900.5", "--json"];
        let sample = json(&with_model(&[&["query", "x.trn"][..], &point].concat()));
        assert!(sample[0]["slope_deg"].is_number(), "{name}: {sample}");
        let against = ["--against", "dem.tif", "--json"];
        let report = json(&with_model(&[&["verify", "x.trn"][..], &against].concat()));
        assert_eq!(report["holds"], true, "{name}: {report}");
        if !method.has_tokens() {
            continue;
        }
        // Tokens alone, of a network that learned nothing, are far off; integers in their stead would be exact.
        let tokens = ["encode", "dem.tif", "x.trn", "--bits", "8", "--overwrite"];
        let report = json(&with_model(&[&tokens[..], &["--json"]].concat()));
        let error = report["max_error_m"].as_f64().unwrap();
        assert!(error > 0.25, "{name}: {report}");
        // And nothing else decodes them.
        let text = complaint(&run(&["decode", "x.trn", "other.tif"]));
        assert!(text.contains("model"), "{name}: {text}");
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
        let text = complaint(&rate(method, "0.005"));
        assert!(
            text.contains("of 0.005 cannot be reached: the least that there is is"),
            "{text}"
        );
    }
    let text = complaint(&rate(&["huvr-siren", "--per-tile"], "0.3"));
    assert!(
        text.contains("cannot be brought to 0.3 bits per pixel"),
        "{text}"
    );
}
