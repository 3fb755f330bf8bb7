//! The `terrane` command as a stranger uses it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod benchmark;
mod diagnosis;
mod files;
mod folders;
mod hostile;
mod messages;
mod models;
mod outputs;
mod overviews;
mod paper;
mod querying;
mod ranges;
mod served;
mod serving;
mod shards;
mod swissalti3d;
mod training;
mod whole_files;

use std::path::Path;
use std::process::{Command, Output};

fn terrane(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_terrane"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one sentence of a failed command.
fn complaint(output: &Output) -> String {
    assert_eq!(
        output.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    // A line of JSON where results are JSON.
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
        return format!("terrane: {}", value["error"].as_str().unwrap());
    }
    assert!(text.starts_with("terrane: "), "{text}");
    text
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_str(&stdout(output)).unwrap()
}

#[test]
fn the_demo_measures_what_came_back() {
    let folder = tempfile::tempdir().unwrap();
    let output = terrane(folder.path(), &["demo", "--size", "300x200", "--json"]);
    let report = json(&output);
    let trips = report["round_trips"].as_array().unwrap();
    assert_eq!(trips.len(), 6);
    for (trip, bound) in trips.iter().zip([0.0, 0.005, 0.05, 0.005, 0.05]) {
        let error = trip["max_error_m"].as_f64().unwrap();
        // Heights near 500 m are floats with steps of 3e-5 m.
        assert!(error <= bound + 5e-5, "{trip}");
        assert_eq!(trip["nodata_equal"], true);
        assert_eq!(error == 0.0, bound == 0.0, "{trip}");
    }
    let page = std::fs::read_to_string(folder.path().join("demo/index.html")).unwrap();
    assert!(page.contains("data:image/png;base64,") && page.contains("centimetres"));
    assert!(!page.contains("src=\"http"));
    assert!(
        stdout(&terrane(folder.path(), &["demo", "--size", "300x200"])).contains("max error m")
    );
}

#[test]
fn generated_terrain_is_the_same_every_time() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.tif", "b.tif"] {
        stdout(&terrane(
            folder.path(),
            &[
                "generate", name, "--size", "128x100", "--seed", "5", "--jobs", "1",
            ],
        ));
    }
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("a.tif"), read("b.tif"));
    stdout(&terrane(
        folder.path(),
        &[
            "generate",
            "b.tif",
            "--size",
            "128x100",
            "--seed",
            "6",
            "--overwrite",
        ],
    ));
    assert_ne!(read("a.tif"), read("b.tif"));
}

#[test]
fn an_existing_file_is_refused_without_overwrite() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.tif"), b"precious").unwrap();
    let text = complaint(&terrane(
        folder.path(),
        &["generate", "a.tif", "--size", "64x64"],
    ));
    assert!(
        text.contains("a.tif: exists already; use --overwrite"),
        "{text}"
    );
    assert_eq!(
        std::fs::read(folder.path().join("a.tif")).unwrap(),
        b"precious"
    );
}

#[test]
fn a_dataset_is_built_and_described() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("rasters")).unwrap();
    for (name, seed) in [("a", "1"), ("b", "2")] {
        let file = format!("rasters/{name}.tif");
        stdout(&terrane(
            folder.path(),
            &["generate", &file, "--size", "600x300", "--seed", seed],
        ));
    }
    std::fs::write(
        folder.path().join("rasters/catalog.csv"),
        "file,split\na.tif,train\nb.tif,test\n",
    )
    .unwrap();
    let built = json(&terrane(
        folder.path(),
        &["dataset", "build", "rasters", "set", "--json"],
    ));
    assert_eq!(built["side"], 256);
    let described = json(&terrane(
        folder.path(),
        &["dataset", "info", "set", "--json"],
    ));
    assert_eq!(built, described);
    assert_eq!(described["splits"][0]["split"], "train");
    let table = stdout(&terrane(folder.path(), &["dataset", "info", "set"]));
    assert!(table.contains("mean range m"), "{table}");

    let text = complaint(&terrane(
        folder.path(),
        &["dataset", "build", "rasters", "set"],
    ));
    assert!(text.contains("set: exists already"), "{text}");
    let text = complaint(&terrane(folder.path(), &["dataset", "info", "rasters"]));
    assert!(text.contains("rasters: not a tile dataset"), "{text}");
    let overlapping = [
        "dataset",
        "build",
        "rasters",
        "set",
        "--overwrite",
        "--train-stride",
        "64",
        "--json",
    ];
    let more = json(&terrane(folder.path(), &overlapping));
    assert!(more["tiles"].as_u64() > built["tiles"].as_u64(), "{more}");
}

#[test]
fn every_fault_is_one_sentence_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    for (arguments, expected) in [
        (
            vec!["dataset", "build", "empty", "set"],
            "empty: holds no GeoTIFF",
        ),
        (
            vec!["dataset", "build", "nowhere", "set"],
            "nowhere: cannot be listed",
        ),
        (
            vec!["dataset", "swissalti3d", "none.csv", "set"],
            "none.csv: cannot be read",
        ),
        (
            vec!["generate", "no/such/a.tif", "--size", "64x64"],
            "no/such/a.tif: cannot be created",
        ),
        (
            vec!["generate", "a.tif", "--pixel-size", "0"],
            "--pixel-size 0",
        ),
    ] {
        let text = complaint(&terrane(folder.path(), &arguments));
        assert!(text.contains(expected), "{text}");
    }
    let usage = terrane(folder.path(), &["generate", "a.tif", "--size", "12"]);
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn progress_is_shown_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let shown = |mode: &str| {
        let output = terrane(
            folder.path(),
            &["demo", "--size", "64x64", "--progress", mode],
        );
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(shown("plain").starts_with("demo: 0/7"));
    assert!(
        serde_json::from_str::<serde_json::Value>(shown("json").lines().next().unwrap()).is_ok()
    );
    assert_eq!(shown("none"), "");
    assert_eq!(shown("auto"), "", "no bar where there is no terminal");
}

#[test]
fn help_has_examples() {
    let folder = tempfile::tempdir().unwrap();
    for command in [
        vec!["demo"],
        vec!["generate"],
        vec!["dataset", "build"],
        vec!["dataset", "info"],
        vec!["dataset", "swissalti3d"],
        vec!["train"],
        vec!["eval"],
        vec!["import"],
        vec!["tables"],
        vec!["diagnose", "siren"],
        vec!["diagnose", "fit"],
        vec!["diagnose", "upper-bound"],
        vec!["diagnose", "tokens"],
        vec!["diagnose", "linear"],
    ] {
        let mut arguments = command.clone();
        arguments.push("--help");
        let help = stdout(&terrane(folder.path(), &arguments));
        assert!(
            help.contains("Example") && help.contains("--progress"),
            "{help}"
        );
    }
}

/// The benchmark's rasters, where they are at hand: as many tiles as their catalogue counts.
#[test]
fn real_rasters_give_the_tiles_of_their_catalogue() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let Ok(catalogue) = std::fs::read_to_string(data.join("catalog.csv")) else {
        println!("skipped: no real data beside the project");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    let report = json(&terrane(
        folder.path(),
        &[
            "dataset",
            "build",
            data.to_str().unwrap(),
            set.to_str().unwrap(),
            "--json",
        ],
    ));
    let split = |name: &str| {
        let splits = report["splits"].as_array().unwrap();
        splits
            .iter()
            .find(|split| split["split"] == name)
            .unwrap()
            .clone()
    };
    let mut expected = std::collections::BTreeMap::new();
    let mut rows = catalogue.lines();
    let head: Vec<&str> = rows.next().unwrap().split(',').collect();
    let place = |name: &str| head.iter().position(|column| *column == name).unwrap();
    for row in rows {
        let cells = cells(row);
        *expected.entry(cells[place("split")].clone()).or_insert(0) +=
            cells[place("n_full_256_tiles")].parse::<u64>().unwrap();
    }
    for (name, tiles) in expected {
        assert_eq!(split(&name)["tiles"], tiles, "{name}");
    }
    let test = split("test");
    assert_eq!(test["tiles"], 35);
    assert!(
        (test["mean_range_m"].as_f64().unwrap() - 27.7).abs() < 0.05,
        "{test}"
    );
}

/// The cells of a CSV row with quotes.
fn cells(row: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for character in row.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            _ => cells.last_mut().unwrap().push(character),
        }
    }
    cells
}
