//! Contour lines as vector tiles.
//!
//! Lines are traced in blocks of cells that are counted over the whole level, and simplified block by block, where they
//! enter and leave one staying as they are. So a block's lines are the same whichever tile asks for them, and lines meet
//! at the borders of tiles.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::contour::{Cells, Joiner, Levels, Line, Point, Tracing, round_interval};

use super::bounds::{near, turns};
use super::error::Result;
use super::mercator::position;
use super::mvt::{EXTENT, Feature, Grid, vector_tile};
use super::simplify::{clip, simplify};
use super::warp::PixelPosition;
use super::{Deadline, HeightRange, MapTile, MapTiles, TileError};

/// The layer's name in a tile.
const LAYER: &str = "contours";
/// Lines are traced on the level whose pixels are nearest to these across a tile. Clients show vector tiles 512 pixels
/// wide, so a cell is about two of theirs, which the surface between makes smooth.
const SIDE: usize = 256;
/// Pixels of a tile that a simplified line may be off.
const TOLERANCE: f64 = 0.25;
/// Cells across a block.
const BLOCK: usize = 32;
/// What a tile holds beyond its border, in its own units: room for the width of a line and for its label.
const BUFFER: Grid = 64;
/// Pixels that lines keep from each other, far less than the grid of a tile shows.
const GAP: f64 = 1e-3;
/// Points of lines that may be found for a tile, and so many from one look at the clock to the next.
const MAX_POINTS: usize = 1 << 20;
const POINTS_PER_LOOK: usize = 1 << 10;
/// Every so manieth line is an index line.
const INDEX: i64 = 5;
/// About so many lines pass between the lowest and the highest point of a tile.
const LINES: f64 = 12.0;
/// Terrain is about this rough: what lies within a distance differs in height by its power.
const ROUGHNESS: f64 = 0.7;

impl MapTiles {
    /// The interval between contour lines, in metres, that suits a zoom: 1, 2 or 5 times a power of ten, the same for
    /// all tiles of the zoom, and not finer than what the file is exact to.
    pub fn contour_interval(&self, z: u8) -> f64 {
        let HeightRange {
            lowest_m,
            highest_m,
        } = self.range();
        let (width, height) = self.size(0);
        let part = self.pixels_across(z, 1) / width.max(height) as f64;
        let relief = (highest_m - lowest_m) * part.min(1.0).powf(ROUGHNESS);
        let least = 2.0 * self.stated_error_m().unwrap_or_default();
        let interval = (relief / LINES).max(least);
        if interval > 0.0 && interval.is_finite() {
            round_interval(interval)
        } else {
            1.0
        }
    }

    /// The heights of lines so far apart; an error where that is no interval, or finer than what the file is exact to.
    pub fn contour_levels(&self, interval: f64) -> Result<Levels> {
        let HeightRange {
            lowest_m,
            highest_m,
        } = self.range();
        // The surface may swing a little beyond the heights that a file states.
        let levels = Levels::new(0.0, interval, [lowest_m - 1.0, highest_m + 1.0])?;
        let error = self.stated_error_m().unwrap_or_default();
        if interval < error {
            return Err(TileError::FinerThanFile { interval, error });
        }
        Ok(levels)
    }

    /// Contour lines of a tile as a Mapbox vector tile: the layer `contours`, whose lines have a `height` in metres and
    /// say whether they are an `index` line, which every fifth is. Nothing at all where no line passes.
    pub fn contours(
        &self,
        tile: MapTile,
        interval: Option<f64>,
        deadline: Deadline,
    ) -> Result<Vec<u8>> {
        let interval = interval.unwrap_or_else(|| self.contour_interval(tile.z));
        let levels = self.contour_levels(interval)?;
        let lines = self.lines(tile, &levels, interval, deadline)?;
        let mut features = BTreeMap::new();
        let scale = f64::from(1_u32 << self.level(tile.z, SIDE));
        for line in lines {
            let feature = features.entry(line.number).or_insert_with(|| Feature {
                height: line.height,
                is_index: line.number % INDEX == 0,
                lines: Vec::new(),
            });
            for turn in turns(self.bounds(), tile) {
                self.add_clipped(tile, turn, scale, &line.points, &mut feature.lines);
            }
        }
        let features: Vec<Feature> = features
            .into_values()
            .filter(|feature| !feature.lines.is_empty())
            .collect();
        Ok(vector_tile(LAYER, &features))
    }

    /// The lines around a tile, in pixels of the level that fits its zoom.
    fn lines(
        &self,
        tile: MapTile,
        levels: &Levels,
        interval: f64,
        deadline: Deadline,
    ) -> Result<Vec<Line>> {
        let level = self.level(tile.z, SIDE);
        let scale = f64::from(1_u32 << level);
        let size = self.size(level);
        let positions = self.positions(tile, SIDE)?;
        let across = self.pixels_across(tile.z, SIDE) / scale;
        // The buffer, and what lies between the outermost pixels and the tile's border.
        let beyond = across * (1.0 + SIDE as f64 * f64::from(BUFFER) / f64::from(EXTENT));
        let Some([columns, rows]) = blocks(&positions, scale, size, beyond) else {
            return Ok(Vec::new());
        };
        let corner = |column: usize, row: usize| {
            [
                column.min(size.0) as f64 * scale,
                row.min(size.1) as f64 * scale,
            ]
        };
        let corners = [
            corner(
                columns.start.saturating_sub(1) * BLOCK,
                rows.start.saturating_sub(1) * BLOCK,
            ),
            corner(columns.end * BLOCK + 1, rows.end * BLOCK + 1),
        ];
        let Some(patch) = self.patch_around(level, &corners, deadline)? else {
            return Ok(Vec::new());
        };
        let cells = Cells::whole(size.0, size.1);
        let tolerance = TOLERANCE * across;
        let tracing = Tracing {
            field: patch.pixels(),
            cells: &cells,
            levels,
            gap: GAP,
        };
        let mut joiner = Joiner::new(levels.clone(), GAP);
        let mut lines = Vec::new();
        let (mut points, mut next_look) = (0, 0);
        let mut may_hold = |count: usize| {
            points += count;
            points <= MAX_POINTS && {
                let looks = points >= next_look;
                next_look = if looks {
                    points + POINTS_PER_LOOK
                } else {
                    next_look
                };
                !looks || deadline.check().is_ok()
            }
        };
        for row in rows {
            for column in columns.clone() {
                deadline.check()?;
                let part = |block: usize, all: Range<usize>| {
                    block * BLOCK..((block + 1) * BLOCK).min(all.end)
                };
                let (columns, rows) = (part(column, cells.columns()), part(row, cells.rows()));
                let Ok(chains) = tracing.block(columns, rows, &mut may_hold);
                let Some(mut chains) = chains else {
                    deadline.check()?;
                    return Err(TileError::TooManyLines {
                        interval,
                        most: MAX_POINTS,
                    });
                };
                simplify(&mut chains, tolerance);
                for chain in chains {
                    lines.extend(joiner.add(chain));
                }
            }
        }
        lines.extend(joiner.rest());
        Ok(lines)
    }

    /// Adds the parts of a line that a tile holds, in its own units, with some degrees added to its longitudes.
    fn add_clipped(
        &self,
        tile: MapTile,
        turn: f64,
        scale: f64,
        points: &[Point],
        parts: &mut Vec<Vec<[Grid; 2]>>,
    ) {
        let around = f64::from(1_u32 << tile.z) * f64::from(EXTENT);
        let corner = [tile.x, tile.y].map(|number| f64::from(number) * f64::from(EXTENT));
        let middle = f64::midpoint(self.bounds()[0], self.bounds()[2]);
        // Rounded in the whole world, not in the tile, so that neighbours round alike.
        let place = |point: &Point| {
            let (longitude, latitude) = self.longitude_latitude(point.map(|at| at * scale))?;
            let (u, v) = position(near(longitude, middle) + turn, latitude);
            let at = [
                (u * around).round() - corner[0],
                (v * around).round() - corner[1],
            ];
            at.iter().all(|at| at.is_finite()).then_some(at)
        };
        let mut part: Vec<[Grid; 2]> = Vec::new();
        let mut before = None;
        for point in points {
            let at = place(point);
            // Around a pole a line passes from one end of the map to the other.
            let is_jump =
                |(from, to): &([f64; 2], [f64; 2])| (to[0] - from[0]).abs() > 0.5 * around;
            let step = before.zip(at).filter(|step| !is_jump(step));
            let clipped = step.and_then(|(from, to)| clip(from, to, BUFFER));
            before = at;
            let Some([from, to]) = clipped else {
                continue;
            };
            if part.last() != Some(&from) {
                finish(&mut part, parts);
                part.push(from);
            }
            if from != to {
                part.push(to);
            }
        }
        finish(&mut part, parts);
    }
}

/// Ends a part of a line, which is nothing where it is shorter than the grid can show.
fn finish(part: &mut Vec<[Grid; 2]>, parts: &mut Vec<Vec<[Grid; 2]>>) {
    let part = std::mem::take(part);
    if part.len() > 1 {
        parts.push(part);
    }
}

/// Columns and rows of the blocks that the positions inside the raster meet, or lie so near to.
fn blocks(
    positions: &[PixelPosition],
    scale: f64,
    size: (usize, usize),
    beyond: f64,
) -> Option<[Range<usize>; 2]> {
    let size = [size.0 as f64, size.1 as f64];
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for position in positions {
        let at = position.map(|at| at / scale);
        // Some of the nearest positions may lie on the other side of the raster's edge.
        if (0..2).all(|axis| at[axis] >= -beyond && at[axis] <= size[axis] + beyond) {
            for axis in 0..2 {
                low[axis] = low[axis].min(at[axis]);
                high[axis] = high[axis].max(at[axis]);
            }
        }
    }
    (low[0] <= high[0]).then(|| {
        [0, 1].map(|axis| {
            let first = (low[axis] - beyond).clamp(0.0, size[axis]) as usize;
            let last = (high[axis] + beyond).clamp(0.0, size[axis]) as usize + 1;
            first / BLOCK..last / BLOCK + 1
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use terrane_geo::{
        Affine, Crs, Georeference, Grid as Heights, MemoryRaster, SampleType, Storage,
    };

    use super::*;
    use crate::tiles::BlockCache;
    use crate::{Settings, Target, fixture};

    /// Hills within 5 cm.
    fn hills(folder: &std::path::Path) -> MapTiles {
        file(folder, Target::MaxError(0.05), |x, y| {
            500.0 + 40.0 * (x / 61.0).sin() * (y / 47.0).cos() + 0.1 * (x + y)
        })
    }

    /// As rough as no ground is, without loss: pixels of 2 m differ by up to 500 m.
    fn spikes(folder: &std::path::Path) -> MapTiles {
        file(folder, Target::Lossless, |x, y| {
            1000.0
                + (7919.0 * x + 104_729.0 * y + x * x * y)
                    .rem_euclid(500.0)
                    .floor()
        })
    }

    /// 600 by 500 pixels of 2 m in tiles of 64.
    fn file(
        folder: &std::path::Path,
        target: Target,
        height_at: impl Fn(f64, f64) -> f64,
    ) -> MapTiles {
        let mut grid = Heights::missing(600, 500);
        for (index, height) in grid.heights.iter_mut().enumerate() {
            *height = height_at((index % 600) as f64, (index / 600) as f64);
        }
        let georeference = Georeference::new(
            Affine::north_up(2_600_000.0, 1_200_000.0, 2.0),
            Crs::projected(2056, None),
        );
        let storage = Storage::metres(SampleType::F32, Some(-9999.0));
        let raster = MemoryRaster::new("hills", grid, georeference, storage);
        let path = folder.join("hills.trn");
        let settings = Settings {
            tile: Some(64),
            target,
            ..Settings::default()
        };
        fixture::write(&raster, &settings, &path);
        let terrain = Arc::new(crate::open(&path).unwrap());
        MapTiles::open(terrain, &Arc::new(BlockCache::new(1 << 26))).unwrap()
    }

    /// Numbers of a message's fields, and the bytes or numbers that they hold.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = take(&mut bytes);
            let (number, content): (u64, &[u8]) = match tag & 7 {
                0 => (take(&mut bytes), &[]),
                kind => {
                    let length = if kind == 1 { 8 } else { take(&mut bytes) };
                    let (content, rest) = bytes.split_at(length as usize);
                    bytes = rest;
                    (0, content)
                }
            };
            fields.push((tag >> 3, number, content));
        }
        fields
    }

    fn take(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    /// Segments of all lines with the number of their feature's height, and whether it is an index line, read again from
    /// the bytes of a tile.
    fn read(tile: &[u8]) -> Vec<(f64, bool, [[i64; 2]; 2])> {
        let layers = fields(tile);
        let layer = fields(layers[0].2);
        let of = |field| layer.iter().filter(move |part| part.0 == field);
        assert_eq!(of(1).next().unwrap().2, LAYER.as_bytes());
        assert_eq!(
            (of(15).next().unwrap().1, of(5).next().unwrap().1),
            (2, 4096)
        );
        let keys: Vec<&[u8]> = of(3).map(|key| key.2).collect();
        assert_eq!(keys, [b"height".as_slice(), b"index"]);
        let values: Vec<_> = of(4).map(|value| fields(value.2)[0]).collect();
        let mut segments = Vec::new();
        for feature in of(2) {
            let parts = fields(feature.2);
            let part = |field| parts.iter().find(|part| part.0 == field).unwrap();
            assert_eq!(part(3).1, 2);
            let numbers = |mut list: &[u8]| {
                let mut numbers = Vec::new();
                while !list.is_empty() {
                    numbers.push(take(&mut list));
                }
                numbers
            };
            let tags = numbers(part(2).2);
            let height = f64::from_le_bytes(values[tags[1] as usize].2.try_into().unwrap());
            let is_index = values[tags[3] as usize].1 == 1;
            let mut commands = numbers(part(4).2).into_iter();
            let mut at = [0_i64; 2];
            while let Some(command) = commands.next() {
                for _ in 0..command >> 3 {
                    let before = at;
                    for axis in &mut at {
                        let step = commands.next().unwrap().cast_signed();
                        *axis += (step >> 1) ^ -(step & 1);
                    }
                    if command & 7 == 2 {
                        segments.push((height, is_index, [before, at]));
                    }
                }
            }
        }
        segments
    }

    /// The tile of a zoom at the middle.
    fn middle(tiles: &MapTiles, z: u8) -> MapTile {
        let [west, south, east, north] = tiles.bounds();
        let (u, v) = position(f64::midpoint(west, east), f64::midpoint(south, north));
        let across = f64::from(1_u32 << z);
        MapTile::new(z, (u * across) as u32, (v * across) as u32).unwrap()
    }

    #[test]
    fn too_many_lines_are_refused_before_they_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let tiles = hills(folder.path());
        let tile = middle(&tiles, 17);
        let refused = |interval| {
            tiles
                .contours(tile, Some(interval), Deadline::NONE)
                .unwrap_err()
        };
        let finer = refused(0.04);
        assert!(matches!(finer, TileError::FinerThanFile { .. }), "{finer}");
        assert!(tiles.contours(tile, Some(0.05), Deadline::NONE).is_ok());
        let tiles = spikes(folder.path());
        let refused = |deadline| tiles.contours(tile, Some(0.04), deadline).unwrap_err();
        // One block alone would take tens of millions of points.
        let many = refused(Deadline::NONE);
        assert!(matches!(many, TileError::TooManyLines { .. }), "{many}");
        let started = Instant::now();
        let late = refused(Deadline::at(started + Duration::from_millis(100)));
        assert!(matches!(late, TileError::Late), "{late}");
        assert!(started.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn lines_of_a_tile_cross_by_no_more_than_its_grid_makes_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let tiles = file(folder.path(), Target::Lossless, |x, y| {
            let waves = 9.0 * (x / 2.1).sin() * (y / 2.7).cos() + 5.0 * (x / 5.0 + y / 3.0).sin();
            (400.0 + waves + 0.3 * x).floor()
        });
        let segments = read(
            &tiles
                .contours(middle(&tiles, 16), Some(2.0), Deadline::NONE)
                .unwrap(),
        );
        assert!(segments.len() > 5000, "{}", segments.len());
        let mut crossings = 0;
        for (index, (_, _, one)) in segments.iter().enumerate() {
            for (_, _, other) in &segments[index + 1..] {
                let side = |[a, b]: [[i64; 2]; 2], c: [i64; 2]| {
                    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
                };
                let off = |ends: [[i64; 2]; 2], point: [i64; 2]| {
                    let length = (ends[1][0] - ends[0][0]) as f64;
                    side(ends, point).abs() as f64 / length.hypot((ends[1][1] - ends[0][1]) as f64)
                };
                if side(*one, other[0]).signum() * side(*one, other[1]).signum() < 0
                    && side(*other, one[0]).signum() * side(*other, one[1]).signum() < 0
                {
                    crossings += 1;
                    let ends = [
                        off(*one, other[0]),
                        off(*one, other[1]),
                        off(*other, one[0]),
                        off(*other, one[1]),
                    ];
                    let least = ends.into_iter().fold(f64::INFINITY, f64::min);
                    assert!(least < 1.5, "{one:?} and {other:?}");
                }
            }
        }
        assert!(
            crossings * 1000 < segments.len(),
            "{crossings} of {}",
            segments.len()
        );
    }

    #[test]
    fn lines_meet_at_the_borders_of_tiles() {
        let folder = tempfile::tempdir().unwrap();
        let tiles = hills(folder.path());
        let [west, south, east, north] = tiles.bounds();
        let (u, v) = position(f64::midpoint(west, east), f64::midpoint(south, north));
        for z in [16, 17, 18] {
            let across = f64::from(1_u32 << z);
            let (x, y) = ((u * across) as u32, (v * across) as u32);
            // Segments of a tile in the units of the first one, and whether a buffer may have cut them.
            let segments = |x: u32, y: u32, shift: [i64; 2]| {
                let tile = MapTile::new(z, x, y).unwrap();
                let segments = read(&tiles.contours(tile, Some(2.0), Deadline::NONE).unwrap());
                let is_cut = |ends: &[[i64; 2]; 2]| {
                    let mut all = ends.as_flattened().iter();
                    all.any(|&at| at <= -64 || at >= 4096 + 64)
                };
                let moved = |end: [i64; 2]| [end[0] + shift[0], end[1] + shift[1]];
                segments
                    .into_iter()
                    .map(|(height, _, ends)| (height.to_bits(), ends.map(moved), is_cut(&ends)))
                    .collect::<Vec<_>>()
            };
            for (other, axis) in [((x + 1, y), 0), ((x, y + 1), 1)] {
                let shift = [[4096, 0], [0, 4096]][axis];
                let [ours, theirs] = [segments(x, y, [0, 0]), segments(other.0, other.1, shift)];
                // What both tiles hold whole.
                let shared = |segments: &[(u64, [[i64; 2]; 2], bool)]| {
                    let is_shared = |end: &[i64; 2]| end[axis] > 4096 - 64 && end[axis] < 4096 + 64;
                    let whole = segments
                        .iter()
                        .filter(|(_, ends, is_cut)| !is_cut && ends.iter().all(is_shared));
                    whole
                        .map(|(height, ends, _)| (*height, *ends))
                        .collect::<BTreeSet<_>>()
                };
                assert_eq!(shared(&ours), shared(&theirs), "zoom {z}");
                assert!(z > 17 || shared(&ours).len() > 3, "zoom {z}");
                // Every line that crosses the border does so in both, at the same place; a segment that is longer than the
                // buffer is wide is cut elsewhere in each, and rounded.
                let crossings = |segments: &[(u64, [[i64; 2]; 2], bool)]| {
                    let mut crossings: Vec<(u64, f64)> = segments
                        .iter()
                        .filter(|(_, [a, b], _)| (a[axis] < 4096) != (b[axis] < 4096))
                        .map(|(height, [a, b], _)| {
                            let part = (4096 - a[axis]) as f64 / (b[axis] - a[axis]) as f64;
                            let (from, to) = (a[1 - axis] as f64, b[1 - axis] as f64);
                            (*height, from + part * (to - from))
                        })
                        .filter(|(_, at)| *at > 0.0 && *at < 4096.0)
                        .collect();
                    crossings.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
                    crossings
                };
                let [ours, theirs] = [crossings(&ours), crossings(&theirs)];
                assert!(ours.len() > 3, "zoom {z}, axis {axis}: {ours:?} {theirs:?}");
                assert_eq!(ours.len(), theirs.len(), "zoom {z}");
                for (ours, theirs) in ours.iter().zip(&theirs) {
                    assert_eq!(ours.0, theirs.0);
                    assert!((ours.1 - theirs.1).abs() <= 1.0, "{ours:?} {theirs:?}");
                }
            }
        }
    }

    #[test]
    fn lines_lie_on_the_surface_and_every_fifth_is_an_index_line() {
        let folder = tempfile::tempdir().unwrap();
        let tiles = hills(folder.path());
        let [west, south, east, north] = tiles.bounds();
        let (u, v) = position(f64::midpoint(west, east), f64::midpoint(south, north));
        let z = 17;
        let across = f64::from(1_u32 << z);
        let tile = MapTile::new(z, (u * across) as u32, (v * across) as u32).unwrap();
        let segments = read(&tiles.contours(tile, Some(2.0), Deadline::NONE).unwrap());
        assert!(segments.len() > 100);
        for (height, is_index, [from, _]) in segments {
            assert_eq!(is_index, height % 10.0 == 0.0);
            let place = [from[0], from[1]].map(|at| at as f64 / 4096.0);
            let (longitude, latitude) = super::super::degrees(
                (f64::from(tile.x) + place[0]) / across,
                (f64::from(tile.y) + place[1]) / across,
            );
            let point = tiles.point(longitude, latitude, Deadline::NONE).unwrap();
            let sample = point.unwrap().sample.unwrap();
            // Half a unit of the tile is 3 cm, and the level's surface is not quite the finest.
            assert!((sample.height - height).abs() < 0.3, "{height}: {sample:?}");
        }
        // Nothing beside the raster, and no line where the interval is larger than the relief.
        let beside = MapTile::new(z, 0, 0).unwrap();
        assert!(
            tiles
                .contours(beside, None, Deadline::NONE)
                .unwrap()
                .is_empty()
        );
        let none = tiles.contours(tile, Some(5000.0), Deadline::NONE).unwrap();
        assert!(none.is_empty());
        for wrong in [0.0, -2.0, f64::NAN, 1e-9] {
            assert!(tiles.contours(tile, Some(wrong), Deadline::NONE).is_err());
        }
        let interval = tiles.contour_interval(z);
        assert!((2.0..=20.0).contains(&interval), "{interval}");
        assert!(tiles.contour_interval(12) >= interval);
    }
}
