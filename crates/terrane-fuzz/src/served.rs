//! A server that is asked in bytes.

use std::sync::LazyLock;
use std::time::Duration;

use terrane::Target;
use terrane_serve::{Direct, Earlier, Options, Original, Server};

use crate::fixture::encoded;

/// Time for a request.
const TIME: Duration = Duration::from_mins(1);

type Any = Box<dyn std::error::Error>;

static SERVER: LazyLock<Direct> =
    LazyLock::new(|| served().expect("a small file is served in this process"));

/// A file, the raster that it was made from, and an earlier file.
fn served() -> Result<Direct, Any> {
    let (raster, file) = encoded("dem.trn", Target::MaxError(0.5));
    let (_, before) = encoded("before.trn", Target::MaxError(4.0));
    let mut server = Server::new(Options {
        threads: 1,
        block_bytes: 32 << 20,
        tile_bytes: 4 << 20,
        queue: 4,
        timeout: TIME,
        public_url: None,
        attribution: None,
    });
    let original = Original {
        path: &raster,
        raster: terrane_geo::open(&[&raster])?,
    };
    let before = Earlier {
        path: &before,
        terrain: terrane::open(&before)?,
    };
    let terrain = terrane::open(&file)?;
    server.add("dem", &file, terrain, Some(original), Some(before))?;
    Ok(Direct::new(server)?)
}

/// Requests of a connection. The file is whole, so whatever is asked, no answer is that it cannot be read.
pub(crate) fn ask(requests: &[u8]) {
    let answers = SERVER.answer(requests);
    let is_answer = answers.is_empty() || answers.starts_with(b"HTTP/1.");
    assert!(is_answer, "{:?}", String::from_utf8_lossy(&answers));
    let is_fault = |line: &[u8]| line.starts_with(b"HTTP/1.") && line[8..].starts_with(b" 500 ");
    let fault = answers
        .split(|&byte| byte == b'\n')
        .find(|line| is_fault(line));
    assert!(fault.is_none(), "{:?}", String::from_utf8_lossy(requests));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_bytes_are_answered() {
        for (path, status) in [
            ("/dem/info", "200 OK"),
            ("/dem/point/7.4405,46.9499", "200 OK"),
            ("/dem/14/8530/5766.png", "200 OK"),
            ("/dem/change/14/8530/5766.png", "200 OK"),
            ("/dem-original.tif", "404 Not Found"),
            ("/%2e%2e/%2e%2e/etc/passwd", "404 Not Found"),
        ] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
            let answer = SERVER.answer(request.as_bytes());
            let head = format!("HTTP/1.1 {status}\r\n");
            let start = String::from_utf8_lossy(&answer[..answer.len().min(300)]);
            assert!(answer.starts_with(head.as_bytes()), "{path}: {start}");
        }
        assert!(
            SERVER
                .answer(b"nonsense\r\n\r\n")
                .starts_with(b"HTTP/1.1 400")
        );
        let two = b"HEAD /dem HTTP/1.1\r\n\r\nGET /dem.trn HTTP/1.1\r\nRange: bytes=0-7\r\n\r\n";
        assert!(SERVER.answer(two).ends_with(b"\r\n\r\n\x89TRN\r\n\x1a\n"));
    }
}
