//! What a command writes to, and what it leaves alone.

use std::path::Path;

use crate::{complaint, stdout, terrane};

fn generated(folder: &Path, name: &str) -> Vec<u8> {
    let size = ["--size", "96x80", "--seed", "3"];
    stdout(&terrane(folder, &[&["generate", name], &size[..]].concat()));
    std::fs::read(folder.join(name)).unwrap()
}

/// Nothing but what was there before, and no unfinished file.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Commands that would write over something, and what they say instead.
fn mistaken() -> Vec<(Vec<&'static str>, &'static str)> {
    vec![
        // The output was forgotten, and the message followed.
        (
            vec!["encode", "b.tif", "c.tif"],
            ".tif is the ending of a GeoTIFF",
        ),
        (
            vec!["encode", "b.tif", "c.tif", "--overwrite"],
            ".tif is the ending of a GeoTIFF",
        ),
        (
            vec!["encode", "b.tif", "b.tif", "--overwrite"],
            "b.tif: is the input b.tif itself",
        ),
        (
            vec![
                "encode",
                "b.tif",
                "./b.tif",
                "--overwrite",
                "--any-extension",
            ],
            "./b.tif: is the input b.tif itself",
        ),
        (
            vec!["encode", "b.tif", "hard", "--overwrite"],
            "hard: is the input b.tif itself",
        ),
        #[cfg(unix)]
        (
            vec!["encode", "b.tif", "soft", "--overwrite"],
            "soft: is the input b.tif itself",
        ),
        (
            vec![
                "encode",
                "soft",
                "c.tif",
                "b.tif",
                "--overwrite",
                "--any-extension",
            ],
            "is the input soft itself",
        ),
        (
            vec!["decode", "x.trn", "x.trn", "--overwrite"],
            "x.trn: is the input x.trn itself",
        ),
        (
            vec!["decode", "x.trn", "again", "--overwrite"],
            "again: is the input x.trn itself",
        ),
        (
            vec!["decode", "x.trn", "y.trn"],
            "y.trn: would be a GeoTIFF, and .trn is the ending of a terrane file",
        ),
        (
            vec![
                "derive",
                "x.trn",
                "again",
                "--product",
                "slope",
                "--overwrite",
            ],
            "again: is the input x.trn itself",
        ),
        (
            vec!["shard", "plan", "b.tif", "b.tif", "--overwrite"],
            "b.tif: is the input b.tif itself",
        ),
        (
            vec!["generate", "x.trn", "--size", "64x64", "--overwrite"],
            "x.trn: would be a GeoTIFF",
        ),
        (
            vec!["encode", "b.tif", "."],
            ".: is a folder; name a file in it",
        ),
        (
            vec!["decode", "x.trn", ".", "--overwrite"],
            ".: is a folder; name a file in it",
        ),
    ]
}

#[test]
fn no_command_writes_over_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    let (b, c) = (
        generated(folder.path(), "b.tif"),
        generated(folder.path(), "c.tif"),
    );
    stdout(&run(&["encode", "b.tif", "x.trn"]));
    let x = std::fs::read(at("x.trn")).unwrap();
    std::fs::hard_link(at("b.tif"), at("hard")).unwrap();
    std::fs::hard_link(at("x.trn"), at("again")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("b.tif", at("soft")).unwrap();
    let before = names(folder.path());
    for (arguments, expected) in mistaken() {
        let text = complaint(&run(&arguments));
        assert!(text.contains(expected), "{arguments:?}: {text}");
        assert!(!text.contains("use --overwrite"), "{arguments:?}: {text}");
    }
    assert_eq!(names(folder.path()), before);
    for (name, bytes) in [("b.tif", &b), ("c.tif", &c), ("x.trn", &x)] {
        assert_eq!(&std::fs::read(at(name)).unwrap(), bytes, "{name}");
    }
    // Who says so gets it.
    stdout(&run(&["encode", "b.tif", "odd.tif", "--any-extension"]));
    stdout(&run(&["info", "odd.tif"]));
}

#[test]
fn a_merged_file_is_none_of_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    let b = generated(folder.path(), "b.tif");
    stdout(&run(&["shard", "plan", "b.tif", "p.json", "--shards", "1"]));
    stdout(&run(&["shard", "encode", "p.json", "--shard", "0"]));
    let shard = "p.shards/shard-000000.trs";
    for out in ["p.json", "b.tif", shard] {
        let arguments = [
            "shard",
            "merge",
            "p.json",
            out,
            "--overwrite",
            "--any-extension",
        ];
        let text = complaint(&run(&arguments));
        assert!(text.contains("is the input"), "{text}");
    }
    assert_eq!(std::fs::read(folder.path().join("b.tif")).unwrap(), b);
    stdout(&run(&["shard", "merge", "p.json", "b.trn"]));
}

#[cfg(unix)]
#[test]
fn only_regular_files_are_replaced_and_their_modes_stay() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    generated(folder.path(), "b.tif");
    // Devices are tried where nothing is written: a version that replaced them would spoil the machine.
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    let text = complaint(&run(&["encode", "b.tif", "socket", "--overwrite"]));
    assert!(
        text.contains("socket: is a socket and is left as it is"),
        "{text}"
    );
    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status();
    assert!(made.unwrap().success());
    let text = complaint(&run(&["encode", "b.tif", "pipe", "--overwrite"]));
    assert!(
        text.contains("pipe: is a pipe and is left as it is"),
        "{text}"
    );
    let kind = |name: &str| std::fs::symlink_metadata(at(name)).unwrap().file_type();
    assert!(kind("pipe").is_fifo() && kind("socket").is_socket());

    std::fs::write(at("real.trn"), b"old").unwrap();
    std::fs::set_permissions(at("real.trn"), std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink("real.trn", at("link.trn")).unwrap();
    stdout(&run(&["encode", "b.tif", "link.trn", "--overwrite"]));
    assert!(kind("link.trn").is_symlink());
    let mode = at("real.trn").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    stdout(&run(&["verify", "real.trn", "--against", "b.tif"]));

    std::fs::set_permissions(at("real.trn"), std::fs::Permissions::from_mode(0o400)).unwrap();
    let text = complaint(&run(&["encode", "b.tif", "real.trn", "--overwrite"]));
    assert!(
        text.contains("real.trn: is read-only and is left as it is"),
        "{text}"
    );
}

#[test]
fn a_file_that_has_the_name_of_a_journal_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    generated(folder.path(), "b.tif");
    let journal = folder.path().join("x.trn.journal");
    std::fs::write(
        &journal,
        b"my notes of a field trip, longer than any head of a journal is",
    )
    .unwrap();
    let before = std::fs::read(&journal).unwrap();
    let text = complaint(&terrane(
        folder.path(),
        &["encode", "b.tif", "x.trn", "--resumable"],
    ));
    assert!(
        text.contains("x.trn.journal is no journal of an encoding"),
        "{text}"
    );
    assert_eq!(std::fs::read(&journal).unwrap(), before);
}

#[test]
fn a_fault_is_said_once_and_of_the_right_file() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    generated(folder.path(), "b.tif");
    stdout(&run(&["encode", "b.tif", "x.trn"]));
    for arguments in [
        vec!["encode", "none.tif", "y.trn"],
        vec!["info", "none.trn"],
        vec!["decode", "none.trn", "y.tif"],
        vec!["verify", "none.trn"],
        vec!["verify", "x.trn", "--against", "none.tif"],
        vec!["query", "x.trn", "--points", "none.csv"],
        vec!["encode", "b.tif", "y.trn", "--model", "none.safetensors"],
        vec!["encode", "b.tif", "no/such/y.trn"],
        vec!["shard", "encode", "none.json", "--shard", "0"],
    ] {
        let text = complaint(&run(&arguments));
        assert_eq!(text.matches("No such file").count(), 1, "{text}");
        assert!(
            text.contains("none.") || text.contains("no/such/y.trn"),
            "{text}"
        );
    }
    let text = complaint(&run(&["encode", "b.tif", "y.trn", "--tile", "17"]));
    assert!(
        text.contains("--tile must be an even number from 16 to 4096, not 17"),
        "{text}"
    );
}

/// A disk without room is the output's fault, not the raster's.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_not_blamed_on_the_raster() {
    let folder = tempfile::tempdir().unwrap();
    generated(folder.path(), "b.tif");
    // A file may have no more than a block: what a full disk looks like to a program that ignores the signal.
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_terrane"))
        .args(["encode", "b.tif", "y.trn", "--lossless"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = complaint(&output);
    assert!(text.contains("y.trn cannot be written"), "{text}");
    assert!(!text.contains("b.tif"), "{text}");
    assert_eq!(names(folder.path()), ["b.tif"]);
}

/// A raster that is written anew while it is read would give a file of neither.
#[test]
fn a_raster_that_changes_while_it_is_encoded_is_noticed() {
    use std::io::Read;
    let folder = tempfile::tempdir().unwrap();
    let size = ["generate", "b.tif", "--size", "512x4096", "--seed", "3"];
    stdout(&terrane(folder.path(), &size));
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_terrane"))
        .args([
            "encode",
            "b.tif",
            "y.trn",
            "--progress",
            "plain",
            "--jobs",
            "1",
        ])
        .current_dir(folder.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = child.stderr.take().unwrap();
    let mut first = [0; 1];
    // The first strip is done, others are to come.
    said.read_exact(&mut first).unwrap();
    let path = folder.path().join("b.tif");
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
    drop(file);
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{text}");
    assert!(text.contains("b.tif: changed while it was read"), "{text}");
    assert_eq!(names(folder.path()), ["b.tif"]);
}
