//! Whole files: rasters in, heights and surfaces out.
#![expect(clippy::unwrap_used, reason = "a test may stop anywhere")]

mod conformance;
mod damage;
mod extremes;
mod lying_servers;
mod overviews;
mod rates;
#[cfg(feature = "remote")]
mod remote;
mod surfaces;

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use terrane_codec::encode::Encoding;
use terrane_codec::format::{
    Coding, ErrorBound, GeoKeys, Header, LevelTile, Method, ModelId, ParentMask, Pyramid, Record,
    Samples, Statistics, Stored, Window,
};
use terrane_codec::journal::Journal;
use terrane_codec::{
    FileModel, Measured, Profile, Rate, Resources, Terrain, TerrainOptions, TileEncoder,
};
use terrane_networks::TrainedModel;

/// A raster in memory.
pub(crate) struct Raster {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) heights: Vec<f64>,
}

impl Raster {
    pub(crate) fn new(
        width: usize,
        height: usize,
        height_at: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let heights = (0..width * height)
            .map(|index| height_at(index % width, index / width))
            .collect();
        Self {
            width,
            height,
            heights,
        }
    }

    /// Hills with a gap, as 32-bit floats.
    pub(crate) fn hills(width: usize, height: usize) -> Self {
        Self::new(width, height, |column, row| {
            let (x, y) = (column as f64, row as f64);
            if (x - 40.0).hypot(y - 150.0) < 17.5 {
                return f64::NAN;
            }
            let height = 431.0
                + 12.0 * (x / 61.0).sin() * (y / 47.0).cos()
                + 3.0 * (x / 9.0 + y / 13.0).sin()
                + 0.05 * ((column * 7919 + row * 104_729) % 101) as f64 / 101.0;
            f64::from(height as f32)
        })
    }

    fn read(&self, window: Window) -> Vec<f64> {
        (window.row..window.row + window.height)
            .flat_map(|row| &self.heights[row * self.width + window.column..][..window.width])
            .copied()
            .collect()
    }

    /// The raster as a file.
    pub(crate) fn encode(&self, codec: &TileEncoder, jobs: usize) -> (Vec<u8>, Measured) {
        self.try_encode(codec, jobs, 256).unwrap()
    }

    pub(crate) fn try_encode(
        &self,
        codec: &TileEncoder,
        jobs: usize,
        side: u16,
    ) -> Result<(Vec<u8>, Measured), terrane_codec::Error> {
        self.encode_until(codec, jobs, side, None, usize::MAX, None)
    }

    /// The raster as a file that holds its model.
    pub(crate) fn encode_embedding(
        &self,
        codec: &TileEncoder,
        side: u16,
        model: Option<&[u8]>,
    ) -> (Vec<u8>, Measured) {
        self.encode_until(codec, 1, side, None, usize::MAX, model)
            .unwrap()
    }

    /// Encodes with a journal, and stops after so many strips as if by a power cut.
    pub(crate) fn encode_until(
        &self,
        codec: &TileEncoder,
        jobs: usize,
        side: u16,
        journal: Option<&Path>,
        strips: usize,
        embedded: Option<&[u8]>,
    ) -> Result<(Vec<u8>, Measured), terrane_codec::Error> {
        let (width, height) = (self.width as u32, self.height as u32);
        let header = Header {
            pyramid: Pyramid::complete(width, height, side)?,
            method: codec.method,
            affine: [2_600_000.0, 2.0, 0.0, 1_200_000.0, 0.0, -2.0],
            is_georeferenced: true,
            pixel_is_point: false,
            epsg: [2056, 5728],
            geo_keys: GeoKeys {
                directory: vec![1, 1, 0, 1, 3072, 0, 1, 2056],
                doubles: vec![0.5],
                text: "CH1903+|".into(),
            },
            wkt: String::new(),
            samples: Samples {
                nodata: Some(-9999.0),
                ..Samples::default()
            },
            bound: match codec.rate {
                Rate::MaxError(bound) => ErrorBound::MaxError(bound),
                Rate::Lossless => ErrorBound::Lossless {
                    as_f32: codec.is_f32,
                },
                _ => ErrorBound::None,
            },
            statistics: Statistics::default(),
            overviews: Vec::new(),
            model: codec.model.as_ref().map(|model| ModelId {
                sha256: model.sha256(),
                name: model.name().to_owned(),
                address: String::new(),
                embedded: None,
            }),
        };
        let journal = journal
            .map(|path| Journal::open(path, &header, codec, "hills"))
            .transpose()?;
        let mut done = 0;
        let encoding = Encoding {
            header,
            encoder: codec,
            embedded,
            journal: journal.as_ref(),
            resources: Resources::of_jobs(jobs),
        };
        let (file, measured) = encoding.run(
            Cursor::new(Vec::new()),
            &mut |window: Window| Ok(self.read(window)),
            &mut |_| {
                done += 1;
                if done < strips {
                    Ok(())
                } else {
                    Err(terrane_codec::Error::Stopped)
                }
            },
        )?;
        Ok((file.into_inner(), measured))
    }
}

/// Integers at a rate.
pub(crate) fn integers(rate: Rate) -> TileEncoder {
    TileEncoder {
        method: Method::Integers,
        model: None,
        bits: 8,
        coding: Coding::Shortest,
        rate,
        is_f32: true,
        source_step_m: 0.0,
        effort: 1,
    }
}

/// The built-in HUVR+SIREN at a rate.
pub(crate) fn tokens(rate: Rate) -> TileEncoder {
    TileEncoder {
        method: Method::HuvrSiren,
        model: Some(FileModel::Tokens(Arc::new(
            TrainedModel::built_in().clone(),
        ))),
        ..integers(rate)
    }
}

/// The context codec at a rate.
pub(crate) fn context(rate: Rate) -> TileEncoder {
    TileEncoder {
        method: Method::Context,
        model: Some(Profile::Fast.model()),
        ..integers(rate)
    }
}

pub(crate) fn try_open(
    file: Vec<u8>,
    model: Option<FileModel>,
) -> Result<Terrain, terrane_codec::Error> {
    let options = TerrainOptions {
        models: terrane::MODELS,
        model,
        ..TerrainOptions::default()
    };
    Terrain::open(Box::new(file), options)
}

pub(crate) fn open(file: &[u8]) -> Terrain {
    try_open(file.to_vec(), None).unwrap()
}

pub(crate) fn whole(terrain: &Terrain) -> Vec<f64> {
    let (width, height) = terrain.header().pyramid.size(0).unwrap();
    terrain
        .read(0, Window::whole(width as usize, height as usize))
        .unwrap()
}

/// The record of a tile, read in the light of the tile above it; `None` where it has none.
pub(crate) fn record(
    terrain: &Terrain,
    tile: LevelTile,
) -> Result<Option<Record>, terrane_codec::Error> {
    let pyramid = &terrain.header().pyramid;
    let Some(bytes) = terrain.reader().bytes(tile)? else {
        return Ok(None);
    };
    let is_tree = terrain.header().method.stored() == Stored::Wavelet;
    let window = pyramid.window(tile)?;
    let above = match pyramid.parent(tile).filter(|_| is_tree) {
        None => None,
        Some(parent) => terrain.tile(parent)?,
    };
    let mask = above.as_ref().map(|above| ParentMask {
        missing: above.missing.as_deref(),
        width: above.window.width,
        column: window.column / 2 - above.window.column,
        row: window.row / 2 - above.window.row,
    });
    let record = Record::parse(&bytes, pyramid.number(tile)?, window, mask.as_ref())?;
    record.check_method(terrain.header().method)?;
    Ok(Some(record))
}

/// The maximum difference of two rasters; gaps must be in the same pixels.
pub(crate) fn max_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| {
            assert_eq!(a.is_nan(), b.is_nan());
            if a.is_nan() { 0.0 } else { (a - b).abs() }
        })
        .fold(0.0, f64::max)
}
