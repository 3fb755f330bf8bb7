//! How a raster is to be encoded.

use std::path::PathBuf;

use terrane_codec::format::tokens::WIDTHS;
use terrane_codec::format::{
    Coding, ErrorBound, Header, MemoryLimit, Method, ModelId, Pyramid, Statistics, limits,
};
use terrane_codec::{Profile, Rate, TileEncoder};
use terrane_geo::{HeightUnit, RasterInfo, SampleType};

use crate::georeferencing::{geo_keys, samples};
use crate::open::{MODELS, ModelFile, read_model};
use crate::{Error, Result};

/// The hardest that the context codec tries.
pub(crate) const MAX_EFFORT: u8 = 3;

/// The side of a tile where nobody says.
const DEFAULT_SIDE: u16 = 256;

/// What a file is to reach; at most one of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Target {
    /// No valid pixel farther off than 0.1 m; the tokens alone where bits are given.
    #[default]
    Default,
    /// No valid pixel farther off than so many metres.
    MaxError(f64),
    /// A root mean square error in metres.
    Rmse(f64),
    /// Bits per pixel.
    Bpp(f64),
    /// Every height as it was.
    Lossless,
}

/// How a raster is to be encoded.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The method; the context codec without it, or the one that the model or the bits call for.
    pub method: Option<Method>,
    /// Which of the context codec's models.
    pub profile: Profile,
    /// How hard the context codec tries, from 0 to 3.
    pub effort: u8,
    /// The model's file; without it the one inside the program.
    pub model: Option<PathBuf>,
    /// Whether the model goes into the file.
    pub embed_model: bool,
    /// What is to be reached.
    pub target: Target,
    /// Whether every tile reaches a root mean square error or a rate by itself.
    pub per_tile: bool,
    /// Bits of a token's symbol.
    pub bits: Option<u8>,
    /// Whether symbols are stored in their width.
    pub fixed_width: bool,
    /// Side of a tile; 256 without it.
    pub tile: Option<u16>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            method: None,
            profile: Profile::Standard,
            effort: 1,
            model: None,
            embed_model: false,
            target: Target::Default,
            per_tile: false,
            bits: None,
            fixed_width: false,
            tile: None,
        }
    }
}

/// Settings that were checked, with their model.
#[derive(Debug)]
pub struct Prepared {
    /// The method.
    pub method: Method,
    /// The model, where the method has one.
    pub model: Option<ModelFile>,
    /// What is to be reached.
    pub rate: Rate,
    /// Whether that is meant for the whole file, and found by trying.
    pub is_whole: bool,
    bits: u8,
    coding: Coding,
    effort: u8,
    side: u16,
    embed_model: bool,
}

/// The network of a method inside the program.
fn built_in(method: Method) -> Result<ModelFile> {
    if !MODELS.has_networks() {
        return Err(Error::NoNetworks { method });
    }
    let (model, file) = MODELS.built_in_of(method).ok_or(Error::NoBuiltIn)?;
    Ok((model, file.to_vec()))
}

impl Settings {
    fn rate(&self) -> Result<Rate> {
        let positive = |name, value: f64| {
            if value > 0.0 && value.is_finite() {
                Ok(value)
            } else {
                Err(Error::NotPositive { name, value })
            }
        };
        Ok(match self.target {
            Target::MaxError(bound) => Rate::MaxError(positive("max_error", bound)?),
            Target::Rmse(target) => Rate::Rmse(positive("rmse", target)?),
            Target::Bpp(target) => Rate::Bpp(positive("bpp", target)?),
            Target::Lossless => Rate::Lossless,
            Target::Default if self.bits.is_some() => Rate::Tokens,
            Target::Default => Rate::MaxError(0.1),
        })
    }

    /// The method, and the model and its file where it has one.
    fn method(&self, rate: Rate, memory: MemoryLimit) -> Result<(Method, Option<ModelFile>)> {
        let wants_tokens = self.bits.is_some() || self.fixed_width;
        if wants_tokens && self.method.is_some_and(|method| !method.has_tokens()) {
            return Err(Error::NoTokens);
        }
        if let Some(method) = self.method.filter(|method| !method.needs_model()) {
            if self.model.is_some() || self.embed_model {
                return Err(Error::NoModel { method });
            }
            return Ok((method, None));
        }
        let (model, file) = match (&self.model, self.method) {
            (Some(path), _) => read_model(path, memory)?,
            (None, Some(method)) if method.has_tokens() => built_in(method)?,
            (None, None) if wants_tokens => built_in(Method::HuvrSiren)?,
            (None, _) => (self.profile.model(), self.profile.bytes().to_vec()),
        };
        let method = model.method();
        if self.method.is_some_and(|asked| asked != method) {
            return Err(Error::OtherMethod {
                name: model.name().to_owned(),
            });
        }
        if method.has_tokens() && rate == Rate::Lossless {
            return Err(Error::LossyNetwork);
        }
        if !method.has_tokens() && wants_tokens {
            return Err(Error::NoTokens);
        }
        Ok((method, Some((model, file))))
    }

    /// Checks the settings and reads the model, which may take so much memory.
    pub fn prepare(&self, memory: MemoryLimit) -> Result<Prepared> {
        if self.effort > MAX_EFFORT {
            let effort = self.effort;
            return Err(Error::Effort { effort });
        }
        if let Some(bits) = self.bits.filter(|bits| !WIDTHS.contains(bits)) {
            return Err(Error::Bits { bits });
        }
        let rate = self.rate()?;
        let (method, model) = self.method(rate, memory)?;
        let tile = self.tile.unwrap_or(DEFAULT_SIDE);
        if !limits::TILE_SIDE.contains(&tile) || !tile.is_multiple_of(2) {
            return Err(Error::TileSide { tile });
        }
        if let Some(side) = model.as_ref().and_then(|(model, _)| model.side())
            && side != usize::from(tile)
        {
            return Err(Error::TileOfModel { side, tile });
        }
        let is_searched = matches!(rate, Rate::Rmse(_) | Rate::Bpp(_));
        Ok(Prepared {
            method,
            model,
            rate,
            is_whole: is_searched && !self.per_tile,
            bits: self.bits.unwrap_or(8),
            coding: if self.fixed_width {
                Coding::Fixed
            } else {
                Coding::Shortest
            },
            effort: self.effort,
            side: tile,
            embed_model: self.embed_model,
        })
    }
}

impl Prepared {
    /// As a file was encoded whose head is known, at a rate and with an effort, which it does not say.
    pub(crate) fn of_file(
        header: &Header,
        model: Option<ModelFile>,
        rate: Rate,
        effort: u8,
        (bits, coding): (u8, Coding),
    ) -> Self {
        Self {
            method: header.method,
            model,
            rate,
            is_whole: false,
            bits,
            coding,
            effort,
            side: header.pyramid.side(),
            embed_model: false,
        }
    }

    /// The model's file, where it goes into the file.
    pub fn embedded(&self) -> Option<&[u8]> {
        let (_, file) = self.model.as_ref().filter(|_| self.embed_model)?;
        Some(file)
    }

    /// How hard the context codec tries.
    pub(crate) fn effort(&self) -> u8 {
        self.effort
    }

    /// The head of the file and the encoder of its tiles, at a rate.
    pub fn start(&self, info: &RasterInfo, rate: Rate) -> Result<(Header, TileEncoder)> {
        let size = |value: usize| u32::try_from(value).map_err(|_| Error::RasterTooLarge);
        let (width, height) = (size(info.width())?, size(info.height())?);
        let crs = &info.georeference.crs;
        let code = |epsg: Option<u16>| epsg.map_or(0, u32::from);
        let model = self.model.as_ref().map(|(model, _)| model);
        // Heights of 32 bits in metres stay so; in feet or scaled they are no longer 32-bit floats here.
        let is_f32 = info.storage.sample == SampleType::F32
            && info.unit == HeightUnit::Metre
            && (info.storage.band.scale, info.storage.band.offset) == (1.0, 0.0);
        let header = Header {
            pyramid: Pyramid::complete(width, height, self.side)?,
            method: self.method,
            affine: info.georeference.anchor.numbers(),
            is_georeferenced: info.georeference.is_georeferenced,
            pixel_is_point: crs.pixel_is_point(),
            epsg: [code(crs.horizontal_epsg()), code(crs.vertical_epsg())],
            geo_keys: geo_keys(crs),
            wkt: String::new(),
            samples: samples(info),
            bound: match rate {
                Rate::MaxError(bound) => ErrorBound::MaxError(bound),
                Rate::Lossless => ErrorBound::Lossless { as_f32: is_f32 },
                _ => ErrorBound::None,
            },
            statistics: Statistics::default(),
            overviews: Vec::new(),
            model: model.map(|model| ModelId {
                sha256: model.sha256(),
                name: model.name().to_owned(),
                address: String::new(),
                embedded: None,
            }),
        };
        let storage = &info.storage;
        let encoder = TileEncoder {
            method: self.method,
            model: model.cloned(),
            bits: self.bits,
            coding: self.coding,
            rate,
            is_f32,
            source_step_m: if storage.sample.is_float() {
                0.0
            } else {
                (storage.band.scale * info.unit.metres()).abs()
            },
            effort: self.effort,
        };
        Ok((header, encoder))
    }
}
