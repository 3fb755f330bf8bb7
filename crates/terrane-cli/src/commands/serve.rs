//! `terrane serve`: a web map and tiles from terrane files.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use terrane::OpenOptions;
use terrane_codec::format::MemoryLimit;
use terrane_codec::shown;
use terrane_serve::{Earlier, Error, Options, Original, Server};

use crate::Common;
use crate::commands::{RemoteArguments, jobs};
use crate::output::print;

/// Serve terrane files as a web map and as tiles.
///
/// Open the address in a browser for the map, or give its tiles to MapLibre, QGIS, deck.gl and others:
///
/// /NAME is the TileJSON of heights (Terrarium), /NAME/{z}/{x}/{y}.png the tiles, also @2x and .webp;
/// /NAME/LAYER/{z}/{x}/{y}.png shows hillshade, slope, aspect, laplacian, profile-curvature, plan-curvature, difference or change;
/// /NAME/point/LON,LAT and /NAME/profile?line=LON,LAT;LON,LAT answer what `terrane query` answers;
/// /NAME.tif is the file as a GeoTIFF for GDAL and QGIS, by ranges, and /NAME.trn the file itself;
/// /NAME/info, /NAME/parts.json, /catalog, /health and /metrics describe the server.
///
/// Ctrl-C lets answers that are under way finish; a second one ends at once.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  terrane serve dem.trn\n  terrane serve dem.trn --original dem.tif\n  terrane serve 2024.trn --before 2019.trn\n  terrane serve alps=a.trn jura=b.trn --original alps=a.tif --port 9000\n  terrane serve https://example.org/dem.trn --bind 0.0.0.0 --public-url https://maps.example.org\n  gdalinfo /vsicurl/http://127.0.0.1:8080/dem.tif"
)]
pub(crate) struct Arguments {
    /// Terrane files, paths or addresses; NAME=FILE gives one another name than that of its file.
    #[arg(required = true, value_name = "FILE.trn")]
    files: Vec<String>,
    /// The raster that a file was made from, to compare with; another is refused. NAME=FILE.tif where there are several files.
    #[arg(long, value_name = "FILE.tif", alias = "against")]
    original: Vec<String>,
    /// An earlier terrane file of the same pixels: the layer `change` shows what is proven to have changed since. NAME=FILE.trn
    /// where there are several files.
    #[arg(long, value_name = "FILE.trn")]
    before: Vec<String>,
    /// A model for files that neither hold theirs nor use one of the program.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// The address under which clients see the server, where a proxy stands before it.
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Attribution of the files, such as '© Survey': plain text, shown on the map and stated by TileJSON.
    #[arg(long, value_name = "TEXT")]
    attribution: Option<String>,
    /// Megabytes of decoded heights that are kept.
    #[arg(long, value_name = "MB", default_value_t = 512)]
    cache: usize,
    /// Megabytes of drawn tiles that are kept.
    #[arg(long, value_name = "MB", default_value_t = 64)]
    tile_cache: usize,
    /// Requests that may wait for a worker; more are turned away with 503.
    #[arg(long, value_name = "N", default_value_t = 256)]
    queue: usize,
    /// Seconds for a request; longer ones are given up with 504.
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// A name for addresses: letters, digits, and `.`, `-`, `_` between them.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
}

/// Splits `NAME=FILE`; a file that exists under the whole text is meant itself.
pub(crate) fn split_name(text: &str) -> (Option<&str>, &Path) {
    match text.split_once('=') {
        Some((name, file)) if is_name(name) && !Path::new(text).exists() => {
            (Some(name), Path::new(file))
        }
        _ => (None, Path::new(text)),
    }
}

/// The name of a file without its ending, with other characters than a name may have replaced.
pub(crate) fn name_of(path: &Path) -> String {
    // What an address holds besides its path is nobody's business.
    let path = PathBuf::from(shown(path));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let plain: String = stem
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() || "._-".contains(letter) {
                letter
            } else {
                '-'
            }
        })
        .take(64)
        .collect();
    let plain = plain.trim_start_matches(['.', '-', '_']);
    if plain.is_empty() { "terrain" } else { plain }.to_owned()
}

impl Arguments {
    /// Opens all files, with their originals.
    fn add_files(&self, server: &mut Server, memory: MemoryLimit) -> Result<()> {
        let mut originals = Companions::new("--original", &self.original, self.files.len());
        let mut earlier = Companions::new("--before", &self.before, self.files.len());
        let options = OpenOptions {
            model: self.model.clone(),
            memory,
            remote: self.remote.options(),
        };
        for text in &self.files {
            let (name, path) = split_name(text);
            let name = name.map_or_else(|| name_of(path), str::to_owned);
            let terrain = terrane::open_with(path, &options)?;
            let original = originals.take(&name);
            let raster = original
                .map(|path| {
                    let raster = terrane_geo::open(&[path])?;
                    Ok::<_, terrane_geo::Error>(Original { path, raster })
                })
                .transpose()?;
            let before = earlier.take(&name);
            let old = before
                .map(|path| {
                    let terrain = terrane::open_with(path, &options)?;
                    Ok::<_, terrane::Error>(Earlier { path, terrain })
                })
                .transpose()?;
            server
                .add(&name, path, terrain, raster, old)
                .map_err(|error| explain(error, path, original, before))?;
        }
        originals.finish()?;
        earlier.finish()
    }
}

/// What files are compared with, by their names.
struct Companions<'a> {
    option: &'static str,
    left: Vec<(Option<&'a str>, &'a Path)>,
    /// With one file there is no doubt whose it is.
    is_single: bool,
}

impl<'a> Companions<'a> {
    fn new(option: &'static str, given: &'a [String], files: usize) -> Self {
        Self {
            option,
            left: given.iter().map(|text| split_name(text)).collect(),
            is_single: files == 1,
        }
    }

    /// The one of a file.
    fn take(&mut self, name: &str) -> Option<&'a Path> {
        let is_single = self.is_single;
        let mut all = self.left.iter();
        let found = all.position(|(wanted, _)| wanted.map_or(is_single, |wanted| wanted == name));
        found.map(|index| self.left.swap_remove(index).1)
    }

    /// Refuses one that is left over.
    fn finish(self) -> Result<()> {
        match self.left.first() {
            None => Ok(()),
            Some((_, path)) => bail!(
                "{} {}: no file of this name is served; say which as NAME=FILE",
                self.option,
                shown(path)
            ),
        }
    }
}

/// A server's error, with the options that avoid it.
fn explain(
    error: Error,
    path: &Path,
    original: Option<&Path>,
    before: Option<&Path>,
) -> anyhow::Error {
    match error {
        Error::ReservedName { .. } => {
            let path = shown(path);
            anyhow!("{path}: {error}; give another name as NAME={path}")
        }
        Error::DuplicateName { .. } => anyhow!("{error}: give one another as NAME=FILE"),
        Error::NotOriginal { .. } => {
            let original = original.map(shown).unwrap_or_default();
            anyhow!("--original {original}: {error}")
        }
        Error::NotBefore { .. } => {
            let before = before.map(shown).unwrap_or_default();
            anyhow::Error::new(error).context(format!("--before {before}"))
        }
        error => error.into(),
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> Result<()> {
    let megabytes = |count: usize| count.saturating_mul(1 << 20);
    let mut server = Server::new(Options {
        threads: jobs(common),
        block_bytes: megabytes(arguments.cache),
        tile_bytes: megabytes(arguments.tile_cache),
        queue: arguments.queue,
        timeout: Duration::from_secs(arguments.timeout),
        public_url: arguments.public_url.clone(),
        attribution: arguments.attribution.clone(),
    });
    arguments.add_files(&mut server, common.memory())?;
    let names = server.names();
    let listening = server
        .listen(SocketAddr::new(arguments.bind, arguments.port))
        .map_err(|error| match error {
            Error::Listen { address, source } => anyhow::Error::new(source).context(format!(
                "{address} cannot be listened on: choose another with --bind or --port"
            )),
            error => error.into(),
        })?;
    let address = listening.address();
    if common.json {
        let line = serde_json::json!({ "address": format!("http://{address}"), "names": names });
        print(&format!("{line}\n"))?;
    } else {
        print(&format!(
            "http://{address} serves {}; Ctrl-C stops it\n",
            names.join(", ")
        ))?;
    }
    listening.answer();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_files_or_stand_before_them() {
        assert_eq!(split_name("a/b.trn"), (None, Path::new("a/b.trn")));
        assert_eq!(
            split_name("alps=a/b.trn"),
            (Some("alps"), Path::new("a/b.trn"))
        );
        let address = "https://host/x.trn?key=1";
        assert_eq!(split_name(address), (None, Path::new(address)));
        assert_eq!(name_of(Path::new("a/Été 2020.trn")), "t--2020");
        assert_eq!(name_of(Path::new("https://host/dem.trn")), "dem");
        let signed = "https://user:secret@host/dem.trn?Signature=secret/secret.x";
        assert_eq!(name_of(Path::new(signed)), "dem");
        assert!(is_name("m1.si_2-b") && !is_name("") && !is_name("a/b") && !is_name(".."));
    }
}
