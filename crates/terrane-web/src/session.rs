//! Open files, and what is answered about them.

use std::sync::Arc;

use serde_json::{Value, json};
use terrane::format::{MemoryLimit, Reader, Window};
use terrane::tiles::{
    BlockCache, Deadline, Layer, MAX_ZOOM, MapTile, MapTiles, Nodata, TileError, TileRequest,
};
use terrane::{Terrain, describe, sentence};
use terrane_codec::context::unpack;
use terrane_codec::{FileModel, ModelError, Models, TerrainOptions};
use terrane_geo::GeodesyError;
use terrane_geo::geodesy::define;

use crate::request::{Ask, Request};
use crate::source::Later;

/// Decoded heights that are kept for tiles of all files.
const BLOCK_BYTES: usize = 48 << 20;
/// Memory that a file may take: a quarter of what WebAssembly can have.
const MEMORY: MemoryLimit = MemoryLimit { bytes: 1 << 30 };
/// Pixels across a tile at most.
const MAX_SIDE: usize = 1024;
/// The layer of lines, which is not drawn but described.
const CONTOURS: &str = "contours";
/// Points of a profile at most.
const MAX_POINTS: usize = 100_000;

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Texts, numbers and what is made of them.
    Value(Value),
    /// Pixels or heights.
    Bytes(Vec<u8>),
    /// What must be given before this is asked again: `parts` of the file, each an offset and a length; the `model` of
    /// a hash; the `system` of a code.
    Needed(Value),
    /// What went wrong, in one sentence.
    Failed(String),
}

/// What went wrong, or is missing.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("there is no open file {0}")]
    NoFile(u32),
    #[error("there is no layer {0:?}")]
    NoLayer(String),
    #[error(
        "there is no tile {z}/{x}/{y}: zooms are 0 to {MAX_ZOOM}, columns and rows below 2 to the power of the zoom"
    )]
    NoTile { z: u8, x: u32, y: u32 },
    #[error("{what} must be from {least} to {most}, and is {value}")]
    OutOfRange {
        what: &'static str,
        least: usize,
        most: usize,
        value: usize,
    },
    #[error("the file cannot be shown on a map: {0}")]
    NotOnMap(String),
    #[error("the model {0} is needed")]
    NoModel(String),
    #[error(transparent)]
    Geodesy(#[from] GeodesyError),
    #[error(transparent)]
    Tiles(#[from] TileError),
    #[error(transparent)]
    Terrain(#[from] terrane_codec::Error),
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl Failure {
    fn is_pending(&self) -> bool {
        match self {
            Self::Tiles(error) => error.is_pending(),
            Self::Terrain(error) => error.is_pending(),
            _ => false,
        }
    }
}

type Result<T, E = Failure> = std::result::Result<T, E>;

/// A file: its bytes and, once they are here, what it holds.
#[derive(Default)]
struct File {
    source: Later,
    terrain: Option<Arc<Terrain>>,
    /// Its place on the map, or why it has none.
    map: Option<Result<MapTiles, String>>,
}

impl File {
    fn terrain(&self) -> Result<&Terrain> {
        // Asked before it was opened: what opening needs is not here.
        self.terrain.as_deref().ok_or_else(|| {
            let pending = terrane::format::Error::Pending;
            terrane_codec::Error::from(pending).into()
        })
    }

    fn map(&self) -> Result<&MapTiles> {
        match &self.map {
            Some(Ok(map)) => Ok(map),
            Some(Err(reason)) => Err(Failure::NotOnMap(reason.clone())),
            None => Err(Failure::NotOnMap("it is not open yet".into())),
        }
    }
}

/// Open files and what they share.
pub struct Session {
    /// By the numbers that JavaScript chose; they are few.
    files: Vec<(u32, File)>,
    models: Vec<FileModel>,
    cache: Arc<BlockCache>,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            models: Vec::new(),
            cache: Arc::new(BlockCache::new(BLOCK_BYTES)),
        }
    }
}

impl Session {
    /// Takes a part of a file, and the file's length where it is known.
    pub fn give(&mut self, file: u32, offset: u64, bytes: Vec<u8>, length: Option<u64>) {
        // A file that was closed meanwhile needs nothing.
        if let Ok(file) = self.file(file) {
            file.source.give(offset, bytes, length);
        }
    }

    /// Takes the file of a model, as it is or packed.
    pub fn load(&mut self, bytes: Vec<u8>) -> Answer {
        let whole = unpack(bytes).map_err(ModelError::from);
        match whole.and_then(|bytes| Models::NONE.load(&bytes, MEMORY)) {
            Ok(model) => {
                let sha256 = model.sha256();
                self.models.push(model);
                Answer::Value(json!({ "sha256": hex::encode(sha256) }))
            }
            Err(error) => Answer::Failed(sentence(&error)),
        }
    }

    /// Answers a request.
    pub fn ask(&mut self, request: Request) -> Answer {
        let number = request.file;
        let outcome = self.answer(request);
        let source = self.file(number).ok().map(|file| file.source.clone());
        match outcome {
            Err(error) if error.is_pending() => {
                let parts = source.map(|source| source.take_missing());
                match parts.filter(|parts| !parts.is_empty()) {
                    Some(parts) => Answer::Needed(json!({ "parts": parts })),
                    None => Answer::Failed("the file was not opened".into()),
                }
            }
            Err(Failure::NoModel(sha256)) => Answer::Needed(json!({ "model": sha256 })),
            Err(Failure::Tiles(TileError::Geodesy(GeodesyError::UnknownSystem { epsg }))) => {
                Answer::Needed(json!({ "system": epsg }))
            }
            Err(error) => Answer::Failed(sentence(&error)),
            Ok(answer) => {
                if let Some(source) = source {
                    source.tidy();
                }
                answer
            }
        }
    }

    fn file(&self, number: u32) -> Result<&File> {
        let mut files = self.files.iter();
        let found = files.find(|(other, _)| *other == number);
        found.map(|(_, file)| file).ok_or(Failure::NoFile(number))
    }

    fn map(&self, number: u32) -> Result<&MapTiles> {
        self.file(number)?.map()
    }

    fn answer(&mut self, request: Request) -> Result<Answer> {
        let text = |value: Value| Ok(Answer::Value(value));
        let file = request.file;
        match request.ask {
            Ask::Open => text(self.open(file, request.without_system)?),
            Ask::Close => {
                self.files.retain(|(other, _)| *other != file);
                text(Value::Null)
            }
            Ask::Define => {
                define(request.epsg, &request.definition)?;
                text(Value::Null)
            }
            Ask::Tilejson => {
                let (map, name) = (self.map(file)?, &request.name);
                text(if request.layer == CONTOURS {
                    map.contours_tilejson(name, &request.address, request.interval)?
                } else {
                    let layer = find_layer(map, &request.layer)?;
                    map.tilejson(layer, name, &request.address)
                })
            }
            Ask::Tile => {
                check("the side of a tile", request.side, 1, MAX_SIDE)?;
                let map = self.map(file)?;
                let layer = find_layer(map, &request.layer)?;
                let request = TileRequest {
                    side: request.side,
                    nodata: Nodata::Height(None),
                    ..TileRequest::new(layer, map_tile(&request)?)
                };
                Ok(Answer::Bytes(map.tile(request, Deadline::NONE)?.rgba))
            }
            Ask::Contours => {
                let (map, tile) = (self.map(file)?, map_tile(&request)?);
                let bytes = map.contours(tile, request.interval, Deadline::NONE)?;
                Ok(Answer::Bytes(bytes))
            }
            Ask::Point => {
                let map = self.map(file)?;
                let degrees = (request.longitude, request.latitude);
                let report = map.point(degrees.0, degrees.1, Deadline::NONE)?;
                let mut value = report.map_or(json!({ "height_m": null }), |report| report.json());
                value["coordinates"] = json!(degrees);
                value["crs"] = map.crs().to_string().into();
                text(value)
            }
            Ask::Profile => {
                check("the corners of a line", request.line.len(), 2, MAX_POINTS)?;
                check("the points of a profile", request.count, 2, MAX_POINTS)?;
                let map = self.map(file)?;
                let profile = map.profile(&request.line, request.count, Deadline::NONE)?;
                text(json!(profile))
            }
            Ask::Window => {
                let window = Window {
                    column: request.column,
                    row: request.row,
                    width: request.width,
                    height: request.height,
                };
                let heights = self.file(file)?.terrain()?.read(request.level, window)?;
                let bytes = heights.into_iter().flat_map(f64::to_le_bytes);
                Ok(Answer::Bytes(bytes.collect()))
            }
        }
    }

    fn open(&mut self, number: u32, without_system: bool) -> Result<Value> {
        if self.file(number).is_err() {
            self.files.push((number, File::default()));
        }
        let mut files = self.files.iter_mut();
        let found = files.find(|(other, _)| *other == number);
        let (_, file) = found.ok_or(Failure::NoFile(number))?;
        let terrain = if let Some(terrain) = &file.terrain {
            terrain.clone()
        } else {
            let terrain = Arc::new(open_terrain(&file.source, &self.models)?);
            file.terrain = Some(terrain.clone());
            terrain
        };
        if file.map.is_none() {
            file.map = Some(match MapTiles::open(terrain.clone(), &self.cache) {
                Ok(map) => Ok(map),
                Err(error) if error.is_pending() => return Err(error.into()),
                Err(TileError::Geodesy(error @ GeodesyError::UnknownSystem { .. }))
                    if !without_system =>
                {
                    return Err(TileError::from(error).into());
                }
                Err(error) => Err(sentence(&error)),
            });
        }
        let mut value = describe(terrain.reader());
        match file.map() {
            Ok(map) => {
                let (Value::Object(all), Value::Object(more)) = (&mut value, map.info()) else {
                    return Ok(value);
                };
                for (key, entry) in more {
                    all.entry(key).or_insert(entry);
                }
            }
            Err(error) => value["not_on_map"] = sentence(&error).into(),
        }
        Ok(value)
    }
}

/// Opens a file whose head is here, with the model that it names.
fn open_terrain(source: &Later, models: &[FileModel]) -> Result<Terrain> {
    let reader = Reader::open(Box::new(source.clone())).map_err(terrane_codec::Error::from)?;
    let mut model = None;
    if let Some(id) = &reader.header().model
        && !reader.header().method.has_tokens()
    {
        let mut known = models.iter();
        model = known.find(|model| model.sha256() == id.sha256).cloned();
        if model.is_none() && id.embedded.is_none() {
            return Err(Failure::NoModel(hex::encode(id.sha256)));
        }
    }
    let options = TerrainOptions {
        models: Models::NONE,
        model,
        memory: MEMORY,
    };
    Ok(Terrain::open(Box::new(source.clone()), options)?)
}

fn map_tile(&Request { z, x, y, .. }: &Request) -> Result<MapTile> {
    MapTile::new(z, x, y).ok_or(Failure::NoTile { z, x, y })
}

fn find_layer(map: &MapTiles, name: &str) -> Result<Layer> {
    Layer::parse(name)
        .filter(|layer| map.has_layer(*layer))
        .ok_or_else(|| Failure::NoLayer(name.to_owned()))
}

fn check(what: &'static str, value: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Failure::OutOfRange {
        what,
        least,
        most,
        value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = include_bytes!("../../../conformance/context-bound/input.trn");
    const HEIGHTS: &[u8] = include_bytes!("../../../conformance/context-bound/heights.f64");

    /// Asks until nothing is missing, as JavaScript does; how often bytes were given, and the answer.
    fn ask(session: &mut Session, request: &Request) -> (usize, Answer) {
        for round in 0.. {
            let answer = session.ask(request.clone());
            let Answer::Needed(needed) = &answer else {
                return (round, answer);
            };
            let parts: Vec<(usize, usize)> = serde_json::from_value(needed["parts"].clone())
                .expect("a golden file of integers or with its model needs its bytes alone");
            for (offset, length) in parts {
                let bytes = FILE[offset..(offset + length).min(FILE.len())].to_vec();
                session.give(1, offset as u64, bytes, Some(FILE.len() as u64));
            }
        }
        unreachable!("rounds do not end")
    }

    #[test]
    fn what_is_missing_is_asked_for_until_all_is_here() {
        let mut session = Session::default();
        let open = Request {
            file: 1,
            ..Request::default()
        };
        let (rounds, answer) = ask(&mut session, &open);
        let Answer::Value(info) = answer else {
            panic!("{answer:?}");
        };
        assert!((1..=4).contains(&rounds), "{rounds}");
        // It has no code of a coordinate system: no map, but heights.
        assert!(info["not_on_map"].is_string(), "{info}");
        let size = |key: &str| info[key].as_u64().unwrap() as usize;
        let window = Request {
            ask: Ask::Window,
            file: 1,
            width: size("width"),
            height: size("height"),
            ..Request::default()
        };
        let (_, answer) = ask(&mut session, &window);
        let Answer::Bytes(bytes) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(bytes, HEIGHTS);
        // Decoded tiles are kept: nothing is read again.
        assert_eq!(ask(&mut session, &window).0, 0);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_sentence() {
        let mut session = Session::default();
        let request = |ask| Request {
            ask,
            side: 256,
            count: 2,
            ..Request::default()
        };
        for (request, part) in [
            (
                Request {
                    file: 7,
                    ..request(Ask::Tile)
                },
                "no open file 7",
            ),
            (
                Request {
                    side: 99_999,
                    ..request(Ask::Tile)
                },
                "side of a tile",
            ),
            (request(Ask::Profile), "corners"),
            (
                Request {
                    epsg: 64_900,
                    definition: "+proj=no".into(),
                    ..request(Ask::Define)
                },
                "64900",
            ),
        ] {
            let Answer::Failed(sentence) = session.ask(request.clone()) else {
                panic!("{request:?}");
            };
            assert!(sentence.contains(part), "{request:?}: {sentence}");
        }
        assert!(matches!(
            session.load(b"no model".to_vec()),
            Answer::Failed(_)
        ));
    }

    #[test]
    fn a_model_is_taken_as_it_is_and_packed() {
        let model = include_bytes!("../../../conformance/context.safetensors");
        let packed = terrane_codec::context::pack(model).unwrap();
        let mut session = Session::default();
        let answer = session.load(model.to_vec());
        assert!(matches!(answer, Answer::Value(_)), "{answer:?}");
        assert_eq!(session.load(packed), answer);
    }
}
