//! The continuous surface of a file: height, gradient and curvature at any point, C² everywhere.
//!
//! Every tile has a surface of its own that passes through its heights at pixel centres: the networks of its tokens plus
//! their residual, or the kernel through its heights. A [`Tiling`] makes one surface of them.

use std::sync::Arc;

use terrane_format::{LevelTile, TileId};

use crate::Error;
use crate::kernel::PixelJet;
use crate::model::FileModel;
use crate::parallel::in_parallel;
use crate::terrain::{Terrain, by_trees};
use crate::tile::Tile;
use crate::tiling::Tiling;

/// Points of one tile that a thread takes at a time.
const POINTS: usize = 4096;

/// The surface at a point, in map units and metres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Height in metres.
    pub height: f64,
    /// Change of height per map unit along x and y.
    pub gradient: [f64; 2],
    /// Second derivatives: along x, mixed, along y.
    pub hessian: [f64; 3],
}

/// The way from a map back to the pixels of a raster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InverseTransform {
    origin: [f64; 2],
    /// Change of the column and of the row per unit of x.
    by_x: [f64; 2],
    /// The same per unit of y.
    by_y: [f64; 2],
}

impl InverseTransform {
    /// The inverse of a transform in GDAL's order; `None` where it has none.
    pub fn of(transform: [f64; 6]) -> Option<Self> {
        let [origin_x, a, b, origin_y, c, d] = transform;
        let determinant = a * d - b * c;
        let has_inverse = determinant != 0.0 && determinant.is_finite();
        has_inverse.then(|| Self {
            origin: [origin_x, origin_y],
            by_x: [d / determinant, -c / determinant],
            by_y: [-b / determinant, a / determinant],
        })
    }

    /// Column and row of a point of the map.
    pub fn pixel(&self, x: f64, y: f64) -> (f64, f64) {
        let (x, y) = (x - self.origin[0], y - self.origin[1]);
        (
            self.by_x[0] * x + self.by_y[0] * y,
            self.by_x[1] * x + self.by_y[1] * y,
        )
    }

    /// A surface in map units from one in pixels, by the chain rule.
    pub fn sample(&self, jet: PixelJet) -> Sample {
        let first = |v: [f64; 2]| jet.x * v[0] + jet.y * v[1];
        let second = |v: [f64; 2], w: [f64; 2]| {
            jet.xx * v[0] * w[0] + jet.xy * (v[0] * w[1] + v[1] * w[0]) + jet.yy * v[1] * w[1]
        };
        let Self { by_x, by_y, .. } = *self;
        Sample {
            height: jet.value,
            gradient: [first(by_x), first(by_y)],
            hessian: [second(by_x, by_x), second(by_x, by_y), second(by_y, by_y)],
        }
    }
}

/// The surface of a file.
#[derive(Debug)]
pub struct Surface<'a> {
    terrain: &'a Terrain,
    tiling: Tiling,
    inverse: InverseTransform,
}

impl<'a> Surface<'a> {
    pub(crate) fn new(terrain: &'a Terrain) -> Result<Self, Error> {
        let header = terrain.header();
        let inverse =
            InverseTransform::of(terrain.corner_affine()).ok_or_else(|| Error::Setting {
                what: "the transform of the raster",
                must: "invertible",
                value: format!("{:?}", header.affine),
            })?;
        let (width, height) = header.pyramid.size(0).unwrap_or_default();
        let tiling = Tiling {
            width: width as usize,
            height: height as usize,
            side: header.pyramid.side().into(),
        };
        Ok(Self {
            terrain,
            tiling,
            inverse,
        })
    }

    /// Pixel coordinates of a point: the first pixel reaches from 0 to 1.
    pub fn pixel(&self, x: f64, y: f64) -> (f64, f64) {
        self.inverse.pixel(x, y)
    }

    /// The surface at a point of the map; an error where there is no data.
    pub fn at(&self, x: f64, y: f64) -> Result<Sample, Error> {
        let (column, row) = self.pixel(x, y);
        let jet = self.at_pixel(column, row)?;
        let jet = jet.ok_or(Error::NoHeight { x, y })?;
        Ok(self.inverse.sample(jet))
    }

    /// The surface at many points, in their order; `None` where there is no data. They are taken tile by tile, so that
    /// every tile is decoded about once, however the points are scattered.
    pub fn at_points(
        &self,
        points: &[(f64, f64)],
        jobs: usize,
    ) -> Result<Vec<Option<Sample>>, Error> {
        let tile = |&(x, y): &(f64, f64)| {
            let (column, row) = self.pixel(x, y);
            // A cast takes what is outside, or no number, to the nearest tile: there is no height there anyway.
            let side = self.tiling.side;
            by_trees(TileId {
                column: column as usize / side,
                row: row as usize / side,
            })
        };
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by_cached_key(|&index| tile(&points[index]));
        let parts: Vec<&[usize]> = order
            .chunk_by(|&a, &b| tile(&points[a]) == tile(&points[b]))
            .flat_map(|part| part.chunks(POINTS))
            .collect();
        let jobs = self.terrain.decoders(jobs)?;
        let sampled = in_parallel(parts.len(), jobs, &|part| {
            let at = |&index: &usize| {
                let (x, y) = points[index];
                match self.at(x, y) {
                    Ok(sample) => Ok(Some(sample)),
                    Err(Error::NoHeight { .. }) => Ok(None),
                    Err(error) => Err(error),
                }
            };
            parts[part].iter().map(at).collect::<Result<Vec<_>, _>>()
        })?;
        let mut samples = vec![None; points.len()];
        for (part, sampled) in parts.iter().zip(sampled) {
            for (&index, sample) in part.iter().zip(sampled) {
                samples[index] = sample;
            }
        }
        Ok(samples)
    }

    /// The height at a position in pixels, or `None` where there is no data.
    pub fn height_at_pixel(&self, column: f64, row: f64) -> Result<Option<f64>, Error> {
        Ok(self.at_pixel(column, row)?.map(|jet| jet.value))
    }

    /// The surface at a position in pixels, derivatives per pixel, or `None` where there is no data.
    pub fn at_pixel(&self, column: f64, row: f64) -> Result<Option<PixelJet>, Error> {
        let Some(pixel) = self.tiling.pixel(column, row) else {
            return Ok(None);
        };
        let Some(tile) = self.tile(self.tiling.tile(pixel))? else {
            return Ok(None);
        };
        if tile.is_missing(pixel.0 - tile.window.column, pixel.1 - tile.window.row) {
            return Ok(None);
        }
        self.tiling.blend(column, row, |id| {
            let tile = self.tile(id)?;
            tile.map(|tile| self.tile_jet(&tile, id, column, row))
                .transpose()
        })
    }

    fn tile(&self, id: TileId) -> Result<Option<Arc<Tile>>, Error> {
        self.terrain.tile(LevelTile { level: 0, id })
    }

    /// The surface of one tile, which may be asked a little beyond its border.
    fn tile_jet(&self, tile: &Tile, id: TileId, column: f64, row: f64) -> Result<PixelJet, Error> {
        let window = tile.window;
        let (x, y) = (column - window.column as f64, row - window.row as f64);
        let model = self.terrain.decoder().model.as_ref();
        if let Some(model) = model.and_then(FileModel::tokens)
            && let Some(jet) = tile.token_jet(model, x, y)
        {
            return Ok(jet);
        }
        self.tiling.kernel(id, column, row, |column, row| {
            let at = |tile: &Tile| {
                let window = tile.window;
                tile.heights[(row - window.row) * window.width + column - window.column]
            };
            let pixel_tile = self.tiling.tile((column, row));
            if pixel_tile == id {
                return Ok(Some(at(tile)));
            }
            let neighbour = self.tile(pixel_tile)?;
            Ok(neighbour.map(|tile| at(&tile)))
        })
    }
}
