//! What the command shows of texts that others wrote, and of secrets.

use std::io::Cursor;
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use terrane_format::{
    ErrorBound, GeoKeys, Header, Method, ModelId, Pyramid, Samples, Statistics, Writer,
};

use crate::{complaint, json, stdout, terrane};

/// Clears the screen, paints red, deletes, writes backwards, isolates, starts a line of its own.
const EVIL: &str = "a\u{1b}[2J\u{9b}31m\u{7f}\u{8}\u{202e}\u{2066}\nmethod      lossless";

fn is_control(letter: char) -> bool {
    letter != '\n'
        && (letter.is_control()
            || ('\u{202a}'..='\u{202e}').contains(&letter)
            || ('\u{2066}'..='\u{2069}').contains(&letter))
}

/// A file without tiles whose head holds a text wherever it can.
fn write_head(path: &Path, text: &str) {
    let citation = format!("{text}|");
    let header = Header {
        pyramid: Pyramid::new(64, 64, 64, 1).unwrap(),
        method: Method::Context,
        affine: [0.0, 1.0, 0.0, 0.0, 0.0, -1.0],
        is_georeferenced: true,
        pixel_is_point: false,
        epsg: [0, 0],
        geo_keys: GeoKeys {
            // A projected system of its own, with a citation.
            directory: vec![
                1,
                1,
                0,
                3,
                1024,
                0,
                1,
                1,
                1026,
                34737,
                citation.len() as u16,
                0,
                3072,
                0,
                1,
                32767,
            ],
            doubles: Vec::new(),
            text: citation,
        },
        wkt: text.to_owned(),
        samples: Samples {
            kind: text.to_owned(),
            unit: text.to_owned(),
            description: text.to_owned(),
            ..Samples::default()
        },
        bound: ErrorBound::None,
        statistics: Statistics::default(),
        overviews: Vec::new(),
        model: Some(ModelId {
            sha256: [0xab; 32],
            name: text.to_owned(),
            address: text.to_owned(),
            embedded: None,
        }),
    };
    let writer = Writer::create(Cursor::new(Vec::new()), header, false).unwrap();
    let file = writer
        .finish(Statistics::default(), Vec::new())
        .unwrap()
        .into_inner();
    std::fs::write(path, file).unwrap();
}

#[test]
fn control_characters_of_files_are_shown_and_not_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    write_head(&folder.path().join("evil.trn"), EVIL);
    write_head(&folder.path().join("good.trn"), "good");
    let (evil, good) = (
        stdout(&run(&["info", "evil.trn"])),
        stdout(&run(&["info", "good.trn"])),
    );
    assert!(!evil.contains(is_control), "{evil:?}");
    assert_eq!(evil.lines().count(), good.lines().count(), "{evil}");
    let shown = r"a\u001b[2J\u009b31m\u007f\u0008\u202e\u2066\u000amethod      lossless";
    for line in [
        format!("model       {shown}, abab"),
        format!("system      {shown} (no EPSG code)"),
        format!("source      {shown}, nodata none"),
    ] {
        assert!(evil.contains(&line), "{evil}");
    }
    // JSON means the same, and is harmless on a terminal all the same.
    let output = run(&["info", "evil.trn", "--json"]);
    assert_eq!(json(&output)["model"]["name"], EVIL);
    assert!(!stdout(&output).contains(is_control));
    // A message about another model names the file's.
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../terrane-codec/models");
    let model = format!("{models}/context-fast.safetensors");
    let text = complaint(&run(&["decode", "evil.trn", "out.tif", "--model", &model]));
    assert!(text.contains(shown) && !text.contains(is_control), "{text}");
    // Names of files are texts too.
    let text = complaint(&run(&["info", "no\u{1b}[31m\u{202e}such\nfile.trn"]));
    assert!(
        text.contains(r"no\u001b[31m\u202esuch\u000afile.trn cannot be opened"),
        "{text}"
    );
    write_head(&folder.path().join("nameless.trn"), "");
    let text = stdout(&run(&["info", "nameless.trn"]));
    assert!(text.contains("model       unnamed, abab"), "{text}");
}

/// Commands that read a file, each on the one that is given.
fn commands(file: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["info", file],
        vec!["verify", file],
        vec!["query", file, "--at", "1,1"],
        vec!["decode", file, "out.tif"],
        vec!["derive", file, "out.tif", "--product", "slope"],
        vec!["serve", file, "--port", "0"],
    ]
}

#[test]
fn a_server_that_never_answers_is_given_up_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // Connections are made and nobody takes them.
    let address = format!("http://{}/dem.trn", listener.local_addr().unwrap());
    for mut arguments in commands(&address) {
        arguments.extend(["--remote-timeout", "1"]);
        let started = Instant::now();
        let text = complaint(&terrane(folder.path(), &arguments));
        assert!(started.elapsed() < Duration::from_secs(5), "{arguments:?}");
        let expected = format!("{address} cannot be read: it did not answer within 1 s");
        assert!(text.contains(&expected), "{arguments:?}: {text}");
    }
    drop(listener);
}

#[test]
fn a_password_in_an_address_is_told_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let said = |output: &Output| {
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        String::from_utf8(text).unwrap()
    };
    // Nobody listens there.
    let address = "http://user:hidden@127.0.0.1:1/a/dem.trn?Signature=hidden";
    for arguments in commands(address) {
        let output = terrane(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let text = said(&output);
        assert!(!text.contains("hidden"), "{arguments:?}: {text}");
        assert!(
            text.contains("http://127.0.0.1:1/a/dem.trn cannot be read")
                && text.matches("dem.trn").count() == 1,
            "{text}"
        );
    }
    for arguments in [
        vec!["encode", address, "out.trn"],
        vec!["serve", "health=http://user:hidden@127.0.0.1:1/x?hidden"],
        vec!["info", "http://user:hid/den@127.0.0.1:1/x.trn"],
    ] {
        let text = said(&terrane(folder.path(), &arguments));
        assert!(!text.contains("hid"), "{arguments:?}: {text}");
    }
}
