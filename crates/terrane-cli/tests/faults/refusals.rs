//! What is refused stays refused, whatever call fails while it is looked at.

use std::path::Path;

use crate::layer;
use crate::scene::{files, words};

/// Lets every call of a command that is refused fail: it is refused nevertheless, and no file is another. How many calls.
fn try_all(folder: &Path, line: &str, expected: &str) -> usize {
    let before = files(folder);
    let run = |plan: Option<&str>| layer::run(folder, &words(line), plan);
    let undisturbed = run(None);
    assert!(
        undisturbed.stderr.contains(expected),
        "{line}: {}",
        undisturbed.stderr
    );
    for call in &undisturbed.calls {
        let outcome = run(Some(&format!("{} eio", call.number)));
        assert_eq!(outcome.code, Some(2), "{line}: {call:?}");
        assert!(files(folder) == before, "{line}: {call:?}");
    }
    undisturbed.calls.len()
}

#[test]
fn no_fault_makes_a_refusal_an_output() {
    if !layer::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (name, seed) in [("dem.tif", 3), ("masked.tif", 4), ("noted.tif", 5)] {
        let line = format!("generate {name} --size 64x64 --seed {seed} --jobs 1");
        assert_eq!(layer::run_plainly(path, &words(&line)).code, Some(0));
    }
    std::fs::hard_link(path.join("dem.tif"), path.join("same.trn")).unwrap();
    std::os::unix::fs::symlink("dem.tif", path.join("link.trn")).unwrap();
    std::fs::write(path.join("old.trn"), "precious").unwrap();
    std::fs::write(path.join("masked.tif.msk"), "a mask").unwrap();
    // Its letters are of another time than UTF-8.
    std::fs::write(
        path.join("noted.tif.aux.xml"),
        b"<PAMDataset>\xe9<GCPList><GCP/></GCPList></PAMDataset>",
    )
    .unwrap();
    let mut count = 0;
    for (line, expected) in [
        ("encode dem.tif same.trn --overwrite", "is the input"),
        ("encode dem.tif link.trn --overwrite", "is the input"),
        ("encode dem.tif old.trn", "exists already"),
        ("encode masked.tif new.trn", ".msk"),
        ("encode noted.tif new.trn", ".aux.xml"),
    ] {
        let line = format!("{line} --method integers --jobs 1");
        count += try_all(path, &line, expected);
    }
    println!("{count} calls of refused commands failed");
}
