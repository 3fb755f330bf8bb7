//! A server: its files, its limits, and its life from an address to the request to stop.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use terrane::TiffCache;
use terrane::tiles::BlockCache;
use terrane_codec::Terrain;
use terrane_geo::RasterSource;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::dataset::{Compared, Dataset};
use crate::limits::Pool;
use crate::metrics::Metrics;
use crate::{Error, attribution, listener, original, routes};

/// Names that addresses need for something else.
const RESERVED: [&str; 6] = [
    "assets",
    "catalog",
    "catalog.json",
    "favicon.ico",
    "health",
    "metrics",
];
/// What is added to a file's name for the raster it was made from.
const ORIGINAL: &str = "-original";
/// What is added to it for an earlier file.
const BEFORE: &str = "-before";
/// Bytes that a drawn tile takes besides its own.
const OVERHEAD: u64 = 256;
/// Blocks of GeoTIFFs have this part of the memory for decoded heights besides: GDAL keeps what it read itself.
const TIFF_SHARE: usize = 8;
/// Bytes of a drawn tile of typical size.
const TYPICAL_BYTES: usize = 1 << 15;

/// The way to ask the server of this program to stop.
static STOP: OnceLock<watch::Sender<bool>> = OnceLock::new();

/// Asks the server to stop; false where none runs or it was asked before.
pub fn ask_to_stop() -> bool {
    STOP.get().is_some_and(|stop| !stop.send_replace(true))
}

/// Bounds of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Requests that are worked on at once.
    pub threads: usize,
    /// Bytes of decoded heights that are kept; blocks of GeoTIFFs take an eighth of it besides.
    pub block_bytes: usize,
    /// Bytes of drawn tiles that are kept.
    pub tile_bytes: usize,
    /// Requests that may wait for a worker.
    pub queue: usize,
    /// Time for a request.
    pub timeout: Duration,
    /// The address under which clients see the server, where it is not the one they ask.
    pub public_url: Option<String>,
    /// The attribution that maps of the files show, as plain text.
    pub attribution: Option<String>,
}

/// The raster that a file was made from.
pub struct Original<'a> {
    /// Its file.
    pub path: &'a Path,
    /// Its heights.
    pub raster: Box<dyn RasterSource>,
}

/// An earlier file of the same pixels.
pub struct Earlier<'a> {
    /// Its path or address.
    pub path: &'a Path,
    /// The file.
    pub terrain: Terrain,
}

/// Drawn tiles by their tags.
pub(crate) type TileCache = Cache<String, Bytes, TileBytes>;

#[derive(Debug, Clone)]
pub(crate) struct TileBytes;

impl Weighter<String, Bytes> for TileBytes {
    fn weight(&self, tag: &String, tile: &Bytes) -> u64 {
        OVERHEAD + (tag.len() + tile.len()) as u64
    }
}

fn tile_cache(max_bytes: usize) -> TileCache {
    let options = OptionsBuilder::new()
        .weight_capacity(max_bytes as u64)
        .estimated_items_capacity((max_bytes / TYPICAL_BYTES).max(1))
        .shards(1)
        .build()
        .expect("the capacities are set");
    Cache::with_options(
        options,
        TileBytes,
        quick_cache::DefaultHashBuilder::default(),
        DefaultLifecycle::default(),
    )
}

/// Files to serve, and the bounds within which they are.
pub struct Server {
    /// In the order in which they were added, each before what it is compared with.
    pub(crate) datasets: Vec<Arc<Dataset>>,
    pub(crate) blocks: Arc<BlockCache>,
    pub(crate) tiff_blocks: Arc<TiffCache>,
    pub(crate) tiles: TileCache,
    pub(crate) pool: Pool,
    pub(crate) metrics: Metrics,
    pub(crate) connections: AtomicUsize,
    pub(crate) public_url: Option<String>,
    /// The attribution as HTML.
    pub(crate) attribution: Option<String>,
    threads: usize,
}

impl Server {
    /// A server without files.
    pub fn new(options: Options) -> Self {
        Self {
            datasets: Vec::new(),
            blocks: Arc::new(BlockCache::new(options.block_bytes)),
            tiff_blocks: Arc::new(TiffCache::new(options.block_bytes / TIFF_SHARE)),
            tiles: tile_cache(options.tile_bytes),
            pool: Pool::new(options.threads, options.queue, options.timeout),
            metrics: Metrics::default(),
            connections: AtomicUsize::new(0),
            public_url: options.public_url,
            attribution: options.attribution.as_deref().map(attribution::html),
            threads: options.threads,
        }
    }

    /// Adds a file, the raster it was made from, and an earlier file to show what changed since.
    pub fn add(
        &mut self,
        name: &str,
        path: &Path,
        terrain: Terrain,
        original: Option<Original>,
        before: Option<Earlier>,
    ) -> Result<(), Error> {
        if RESERVED.contains(&name) {
            return Err(Error::ReservedName { name: name.into() });
        }
        let terrain = Arc::new(terrain);
        let original = original
            .map(|original| self.open_original(name, &terrain, original))
            .transpose()?;
        let before = before
            .map(|Earlier { path, terrain }| {
                let (name, terrain) = (format!("{name}{BEFORE}"), Arc::new(terrain));
                let compared = Compared::default();
                Dataset::of_terrain(
                    name,
                    path,
                    terrain,
                    compared,
                    &self.blocks,
                    &self.tiff_blocks,
                )
                .map(Arc::new)
            })
            .transpose()?;
        let compared = Compared {
            original: original.clone(),
            before: before.clone(),
        };
        let dataset = Dataset::of_terrain(
            name.into(),
            path,
            terrain,
            compared,
            &self.blocks,
            &self.tiff_blocks,
        )?;
        let others = original.into_iter().chain(before);
        for dataset in [Arc::new(dataset)].into_iter().chain(others) {
            if self.find(&dataset.name).is_some() {
                let name = dataset.name.clone();
                return Err(Error::DuplicateName { name });
            }
            self.datasets.push(dataset);
        }
        Ok(())
    }

    fn open_original(
        &self,
        name: &str,
        terrain: &Terrain,
        original: Original,
    ) -> Result<Arc<Dataset>, Error> {
        let Original { path, raster } = original;
        original::check(terrain, raster.as_ref()).map_err(|reason| Error::NotOriginal {
            name: name.into(),
            reason,
        })?;
        let name = format!("{name}{ORIGINAL}");
        let dataset = Dataset::of_original(name, path, raster, terrain, &self.blocks)?;
        Ok(Arc::new(dataset))
    }

    /// A file by its name.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Dataset>> {
        self.datasets.iter().find(|dataset| dataset.name == name)
    }

    /// The names of all files in the order in which they were added, originals among them.
    pub fn names(&self) -> Vec<String> {
        let names = self.datasets.iter().map(|dataset| dataset.name.clone());
        names.collect()
    }

    /// Opens an address for connections.
    pub fn listen(self, address: SocketAddr) -> Result<Listening, Error> {
        let stop = STOP.get_or_init(|| watch::channel(false).0).subscribe();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.threads.clamp(1, 4))
            .max_blocking_threads(self.threads + 2)
            .enable_all()
            .build()
            .map_err(Error::Threads)?;
        let failed = |source| Error::Listen { address, source };
        let listener = runtime
            .block_on(TcpListener::bind(address))
            .map_err(failed)?;
        Ok(Listening {
            address: listener.local_addr().map_err(failed)?,
            server: Arc::new(self),
            runtime,
            listener,
            stop,
        })
    }
}

/// A server with an address.
pub struct Listening {
    server: Arc<Server>,
    runtime: Runtime,
    listener: TcpListener,
    address: SocketAddr,
    stop: watch::Receiver<bool>,
}

impl Listening {
    /// The address, with the port that was chosen where none was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until it is asked to stop, then lets answers that are under way finish.
    pub fn answer(self) {
        let router = routes::router(self.server.clone());
        let Self {
            server,
            runtime,
            listener,
            stop,
            ..
        } = self;
        runtime.block_on(listener::answer(listener, server, router, stop));
    }
}
