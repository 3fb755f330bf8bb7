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
