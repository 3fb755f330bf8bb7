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
        .join("../terrane-networks/tests/parity/huvr_siren.safetensors");
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

/// Runs the command in an address space of 4 GB.
#[cfg(target_os = "linux")]
pub(crate) fn confined(folder: &Path, arguments: &[&str]) -> std::process::Output {
    std::process::Command::new("sh")
        .current_dir(folder)
        .args(["-c", "ulimit -v 4000000; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_terrane"))
        .args(arguments)
        .output()
        .unwrap()
}

/// A model after one step.
fn train_small(folder: &Path, preset: &str, out: &str) {
    let settings = ["train.steps=1", "train.batch=1", "train.validate_every=0"];
    let mut arguments = vec!["train", preset, "--data", "tiles", "--out", out];
    for setting in &settings {
        arguments.extend(["--set", setting]);
    }
    stdout(&terrane(folder, &arguments));
}

/// Everything in a folder, by name and content.
pub(crate) fn contents(folder: &Path) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut files = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    files
}

#[cfg(unix)]
#[test]
fn tables_leave_the_model_and_the_files_made_with_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    dataset(folder.path());
    train_small(folder.path(), "functa-small", "run");
    let at = |name: &str| folder.path().join(name);
    std::fs::rename(at("run/model.safetensors"), at("model.safetensors")).unwrap();
    std::fs::hard_link(at("model.safetensors"), at("hard.safetensors")).unwrap();
    std::os::unix::fs::symlink("model.safetensors", at("soft.safetensors")).unwrap();
    let before = contents(folder.path());
    let tables = |out: &str, extra: &[&str]| {
        let mut arguments = vec!["tables", "model.safetensors", out, "--data", "tiles"];
        arguments.extend(extra);
        terrane(folder.path(), &arguments)
    };
    for out in [
        "model.safetensors",
        "./tiles/../model.safetensors",
        "hard.safetensors",
        "soft.safetensors",
        "tiles/heights.f32",
    ] {
        for extra in [&[][..], &["--overwrite"]] {
            let text = complaint(&tables(out, extra));
            assert!(text.contains(": is the input"), "{text}");
        }
    }
    assert_eq!(contents(folder.path()), before);
    stdout(&tables("other.safetensors", &[]));
    let text = complaint(&tables("other.safetensors", &[]));
    assert!(text.contains("exists already"), "{text}");
    stdout(&tables("other.safetensors", &["--overwrite"]));
    std::fs::remove_file(at("other.safetensors")).unwrap();
    assert_eq!(contents(folder.path()), before);
    // The old form has no place to write to.
    let old = terrane(
        folder.path(),
        &["tables", "model.safetensors", "--data", "tiles"],
    );
    assert_eq!(old.status.code(), Some(2));
    assert_eq!(contents(folder.path()), before);
}

#[test]
fn a_checkpoint_is_not_replaced_by_what_is_made_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let released = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../terrane-networks/tests/parity/huvr_siren.safetensors");
    std::fs::copy(released, folder.path().join("a.safetensors")).unwrap();
    let before = contents(folder.path());
    let import = ["import", "a.safetensors", "./a.safetensors", "--overwrite"];
    let text = complaint(&terrane(folder.path(), &import));
    assert!(
        text.contains("./a.safetensors: is the input a.safetensors"),
        "{text}"
    );
    assert_eq!(contents(folder.path()), before);
}

#[test]
fn a_run_begins_where_it_writes_over_nothing() {
    let folder = tempfile::tempdir().unwrap();
    dataset(folder.path());
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    for name in [
        "model.safetensors",
        "checkpoint.safetensors",
        "metrics.jsonl",
    ] {
        let path = folder.path().join("mine").join(name);
        std::fs::write(&path, "mine").unwrap();
        let before = contents(folder.path());
        let train = ["train", "functa-small", "--data", "tiles", "--out", "mine"];
        let text = complaint(&terrane(folder.path(), &train));
        assert!(
            text.contains(&format!("mine: holds \"{name}\" already")),
            "{text}"
        );
        assert_eq!(contents(folder.path()), before);
        std::fs::remove_file(path).unwrap();
    }
    let into_data = [
        "train",
        "functa-small",
        "--data",
        "tiles",
        "--out",
        "./tiles",
    ];
    let text = complaint(&terrane(folder.path(), &into_data));
    assert!(text.contains("./tiles: is the input"), "{text}");
}

/// Every fault of a configuration is told before anything is made of it: in an address space that holds no network of
/// such a size.
#[cfg(target_os = "linux")]
#[test]
#[expect(
    clippy::too_many_lines,
    reason = "a list of faults and what is said of each"
)]
fn configurations_that_cannot_be_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    dataset(folder.path());
    let attempt = |arguments: &[&str]| complaint(&confined(folder.path(), arguments));
    for (preset, setting, expected) in [
        (
            "huvr-small",
            "method.patch=7",
            "method.patch must divide method.side (256), and is 7",
        ),
        (
            "huvr-small",
            "method.patch=2",
            "method.patch must be a multiple of",
        ),
        (
            "huvr-small",
            "method.encoder.heads=7",
            "method.encoder.width must be a multiple of",
        ),
        (
            "functa-small",
            "method.width=100000000",
            "method.width must be from 1 to 16384",
        ),
        (
            "functa-small",
            "method.width=16384",
            "GB of memory, and the limit is 3.1 GB",
        ),
        (
            "functa-small",
            "method.omega=nan",
            "method.omega must be a number above 0",
        ),
        (
            "functa-small",
            "train.steps=0",
            "train.steps must be from 1",
        ),
        (
            "functa-small",
            "train.batch=0",
            "train.batch must be at least 1",
        ),
        ("functa-small", "train.batch=100000000", "GB of memory"),
        (
            "functa-small",
            "train.schedule.peak=-1",
            "train.schedule.peak must be a number from 0 on",
        ),
        (
            "transinr-small",
            "method.groups=7",
            "method.groups must divide method.mlp_width (32)",
        ),
        (
            "context-fast",
            "widths.trunk=0",
            "widths.trunk must be a multiple of 4 from 4 to 512",
        ),
        ("context-fast", "train.batch=100000000", "GB of memory"),
    ] {
        let train = [
            "train", preset, "--data", "tiles", "--out", "run", "--set", setting,
        ];
        let text = attempt(&train);
        assert!(text.contains(expected), "{text}");
        assert!(!folder.path().join("run").exists());
    }
    let small = ["dataset", "build", "rasters", "small", "--side", "9"];
    stdout(&terrane(folder.path(), &small));
    let text = attempt(&[
        "train",
        "context-fast",
        "--data",
        "small",
        "--out",
        "run",
        "--set",
        "train.batch=2",
    ]);
    assert!(text.contains("the tiles are 9 pixels across"), "{text}");
    let siren = ["diagnose", "siren", "--data", "tiles"];
    for (extra, expected) in [
        (["--width", "100000000"], "--width must be from 1 to 16384"),
        (["--width", "16384"], "GB of memory"),
        (["--layers", "0"], "--layers must be from 1 to 1024"),
        (["--rate", "nan"], "--rate must be a number from 0 on"),
    ] {
        let text = attempt(&[&siren[..], &extra].concat());
        assert!(text.contains(expected), "{text}");
    }
    let bench = ["bench", "headline", "--data", "tiles", "--out", "bench"];
    for (extra, expected) in [
        (["--batch", "0"], "train.batch must be at least 1"),
        (["--steps", "0"], "train.steps must be from 1"),
        (["--batch", "100000000"], "GB of memory"),
    ] {
        let text = attempt(&[&bench[..], &extra].concat());
        assert!(text.contains(expected), "{text}");
    }
}

/// A model that says it is larger than its arrays is refused before its network is made.
#[cfg(target_os = "linux")]
#[test]
fn models_larger_than_their_arrays_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    dataset(folder.path());
    train_small(folder.path(), "functa-small", "run");
    let model = std::fs::read(folder.path().join("run/model.safetensors")).unwrap();
    for (from, to, expected) in [
        (
            "latent = 128",
            "latent = 16384",
            "\"Functa.modulation.weight\" is [128, 96], the network needs [16384, 96]",
        ),
        ("side = 256", "side = 16384", "this network takes about"),
        ("width = 32", "width = 16384", "the network needs"),
        ("sines = 3", "sines = 1024", "the network needs"),
        (
            "sines = 3",
            "sines = 16384",
            "method.sines must be from 1 to 1024, and is 16384",
        ),
    ] {
        let mut weights = terrane_networks::weights::Weights::from_bytes(&model).unwrap();
        let text = weights.metadata["config"].replace(from, to);
        assert_ne!(text, weights.metadata["config"]);
        weights.metadata.insert("config".into(), text);
        let path = folder.path().join("hostile.safetensors");
        std::fs::write(&path, weights.to_bytes().unwrap()).unwrap();
        for command in [
            ["eval", "hostile.safetensors", "--data", "tiles"].as_slice(),
            &["tables", "hostile.safetensors", "out", "--data", "tiles"],
            &["diagnose", "fit", "hostile.safetensors", "--data", "tiles"],
        ] {
            let text = complaint(&confined(folder.path(), command));
            assert!(text.contains(expected), "{text}");
        }
    }
}
