//! The program without burn: what it does, and what it says of files that it cannot read.
//! `cargo test -p terrane-cli --no-default-features --test light` runs it; with networks there is nothing to test here.

#![cfg(not(feature = "networks"))]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

use std::path::Path;
use std::process::{Command, Output};

fn terrane(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_terrane"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = terrane(folder, arguments);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

fn complaint(folder: &Path, arguments: &[&str]) -> String {
    let output = terrane(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_site_is_a_folder_to_upload() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| succeeds(folder.path(), arguments);
    run(&["generate", "dem.tif", "--size", "300x270", "--seed", "3"]);
    run(&["encode", "dem.tif", "x.trn", "--profile", "fast"]);
    run(&["encode", "dem.tif", "y.trn", "--method", "integers"]);
    let report = run(&["site", "hills=x.trn", "y.trn", "map", "--json"]);
    assert!(report.contains("\"hills\""), "{report}");
    let site = folder.path().join("map");
    let read = |name: &str| std::fs::read_to_string(site.join(name)).unwrap();
    assert!(read("index.html").contains("Content-Security-Policy"));
    assert!(read("catalog.json").contains("\"file\":\"hills.trn\""));
    assert!(read("assets/terrane/systems.txt").contains("+proj="));
    let bytes = |path: &Path| std::fs::read(path).unwrap();
    assert_eq!(
        bytes(&site.join("hills.trn")),
        bytes(&folder.path().join("x.trn"))
    );
    assert!(bytes(&site.join("assets/terrane/terrane.wasm")).starts_with(b"\0asm"));
    // Of the models only what the files need.
    let models = std::fs::read_dir(site.join("assets/terrane/models")).unwrap();
    assert_eq!(models.count(), 1);

    let refused = |arguments: &[&str]| complaint(folder.path(), arguments);
    assert!(refused(&["site", "y.trn", "map"]).contains("--overwrite"));
    assert!(refused(&["site", "map/y.trn", "map", "--overwrite"]).contains("input"));
    assert!(refused(&["site", "y.trn", "./y.trn", "new"]).contains("two files have the name"));
    run(&["site", "y.trn", "map", "--overwrite"]);
    assert!(!site.join("hills.trn").exists() && site.join("y.trn").exists());
    std::fs::write(site.join("letter.txt"), "dear").unwrap();
    assert!(refused(&["site", "y.trn", "map", "--overwrite"]).contains("letter.txt"));
}

#[test]
fn context_and_integer_files_are_made_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| succeeds(folder.path(), arguments);
    run(&["generate", "dem.tif", "--size", "300x270", "--seed", "3"]);
    for method in ["context", "integers"] {
        run(&[
            "encode",
            "dem.tif",
            "x.trn",
            "--method",
            method,
            "--overwrite",
        ]);
        run(&["decode", "x.trn", "back.tif", "--overwrite"]);
        let report = run(&["verify", "x.trn", "--against", "dem.tif", "--json"]);
        assert!(report.contains("\"holds\": true"), "{report}");
        assert!(run(&["info", "x.trn"]).contains(method));
        run(&["query", "x.trn", "--at", "500100.5,5199900.5"]);
        let slope = ["--product", "slope", "--overwrite"];
        run(&[&["derive", "x.trn", "slope.tif"][..], &slope].concat());
    }
    run(&[
        "shard",
        "plan",
        "dem.tif",
        "plan.json",
        "--max-error",
        "0.1",
    ]);
    run(&["shard", "encode", "plan.json", "--shard", "0"]);
    run(&["shard", "merge", "plan.json", "merged.trn"]);
    run(&["encode", "dem.tif", "whole.trn"]);
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("merged.trn") == read("whole.trn"));
}

#[test]
fn parts_and_errors_of_overviews_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| succeeds(folder.path(), arguments);
    run(&["generate", "dem.tif", "--size", "300x270", "--seed", "3"]);
    run(&["encode", "dem.tif", "x.trn", "--tile", "64"]);
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let parts = json(&run(&["info", "x.trn", "--parts", "--json"]));
    let bytes = |part: &serde_json::Value| part.as_u64().unwrap();
    let levels = parts["levels"].as_array().unwrap();
    let records: u64 = levels.iter().map(|level| bytes(&level["bytes"])).sum();
    let length = std::fs::metadata(folder.path().join("x.trn"))
        .unwrap()
        .len();
    assert_eq!(
        bytes(&parts["head"]) + bytes(&parts["index"]) + records,
        length
    );
    let text = run(&["info", "x.trn", "--parts"]);
    for name in ["head", "index", "roots", "details", "framing", "storey"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(text.contains(&length.to_string()) && text.contains("100.00 %"));
    let info = json(&run(&["info", "x.trn", "--json"]));
    let overviews = info["overviews"].as_array().unwrap();
    assert_eq!(
        overviews.len() + 1,
        info["levels"].as_array().unwrap().len()
    );
    assert_eq!(
        (&overviews[0]["level"], &overviews[0]["width"]),
        (&1.into(), &150.into())
    );
    assert!(
        overviews[0]["rmse_m"].as_f64().unwrap() <= overviews[0]["max_error_m"].as_f64().unwrap()
    );
    let text = run(&["info", "x.trn"]);
    assert!(text.contains("overview 1  RMSE "), "{text}");
}

#[test]
fn a_damaged_tile_is_named_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    succeeds(
        folder.path(),
        &["generate", "dem.tif", "--size", "300x270", "--seed", "3"],
    );
    succeeds(
        folder.path(),
        &["encode", "dem.tif", "x.trn", "--tile", "64"],
    );
    let path = folder.path().join("x.trn");
    let mut bytes = std::fs::read(&path).unwrap();
    // Before the page of the index, at the end, is the last tile of full resolution.
    let parts = succeeds(folder.path(), &["info", "x.trn", "--parts", "--json"]);
    let parts: serde_json::Value = serde_json::from_str(&parts).unwrap();
    let index = usize::try_from(parts["index"].as_u64().unwrap()).unwrap();
    let last = bytes.len() - index - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let place = "the tile at column 4, row 4 of level 0";
    for arguments in [
        &["decode", "x.trn", "y.tif"][..],
        &["derive", "x.trn", "y.tif", "--product", "slope"],
        &[
            "derive",
            "x.trn",
            "y.tif",
            "--product",
            "slope",
            "--mode",
            "grid",
        ],
        &["query", "x.trn", "--at", "500290.5,5199740.5"],
    ] {
        let text = complaint(folder.path(), arguments);
        assert!(
            text.contains(place) && text.contains("checksum"),
            "{arguments:?} {text}"
        );
    }
    // What does not need it is read.
    succeeds(
        folder.path(),
        &["query", "x.trn", "--at", "500100.5,5199900.5"],
    );
    succeeds(folder.path(), &["decode", "x.trn", "y.tif", "--level", "1"]);
    let output = terrane(folder.path(), &["verify", "x.trn", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let damaged = report["damaged"].as_array().unwrap();
    assert_eq!(damaged.len(), 1);
    assert_eq!(
        (&damaged[0]["tiles"], &damaged[0]["overviews"]),
        (&1.into(), &0.into())
    );
    let window = serde_json::json!({ "column": 256, "row": 256, "width": 44, "height": 14 });
    assert_eq!(damaged[0]["window"], window);
    let output = terrane(folder.path(), &["verify", "x.trn"]);
    assert_eq!(output.status.code(), Some(1));
    for text in [output.stdout, output.stderr] {
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains(place) && text.contains("44 x 14 pixels"),
            "{text}"
        );
    }
}

#[test]
fn files_of_tokens_get_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let files = std::fs::read_dir(golden).unwrap();
    let mut refused = 0;
    for file in files.map(|entry| entry.unwrap().path().join("input.trn")) {
        if !file.is_file() {
            continue;
        }
        let file = file.to_str().unwrap();
        let info = succeeds(folder.path(), &["info", file]);
        if ["context", "integers"]
            .iter()
            .any(|name| info.contains(name))
        {
            succeeds(folder.path(), &["verify", file]);
            continue;
        }
        let text = complaint(folder.path(), &["decode", file, "out.tif"]);
        assert!(
            text.contains("holds tokens of huvr-siren") && text.contains("the feature `networks`"),
            "{text}"
        );
        refused += 1;
    }
    assert!(refused > 0);
    succeeds(folder.path(), &["generate", "dem.tif", "--size", "64x64"]);
    let text = complaint(
        folder.path(),
        &["encode", "dem.tif", "x.trn", "--method", "huvr-siren"],
    );
    assert!(text.contains("huvr-siren stores tokens"), "{text}");
}

#[test]
fn commands_of_the_full_program_are_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let text = complaint(folder.path(), &["train", "huvr-siren-small"]);
    assert!(
        text.contains("this is the light program, without `train`"),
        "{text}"
    );
    let text = complaint(folder.path(), &["encod", "a.tif", "b.trn"]);
    assert!(text.contains("there is no command `encod`"), "{text}");
}
