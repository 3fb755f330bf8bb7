//! The command as scripts use it: pipes, JSON, CSV, names of all kinds.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{complaint, succeeds, terrane};

/// A command with bytes on standard input; its standard output.
fn piped(folder: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_terrane"))
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    assert!(!said.contains(".terrane-"), "{said}");
    writer.join().unwrap().unwrap();
    output.stdout
}

#[test]
fn a_dash_is_standard_input_and_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for arguments in [
        &["generate", "dem.tif", "--size", "200x150", "--seed", "5"][..],
        &["encode", "dem.tif", "x.trn"],
        &["decode", "x.trn", "y.tif"],
        &["derive", "x.trn", "slope.tif", "--product", "slope"],
        &["contour", "x.trn", "lines.geojson", "--interval", "20"],
    ] {
        succeeds(path, arguments);
    }
    let read = |name: &str| std::fs::read(path.join(name)).unwrap();
    let generated = piped(
        path,
        &["generate", "-", "--size", "200x150", "--seed", "5"],
        b"",
    );
    assert_eq!(generated, read("dem.tif"));
    let encoded = piped(path, &["encode", "-", "-"], &generated);
    assert_eq!(encoded, read("x.trn"));
    assert_eq!(piped(path, &["decode", "-", "-"], &encoded), read("y.tif"));
    let slope = piped(
        path,
        &["derive", "-", "-", "--product", "slope", "--json"],
        &encoded,
    );
    assert_eq!(slope, read("slope.tif"));
    let lines = piped(path, &["contour", "-", "-", "--interval", "20"], &encoded);
    assert_eq!(lines, read("lines.geojson"));
    let info = piped(path, &["info", "-", "--json"], &encoded);
    assert!(serde_json::from_slice::<Value>(&info).is_ok());
    assert!(!path.join("-").exists());

    let said = complaint(path, &["encode", "-", "-", "z.trn"]);
    assert!(said.contains("given twice"), "{said}");
    let said = complaint(path, &["encode", "dem.tif", "-", "--resumable"]);
    assert!(said.contains("--resumable needs files by name"), "{said}");
    let output = Command::new(env!("CARGO_BIN_EXE_terrane"))
        .current_dir(path)
        .args(["info", "-"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("standard input") && !said.contains(".terrane-"),
        "{said}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn results_as_json_name_files_of_any_name() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let path = |ending: &str| {
        let name = [b"caf\xe9.", ending.as_bytes()].concat();
        folder.path().join(std::ffi::OsStr::from_bytes(&name))
    };
    let run = |arguments: &[&std::ffi::OsStr]| {
        let output = Command::new(env!("CARGO_BIN_EXE_terrane"))
            .args(arguments)
            .arg("--json")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let [dem, trn, cog, slope, lines, again, merged] = [
        "tif",
        "trn",
        "cog.tif",
        "slope.tif",
        "geojson",
        "again.tif",
        "merged.trn",
    ]
    .map(path);
    let [dem, trn, cog, slope, lines, again, merged] =
        [&dem, &trn, &cog, &slope, &lines, &again, &merged].map(|path| path.as_os_str());
    let word = std::ffi::OsStr::new;
    let report = run(&[word("generate"), dem, word("--size"), word("100x80")]);
    assert!(report["file"].as_str().unwrap().contains("caf\u{fffd}"));
    run(&[word("encode"), dem, trn]);
    run(&[word("decode"), trn, cog]);
    run(&[word("derive"), trn, slope, word("--product"), word("slope")]);
    run(&[word("contour"), trn, lines, word("--interval"), word("20")]);
    run(&[word("info"), trn]);
    run(&[word("verify"), trn, word("--against"), dem]);
    run(&[word("diff"), trn, trn, again]);
    let plan = path("json");
    // A plan is a text, which such a name cannot be in: it is refused with a sentence.
    let output = Command::new(env!("CARGO_BIN_EXE_terrane"))
        .args([
            word("shard"),
            word("plan"),
            dem,
            plan.as_os_str(),
            word("--json"),
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    std::fs::copy(dem, folder.path().join("dem.tif")).unwrap();
    let dem = folder.path().join("dem.tif");
    run(&[
        word("shard"),
        word("plan"),
        dem.as_os_str(),
        plan.as_os_str(),
    ]);
    run(&[
        word("shard"),
        word("encode"),
        plan.as_os_str(),
        word("--shard"),
        word("0"),
    ]);
    run(&[word("shard"), word("merge"), plan.as_os_str(), merged]);
}

#[test]
fn errors_are_json_where_results_are() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["info", "none.trn", "--json"][..],
        &["info", "--json"],
        &["decode", "none.trn", "x.tif", "--levle", "3", "--json"],
    ] {
        let text = complaint(folder.path(), arguments);
        let value: Value = serde_json::from_str(&text).unwrap();
        let sentence = value["error"].as_str().unwrap();
        assert!(
            !sentence.is_empty() && !sentence.starts_with("error"),
            "{sentence}"
        );
    }
}

#[test]
fn the_program_is_called_terrane() {
    let folder = tempfile::tempdir().unwrap();
    let version = succeeds(folder.path(), &["--version"]);
    assert!(version.starts_with("terrane 0."), "{version}");
}

#[test]
fn an_ending_of_another_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    succeeds(folder.path(), &["generate", "dem.tif", "--size", "64x64"]);
    succeeds(folder.path(), &["encode", "dem.tif", "x.trn"]);
    let said = complaint(folder.path(), &["decode", "x.trn", "x.png"]);
    assert!(said.contains("would be a GeoTIFF, and .png"), "{said}");
    assert!(!folder.path().join("x.png").exists());
}

#[test]
fn points_in_degrees_are_known_by_their_names_and_come_back_as_csv() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    succeeds(path, &["generate", "dem.tif", "--size", "100x80"]);
    succeeds(path, &["encode", "dem.tif", "x.trn"]);
    // The generated terrain lies in EPSG:32632 at 500000, 5200000: on its central meridian, 9° E.
    std::fs::write(
        path.join("points.csv"),
        "id,Longitude,Latitude\noak,9.00066,46.95317\nelm,9.2,46.9\n",
    )
    .unwrap();
    let output = terrane(path, &["query", "x.trn", "--points", "points.csv", "--csv"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && said.contains("EPSG:4326"),
        "{said}"
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0][..4], ["id", "Longitude", "Latitude", "height_m"]);
    assert_eq!(lines[2][..4], ["elm", "9.2", "46.9", ""]);
    assert!(lines[1][3].parse::<f64>().is_ok(), "{text}");

    let output = terrane(path, &["query", "x.trn", "--at", "1,2"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("no height at any of 1 points; --crs"),
        "{said}"
    );
}

#[test]
fn what_is_whole_of_a_damaged_file_is_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    succeeds(
        path,
        &["generate", "dem.tif", "--size", "600x300", "--seed", "3"],
    );
    succeeds(
        path,
        &["encode", "dem.tif", "x.trn", "--method", "integers"],
    );
    let mut bytes = std::fs::read(path.join("x.trn")).unwrap();
    let third = bytes.len() / 3;
    bytes[third] ^= 0x10;
    std::fs::write(path.join("y.trn"), bytes).unwrap();
    complaint(path, &["decode", "y.trn", "y.tif"]);
    assert!(!path.join("y.tif").exists());
    let output = terrane(path, &["decode", "y.trn", "y.tif", "--skip-damaged"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("damaged tiles without data in y.tif: 1;"),
        "{said}"
    );
    succeeds(path, &["decode", "x.trn", "x.tif"]);
    // All tiles but one are those of the whole file.
    let output = terrane(
        path,
        &["encode", "y.tif", "again.trn", "--lossless", "--json"],
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let whole = terrane(
        path,
        &["encode", "x.tif", "whole.trn", "--lossless", "--json"],
    );
    let whole: Value = serde_json::from_slice(&whole.stdout).unwrap();
    let [damaged, whole] = [report, whole].map(|report| report["pixels"].as_u64().unwrap());
    assert!(
        damaged < whole && whole - damaged <= 256 * 256,
        "{damaged} of {whole}"
    );
}
