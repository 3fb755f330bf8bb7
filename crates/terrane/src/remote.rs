//! Files on web servers and in object stores, read by ranges.

use std::sync::OnceLock;

use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use terrane_format::{Error, Result, Source};
use tokio::runtime::Runtime;

/// A file behind an address: `https://…`, `s3://…` and what else `object_store` knows. Keys of a store are taken from
/// the environment, as its own tools do.
#[derive(Debug)]
pub struct RemoteFile {
    address: String,
    store: Box<dyn ObjectStore>,
    path: Path,
    runtime: Runtime,
    length: OnceLock<u64>,
}

impl RemoteFile {
    /// Whether a name is an address rather than a path.
    pub fn is_address(name: &str) -> bool {
        name.split_once("://").is_some_and(|(scheme, _)| {
            scheme.len() > 1 && scheme.chars().all(|letter| letter.is_ascii_alphanumeric())
        })
    }

    /// A file at an address; nothing is read yet.
    pub fn open(address: &str) -> Result<Self> {
        let failed = |reason: String| Error::Remote {
            place: address.to_owned(),
            reason,
        };
        let url = address
            .parse()
            .map_err(|error| failed(format!("it is no address ({error})")))?;
        // Plain HTTP is for servers of one's own; keys are never sent to them unasked.
        let settings = std::env::vars_os()
            .filter_map(|(key, value)| {
                Some((
                    key.into_string().ok()?.to_ascii_lowercase(),
                    value.into_string().ok()?,
                ))
            })
            .filter(|(key, _)| {
                ["aws_", "google_", "azure_"]
                    .iter()
                    .any(|store| key.starts_with(store))
            })
            .chain([("allow_http".to_owned(), "true".to_owned())]);
        let (store, path) = object_store::parse_url_opts(&url, settings)
            .map_err(|error| failed(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        Ok(Self {
            address: address.to_owned(),
            store,
            path,
            runtime,
            length: OnceLock::new(),
        })
    }
}

impl Source for RemoteFile {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let failed = |error: object_store::Error| Error::Remote {
            place: self.address.clone(),
            reason: error.to_string(),
        };
        if length == 0 {
            return Ok(Vec::new());
        }
        let range = GetRange::Bounded(offset..offset + length as u64);
        let options = GetOptions {
            range: Some(range),
            ..GetOptions::default()
        };
        self.runtime.block_on(async {
            let answer = self
                .store
                .get_opts(&self.path, options)
                .await
                .map_err(failed)?;
            self.length.get_or_init(|| answer.meta.size);
            Ok(answer.bytes().await.map_err(failed)?.to_vec())
        })
    }

    fn length(&self) -> Result<u64> {
        if let Some(&length) = self.length.get() {
            return Ok(length);
        }
        let failed = |error: object_store::Error| Error::Remote {
            place: self.address.clone(),
            reason: error.to_string(),
        };
        let meta = self
            .runtime
            .block_on(self.store.head(&self.path))
            .map_err(failed)?;
        Ok(*self.length.get_or_init(|| meta.size))
    }
}
