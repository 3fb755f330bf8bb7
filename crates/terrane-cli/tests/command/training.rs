//! Training and evaluation from the command line, on a terrain of our own.

use std::path::Path;

use crate::{complaint, json, stdout, terrane};

/// A dataset of two rasters: tiles to train on and others to test with.
pub(crate) fn dataset(folder: &Path) {
    std::fs::create_dir(folder.join("rasters")).unwrap();
    for (name, seed) in [("a", "1"), ("b", "2")] {
        let file = format!("rasters/{name}.tif");
        stdout(&terrane(
            folder,
            &["generate", &file, "--size", "520x300", "--seed", seed],
        ));
    }
    std::fs::write(
        folder.join("rasters/catalog.csv"),
        "file,split\na.tif,train\nb.tif,test\n",
    )
    .unwrap();
    stdout(&terrane(folder, &["dataset", "build", "rasters", "tiles"]));
}

#[test]
fn a_context_model_is_trained_resumed_and_used() {
    let folder = tempfile::tempdir().unwrap();
    dataset(folder.path());
    let run = |arguments: &[&str]| json(&terrane(folder.path(), arguments));
    let trained = run(&[
        "train",
        "context-fast",
        "--json",
        "--data",
        "tiles",
        "--out",
        "run",
        "--set",
        "train.steps=20",
        "--set",
        "train.batch=2",
        "--set",
        "train.samples=32",
        "--set",
        "train.checkpoint_every=10",
        "--set",
        "train.log_every=1",
        "--set",
        "train.count_tiles=2",
    ]);
    assert_eq!(trained["steps"], 20);
    let losses: Vec<f64> = std::fs::read_to_string(folder.path().join("run/metrics.jsonl"))
        .unwrap()
        .lines()
        .filter_map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["loss"].as_f64()
        })
        .collect();
    assert_eq!(losses.len(), 20);
    assert!(
        losses[15..].iter().sum::<f64>() < losses[..5].iter().sum::<f64>(),
        "{losses:?}"
    );
    let resumed = run(&[
        "train",
        "--resume",
        "--data",
        "tiles",
        "--out",
        "run",
        "--set",
        "train.steps=22",
        "--json",
    ]);
    assert_eq!(resumed["steps"], 22);
    // Its model codes a raster, and the file holds it.
    let encoded = run(&[
        "encode",
        "rasters/b.tif",
        "b.trn",
        "--model",
        "run/model.safetensors",
        "--embed-model",
        "--max-error",
        "0.2",
        "--json",
    ]);
    assert!(encoded["max_error_m"].as_f64().unwrap() <= 0.2);
    stdout(&terrane(
        folder.path(),
        &["verify", "b.trn", "--against", "rasters/b.tif"],
    ));
    let info = run(&["info", "b.trn", "--json"]);
    assert_eq!(info["method"], "context");
}

#[test]
fn a_model_is_trained_resumed_and_evaluated() {
    let folder = tempfile::tempdir().unwrap();
    dataset(folder.path());
    let short = [
        "--data",
        "tiles",
        "--out",
        "run",
        "--set",
        "train.steps=2",
        "--set",
        "train.batch=1",
    ];
    let mut arguments = vec!["train", "huvr-siren-small", "--json"];
    arguments.extend(short);
    let trained = json(&terrane(folder.path(), &arguments));
    assert_eq!(trained["steps"], 2);
    assert!(trained["loss"].as_f64().unwrap() > 0.0);
    for name in [
        "config.toml",
        "metrics.jsonl",
        "checkpoint.safetensors",
        "model.safetensors",
    ] {
        assert!(folder.path().join("run").join(name).exists(), "{name}");
    }
    let text = complaint(&terrane(folder.path(), &arguments));
    assert!(
        text.contains("run: holds a run already; use --resume"),
        "{text}"
    );
    let resume = [
        "train",
        "--resume",
        "--data",
        "tiles",
        "--out",
        "run",
        "--set",
        "train.steps=3",
        "--json",
    ];
    assert_eq!(json(&terrane(folder.path(), &resume))["steps"], 3);

    let report = json(&terrane(
        folder.path(),
        &["eval", "run", "--data", "tiles", "--json"],
    ));
    let summary = &report[0]["summary"];
    assert!(summary["psnr_db"].as_f64().unwrap() > 0.0, "{summary}");
    assert_eq!(report[0]["evaluation"]["is_analytic"], true);
    let table = stdout(&terrane(
        folder.path(),
        &["eval", "run/model.safetensors", "--data", "tiles"],
    ));
    assert!(
        table.contains("PSNR dB") && table.contains("huvr-siren-small"),
        "{table}"
    );
}

#[test]
fn wrong_names_and_values_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    dataset(folder.path());
    let attempt = |extra: &[&str]| {
        let mut arguments = vec!["train"];
        arguments.extend(extra);
        arguments.extend(["--data", "tiles", "--out", "run"]);
        complaint(&terrane(folder.path(), &arguments))
    };
    assert!(attempt(&["huvr-sirren"]).contains("there is no preset \"huvr-sirren\""));
    assert!(attempt(&["huvr", "--set", "train.stepps=1"]).contains("there is no such key"));
    assert!(attempt(&["huvr", "--device", "tpu"]).contains("--device tpu"));
    assert!(attempt(&[]).contains("name a preset"));
    let missing = complaint(&terrane(folder.path(), &["eval", "run", "--data", "tiles"]));
    assert!(missing.contains("run: cannot be read"), "{missing}");
}

#[test]
fn a_released_checkpoint_becomes_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let released = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../terrane/tests/parity/huvr_siren.safetensors");
    let mut arguments = vec![
        "import",
        released.to_str().unwrap(),
        "model.safetensors",
        "--json",
    ];
    let sizes = [
        "method.side=32",
        "method.patch=8",
        "method.bottleneck=6",
        "method.siren_width=16",
        "method.encoder.width=48",
        "method.encoder.depth=2",
        "method.encoder.heads=4",
        "method.decoder.width=40",
        "method.decoder.depth=2",
        "method.decoder.hidden=64",
    ];
    for size in sizes {
        arguments.extend(["--set", size]);
    }
    let imported = json(&terrane(folder.path(), &arguments));
    assert!(
        imported["parameters"].as_u64().unwrap() > 50_000,
        "{imported}"
    );
    let text = complaint(&terrane(
        folder.path(),
        &["import", released.to_str().unwrap(), "other.safetensors"],
    ));
    assert!(
        text.contains("huvr_siren.safetensors: \"transformer_encoder"),
        "{text}"
    );
}
