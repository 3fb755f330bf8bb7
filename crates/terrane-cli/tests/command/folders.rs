//! Folders that commands write: whole or not at all, and never in place of anything else.

use std::path::Path;

use crate::training::contents;
use crate::{complaint, json, stdout, terrane};

/// A folder of one raster.
fn rasters(folder: &Path) {
    std::fs::create_dir(folder.join("rasters")).unwrap();
    let size = ["--size", "520x300"];
    let generate = [&["generate", "rasters/a.tif"], size.as_slice()].concat();
    stdout(&terrane(folder, &generate));
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_dataset_replaces_nothing_but_a_dataset() {
    let folder = tempfile::tempdir().unwrap();
    rasters(folder.path());
    std::fs::create_dir(folder.path().join("home")).unwrap();
    std::fs::write(folder.path().join("home/letter.txt"), "dear").unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    std::fs::write(folder.path().join("file"), "dear").unwrap();
    let before = contents(folder.path());
    let build = |out: &str, extra: &[&str]| {
        let mut arguments = vec!["dataset", "build", "rasters", out];
        arguments.extend(extra);
        terrane(folder.path(), &arguments)
    };
    for (out, expected) in [
        (
            "rasters",
            "rasters: holds \"a.tif\", which is no part of a tile dataset",
        ),
        ("rasters/../rasters/", "holds \"a.tif\""),
        (".", ", which is no part of a tile dataset"),
        ("..", ", which is no part of a tile dataset"),
        (
            "home",
            "home: holds \"letter.txt\", which is no part of a tile dataset",
        ),
        ("empty", "empty: is an empty folder, and not a tile dataset"),
        ("file", "file: is a file, and no folder"),
    ] {
        for extra in [&[][..], &["--overwrite"]] {
            let text = complaint(&build(out, extra));
            assert!(
                text.contains(expected) && text.contains("is left as it is"),
                "{text}"
            );
        }
    }
    assert_eq!(contents(folder.path()), before);

    stdout(&build("set", &[]));
    let text = complaint(&build("set", &[]));
    assert!(
        text.contains("set: exists already; use --overwrite"),
        "{text}"
    );
    stdout(&build("set", &["--overwrite"]));
    std::fs::write(folder.path().join("set/notes.txt"), "dear").unwrap();
    let text = complaint(&build("set", &["--overwrite"]));
    assert!(text.contains("set: holds \"notes.txt\""), "{text}");
    assert_eq!(
        names(&folder.path().join("set")),
        ["dataset.json", "heights.f32", "notes.txt", "tiles.csv"]
    );
    assert_eq!(
        names(folder.path()),
        ["empty", "file", "home", "rasters", "set"]
    );
}

#[cfg(unix)]
#[test]
fn a_dataset_behind_a_link_is_replaced_and_the_link_stays() {
    let folder = tempfile::tempdir().unwrap();
    rasters(folder.path());
    std::fs::create_dir(folder.path().join("disk")).unwrap();
    std::os::unix::fs::symlink("disk/set", folder.path().join("link")).unwrap();
    let build = [
        "dataset",
        "build",
        "rasters",
        "link",
        "--side",
        "128",
        "--overwrite",
    ];
    let text = complaint(&terrane(folder.path(), &build));
    assert!(text.contains("link: is a link to nothing"), "{text}");
    stdout(&terrane(
        folder.path(),
        &["dataset", "build", "rasters", "disk/set"],
    ));
    stdout(&terrane(folder.path(), &build));
    let link = std::fs::symlink_metadata(folder.path().join("link")).unwrap();
    assert!(link.is_symlink());
    let info = json(&terrane(
        folder.path(),
        &["dataset", "info", "disk/set", "--json"],
    ));
    assert_eq!(info["side"], 128);
    assert_eq!(names(&folder.path().join("disk")), ["set"]);
}

#[test]
fn a_build_without_tiles_is_an_error_and_splits_without_tiles_are_named() {
    let folder = tempfile::tempdir().unwrap();
    rasters(folder.path());
    let build = ["dataset", "build", "rasters", "set", "--side", "5000"];
    let text = complaint(&terrane(folder.path(), &build));
    assert!(
        text.contains("rasters: no raster in it has a tile of 5000x5000 pixels without a gap")
            && text.contains("the largest is a.tif with 520x300 pixels"),
        "{text}"
    );
    assert_eq!(names(folder.path()), ["rasters"]);

    let small = ["generate", "rasters/b.tif", "--size", "64x64"];
    stdout(&terrane(folder.path(), &small));
    let catalogue = "file,split\na.tif,train\nb.tif,val\n";
    std::fs::write(folder.path().join("rasters/catalog.csv"), catalogue).unwrap();
    let table = stdout(&terrane(
        folder.path(),
        &["dataset", "build", "rasters", "set"],
    ));
    assert!(table.ends_with("No tile in: val\n"), "{table}");
    let info = json(&terrane(
        folder.path(),
        &["dataset", "info", "set", "--json"],
    ));
    assert_eq!(info["empty_splits"], serde_json::json!(["val"]));
}

#[test]
fn a_demo_replaces_nothing_but_a_demo() {
    let folder = tempfile::tempdir().unwrap();
    let demo = |out: &str| terrane(folder.path(), &["demo", "--out", out, "--size", "64x64"]);
    for name in ["index.html", "terrain.tif"] {
        std::fs::create_dir(folder.path().join("site")).unwrap();
        std::fs::write(folder.path().join("site").join(name), "mine").unwrap();
        let before = contents(folder.path());
        let text = complaint(&demo("site"));
        assert!(text.contains("site: is not a demo"), "{text}");
        assert_eq!(contents(folder.path()), before);
        std::fs::remove_dir_all(folder.path().join("site")).unwrap();
    }
    for _ in 0..2 {
        stdout(&demo("deep/demo"));
    }
    assert_eq!(names(&folder.path().join("deep")), ["demo"]);
    std::fs::write(folder.path().join("deep/demo/mine.txt"), "mine").unwrap();
    let text = complaint(&demo("deep/demo"));
    assert!(
        text.contains("deep/demo: holds \"mine.txt\", which is no part of a demo"),
        "{text}"
    );
}

#[test]
fn a_report_replaces_nothing_but_a_report() {
    let folder = tempfile::tempdir().unwrap();
    crate::training::dataset(folder.path());
    std::fs::create_dir(folder.path().join("site")).unwrap();
    std::fs::write(folder.path().join("site/report.html"), "mine").unwrap();
    let before = contents(folder.path());
    let data = ["--data", "tiles", "--out", "site"];
    for command in [["bench", "flops"], ["diagnose", "siren"]] {
        let text = complaint(&terrane(folder.path(), &[&command[..], &data].concat()));
        assert!(
            text.contains("site/report.html: is there already, and was not written by"),
            "{text}"
        );
        let into_data = [&command[..], &["--data", "tiles", "--out", "tiles"]].concat();
        let text = complaint(&terrane(folder.path(), &into_data));
        assert!(text.contains("tiles: is the input"), "{text}");
    }
    assert_eq!(contents(folder.path()), before);

    // What lies in the place of a run and is none stays too.
    let run = folder.path().join("bench/runs/transinr");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join("notes.txt"), "mine").unwrap();
    let bench = [
        "bench", "headline", "--data", "tiles", "--out", "bench", "--steps", "1",
    ];
    let text = complaint(&terrane(folder.path(), &bench));
    assert!(text.contains("holds \"notes.txt\" already"), "{text}");
    assert_eq!(names(&run), ["notes.txt"]);
}

#[test]
fn terrains_that_no_memory_holds_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for command in [vec!["generate", "a.tif"], vec!["demo"]] {
        let huge = [&command[..], &["--size", "1000000x1000000"]].concat();
        let output = terrane(folder.path(), &huge);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            text.contains("two numbers from 64 to 20000 are needed"),
            "{text}"
        );
    }
    assert!(names(folder.path()).is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn terrains_beyond_the_memory_at_hand_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for command in [vec!["generate", "a.tif"], vec!["demo"]] {
        let large = [&command[..], &["--size", "20000x20000"]].concat();
        let text = complaint(&crate::training::confined(folder.path(), &large));
        assert!(
            text.contains("so large a terrain would take") && text.contains("the limit is 3072 MB"),
            "{text}"
        );
    }
    assert!(names(folder.path()).is_empty());
}

/// Waits until a folder holds something unfinished.
#[cfg(target_os = "linux")]
fn until_unfinished(folder: &Path) -> bool {
    (0..3000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        names(folder)
            .iter()
            .any(|name| name.starts_with(".terrane-"))
    })
}

#[cfg(target_os = "linux")]
#[test]
fn a_stopped_demo_leaves_nothing_and_a_killed_one_is_cleared_away() {
    let folder = tempfile::tempdir().unwrap();
    let demo = || {
        std::process::Command::new(env!("CARGO_BIN_EXE_terrane"))
            .current_dir(folder.path())
            .args(["demo", "--size", "1500x1200"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut stopped = demo();
    assert!(until_unfinished(folder.path()));
    let id = stopped.id().to_string();
    let signal = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(signal.unwrap().success());
    assert_eq!(stopped.wait().unwrap().code(), Some(130));
    assert!(
        names(folder.path()).is_empty(),
        "{:?}",
        names(folder.path())
    );

    let mut killed = demo();
    assert!(until_unfinished(folder.path()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let left = names(folder.path());
    assert!(
        left.iter().all(|name| name.starts_with(".terrane-")),
        "{left:?}"
    );
    let is_lock = |name: &&String| Path::new(name).extension().is_some_and(|end| end == "lock");
    let lock = left.iter().find(is_lock);
    // A minute passes.
    let lock = std::fs::File::options()
        .write(true)
        .open(folder.path().join(lock.unwrap()))
        .unwrap();
    let past = std::time::SystemTime::now() - std::time::Duration::from_mins(2);
    lock.set_modified(past).unwrap();
    drop(lock);
    stdout(&terrane(folder.path(), &["demo", "--size", "64x64"]));
    assert_eq!(names(folder.path()), ["demo"]);
}

#[test]
fn more_threads_than_a_machine_can_use_are_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let generate = ["generate", "a.tif", "--size", "64x64", "--jobs", "5000"];
    let output = terrane(folder.path(), &generate);
    assert!(output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.starts_with("terrane: --jobs 5000: ") && text.contains("threads are started"),
        "{text}"
    );
    let few = ["generate", "b.tif", "--size", "64x64", "--jobs", "64"];
    let output = terrane(folder.path(), &few);
    assert!(output.status.success() && output.stderr.is_empty());
}
