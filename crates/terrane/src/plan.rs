//! The plan of an encoding in shards: complete, so that a shard is a function of its plan and its model alone.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use terrane_codec::division::Division;
use terrane_codec::format::{Coding, Header, MemoryLimit, Window};
use terrane_codec::{Rate, TileEncoder};
use terrane_geo::{
    AtomicFile, Cropped, GeoTiff, Mosaic, Note, Output, Piece, RasterOptionError, RasterOptions,
    RasterSource,
};

use crate::input::Input;
use crate::open::{MODELS, ModelFile, read_model};
use crate::{Checks, Error, Result, Settings};

/// The version of plans that this program writes and reads.
const VERSION: u32 = 1;
/// This program; another version may encode otherwise.
pub(crate) const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// Columns and rows of the grid on which rasters lie.
const MAX_PIXELS: usize = u32::MAX as usize;

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
    /// How they are read: settings by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    reading: BTreeMap<String, String>,
    /// Column and row of the first pixel on the grid of the rasters, of which a part is encoded.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    origin: Option<[usize; 2]>,
    /// The head of the file, without statistics.
    header: Header,
    coding: CodingPlan,
    /// How the raster is divided.
    division: Division,
    /// What should be said of the rasters.
    #[serde(skip)]
    notes: Vec<Note>,
}

/// How tiles are coded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CodingPlan {
    rate: Rate,
    bits: u8,
    coding: Coding,
    is_f32: bool,
    source_step_m: f64,
    effort: u8,
    /// Where the model is, where it is not in the program.
    model: Option<PathBuf>,
    embed_model: bool,
}

impl Plan {
    /// Plans the encoding of one raster, or of several as a mosaic.
    pub fn new(
        inputs: &[PathBuf],
        options: &RasterOptions,
        settings: &Settings,
        split: Split,
        checks: Checks,
    ) -> Result<Self> {
        let prepared = settings.prepare(MemoryLimit::default())?;
        if prepared.is_whole {
            return Err(Error::WholeRate);
        }
        let (raster, pieces): (Box<dyn RasterSource>, _) = if let [path] = inputs {
            let raster = GeoTiff::open_with(path, options)?;
            let window = Window::whole(raster.info().width(), raster.info().height());
            let path = path.clone();
            (Box::new(raster), vec![Piece { path, window }])
        } else {
            let mosaic = Mosaic::open_with(inputs, options)?;
            let pieces = mosaic.pieces().to_vec();
            (Box::new(mosaic), pieces)
        };
        let notes = raster.notes().to_vec();
        let (info, origin) = match options.bbox {
            None => (raster.info().clone(), None),
            Some(bbox) => {
                let part = Cropped::new(raster, bbox)?;
                let Window { column, row, .. } = part.window();
                (part.info().clone(), Some([column, row]))
            }
        };
        let (header, encoder) = prepared.start(&info, prepared.rate)?;
        let division = match split {
            Split::Tiles(tiles) => Division::squares(&header.pyramid, tiles)?,
            Split::Shards(count) => Division::into_areas(&header.pyramid, count)?,
        };
        let absolute = |path: &PathBuf| {
            std::path::absolute(path).map_err(|source| Error::Unreadable {
                path: path.clone(),
                source,
            })
        };
        Ok(Self {
            version: VERSION,
            program: PROGRAM.to_owned(),
            reading: options
                .settings()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            origin,
            notes,
            inputs: pieces
                .iter()
                .map(|piece| Input::new(piece, checks))
                .collect::<Result<_>>()?,
            coding: CodingPlan {
                rate: encoder.rate,
                bits: encoder.bits,
                coding: encoder.coding,
                is_f32: encoder.is_f32,
                source_step_m: encoder.source_step_m,
                effort: encoder.effort,
                model: settings.model.as_ref().map(absolute).transpose()?,
                embed_model: settings.embed_model,
            },
            header,
            division,
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
        let pyramid = &plan.header.pyramid;
        let (width, height) = pyramid.size(0).unwrap_or_default();
        let (width, height) = (width as usize, height as usize);
        // Of a part of the rasters, these lie outside.
        let (right, bottom) = match plan.origin {
            None => (width, height),
            Some(_) => (MAX_PIXELS, MAX_PIXELS),
        };
        let is_on_grid = |input: &Input| input.piece().window.fits(right, bottom);
        let has_origin = plan
            .origin
            .is_none_or(|origin| origin.iter().all(|&at| at <= MAX_PIXELS));
        if !plan.inputs.iter().all(is_on_grid) || !has_origin {
            return Err(bad("a raster lies outside the grid".into()));
        }
        plan.options().map_err(|error| bad(error.to_string()))?;
        plan.division
            .check(pyramid)
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
        self.division.areas.len()
    }

    /// How the raster is divided.
    pub fn division(&self) -> &Division {
        &self.division
    }

    /// What should be said of the rasters; a plan that was read from a file says nothing any more.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// How the rasters are read.
    pub(crate) fn options(&self) -> std::result::Result<RasterOptions, RasterOptionError> {
        let mut options = RasterOptions::default();
        for (name, value) in &self.reading {
            options.set(name, value)?;
        }
        Ok(options)
    }

    /// A window of the raster that is encoded on the grid of all rasters.
    pub(crate) fn on_grid(&self, window: Window) -> Window {
        let [column, row] = self.origin.unwrap_or_default();
        Window {
            column: window.column.saturating_add(column),
            row: window.row.saturating_add(row),
            ..window
        }
    }

    /// The head of the file, without statistics.
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// The model of the plan: from a file that is given now, from where the plan has it, or from the program.
    pub(crate) fn model(
        &self,
        given: Option<&Path>,
        memory: MemoryLimit,
    ) -> Result<Option<ModelFile>> {
        let Some(model) = &self.header.model else {
            return Ok(None);
        };
        let other = || Error::PlanModel {
            name: model.name.clone(),
            expected: hex::encode(model.sha256),
        };
        let found = if let Some(path) = given.or(self.coding.model.as_deref()) {
            read_model(path, memory)?
        } else {
            let built_in = MODELS.built_in(&model.sha256).ok_or_else(other)?;
            let bytes = MODELS.built_in_bytes(&model.sha256).ok_or_else(other)?;
            (built_in, bytes.to_vec())
        };
        if found.0.sha256() == model.sha256 {
            Ok(Some(found))
        } else {
            Err(other())
        }
    }

    /// Whether the model goes into the file.
    pub(crate) fn embeds_model(&self) -> bool {
        self.coding.embed_model
    }

    /// The encoder of tiles.
    pub(crate) fn encoder(&self, model: Option<&ModelFile>) -> TileEncoder {
        let coding = &self.coding;
        TileEncoder {
            method: self.header.method,
            model: model.map(|(model, _)| model.clone()),
            bits: coding.bits,
            coding: coding.coding,
            rate: coding.rate,
            is_f32: coding.is_f32,
            source_step_m: coding.source_step_m,
            effort: coding.effort,
        }
    }
}
