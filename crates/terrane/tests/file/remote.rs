//! Files on a web server.

use std::io::{BufRead, BufReader, Cursor, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use terrane_codec::format::{
    ByteSource, ErrorBound, GeoKeys, Header, LevelTile, Method, OverviewStatistics, Pyramid,
    Reader, Samples, Statistics, TileId, Window, Writer, record,
};
use terrane_codec::{Rate, ReadAhead, RemoteFile, RemoteOptions, Terrain, TerrainOptions};

use crate::{Raster, context};

/// What a server was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Asked {
    requests: usize,
    bytes: usize,
    /// Requests that were sent before any of the others was answered are one round.
    rounds: usize,
}

/// A server of one file that counts what it is asked.
struct Server {
    address: String,
    state: Arc<Mutex<State>>,
}

struct State {
    asked: Asked,
    /// The last round that has an answer.
    answered: usize,
    last: Instant,
}

/// So long nothing must come before a round is answered.
const QUIET: Duration = Duration::from_millis(50);

impl Server {
    fn asked(&self) -> Asked {
        self.state.lock().unwrap().asked
    }
}

fn serve(file: Arc<Vec<u8>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/land/dem.trn", listener.local_addr().unwrap());
    let state = Arc::new(Mutex::new(State {
        asked: Asked::default(),
        answered: 0,
        last: Instant::now(),
    }));
    let shared = Arc::clone(&state);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (file, state) = (Arc::clone(&file), Arc::clone(&shared));
            std::thread::spawn(move || answer(stream.unwrap(), &file, &state));
        }
    });
    Server { address, state }
}

/// Answers the requests of one connection, each when its round is complete.
fn answer(mut stream: TcpStream, file: &[u8], state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut range = None;
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
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
                range = Some((from.parse::<usize>().unwrap(), to.parse::<usize>().unwrap()));
            }
        }
        let (from, to) = range.map_or((0, file.len()), |(from, to)| {
            (from, (to + 1).min(file.len()))
        });
        let round = {
            let mut state = state.lock().unwrap();
            let round = state.answered + 1;
            state.asked.rounds = state.asked.rounds.max(round);
            state.asked.requests += 1;
            state.asked.bytes += if is_head || !is_there { 0 } else { to - from };
            state.last = Instant::now();
            round
        };
        loop {
            let mut state = state.lock().unwrap();
            let left = QUIET.saturating_sub(state.last.elapsed());
            if left.is_zero() {
                state.answered = state.answered.max(round);
                break;
            }
            drop(state);
            std::thread::sleep(left);
        }
        if !is_there {
            write!(
                stream,
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
            )
            .unwrap();
            continue;
        }
        let status = if range.is_some() {
            "206 Partial Content"
        } else {
            "200 OK"
        };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nLast-Modified: Sun, 01 Nov 2026 00:00:00 GMT\r\nETag: \"1\"\r\nContent-Length: {}\r\nContent-Range: bytes {from}-{}/{}\r\nAccept-Ranges: bytes\r\n\r\n",
            to - from, to - 1, file.len()
        )
        .unwrap();
        if !is_head {
            stream.write_all(&file[from..to]).unwrap();
        }
    }
}

/// Pixels across the country, in tiles of 256.
const COUNTRY: u32 = 671 * 256;
/// The first tree across and down of the 4 by 4 of each storey that hold ground; all others hold bytes to be skipped.
const GROUND: [usize; 3] = [60, 1, 0];

/// Rough ground, of which a tile takes as many bytes at a step of 0.5 m as one of a survey at a metre.
fn ground(size: usize, rate: Rate) -> Terrain {
    let raster = Raster::new(size, size, |column, row| {
        let (x, y) = (column as f64, row as f64);
        let noise = (column * 7919 + row * 104_729) % 1013;
        700.0
            + 90.0 * (x / 211.0).sin() * (y / 173.0).cos()
            + 6.0 * (x / 17.0 + y / 29.0).sin()
            + noise as f64 / 1013.0
    });
    let (file, _) = raster.encode(&context(rate), 2);
    crate::open(&file)
}

/// The records of the only tree of a file, each with its number.
fn records(terrain: &Terrain) -> Vec<(u64, Vec<u8>)> {
    let pyramid = &terrain.header().pyramid;
    let tiles = pyramid.tree_tiles(pyramid.tree(0).unwrap());
    tiles
        .into_iter()
        .map(|tile| {
            let bytes = terrain.reader().bytes(tile).unwrap().unwrap_or_default();
            (pyramid.number(tile).unwrap(), bytes)
        })
        .collect()
}

/// A file of more than 600,000 tiles and its grounds: a tree of four levels, and the one at the top.
struct Country {
    file: Arc<Vec<u8>>,
    tree: Terrain,
    top: Terrain,
}

static COUNTRY_FILE: LazyLock<Country> = LazyLock::new(|| {
    let levels = Pyramid::levels_for(COUNTRY, COUNTRY, 256);
    let pyramid = Pyramid::new(COUNTRY, COUNTRY, 256, levels).unwrap();
    assert!(pyramid.tiles() > 600_000, "{}", pyramid.tiles());
    let (width, _) = pyramid.size(8).unwrap();
    let rate = Rate::Step(0.5);
    let (tree, top) = (ground(2048, rate), ground(width as usize, rate));
    let header = Header {
        pyramid: pyramid.clone(),
        bound: ErrorBound::None,
        epsg: [2056, 0],
        geo_keys: GeoKeys::default(),
        samples: Samples::default(),
        statistics: Statistics::default(),
        ..tree.header().clone()
    };
    let (of_tree, of_top) = (records(&tree), records(&top));
    let mut writer = Writer::create(Cursor::new(Vec::new()), header, false).unwrap();
    for number in 0..pyramid.trees() {
        let root = pyramid.tree(number).unwrap();
        let tiles = pyramid.tree_tiles(root);
        let first = GROUND[usize::from(root.level) / 4];
        let has_ground = |at: usize| (first..first + 4).contains(&at);
        let records: Vec<Vec<u8>> = if has_ground(root.id.column) && has_ground(root.id.row) {
            let of = if root.level == levels - 1 {
                &of_top
            } else {
                &of_tree
            };
            assert_eq!(of.len(), tiles.len(), "{root:?}");
            tiles
                .iter()
                .zip(of)
                .map(|(&tile, (from, bytes))| {
                    let to = pyramid.number(tile).unwrap();
                    record::renumber(bytes.clone(), *from, to).unwrap()
                })
                .collect()
        } else {
            // Their lengths take as many bytes of the index as those of any record.
            tiles.iter().map(|_| vec![0; 130]).collect()
        };
        writer.tree(number, &records).unwrap();
    }
    let none = vec![OverviewStatistics::default(); usize::from(levels) - 1];
    let file = writer.finish(Statistics::default(), none).unwrap();
    Country {
        file: Arc::new(file.into_inner()),
        tree,
        top,
    }
});

/// The country's file on a server, and opened.
fn open_country() -> (Server, Terrain) {
    let server = serve(Arc::clone(&COUNTRY_FILE.file));
    let file = RemoteFile::open(&server.address).unwrap();
    let options = TerrainOptions {
        models: terrane::MODELS,
        ..TerrainOptions::default()
    };
    let file = ReadAhead::new(Box::new(file));
    let terrain = Terrain::open(Box::new(file), options).unwrap();
    assert_eq!(server.asked().requests, 1);
    assert_eq!(terrain.header().method, Method::Context);
    (server, terrain)
}

/// The tile in the middle of the ground of a level's storey, where four trees meet, and the same tile of the ground alone.
fn middle(level: u8) -> (LevelTile, &'static Terrain, LevelTile) {
    let storey = level / 4;
    let own = level % 4;
    let tile = |level, at| LevelTile {
        level,
        id: TileId {
            column: at,
            row: at,
        },
    };
    if storey == 2 {
        return (tile(level, 0), &COUNTRY_FILE.top, tile(own, 0));
    }
    let across = 8 >> own;
    let first = GROUND[usize::from(storey)] + 2;
    (
        tile(level, first * across),
        &COUNTRY_FILE.tree,
        tile(own, 0),
    )
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
fn a_tile_of_a_country_takes_three_round_trips_at_any_level() {
    let levels = COUNTRY_FILE.tree.header().pyramid.levels();
    assert_eq!(levels, 4);
    for level in 0..11 {
        let (place, ground, own) = middle(level);
        let (server, terrain) = open_country();
        let tile = terrain.tile(place).unwrap().unwrap();
        let expected = ground.tile(own).unwrap().unwrap();
        assert_eq!(tile.heights, expected.heights, "level {level}");
        let asked = server.asked();
        assert!(
            asked.rounds <= 3 && asked.requests <= 6 && asked.bytes <= 200_000,
            "level {level}: {asked:?}"
        );
    }
}

#[test]
fn a_screen_of_a_country_takes_three_round_trips_at_any_level() {
    for level in 0..11 {
        let (place, ..) = middle(level);
        let (server, terrain) = open_country();
        let (width, height) = terrain.header().pyramid.size(level).unwrap();
        // Sixteen tiles around the place where four trees meet, or as many as there are.
        let across = |at: usize, size: u32| {
            let first = at.saturating_sub(2) * 256;
            (first, (4 * 256).min(size as usize - first))
        };
        let (column, width) = across(place.id.column, width);
        let (row, height) = across(place.id.row, height);
        let window = Window {
            column,
            row,
            width,
            height,
        };
        let heights = terrain.read(level, window).unwrap();
        assert!(heights.iter().all(|height| (500.0..900.0).contains(height)));
        let asked = server.asked();
        assert!(asked.rounds <= 3, "level {level}: {asked:?}");
    }
}

/// A file of a server, read as the program reads one.
fn open_far(file: Vec<u8>) -> (Server, Terrain) {
    let server = serve(Arc::new(file));
    let file = terrane_codec::source(server.address.as_ref(), RemoteOptions::default()).unwrap();
    let options = TerrainOptions {
        models: terrane::MODELS,
        ..TerrainOptions::default()
    };
    let terrain = Terrain::open(file, options).unwrap();
    (server, terrain)
}

#[test]
fn a_small_file_takes_one_request() {
    let terrain = ground(300, Rate::MaxError(0.05));
    let file = terrain.reader().raw(0, usize::MAX).unwrap();
    assert!((20_000..65_536).contains(&file.len()), "{}", file.len());
    let (server, far) = open_far(file);
    let whole = Window::whole(300, 300);
    assert_eq!(far.read(0, whole).unwrap(), terrain.read(0, whole).unwrap());
    assert_eq!(server.asked().requests, 1);
}

/// Tile by tile in rows, as GDAL reads a `GeoTIFF`.
#[test]
fn a_file_that_is_read_tile_by_tile_takes_few_requests() {
    let (size, side) = (2048, 256);
    let terrain = ground(size, Rate::MaxError(0.2));
    let file = terrain.reader().raw(0, usize::MAX).unwrap();
    assert!((300_000..1_500_000).contains(&file.len()), "{}", file.len());
    let length = file.len();
    let (server, far) = open_far(file);
    for row in (0..size).step_by(side) {
        for column in (0..size).step_by(side) {
            let window = Window {
                column,
                row,
                width: side,
                height: side,
            };
            assert_eq!(
                far.read(0, window).unwrap(),
                terrain.read(0, window).unwrap()
            );
        }
    }
    let asked = server.asked();
    assert!(
        asked.requests <= 12 && asked.bytes <= length,
        "{asked:?}, {length} bytes"
    );
}

#[test]
fn an_address_without_a_file_is_an_error_that_names_it() {
    let server = serve(Arc::new(vec![0; 100]));
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
pub(crate) fn odd_server(answer: impl Fn(&mut TcpStream, &str) + Send + Sync + 'static) -> String {
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
pub(crate) fn partial(length: usize) -> String {
    format!(
        "HTTP/1.1 206 Partial Content\r\nLast-Modified: Sun, 01 Nov 2026 00:00:00 GMT\r\nETag: \"1\"\r\nContent-Range: bytes 0-{}/1000000\r\n",
        length - 1
    )
}

/// Reads from a server with a time of a second: what came of it, and how long it took.
pub(crate) fn read(address: &str, length: usize) -> (Result<Vec<u8>, String>, Duration) {
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
