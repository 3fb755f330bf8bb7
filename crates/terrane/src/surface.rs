//! The continuous surface of a file: height, gradient and curvature at any point, C² everywhere.
//!
//! Every tile has a surface of its own that passes through its heights at pixel centres: the networks of its tokens plus
//! what they left over, or the kernel through its heights. Between the last pixel centres of two tiles, one passes into
//! the other; at the centres themselves each tile is alone, so decoding a tile never needs its neighbours.

use terrane_format::{LevelTile, TileId};

use crate::Error;
use crate::kernel::{PixelJet, interpolate, step};
use crate::parallel::in_parallel;
use crate::terrain::Terrain;
use crate::tile_codec::Tile;

/// Half the width, in pixels, of the band in which one tile passes into the next: up to the pixel centres.
const BAND: f64 = 0.5;

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

/// The surface of a file.
#[derive(Debug)]
pub struct Surface<'a> {
    terrain: &'a Terrain,
    width: usize,
    height: usize,
    side: usize,
    corner: [f64; 6],
    /// Pixels per map unit: column by x, column by y, row by x, row by y.
    inverse: [f64; 4],
}

impl<'a> Surface<'a> {
    pub(crate) fn new(terrain: &'a Terrain) -> Result<Self, Error> {
        let header = terrain.header();
        let corner = terrain.corner_affine();
        let [_, a, b, _, c, d] = corner;
        let determinant = a * d - b * c;
        if determinant == 0.0 || !determinant.is_finite() {
            return Err(Error::Setting {
                what: "the transform of the raster",
                must: "invertible",
                value: format!("{:?}", header.affine),
            });
        }
        let (width, height) = header.pyramid.size(0).unwrap_or_default();
        Ok(Self {
            terrain,
            corner,
            width: width as usize,
            height: height as usize,
            side: header.pyramid.side().into(),
            inverse: [
                d / determinant,
                -b / determinant,
                -c / determinant,
                a / determinant,
            ],
        })
    }

    /// Pixel coordinates of a point: the first pixel reaches from 0 to 1.
    pub fn pixel(&self, x: f64, y: f64) -> (f64, f64) {
        let [x0, _, _, y0, _, _] = self.corner;
        let [column_x, column_y, row_x, row_y] = self.inverse;
        (
            column_x * (x - x0) + column_y * (y - y0),
            row_x * (x - x0) + row_y * (y - y0),
        )
    }

    /// The surface at a point of the map; an error where there is no data.
    pub fn at(&self, x: f64, y: f64) -> Result<Sample, Error> {
        let (column, row) = self.pixel(x, y);
        let jet = self
            .at_pixel(column, row)?
            .ok_or(Error::NoHeight { x, y })?;
        // Derivatives of the column and of the row with respect to x and to y.
        let [column_x, column_y, row_x, row_y] = self.inverse;
        let second = |a: [f64; 2], b: [f64; 2]| {
            jet.xx * a[0] * b[0] + jet.xy * (a[0] * b[1] + a[1] * b[0]) + jet.yy * a[1] * b[1]
        };
        let (along_x, along_y) = ([column_x, row_x], [column_y, row_y]);
        Ok(Sample {
            height: jet.value,
            gradient: [
                jet.x * column_x + jet.y * row_x,
                jet.x * column_y + jet.y * row_y,
            ],
            hessian: [
                second(along_x, along_x),
                second(along_x, along_y),
                second(along_y, along_y),
            ],
        })
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
            (row as usize / self.side, column as usize / self.side)
        };
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by_cached_key(|&index| tile(&points[index]));
        let parts: Vec<&[usize]> = order
            .chunk_by(|&a, &b| tile(&points[a]) == tile(&points[b]))
            .flat_map(|part| part.chunks(POINTS))
            .collect();
        let jobs = self.terrain.decoders(jobs)?;
        let sampled = in_parallel(0..parts.len(), jobs, &|part| {
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

    /// The height at a place in pixels, or `None` where there is no data.
    pub fn height_at_pixel(&self, column: f64, row: f64) -> Result<Option<f64>, Error> {
        Ok(self.at_pixel(column, row)?.map(|jet| jet.value))
    }

    fn at_pixel(&self, column: f64, row: f64) -> Result<Option<PixelJet>, Error> {
        let is_inside = (0.0..=self.width as f64).contains(&column)
            && (0.0..=self.height as f64).contains(&row);
        if !is_inside {
            return Ok(None);
        }
        let (pixel_column, pixel_row) = (
            (column as usize).min(self.width - 1),
            (row as usize).min(self.height - 1),
        );
        let own = TileId {
            column: pixel_column / self.side,
            row: pixel_row / self.side,
        };
        let Some(tile) = self.tile(own)? else {
            return Ok(None);
        };
        if tile.is_missing(
            pixel_column - tile.window.column,
            pixel_row - tile.window.row,
        ) {
            return Ok(None);
        }
        // Neighbours without data take no part; the others share the band along the border.
        let mut sum = PixelJet::default();
        let mut whole = PixelJet::default();
        for (tile_row, y) in self.shares(row, own.row, self.height) {
            for (tile_column, x) in self.shares(column, own.column, self.width) {
                let Some(tile) = self.tile(TileId {
                    column: tile_column,
                    row: tile_row,
                })?
                else {
                    continue;
                };
                let weight = PixelJet {
                    value: x[0],
                    x: x[1],
                    xx: x[2],
                    ..PixelJet::default()
                }
                .times(PixelJet {
                    value: y[0],
                    y: y[1],
                    yy: y[2],
                    ..PixelJet::default()
                });
                if weight == PixelJet::default() {
                    continue;
                }
                sum = sum.plus(self.tile_jet(&tile, column, row)?.times(weight));
                whole = whole.plus(weight);
            }
        }
        if whole.value < 1.0 - 1e-9 {
            // A neighbour is absent: what is left of the band belongs to this tile.
            return self.tile_jet(&tile, column, row).map(Some);
        }
        Ok(Some(sum))
    }

    fn tile(&self, id: TileId) -> Result<Option<std::sync::Arc<Tile>>, Error> {
        self.terrain.tile(LevelTile { level: 0, id })
    }

    /// Tiles that cover a place on one axis, with their shares.
    fn shares(&self, position: f64, own: usize, size: usize) -> Vec<(usize, [f64; 3])> {
        let border = (position / self.side as f64).round();
        let distance = position - border * self.side as f64;
        let is_inner = border >= 1.0 && (border * self.side as f64) < size as f64;
        if !is_inner || distance.abs() >= BAND {
            return vec![(own, [1.0, 0.0, 0.0])];
        }
        let right = border as usize;
        let [value, first, second] = step((distance + BAND) / (2.0 * BAND));
        let (first, second) = (first / (2.0 * BAND), second / (4.0 * BAND * BAND));
        vec![
            (right - 1, [1.0 - value, -first, -second]),
            (right, [value, first, second]),
        ]
    }

    /// The surface of one tile, which may be asked a little beyond its border.
    fn tile_jet(&self, tile: &Tile, column: f64, row: f64) -> Result<PixelJet, Error> {
        let window = tile.window;
        let (x, y) = (column - window.column as f64, row - window.row as f64);
        if let Some((field, map, residual)) = tile.field(self.terrain.codec()) {
            let mut jet = field.jet(x, y).scaled(map.range_m.into());
            jet.value += f64::from(map.low_m);
            if residual.is_empty() {
                return Ok(jet);
            }
            // Beyond its border a tile's remains go on as they end: those of the next belong to other tokens.
            let clamp =
                |index: isize, size: usize| index.clamp(0, size.cast_signed() - 1).cast_unsigned();
            let left_over = interpolate(x - 0.5, y - 0.5, |column, row| {
                residual[clamp(row, window.height) * window.width + clamp(column, window.width)]
            });
            return Ok(jet.plus(left_over));
        }
        let mut failed = None;
        let jet = interpolate(column - 0.5, row - 0.5, |column, row| {
            self.node(tile, column, row).unwrap_or_else(|error| {
                failed = Some(error);
                0.0
            })
        });
        failed.map_or(Ok(jet), Err)
    }

    /// The height at a pixel centre, of this tile or a neighbour; beyond all data it goes on quadratically, or as well as
    /// the samples there are allow.
    fn node(&self, tile: &Tile, column: isize, row: isize) -> Result<f64, Error> {
        if let Some(height) = self.known(tile, column, row)? {
            return Ok(height);
        }
        let window = tile.window;
        let into = |index: isize, start: usize, size: usize| {
            index.clamp(start.cast_signed(), (start + size).cast_signed() - 1)
        };
        // Back into the raster; where the neighbour has no data, back into this tile.
        let raster = (into(column, 0, self.width), into(row, 0, self.height));
        let (inner_column, inner_row) = if self.known(tile, raster.0, raster.1)?.is_some() {
            raster
        } else {
            (
                into(column, window.column, window.width),
                into(row, window.row, window.height),
            )
        };
        let (columns, rows) = (column - inner_column, row - inner_row);
        let back = |steps: isize| {
            self.known(
                tile,
                inner_column - steps * columns.signum(),
                inner_row - steps * rows.signum(),
            )
        };
        let distance = columns.abs().max(rows.abs()) as f64;
        Ok(match (back(0)?, back(1)?, back(2)?) {
            (Some(first), Some(second), Some(third)) => {
                first
                    + distance * (1.5 * first - 2.0 * second + 0.5 * third)
                    + 0.5 * distance * distance * (first - 2.0 * second + third)
            }
            (Some(first), Some(second), None) => first + distance * (first - second),
            (Some(first), ..) => first,
            (None, ..) => 0.0,
        })
    }

    fn known(&self, tile: &Tile, column: isize, row: isize) -> Result<Option<f64>, Error> {
        let (Ok(column), Ok(row)) = (usize::try_from(column), usize::try_from(row)) else {
            return Ok(None);
        };
        if column >= self.width || row >= self.height {
            return Ok(None);
        }
        let window = tile.window;
        let at = |tile: &Tile| {
            let window = tile.window;
            tile.heights[(row - window.row) * window.width + column - window.column]
        };
        let is_own = (window.column..window.column + window.width).contains(&column)
            && (window.row..window.row + window.height).contains(&row);
        if is_own {
            return Ok(Some(at(tile)));
        }
        let neighbour = self.tile(TileId {
            column: column / self.side,
            row: row / self.side,
        })?;
        Ok(neighbour.map(|tile| at(&tile)))
    }
}
