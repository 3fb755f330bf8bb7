//! Files on web servers that answer wrongly, or with another file than before.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use terrane_codec::RemoteFile;
use terrane_codec::format::ByteSource;

use crate::remote::{odd_server, partial, read};

/// Bytes that are asked for.
const LENGTH: usize = 16_384;
const BODY: [u8; LENGTH] = [7; LENGTH];

/// The head of an answer, and its body with the length said.
fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{head}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn ranged(range: &str) -> Vec<u8> {
    let head = format!("HTTP/1.1 206 Partial Content\r\nETag: \"1\"\r\nContent-Range: {range}\r\n");
    answer(&head, &BODY)
}

/// What a server answers to every request, and what is said of it.
fn lies() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let first = partial(LENGTH);
    let mut cut = answer(&first, &BODY);
    cut.truncate(cut.len() - 100);
    let gzip = format!("{first}Content-Encoding: gzip\r\n");
    let status = |code: &str| answer(&format!("HTTP/1.1 {code}\r\n"), b"<html>");
    vec![
        (
            "the whole file",
            answer("HTTP/1.1 200 OK\r\n", &BODY),
            "whole files only",
        ),
        (
            "another part",
            ranged("bytes 5-16388/1000000"),
            "got 5..16389",
        ),
        (
            "a part of the part",
            ranged("bytes 0-99/1000000"),
            "got 0..100",
        ),
        (
            "a part beyond its length",
            ranged("bytes 0-16383/10"),
            "got 0..16384",
        ),
        (
            "an endless part",
            ranged("bytes 0-18446744073709551615/9"),
            "beyond any file",
        ),
        (
            "a part of no number",
            ranged("bytes a-b/c"),
            "CONTENT_RANGE",
        ),
        (
            "a part of unknown place",
            answer("HTTP/1.1 206 Partial Content\r\n", &BODY),
            "Content-Range",
        ),
        (
            "less than it says",
            answer(&first, b"abcd"),
            "less than it said",
        ),
        ("a body that is cut", cut, "http"),
        ("gzip", answer(&gzip, &BODY), "another encoding"),
        (
            "itself elsewhere",
            answer("HTTP/1.1 302 Found\r\nLocation: /dem.trn\r\n", b""),
            "redirect",
        ),
        ("elsewhere without a place", status("302 Found"), "redirect"),
        ("no HTTP", b"SSH-2.0-OpenSSH_9.6\r\n".to_vec(), "http"),
        ("too many requests", status("429 Too Many Requests"), "429"),
        ("an overload", status("503 Slow Down"), "503"),
        ("nothing there", status("404 Not Found"), "404"),
    ]
}

#[test]
fn a_server_that_answers_wrongly_is_not_believed() {
    for (what, bytes, expected) in lies() {
        let host = odd_server(move |stream: &mut TcpStream, _: &str| {
            let _ = stream.write_all(&bytes);
        });
        let address = format!("http://{host}/dem.trn");
        let (outcome, took) = read(&address, LENGTH);
        let sentence = outcome.expect_err(what);
        assert!(sentence.starts_with(&address), "{what}: {sentence}");
        let is_said = sentence.to_lowercase().contains(&expected.to_lowercase());
        assert!(is_said, "{what}: {sentence}");
        assert!(
            !sentence.contains('\n') && sentence.len() < 400,
            "{sentence}"
        );
        assert!(took < Duration::from_secs(6), "{what}: {took:?}");
    }
}

#[test]
fn a_head_without_end_is_given_up() {
    let host = odd_server(|stream, _| {
        let _ = stream.write_all(partial(LENGTH).as_bytes());
        while stream.write_all(b"X-More: and more\r\n").is_ok() {}
    });
    let address = format!("http://{host}/dem.trn");
    let (outcome, took) = read(&address, LENGTH);
    assert!(outcome.unwrap_err().starts_with(&address));
    assert!(took < Duration::from_secs(6), "{took:?}");
}

#[test]
fn parts_of_two_files_are_not_one() {
    // What the head of an answer says of the file besides the part, first and from then on.
    let heads = [
        ("ETag: \"1\"", 1000, "ETag: \"1\"", 1000, true),
        ("ETag: \"1\"", 1000, "ETag: \"2\"", 1000, false),
        ("ETag: \"1\"", 1000, "ETag: \"1\"", 900, false),
        ("X: 1", 1000, "X: 1", 1000, true),
        (
            "Last-Modified: Sun, 01 Nov 2026 00:00:00 GMT",
            1000,
            "Last-Modified: Sun, 01 Nov 2026 00:00:01 GMT",
            1000,
            false,
        ),
    ];
    for (first, length, later, later_length, is_one) in heads {
        let requests = AtomicUsize::new(0);
        let host = odd_server(move |stream, head| {
            let is_first = requests.fetch_add(1, Ordering::Relaxed) == 0;
            let (mark, length) = if is_first {
                (first, length)
            } else {
                (later, later_length)
            };
            let head = head.to_ascii_lowercase();
            let range = head.split("range: bytes=").nth(1).unwrap();
            let range = range.lines().next().unwrap();
            let _ = write!(
                stream,
                "HTTP/1.1 206 Partial Content\r\n{mark}\r\nContent-Range: bytes {range}/{length}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nabcd"
            );
        });
        let file = RemoteFile::open(&format!("http://{host}/dem.trn")).unwrap();
        assert_eq!(file.read(0, 4).unwrap(), b"abcd");
        assert_eq!(file.length().unwrap(), 1000);
        let outcome = file.read(100, 4);
        assert_eq!(outcome.is_ok(), is_one, "{first} {later}: {outcome:?}");
        if let Err(error) = outcome {
            let sentence = error.to_string();
            assert!(sentence.contains("changed while it was read"), "{sentence}");
        }
        // And so all parts at once.
        assert_eq!(file.read_all(&[(0, 4), (8, 4)]).is_ok(), is_one);
    }
}

/// A refusal of a part that was there means another file; that of a part of a file never read says what the server said.
#[test]
fn a_file_that_became_shorter_is_known_by_the_status_alone() {
    for (was_there, expected) in [(true, "changed while it was read"), (false, "416")] {
        let requests = AtomicUsize::new(0);
        let host = odd_server(move |stream, _| {
            let is_first = requests.fetch_add(1, Ordering::Relaxed) == 0;
            let bytes = if is_first && was_there {
                answer(&partial(4), b"abcd")
            } else {
                // The reason of a status is anybody's; this one has no 416 between spaces.
                answer("HTTP/1.1 416\r\n", b"")
            };
            let _ = stream.write_all(&bytes);
        });
        let file = RemoteFile::open(&format!("http://{host}/dem.trn")).unwrap();
        assert_eq!(file.read(0, 4).is_ok(), was_there);
        let sentence = file.read(100, 4).unwrap_err().to_string();
        assert!(sentence.contains(expected), "{sentence}");
    }
}

/// Threads of this process that wait for the network.
#[cfg(target_os = "linux")]
fn network_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .filter(|name| name.starts_with("terrane-remote") || name.starts_with("tokio"))
        .count()
}

#[cfg(target_os = "linux")]
#[test]
fn a_hundred_open_files_take_two_threads() {
    let host = odd_server(|stream, _| {
        let _ = stream.write_all(&answer(&partial(4), b"abcd"));
    });
    let files: Vec<RemoteFile> = (0..100)
        .map(|number| RemoteFile::open(&format!("http://{host}/{number}.trn")).unwrap())
        .collect();
    for file in &files {
        assert_eq!(file.read(0, 4).unwrap(), b"abcd");
    }
    assert!(network_threads() <= 2, "{}", network_threads());
}
