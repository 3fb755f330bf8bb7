//! What a generated file is made of. No height depends on a machine's own sine or logarithm.

use std::io::Cursor;
use std::path::Path;

#[cfg(not(target_family = "wasm"))]
use terrane_codec::division::Division;
use terrane_codec::encode::Encoding;
use terrane_codec::format::{
    Coding, ErrorBound, GeoKeys, Header, Method, ModelId, Pyramid, Samples, Statistics, Window,
};
use terrane_codec::journal::Journal;
#[cfg(not(target_family = "wasm"))]
use terrane_codec::merge::Merge;
use terrane_codec::random::Random;
#[cfg(not(target_family = "wasm"))]
use terrane_codec::shard::{ShardEncoding, ShardId};
use terrane_codec::{
    Error, FileModel, Measured, Models, Profile, Rate, Resources, Terrain, TerrainOptions,
    TileEncoder,
};

/// What heights are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    Flat,
    WholeMetres,
    Centimetres,
    Hills,
    Noise,
    Huge,
    Tiny,
    Doubles,
    Lakes,
    Terraces,
    /// Whole metres above zeros below zero.
    Sea,
    /// Whole numbers of 32 bits, which floats of 32 bits do not tell apart.
    Counts,
    /// Zeros of both signs, the smallest numbers, and the largest that are heights.
    Odd,
}

impl Ground {
    pub(crate) const ALL: [Self; 13] = [
        Self::Flat,
        Self::WholeMetres,
        Self::Centimetres,
        Self::Hills,
        Self::Noise,
        Self::Huge,
        Self::Tiny,
        Self::Doubles,
        Self::Lakes,
        Self::Terraces,
        Self::Sea,
        Self::Counts,
        Self::Odd,
    ];

    fn is_f32(self) -> bool {
        !matches!(self, Self::Doubles | Self::WholeMetres | Self::Counts)
    }
}

/// Where there is no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gaps {
    None,
    All,
    Holes,
    Pixels,
    Stripes,
    Half,
    /// A pixel with data among none.
    AllButOne,
}

impl Gaps {
    pub(crate) const ALL: [Self; 7] = [
        Self::None,
        Self::All,
        Self::Holes,
        Self::Pixels,
        Self::Stripes,
        Self::Half,
        Self::AllButOne,
    ];
}

/// What codes heights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Integers,
    Context(Profile),
}

/// One generated file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recipe {
    pub(crate) seed: u64,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) side: u16,
    pub(crate) ground: Ground,
    pub(crate) gaps: Gaps,
    pub(crate) codec: Codec,
    pub(crate) rate: Rate,
    pub(crate) effort: u8,
    pub(crate) embeds_model: bool,
}

/// Noise from a seed and a place.
fn noise(seed: u64, column: usize, row: usize) -> u64 {
    Random::new(seed, (row as u64) << 32 | column as u64).next_u64()
}

/// A number below another from noise, also where machines count in 32 bits.
fn below(noise: u64, bound: usize) -> usize {
    (noise % bound as u64) as usize
}

/// A wave between −1 and 1 that is made of parabolas.
fn wave(at: usize, period: usize) -> f64 {
    let t = (at % (2 * period)) as f64 / period as f64;
    if t < 1.0 {
        4.0 * t * (1.0 - t)
    } else {
        -4.0 * (t - 1.0) * (2.0 - t)
    }
}

impl Recipe {
    /// The recipe of a number: all kinds come, and most files are small.
    pub(crate) fn of_number(number: u64) -> Self {
        let mut random = Random::new(0x7e44_a9e1, number);
        let mut pick = |bound: usize| random.below(bound);
        let size = |pick: &mut dyn FnMut(usize) -> usize| match pick(8) {
            0 => 1 + pick(3),
            1..4 => 1 + pick(40),
            4..6 => 1 + pick(110),
            6 => 16 * (1 + pick(8)) + pick(3) - 1,
            _ => 1 + pick(250),
        };
        let (width, height) = (size(&mut pick), size(&mut pick));
        let side = [16, 16, 16, 18, 22, 32, 32, 64, 256, 512][pick(10)];
        let ground = Ground::ALL[pick(Ground::ALL.len())];
        let gaps = match pick(3) {
            0 => Gaps::None,
            _ => Gaps::ALL[pick(Gaps::ALL.len())],
        };
        let codec = match pick(16) {
            0..4 => Codec::Integers,
            4..14 => Codec::Context(Profile::Fast),
            14 => Codec::Context(Profile::Standard),
            _ => Codec::Context(Profile::Best),
        };
        let rate = match pick(10) {
            0..3 => Rate::Lossless,
            3..7 => Rate::MaxError([0.001, 0.01, 0.1, 0.5, 5.0][pick(5)]),
            7 => Rate::Rmse([0.01, 0.1, 1.0][pick(3)]),
            8 => Rate::Bpp([1.0, 3.0, 8.0][pick(3)]),
            _ if codec == Codec::Integers => Rate::MaxError(0.25),
            _ => Rate::Step([0.02, 0.3, 2.0][pick(3)]),
        };
        Self {
            seed: number,
            width,
            height,
            side,
            ground,
            gaps,
            codec,
            rate,
            effort: [0, 1, 1, 1, 2, 3][pick(6)],
            embeds_model: pick(20) == 0,
        }
    }

    fn is_missing(&self, column: usize, row: usize) -> bool {
        let far = |x: usize, y: usize| column.abs_diff(x).pow(2) + row.abs_diff(y).pow(2);
        let Self {
            seed,
            width,
            height,
            ..
        } = *self;
        match self.gaps {
            Gaps::None => false,
            Gaps::All => true,
            Gaps::Holes => (0..3).any(|hole| {
                let at = noise(seed ^ 0x501e5, hole, 0);
                let (x, y) = (below(at, width), below(at >> 32, height));
                far(x, y) < (2 + hole * width.min(height) / 8).pow(2)
            }),
            Gaps::Pixels => noise(seed ^ 0x919e1, column, row).is_multiple_of(11),
            Gaps::Stripes => (column + 2 * row) / 3 % 4 == below(seed, 4),
            Gaps::Half => column * height < row * width,
            Gaps::AllButOne => below(noise(seed, 0, 0), width * height) != row * width + column,
        }
    }

    fn height_at(&self, column: usize, row: usize) -> f64 {
        let random = noise(self.seed, column, row);
        let rough = (random >> 40) as f64 / (1_u64 << 24) as f64;
        let shift = below(self.seed, 1000);
        let hills = 400.0
            + 12.0 * wave(column + shift, 31) * wave(row + shift / 3, 23)
            + 3.0 * wave(column + 2 * row, 17)
            + 0.2 * rough;
        let float = |height: f64| f64::from(height as f32);
        match self.ground {
            Ground::Flat => 12.5,
            Ground::WholeMetres => (hills * 3.0).round() - 1000.0,
            Ground::Centimetres => float((hills * 100.0).round() * 0.01),
            Ground::Noise => float((rough - 0.5) * 4000.0),
            Ground::Counts => 2_147_483_648.0 + (hills * 40.0).round(),
            Ground::Huge => float(hills * 1e7),
            Ground::Tiny => float((hills - 400.0) * 1e-6),
            Ground::Doubles => hills / 3.0,
            // Terraced ponds, each right above the next, below slopes.
            Ground::Lakes if hills < 407.0 => float((hills / 5.0).floor() * 5.0 + 0.3),
            Ground::Hills | Ground::Lakes => float(hills),
            Ground::Sea if hills < 401.0 => -0.0,
            Ground::Terraces | Ground::Sea => float(hills.floor()),
            Ground::Odd => [
                0.0,
                -0.0,
                f64::from(f32::from_bits(1)),
                f64::from(f32::MIN_POSITIVE),
                -1.0,
                float(9e29),
                float(-9e29),
                float(0.1),
            ][below(random, 8)],
        }
    }

    /// The heights, row by row; NaN where there is no data.
    pub(crate) fn heights(&self) -> Vec<f64> {
        (0..self.width * self.height)
            .map(|index| {
                let (column, row) = (index % self.width, index / self.width);
                if self.is_missing(column, row) {
                    f64::NAN
                } else {
                    self.height_at(column, row)
                }
            })
            .collect()
    }

    pub(crate) fn encoder(&self) -> TileEncoder {
        let (method, model) = match self.codec {
            Codec::Integers => (Method::Integers, None),
            Codec::Context(profile) => (Method::Context, Some(profile.model())),
        };
        TileEncoder {
            method,
            model,
            bits: 8,
            coding: Coding::Shortest,
            rate: self.rate,
            is_f32: self.ground.is_f32(),
            source_step_m: if matches!(self.ground, Ground::WholeMetres | Ground::Counts) {
                1.0
            } else {
                0.0
            },
            effort: self.effort,
        }
    }

    fn embedded(&self) -> Option<&'static [u8]> {
        match self.codec {
            Codec::Context(profile) if self.embeds_model => Some(profile.bytes()),
            _ => None,
        }
    }

    fn header(&self, encoder: &TileEncoder) -> Result<Header, Error> {
        let (width, height) = (self.width as u32, self.height as u32);
        let mut random = Random::new(self.seed, 0x9e0);
        let mut pick = |bound: usize| random.below(bound);
        let is_georeferenced = pick(5) > 0;
        let affine = match pick(3) {
            _ if !is_georeferenced => [0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            0 => [2_600_000.0, 2.0, 0.0, 1_200_000.0, 0.0, -2.0],
            1 => [7.123_456_789, 1.0 / 3600.0, 0.0, 47.5, 0.0, -1.0 / 3600.0],
            _ => [-5e5, 0.7, 0.1, 1e-3, -0.1, -0.7],
        };
        let keys = pick(6);
        Ok(Header {
            pyramid: Pyramid::complete(width, height, self.side)?,
            method: encoder.method,
            affine,
            is_georeferenced,
            pixel_is_point: pick(3) == 0,
            epsg: [[0, 0], [2056, 5728], [4326, 0], [32632, 3855]][pick(4)],
            geo_keys: GeoKeys {
                directory: (0..4 * keys).map(|key| (key * 257) as u16).collect(),
                doubles: (0..keys).map(|key| key as f64 / 3.0).collect(),
                text: ["", "WGS 84|", "Höhe über Meer|ü"][pick(3)].into(),
            },
            wkt: ["", "PROJCRS[\"CH1903+ / LV95\"]"][pick(2)].into(),
            samples: Samples {
                kind: ["float32", "int16", "float64"][pick(3)].into(),
                nodata: [
                    None,
                    Some(-9999.0),
                    Some(f64::NAN),
                    Some(f64::NEG_INFINITY),
                    Some(f64::from(f32::MIN)),
                ][pick(5)],
                scale: [1.0, 0.1, 1e-3][pick(3)],
                offset: [0.0, -1000.0][pick(2)],
                unit: ["", "metre", "Fuß"][pick(3)].into(),
                description: ["", "heights"][pick(2)].into(),
            },
            bound: match self.rate {
                Rate::MaxError(bound) => ErrorBound::MaxError(bound),
                Rate::Lossless => ErrorBound::Lossless {
                    as_f32: encoder.is_f32,
                },
                _ => ErrorBound::None,
            },
            statistics: Statistics::default(),
            overviews: Vec::new(),
            model: encoder.model.as_ref().map(|model: &FileModel| ModelId {
                sha256: model.sha256(),
                name: model.name().to_owned(),
                address: ["", "https://example.org/context.safetensors"][pick(2)].into(),
                embedded: None,
            }),
        })
    }

    /// The file, with so many threads.
    pub(crate) fn encode(&self, jobs: usize) -> Result<(Vec<u8>, Measured), Error> {
        self.encode_until(jobs, None, usize::MAX)
    }

    /// The file, with a journal; stopped after so many trees as if by a power cut.
    pub(crate) fn encode_until(
        &self,
        jobs: usize,
        journal: Option<&Path>,
        trees: usize,
    ) -> Result<(Vec<u8>, Measured), Error> {
        let (heights, encoder) = (self.heights(), self.encoder());
        let header = self.header(&encoder)?;
        let journal = journal
            .map(|path| Journal::open(path, &header, &encoder, "generated"))
            .transpose()?;
        let mut done = 0;
        let encoding = Encoding {
            header,
            encoder: &encoder,
            embedded: self.embedded(),
            journal: journal.as_ref(),
            resources: Resources::of_jobs(jobs),
        };
        let (file, measured) = encoding.run(
            Cursor::new(Vec::new()),
            &mut |window: Window| Ok(self.read(&heights, window)),
            &mut |_| {
                done += 1;
                if done < trees {
                    Ok(())
                } else {
                    Err(Error::Stopped)
                }
            },
        )?;
        Ok((file.into_inner(), measured))
    }

    /// The file, merged from shards: from as many as asked for, or as there are trees.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn encode_in_shards(&self, count: usize) -> Result<Vec<u8>, Error> {
        let (heights, encoder) = (self.heights(), self.encoder());
        let header = self.header(&encoder)?;
        let pyramid = &header.pyramid;
        let division = (1..=count)
            .rev()
            .find_map(|count| Division::into_areas(pyramid, count).ok())
            .expect("a raster is one area at least");
        let (plan, resources) = ([7; 32], Resources::of_jobs(2));
        let mut shards = Vec::new();
        for (number, &area) in division.areas.iter().enumerate() {
            let mut file = Vec::new();
            let shard = ShardEncoding {
                id: ShardId {
                    plan,
                    number: number as u32,
                },
                pyramid,
                encoder: &encoder,
                area,
                top: division.top,
                resources,
            };
            shard.run(
                &mut file,
                &mut |window: Window| Ok(self.read(&heights, window)),
                &mut |_| Ok(()),
            )?;
            shards.push(file);
        }
        let merge = Merge {
            header: header.clone(),
            encoder: &encoder,
            embedded: self.embedded(),
            division: &division,
            plan,
            resources,
        };
        let mut opened = vec![false; shards.len()];
        let (file, _) = merge.run(
            Cursor::new(Vec::new()),
            &mut |number| {
                if std::mem::replace(&mut opened[number as usize], true) {
                    return Err(Error::Source("a shard was opened twice".into()));
                }
                Ok(Box::new(shards[number as usize].clone()))
            },
            &mut |_| Ok(()),
        )?;
        Ok(file.into_inner())
    }

    fn read(&self, heights: &[f64], window: Window) -> Vec<f64> {
        crop(heights, self.width, window)
    }
}

/// The heights of a window.
pub(crate) fn crop(heights: &[f64], width: usize, window: Window) -> Vec<f64> {
    (window.row..window.row + window.height)
        .flat_map(|row| &heights[row * width + window.column..][..window.width])
        .copied()
        .collect()
}

pub(crate) fn open(file: &[u8]) -> Terrain {
    let options = TerrainOptions {
        models: Models::LIGHT,
        ..TerrainOptions::default()
    };
    Terrain::open(Box::new(file.to_vec()), options).unwrap()
}

/// The window of a whole level.
pub(crate) fn level_window(terrain: &Terrain, level: u8) -> Window {
    let (width, height) = terrain.header().pyramid.size(level).unwrap();
    Window::whole(width as usize, height as usize)
}

/// The heights of every level.
pub(crate) fn levels(terrain: &Terrain) -> Vec<Vec<f64>> {
    (0..terrain.header().pyramid.levels())
        .map(|level| terrain.read(level, level_window(terrain, level)).unwrap())
        .collect()
}
