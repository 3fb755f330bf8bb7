//! The paper's runs one after another (`tools/paper.py`), with a network that is made in seconds.

use std::path::Path;
use std::process::{Command, Output};

use crate::benchmark::dataset;
use crate::stdout;

const MANIFEST: &str = r#"
[presets.huvr-siren-small]
settings = ["method.side=64", "train.batch=1", "train.validate_every=0"]

[[runs]]
name = "waits"
preset = "huvr-siren-small"
minutes = 1
needs = "what is not there"

[[runs]]
name = "tiny"
preset = "huvr-siren-small"
settings = ["train.steps=4"]
seeds = [5]
minutes = 1
"#;

/// Python with TOML in its library.
fn python() -> Option<&'static str> {
    let command = ["-c", "import tomllib"];
    let found = Command::new("python3").args(command).output();
    found
        .is_ok_and(|output| output.status.success())
        .then_some("python3")
}

fn next(python: &str, folder: &Path, seconds: &str) -> Output {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/paper.py");
    let terrane = env!("CARGO_BIN_EXE_terrane");
    Command::new(python)
        .current_dir(folder)
        .arg(tool)
        .args(["--manifest", "paper.toml", "next", terrane])
        .args(["tiles", "work", "records", seconds])
        .args(["--device", "cpu", "--fit", "2", "--revision", "here"])
        .output()
        .unwrap()
}

#[test]
fn runs_are_recorded_in_pieces_of_time_and_their_weights_are_not_kept() {
    let Some(python) = python() else {
        eprintln!("skipped: there is no Python with tomllib");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    dataset(path, "tiles", ["1", "2"]);
    std::fs::write(path.join("paper.toml"), MANIFEST).unwrap();

    // Half a second is left beside the time to stop in.
    let stopped = next(python, path, "20.5");
    assert_eq!(stopped.status.code(), Some(75), "{stopped:?}");
    assert!(!path.join("records/tiny-seed5").exists());

    stdout(&next(python, path, "600"));
    let record = path.join("records/tiny-seed5");
    let read = |name: &str| std::fs::read_to_string(record.join(name)).unwrap();
    let json = |name: &str| -> serde_json::Value { serde_json::from_str(&read(name)).unwrap() };
    let run = json("run.json");
    assert_eq!(run["seed"], 5);
    assert_eq!(run["revision"], "here");
    assert_eq!(run["weights_sha256"].as_str().unwrap().len(), 64);
    let differs = run["differs_from_preset"].as_object().unwrap();
    assert_eq!(differs["train.steps"], serde_json::json!([2000, 4]));
    assert!(!differs.contains_key("train.precision"), "{differs:?}");
    for file in [
        "config.toml",
        "metrics.jsonl",
        "fit.json",
        "tokens.json",
        "ptq.csv",
    ] {
        assert!(!read(file).is_empty(), "{file}");
    }
    for split in ["test", "train"] {
        let report = &json(&format!("eval-{split}.json"))[0];
        let laplacian = |of: &str| report[of]["laplacian_rmse_m_per_px2"].as_f64().unwrap();
        assert_ne!(laplacian("summary"), laplacian("summary_by_differences"));
        assert!(laplacian("summary_of_zero") > 0.0);
    }
    let rasters = read("rasters.csv");
    let lines: Vec<&str> = rasters.lines().collect();
    assert_eq!(lines.len(), 1 + 2 + 2, "{rasters}");
    assert!(lines[1].starts_with("test,b.tif,b,") && lines[2].starts_with("test,all,,"));
    assert!(!path.join("work/runs/tiny-seed5").exists());

    // What is recorded is not made again, and comes back from the machine's own copy.
    std::fs::remove_dir_all(path.join("records")).unwrap();
    let again = stdout(&next(python, path, "1"));
    assert!(again.contains("nothing is left"), "{again}");
    assert_eq!(json("run.json"), run);
}
