//! A tile dataset on disk: square tiles of heights, each with its position, its source and its split.
//!
//! ```text
//! dataset.json   format, side, and the rasters the tiles were cut from, with their georeference
//! tiles.csv      one line per tile: source, column, row, minimum and maximum height, standard deviation
//! heights.f32    side × side little-endian heights in metres per tile, in the order of tiles.csv
//! ```

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use terrane_codec::format::read_exact_at;
use terrane_geo::{Affine, AtomicFolder, Crs, Existing, FolderKind, Georeference, RasterInfo};

use crate::measure::mean_and_deviation;
use crate::{Error, Result};

const FORMAT: u32 = 1;
const HEADER: &str = "dataset.json";
const TILES: &str = "tiles.csv";
const HEIGHTS: &str = "heights.f32";
/// What can be replaced by a dataset: another.
const KIND: FolderKind = FolderKind::of_files("a tile dataset", &[HEADER, TILES, HEIGHTS]);

/// A raster that tiles were cut from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Name of the file.
    pub file: String,
    /// The region it shows.
    pub region: String,
    /// The country, or the planet, it lies in, where that is stated.
    #[serde(default)]
    pub country: String,
    /// The split all its tiles belong to.
    pub split: String,
    /// Side of a pixel on the ground in metres.
    pub resolution_m: f64,
    /// Its affine transform: x, x per column, x per row, y, y per column, y per row, for the corner or the centre of a
    /// pixel as its coordinate reference system has it.
    pub affine: [f64; 6],
    /// Whether the file is georeferenced.
    #[serde(rename = "placed")]
    pub is_georeferenced: bool,
    /// Its coordinate reference system: the three `GeoTIFF` key arrays.
    pub geo_keys: (Vec<u16>, Vec<f64>, String),
}

impl Source {
    /// What is kept of a raster.
    pub(crate) fn new(info: &RasterInfo, region: String, split: String, resolution_m: f64) -> Self {
        let a = info.georeference.anchor;
        let crs = &info.georeference.crs;
        Self {
            file: info
                .path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            region,
            country: String::new(),
            split,
            resolution_m,
            affine: a.numbers(),
            is_georeferenced: info.georeference.is_georeferenced,
            geo_keys: (crs.directory.clone(), crs.doubles.clone(), crs.text.clone()),
        }
    }

    /// Where the raster lies.
    pub fn georeference(&self) -> Georeference {
        let [x, x_per_column, x_per_row, y, y_per_column, y_per_row] = self.affine;
        let (directory, doubles, text) = self.geo_keys.clone();
        Georeference {
            anchor: Affine {
                x,
                x_per_column,
                x_per_row,
                y,
                y_per_column,
                y_per_row,
            },
            is_georeferenced: self.is_georeferenced,
            crs: Crs {
                directory,
                doubles,
                text,
            },
        }
    }
}

/// What is known of a tile without reading its heights.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TileRecord {
    /// Index of its source.
    pub source: usize,
    /// Its first column in the source.
    pub column: usize,
    /// Its first row in the source.
    pub row: usize,
    /// Minimum height.
    pub min_m: f32,
    /// Maximum height.
    pub max_m: f32,
    /// Standard deviation of the heights.
    pub std_m: f32,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    side: usize,
    sources: Vec<Source>,
}

/// An opened tile dataset.
#[derive(Debug)]
pub struct Dataset {
    folder: PathBuf,
    side: usize,
    sources: Vec<Source>,
    tiles: Vec<TileRecord>,
    heights: File,
}

impl Dataset {
    /// Opens a dataset; heights are read tile by tile.
    pub fn open(folder: &Path) -> Result<Self> {
        let damaged = |reason: String| Error::Dataset {
            path: folder.to_owned(),
            reason,
        };
        let text = std::fs::read_to_string(folder.join(HEADER))
            .map_err(|error| damaged(format!("{HEADER} cannot be read ({error})")))?;
        let header: Header =
            serde_json::from_str(&text).map_err(|error| damaged(format!("{HEADER}: {error}")))?;
        if header.format != FORMAT {
            return Err(damaged(format!(
                "its format is {}, not {FORMAT}",
                header.format
            )));
        }
        let tiles: Vec<TileRecord> = csv::Reader::from_path(folder.join(TILES))
            .and_then(|mut reader| reader.deserialize().collect())
            .map_err(|error| damaged(format!("{TILES}: {error}")))?;
        if let Some(tile) = tiles
            .iter()
            .find(|tile| tile.source >= header.sources.len())
        {
            return Err(damaged(format!(
                "{TILES} names source {}, which is not there",
                tile.source
            )));
        }
        let heights = File::open(folder.join(HEIGHTS))
            .map_err(|error| damaged(format!("{HEIGHTS} cannot be read ({error})")))?;
        let length = heights.metadata().map_or(0, |metadata| metadata.len());
        let expected = tile_bytes(header.side).checked_mul(tiles.len() as u64);
        if expected != Some(length) {
            return Err(damaged(format!(
                "{HEIGHTS} is {length} bytes long for {} tiles",
                tiles.len()
            )));
        }
        Ok(Self {
            folder: folder.to_owned(),
            side: header.side,
            sources: header.sources,
            tiles,
            heights,
        })
    }

    /// The folder it lies in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its files.
    pub fn files(&self) -> Vec<PathBuf> {
        let names = KIND.files.iter();
        names.map(|name| self.folder.join(name)).collect()
    }

    /// Side of every tile in pixels.
    pub fn side(&self) -> usize {
        self.side
    }

    /// All tiles, in the order of their numbers.
    pub fn tiles(&self) -> &[TileRecord] {
        &self.tiles
    }

    /// The source of a tile.
    pub fn source(&self, tile: usize) -> &Source {
        &self.sources[self.tiles[tile].source]
    }

    /// Numbers of the tiles of a split.
    pub fn split(&self, name: &str) -> Vec<usize> {
        (0..self.tiles.len())
            .filter(|&tile| self.source(tile).split == name)
            .collect()
    }

    /// Names of the splits, in the order in which they first appear.
    pub fn splits(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for source in &self.sources {
            if !names.contains(&source.split.as_str()) {
                names.push(&source.split);
            }
        }
        names
    }

    /// Names of the splits whose rasters gave no tile.
    pub fn empty_splits(&self) -> Vec<&str> {
        let mut names = self.splits();
        names.retain(|name| self.split(name).is_empty());
        names
    }

    /// Reads the heights of a tile in metres, row by row.
    pub fn heights(&self, tile: usize) -> Result<Vec<f32>> {
        let length = tile_bytes(self.side);
        let mut bytes = vec![0; length as usize];
        let read = read_exact_at(&self.heights, &mut bytes, tile as u64 * length);
        read.map_err(|source| Error::Io {
            path: self.folder.join(HEIGHTS),
            action: "be read",
            source,
        })?;
        Ok(bytes
            .as_chunks()
            .0
            .iter()
            .map(|&chunk| f32::from_le_bytes(chunk))
            .collect())
    }
}

fn tile_bytes(side: usize) -> u64 {
    (side as u64).saturating_mul(side as u64).saturating_mul(4)
}

/// A dataset that is being written; it appears under its name when it is finished.
pub struct DatasetWriter {
    folder: AtomicFolder,
    target: PathBuf,
    header: Header,
    tiles: csv::Writer<File>,
    heights: BufWriter<File>,
}

impl DatasetWriter {
    /// Refuses a target that [`DatasetWriter::create`] refuses.
    pub(crate) fn check(target: &Path, existing: Existing, inputs: &[&Path]) -> Result<()> {
        AtomicFolder::check(target, existing, KIND, inputs)?;
        Ok(())
    }

    /// Starts a dataset of tiles of `side` × `side` pixels; only another dataset is replaced by it, and none that is,
    /// holds or lies in an input.
    pub(crate) fn create(
        target: &Path,
        side: usize,
        existing: Existing,
        inputs: &[&Path],
    ) -> Result<Self> {
        let folder = AtomicFolder::create(target, existing, KIND, inputs)?;
        let create = |name: &str| {
            File::create(folder.path().join(name)).map_err(|source| Error::Io {
                path: target.join(name),
                action: "be created",
                source,
            })
        };
        let tiles = csv::Writer::from_writer(create(TILES)?);
        let heights = BufWriter::with_capacity(1 << 20, create(HEIGHTS)?);
        let header = Header {
            format: FORMAT,
            side,
            sources: Vec::new(),
        };
        Ok(Self {
            folder,
            target: target.to_owned(),
            header,
            tiles,
            heights,
        })
    }

    /// Adds a raster that the next tiles come from.
    pub(crate) fn add_source(&mut self, source: Source) {
        self.header.sources.push(source);
    }

    /// Adds a tile of the last source, from its first column and row.
    pub(crate) fn add_tile(&mut self, column: usize, row: usize, heights_m: &[f32]) -> Result<()> {
        let (_, deviation) = mean_and_deviation(heights_m.iter().map(|&height| f64::from(height)));
        let record = TileRecord {
            source: self.header.sources.len() - 1,
            column,
            row,
            min_m: heights_m.iter().copied().fold(f32::INFINITY, f32::min),
            max_m: heights_m.iter().copied().fold(f32::NEG_INFINITY, f32::max),
            std_m: deviation as f32,
        };
        self.tiles
            .serialize(record)
            .map_err(|error| self.failed(TILES, std::io::Error::other(error)))?;
        let bytes: Vec<u8> = heights_m
            .iter()
            .flat_map(|height| height.to_le_bytes())
            .collect();
        self.heights
            .write_all(&bytes)
            .map_err(|error| self.failed(HEIGHTS, error))
    }

    /// Completes the dataset and gives it its name.
    pub(crate) fn finish(mut self) -> Result<Dataset> {
        self.tiles
            .flush()
            .map_err(|error| self.failed(TILES, error))?;
        self.heights
            .flush()
            .map_err(|error| self.failed(HEIGHTS, error))?;
        let text = serde_json::to_string_pretty(&self.header)
            .map_err(|error| self.failed(HEADER, std::io::Error::other(error)))?;
        std::fs::write(self.folder.path().join(HEADER), text)
            .map_err(|error| self.failed(HEADER, error))?;
        self.folder.commit()?;
        Dataset::open(&self.target)
    }

    fn failed(&self, name: &str, source: std::io::Error) -> Error {
        Error::Io {
            path: self.target.join(name),
            action: "be written",
            source,
        }
    }
}

/// Means over the tiles of one split.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SplitStatistics {
    /// Name of the split.
    pub split: String,
    /// Number of rasters with at least one tile.
    pub sources: usize,
    /// Number of tiles.
    pub tiles: usize,
    /// The pixel sizes that occur, from fine to coarse.
    pub resolutions_m: Vec<f64>,
    /// Minimum height of all.
    pub min_m: f64,
    /// Maximum height of all.
    pub max_m: f64,
    /// Range of heights of a tile, on average.
    pub mean_range_m: f64,
    /// Standard deviation within a tile, on average.
    pub mean_std_m: f64,
}

impl Dataset {
    /// Counts, resolutions, ranges and deviations of every split that has tiles.
    pub fn statistics(&self) -> Vec<SplitStatistics> {
        self.splits()
            .into_iter()
            .filter_map(|name| {
                let tiles: Vec<&TileRecord> = self
                    .split(name)
                    .iter()
                    .map(|&tile| &self.tiles[tile])
                    .collect();
                if tiles.is_empty() {
                    return None;
                }
                let mean = |value: fn(&TileRecord) -> f64| {
                    tiles.iter().map(|tile| value(tile)).sum::<f64>() / tiles.len() as f64
                };
                let mut used: Vec<usize> = tiles.iter().map(|tile| tile.source).collect();
                used.dedup();
                let mut resolutions_m: Vec<f64> = used
                    .iter()
                    .map(|&source| self.sources[source].resolution_m)
                    .collect();
                resolutions_m.sort_by(f64::total_cmp);
                resolutions_m.dedup();
                Some(SplitStatistics {
                    split: name.to_owned(),
                    sources: used.len(),
                    tiles: tiles.len(),
                    resolutions_m,
                    min_m: tiles
                        .iter()
                        .map(|tile| f64::from(tile.min_m))
                        .fold(f64::INFINITY, f64::min),
                    max_m: tiles
                        .iter()
                        .map(|tile| f64::from(tile.max_m))
                        .fold(f64::NEG_INFINITY, f64::max),
                    mean_range_m: mean(|tile| f64::from(tile.max_m) - f64::from(tile.min_m)),
                    mean_std_m: mean(|tile| f64::from(tile.std_m)),
                })
            })
            .collect()
    }
}
