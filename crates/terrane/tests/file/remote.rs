//! Files on a web server.

use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane::format::{
    GeoKeys, Header, Integers, Layer, LevelTile, Method, Promise, Pyramid, Reader, Record, Samples,
    Statistics, TileId, TileStatistics, Writer,
};
use terrane::{RemoteFile, Terrain};

/// A server of one file that counts what it is asked.
struct Server {
    address: String,
    requests: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

fn serve(file: Vec<u8>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/land/dem.trn", listener.local_addr().unwrap());
    let (requests, bytes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counters = (Arc::clone(&requests), Arc::clone(&bytes));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            // One connection may carry several requests.
            loop {
                let mut range = None;
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    break;
                }
                let is_head = line.starts_with("HEAD");
                let is_there = line.contains("/land/dem.trn");
                loop {
                    line.clear();
                    reader.read_line(&mut line).unwrap();
                    if line.trim().is_empty() {
                        break;
                    }
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
                        let (from, to) = value.trim().split_once('-').unwrap();
                        range =
                            Some((from.parse::<usize>().unwrap(), to.parse::<usize>().unwrap()));
                    }
                }
                counters.0.fetch_add(1, Ordering::SeqCst);
                let date = "Last-Modified: Sun, 01 Nov 2026 00:00:00 GMT\r\nETag: \"1\"\r\n";
                if !is_there {
                    write!(
                        stream,
                        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
                    )
                    .unwrap();
                    continue;
                }
                let (from, to) = range.map_or((0, file.len()), |(from, to)| {
                    (from, (to + 1).min(file.len()))
                });
                let status = if range.is_some() {
                    "206 Partial Content"
                } else {
                    "200 OK"
                };
                write!(
                    stream,
                    "HTTP/1.1 {status}\r\n{date}Content-Length: {}\r\nContent-Range: bytes {from}-{}/{}\r\nAccept-Ranges: bytes\r\n\r\n",
                    to - from, to - 1, file.len()
                )
                .unwrap();
                if !is_head {
                    stream.write_all(&file[from..to]).unwrap();
                    counters.1.fetch_add((to - from) as u64, Ordering::SeqCst);
                }
            }
            let _ = reader.read(&mut [0; 1]);
        }
    });
    Server {
        address,
        requests,
        bytes,
    }
}

/// A file of more than 600,000 tiles; small ones, so that it is made in seconds.
fn country() -> Vec<u8> {
    let side = 16;
    let pyramid = Pyramid::new(775 * 16, 775 * 16, side, 1).unwrap();
    assert!(pyramid.tiles() > 600_000);
    let header = Header {
        pyramid: pyramid.clone(),
        method: Method::Integers,
        affine: [0.0, 1.0, 0.0, 0.0, 0.0, -1.0],
        is_placed: true,
        pixel_is_point: false,
        epsg: [2056, 0],
        geo_keys: GeoKeys::default(),
        wkt: String::new(),
        samples: Samples::default(),
        promise: Promise::MaxError(0.1),
        statistics: Statistics::default(),
        model: None,
    };
    let mut writer = Writer::create(Cursor::new(Vec::new()), header).unwrap();
    for number in 0..pyramid.tiles() {
        let values = (0..256)
            .map(|index| (number as i64 % 1000) * 10 + index % 16)
            .collect();
        let record = Record {
            statistics: TileStatistics::default(),
            missing: None,
            layer: Layer::Integers(Integers {
                origin_m: 0.0,
                step_m: 0.1,
                values,
            }),
            remains: None,
        };
        writer.tile(number, &record.to_bytes(number, 16)).unwrap();
    }
    writer.finish(Statistics::default()).unwrap().into_inner()
}

#[test]
fn a_tile_of_a_country_takes_three_requests_and_little_more_than_the_head() {
    let server = serve(country());
    let terrain =
        Terrain::open(Box::new(RemoteFile::open(&server.address).unwrap()), None).unwrap();
    assert_eq!(server.requests.load(Ordering::SeqCst), 1);
    let place = LevelTile {
        level: 0,
        id: TileId {
            column: 700,
            row: 400,
        },
    };
    let tile = terrain.tile(place).unwrap().unwrap();
    let number = 400 * 775 + 700;
    assert!((tile.heights[3] - f64::from(number % 1000) - 0.3).abs() < 1e-9);
    let (requests, bytes) = (
        server.requests.load(Ordering::SeqCst),
        server.bytes.load(Ordering::SeqCst),
    );
    assert!(
        requests <= 3 && bytes <= 200_000,
        "{requests} requests, {bytes} bytes"
    );
    eprintln!(
        "one tile of {}: {requests} requests, {bytes} bytes",
        terrain.header().pyramid.tiles()
    );
}

#[test]
fn an_address_without_a_file_is_an_error_that_names_it() {
    let server = serve(vec![0; 100]);
    let address = server.address.replace("dem", "none");
    let error = Reader::open(Box::new(RemoteFile::open(&address).unwrap())).unwrap_err();
    assert!(error.to_string().contains(&address), "{error}");
    assert!(RemoteFile::open("mist://x/y.trn").is_err());
    assert!(
        RemoteFile::is_address("s3://bucket/a.trn")
            && !RemoteFile::is_address("C:\\a.trn")
            && !RemoteFile::is_address("a.trn")
    );
}
