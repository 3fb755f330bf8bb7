//! C programs, compiled and run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The library of this build, made as users make it; nothing that a test links depends on it, so that it is built here.
fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let program = std::env::current_exe().unwrap();
        // target/debug/deps/c-…
        let profile = program.ancestors().nth(2).unwrap();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "-p", "terrane-c", "--target-dir"]);
        build.arg(profile.parent().unwrap());
        let name = profile.file_name().unwrap();
        build.arg("--profile");
        build.arg(if name == "debug" {
            "dev".as_ref()
        } else {
            name
        });
        let status = build.current_dir(env!("CARGO_MANIFEST_DIR")).status();
        assert!(status.unwrap().success(), "the library was not built");
        profile.to_owned()
    })
}

/// Whether there is a C compiler; without one a test says that it was skipped.
fn has_compiler(test: &str) -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {test} needs a C compiler named cc");
    }
    found
}

fn compile(source: &str, program: &Path, link: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-O1",
    ]);
    compiler.arg(folder.join(source));
    compiler.arg("-I").arg(folder.join("include"));
    compiler.arg("-o").arg(program).args(link);
    compiler.args(["-lpthread", "-ldl", "-lm"]);
    let compiled = compiler.output().unwrap();
    let text = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{text}");
}

#[test]
fn the_example_runs() {
    if !has_compiler("the_example_runs") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("example");
    let library = library();
    let link = format!("-L{}", library.display());
    compile("examples/dem.c", &program, &[&link, "-lterrane"]);
    // As it is installed: a program looks for the name in the library, which changes with `TRN_ABI`.
    #[cfg(target_os = "linux")]
    let library = {
        let installed = folder.path().join("libterrane.so.1");
        std::os::unix::fs::symlink(library.join("libterrane.so"), installed).unwrap();
        folder.path()
    };
    let ran = Command::new(program)
        .arg(folder.path().join("hill.trn"))
        .env("LD_LIBRARY_PATH", library)
        .env("DYLD_LIBRARY_PATH", library)
        .output()
        .unwrap();
    let (out, messages) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    assert!(ran.status.success(), "{out}{messages}");
    for expected in [
        concat!("libterrane ", env!("CARGO_PKG_VERSION")),
        "encoded 59700 pixels",
        "300 by 200 pixels",
        "EPSG:2056+5728",
        "within 0.05 m, decoded nodata -9999, heights in m",
        "nan",
        "height 490.0 m, slope 21.",
    ] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    assert!(messages.contains("100 %"), "{messages}");
}

#[test]
fn the_library_keeps_its_promises() {
    if !has_compiler("the_library_keeps_its_promises") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("check");
    let archive = library().join("libterrane.a");
    compile("tests/c/check.c", &program, &[archive.to_str().unwrap()]);
    let tokens =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/tokens-int8/input.trn");
    let ran = Command::new(program)
        .arg(folder.path())
        .arg(tokens)
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{messages}");
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout).trim(),
        "all of it holds"
    );
}
