//! Damaged files are repaired, endless ones given up, and a hostile client gets nothing but an answer.

use std::io::{Cursor, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::{Digest, Sha256};
use terrane::format::{
    ErrorBound, GeoKeys, Header, Method, ModelId, Pyramid, Samples, Statistics, Writer,
};
use terrane_codec::context::{LayerWeights, MAX_WIDTH, Widths, to_bytes};

use crate::{Server, complaint, succeeds, terrane};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A file of a few megabytes with a network of its own, which sees 392 numbers of each pixel of tiles of 4096.
#[test]
fn an_embedded_network_takes_no_more_memory_than_it_may() {
    let widths = Widths {
        trunk: MAX_WIDTH,
        blocks: 1,
        band: MAX_WIDTH,
        band_blocks: 0,
        look: 0,
        hidden: 4,
        last: 0,
        dequantiser: 0,
        dequantiser_blocks: 0,
        reach: 1,
    };
    let layers: Vec<LayerWeights> = widths
        .layers()
        .iter()
        .map(|shape| LayerWeights {
            weights: vec![0; shape.inputs * shape.outputs],
            bias: vec![0; shape.outputs],
        })
        .collect();
    let model = to_bytes("wide", &widths, &layers, &[]).unwrap();
    let header = Header {
        pyramid: Pyramid::new(4096, 4096, 4096, 1).unwrap(),
        method: Method::Context,
        affine: [0.0, 1.0, 0.0, 0.0, 0.0, -1.0],
        is_georeferenced: false,
        pixel_is_point: false,
        epsg: [0, 0],
        geo_keys: GeoKeys::default(),
        wkt: String::new(),
        samples: Samples::default(),
        bound: ErrorBound::MaxError(0.1),
        statistics: Statistics::default(),
        overviews: Vec::new(),
        model: Some(ModelId {
            sha256: Sha256::digest(&model).into(),
            name: "wide".into(),
            address: String::new(),
            embedded: None,
        }),
    };
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("x.trn")).unwrap();
    let mut writer = Writer::create(file, header, true).unwrap();
    writer.embed_model(&model).unwrap();
    writer.finish(Statistics::default(), Vec::new()).unwrap();
    let decode = |limit| {
        let limit = ["--memory-limit", limit];
        [&["decode", "x.trn", "x.tif", "--overwrite"][..], &limit].concat()
    };
    let text = complaint(folder.path(), &decode("6"));
    assert!(
        text.contains("one tile") && text.contains("--memory-limit"),
        "{text}"
    );
    // Without a tile that has data, enough is enough.
    succeeds(folder.path(), &decode("8"));
}

#[test]
fn a_damaged_file_is_repaired_from_its_raster() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| succeeds(folder.path(), arguments);
    let path = |name: &str| folder.path().join(name);
    let read = |name: &str| std::fs::read(path(name)).unwrap();
    run(&["generate", "dem.tif", "--size", "600x300", "--seed", "3"]);
    let rate = ["--max-error", "0.1", "--tile", "64", "--effort", "2"];
    let plan = [
        "shard",
        "plan",
        "dem.tif",
        "plan.json",
        "--shard-tiles",
        "8",
    ];
    run(&[&plan[..], &rate].concat());
    run(&["shard", "encode", "plan.json", "--shard", "0"]);
    run(&["shard", "encode", "plan.json", "--shard", "1"]);
    run(&["shard", "merge", "plan.json", "merged.trn"]);
    run(&[&["encode", "dem.tif", "whole.trn"][..], &rate].concat());
    let whole = read("whole.trn");
    assert!(whole == read("merged.trn"));

    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    damaged[5] ^= 1;
    std::fs::write(path("x.trn"), &damaged).unwrap();
    let from = ["repair", "x.trn", "--from", "dem.tif"];
    let report = json(&run(&[
        "repair", "x.trn", "y.trn", "--from", "dem.tif", "--json",
    ]));
    assert_eq!(
        (&report["records"], &report["head"]),
        (&1.into(), &"mended".into())
    );
    assert_eq!(
        (&report["file"], &report["was_whole"]),
        (&"y.trn".into(), &false.into())
    );
    assert!(read("y.trn") == whole && read("x.trn") == damaged);
    let text = run(&[&from[..], &["--in-place"]].concat());
    assert!(
        text.contains("repaired one byte of the head, 1 record"),
        "{text}"
    );
    assert!(read("x.trn") == whole);
    let text = run(&[&from[..], &["--in-place"]].concat());
    assert!(text.contains("was whole"), "{text}");
    // The head is gone, and the options take its place.
    damaged[..300].fill(0);
    std::fs::write(path("x.trn"), &damaged).unwrap();
    let wrong = [
        "--in-place",
        "--profile",
        "fast",
        "--effort",
        "0",
        "--tile",
        "32",
    ];
    let text = complaint(folder.path(), &[&from[..], &wrong].concat());
    assert!(text.contains("head is lost"), "{text}");
    assert!(read("x.trn") == damaged);
    run(&[&from[..], &["--in-place"], &rate].concat());
    assert!(read("x.trn") == whole);

    let refused = |arguments: &[&str]| complaint(folder.path(), arguments);
    assert!(refused(&["repair", "x.trn", "y.trn", "--from", "dem.tif"]).contains("--overwrite"));
    let same = [
        "repair",
        "x.trn",
        "x.trn",
        "--from",
        "dem.tif",
        "--overwrite",
    ];
    assert!(refused(&same).contains("input"));
    let raster = [
        "repair",
        "x.trn",
        "dem.tif",
        "--from",
        "dem.tif",
        "--overwrite",
    ];
    assert!(refused(&raster).contains("dem.tif"));
    run(&["generate", "other.tif", "--size", "600x300", "--seed", "4"]);
    std::fs::write(path("x.trn"), [&whole[..900], &whole[901..], b"!"].concat()).unwrap();
    let other = refused(&["repair", "x.trn", "--from", "other.tif", "--in-place"]);
    assert!(other.contains("raster"), "{other}");
    assert!(refused(&["repair", "nowhere.trn", "z.trn", "--from", "dem.tif"]).contains("nowhere"));
}

/// A file of 66 kilobytes that says that it has 10¹² pixels without data.
fn write_endless(path: &Path) {
    let (width, height, side) = (1 << 12, 1 << 28, 512);
    let header = Header {
        pyramid: Pyramid::complete(width, height, side).unwrap(),
        method: Method::Integers,
        affine: [0.0, 1.0, 0.0, 0.0, 0.0, -1.0],
        is_georeferenced: true,
        pixel_is_point: false,
        epsg: [3857, 0],
        geo_keys: GeoKeys::default(),
        wkt: String::new(),
        samples: Samples::default(),
        bound: ErrorBound::MaxError(1.0),
        statistics: Statistics::default(),
        overviews: Vec::new(),
        model: None,
    };
    let writer = Writer::create(Cursor::new(Vec::new()), header, false).unwrap();
    let file = writer.finish(Statistics::default(), Vec::new()).unwrap();
    std::fs::write(path, file.into_inner()).unwrap();
}

#[test]
fn a_file_without_end_is_given_up_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.trn");
    write_endless(&path);
    assert!(std::fs::metadata(&path).unwrap().len() < 100_000);
    for arguments in [
        &["verify", "x.trn"][..],
        &["decode", "x.trn", "y.tif"],
        &[
            "contour",
            "x.trn",
            "y.geojson",
            "--interval",
            "5",
            "--crs",
            "own",
        ],
        &[
            "derive",
            "x.trn",
            "y.tif",
            "--product",
            "slope",
            "--memory-limit",
            "64",
        ],
    ] {
        let started = Instant::now();
        let output = terrane(
            folder.path(),
            &[arguments, &["--time-limit", "0.7"]].concat(),
        );
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains("--time-limit 0.7"), "{arguments:?}: {text}");
        assert!(started.elapsed() < Duration::from_secs(20), "{arguments:?}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    for wrong in ["0", "nan", "1e99", "soon"] {
        let text = complaint(folder.path(), &["info", "x.trn", "--time-limit", wrong]);
        assert!(text.contains("seconds"), "{text}");
    }
    // What the file says is said at once.
    succeeds(folder.path(), &["info", "x.trn", "--time-limit", "60"]);
}

/// Sends bytes to a server; the status of its answer, or nothing where it closed.
fn send(host: &str, bytes: &[u8]) -> Option<u16> {
    let mut stream = TcpStream::connect(host).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    // It may close before everything is sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    assert!(!text.contains("secret"), "{text}");
    text.split(' ').nth(1)?.parse().ok()
}

#[test]
fn a_hostile_client_gets_no_file_and_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| succeeds(folder.path(), arguments);
    run(&["generate", "a.tif", "--size", "128x128"]);
    run(&["encode", "a.tif", "a.trn"]);
    std::fs::write(folder.path().join("letter.txt"), "secret").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("letter.txt", folder.path().join("b.trn")).unwrap();
    let mut server = Server(
        Command::new(env!("CARGO_BIN_EXE_terrane"))
            .current_dir(folder.path())
            .args(["serve", "--port", "0", "--json", "a.trn"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let host = crate::address(&mut server);
    let host = host.trim_start_matches("http://");
    let get = |path: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        send(host, head.as_bytes())
    };
    assert_eq!(get("/health"), Some(200));
    // No path leads out of the files that are served: names are looked up, and never opened.
    for path in [
        "/../letter.txt",
        "/..%2fletter.txt",
        "/%2e%2e/letter.txt",
        "/%2e%2e%2fletter.txt",
        "/..%5cletter.txt",
        "/..%252fletter.txt",
        "/%c0%ae%c0%ae/letter.txt",
        "/letter.txt",
        "/./letter.txt",
        "//letter.txt",
        "/b.trn",
        "/b",
        "/a.trn/../letter.txt",
        "/a.trn%00.txt",
        "/a%00",
        "/%00",
        "/%ff%fe",
        "/assets/%2e%2e/%2e%2e/letter.txt",
        "/assets/..%00/letter.txt",
        "/a/point/%00,1",
        "http://elsewhere/letter.txt",
        "*",
    ] {
        let status = get(path);
        assert!(
            status.is_some_and(|status| (400..500).contains(&status)),
            "{path}: {status:?}"
        );
    }
    // A long address, many or long headers, a head that is none, a body.
    let long = "a".repeat(60_000);
    let points = "7.1,47.1;".repeat(1_000_000);
    let many = "x: y\r\n".repeat(20_000);
    for request in [
        format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("GET /a/profile?line={points} HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("GET /health HTTP/1.1\r\n{many}\r\n"),
        format!("GET /health HTTP/1.1\r\nx: {long}\r\n\r\n"),
        "GET /health HTTP/1.1\r\nHost: x\r\nRange: bytes=0-\0\r\n\r\n".to_owned(),
        "\0\u{1}\u{2}\r\n\r\n".to_owned(),
        "PUT /a.trn HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"
            .to_owned(),
        "DELETE /a.trn HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_owned(),
    ] {
        let status = send(host, request.as_bytes());
        let start: String = request.chars().take(40).collect();
        assert!(
            status.is_none_or(|status| (400..500).contains(&status)),
            "{start}: {status:?}"
        );
    }
    let profile = "/a/profile?line=9,46.9;9.001,46.9&points=";
    assert_eq!(get(&format!("{profile}1000000")), Some(400));
    assert_eq!(get(&format!("{profile}99999999999999999999")), Some(400));
    // A thousand at once are all answered.
    let answered: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| (0..50).filter(|_| get("/a/info") == Some(200)).count()))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum()
    });
    assert_eq!(answered, 1000);
    let waiting: Vec<TcpStream> = (0..1000)
        .map_while(|_| TcpStream::connect(host).ok())
        .collect();
    assert_eq!(get("/health"), Some(200));
    drop(waiting);
    assert_eq!(get("/health"), Some(200));
}
