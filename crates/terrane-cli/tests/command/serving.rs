//! `terrane serve` as clients see it.

use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use terrane_format::{
    ErrorBound, GeoKeys, Header, IntegerScale, Integers, Layer, LevelTile, Method, Pyramid, Record,
    Samples, Statistics, TileId, Window, Writer,
};
use terrane_geo::{Affine, CogWriter, Crs, Existing, Georeference, Output, SampleType, Storage};

use crate::served::{Served, height, served, start, tile_of};
use crate::{complaint, json, stdout, terrane};

#[test]
fn tilejson_says_where_the_tiles_are() {
    let served = served();
    let description = served.get("/dem").json();
    assert_eq!(description["tilejson"], "3.0.0");
    assert_eq!(description["encoding"], "terrarium");
    assert_eq!(
        description["tiles"][0],
        format!("{}/dem/{{z}}/{{x}}/{{y}}.png", served.address)
    );
    let (least, most) = (
        description["minzoom"].as_u64().unwrap(),
        description["maxzoom"].as_u64().unwrap(),
    );
    // Metres at 47° north are pixels between zooms 16 and 17; the surface goes one further.
    assert_eq!((least, most), (12, 18));
    let [west, south, east, north] =
        [0, 1, 2, 3].map(|index| description["bounds"][index].as_f64().unwrap());
    assert!(west < east && south < north && north - south < 0.01);
    let slope = served.get("/dem/slope").json();
    assert!(
        slope["tiles"][0]
            .as_str()
            .unwrap()
            .contains("/dem/slope/{z}")
    );
    assert_eq!(slope.get("encoding"), None);
    let webp = served
        .get("/dem/WebMercatorQuad/tilejson.json?format=webp")
        .json();
    assert!(webp["tiles"][0].as_str().unwrap().contains("{y}.webp"));
    let catalogue = served.get("/catalog").json();
    assert_eq!(catalogue["tiles"]["dem"]["original"], "dem-original");
    let info = served.get("/dem/info").json();
    assert_eq!(info["bound_m"], 0.05);
    assert_eq!(
        info["bytes"],
        std::fs::metadata(served.folder.path().join("dem.trn"))
            .unwrap()
            .len()
    );
}

#[test]
fn every_layer_draws_at_every_zoom() {
    let served = served();
    for z in [12, 14, 16, 17, 18, 20] {
        let (x, y) = served.middle(z);
        for layer in [
            "",
            "/relief",
            "/hillshade",
            "/slope",
            "/aspect",
            "/laplacian",
            "/profile-curvature",
            "/plan-curvature",
            "/difference",
        ] {
            let (side, pixels) = served.pixels(&format!("/dem{layer}/{z}/{x}/{y}.png"));
            assert_eq!(side, 256);
            let colours: std::collections::HashSet<_> = pixels.iter().collect();
            assert!(
                colours.len() > 10,
                "{layer} at zoom {z} has {} colours",
                colours.len()
            );
        }
    }
    let (x, y) = served.middle(16);
    assert_eq!(
        served.pixels(&format!("/dem/slope/16/{x}/{y}@2x.png")).0,
        512
    );
    let webp = served.get(&format!("/dem/16/{x}/{y}.webp"));
    assert_eq!(webp.header("content-type"), "image/webp");
    assert_eq!(&webp.body[..4], b"RIFF");
    // titiler's address.
    let same = served.get(&format!(
        "/dem/tiles/WebMercatorQuad/16/{x}/{y}.png?algorithm=slope"
    ));
    assert_eq!(
        same.body,
        served.get(&format!("/dem/slope/16/{x}/{y}.png")).body
    );
}

#[test]
fn heights_of_tiles_are_those_of_points() {
    let served = served();
    let z = 17;
    let (x, y) = served.middle(z);
    let (side, pixels) = served.pixels(&format!("/dem/{z}/{x}/{y}.png"));
    let across = f64::from(1_u32 << z);
    let part =
        |tile: u32, pixel: usize| (f64::from(tile) + (pixel as f64 + 0.5) / side as f64) / across;
    for (column, row) in [(0, 0), (100, 37), (255, 255), (128, 200)] {
        let longitude = 360.0 * part(x, column) - 180.0;
        let north = std::f64::consts::PI * (1.0 - 2.0 * part(y, row));
        let latitude = north.sinh().atan().to_degrees();
        let point = served
            .get(&format!("/dem/point/{longitude},{latitude}"))
            .json();
        let found = height(pixels[row * side + column]);
        let expected = point["height_m"].as_f64().unwrap();
        // Half a step of Terrarium, and a hundredth of a pixel on a slope.
        assert!((found - expected).abs() < 0.02, "{found} {expected}");
    }
}

#[test]
fn a_point_is_what_query_says() {
    let served = served();
    let center = served.get("/dem").json()["center"].clone();
    for (east, north) in [(0.0, 0.0), (0.001, 0.0007), (-0.0013, 0.0004)] {
        let (longitude, latitude) = (
            center[0].as_f64().unwrap() + east,
            center[1].as_f64().unwrap() + north,
        );
        let place = format!("{longitude},{latitude}");
        let point = served.get(&format!("/dem/point/{place}")).json();
        let query = json(&terrane(
            served.folder.path(),
            &[
                "query",
                "dem.trn",
                "--at",
                &place,
                "--crs",
                "EPSG:4326",
                "--json",
            ],
        ));
        for key in [
            "height_m",
            "slope_deg",
            "aspect_deg",
            "laplacian_per_m",
            "x",
            "y",
        ] {
            let (ours, theirs) = (
                point[key].as_f64().unwrap(),
                query[0][key].as_f64().unwrap(),
            );
            assert!((ours - theirs).abs() < 1e-6, "{key}: {ours} {theirs}");
        }
        let original = served.get(&format!("/dem-original/point/{place}")).json();
        let difference =
            original["height_m"].as_f64().unwrap() - point["height_m"].as_f64().unwrap();
        assert!(difference.abs() < 0.1 && difference != 0.0);
    }
    let outside = served.get("/dem/point/0,0").json();
    assert_eq!(outside["height_m"], Value::Null);
}

/// One tile of 512 pixels is four of 256 at the next zoom; where they meet, it has no border. Their pixels are equal, so
/// none of the four can show one. Borders of the file's own tiles lie in between.
#[test]
fn neighbouring_tiles_join_without_a_seam() {
    let served = served();
    for z in [13, 14, 16, 18] {
        let (x, y) = served.middle(z);
        for layer in [
            "",
            "/relief",
            "/hillshade",
            "/aspect",
            "/laplacian",
            "/difference",
        ] {
            let (side, whole) = served.pixels(&format!("/dem{layer}/{z}/{x}/{y}@2x.png"));
            assert_eq!(side, 512);
            for (right, down) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                let (column, row) = (2 * x + right, 2 * y + down);
                let path = format!("/dem{layer}/{}/{column}/{row}.png", z + 1);
                let (_, part) = served.pixels(&path);
                let start = (down * 256 * 512 + right * 256) as usize;
                for row in 0..256 {
                    assert_eq!(
                        whole[start + row * 512..][..256],
                        part[row * 256..][..256],
                        "{path}, row {row}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_has_no_data_is_transparent_or_a_height() {
    let served = served();
    let (x, y) = served.middle(13);
    let (_, shade) = served.pixels(&format!("/dem/hillshade/13/{x}/{y}.png"));
    assert!(shade.iter().any(|pixel| pixel[3] == 0) && shade.iter().any(|pixel| pixel[3] == 255));
    let (_, clear) = served.pixels(&format!("/dem/13/{x}/{y}.png?nodata=transparent"));
    let (_, filled) = served.pixels(&format!("/dem/13/{x}/{y}.png"));
    let (_, chosen) = served.pixels(&format!("/dem/13/{x}/{y}.png?nodata=12.5"));
    let lowest = served.get("/dem/info").json()["lowest_m"].as_f64().unwrap();
    for index in 0..clear.len() {
        // Transparent in the same pixels in which a shade is.
        assert_eq!(clear[index][3], shade[index][3]);
        assert_eq!((filled[index][3], chosen[index][3]), (255, 255));
        if clear[index][3] == 0 {
            assert!((height(filled[index]) - lowest).abs() <= 0.002);
            assert_eq!(height(chosen[index]), 12.5);
        } else {
            assert_eq!(filled[index], clear[index]);
        }
    }
    // Far away there is no tile of shades to be drawn, but one of heights for those who go on there.
    let (_, far) = served.pixels("/dem/hillshade/13/0/0.png");
    assert!(far.iter().all(|pixel| pixel[3] == 0));
}

#[test]
fn a_tag_saves_the_second_answer() {
    let served = served();
    let (x, y) = served.middle(16);
    for path in [
        format!("/dem/16/{x}/{y}.png"),
        "/dem".to_owned(),
        "/".to_owned(),
        "/assets/maplibre-gl.mjs".to_owned(),
    ] {
        let first = served.get(&path);
        let tag = first.header("etag").to_owned();
        assert!(tag.starts_with('"') && tag.len() > 10, "{path}: {tag}");
        assert_eq!(first.header("access-control-allow-origin"), "*");
        let again = served.get_with(&path, &[("if-none-match", &format!("\"other\", W/{tag}"))]);
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        assert_eq!(
            served
                .get_with(&path, &[("if-none-match", "\"other\"")])
                .status,
            200
        );
    }
    let [one, two] = ["", "?nodata=5"].map(|query| {
        served
            .get(&format!("/dem/16/{x}/{y}.png{query}"))
            .header("etag")
            .to_owned()
    });
    assert_ne!(one, two);
}

#[test]
fn text_is_compressed_and_tiles_are_not() {
    let served = served();
    let mut stream = TcpStream::connect(served.address.trim_start_matches("http://")).unwrap();
    let mut ask = |path: &str, coding: &str| {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: {coding}\r\nConnection: close\r\n\r\n").unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        stream = TcpStream::connect(served.address.trim_start_matches("http://")).unwrap();
        let head = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        (
            String::from_utf8(bytes[..head].to_vec())
                .unwrap()
                .to_ascii_lowercase(),
            bytes.len(),
        )
    };
    let (head, length) = ask("/assets/maplibre-gl.mjs", "br");
    assert!(
        head.contains("content-encoding: br") && length < 500_000,
        "{head}"
    );
    let (head, _) = ask("/dem/info", "gzip");
    assert!(head.contains("content-encoding: gzip"), "{head}");
    let (x, y) = served.middle(16);
    let (head, _) = ask(&format!("/dem/16/{x}/{y}.png"), "gzip, br");
    assert!(!head.contains("content-encoding"), "{head}");
}

#[test]
fn bad_requests_get_a_status_and_a_sentence() {
    let served = served();
    let long = vec!["7,47"; 300].join(";");
    for (path, status) in [
        ("/nowhere".to_owned(), 404),
        ("/nowhere/3/1/1.png".to_owned(), 404),
        ("/dem/nothing/3/1/1.png".to_owned(), 404),
        ("/dem/tri".to_owned(), 404),
        ("/a/b/c/d/e/f/g/h".to_owned(), 404),
        ("/dem/3/8/1.png".to_owned(), 400),
        ("/dem/25/0/0.png".to_owned(), 400),
        ("/dem/3/-1/0.png".to_owned(), 400),
        ("/dem/3/1/99999999999999999999.png".to_owned(), 400),
        ("/dem/3/1/1.jpg".to_owned(), 400),
        ("/dem/3/1/1@9x.png".to_owned(), 400),
        ("/dem/x/y/z".to_owned(), 400),
        ("/dem/3/1/1.png?nodata=deep".to_owned(), 400),
        ("/dem/3/1/1.png?nodata=NaN".to_owned(), 400),
        ("/dem/tiles/Other/3/1/1.png".to_owned(), 404),
        ("/dem/point/7".to_owned(), 400),
        ("/dem/point/200,10".to_owned(), 400),
        ("/dem/point/nan,inf".to_owned(), 400),
        ("/dem/profile".to_owned(), 400),
        ("/dem/profile?line=7,47".to_owned(), 400),
        (format!("/dem/profile?line={long}"), 400),
        (
            "/dem/profile?line=7,47;7.1,47&points=1000000".to_owned(),
            400,
        ),
        ("/assets/secret".to_owned(), 404),
        ("/assets/..%2f..%2fCargo.toml".to_owned(), 404),
    ] {
        let answer = served.get(&path);
        assert_eq!(answer.status, status, "{path}");
        let sentence = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(sentence.len() > 10, "{path}: {sentence}");
    }
    let mut stream = TcpStream::connect(served.address.trim_start_matches("http://")).unwrap();
    write!(stream, "GET /{} HTTP/1.1\r\n", "a".repeat(100_000)).unwrap_or_default();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    let posted = ureq::Agent::new_with_config(
        ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build(),
    )
    .post(format!("{}/dem", served.address))
    .send("x")
    .unwrap();
    assert_eq!(posted.status().as_u16(), 405);
    assert_eq!(served.get("/health").json()["status"], "ok");
    let metrics = String::from_utf8(served.get("/metrics").body).unwrap();
    assert!(
        metrics.contains("terrane_requests_total{route=\"/{name}/{z}/{x}/{y}\",status=\"400\"}"),
        "{metrics}"
    );
}

#[test]
fn a_profile_walks_the_surface() {
    let served = served();
    let center = served.get("/dem").json()["center"].clone();
    let (longitude, latitude) = (center[0].as_f64().unwrap(), center[1].as_f64().unwrap());
    let line = format!(
        "{},{latitude};{},{}",
        longitude - 0.002,
        longitude + 0.002,
        latitude + 0.001
    );
    let profile = served
        .get(&format!("/dem/profile?line={line}&points=50"))
        .json();
    let points = profile["points"].as_array().unwrap();
    assert_eq!(points.len(), 50);
    assert!(
        (profile["length_m"].as_f64().unwrap() - 320.0).abs() < 15.0,
        "{}",
        profile["length_m"]
    );
    let point = &points[20];
    let at = served
        .get(&format!(
            "/dem/point/{},{}",
            point["longitude_deg"], point["latitude_deg"]
        ))
        .json();
    let (a, b) = (
        point["height_m"].as_f64().unwrap(),
        at["height_m"].as_f64().unwrap(),
    );
    assert!((a - b).abs() < 1e-6);
    let rise = points[49]["height_m"].as_f64().unwrap() - points[0]["height_m"].as_f64().unwrap();
    let sum = profile["ascent_m"].as_f64().unwrap() - profile["descent_m"].as_f64().unwrap();
    assert!((rise - sum).abs() < 1e-6);
}

#[test]
fn the_viewer_is_in_the_program_and_needs_no_network() {
    let served = served();
    let page = served.get("/");
    let text = String::from_utf8(page.body.clone()).unwrap();
    assert!(
        page.header("content-security-policy")
            .contains("default-src 'self'")
    );
    assert!(!text.contains("http://") && !text.contains("https://"));
    // Everything the page and its scripts load is there.
    let mut waiting = vec![text];
    let mut seen = Vec::new();
    while let Some(text) = waiting.pop() {
        for part in text
            .split(['"', '`'])
            .filter(|part| part.starts_with("assets/") || part.starts_with("./"))
        {
            let name = part
                .trim_start_matches("assets/")
                .trim_start_matches("./")
                .to_owned();
            // A site has its decoder there; a server decodes by itself.
            let is_of_site = name.starts_with("terrane/");
            if is_of_site || seen.contains(&name) || name.contains("${") || name.contains(' ') {
                continue;
            }
            let asset = served.get(&format!("/assets/{name}"));
            assert_eq!(asset.status, 200, "{name}");
            if !name.starts_with("maplibre") {
                waiting.push(String::from_utf8(asset.body).unwrap());
            }
            seen.push(name);
        }
    }
    assert!(seen.len() >= 12, "{seen:?}");
    assert_eq!(served.get("/assets/maplibre-gl-worker.mjs").status, 200);
}

/// A raster in a system of longitudes and latitudes, whose slopes must be metres per metre all the same.
#[test]
fn degrees_are_served_like_metres() {
    let folder = tempfile::tempdir().unwrap();
    let affine = Affine::north_up(7.0, 47.0, 1e-5);
    let place = Georeference::new(affine, Crs::geographic(4326, None));
    let storage = Storage::metres(SampleType::F32, None);
    let path = folder.path().join("ramp.tif");
    let mut writer = CogWriter::create(
        &Output::named_here(&path, Existing::Refuse),
        (300, 300),
        place,
        storage,
    )
    .unwrap();
    // Half a metre up per metre northwards.
    let rows: Vec<f64> = (0..300 * 300)
        .map(|index| 500.0 - f64::from(index / 300) * 1e-5 * 111_195.0 * 0.5)
        .collect();
    writer.write_rows(&rows).unwrap();
    writer.finish().unwrap();
    stdout(&terrane(
        folder.path(),
        &["encode", "ramp.tif", "ramp.trn", "--max-error", "0.001"],
    ));
    let served = start(folder, &["ramp.trn"]);
    let point = served.get("/ramp/point/7.0015,46.9985").json();
    assert!(
        (point["slope_deg"].as_f64().unwrap() - 0.5_f64.atan().to_degrees()).abs() < 0.3,
        "{point}"
    );
    assert!(
        (point["aspect_deg"].as_f64().unwrap() - 180.0).abs() < 1.0,
        "{point}"
    );
    let (x, y) = tile_of(7.0015, 46.9985, 17);
    let (_, pixels) = served.pixels(&format!("/ramp/slope/17/{x}/{y}.png"));
    let painted: Vec<_> = pixels.iter().filter(|pixel| pixel[3] == 255).collect();
    assert!(!painted.is_empty());
}

#[test]
fn what_cannot_be_served_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    // New Zealand Map Grid: a projection that is not there.
    let place = Georeference::new(
        Affine::north_up(2_510_000.0, 6_023_150.0, 1.0),
        Crs::projected(27200, None),
    );
    write_flat(&folder.path().join("nzmg.tif"), place);
    write_flat(
        &folder.path().join("nowhere.tif"),
        Georeference::of_pixels(Crs::default()),
    );
    for name in ["nzmg", "nowhere"] {
        stdout(&run(&[
            "encode",
            &format!("{name}.tif"),
            &format!("{name}.trn"),
        ]));
    }
    for (arguments, expected) in [
        (vec!["serve", "none.trn"], "none.trn cannot be opened"),
        (
            vec!["serve", "nzmg.trn"],
            "nzmg.trn cannot be put on a web map: EPSG:27200 cannot be used here",
        ),
        (
            vec!["serve", "nowhere.trn"],
            "nowhere.trn cannot be put on a web map: it does not say where it lies",
        ),
        (
            vec!["serve", "health=nzmg.trn"],
            "\"health\" is an address of the server",
        ),
    ] {
        let text = complaint(&run(&arguments));
        assert!(text.contains(expected), "{text}");
    }
    let help = stdout(&run(&["serve", "--help"]));
    assert!(
        help.contains("terrane serve dem.trn --original dem.tif"),
        "{help}"
    );
}

fn write_flat(path: &Path, place: Georeference) {
    let storage = Storage::metres(SampleType::F32, None);
    let mut writer = CogWriter::create(
        &Output::named_here(path, Existing::Refuse),
        (64, 64),
        place,
        storage,
    )
    .unwrap();
    writer.write_rows(&vec![100.0; 64 * 64]).unwrap();
    writer.finish().unwrap();
}

#[cfg(unix)]
#[test]
fn it_stops_when_told_and_finishes_what_it_began() {
    let folder = tempfile::tempdir().unwrap();
    stdout(&terrane(
        folder.path(),
        &["generate", "a.tif", "--size", "128x128"],
    ));
    stdout(&terrane(folder.path(), &["encode", "a.tif", "a.trn"]));
    let mut served = start(folder, &["a.trn"]);
    assert_eq!(served.get("/health").status, 200);
    let id = served.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let status = served.child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(TcpStream::connect(served.address.trim_start_matches("http://")).is_err());
}

/// Writes a raster of the same size with heights and a place of its own.
fn write_like(folder: &Path, name: &str, change: impl FnOnce(&mut Vec<f64>, &mut Georeference)) {
    let source = terrane_geo::open(&[folder.join("a.tif")]).unwrap();
    let info = source.info();
    let size = (info.width(), info.height());
    let mut heights = source
        .read(0, Window::whole(size.0, size.1))
        .unwrap()
        .heights;
    let mut place = info.georeference.clone();
    change(&mut heights, &mut place);
    let storage = Storage::metres(SampleType::F32, Some(-9999.0));
    let mut writer = CogWriter::create(
        &Output::named_here(&folder.join(name), Existing::Refuse),
        size,
        place,
        storage,
    )
    .unwrap();
    writer.write_rows(&heights).unwrap();
    writer.finish().unwrap();
}

#[test]
fn an_original_that_is_another_raster_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| terrane(folder.path(), arguments);
    let generate = |name: &str, size: &str, seed: &str| {
        stdout(&run(&["generate", name, "--size", size, "--seed", seed]));
    };
    generate("a.tif", "300x200", "1");
    generate("wider.tif", "301x200", "1");
    generate("other.tif", "300x200", "2");
    write_like(folder.path(), "shifted.tif", |_, place| {
        place.anchor.x += 100.0;
    });
    write_like(folder.path(), "system.tif", |_, place| {
        place.crs = Crs::projected(2154, None);
    });
    write_like(folder.path(), "survey.tif", |heights, _| {
        // A newer survey: half a metre more on one side.
        for height in heights.iter_mut().skip(150 * 300) {
            *height += 0.5;
        }
    });
    write_like(folder.path(), "gap.tif", |heights, _| {
        let inside = heights.iter().position(|height| !height.is_nan()).unwrap();
        heights[inside] = f64::NAN;
    });
    // The same raster, its system in other words.
    write_like(folder.path(), "same.tif", |_, place| {
        let code = place.crs.horizontal_epsg().unwrap();
        place.crs = Crs::projected(code, None);
    });
    stdout(&run(&["encode", "a.tif", "a.trn", "--max-error", "0.05"]));
    stdout(&run(&["encode", "a.tif", "exact.trn", "--lossless"]));
    for (file, original, expected) in [
        (
            "a.trn",
            "wider.tif",
            "it has 301 x 200 pixels, and the file has 300 x 200",
        ),
        (
            "a.trn",
            "other.tif",
            "and the file guarantees at most 0.05 m",
        ),
        (
            "a.trn",
            "shifted.tif",
            "it lies elsewhere: its transform is",
        ),
        (
            "a.trn",
            "system.tif",
            "its system is EPSG:2154, and the file's is EPSG:32632",
        ),
        (
            "a.trn",
            "survey.tif",
            "and the file guarantees at most 0.05 m",
        ),
        ("a.trn", "gap.tif", "only one of them has a height"),
        (
            "exact.trn",
            "survey.tif",
            "their heights differ by 0.500 m, and the file guarantees every height",
        ),
    ] {
        let text = complaint(&run(&[
            "serve",
            file,
            "--original",
            original,
            "--port",
            "0",
        ]));
        let name = file.trim_end_matches(".trn");
        let start = format!("--original {original}: {name} was not made from this raster: ");
        assert!(text.contains(&start) && text.contains(expected), "{text}");
    }
    for arguments in [
        ["a.trn", "--original", "a.tif"],
        ["a.trn", "--original", "same.tif"],
        ["exact.trn", "--original", "a.tif"],
    ] {
        let copy = tempfile::tempdir().unwrap();
        for name in [arguments[0], arguments[2]] {
            std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
        }
        let served = start(copy, &arguments);
        assert_eq!(served.get("/health").status, 200);
    }
}

/// A file without overviews, with a slope in the four tiles around its middle.
fn write_without_overviews(
    path: &Path,
    (width, height, side): (u32, u32, u16),
    affine: [f64; 6],
    crs: Crs,
) {
    let pyramid = Pyramid::new(width, height, side, 1).unwrap();
    let header = Header {
        pyramid: pyramid.clone(),
        method: Method::Integers,
        affine,
        is_georeferenced: true,
        pixel_is_point: false,
        epsg: [0, 0],
        geo_keys: GeoKeys {
            directory: crs.directory,
            doubles: crs.doubles,
            text: crs.text,
        },
        wkt: String::new(),
        samples: Samples::default(),
        bound: ErrorBound::MaxError(0.1),
        statistics: Statistics::default(),
        overviews: Vec::new(),
        model: None,
    };
    let grid = pyramid.grid(0).unwrap();
    let mut writer = Writer::create(Cursor::new(Vec::new()), header, false).unwrap();
    let (column, row) = (grid.columns() / 2, grid.rows() / 2);
    for id in [
        (column - 1, row - 1),
        (column, row - 1),
        (column - 1, row),
        (column, row),
    ] {
        let id = TileId {
            column: id.0,
            row: id.1,
        };
        let place = LevelTile { level: 0, id };
        let side = i64::from(side);
        let left = id.column as i64 * side - i64::from(width / 2);
        let record = Record {
            missing: None,
            flats: None,
            layer: Layer::Integers(Integers {
                scale: IntegerScale::Step {
                    origin_m: 500.0,
                    step_m: 0.2,
                },
                values: (0..side * side).map(|index| left + index % side).collect(),
            }),
            residual: None,
            corrections: None,
        };
        let number = pyramid.number(place).unwrap();
        // Of one level: every tile is a tree, with the tile's number.
        let record = record.to_bytes(number, side as usize, None);
        writer.tree(number, &[record]).unwrap();
    }
    let statistics = Statistics {
        pixels: 4 * u64::from(side).pow(2),
        tiles: 4,
        lowest_m: 400.0,
        highest_m: 600.0,
        ..Statistics::default()
    };
    let file = writer.finish(statistics, Vec::new()).unwrap().into_inner();
    std::fs::write(path, file).unwrap();
}

#[cfg(unix)]
#[test]
fn a_large_file_without_overviews_is_served_where_it_can_be() {
    let folder = tempfile::tempdir().unwrap();
    write_without_overviews(
        &folder.path().join("wide.trn"),
        (32_768, 32_768, 256),
        [2_600_000.0, 1.0, 0.0, 1_200_000.0, 0.0, -1.0],
        Crs::projected(2056, None),
    );
    // As wide as the world, and a strip.
    let degrees = 360.0 / f64::from(1 << 30);
    write_without_overviews(
        &folder.path().join("long.trn"),
        (1 << 30, 16_384, 4096),
        [-180.0, degrees, 0.0, 0.002, 0.0, -degrees],
        Crs::geographic(4326, None),
    );
    let served = crate::served::start_limited(folder, &["wide.trn", "long.trn"]);
    for name in ["wide", "long"] {
        let description = served.get(&format!("/{name}")).json();
        let least = description["minzoom"].as_u64().unwrap() as u32;
        let most = description["maxzoom"].as_u64().unwrap() as u32;
        // One pixel of a tile is at most two of the file.
        assert!(least + 4 >= most && least <= most, "{name}: {least} {most}");
        let center = description["center"].clone();
        let (longitude, latitude) = (center[0].as_f64().unwrap(), center[1].as_f64().unwrap());
        for z in 0..=most {
            let (x, y) = tile_of(longitude, latitude, z);
            for layer in ["", "/hillshade"] {
                for scale in ["", "@2x"] {
                    let path = format!("/{name}{layer}/{z}/{x}/{y}{scale}.png");
                    let answer = served.get(&path);
                    if z >= least {
                        assert_eq!(answer.status, 200, "{path}");
                        continue;
                    }
                    assert_eq!(answer.status, 404, "{path}");
                    let sentence = answer.json()["error"].as_str().unwrap().to_owned();
                    assert!(sentence.contains("too coarse"), "{path}: {sentence}");
                }
            }
        }
        let point = served
            .get(&format!("/{name}/point/{longitude},{latitude}"))
            .json();
        assert!(
            (point["height_m"].as_f64().unwrap() - 500.0).abs() < 20.0,
            "{point}"
        );
        let line = format!(
            "{},{latitude};{},{latitude}",
            longitude - 0.1,
            longitude + 0.1
        );
        let profile = served.get(&format!("/{name}/profile?line={line}&points=2000"));
        assert_eq!(profile.json()["points"].as_array().unwrap().len(), 2000);
    }
}

/// A request over a connection that stays open: the status.
fn ask(connection: &mut BufReader<TcpStream>, path: &str) -> std::io::Result<u16> {
    write!(
        connection.get_mut(),
        "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"
    )?;
    let mut line = String::new();
    connection.read_line(&mut line)?;
    let gone = || std::io::Error::other("the connection was closed");
    let status = line.split(' ').nth(1).ok_or_else(gone)?.parse();
    let mut length = 0;
    while !line.trim().is_empty() {
        line.clear();
        connection.read_line(&mut line)?;
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    connection.read_exact(&mut vec![0; length])?;
    status.map_err(std::io::Error::other)
}

fn connect(served: &Served) -> BufReader<TcpStream> {
    let host = served.address.trim_start_matches("http://");
    let stream = TcpStream::connect(host).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    BufReader::new(stream)
}

/// A small file, served.
fn small() -> Served {
    let folder = tempfile::tempdir().unwrap();
    stdout(&terrane(
        folder.path(),
        &["generate", "a.tif", "--size", "128x128"],
    ));
    stdout(&terrane(folder.path(), &["encode", "a.tif", "a.trn"]));
    start(folder, &["a.trn"])
}

/// Files that a process may have open.
fn open_files() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(256)
}

#[test]
fn connections_that_send_nothing_shut_out_nobody() {
    let served = small();
    let mut early = connect(&served);
    assert_eq!(ask(&mut early, "/health").unwrap(), 200);
    let mut silent = Vec::new();
    for count in [1100, 5000] {
        if count + 100 > open_files() {
            eprintln!("{count} connections are more than the system allows: left out");
            continue;
        }
        while silent.len() < count {
            let mut connection = connect(&served);
            if silent.len() % 2 == 0 {
                write!(connection.get_mut(), "GET /health HTT").unwrap();
            }
            silent.push(connection);
        }
        let mut delays: Vec<Duration> = (0..9)
            .map(|_| {
                let started = Instant::now();
                assert_eq!(ask(&mut connect(&served), "/health").unwrap(), 200);
                started.elapsed()
            })
            .collect();
        delays.sort_unstable();
        eprintln!("with {count} half-open connections /health takes {delays:?}");
        assert!(delays[4] < Duration::from_millis(100), "{delays:?}");
        assert!(delays[8] < Duration::from_secs(1), "{delays:?}");
        // One that has asked before is not the one to be closed.
        assert_eq!(ask(&mut early, "/health").unwrap(), 200);
    }
    // The oldest were closed for the others.
    if let Some(first) = silent.first_mut() {
        assert!(matches!(first.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
}

#[test]
fn a_head_that_does_not_come_is_not_waited_for() {
    let served = small();
    let started = Instant::now();
    let mut slow = connect(&served);
    let mut resting = connect(&served);
    assert_eq!(ask(&mut resting, "/health").unwrap(), 200);
    // A byte now and then does not prolong the time.
    let mut bytes = "GET /health HTTP/1.1\r\n".bytes().cycle();
    let pause = Duration::from_millis(200);
    slow.get_ref().set_read_timeout(Some(pause)).unwrap();
    loop {
        let _ = slow.get_mut().write_all(&[bytes.next().unwrap()]);
        match slow.read(&mut [0; 1]) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => break,
        }
        assert!(started.elapsed() < Duration::from_secs(20));
    }
    let took = started.elapsed();
    assert!(
        took > Duration::from_secs(4) && took < Duration::from_secs(9),
        "{took:?}"
    );
    // One that rests between two requests may rest longer.
    assert_eq!(ask(&mut resting, "/health").unwrap(), 200);
}

#[test]
fn a_client_that_does_not_read_is_let_go() {
    let served = small();
    let connections = || {
        let text = String::from_utf8(served.get("/metrics").body).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("terrane_connections "));
        line.unwrap().parse::<usize>().unwrap()
    };
    let mut deaf = connect(&served);
    // More than all buffers in between hold.
    for _ in 0..100 {
        let request = "GET /assets/maplibre-gl.mjs HTTP/1.1\r\nHost: x\r\n\r\n";
        deaf.get_mut().write_all(request.as_bytes()).unwrap();
    }
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(connections(), 2);
    let started = Instant::now();
    while connections() > 1 {
        std::thread::sleep(Duration::from_millis(200));
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "it is still there"
        );
    }
}
