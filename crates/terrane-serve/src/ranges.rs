//! A file by ranges of its bytes: itself as `/{name}.trn`, and as a `GeoTIFF` that GDAL and QGIS open as `/{name}.tif`.
//!
//! An answer is made piece by piece by workers, the first one before the status is sent, so an answer of any length takes
//! the memory of a piece and no longer than a piece from others.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use terrane::VirtualTiff;
use terrane_codec::Terrain;

use crate::Server;
use crate::failure::Failure;
use crate::routes::{CACHE_CONTROL, Route, is_known, tag};

/// Bytes of a file as it is that are read at a time.
const PIECE: u64 = 1 << 20;
/// A pause before a worker is asked for again, where all are taken in the middle of an answer.
const PAUSE: Duration = Duration::from_millis(50);
/// Changes when the bytes of a `GeoTIFF` do.
const MAKING: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

/// What is read by ranges.
#[derive(Clone)]
pub(crate) enum Download {
    /// A file as a `GeoTIFF`.
    Tiff(Arc<VirtualTiff>),
    /// A file as it is.
    File(Arc<Terrain>),
}

impl Download {
    fn length(&self) -> u64 {
        match self {
            Self::Tiff(tiff) => tiff.length(),
            Self::File(terrain) => terrain.reader().length(),
        }
    }

    /// Where what is read together with an offset ends.
    fn piece_end(&self, offset: u64) -> u64 {
        match self {
            Self::Tiff(tiff) => tiff.piece_end(offset),
            Self::File(_) => (offset / PIECE + 1) * PIECE,
        }
    }

    fn read(&self, from: u64, end: u64) -> Result<Bytes, Failure> {
        let length = usize::try_from(end - from).map_err(|error| Failure::broken(&error))?;
        let bytes = match self {
            Self::Tiff(tiff) => {
                let mut bytes = vec![0; length];
                let read = tiff.read_at(from, &mut bytes);
                let read = read.map_err(|error| Failure::broken(&error))?;
                bytes.truncate(read);
                bytes
            }
            Self::File(terrain) => {
                let bytes = terrain.reader().raw(from, length);
                bytes.map_err(|error| Failure::broken(&error))?
            }
        };
        if bytes.len() == length {
            return Ok(bytes.into());
        }
        Err(Failure::broken(&io::Error::from(
            io::ErrorKind::UnexpectedEof,
        )))
    }

    fn media_type(&self) -> &'static str {
        match self {
            Self::Tiff(_) => "image/tiff; application=geotiff; profile=cloud-optimized",
            Self::File(_) => "application/octet-stream",
        }
    }

    fn route(&self) -> Route {
        match self {
            Self::Tiff(_) => Route("/{name}.tif"),
            Self::File(_) => Route("/{name}.trn"),
        }
    }
}

/// A part of a file, from its first byte to before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Range(u64, u64),
    /// A range that begins behind the end.
    Outside,
}

/// Reads a header's range. One that cannot be read counts as none, and so do several: a server may answer the whole.
fn part(range: &str, length: u64) -> Part {
    let Some((unit, range)) = range.split_once('=') else {
        return Part::Whole;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return Part::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Part::Whole;
    }
    let number = |text: &str| -> Option<u64> {
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More than any file has counts as the most.
        is_plain.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let (first, last) = (first.trim(), last.trim());
    match (number(first), number(last)) {
        (Some(first), _) if !last.is_empty() && number(last).is_none_or(|last| last < first) => {
            Part::Whole
        }
        (Some(first), _) if first >= length => Part::Outside,
        (Some(first), Some(last)) => Part::Range(first, last.saturating_add(1).min(length)),
        (Some(first), None) => Part::Range(first, length),
        (None, Some(0)) if first.is_empty() => Part::Outside,
        (None, Some(_)) if first.is_empty() && length == 0 => Part::Outside,
        (None, Some(last)) if first.is_empty() => Part::Range(length.saturating_sub(last), length),
        _ => Part::Whole,
    }
}

/// The part that a request asks for: of a version that the client knows, where it says so.
fn asked(headers: &HeaderMap, tag: &str, length: u64) -> Part {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    match (text(header::RANGE), text(header::IF_RANGE)) {
        (None, _) => Part::Whole,
        (Some(_), Some(known)) if known != tag => Part::Whole,
        (Some(range), _) => part(range, length),
    }
}

impl Server {
    /// What a name with an ending stands for; `None` where it is none of ours.
    pub(crate) fn download(&self, name: &str) -> Result<Option<(Download, String)>, Failure> {
        // A file may be called so itself.
        if self.find(name).is_some() {
            return Ok(None);
        }
        let Some((stem, ending)) = name.rsplit_once('.') else {
            return Ok(None);
        };
        let Some(dataset) = self.find(stem) else {
            return Ok(None);
        };
        let terrain = || {
            dataset.tiles.terrain().ok_or_else(|| {
                Failure::missing("the raster that a file was made from is not given out")
            })
        };
        let found = match ending {
            "trn" => Download::File(terrain()?.clone()),
            "tif" => {
                terrain()?;
                match &dataset.tiff {
                    Some(Ok(tiff)) => Download::Tiff(tiff.clone()),
                    Some(Err(reason)) => return Err(Failure::missing(reason.clone())),
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let tag = tag(&[MAKING, ending, &dataset.identity]);
        Ok(Some((found, tag)))
    }

    /// Answers with a file or a part of it.
    pub(crate) async fn send(
        self: &Arc<Self>,
        (download, tag): (Download, String),
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Response, Failure> {
        let length = download.length();
        let part = if method == Method::HEAD {
            Part::Whole
        } else {
            asked(headers, &tag, length)
        };
        let route = download.route();
        let media_type = HeaderValue::from_static(download.media_type());
        let mut response = if is_known(headers, &tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let (status, range, from, end) = match part {
                Part::Whole => (StatusCode::OK, None, 0, length),
                Part::Outside => {
                    let range = format!("bytes */{length}");
                    (StatusCode::RANGE_NOT_SATISFIABLE, Some(range), 0, 0)
                }
                Part::Range(from, end) => {
                    let range = format!("bytes {from}-{}/{length}", end - 1);
                    (StatusCode::PARTIAL_CONTENT, Some(range), from, end)
                }
            };
            let body = if method == Method::HEAD || from == end {
                Body::empty()
            } else {
                self.body(download, from, end).await?
            };
            let mut response = (status, body).into_response();
            let answer = response.headers_mut();
            answer.insert(header::CONTENT_TYPE, media_type);
            answer.insert(header::CONTENT_LENGTH, HeaderValue::from(end - from));
            if let Some(Ok(range)) = range.map(HeaderValue::try_from) {
                answer.insert(header::CONTENT_RANGE, range);
            }
            response
        };
        response.extensions_mut().insert(route);
        let answer = response.headers_mut();
        answer.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        answer.insert(header::CACHE_CONTROL, CACHE_CONTROL);
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            answer.insert(header::ETAG, tag);
        }
        Ok(response)
    }

    /// A part of a file: its first piece now, the others as the client takes them.
    async fn body(
        self: &Arc<Self>,
        download: Download,
        from: u64,
        end: u64,
    ) -> Result<Body, Failure> {
        let first = self.piece(&download, from, end).await?;
        let at = from + first.len() as u64;
        if at == end {
            return Ok(first.into());
        }
        let server = Arc::clone(self);
        let rest = stream::unfold((Some(first), at), move |(ready, at)| {
            let (server, download) = (Arc::clone(&server), download.clone());
            async move {
                if let Some(first) = ready {
                    return Some((Ok(first), (None, at)));
                }
                if at >= end {
                    return None;
                }
                Some(match server.next_piece(&download, at, end).await {
                    Ok(piece) => {
                        let at = at + piece.len() as u64;
                        (Ok(piece), (None, at))
                    }
                    // The client sees that the answer ends too early.
                    Err(failure) => (Err(io::Error::other(failure.sentence)), (None, end)),
                })
            }
        });
        Ok(Body::from_stream(rest))
    }

    async fn piece(&self, download: &Download, from: u64, end: u64) -> Result<Bytes, Failure> {
        let download = download.clone();
        let work = move |_| download.read(from, end.min(download.piece_end(from)));
        self.pool.run(work).await
    }

    /// As [`Server::piece`], in the middle of an answer, which waits where others would be turned away.
    async fn next_piece(&self, download: &Download, from: u64, end: u64) -> Result<Bytes, Failure> {
        let started = tokio::time::Instant::now();
        loop {
            match self.piece(download, from, end).await {
                Err(failure)
                    if failure.status == StatusCode::SERVICE_UNAVAILABLE
                        && started.elapsed() < self.pool.time() =>
                {
                    tokio::time::sleep(PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_http_has_them() {
        let cases = [
            ("bytes=0-99", Part::Range(0, 100)),
            ("bytes=900-", Part::Range(900, 1000)),
            ("bytes=-1", Part::Range(999, 1000)),
            ("bytes=-5000", Part::Range(0, 1000)),
            ("Bytes = 0 - 5000", Part::Range(0, 1000)),
            ("bytes=999-99999999999999999999999", Part::Range(999, 1000)),
            ("bytes=1000-", Part::Outside),
            ("bytes=99999999999999999999999-", Part::Outside),
            ("bytes=-0", Part::Outside),
            ("bytes=5-4", Part::Whole),
            ("bytes=0-1,5-6", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("bytes=x-2", Part::Whole),
            ("bytes=2-x", Part::Whole),
            ("lines=0-1", Part::Whole),
            ("", Part::Whole),
        ];
        for (range, expected) in cases {
            assert_eq!(part(range, 1000), expected, "{range}");
        }
        assert_eq!(part("bytes=-1", 0), Part::Outside);
    }
}
