//! Files on web servers and in object stores, read by ranges.

use std::pin::Pin;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{
    Attribute, ClientConfigKey, ClientOptions, GetOptions, GetRange, HeaderValue, ObjectMeta,
    ObjectStore, ObjectStoreExt, ObjectStoreScheme, RetryConfig,
};
use terrane_format::{ByteSource, Error, Result};
use tokio::runtime::Runtime;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::address::{RemoteOptions, is_address, public_address, without_secrets};

/// Bytes per second that must come once the time of a read is over.
const MIN_RATE: f64 = 16_384.0;
/// How often a request that failed is sent again.
const MAX_RETRIES: usize = 3;
/// Parts of a file that are asked for side by side: as many as a screen of sixteen tiles has where four trees meet.
const SIDE_BY_SIDE: usize = 32;
/// A single request has no time of its own; this is as good as none.
const ENDLESS: Duration = Duration::from_hours(24);
/// Bytes of what a server says with an error that are read.
const MAX_SAID: usize = 4096;
/// Characters of what a server said that are shown.
const MAX_REASON: usize = 200;

/// Encodings that change no byte; the last is what some tools leave in object stores.
const STORED: [&str; 3] = ["", "identity", "aws-chunked"];

/// A file behind an address: `https://…`, `s3://…` and what else `object_store` knows. Keys of a store are taken from
/// the environment, as its own tools do; a name and a password, or a signature after `?`, are sent to the web server
/// whose address holds them and are shown nowhere.
pub struct RemoteFile {
    /// As others may see it.
    address: String,
    store: Box<dyn ObjectStore>,
    path: Path,
    timeout: Duration,
    /// Of which the first answer was.
    version: OnceLock<Version>,
}

/// What tells a file from another under the same address.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    length: u64,
    /// What the server calls it, or the second of its last change.
    mark: Option<String>,
}

impl Version {
    fn of(meta: &ObjectMeta) -> Self {
        let time = meta.last_modified.timestamp();
        Self {
            length: meta.size,
            mark: meta
                .e_tag
                .clone()
                .or_else(|| (time > 0).then(|| time.to_string())),
        }
    }
}

impl std::fmt::Debug for RemoteFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        // The store knows the secrets of its address.
        formatter
            .debug_struct("RemoteFile")
            .field("address", &self.address)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl RemoteFile {
    /// Whether a name is an address rather than a path.
    pub fn is_address(name: &str) -> bool {
        is_address(name)
    }

    /// A file at an address; nothing is read yet.
    pub fn open(address: &str) -> Result<Self> {
        Self::open_with(address, RemoteOptions::default())
    }

    /// As [`RemoteFile::open`], with a time for every read.
    pub fn open_with(address: &str, options: RemoteOptions) -> Result<Self> {
        let failed = |reason: String| Error::Remote {
            address: public_address(address),
            reason,
        };
        let url = address
            .parse()
            .map_err(|error| failed(format!("it is no address ({error})")))?;
        let (store, path) = open_store(&url, options.timeout)
            .map_err(|error| failed(without_secrets(&error.to_string())))?;
        Ok(Self {
            address: public_address(address),
            store,
            path,
            timeout: options.timeout,
            version: OnceLock::new(),
        })
    }

    fn error(&self, reason: impl Into<String>) -> Error {
        Error::Remote {
            address: self.address.clone(),
            reason: reason.into(),
        }
    }

    fn late(&self) -> Error {
        let seconds = self.timeout.as_secs_f64();
        self.error(format!(
            "it did not answer within {seconds} s; `remote_timeout` gives it longer"
        ))
    }

    /// What an error of the store comes down to, where it was asked for bytes from an offset on.
    fn failed(&self, offset: u64, error: &object_store::Error) -> Error {
        let version = self.version.get();
        let was_there = version.is_some_and(|version| offset < version.length);
        let mut cause: &dyn std::error::Error = error;
        while let Some(below) = cause.source() {
            let http = below.downcast_ref::<HttpError>();
            if http.is_some_and(|error| error.kind() == HttpErrorKind::Timeout) {
                return self.late();
            }
            if was_there && below.is::<NoSuchPart>() {
                return self.changed();
            }
            cause = below;
        }
        let text = cause.to_string();
        let line = text.lines().next().unwrap_or_default();
        let brief: String = line.chars().take(MAX_REASON).collect();
        let brief = brief.trim_end_matches([' ', ':']);
        self.error(without_secrets(brief))
    }

    /// Does a part of a read from an offset on until a moment.
    async fn until<T>(
        &self,
        deadline: Instant,
        offset: u64,
        work: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T> {
        match timeout_at(deadline, work).await {
            Err(_) => Err(self.late()),
            Ok(outcome) => outcome.map_err(|error| self.failed(offset, &error)),
        }
    }

    /// Reads a part of the file.
    async fn part(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let range = GetRange::Bounded(offset..offset + length as u64);
        let options = GetOptions {
            range: Some(range),
            ..GetOptions::default()
        };
        let deadline = Instant::now() + self.timeout;
        let answer = self
            .until(deadline, offset, self.store.get_opts(&self.path, options))
            .await?;
        self.check_version(&answer.meta)?;
        if let Some(encoding) = answer.attributes.get(&Attribute::ContentEncoding)
            && !STORED
                .iter()
                .any(|name| encoding.eq_ignore_ascii_case(name))
        {
            return Err(self.error("it sent the file in another encoding than it is stored in"));
        }
        let expected = answer.range.end.saturating_sub(answer.range.start);
        let mut parts = answer.into_stream();
        let mut bytes = Vec::new();
        loop {
            let earned = Duration::from_secs_f64(bytes.len() as f64 / MIN_RATE);
            let next = self.until(deadline + earned, offset, parts.try_next());
            let Some(part) = next.await? else {
                // What is missing would pass for the end of the file.
                return if bytes.len() as u64 == expected {
                    Ok(bytes)
                } else {
                    Err(self.error("it sent less than it said"))
                };
            };
            if part.len() > length - bytes.len() {
                return Err(self.error("it sent more than it was asked for"));
            }
            bytes.extend_from_slice(&part);
        }
    }

    fn changed(&self) -> Error {
        self.error("it changed while it was read; open it again")
    }

    /// Parts of two files are none.
    fn check_version(&self, meta: &ObjectMeta) -> Result<()> {
        let version = Version::of(meta);
        if *self.version.get_or_init(|| Version::of(meta)) == version {
            Ok(())
        } else {
            Err(self.changed())
        }
    }
}

/// Waits for work on the network.
fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    runtime()?.block_on(work)
}

/// What all files of this process wait with. It is never given up: looking up a name cannot be, and would hold up the
/// program's end. A process that was forked has none of its parent's threads and makes its own.
fn runtime() -> Result<&'static Runtime> {
    static SHARED: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, runtime)) = *shared
        && owner == process
    {
        return Ok(runtime);
    }
    let made = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("terrane-remote")
        .enable_all()
        .build()?;
    let runtime: &'static Runtime = Box::leak(Box::new(made));
    *shared = Some((process, runtime));
    Ok(runtime)
}

impl ByteSource for RemoteFile {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        if length == 0 {
            return Ok(Vec::new());
        }
        run(self.part(offset, length))
    }

    fn read_all(&self, parts: &[(u64, usize)]) -> Result<Vec<Vec<u8>>> {
        let asked = parts
            .iter()
            .map(|&(offset, length)| self.part(offset, length));
        run(stream::iter(asked).buffered(SIDE_BY_SIDE).try_collect())
    }

    fn length(&self) -> Result<u64> {
        if let Some(version) = self.version.get() {
            return Ok(version.length);
        }
        let deadline = Instant::now() + self.timeout;
        let meta = run(self.until(deadline, 0, self.store.head(&self.path)))?;
        self.check_version(&meta)?;
        Ok(meta.size)
    }
}

/// The store behind an address, and the path of the file in it.
fn open_store(url: &Url, timeout: Duration) -> object_store::Result<(Box<dyn ObjectStore>, Path)> {
    // Where the program has chosen its cryptography already, that is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let is_web = matches!(url.scheme(), "http" | "https");
    // A signed address is a web server's, whoever runs it.
    let scheme = match ObjectStoreScheme::parse(url)?.0 {
        _ if is_web && url.query().is_some() => ObjectStoreScheme::Http,
        scheme => scheme,
    };
    let retry = RetryConfig {
        max_retries: MAX_RETRIES,
        retry_timeout: timeout,
        ..RetryConfig::default()
    };
    match scheme {
        ObjectStoreScheme::Http => {
            let (base, connector) = Connector::of(url);
            let client = ClientOptions::new()
                // Plain HTTP is for servers of one's own; keys are never sent to them unasked.
                .with_allow_http(true)
                .with_connect_timeout(timeout / 3)
                .with_timeout(ENDLESS);
            let store = HttpBuilder::new()
                .with_client_options(client)
                .with_retry(retry)
                .with_http_connector(connector)
                .with_url(base)
                .build()?;
            Ok((Box::new(store), Path::from_url_path(url.path())?))
        }
        ObjectStoreScheme::AmazonS3 => {
            let seconds = |time: Duration| format!("{}ms", time.as_millis());
            let settings = [
                (ClientConfigKey::AllowHttp, "true".to_owned()),
                (ClientConfigKey::ConnectTimeout, seconds(timeout / 3)),
                (ClientConfigKey::Timeout, seconds(ENDLESS)),
            ];
            let builder = keys_of_environment()
                .chain(settings.map(|(key, value)| (AmazonS3ConfigKey::Client(key), value)))
                .fold(AmazonS3Builder::new(), |builder, (key, value)| {
                    builder.with_config(key, value)
                });
            let store = builder
                .with_url(url.as_str())
                .with_retry(retry)
                .with_http_connector(Connector::default())
                .build()?;
            let (_, path) = ObjectStoreScheme::parse(url)?;
            Ok((Box::new(store), path))
        }
        // Says what it does not know.
        _ => object_store::parse_url(url),
    }
}

/// What the environment says of a store of objects.
fn keys_of_environment() -> impl Iterator<Item = (AmazonS3ConfigKey, String)> {
    std::env::vars_os().filter_map(|(key, value)| {
        let key = key.into_string().ok()?.to_ascii_lowercase();
        let key = key.starts_with("aws_").then(|| key.parse().ok())??;
        Some((key, value.into_string().ok()?))
    })
}

/// Makes clients that send what stands in an address besides host and path.
#[derive(Debug, Clone, Default)]
struct Connector {
    query: Option<String>,
    authorization: Option<HeaderValue>,
}

impl Connector {
    /// The server of an address, and what else the address holds but for the path.
    fn of(url: &Url) -> (Url, Self) {
        let has_name = !url.username().is_empty() || url.password().is_some();
        let authorization = has_name.then(|| {
            let mut pair = percent_decoded(url.username());
            pair.push(b':');
            pair.extend(percent_decoded(url.password().unwrap_or_default()));
            format!("Basic {}", BASE64.encode(pair))
        });
        let connector = Self {
            query: url.query().map(str::to_owned),
            authorization: authorization.and_then(|text| {
                let mut value = HeaderValue::from_str(&text).ok()?;
                value.set_sensitive(true);
                Some(value)
            }),
        };
        let mut base = url.clone();
        // What has a host can be without them.
        let _ = base.set_username("");
        let _ = base.set_password(None);
        base.set_path("");
        base.set_query(None);
        base.set_fragment(None);
        (base, connector)
    }
}

/// A text with its `%20` and the like as bytes.
fn percent_decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let pair = bytes.get(at + 1).zip(bytes.get(at + 2));
        let code = pair.and_then(|(&high, &low)| Some(digit(high)? << 4 | digit(low)?));
        match code {
            Some(code) if byte == b'%' => {
                plain.push(code as u8);
                at += 3;
            }
            _ => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    plain
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Client {
            inner: ReqwestConnector::default().connect(options)?,
            own: self.clone(),
        }))
    }
}

#[derive(Debug)]
struct Client {
    inner: HttpClient,
    own: Connector,
}

impl Client {
    async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if let Some(query) = &self.own.query {
            let address = format!("{}?{query}", request.uri());
            *request.uri_mut() = address
                .parse()
                .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        }
        if let Some(value) = &self.own.authorization {
            request.headers_mut().insert("authorization", value.clone());
        }
        let is_part = request.headers().contains_key("range");
        let answer = self.inner.execute(request).await?;
        if is_part && answer.status() == 200 {
            return Err(refused("it sends whole files only, and no parts of them"));
        }
        if has_endless_range(&answer) {
            // The store would add one to it.
            return Err(refused("it answers with a range beyond any file"));
        }
        if answer.status().is_success() {
            return Ok(answer);
        }
        if answer.status() == 416 {
            return Err(HttpError::new(HttpErrorKind::Decode, NoSuchPart));
        }
        // Whatever a server says with an error would be read to its end, and there may be none.
        let (head, body) = answer.into_parts();
        let mut parts = body.bytes_stream();
        let mut said = Vec::new();
        while said.len() < MAX_SAID
            && let Some(Ok(part)) = parts.next().await
        {
            said.extend_from_slice(&part);
        }
        said.truncate(MAX_SAID);
        let reason = store_reason(&String::from_utf8_lossy(&said));
        Ok(HttpResponse::from_parts(head, reason.into_bytes().into()))
    }
}

/// What an object store says of an error, which it does in XML; of others the status alone is told.
fn store_reason(said: &str) -> String {
    let element = |name: &str| {
        let (_, rest) = said.split_once(&format!("<{name}>"))?;
        Some(rest.split_once('<')?.0)
    };
    match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => format!("{code}, {message}"),
        (Some(code), None) => code.to_owned(),
        _ => String::new(),
    }
}

/// An answer that another try would not mend.
fn refused(reason: &'static str) -> HttpError {
    HttpError::new(HttpErrorKind::Decode, std::io::Error::other(reason))
}

/// A server has no bytes where it was asked for some (status 416).
#[derive(Debug, thiserror::Error)]
#[error("it says that the file ends before the part that was asked for (416)")]
struct NoSuchPart;

/// Whether a server says that its part of a file ends where no file does.
fn has_endless_range(answer: &HttpResponse) -> bool {
    let range = answer.headers().get("content-range");
    range.is_some_and(|range| {
        let range = range.to_str().unwrap_or_default();
        range.contains(&format!("-{}/", u64::MAX))
    })
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for Client {
    fn call<'own, 'answer>(&'own self, request: HttpRequest) -> Answer<'answer>
    where
        'own: 'answer,
        Self: 'answer,
    {
        Box::pin(self.send(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_says_what_is_wrong_in_a_line() {
        let said = "<?xml version=\"1.0\"?>\n<Error><Code>ExpiredToken</Code>\n<Message>It has expired.</Message></Error>";
        assert_eq!(store_reason(said), "ExpiredToken, It has expired.");
        assert_eq!(store_reason("<Code>SlowDown</Code>"), "SlowDown");
        assert_eq!(store_reason("<html>it <b>broke</b>"), "");
        assert_eq!(store_reason("<Code>cut"), "");
    }

    #[test]
    fn a_password_is_taken_out_of_the_address_and_sent_as_it_was_meant() {
        let url = "https://user:se%20cret%2f@host/x?signature=1".parse();
        let (base, connector) = Connector::of(&url.unwrap());
        assert_eq!(base.as_str(), "https://host/");
        assert_eq!(connector.query.as_deref(), Some("signature=1"));
        let value = connector.authorization.unwrap();
        let encoded = value.to_str().unwrap().strip_prefix("Basic ").unwrap();
        assert_eq!(BASE64.decode(encoded).unwrap(), b"user:se cret/");
        assert_eq!(percent_decoded("100%, %4"), b"100%, %4");
    }
}
