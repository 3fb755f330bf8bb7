//! Coefficients to learn from: what the network sees of each, and what it was.
//!
//! Most coefficients of a tile are 0 among zeros and teach nothing, so they are drawn less often and weigh more.

use terrane_codec::random::Random;
use terrane_context::{
    Area, BANDS, CONSTANTS, Coefficients, Matrix, PHASES, Planes, Quantiser, SUBSTEPS, Subbands,
    Tap, Taps, Transform,
};

use crate::context::config::{DataConfig, RateConfig};
use crate::data::Orientation;

/// How often a coefficient among zeros is drawn, against others.
const QUIET: f64 = 0.15;
/// Tiles are cut down by one part in so many, at a random offset, so that the wavelets fall on other pixels.
const CUT: usize = 8;
/// Symbols beyond this teach nothing more.
const MAX_SYMBOL: f64 = 1e5;
/// The network's numbers are integers; the trainer divides them by this.
pub(crate) const INPUT_UNIT: f32 = 32.0;

/// Rows of numbers.
#[derive(Debug, Default, Clone)]
pub(crate) struct Rows {
    pub(crate) values: Vec<f32>,
    pub(crate) count: usize,
}

/// What one step learns from.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    /// Inputs of the trunk for all samples, head by head, then for the dequantiser's.
    pub(crate) trunk: Rows,
    /// Inputs of each head beside the trunk.
    pub(crate) heads: Vec<Rows>,
    /// Symbols of the heads' samples, and the weight of each.
    pub(crate) symbols: Vec<f32>,
    pub(crate) weights: Vec<f32>,
    /// Inputs of the dequantiser beside the trunk, the offsets of its three subbands, and their weights.
    pub(crate) dequantiser: Rows,
    pub(crate) offsets: Vec<f32>,
    pub(crate) offset_weights: Vec<f32>,
}

/// A level of a tile as the network sees it.
struct Level {
    planes: Planes,
    symbols: [Matrix<i64>; BANDS],
    /// Quantisation residuals, in steps.
    residuals: [Matrix<f32>; BANDS],
}

/// A tile in the steps of a random rate.
pub(crate) struct Drawn {
    /// Coefficients in steps.
    pub(crate) tile: Coefficients,
    /// How they are rounded.
    pub(crate) effort: Quantiser,
}

/// Cuts, turns and scales a tile by chance.
pub(crate) fn draw(
    heights: &[f32],
    side: usize,
    data: &DataConfig,
    rate: &RateConfig,
    random: &mut Random,
) -> Option<Drawn> {
    let turned = if data.augment {
        Orientation::draw(random).apply(heights, side)
    } else {
        heights.to_vec()
    };
    let shift = side / CUT;
    let (left, top) = (random.below(shift), random.below(shift));
    let size = side - shift;
    let cut: Vec<f64> = (0..size)
        .flat_map(|row| {
            turned[(row + top) * side + left..][..size]
                .iter()
                .map(|&height| f64::from(height))
        })
        .collect();
    let (low, high) = cut.iter().fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(low, high), &height| (low.min(height), high.max(height)),
    );
    let range = (high - low).max(1e-3);
    let is_lossless = random.unit() < rate.lossless;
    let between = |random: &mut Random, low: f64, high: f64| {
        (low.ln() + (high / low).ln() * random.unit()).exp()
    };
    let mean = f64::midpoint(low, high);
    let tile = if is_lossless {
        let step = between(random, 1e-3, 5e-2).max(range / 1e5);
        let values = cut
            .iter()
            .map(|height| ((height - mean) / step).round() as i64)
            .collect();
        Coefficients::lossless(&Matrix::from_values(size, size, values)?)?
    } else {
        let step = range * between(random, rate.finest, rate.coarsest);
        let values = cut.iter().map(|height| (height - mean) / step).collect();
        Coefficients::lossy(&Matrix::from_values(size, size, values)?)?
    };
    let dead_zone = if is_lossless {
        0.0
    } else {
        rate.dead_zone * random.unit()
    };
    let effort = Quantiser {
        dead_zone,
        ..Quantiser::ROUNDING
    };
    Some(Drawn { tile, effort })
}

fn levels(drawn: &Drawn) -> Vec<Level> {
    let tile = &drawn.tile;
    let unit = tile.transform.substeps();
    let mut low = tile.ll.map(|value| value.round() as i64 * unit);
    let mut parents: Option<[Matrix<i64>; BANDS]> = None;
    let mut levels = Vec::new();
    for (finer, bands) in tile.levels.iter().enumerate().rev() {
        let symbols = bands
            .each_ref()
            .map(|band| band.map(|value| drawn.effort.nearest(value)));
        let residuals = std::array::from_fn(|band| Matrix {
            width: bands[band].width,
            height: bands[band].height,
            values: bands[band]
                .values
                .iter()
                .zip(&symbols[band].values)
                .map(|(value, &symbol)| (value - symbol as f64) as f32)
                .collect(),
        });
        let seen = low.map(|value| value * (SUBSTEPS / unit));
        let mut planes = Planes::new(&seen, Area::whole(&seen), parents.as_ref(), finer);
        planes.set_symbols(&symbols);
        levels.push(Level {
            planes,
            symbols: symbols.clone(),
            residuals,
        });
        let subbands = Subbands {
            ll: low,
            bands: symbols
                .each_ref()
                .map(|band| band.map(|symbol| symbol * unit)),
        };
        low = tile.transform.inverse(subbands);
        parents = Some(symbols);
    }
    levels
}

/// Positions of a phase of a band with how often each is drawn.
struct Candidates {
    positions: Vec<(usize, [usize; 2])>,
    sums: Vec<f64>,
}

impl Candidates {
    fn new(levels: &[Level], band: usize, [row_phase, column_phase]: [usize; 2]) -> Self {
        let mut positions = Vec::new();
        let mut sums = Vec::new();
        let mut sum = 0.0;
        for (index, level) in levels.iter().enumerate() {
            let grid = &level.symbols[band];
            for row in (row_phase..grid.height).step_by(2) {
                for column in (column_phase..grid.width).step_by(2) {
                    let is_quiet = level.symbols.iter().all(|grid| {
                        (-1..=1).all(|down: isize| {
                            (-1..=1).all(|right: isize| {
                                grid.values.is_empty()
                                    || grid.clamped(column as isize + right, row as isize + down)
                                        == 0
                            })
                        })
                    });
                    sum += if is_quiet { QUIET } else { 1.0 };
                    positions.push((index, [column, row]));
                    sums.push(sum);
                }
            }
        }
        Self { positions, sums }
    }

    /// A position and its weight in a sum over all positions, of which so many are drawn.
    fn draw(&self, count: usize, random: &mut Random) -> Option<(usize, [usize; 2], f64)> {
        let total = *self.sums.last()?;
        let at = random.unit() * total;
        let index = self
            .sums
            .partition_point(|&sum| sum <= at)
            .min(self.positions.len() - 1);
        let before = index.checked_sub(1).map_or(0.0, |index| self.sums[index]);
        let (level, position) = self.positions[index];
        Some((
            level,
            position,
            total / (self.sums[index] - before) / count as f64,
        ))
    }
}

impl Batch {
    /// Draws so many samples per head from each tile.
    pub(crate) fn new(tiles: &[Drawn], count: usize, taps: &Taps, random: &mut Random) -> Self {
        let heads = taps.heads.len();
        let mut trunks = vec![Rows::default(); heads + 1];
        let mut batch = Self {
            trunk: Rows::default(),
            heads: vec![Rows::default(); heads],
            symbols: Vec::new(),
            weights: Vec::new(),
            dequantiser: Rows::default(),
            offsets: Vec::new(),
            offset_weights: Vec::new(),
        };
        let mut symbols = vec![Vec::new(); heads];
        let mut weights = vec![Vec::new(); heads];
        for drawn in tiles {
            let levels = levels(drawn);
            let pixels = (drawn.tile.width * drawn.tile.height) as f64;
            // A tenth fewer bits is worth as much at any rate, so that few bits count for more each.
            let guess: f64 = levels
                .iter()
                .flat_map(|level| level.symbols.iter().flat_map(|grid| &grid.values))
                .filter(|&&symbol| symbol != 0)
                .map(|symbol| 3.5 + (symbol.unsigned_abs() as f64).log2())
                .sum::<f64>()
                / pixels;
            let worth = 1.0 / (pixels * tiles.len() as f64 * (guess + 0.05).powf(0.6));
            for head in 0..heads {
                let (band, phase) = (head / PHASES.len(), head % PHASES.len());
                let candidates = Candidates::new(&levels, band, PHASES[phase]);
                for _ in 0..count {
                    let Some((level, position, weight)) = candidates.draw(count, random) else {
                        continue;
                    };
                    let level = &levels[level];
                    gather(
                        &mut trunks[head],
                        &level.planes,
                        &taps.trunk,
                        position,
                        true,
                    );
                    gather(
                        &mut batch.heads[head],
                        &level.planes,
                        &taps.heads[head],
                        position,
                        false,
                    );
                    let grid = &level.symbols[band];
                    let symbol = grid.values[position[1] * grid.width + position[0]] as f64;
                    symbols[head].push(symbol.clamp(-MAX_SYMBOL, MAX_SYMBOL) as f32);
                    weights[head].push((weight * worth) as f32);
                }
            }
            if drawn.tile.transform == Transform::Lossy {
                for phase in PHASES {
                    let candidates = Candidates::new(&levels, 0, phase);
                    for _ in 0..count {
                        let Some((level, position, weight)) = candidates.draw(count, random) else {
                            continue;
                        };
                        let level = &levels[level];
                        gather(
                            &mut trunks[heads],
                            &level.planes,
                            &taps.trunk,
                            position,
                            true,
                        );
                        gather(
                            &mut batch.dequantiser,
                            &level.planes,
                            &taps.dequantiser,
                            position,
                            false,
                        );
                        for residual in &level.residuals {
                            let is_there =
                                position[0] < residual.width && position[1] < residual.height;
                            let value = if is_there {
                                residual.values[position[1] * residual.width + position[0]]
                            } else {
                                0.0
                            };
                            batch.offsets.push(value);
                            batch.offset_weights.push(if is_there {
                                (weight * worth) as f32
                            } else {
                                0.0
                            });
                        }
                    }
                }
            }
        }
        for rows in trunks {
            batch.trunk.values.extend(rows.values);
            batch.trunk.count += rows.count;
        }
        batch.symbols = symbols.concat();
        batch.weights = weights.concat();
        batch
    }
}

fn gather(
    rows: &mut Rows,
    planes: &Planes,
    taps: &[Tap],
    position: [usize; 2],
    with_constants: bool,
) {
    if with_constants {
        rows.values
            .extend(planes.constants.map(|value| value / INPUT_UNIT));
        debug_assert_eq!(planes.constants.len(), CONSTANTS);
    }
    rows.values.extend(
        taps.iter()
            .map(|tap| planes.input(tap, position) / INPUT_UNIT),
    );
    rows.count += 1;
}
