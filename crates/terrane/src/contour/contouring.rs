//! The contour lines of a file, on its map.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_codec::parallel::in_parallel;
use terrane_codec::tiling::Tiling;
use terrane_codec::{Surface, Terrain};
use terrane_geo::{Affine, GroundScale};

use super::field::TokenField;
use super::strips::Strips;
use super::{Cells, Chain, Field, Joiner, Levels, Line, Point, Tracing};
use crate::georeferencing::{georeference, size};
use crate::{Error, Result};

/// Cells across a block that one thread traces.
const BLOCK: usize = 256;
/// Metres on the ground that lines keep from each other: half of what a point may be off across. In pixels, not more than
/// anybody sees and not less than numbers tell apart.
const GAP_M: f64 = 5e-5;
const GAPS: [f64; 2] = [1e-8, 1e-3];
/// Memory of a point while its block is traced, and of one in a line.
const TRACED_BYTES: u64 = (2 * size_of::<Point>() + 2 * size_of::<usize>()) as u64;
const LINE_BYTES: u64 = 2 * size_of::<Point>() as u64;
/// Metres by which heights may lie beyond what a file states: a surface swings between pixels.
const BEYOND_M: f64 = 1.0;

/// Which contour lines of a file are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contouring {
    /// Metres from one line to the next.
    pub interval: f64,
    /// A height that lines are counted from.
    pub base: f64,
    /// The part, in map units: left, bottom, right, top.
    pub bbox: Option<[f64; 4]>,
    /// An overview, whose surface is coarser.
    pub level: u8,
    /// Metres on the ground; shorter lines are left out.
    pub min_length: f64,
    /// Every so manieth line from the base is an index line; 0 for none.
    pub index: u32,
}

impl Contouring {
    /// All lines of a file so many metres apart, every fifth an index line.
    pub fn every(interval: f64) -> Self {
        Self {
            interval,
            base: 0.0,
            bbox: None,
            level: 0,
            min_length: 0.0,
            index: 5,
        }
    }

    /// Finds the lines, one after the other as they are complete; `progress` is told rows done and rows in all, and may
    /// stop it, and so may who is given a line.
    pub fn trace(
        &self,
        terrain: &Terrain,
        jobs: usize,
        progress: &mut dyn FnMut(u64, u64) -> Result<()>,
        found: &mut dyn FnMut(ContourLine) -> Result<()>,
    ) -> Result<()> {
        let part = Part::new(self, terrain)?;
        let Part { cells, gap, .. } = &part;
        let mut joiner = Joiner::new(part.levels.clone(), *gap);
        let mut strips = Strips::new(terrain, self.level, cells, part.tiling, jobs)?;
        let strip_bytes = strips.bytes();
        let all = cells.columns();
        let blocks: Vec<Range<usize>> = all
            .clone()
            .step_by(BLOCK)
            .map(|start| start..(start + BLOCK).min(all.end))
            .collect();
        // Pixels are at hand, but a network's tiles are decoded again for its surface.
        let threads = if part.surface.is_some() {
            terrain.decoders(jobs)?
        } else {
            jobs
        };
        let total = cells.rows().len() as u64;
        while let Some((rows, pixels)) = strips.advance()? {
            let done = (rows.end - cells.rows().start) as u64;
            // What one round of threads finds is in memory together, with the lines that go on elsewhere.
            for blocks in blocks.chunks(threads.max(1)) {
                let open = (joiner.open_points() as u64).saturating_mul(LINE_BYTES);
                let memory = Memory {
                    terrain,
                    taken: strip_bytes.saturating_add(open),
                    points: AtomicU64::new(0),
                };
                let traced = in_parallel(blocks.len(), threads, &|index| {
                    let (columns, rows) = (blocks[index].clone(), rows.clone());
                    if let Some(surface) = &part.surface {
                        let field = TokenField { surface, pixels };
                        part.block(&field, columns, rows, &memory)?
                    } else {
                        let Ok(chains) = part.block(pixels, columns, rows, &memory);
                        chains
                    }
                })?;
                for chain in traced.into_iter().flatten() {
                    if let Some(line) = joiner.add(chain) {
                        part.give(line, found)?;
                    }
                }
            }
            progress(done, total)?;
        }
        for line in joiner.rest() {
            part.give(line, found)?;
        }
        Ok(())
    }
}

/// A contour line on the map.
#[derive(Debug, Clone, PartialEq)]
pub struct ContourLine {
    /// In metres.
    pub height: f64,
    /// Whether it is one of those that are drawn bold and labelled.
    pub is_index: bool,
    /// Its points on the map, with the higher ground on the right; of a closed line the last is the first.
    pub points: Vec<[f64; 2]>,
}

impl ContourLine {
    /// Whether it is closed; an open line ends at the edge of the part or of the data.
    pub fn is_closed(&self) -> bool {
        self.points.len() > 3 && self.points.first() == self.points.last()
    }
}

/// The memory that blocks take while they are traced.
struct Memory<'a> {
    terrain: &'a Terrain,
    /// Bytes of what else is there.
    taken: u64,
    /// Points of all blocks.
    points: AtomicU64,
}

impl Memory<'_> {
    /// Counts points that are about to be found; an error where they are too many.
    fn take(&self, count: usize) -> std::result::Result<(), terrane_codec::Error> {
        let before = self.points.fetch_add(count as u64, Ordering::Relaxed);
        let points = before.saturating_add(count as u64);
        self.terrain.memory().check(
            "so many contour lines at a time",
            points
                .saturating_mul(TRACED_BYTES)
                .saturating_add(self.taken),
            "take a larger `interval`, a part with `bbox` or a coarser `level`, or ",
        )?;
        Ok(())
    }
}

/// The part of a file that lines are traced in.
struct Part<'a> {
    contouring: Contouring,
    cells: Cells,
    tiling: Tiling,
    levels: Levels,
    /// Pixels that lines keep from each other.
    gap: f64,
    /// Where the surface is not the kernel's.
    surface: Option<Surface<'a>>,
    /// From pixels of the level to the map.
    affine: Affine,
    scale: GroundScale,
}

impl<'a> Part<'a> {
    fn new(contouring: &Contouring, terrain: &'a Terrain) -> Result<Self> {
        let Contouring {
            level, min_length, ..
        } = *contouring;
        if !(min_length >= 0.0 && min_length.is_finite()) {
            return Err(Error::NotPositive {
                name: "min_length",
                value: min_length,
            });
        }
        let header = terrain.header();
        let statistics = &header.statistics;
        let beyond = statistics.max_error_m.abs() + BEYOND_M;
        let levels = Levels::new(
            contouring.base,
            contouring.interval,
            [statistics.lowest_m - beyond, statistics.highest_m + beyond],
        )?;
        let (width, height) = header.pyramid.size(level).ok_or(Error::NoLevel {
            level,
            last: header.pyramid.levels() - 1,
        })?;
        let (width, height) = (width as usize, height as usize);
        let own = georeference(header);
        let affine = own.coarsened(f64::from(level).exp2()).affine();
        let cells = match contouring.bbox {
            None => Cells::whole(width, height),
            Some(bbox) => cells_of(&affine, (width, height), bbox)?,
        };
        let scale = GroundScale::of_raster(&own, size(terrain))?;
        let pixel_m = scale.pixel_m(&affine, (width, height));
        let has_networks = level == 0 && header.method.has_tokens();
        Ok(Self {
            contouring: *contouring,
            cells,
            tiling: Tiling {
                width,
                height,
                side: header.pyramid.side().into(),
            },
            levels,
            gap: (GAP_M / pixel_m).clamp(GAPS[0], GAPS[1]),
            surface: has_networks.then(|| terrain.surface()).transpose()?,
            affine,
            scale,
        })
    }

    /// The lines of a block; an error where memory does not hold them.
    fn block<F: Field>(
        &self,
        field: &F,
        columns: Range<usize>,
        rows: Range<usize>,
        memory: &Memory,
    ) -> std::result::Result<std::result::Result<Vec<Chain>, terrane_codec::Error>, F::Error> {
        let tracing = Tracing {
            field,
            cells: &self.cells,
            levels: &self.levels,
            gap: self.gap,
        };
        let mut refused = None;
        let chains = tracing.block(columns, rows, &mut |count| {
            refused = memory.take(count).err();
            refused.is_none()
        })?;
        Ok(refused.map_or(Ok(chains.unwrap_or_default()), Err))
    }

    /// Hands a line on, on the map, where it is long enough.
    fn give(&self, line: Line, found: &mut dyn FnMut(ContourLine) -> Result<()>) -> Result<()> {
        let Line {
            number,
            height,
            mut points,
        } = line;
        for point in &mut points {
            *point = self.affine.apply(point[0], point[1]).into();
        }
        let Affine {
            x_per_column,
            x_per_row,
            y_per_column,
            y_per_row,
            ..
        } = self.affine;
        // A map whose rows run north shows the raster in a mirror, and so right is left.
        if x_per_column * y_per_row - x_per_row * y_per_column > 0.0 {
            points.reverse();
        }
        let index = i64::from(self.contouring.index);
        if self.contouring.min_length > 0.0 && self.length_m(&points) < self.contouring.min_length {
            return Ok(());
        }
        found(ContourLine {
            height,
            is_index: index > 0 && number % index == 0,
            points,
        })
    }

    fn length_m(&self, points: &[[f64; 2]]) -> f64 {
        let step = |ends: &[[f64; 2]]| {
            let ground = self.scale.at(ends[0][0], ends[0][1]);
            ground.length(ends[1][0] - ends[0][0], ends[1][1] - ends[0][1])
        };
        points.windows(2).map(step).sum()
    }
}

/// The cells of a box on the map, up to its edges; of a rotated raster, of the part of it that holds the box.
fn cells_of(affine: &Affine, size: (usize, usize), bbox: [f64; 4]) -> Result<Cells> {
    let [x0, y0, x1, y1] = bbox;
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for (x, y) in [(x0, y0), (x0, y1), (x1, y0), (x1, y1)] {
        let (column, row) = affine.invert(x, y).ok_or(Error::Singular)?;
        for (axis, value) in [column, row].into_iter().enumerate() {
            low[axis] = low[axis].min(value);
            high[axis] = high[axis].max(value);
        }
    }
    let size = [size.0 as f64, size.1 as f64];
    for axis in 0..2 {
        low[axis] = low[axis].max(0.0);
        high[axis] = high[axis].min(size[axis]);
        // Not a number is outside as well.
        if low[axis].partial_cmp(&high[axis]) != Some(std::cmp::Ordering::Less) {
            return Err(Error::OutsideBox);
        }
    }
    Ok(Cells::part(low, high))
}
