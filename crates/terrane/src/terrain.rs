//! An open neural terrain file.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use terrane_format::{
    ByteSource, Coding, ErrorBound, Header, LevelTile, LocalFile, MemoryLimit, Reader, TileId,
    Window,
};

use crate::Error;
use crate::address::RemoteOptions;
#[cfg(feature = "remote")]
use crate::address::is_address;
use crate::file_model::FileModel;
use crate::parallel::in_parallel;
use crate::resources::Resources;
use crate::surface::Surface;
use crate::tile_codec::{DECODING_BYTES, Rate, Tile, TileCodec};

/// Decoded pixels that are kept, and tiles at most and at least.
const KEPT_PIXELS: usize = 1 << 24;
const KEPT: std::ops::RangeInclusive<usize> = 4..=64;

/// An open file: its description, its tiles, its surface.
#[derive(Debug)]
pub struct Terrain {
    reader: Reader,
    codec: TileCodec,
    memory: MemoryLimit,
    tiles: Mutex<Kept>,
}

/// Tiles by place, with the time they were last used.
#[derive(Debug, Default)]
struct Kept {
    clock: u64,
    tiles: HashMap<LevelTile, (u64, Option<Arc<Tile>>)>,
}

/// Opens a file of this machine or, with the feature `remote`, at an address; its model must be inside it or the one
/// inside this program.
pub fn open(path: impl AsRef<Path>) -> Result<Terrain, Error> {
    Terrain::open(source(path.as_ref())?, None)
}

/// The bytes of a file of this machine or, with the feature `remote`, at an address.
pub fn source(path: &Path) -> Result<Box<dyn ByteSource>, Error> {
    source_with(path, RemoteOptions::default())
}

/// As [`source`], with what holds for an address.
#[cfg_attr(
    not(feature = "remote"),
    expect(unused_variables, reason = "addresses cannot be read")
)]
pub fn source_with(path: &Path, options: RemoteOptions) -> Result<Box<dyn ByteSource>, Error> {
    #[cfg(feature = "remote")]
    if let Some(address) = path.to_str().filter(|name| is_address(name)) {
        return Ok(Box::new(crate::RemoteFile::open_with(address, options)?));
    }
    Ok(Box::new(LocalFile::open(path)?))
}

impl Terrain {
    /// Opens a file from any source, with its model where it is neither inside the file nor inside this program.
    pub fn open(source: Box<dyn ByteSource>, model: Option<FileModel>) -> Result<Self, Error> {
        Self::open_within(source, model, MemoryLimit::default())
    }

    /// As [`Terrain::open`], where the file may take so much memory.
    pub fn open_within(
        source: Box<dyn ByteSource>,
        model: Option<FileModel>,
        memory: MemoryLimit,
    ) -> Result<Self, Error> {
        let reader = Reader::open(source)?;
        let header = reader.header();
        let model = match &header.model {
            None => None,
            Some(id) => {
                let known = model.or_else(|| FileModel::built_in(&id.sha256));
                let model = if let Some(model) = known {
                    model
                } else {
                    let bytes = reader.embedded_model(memory)?.ok_or(Error::NoModel)?;
                    FileModel::from_bytes_within(&bytes, memory)?
                };
                if model.sha256() != id.sha256 {
                    return Err(Error::OtherModel {
                        name: if id.name.is_empty() {
                            "without a name".to_owned()
                        } else {
                            id.name.clone()
                        },
                        expected: hexadecimal(&id.sha256),
                        found: hexadecimal(&model.sha256()),
                    });
                }
                let side = usize::from(header.pyramid.side());
                if model.side().is_some_and(|needed| needed != side) {
                    return Err(Error::Setting {
                        what: "the side of a tile",
                        must: "that of the model",
                        value: side.to_string(),
                    });
                }
                Some(model)
            }
        };
        let codec = TileCodec {
            model,
            bits: 8,
            coding: Coding::Shortest,
            rate: match header.bound {
                ErrorBound::Lossless { .. } => Rate::Lossless,
                _ => Rate::Tokens,
            },
            is_f32: header.bound == ErrorBound::Lossless { as_f32: true },
            source_step_m: 0.0,
            effort: 0,
        };
        let terrain = Self {
            reader,
            codec,
            memory,
            tiles: Mutex::default(),
        };
        // A tile that is too large for the memory should be known before one is decoded.
        terrain.decoders(1)?;
        Ok(terrain)
    }

    /// Memory that this file may take.
    pub fn memory(&self) -> MemoryLimit {
        self.memory
    }

    /// Threads that may decode tiles at a time, of so many.
    pub fn decoders(&self, jobs: usize) -> Result<usize, Error> {
        let side = u64::from(self.header().pyramid.side());
        let model = self.codec.model.as_ref();
        let bytes = DECODING_BYTES * side * side + model.map_or(0, FileModel::working_bytes);
        let memory = self.memory;
        Resources { jobs, memory }.jobs_of(bytes)
    }

    /// What the file holds.
    pub fn header(&self) -> &Header {
        self.reader.header()
    }

    /// The file below.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(crate) fn codec(&self) -> &TileCodec {
        &self.codec
    }

    /// The continuous surface at full resolution.
    pub fn surface(&self) -> Result<Surface<'_>, Error> {
        Surface::new(self)
    }

    /// Decodes a tile; `None` where it has no data.
    pub fn tile(&self, place: LevelTile) -> Result<Option<Arc<Tile>>, Error> {
        let lock = || self.tiles.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut kept = lock();
            kept.clock += 1;
            let clock = kept.clock;
            if let Some((used, tile)) = kept.tiles.get_mut(&place) {
                *used = clock;
                return Ok(tile.clone());
            }
        }
        let tile = self.decode(place)?.map(Arc::new);
        let mut kept = lock();
        let side = usize::from(self.header().pyramid.side());
        let most = (KEPT_PIXELS / (side * side)).clamp(*KEPT.start(), *KEPT.end());
        if kept.tiles.len() >= most
            && let Some(oldest) = kept
                .tiles
                .iter()
                .min_by_key(|(_, (used, _))| *used)
                .map(|(place, _)| *place)
        {
            kept.tiles.remove(&oldest);
        }
        let clock = kept.clock;
        kept.tiles.insert(place, (clock, tile.clone()));
        Ok(tile)
    }

    /// Decodes a tile without keeping it.
    pub fn decode(&self, place: LevelTile) -> Result<Option<Tile>, Error> {
        let window = self.header().pyramid.window(place)?;
        let record = self.reader.tile(place)?;
        record
            .map(|record| self.codec.decode(&record, window))
            .transpose()
    }

    /// The transform from the corner of the first pixel, in GDAL's order.
    pub fn corner_affine(&self) -> [f64; 6] {
        let header = self.header();
        let mut affine = header.affine;
        if header.is_georeferenced && header.pixel_is_point {
            affine[0] -= 0.5 * affine[1] + 0.5 * affine[2];
            affine[3] -= 0.5 * affine[4] + 0.5 * affine[5];
        }
        affine
    }

    /// As [`Terrain::read`], with so many threads and without keeping tiles: for going through a whole file.
    pub fn read_with(&self, level: u8, window: Window, jobs: usize) -> Result<Vec<f64>, Error> {
        self.check_window(level, window)?;
        let places = self.places(level, window);
        let jobs = self.decoders(jobs)?;
        let heights = Mutex::new(vec![f64::NAN; window.width * window.height]);
        in_parallel(0..places.len(), jobs, &|index| {
            if let Some(tile) = self.decode(places[index])? {
                let mut heights = heights.lock().unwrap_or_else(PoisonError::into_inner);
                paste(&tile, window, &mut heights);
            }
            Ok(())
        })?;
        Ok(heights.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The tiles that a window touches, row by row.
    fn places(&self, level: u8, window: Window) -> Vec<LevelTile> {
        let side = usize::from(self.header().pyramid.side());
        let columns = window.column / side..(window.column + window.width).div_ceil(side);
        let rows = window.row / side..(window.row + window.height).div_ceil(side);
        rows.flat_map(|row| columns.clone().map(move |column| TileId { column, row }))
            .map(|id| LevelTile { level, id })
            .collect()
    }

    fn check_window(&self, level: u8, window: Window) -> Result<(), Error> {
        let (width, height) = self.header().pyramid.size(level).unwrap_or_default();
        let pixels = window.pixels().unwrap_or(usize::MAX) as u64;
        self.memory.check(
            "the heights of such a window",
            pixels.saturating_mul(8),
            "read a smaller part or an overview, or ",
        )?;
        if window.fits(width as usize, height as usize) {
            return Ok(());
        }
        Err(Error::Setting {
            what: "a window",
            must: "inside the raster",
            value: format!(
                "{}x{} at column {}, row {} of level {level}",
                window.width, window.height, window.column, window.row
            ),
        })
    }

    /// Heights of a window of a level, row by row; NaN where there is no data.
    pub fn read(&self, level: u8, window: Window) -> Result<Vec<f64>, Error> {
        self.check_window(level, window)?;
        let mut heights = vec![f64::NAN; window.width * window.height];
        for place in self.places(level, window) {
            if let Some(tile) = self.tile(place)? {
                paste(&tile, window, &mut heights);
            }
        }
        Ok(heights)
    }
}

/// Puts the part of a tile that a window shares into the window's heights.
fn paste(tile: &Tile, window: Window, heights: &mut [f64]) {
    let Some(shared) = tile.window.intersection(&window) else {
        return;
    };
    let valid = tile.valid_heights();
    for row in shared.row..shared.row + shared.height {
        let from = (row - tile.window.row) * tile.window.width + shared.column - tile.window.column;
        let to = (row - window.row) * window.width + shared.column - window.column;
        heights[to..to + shared.width].copy_from_slice(&valid[from..from + shared.width]);
    }
}

/// Bytes as hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
