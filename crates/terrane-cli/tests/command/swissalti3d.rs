//! The dataset of the paper, made from a local server that behaves as badly as a real one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use terrane_geo::{Affine, CogWriter, Crs, Existing, Georeference, Output, SampleType, Storage};

use crate::{complaint, json, terrane};

/// A square kilometre at 0.5 m; each 2×2 block has a mean that tells its place.
fn square_kilometre(path: &Path, east_km: u32, north_km: u32, is_holed: bool) {
    const SIDE: usize = 2000;
    let corner = Affine::north_up(
        f64::from(east_km) * 1000.0,
        f64::from(north_km + 1) * 1000.0,
        0.5,
    );
    let place = Georeference::new(corner, Crs::projected(2056, Some(5728)));
    let storage = Storage::metres(SampleType::F32, Some(-9999.0));
    let mut writer = CogWriter::create(
        &Output::named_here(path, Existing::Refuse),
        (SIDE, SIDE),
        place,
        storage,
    )
    .unwrap();
    for row in 0..SIDE {
        let heights: Vec<f64> = (0..SIDE)
            .map(|column| {
                // A hole of one metre, in the first crop only.
                if is_holed && row / 2 == 150 && column / 2 == 150 {
                    return f64::NAN;
                }
                400.0
                    + (column / 2) as f64 / 4.0
                    + (row / 2) as f64 / 8.0
                    + ((column % 2 + row % 2) as f64 - 1.0)
            })
            .collect();
        writer.write_rows(&heights).unwrap();
    }
    writer.finish().unwrap();
}

/// Serves files with range requests; the first answer for each file is cut in the middle.
fn serve(files: BTreeMap<String, Vec<u8>>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), &files, &log);
        }
    });
    (address, requests)
}

fn answer(mut stream: TcpStream, files: &BTreeMap<String, Vec<u8>>, log: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(request)) = lines.next() else {
        return;
    };
    let name = request
        .split_whitespace()
        .nth(1)
        .unwrap()
        .trim_start_matches('/')
        .to_owned();
    let mut start = 0;
    for line in lines {
        let line = line.unwrap().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            start = range.trim_end_matches('-').parse().unwrap();
        }
    }
    let is_first = {
        let mut log = log.lock().unwrap();
        log.push(format!("{name} from {start}"));
        log.iter().filter(|entry| entry.starts_with(&name)).count() == 1
    };
    let Some(bytes) = files.get(&name) else {
        let _ = stream
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    };
    let head = if start == 0 {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", bytes.len())
    } else {
        let (last, length) = (bytes.len() - 1, bytes.len());
        format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{last}/{length}\r\n",
            length - start
        )
    };
    let head = format!("{head}ETag: \"1\"\r\nConnection: close\r\n\r\n");
    let end = if is_first {
        bytes.len() / 2
    } else {
        bytes.len()
    };
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&bytes[start..end]));
}

#[test]
fn the_protocol_makes_nine_tiles_per_square_kilometre() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = BTreeMap::new();
    for (east, year, is_holed) in [(2600, 2019, false), (2601, 2021, true)] {
        let name = format!("swissalti3d_{year}_{east}-1200_0.5_2056_5728.tif");
        let path = folder.path().join(&name);
        square_kilometre(&path, east, 1200, is_holed);
        files.insert(name, std::fs::read(&path).unwrap());
        std::fs::remove_file(path).unwrap();
    }
    let names: Vec<String> = files.keys().cloned().collect();
    let (address, requests) = serve(files);
    let list: String = names
        .iter()
        .map(|name| format!("{address}/{name}\r\n"))
        .collect();
    std::fs::write(folder.path().join("links.csv"), list).unwrap();

    let report = json(&terrane(
        folder.path(),
        &["dataset", "swissalti3d", "links.csv", "set", "--json"],
    ));
    assert_eq!(report["tiles"], 9 + 8, "the crop with a hole is dropped");
    assert_eq!(
        report["splits"][0]["resolutions_m"],
        serde_json::json!([1.0])
    );
    // Each download was cut once and went on where it stopped.
    let log = requests.lock().unwrap().clone();
    assert_eq!(log.len(), 4, "{log:?}");
    assert!(
        !log[1].ends_with("from 0") && !log[3].ends_with("from 0"),
        "{log:?}"
    );

    let set = terrane_train::data::Dataset::open(&folder.path().join("set")).unwrap();
    let tile = set.tiles()[0];
    assert_eq!((tile.column, tile.row), (116, 116));
    let heights = set.heights(0).unwrap();
    assert_eq!(
        heights[0],
        400.0 + 116.0 / 4.0 + 116.0 / 8.0,
        "the mean of four heights"
    );
    let (x, y) = set
        .source(0)
        .georeference()
        .cropped(tile.column, tile.row)
        .affine()
        .apply(0.0, 0.0);
    assert_eq!((x, y), (2_600_116.0, 1_200_884.0));

    // Everything is there: a second run asks the server for nothing.
    json(&terrane(
        folder.path(),
        &[
            "dataset",
            "swissalti3d",
            "links.csv",
            "set",
            "--overwrite",
            "--json",
        ],
    ));
    assert_eq!(requests.lock().unwrap().len(), 4);

    // What is no dataset is refused before anything is asked for, and so are rasters of somebody else.
    std::fs::create_dir(folder.path().join("home")).unwrap();
    std::fs::write(folder.path().join("home/letter.txt"), "dear").unwrap();
    std::fs::write(folder.path().join("home").join(&names[0]), "mine").unwrap();
    let build = ["dataset", "swissalti3d", "links.csv"];
    let text = complaint(&terrane(
        folder.path(),
        &[&build[..], &["home", "--overwrite"]].concat(),
    ));
    assert!(
        text.contains("which is no part of a tile dataset"),
        "{text}"
    );
    let text = complaint(&terrane(
        folder.path(),
        &[&build[..], &["other", "--downloads", "home"]].concat(),
    ));
    assert!(
        text.contains("was not downloaded by this command"),
        "{text}"
    );
    let mine = std::fs::read(folder.path().join("home").join(&names[0])).unwrap();
    assert_eq!(mine, b"mine");
    assert_eq!(requests.lock().unwrap().len(), 4);

    std::fs::write(
        folder.path().join("links.csv"),
        format!("{address}/swissalti3d_2019_2700-1200_0.5_2056_5728.tif"),
    )
    .unwrap();
    let text = complaint(&terrane(
        folder.path(),
        &["dataset", "swissalti3d", "links.csv", "other"],
    ));
    assert!(text.contains("2700-1200") && text.contains("404"), "{text}");
    assert!(!folder.path().join("other").exists());
}
