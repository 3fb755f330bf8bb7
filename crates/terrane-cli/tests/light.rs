//! What the program does without burn, and what it says of files that it cannot read then.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

#[path = "light/catalogue.rs"]
mod catalogue;
#[path = "light/command_line.rs"]
mod command_line;
#[path = "light/reading.rs"]
mod reading;
#[path = "light/trust.rs"]
mod trust;

use std::io::{BufRead, BufReader};
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
fn two_files_are_compared_and_the_mask_says_what_is_proven() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| succeeds(folder.path(), arguments);
    for (name, seed) in [("old", "3"), ("new", "4")] {
        let (raster, file) = (format!("{name}.tif"), format!("{name}.trn"));
        run(&["generate", &raster, "--size", "300x270", "--seed", seed]);
        run(&[
            "encode",
            &raster,
            &file,
            "--max-error",
            "0.1",
            "--tile",
            "64",
        ]);
    }
    let command = ["diff", "new.trn", "old.trn", "change.tif"];
    let text = run(&[&command[..], &["--mask", "mask.tif", "--json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |key: &str| report[key].as_f64().unwrap();
    assert_eq!(number("bound_m"), 0.2);
    assert_eq!(
        number("compared_pixels") + number("nodata_pixels"),
        300.0 * 270.0
    );
    assert!(number("changed_pixels") > 1000.0);
    assert!(number("fill_m3") - number("fill_bound_m3") <= number("all_fill_high_m3"));
    for name in ["change.tif", "mask.tif"] {
        let bytes = std::fs::read(folder.path().join(name)).unwrap();
        let item = b"<Item name=\"TERRANE_BOUND_M\">0.2";
        assert!(bytes.windows(item.len()).any(|part| part == item), "{name}");
    }
    assert!(complaint(folder.path(), &command).contains("change.tif: exists already"));
    let own = complaint(
        folder.path(),
        &["diff", "new.trn", "old.trn", "old.trn", "--overwrite"],
    );
    assert!(own.contains("old.trn"), "{own}");
    // The same file twice: nothing changed.
    let text = run(&["diff", "new.trn", "new.trn", "none.tif"]);
    assert!(text.contains("proven    0 pixels"), "{text}");

    run(&["encode", "old.tif", "free.trn", "--rmse", "0.1"]);
    let free = ["diff", "new.trn", "free.trn", "free.tif"];
    let text = complaint(folder.path(), &[&free[..], &["--mask", "m.tif"]].concat());
    assert!(
        text.contains("the old file guarantees no bound") && text.contains("--max-error"),
        "{text}"
    );
    assert!(run(&free).contains("without a bound"));
    let text = complaint(
        folder.path(),
        &["serve", "new.trn", "--before", "free.trn", "--port", "0"],
    );
    assert!(
        text.contains("--before free.trn") && text.contains("no bound"),
        "{text}"
    );
}

#[test]
fn map_tiles_are_written_as_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| succeeds(folder.path(), arguments);
    run(&["generate", "dem.tif", "--size", "300x270", "--seed", "3"]);
    run(&[
        "encode",
        "dem.tif",
        "x.trn",
        "--max-error",
        "0.1",
        "--tile",
        "64",
    ]);
    let text = run(&["tiles", "x.trn", "x.pmtiles", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let bytes = std::fs::read(folder.path().join("x.pmtiles")).unwrap();
    assert_eq!(&bytes[..8], b"PMTiles\x03");
    assert_eq!(report["bytes"], bytes.len());
    assert_eq!(report["maxzoom"], bytes[101]);
    assert!(report["rounding_of_bound"].as_f64().unwrap() <= 0.125);
    // The same on any number of threads.
    run(&["tiles", "x.trn", "y.pmtiles", "--jobs", "3"]);
    assert!(std::fs::read(folder.path().join("y.pmtiles")).unwrap() == bytes);
    let mapbox = [
        "--encoding",
        "mapbox",
        "--format",
        "png",
        "--tile-size",
        "256",
    ];
    let output = terrane(
        folder.path(),
        &[&["tiles", "x.trn", "m.pmtiles"][..], &mapbox].concat(),
    );
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && warning.contains("50 % of the file's error bound"));
    let text = run(&["tiles", "x.trn", "s.pmtiles", "--layer", "hillshade"]);
    assert!(!text.contains("heights"), "{text}");
    for (arguments, words) in [
        (
            &["tiles", "x.trn", "x.pmtiles"][..],
            "x.pmtiles: exists already",
        ),
        (&["tiles", "x.trn", "x.tif"], "x.tif"),
        (&["tiles", "x.trn", "x.mbtiles"], "x.mbtiles"),
        (
            &["tiles", "x.trn", "z.pmtiles", "--min-zoom", "20"],
            "no zooms from 20",
        ),
        (&["tiles", "x.trn", "z.pmtiles", "--step", "0"], "--step"),
        (
            &["tiles", "x.trn", "z.pmtiles", "--layer", "difference"],
            "difference",
        ),
    ] {
        let text = complaint(folder.path(), arguments);
        assert!(text.contains(words), "{arguments:?} {text}");
    }
}

#[cfg(not(feature = "networks"))]
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

#[cfg(not(feature = "lab"))]
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

/// What a file of lines holds: heights, and whether each line is closed.
fn features(folder: &Path, name: &str) -> Vec<(f64, bool)> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let collection: serde_json::Value = serde_json::from_str(&text).unwrap();
    let features = collection["features"].as_array().unwrap().iter();
    features
        .map(|feature| {
            let points = feature["geometry"]["coordinates"].as_array().unwrap();
            (
                feature["properties"]["height_m"].as_f64().unwrap(),
                points.len() > 3 && points.first() == points.last(),
            )
        })
        .collect()
}

#[test]
fn contour_lines_are_written_and_served() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| succeeds(folder.path(), arguments);
    run(&["generate", "dem.tif", "--size", "300x270", "--seed", "3"]);
    run(&["encode", "dem.tif", "x.trn", "--tile", "64"]);
    let report = run(&[
        "contour",
        "x.trn",
        "x.geojson",
        "--interval",
        "10",
        "--json",
    ]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let lines = features(folder.path(), "x.geojson");
    assert_eq!(report["lines"], lines.len());
    let closed = lines.iter().filter(|(_, is_closed)| *is_closed).count();
    assert_eq!(report["closed"], closed);
    assert!(lines.len() > 5 && lines.iter().all(|(height, _)| height % 10.0 == 0.0));
    // The same lines whatever the number of threads, and in every format.
    let once = std::fs::read(folder.path().join("x.geojson")).unwrap();
    run(&[
        "contour",
        "x.trn",
        "y.geojson",
        "--interval",
        "10",
        "--jobs",
        "1",
    ]);
    assert_eq!(
        std::fs::read(folder.path().join("y.geojson")).unwrap(),
        once
    );
    let flat = run(&["contour", "x.trn", "x.fgb", "--interval", "10", "--json"]);
    let flat: serde_json::Value = serde_json::from_str(&flat).unwrap();
    assert_eq!(flat["points"], report["points"]);
    let bytes = std::fs::read(folder.path().join("x.fgb")).unwrap();
    assert_eq!(bytes[..4], *b"fgb\x03");
    run(&[
        "contour",
        "x.trn",
        "x.geojsonl",
        "--interval",
        "10",
        "--crs",
        "own",
    ]);
    let text = std::fs::read_to_string(folder.path().join("x.geojsonl")).unwrap();
    assert_eq!(text.lines().count(), lines.len());
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    for (arguments, words) in [
        (&["x.geojson", "--interval", "10"][..], "exists"),
        (
            &["z.geojson", "--interval", "0"],
            "--interval must be above 0, not 0",
        ),
        (&["z.geojson", "--interval", "1e-7"], "heights from"),
        (
            &["z.shp", "--interval", "10"],
            "lines are written as .geojson",
        ),
        (&["z.tif", "--interval", "10"], "z.tif"),
        (
            &["z.fgb", "--interval", "10", "--level", "9"],
            "there is no level 9",
        ),
        (
            &["z.fgb", "--interval", "10", "--bbox", "0,0,1,1"],
            "outside the raster",
        ),
    ] {
        let arguments = [&["contour", "x.trn"][..], arguments].concat();
        let complaint = complaint(folder.path(), &arguments);
        assert!(complaint.contains(words), "{arguments:?}: {complaint}");
    }
    assert!(!folder.path().join("z.geojson").exists());
    serve_contours(folder.path());
}

/// Ends a server that a test started.
struct Server(std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(folder: &Path, arguments: &[&str]) -> Server {
    Server(
        Command::new(env!("CARGO_BIN_EXE_terrane"))
            .current_dir(folder)
            .args(["serve", "--port", "0", "--json"])
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap(),
    )
}

/// Where a server that was started with `--json` listens.
fn address(server: &mut Server) -> String {
    let mut line = String::new();
    let out = server.0.stdout.as_mut().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    let started: serde_json::Value = serde_json::from_str(&line).unwrap();
    started["address"].as_str().unwrap().to_owned()
}

fn serve_contours(folder: &Path) {
    let mut server = serve(folder, &["x.trn"]);
    let address = address(&mut server);
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .build();
    let agent = ureq::Agent::new_with_config(config);
    let get = |path: &str, tag: &str| {
        let request = agent.get(format!("{address}{path}"));
        let mut answer = request.header("if-none-match", tag).call().unwrap();
        let header = |name: &str| {
            let value = answer.headers().get(name);
            value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
        };
        let (kind, tag) = (header("content-type"), header("etag"));
        let body = answer.body_mut().read_to_vec().unwrap();
        (answer.status().as_u16(), kind, tag, body)
    };
    let (_, _, _, body) = get("/x/contours?interval=2.5", "");
    let description: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(description["vector_layers"][0]["id"], "contours");
    let zoom = description["maxzoom"].as_u64().unwrap();
    assert_eq!(description["interval_m_by_zoom"][zoom.to_string()], 2.5);
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let (longitude, latitude) = (
        number(&description["center"][0]),
        number(&description["center"][1]),
    );
    let z = zoom - 2;
    let (u, v) = terrane::tiles::position(longitude, latitude);
    let place = |at: f64| (at * f64::from(1_u32 << z)) as u64;
    let tile = description["tiles"][0].as_str().unwrap();
    assert!(
        tile.starts_with(&address) && tile.ends_with(".mvt?interval=2.5"),
        "{tile}"
    );
    let path = format!("/x/contours/{z}/{}/{}.mvt?interval=2.5", place(u), place(v));
    let (status, kind, tag, body) = get(&path, "");
    assert_eq!(
        (status, kind.as_str()),
        (200, "application/vnd.mapbox-vector-tile")
    );
    // A layer of the name; what is in it is tested where it is made.
    assert!(body.len() > 100 && body.windows(8).any(|word| word == b"contours"));
    assert_eq!(get(&path, &tag).0, 304);
    assert_ne!(get(&path.replace("2.5", "5"), "").2, tag);
    for (path, status) in [
        (path.replace("2.5", "0"), 400),
        (path.replace("2.5", "deep"), 400),
        (path.replace("2.5", "1e-9"), 400),
        // Finer than what the file is exact to.
        (path.replace("2.5", "0.04"), 400),
        ("/x/contours?interval=0.04".into(), 400),
        (path.replace(".mvt", ".png"), 400),
        ("/x/contours/3/9/0.mvt".into(), 400),
        ("/y/contours".into(), 404),
    ] {
        let (found, _, _, body) = get(&path, "");
        assert_eq!(found, status, "{path}");
        let failure: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert!(failure["error"].as_str().unwrap().len() > 10);
    }
}

#[test]
fn a_rate_above_the_lossless_one_gives_the_lossless_file_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| succeeds(folder.path(), arguments);
    run(&["generate", "dem.tif", "--size", "150x120", "--seed", "5"]);
    let encode = [
        "encode",
        "dem.tif",
        "x.trn",
        "--profile",
        "fast",
        "--overwrite",
    ];
    let text = run(&[&encode[..], &["--bpp", "100"]].concat());
    assert!(
        text.contains("the file is lossless, which takes no more bytes"),
        "{text}"
    );
    let rich = std::fs::read(folder.path().join("x.trn")).unwrap();
    run(&[&encode[..], &["--lossless"]].concat());
    assert!(rich == std::fs::read(folder.path().join("x.trn")).unwrap());
    for (rate, reached) in [
        (["--bpp", "100"], "\"reached\": \"lossless\""),
        (["--rmse", "1e-9"], "\"reached\": \"lossless\""),
        (["--rmse", "1e6"], "\"reached\": \"smallest\""),
        (["--rmse", "0.5"], "\"reached\": \"target\""),
    ] {
        let text = run(&[&encode[..], &rate, &["--json"]].concat());
        assert!(text.contains(reached), "{rate:?}: {text}");
    }
    let text = complaint(folder.path(), &[&encode[..], &["--bpp", "0.001"]].concat());
    assert!(
        text.contains("of 0.001 cannot be reached: the least that there is is"),
        "{text}"
    );
}
