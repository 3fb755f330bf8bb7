//! A pixel that shows that a raster is not the one that a file was made from.

use std::fs::File;

use terrane_codec::format::{ErrorBound, LevelTile, LocalFile};
use terrane_codec::{Terrain, TerrainOptions};
use terrane_geo::RasterSource;

use super::{Job, settings};
use crate::open::MODELS;
use crate::{Error, Result};

/// Tiles that are compared at most: a raster that differs in few places is not worth a search.
const TILES: usize = 256;

/// The first pixel of the tiles that are whole that is farther off than the file guarantees.
pub(super) fn find(job: &Job, copy: &File, raster: &dyn RasterSource) -> Result<Option<Error>> {
    let reader = job.open_reader(copy)?;
    let resources = job.repairing.resources;
    let bound = match reader.header().bound {
        ErrorBound::None => return Ok(None),
        ErrorBound::MaxError(bound) => bound,
        ErrorBound::Lossless { .. } => 0.0,
    };
    let model = settings::model(&reader, &job.repairing.hints, resources)?;
    let options = TerrainOptions {
        models: MODELS,
        model: model.map(|(model, _)| model),
        memory: resources.memory,
    };
    let file = copy.try_clone().map_err(|source| job.unwritable(source))?;
    let terrain = Terrain::open(Box::new(LocalFile::from_file(file)?), options)?;
    let pyramid = &terrain.header().pyramid;
    let Some(grid) = pyramid.grid(0) else {
        return Ok(None);
    };
    let mut compared = 0;
    for id in grid.tiles() {
        let tile = LevelTile { level: 0, id };
        let Ok(Some(decoded)) = terrain.decode(tile) else {
            continue;
        };
        let window = pyramid.window(tile)?;
        let source = raster.read(0, window)?.heights;
        for (index, (&raster_m, &file_m)) in source.iter().zip(&decoded.heights).enumerate() {
            let is_missing = decoded
                .missing
                .as_ref()
                .is_some_and(|missing| missing[index]);
            let file_m = if is_missing { f64::NAN } else { file_m };
            let is_other =
                file_m.is_nan() != raster_m.is_nan() || (file_m - raster_m).abs() > bound;
            if is_other {
                return Ok(Some(Error::OtherHeights {
                    path: job.path.to_owned(),
                    column: window.column + index % window.width,
                    row: window.row + index / window.width,
                    file_m,
                    raster_m,
                }));
            }
        }
        compared += 1;
        if compared == TILES {
            break;
        }
    }
    Ok(None)
}
