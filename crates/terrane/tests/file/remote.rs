//! Files on a web server.

use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use terrane_codec::format::{
    ByteSource, ErrorBound, GeoKeys, Header, IntegerScale, Integers, Layer, LevelTile, Method,
    Pyramid, Reader, Record, Samples, Statistics, TileId, TileStatistics, Writer,
};
use terrane_codec::{RemoteFile, RemoteOptions, Terrain, TerrainOptions};

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
        is_georeferenced: true,
        pixel_is_point: false,
        epsg: [2056, 0],
        geo_keys: GeoKeys::default(),
        wkt: String::new(),
        samples: Samples::default(),
        bound: ErrorBound::MaxError(0.1),
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
                scale: IntegerScale::Step {
                    origin_m: 0.0,
                    step_m: 0.1,
                },
                values,
            }),
            residual: None,
        };
        writer.tile(number, &record.to_bytes(number, 16)).unwrap();
    }
    writer.finish(Statistics::default()).unwrap().into_inner()
}

/// Whoever answers behind TLS is checked; that nobody does is an error, and no panic for want of cryptography.
#[test]
fn an_address_behind_tls_is_tried() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}/x.trn", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        // Not TLS: whatever the client says first, it is answered in plain text.
        let (mut client, _) = listener.accept().unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    });
    let options = RemoteOptions {
        timeout: Duration::from_secs(3),
    };
    let file = RemoteFile::open_with(&address, options).unwrap();
    assert!(file.read(0, 100).is_err());
    server.join().unwrap();
}

#[test]
fn a_tile_of_a_country_takes_three_requests_and_little_more_than_the_head() {
    let server = serve(country());
    let terrain = Terrain::open(
        Box::new(RemoteFile::open(&server.address).unwrap()),
        TerrainOptions::default(),
    )
    .unwrap();
    assert_eq!(server.requests.load(Ordering::SeqCst), 1);
    let id = LevelTile {
        level: 0,
        id: TileId {
            column: 700,
            row: 400,
        },
    };
    let tile = terrain.tile(id).unwrap().unwrap();
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

/// A server that does with every request what it is told: the stream, and the request's head.
fn odd_server(answer: impl Fn(&mut TcpStream, &str) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
                answer(&mut stream, &head);
            });
        }
    });
    host
}

/// The head of an answer to a read of the first so many bytes of a file.
fn partial(length: usize) -> String {
    format!(
        "HTTP/1.1 206 Partial Content\r\nLast-Modified: Sun, 01 Nov 2026 00:00:00 GMT\r\nETag: \"1\"\r\nContent-Range: bytes 0-{}/1000000\r\n",
        length - 1
    )
}

/// Reads from a server with a time of a second: what came of it, and how long it took.
fn read(address: &str, length: usize) -> (Result<Vec<u8>, String>, Duration) {
    let started = Instant::now();
    let options = RemoteOptions {
        timeout: Duration::from_secs(1),
    };
    let file = RemoteFile::open_with(address, options).unwrap();
    let outcome = file.read(0, length).map_err(|error| error.to_string());
    drop(file);
    (outcome, started.elapsed())
}

const FOREVER: Duration = Duration::from_mins(1);

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let silent = odd_server(|_, _| std::thread::sleep(FOREVER));
    let stalling = odd_server(|stream, _| {
        let _ = write!(
            stream,
            "{}Content-Length: 16384\r\n\r\nbegun",
            partial(16_384)
        );
        std::thread::sleep(FOREVER);
    });
    let trickling = odd_server(|stream, _| {
        let _ = write!(stream, "{}Content-Length: 16384\r\n\r\n", partial(16_384));
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    // Closes without a word; asked again, it does the same.
    let dropping = odd_server(|_, _| {});
    for (host, is_slow) in [
        (silent, true),
        (stalling, true),
        (trickling, true),
        (dropping, false),
    ] {
        let address = format!("http://{host}/dem.trn");
        let (outcome, took) = read(&address, 16_384);
        let sentence = outcome.unwrap_err();
        assert!(sentence.starts_with(&address), "{sentence}");
        let expected = "did not answer within 1 s";
        assert_eq!(sentence.contains(expected), is_slow, "{sentence}");
        assert!(took < Duration::from_secs(4), "{sentence}: {took:?}");
    }
    let started = Instant::now();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let refused = RemoteFile::open(&format!("http://{}/x.trn", closed.unwrap())).unwrap();
    let sentence = refused.length().unwrap_err().to_string();
    assert!(sentence.contains("refused"), "{sentence}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_slow_server_may_take_its_time_as_long_as_bytes_come() {
    let host = odd_server(|stream, _| {
        let _ = write!(stream, "{}Content-Length: 65536\r\n\r\n", partial(65_536));
        for _ in 0..8 {
            std::thread::sleep(Duration::from_millis(200));
            if stream.write_all(&[7; 8192]).is_err() {
                return;
            }
        }
    });
    let (outcome, took) = read(&format!("http://{host}/dem.trn"), 65_536);
    assert_eq!(outcome.unwrap(), vec![7; 65_536]);
    assert!(took > Duration::from_millis(1500), "{took:?}");
}

#[test]
fn a_server_cannot_send_more_than_it_was_asked_for() {
    let endless = |head: String| {
        odd_server(move |stream, _| {
            let _ = write!(stream, "{head}Content-Length: 1000000000000\r\n\r\n");
            while stream.write_all(&[b'x'; 8192]).is_ok() {}
        })
    };
    for (head, expected) in [
        (partial(16_384), "more than it was asked for"),
        ("HTTP/1.1 403 Forbidden\r\n".to_owned(), "403 Forbidden"),
    ] {
        let (outcome, took) = read(&format!("http://{}/dem.trn", endless(head)), 16_384);
        let sentence = outcome.unwrap_err();
        assert!(sentence.contains(expected), "{sentence}");
        assert!(
            sentence.len() < 300 && took < Duration::from_secs(1),
            "{took:?}"
        );
    }
}

#[test]
fn secrets_of_an_address_are_sent_and_not_told() {
    let host = odd_server(|stream, head| {
        // user:pass word
        let is_known = head.starts_with("GET /a/dem.trn?Signature=hidden%2B&x=1 HTTP")
            && head.contains("authorization: Basic dXNlcjpwYXNzIHdvcmQ=\r\n");
        let _ = if is_known {
            write!(stream, "{}Content-Length: 4\r\n\r\nabcd", partial(4))
        } else {
            write!(
                stream,
                "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
            )
        };
    });
    let address =
        |user: &str, rest: &str| format!("http://{user}@{host}/a/dem.trn?Signature={rest}");
    let (outcome, _) = read(&address("user:pass%20word", "hidden%2B&x=1"), 4);
    assert_eq!(outcome.unwrap(), b"abcd");
    let (outcome, _) = read(&address("user:hidden", "hidden"), 4);
    let sentence = outcome.unwrap_err();
    assert!(
        sentence.contains(&format!("http://{host}/a/dem.trn")),
        "{sentence}"
    );
    assert!(sentence.contains("401"), "{sentence}");
    let mut said = vec![sentence];
    for address in [
        "http://user:hidden@127.0.0.1:1/x?hidden",
        "http://user:hid/den@host/x",
        "mist://user:hidden@host/x?hidden#hidden",
        "https://user:hidden@/x?hidden",
        "s3://user:hidden@/x?hidden",
    ] {
        let opened = RemoteFile::open(address);
        said.push(format!("{opened:?}"));
        match opened.and_then(|file| file.length()) {
            Ok(_) => said.push(String::new()),
            Err(error) => said.push(error.to_string()),
        }
    }
    for sentence in said {
        assert!(
            !sentence.contains("hid") && !sentence.is_empty(),
            "{sentence}"
        );
    }
}
