//! The plan of an encoding in shards: complete, so that a shard is a function of its plan and its model alone.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use terrane_codec::division::{Area, Division};
use terrane_codec::format::{
    Coding, ErrorBound, GeoKeys, Header, MemoryLimit, ModelId, Pyramid, Samples, Statistics, Window,
};
use terrane_codec::{Rate, TileEncoder};
use terrane_geo::{AtomicFile, GeoTiff, Mosaic, Output, Piece, RasterSource};

use crate::input::Input;
use crate::open::{MODELS, ModelFile, read_model};
use crate::{Checks, Error, Result, Settings};

/// The version of plans that this program writes and reads.
const VERSION: u32 = 1;
/// This program; another version may encode otherwise.
pub(crate) const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// How a raster is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// Squares of so many tiles, a power of two.
    Tiles(usize),
    /// So many shards of nearly the same size.
    Shards(usize),
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    #[serde(rename = "terrane_shard_plan")]
    version: u32,
    program: String,
    /// The rasters and their windows.
    pub(crate) inputs: Vec<Input>,
    raster: Raster,
    coding: CodingPlan,
    /// The coarsest level that shards have by themselves.
    top: u8,
    shards: Vec<ShardArea>,
}

/// The raster, as the head of the file describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raster {
    width: u32,
    height: u32,
    affine: [f64; 6],
    #[serde(rename = "is_placed")]
    is_georeferenced: bool,
    pixel_is_point: bool,
    epsg: [u32; 2],
    key_directory: Vec<u16>,
    key_doubles: Vec<f64>,
    key_text: String,
    wkt: String,
    sample_type: String,
    nodata: Option<Number>,
    scale: f64,
    offset: f64,
    unit: String,
    description: String,
}

/// A number that may be none, which JSON cannot say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Text(String),
}

/// How tiles are coded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CodingPlan {
    method: String,
    tile: u16,
    levels: u8,
    rate: RatePlan,
    bits: u8,
    fixed_width: bool,
    is_f32: bool,
    source_step_m: f64,
    effort: u8,
    model: Option<ModelPlan>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RatePlan {
    MaxErrorM(f64),
    RmseM(f64),
    Bpp(f64),
    Lossless,
    Tokens,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelPlan {
    name: String,
    sha256: String,
    /// Where it is, where it is not in the program.
    path: Option<PathBuf>,
    embed: bool,
}

/// The rectangle of tiles of one shard.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShardArea {
    column: usize,
    row: usize,
    columns: usize,
    rows: usize,
}

impl Number {
    fn new(value: f64) -> Self {
        if value.is_finite() {
            Self::Finite(value)
        } else {
            Self::Text(value.to_string())
        }
    }

    fn value(&self) -> Option<f64> {
        match self {
            Self::Finite(value) => Some(*value),
            Self::Text(text) => text.parse().ok(),
        }
    }
}

impl RatePlan {
    fn new(rate: Rate) -> Result<Self> {
        Ok(match rate {
            Rate::MaxError(bound) => Self::MaxErrorM(bound),
            Rate::Rmse(target) => Self::RmseM(target),
            Rate::Bpp(target) => Self::Bpp(target),
            Rate::Lossless => Self::Lossless,
            Rate::Tokens => Self::Tokens,
            Rate::Step(_) | Rate::Overview { .. } => return Err(Error::WholeRate),
        })
    }

    fn rate(self) -> Rate {
        match self {
            Self::MaxErrorM(bound) => Rate::MaxError(bound),
            Self::RmseM(target) => Rate::Rmse(target),
            Self::Bpp(target) => Rate::Bpp(target),
            Self::Lossless => Rate::Lossless,
            Self::Tokens => Rate::Tokens,
        }
    }
}

impl Plan {
    /// Plans the encoding of one raster, or of several as a mosaic.
    pub fn new(
        inputs: &[PathBuf],
        settings: &Settings,
        split: Split,
        checks: Checks,
    ) -> Result<Self> {
        let prepared = settings.prepare(MemoryLimit::default())?;
        if prepared.is_whole {
            return Err(Error::WholeRate);
        }
        let (info, pieces) = if let [path] = inputs {
            let info = GeoTiff::open(path)?.info().clone();
            let window = Window::whole(info.width(), info.height());
            let path = path.clone();
            (info, vec![Piece { path, window }])
        } else {
            let mosaic = Mosaic::open(inputs)?;
            (mosaic.info().clone(), mosaic.pieces().to_vec())
        };
        let (header, codec) = prepared.start(&info, prepared.rate)?;
        let division = match split {
            Split::Tiles(tiles) => Division::squares(&header.pyramid, tiles)?,
            Split::Shards(count) => Division::into_areas(&header.pyramid, count)?,
        };
        let (width, height) = header.pyramid.size(0).unwrap_or_default();
        let model = match &header.model {
            None => None,
            Some(id) => Some(ModelPlan {
                name: id.name.clone(),
                sha256: hex::encode(id.sha256),
                path: match &settings.model {
                    None => None,
                    Some(path) => {
                        Some(
                            std::path::absolute(path).map_err(|source| Error::Unreadable {
                                path: path.clone(),
                                source,
                            })?,
                        )
                    }
                },
                embed: settings.embed_model,
            }),
        };
        Ok(Self {
            version: VERSION,
            program: PROGRAM.to_owned(),
            inputs: pieces
                .iter()
                .map(|piece| Input::new(piece, checks))
                .collect::<Result<_>>()?,
            raster: Raster {
                width,
                height,
                affine: header.affine,
                is_georeferenced: header.is_georeferenced,
                pixel_is_point: header.pixel_is_point,
                epsg: header.epsg,
                key_directory: header.geo_keys.directory,
                key_doubles: header.geo_keys.doubles,
                key_text: header.geo_keys.text,
                wkt: header.wkt,
                sample_type: header.samples.kind,
                nodata: header.samples.nodata.map(Number::new),
                scale: header.samples.scale,
                offset: header.samples.offset,
                unit: header.samples.unit,
                description: header.samples.description,
            },
            coding: CodingPlan {
                method: header.method.to_string(),
                tile: header.pyramid.side(),
                levels: header.pyramid.levels(),
                rate: RatePlan::new(codec.rate)?,
                bits: codec.bits,
                fixed_width: codec.coding == Coding::Fixed,
                is_f32: codec.is_f32,
                source_step_m: codec.source_step_m,
                effort: codec.effort,
                model,
            },
            top: division.top,
            shards: division
                .areas
                .iter()
                .map(|area| ShardArea {
                    column: area.column,
                    row: area.row,
                    columns: area.columns,
                    rows: area.rows,
                })
                .collect(),
        })
    }

    /// Reads a plan and checks that it agrees with itself and with this program.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).map_err(|source| Error::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let plan: Self = serde_json::from_slice(&text).map_err(|source| Error::NotAPlan {
            path: path.to_owned(),
            source,
        })?;
        let bad = |reason: String| Error::BadPlan {
            path: path.to_owned(),
            reason,
        };
        if plan.version != VERSION {
            return Err(bad(format!("its version is {}", plan.version)));
        }
        if plan.program != PROGRAM {
            return Err(Error::OtherProgram {
                plan: plan.program,
                program: PROGRAM,
            });
        }
        let header = plan.header().map_err(|error| bad(error.to_string()))?;
        let (width, height) = (plan.raster.width as usize, plan.raster.height as usize);
        if !plan
            .inputs
            .iter()
            .all(|input| input.piece().window.fits(width, height))
        {
            return Err(bad("a raster lies outside the grid".into()));
        }
        plan.division()
            .check(&header.pyramid)
            .map_err(|error| bad(error.to_string()))?;
        Ok(plan)
    }

    /// Writes the plan as JSON.
    pub fn write(&self, out: &Output) -> Result<()> {
        let failed = |source| Error::Unwritable {
            path: out.path().to_owned(),
            source,
        };
        let mut file = AtomicFile::create(out)?;
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| failed(std::io::Error::other(error)))?;
        let out = file.file();
        out.write_all(text.as_bytes())
            .and_then(|()| out.write_all(b"\n"))
            .map_err(failed)?;
        Ok(file.commit()?)
    }

    /// SHA-256 of the plan, whatever the layout of its file.
    pub fn sha256(&self) -> [u8; 32] {
        // A plan is numbers and text, which always become JSON.
        Sha256::digest(serde_json::to_vec(self).unwrap_or_default()).into()
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// How the raster is divided.
    pub fn division(&self) -> Division {
        let areas = self
            .shards
            .iter()
            .map(|shard| Area {
                column: shard.column,
                row: shard.row,
                columns: shard.columns,
                rows: shard.rows,
            })
            .collect();
        Division {
            top: self.top,
            areas,
        }
    }

    /// The head of the file.
    pub(crate) fn header(&self) -> Result<Header> {
        let Raster { width, height, .. } = self.raster;
        let raster = self.raster.clone();
        let coding = &self.coding;
        let unknown = |what, value: &str| {
            terrane_codec::Error::Format(terrane_codec::format::Error::Unsupported {
                what,
                value: value.to_owned(),
            })
        };
        let model = match &coding.model {
            None => None,
            Some(model) => Some(ModelId {
                sha256: hash(&model.sha256).ok_or_else(|| unknown("hash", &model.sha256))?,
                name: model.name.clone(),
                address: String::new(),
                embedded: None,
            }),
        };
        Ok(Header {
            pyramid: Pyramid::new(width, height, coding.tile, coding.levels)?,
            method: coding
                .method
                .parse()
                .map_err(|_| unknown("method", &coding.method))?,
            affine: raster.affine,
            is_georeferenced: raster.is_georeferenced,
            pixel_is_point: raster.pixel_is_point,
            epsg: raster.epsg,
            geo_keys: GeoKeys {
                directory: raster.key_directory,
                doubles: raster.key_doubles,
                text: raster.key_text,
            },
            wkt: raster.wkt,
            samples: Samples {
                kind: raster.sample_type,
                nodata: raster.nodata.as_ref().and_then(Number::value),
                scale: raster.scale,
                offset: raster.offset,
                unit: raster.unit,
                description: raster.description,
            },
            bound: match coding.rate {
                RatePlan::MaxErrorM(bound) => ErrorBound::MaxError(bound),
                RatePlan::Lossless => ErrorBound::Lossless {
                    as_f32: coding.is_f32,
                },
                _ => ErrorBound::None,
            },
            statistics: Statistics::default(),
            model,
        })
    }

    /// The model of the plan: from a file that is given now, from where the plan has it, or from the program.
    pub(crate) fn model(
        &self,
        given: Option<&Path>,
        memory: MemoryLimit,
    ) -> Result<Option<ModelFile>> {
        let Some(model) = &self.coding.model else {
            return Ok(None);
        };
        let other = || Error::PlanModel {
            name: model.name.clone(),
            expected: model.sha256.clone(),
        };
        let found = if let Some(path) = given.or(model.path.as_deref()) {
            read_model(path, memory)?
        } else {
            let sha256 = hash(&model.sha256).ok_or_else(other)?;
            let built_in = MODELS.built_in(&sha256).ok_or_else(other)?;
            let bytes = MODELS.built_in_bytes(&sha256).ok_or_else(other)?;
            (built_in, bytes.to_vec())
        };
        if hex::encode(found.0.sha256()) == model.sha256 {
            Ok(Some(found))
        } else {
            Err(other())
        }
    }

    /// Whether the model goes into the file.
    pub(crate) fn embeds_model(&self) -> bool {
        self.coding.model.as_ref().is_some_and(|model| model.embed)
    }

    /// The encoder of tiles.
    pub(crate) fn encoder(&self, model: Option<&ModelFile>) -> TileEncoder {
        let coding = &self.coding;
        TileEncoder {
            model: model.map(|(model, _)| model.clone()),
            bits: coding.bits,
            coding: if coding.fixed_width {
                Coding::Fixed
            } else {
                Coding::Shortest
            },
            rate: coding.rate.rate(),
            is_f32: coding.is_f32,
            source_step_m: coding.source_step_m,
            effort: coding.effort,
        }
    }
}

fn hash(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    hex::decode_to_slice(text, &mut hash).ok()?;
    Some(hash)
}
