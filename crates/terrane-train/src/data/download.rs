//! Downloads of files, resumed where they were cut and checked when they arrive.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::data::links::{Link, parse_sha256};

const PART: &str = ".part";
const VALIDATOR: &str = ".part.validator";
const CHECKSUM: &str = ".sha256";
/// Endings that files beside a download have, and that no download may have itself.
pub(crate) const TAKEN_ENDINGS: [&str; 3] = [PART, VALIDATOR, CHECKSUM];

/// What can go wrong with a link list or, stated without its address, with a download.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// The answer is not what was asked for or published, and was deleted.
    #[error("expected {expected}, received {found}")]
    Content {
        /// Length, checksum or range that was due.
        expected: String,
        /// What came instead.
        found: String,
    },
    /// The file is larger than [`Options::max_bytes`].
    #[error("the file is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The server refused, or asked to come back later.
    #[error("the server answered with status {status}")]
    Status {
        /// Status of the answer.
        status: u16,
        /// Wait the server asked for, or zero.
        retry_after: Duration,
    },
    /// The connection failed, timed out or was cut.
    #[error("the transfer failed: {source}")]
    Transfer {
        /// The reason.
        #[from]
        source: ureq::Error,
    },
    /// A file of the name is there, and nothing shows that it was downloaded.
    #[error("{} is there already and was not downloaded by this command; move it away, or name another folder with `downloads`", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A local file could not be read or written.
    #[error("cannot read or write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl DownloadError {
    fn is_transient(&self) -> bool {
        use ureq::Error::{ConnectionFailed, HostNotFound, Io, Protocol, Timeout};
        match self {
            Self::Status { status, .. } => matches!(status, 429 | 500..),
            Self::Content { .. }
            | Self::Transfer {
                source: Io(_) | Timeout(_) | HostNotFound | ConnectionFailed | Protocol(_),
            } => true,
            _ => false,
        }
    }
}

/// How files are fetched.
#[derive(Clone, Debug)]
pub struct Options {
    /// Keeps connections open from one file to the next.
    pub agent: Agent,
    /// Longest time to find the host, and again to connect.
    pub connect_timeout: Duration,
    /// Longest silence of the server.
    pub read_timeout: Duration,
    /// Most requests for one file.
    pub tries: u32,
    /// Wait after the first failure, doubled after each further one.
    pub first_wait: Duration,
    /// Longest wait; a server that asks for a longer one is given up.
    pub longest_wait: Duration,
    /// Largest file accepted.
    pub max_bytes: u64,
    /// Whether a file that is already there is hashed, and not only measured.
    pub check_content: bool,
    /// Lets the given time pass.
    pub sleep: fn(Duration),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            agent: Agent::new_with_defaults(),
            connect_timeout: Duration::from_secs(20),
            read_timeout: Duration::from_mins(1),
            tries: 8,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_mins(5),
            max_bytes: 4 << 30,
            check_content: false,
            sleep: std::thread::sleep,
        }
    }
}

/// What happens during a download.
#[derive(Debug)]
pub enum Progress<'a> {
    /// So many bytes are on the disk, of so many in all where the server states it.
    Bytes(u64, Option<u64>),
    /// A try failed, and the next one follows after this time.
    Waiting(Duration, &'a DownloadError),
}

/// A complete and verified file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Its path.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal digits.
    pub sha256: String,
    /// Whether it was there before, so that no request was made.
    pub skipped: bool,
}

/// Puts the link's file complete into `folder`, with its checksum in `<name>.sha256` beside it.
pub(crate) fn fetch(
    link: &Link,
    folder: &Path,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Fetched, DownloadError> {
    fs::create_dir_all(folder).map_err(at(folder))?;
    let download = Download {
        link,
        folder,
        options,
    };
    if let Some((bytes, sha256)) = download.verify_existing() {
        return download.finish(bytes, sha256, true);
    }
    // A download has its record before it has its name.
    let (path, record) = (download.path(""), download.path(CHECKSUM));
    if path.exists() && !record.exists() {
        return Err(DownloadError::Foreign { path });
    }
    let mut attempt = 0;
    loop {
        attempt += 1;
        let error = match download.request(progress) {
            Err(error) if attempt < options.tries && error.is_transient() => error,
            settled => return settled,
        };
        let asked = match &error {
            DownloadError::Status { retry_after, .. } => *retry_after,
            _ => Duration::ZERO,
        };
        if asked > options.longest_wait {
            return Err(error);
        }
        // Jitter keeps parallel downloads from coming back all at once.
        let jitter = f64::from(Sha256::digest(format!("{attempt} {}", link.url))[0]) / 255.0;
        let factor = 2_u32.saturating_pow(attempt - 1);
        let wait = options.first_wait.saturating_mul(factor);
        let wait = wait.min(options.longest_wait).mul_f64(0.5 + 0.5 * jitter);
        let wait = wait.max(asked);
        progress(Progress::Waiting(wait, &error));
        (options.sleep)(wait);
    }
}

struct Download<'a> {
    link: &'a Link,
    folder: &'a Path,
    options: &'a Options,
}

impl Download<'_> {
    fn path(&self, suffix: &str) -> PathBuf {
        self.folder.join(format!("{}{suffix}", self.link.name))
    }

    fn verify_existing(&self) -> Option<(u64, String)> {
        let bytes = fs::metadata(self.path("")).ok()?.len();
        let record = fs::read_to_string(self.path(CHECKSUM)).unwrap_or_default();
        let is_valid = |sha256: &&str| record == self.record(sha256, bytes);
        let recorded = record.get(..64).filter(is_valid);
        let expected = self.link.sha256.as_deref().or(recorded)?;
        let is_sure = recorded == Some(expected) && !self.options.check_content;
        let is_right = is_sure || hex(hash(&self.path("")).ok()?.0) == expected;
        is_right.then(|| (bytes, expected.into()))
    }

    /// The second line is the length, and a comment to `sha256sum --check`.
    fn record(&self, sha256: &str, bytes: u64) -> String {
        format!("{sha256}  {}\n# {bytes} bytes\n", self.link.name)
    }

    fn write_record(&self, bytes: u64, sha256: &str) -> Result<(), DownloadError> {
        let checksum = self.path(CHECKSUM);
        let record = self.record(sha256, bytes);
        if fs::read_to_string(&checksum).ok().as_ref() != Some(&record) {
            fs::write(&checksum, record).map_err(at(&checksum))?;
        }
        Ok(())
    }

    fn finish(&self, bytes: u64, sha256: String, skipped: bool) -> Result<Fetched, DownloadError> {
        self.write_record(bytes, &sha256)?;
        Ok(Fetched {
            path: self.path(""),
            bytes,
            sha256,
            skipped,
        })
    }

    fn request(&self, progress: &mut dyn FnMut(Progress)) -> Result<Fetched, DownloadError> {
        let (part, validator) = (self.path(PART), self.path(VALIDATOR));
        let saved = fs::read_to_string(&validator).unwrap_or_default();
        let (url, saved) = saved.split_once('\n').unwrap_or_default();
        let mut resume = None;
        if url == self.link.url && !saved.is_empty() && part.exists() {
            resume = Some(hash(&part)?).filter(|(_, offset)| *offset > 0);
        }
        let config = self.options.agent.get(&self.link.url).config();
        let mut request = config
            .http_status_as_error(false)
            .https_only(self.link.url.starts_with("https:"))
            .timeout_resolve(Some(self.options.connect_timeout))
            .timeout_connect(Some(self.options.connect_timeout))
            .timeout_per_read(Some(self.options.read_timeout))
            .build()
            // Lengths and checksums speak of the file, not of a compressed transfer.
            .header("accept-encoding", "identity");
        if let Some((_, offset)) = &resume {
            request = request
                .header("range", format!("bytes={offset}-"))
                .header("if-range", saved);
        }
        let result = self.receive(request.call()?, resume, saved, progress);
        if let Err(DownloadError::Content { .. } | DownloadError::TooLarge { .. }) = result {
            for path in [&validator, &part].into_iter().filter(|path| path.exists()) {
                fs::remove_file(path).map_err(at(path))?;
            }
        }
        result
    }

    fn receive(
        &self,
        response: Response<Body>,
        resume: Option<(Sha256, u64)>,
        saved: &str,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Fetched, DownloadError> {
        let (head, body) = response.into_parts();
        let (status, headers) = (head.status.as_u16(), head.headers);
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let published = text("x-amz-meta-sha256").and_then(parse_sha256);
        let checksums: Vec<String> = self.link.sha256.iter().cloned().chain(published).collect();
        // If-Range compares strongly, so a weak tag is of no use.
        let strong = text("etag").filter(|tag| !tag.starts_with("W/"));
        let tag = strong.or(text("last-modified"));
        let range = text("content-range").and_then(|range| range.split_once('/'));
        let (range, whole) = range.unwrap_or_default();
        let offset = resume.as_ref().map_or(0, |(_, offset)| *offset);
        let is_same = tag.is_none_or(|tag| tag == saved);
        let continues = is_same && range.starts_with(&format!("bytes {offset}-"));
        let is_complete = status == 416 && whole == offset.to_string() && !checksums.is_empty();
        let total = match status {
            200 => body.content_length(),
            206 if continues => whole.parse().ok(),
            416 if is_complete => Some(offset),
            206 | 416 => return Err(content("the rest of the file", format!("status {status}"))),
            _ => {
                // A date would need a clock, so it counts as the longest wait.
                let wait = |text: &str| {
                    text.parse()
                        .map_or(self.options.longest_wait, Duration::from_secs)
                };
                let retry_after = text("retry-after").map_or(Duration::ZERO, wait);
                return Err(DownloadError::Status {
                    status,
                    retry_after,
                });
            }
        };
        if total.is_none() && checksums.is_empty() && !headers.contains_key("transfer-encoding") {
            return Err(content("a length or a checksum", "neither"));
        }
        let (part, validator) = (self.path(PART), self.path(VALIDATOR));
        let file = File::options().create(true).append(true).open(&part);
        let mut file = file.map_err(at(&part))?;
        let (mut hasher, mut done) = resume.filter(|_| status != 200).unwrap_or_default();
        if done == 0 {
            // Emptied first: an old part must never meet a new validator.
            file.set_len(0).map_err(at(&part))?;
            let saved = format!("{}\n{}", self.link.url, tag.unwrap_or_default());
            fs::write(&validator, saved).map_err(at(&validator))?;
        }
        let readable = if is_complete { 0 } else { u64::MAX };
        let mut body = body.into_reader().take(readable);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            progress(Progress::Bytes(done, total));
            let limit = self.options.max_bytes;
            if done.max(total.unwrap_or(0)) > limit {
                return Err(DownloadError::TooLarge { limit });
            }
            let count = body.read(&mut buffer).map_err(ureq::Error::from)?;
            if count == 0 {
                break;
            }
            file.write_all(&buffer[..count]).map_err(at(&part))?;
            hasher.update(&buffer[..count]);
            done += count as u64;
        }
        if let Some(total) = total.filter(|total| *total != done) {
            return Err(content(format!("{total} bytes"), format!("{done}")));
        }
        let sha256 = hex(hasher);
        if let Some(expected) = checksums.into_iter().find(|expected| *expected != sha256) {
            return Err(content(format!("SHA-256 {expected}"), sha256));
        }
        file.sync_all().map_err(at(&part))?;
        drop(file);
        self.write_record(done, &sha256)?;
        fs::rename(&part, self.path("")).map_err(at(&part))?;
        fs::remove_file(&validator).map_err(at(&validator))?;
        self.finish(done, sha256, false)
    }
}

fn content(expected: impl Into<String>, found: impl Into<String>) -> DownloadError {
    let (expected, found) = (expected.into(), found.into());
    DownloadError::Content { expected, found }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> DownloadError {
    let path = path.to_owned();
    |source| DownloadError::Io { path, source }
}

fn hash(path: &Path) -> Result<(Sha256, u64), DownloadError> {
    let mut file = File::open(path).map_err(at(path))?;
    let (mut hasher, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 64 * 1024]);
    loop {
        let count = file.read(&mut buffer).map_err(at(path))?;
        if count == 0 {
            return Ok((hasher, bytes));
        }
        hasher.update(&buffer[..count]);
        bytes += count as u64;
    }
}

fn hex(hasher: Sha256) -> String {
    let digits = |text: String, byte: &u8| text + &format!("{byte:02x}");
    hasher.finalize().iter().fold(String::new(), digits)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::sync::{Arc, LazyLock, Mutex};

    use super::*;
    use crate::data::links::parse_links;

    const LENGTH: &str = "content-length: 1000";
    const REST: &str = "content-length: 600\r\ncontent-range: bytes 400-999/1000";
    const ETAG: &str = "etag: \"a\"";
    const OTHER_ETAG: &str = "etag: \"b\"";
    const SHA256: &str = "x-amz-meta-sha256: \
        455cf5fc5bd6c6f54676a2052bf9d30645d70370d3acfdb354b2b379703d8643";

    static DATA: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..1000_u32).map(|i| (i * i % 251) as u8).collect());

    type Outcome = (Result<Fetched, DownloadError>, Vec<Duration>, Vec<String>);

    /// Answers one request per reply and cuts the connection, then accepts no more.
    fn serve(replies: &[Vec<u8>]) -> (Link, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x/a.tif?y=/z", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, replies) = (Arc::clone(&requests), replies.to_vec());
        std::thread::spawn(move || {
            for reply in replies {
                let (mut stream, _) = listener.accept().unwrap();
                let lines = BufReader::new(&stream).lines().map(Result::unwrap);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                log.lock().unwrap().push(head.join("\n").to_lowercase());
                stream.write_all(&reply).unwrap();
            }
        });
        (parse_links(&url).unwrap().remove(0), requests)
    }

    fn reply(status: u16, headers: &[&str], body: &[u8]) -> Vec<u8> {
        let headers = headers.join("\r\n");
        let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}\r\n\r\n");
        [head.as_bytes(), body].concat()
    }

    fn options() -> Options {
        Options {
            agent: Agent::config_builder().proxy(None).build().new_agent(),
            tries: 3,
            max_bytes: 1000,
            sleep: |_| {},
            ..Options::default()
        }
    }

    fn run(replies: &[Vec<u8>]) -> Outcome {
        let folder = tempfile::tempdir().unwrap();
        let ((link, requests), mut waits) = (serve(replies), Vec::new());
        let result = fetch(&link, folder.path(), &options(), &mut |progress| {
            if let Progress::Waiting(wait, _) = progress {
                waits.push(wait);
            }
        });
        if let Ok(fetched) = &result {
            assert_eq!(fs::read(&fetched.path).unwrap(), *DATA);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        }
        let requests = requests.lock().unwrap().clone();
        (result, waits, requests)
    }

    #[test]
    fn complete_file_is_skipped_without_a_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tif");
        let (mut link, requests) = serve(&[reply(200, &[LENGTH, SHA256], &DATA)]);
        let skipped = |link: &Link, check_content| {
            let options = Options {
                check_content,
                ..options()
            };
            fetch(link, folder.path(), &options, &mut |_| ()).map(|fetched| fetched.skipped)
        };
        assert!(!skipped(&link, false).unwrap());
        let record = fs::read_to_string(folder.path().join("a.tif.sha256")).unwrap();
        assert_eq!(record, format!("{}  a.tif\n# 1000 bytes\n", &SHA256[19..]));
        assert!(skipped(&link, false).unwrap() && skipped(&link, true).unwrap());
        fs::write(&path, [0; 1000]).unwrap();
        assert!(skipped(&link, false).unwrap() && skipped(&link, true).is_err());
        fs::write(&path, [0; 999]).unwrap();
        skipped(&link, false).unwrap_err();
        fs::write(&path, &*DATA).unwrap();
        link.sha256 = Some("0".repeat(64));
        skipped(&link, false).unwrap_err();
        assert_eq!(requests.lock().unwrap().len(), 1);
    }

    #[test]
    fn cut_download_is_resumed() {
        let cut = reply(200, &[LENGTH, ETAG], &DATA[..400]);
        let (result, _, requests) = run(&[cut, reply(206, &[REST, ETAG], &DATA[400..])]);
        assert_eq!(result.unwrap().bytes, 1000);
        assert!(!requests[0].contains("range"));
        assert!(requests[1].contains("range: bytes=400-\nif-range: \"a\""));
    }

    #[test]
    fn download_that_cannot_be_resumed_starts_again() {
        let cut = reply(200, &[LENGTH, ETAG], &[0; 400]);
        let whole = reply(200, &[LENGTH, OTHER_ETAG], &DATA);
        let (result, _, requests) = run(&[cut.clone(), whole.clone()]);
        assert_eq!((result.unwrap().bytes, requests.len()), (1000, 2));
        for answer in [
            reply(206, &[REST, OTHER_ETAG], &DATA[400..]),
            reply(206, &["content-range: bytes 0-999/1000", ETAG], &DATA),
            reply(416, &["content-range: bytes */300"], b""),
        ] {
            let (result, _, requests) = run(&[cut.clone(), answer, whole.clone()]);
            assert_eq!(result.unwrap().bytes, 1000);
            assert!(requests[1].contains("range") && !requests[2].contains("range"));
        }
    }

    #[test]
    fn file_of_somebody_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tif");
        fs::write(&path, b"mine").unwrap();
        let (mut link, requests) = serve(&[]);
        let error = fetch(&link, folder.path(), &options(), &mut |_| ()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("was not downloaded by this command"),
            "{error}"
        );
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        // It is taken where the list says what it must be, and it is that.
        link.sha256 = Some(hex(hash(&path).unwrap().0));
        assert!(
            fetch(&link, folder.path(), &options(), &mut |_| ())
                .unwrap()
                .skipped
        );
        assert!(requests.lock().unwrap().is_empty());
    }

    #[test]
    fn complete_part_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let headers = ["content-range: bytes */1000", SHA256];
        let (link, _) = serve(&[reply(416, &headers, b"nothing more")]);
        fs::write(folder.path().join("a.tif.part"), &*DATA).unwrap();
        let validator = format!("{}\n\"a\"", link.url);
        fs::write(folder.path().join("a.tif.part.validator"), validator).unwrap();
        let fetched = fetch(&link, folder.path(), &options(), &mut |_| ()).unwrap();
        assert_eq!(fs::read(fetched.path).unwrap(), *DATA);
    }

    #[test]
    fn busy_server_is_asked_again_and_a_refusal_is_final() {
        let whole = reply(200, &[LENGTH], &DATA);
        let busy = reply(503, &["retry-after: 7"], b"");
        let (result, waits, _) = run(&[busy.clone(), busy.clone(), whole.clone()]);
        assert_eq!(result.unwrap().bytes, 1000);
        assert_eq!(waits, [Duration::from_secs(7); 2]);
        let (result, waits, _) = run(&[reply(429, &[], b""), whole.clone()]);
        assert!(result.is_ok() && waits[0] >= Duration::from_millis(500));
        let refusal = reply(404, &[], b"");
        let long_pause = reply(503, &["retry-after: 9999"], b"");
        for replies in [vec![busy; 3], vec![refusal], vec![long_pause]] {
            let (result, waits, _) = run(&replies);
            assert!(matches!(result, Err(DownloadError::Status { .. })));
            assert_eq!(waits.len(), replies.len() - 1);
        }
    }

    #[test]
    fn wrong_content_is_refused() {
        let wrong = reply(200, &[LENGTH, ETAG, SHA256], &[0; 1000]);
        let right = reply(200, &[LENGTH, ETAG, SHA256], &DATA);
        let (result, _, requests) = run(&[wrong.clone(), right]);
        assert!(result.is_ok() && !requests[1].contains("range"));
        for answer in [wrong, reply(200, &[], &DATA)] {
            let (result, ..) = run(&vec![answer; 3]);
            assert!(matches!(result, Err(DownloadError::Content { .. })));
        }
        let chunked = [b"3e9\r\n", &[0; 1001][..], b"\r\n0\r\n\r\n"].concat();
        for answer in [
            reply(200, &["content-length: 1001"], &[0; 1001]),
            reply(200, &["transfer-encoding: chunked"], &chunked),
        ] {
            let (result, waits, _) = run(&[answer]);
            assert!(matches!(
                result,
                Err(DownloadError::TooLarge { limit: 1000 })
            ));
            assert!(waits.is_empty());
        }
    }

    #[test]
    fn silent_server_is_left() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a.tif", listener.local_addr().unwrap());
        let link = &parse_links(&url).unwrap()[0];
        let folder = tempfile::tempdir().unwrap();
        let mut options = options();
        options.read_timeout = Duration::from_millis(50);
        let error = fetch(link, folder.path(), &options, &mut |_| ()).unwrap_err();
        assert!(format!("{error:?}").contains("Timeout"), "{error:?}");
    }
}
