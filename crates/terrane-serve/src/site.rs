//! A folder for any static host: the viewer, the decoder for browsers, and files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use terrane::tiles::{BlockCache, MapTiles};
use terrane_codec::context::pack;
use terrane_codec::{Terrain, shown};
use terrane_geo::geodesy::definition;
use terrane_geo::{AtomicFolder, Existing, FolderKind};

use crate::assets::{ASSETS, Asset, DECODER, PAGE};
use crate::{Error, attribution};

/// What can be replaced by a site: another.
const KIND: FolderKind = FolderKind {
    name: "a site of terrane",
    files: &[PAGE.name, CATALOGUE],
    folders: &["assets"],
    endings: &["trn"],
};
const CATALOGUE: &str = "catalog.json";
/// Nothing from elsewhere but files at other addresses.
const CONTENT_POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; connect-src 'self'";
/// Where the page says what it may load.
const HEAD: &str = "<meta charset=\"utf-8\">\n";

/// Files that become a site.
#[derive(Debug, Default)]
pub struct Site {
    /// By their names, in the order in which they were added.
    files: Vec<(String, SiteFile)>,
    /// The attribution of the map as HTML.
    attribution: Option<String>,
    /// Models by their hashes, packed.
    models: BTreeMap<String, Vec<u8>>,
    /// Definitions of coordinate systems.
    systems: BTreeSet<String>,
}

/// One file of a site.
#[derive(Debug)]
struct SiteFile {
    /// The file to copy; `None` where it stays at its address.
    copied: Option<PathBuf>,
    entry: Value,
}

/// What a site came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteSize {
    /// Files of the folder.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// The address that a browser can read, where a path is one.
fn address(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    is_web.then_some(text)
}

impl Site {
    /// A site without files; the attribution of its map is plain text.
    pub fn new(attribution: Option<&str>) -> Self {
        Self {
            attribution: attribution.map(attribution::html),
            ..Self::default()
        }
    }

    /// Adds a file; one at a web address stays there, others are copied.
    pub fn add(&mut self, name: &str, path: &Path, terrain: Terrain) -> Result<(), Error> {
        let copied = match address(path) {
            Some(_) => None,
            None if path.exists() => Some(path.to_owned()),
            None => return Err(Error::NotForBrowsers { file: shown(path) }),
        };
        let header = terrain.header();
        let model = header.model.as_ref();
        if let Some(model) = model.filter(|model| model.embedded.is_none()) {
            let known = terrane::MODELS.built_in_bytes(&model.sha256);
            let known = known.filter(|_| !header.method.has_tokens());
            let packed = known
                .and_then(|bytes| pack(bytes).ok())
                .ok_or_else(|| Error::NoBrowserModel { file: shown(path) })?;
            self.models.insert(hex::encode(model.sha256), packed);
        }
        // All of a file is read for its parts: not of one that is far away.
        let parts = copied.as_ref().map(|_| {
            let mut go_on = |_, _| Ok::<_, terrane_codec::Error>(());
            let parts = terrane::parts(terrain.reader(), &mut go_on);
            parts
                .map(|parts| json!(parts))
                .map_err(|source| Error::Damaged {
                    file: shown(path),
                    source,
                })
        });
        let parts = parts.transpose()?;
        let cache = Arc::new(BlockCache::new(1 << 20));
        let tiles =
            MapTiles::open(Arc::new(terrain), &cache).map_err(|source| Error::NotOnMap {
                file: shown(path),
                source,
            })?;
        // A projection of the file's own stands on longitudes and latitudes with a code.
        let codes = [tiles.crs().horizontal_epsg(), tiles.crs().geodetic_epsg()];
        for epsg in codes.into_iter().flatten() {
            if let Some(definition) = definition(epsg) {
                self.systems.insert(format!("{epsg} {definition}\n"));
            }
        }
        let file = address(path).map_or_else(|| format!("{name}.trn"), str::to_owned);
        let entry = json!({
            "file": file, "description": tiles.crs().to_string(), "is_original": false, "parts": parts,
        });
        let file = SiteFile { copied, entry };
        if self.files.iter().any(|(other, _)| other == name) {
            return Err(Error::DuplicateName { name: name.into() });
        }
        self.files.push((name.to_owned(), file));
        Ok(())
    }

    /// Writes the folder, whole or not at all.
    pub fn write(&self, out: &Path, existing: Existing) -> Result<SiteSize, Error> {
        let inputs: Vec<&Path> = self
            .files
            .iter()
            .filter_map(|(_, file)| file.copied.as_deref())
            .collect();
        let folder = AtomicFolder::create(out, existing, KIND, &inputs)?;
        let mut size = SiteSize { files: 0, bytes: 0 };
        let mut put = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            size.files += 1;
            size.bytes += bytes.len() as u64;
            let parent = path.parent().unwrap_or(folder.path());
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(&path, bytes))
                .map_err(|source| Error::Unwritable {
                    file: shown(out),
                    source,
                })
        };
        put(PAGE.name, self.page().as_bytes())?;
        for asset in &ASSETS {
            put(&format!("assets/{}", asset.name), asset.bytes)?;
        }
        for asset in &DECODER {
            put(&format!("assets/terrane/{}", asset.name), asset.bytes)?;
        }
        for (sha256, bytes) in &self.models {
            put(&format!("assets/terrane/models/{sha256}.packed"), bytes)?;
        }
        let systems: String = self.systems.iter().map(String::as_str).collect();
        put("assets/terrane/systems.txt", systems.as_bytes())?;
        let tiles: Map<String, Value> = self
            .files
            .iter()
            .map(|(name, file)| (name.clone(), file.entry.clone()))
            .collect();
        let names: Vec<&str> = self.files.iter().map(|(name, _)| name.as_str()).collect();
        let catalogue = json!({ "names": names, "attribution": self.attribution, "tiles": tiles });
        put(CATALOGUE, catalogue.to_string().as_bytes())?;
        for (name, file) in &self.files {
            if let Some(path) = &file.copied {
                let target = folder.path().join(format!("{name}.trn"));
                let copied = fs::copy(path, target);
                size.bytes += copied.map_err(|source| Error::Unwritable {
                    file: shown(out),
                    source,
                })?;
                size.files += 1;
            }
        }
        folder.commit()?;
        Ok(size)
    }

    /// The viewer's page, which says what it may load: a static host sends no such header.
    fn page(&self) -> String {
        let page = String::from_utf8_lossy(PAGE.bytes);
        let mut policy = CONTENT_POLICY.to_owned();
        for (_, file) in &self.files {
            let address = file.entry["file"].as_str().and_then(|file| origin(file));
            if let Some(origin) = address.filter(|origin| !policy.contains(origin)) {
                policy.push(' ');
                policy.push_str(origin);
            }
        }
        let meta = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n");
        page.replacen(HEAD, &format!("{HEAD}{meta}{}", preloads()), 1)
    }
}

/// What the page asks its host for at once: else every script would be found only when the one before it is there.
fn preloads() -> String {
    let link = |asset: &Asset| {
        let kind = match asset.media_type {
            "application/wasm" => "rel=\"preload\" as=\"fetch\" crossorigin",
            _ => "rel=\"modulepreload\"",
        };
        format!("<link {kind} href=\"assets/terrane/{}\">\n", asset.name)
    };
    // Workers load theirs by themselves.
    let loaded = DECODER.iter().filter(|asset| asset.name != "worker.js");
    loaded.map(link).collect()
}

/// Scheme, host and port of an address; nothing of it could end the attribute that it stands in.
fn origin(address: &str) -> Option<&str> {
    let start = address.find("://")? + 3;
    let end = address[start..]
        .find(['/', '?', '#'])
        .map_or(address.len(), |end| start + end);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".-:[]".contains(letter);
    address[start..end]
        .chars()
        .all(is_plain)
        .then(|| &address[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_what_it_may_load() {
        let mut site = Site::default();
        for file in ["https://host:8443/a/dem.trn?x=1", "dem.trn"] {
            let entry = json!({ "file": file });
            let copied = None;
            site.files.push((file.into(), SiteFile { copied, entry }));
        }
        let page = site.page();
        assert!(
            page.contains("connect-src 'self' https://host:8443\">"),
            "{page}"
        );
        assert!(page.contains("assets/main.js"));
        assert!(page.contains(r#"as="fetch" crossorigin href="assets/terrane/terrane.wasm""#));
        assert!(page.contains(r#"<link rel="modulepreload" href="assets/terrane/index.js">"#));
        assert_eq!(origin("https://a\"b/dem.trn"), None);
        assert_eq!(origin("dem.trn"), None);
    }
}
