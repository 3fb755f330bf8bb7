//! A finest tile within an error bound: symbols chosen with the bound in view, and corrections of what is left.

use terrane_context::{
    Bumps, Codec, Draft, Finest, FinestSymbols, Matrix, Penalty, Picture, Quantiser, SUBSTEPS,
    search,
};
use terrane_format::corrections::{
    Corrections, GRIDS, PARTS, PROFILE_ONE, PROFILES, SPACINGS, grid_size,
};

use crate::portable;
use crate::tile::TileHeights;

/// How hard a tile within a bound is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Search {
    /// How often the finest level is searched and coded again.
    pub(super) searches: usize,
    /// How often a search goes over all symbols.
    pub(super) rounds: usize,
}

impl Search {
    /// Symbols as the quantiser chooses them.
    pub(super) const NONE: Self = Self {
        searches: 0,
        rounds: 1,
    };
}

/// Heights of bumps, in parts of a step of the corrections, as they were best on the training tiles.
const BUMPS: [u8; GRIDS] = [27, 46];
/// Bits of a bump before any was counted.
const BUMP_BITS: [f64; GRIDS] = [4.5, 6.0];
/// What is left of the outliers when bumps and symbols have done their part, as a first guess.
const LEFT: f64 = 0.38;
/// Bits that a second bump at the same place takes more than the first.
const SECOND_BITS: f64 = 4.0;

/// Bits of an event beside its absence, with its sign, from its share.
fn event_bits(share: f64) -> f64 {
    let share = share.clamp(3e-4, 0.4);
    portable::log2((1.0 - share) / share) + 1.0
}

fn bumps_of(size: [usize; 2], step: f64) -> Vec<Bumps> {
    (0..GRIDS)
        .map(|grid| {
            let [width, height] = grid_size(grid, size);
            Bumps {
                spacing: SPACINGS[grid],
                profile: PROFILES[grid]
                    .iter()
                    .map(|&part| part as f32 / PROFILE_ONE as f32)
                    .collect(),
                height: (step * f64::from(BUMPS[grid]) / PARTS as f64) as f32,
                bits: bump_bits(BUMP_BITS[grid]),
                values: Matrix::new(width, height),
            }
        })
        .collect()
}

fn bump_bits(first: f64) -> [f32; 3] {
    [0.0, first as f32, (first + SECOND_BITS) as f32]
}

/// The share of errors beyond a bound.
fn share_beyond(errors: impl Iterator<Item = f64>, bound: f64) -> f64 {
    let (beyond, count) = errors.fold((0.0, 0.0), |(beyond, count), error| {
        (beyond + f64::from(error.abs() > bound), count + 1.0)
    });
    beyond / f64::max(count, 1.0)
}

/// The bytes and the picture of a finest tile, whose heights are given in steps (NaN where a pixel does not matter), with a
/// bound in steps.
pub(super) fn encode(
    codec: &Codec,
    draft: &Draft,
    quantiser: Quantiser,
    values: &Matrix<f64>,
    bound: f64,
    search: Search,
) -> (Option<Vec<u8>>, Picture) {
    let mut finest = draft.choose(quantiser);
    let mut bytes = None;
    for _ in 0..search.searches.max(1) {
        let symbols = searched(codec, values, bound, &finest, search.rounds);
        (bytes, finest) = draft.code(&symbols);
    }
    (bytes, finest.picture)
}

/// The symbols of a finest level after a search.
fn searched(
    codec: &Codec,
    values: &Matrix<f64>,
    bound: f64,
    finest: &Finest,
    rounds: usize,
) -> [Matrix<i64>; 3] {
    let errors = Matrix {
        values: values
            .values
            .iter()
            .zip(&finest.picture.values().values)
            .map(|(value, &decoded)| value - decoded as f64 / SUBSTEPS as f64)
            .collect(),
        ..*values
    };
    let valid = errors
        .values
        .iter()
        .copied()
        .filter(|error| !error.is_nan());
    let left = LEFT * share_beyond(valid, bound);
    let mut symbols = finest.symbols.clone();
    let penalty = Penalty {
        bound: bound as f32,
        outlier: event_bits(left) as f32,
        ramp: [0.89, 1.25],
        square: 0.4,
        least: 0.0,
    };
    search(
        &errors,
        penalty,
        rounds,
        &mut bumps_of([values.width, values.height], 2.0 * bound),
        Some(FinestSymbols {
            distributions: &codec.model().distributions,
            contexts: &finest.contexts,
            values: &mut symbols,
        }),
    );
    symbols
}

/// What brings decoded heights within a bound; `None` where all are.
pub(super) fn corrections(
    tile: &TileHeights,
    decoded: &[f64],
    within: f64,
    rounds: usize,
) -> Option<Corrections> {
    let size @ [width, height] = [tile.window.width, tile.window.height];
    let differences = tile.differences(decoded);
    let share = share_beyond(tile.valid(&differences), within);
    if share == 0.0 {
        return None;
    }
    let mut step_m = (2.0 * within) as f32;
    if f64::from(step_m) > 2.0 * within {
        step_m = step_m.next_down();
    }
    // In bounds.
    let errors = Matrix {
        width,
        height,
        values: differences.iter().map(|error| error / within).collect(),
    };
    let mut bumps = bumps_of(size, f64::from(step_m) / within);
    let mut left = LEFT * share;
    // Once with guessed costs, and once with those that come of it.
    for pass in 0..2 {
        if pass > 0 {
            for bumps in &mut bumps {
                let count = bumps
                    .values
                    .values
                    .iter()
                    .filter(|&&value| value != 0)
                    .count();
                let share = count as f64 / bumps.values.values.len() as f64;
                bumps.bits = bump_bits(event_bits(share));
                bumps.values.values.fill(0);
            }
        }
        let penalty = Penalty {
            bound: 1.0,
            outlier: event_bits(left) as f32,
            ramp: [0.99, 1.01],
            square: 0.15,
            least: 0.15,
        };
        let after = search(&errors, penalty, rounds, &mut bumps, None);
        let after = after.values.iter().map(|&error| f64::from(error));
        left = share_beyond(
            after
                .enumerate()
                .filter(|(index, _)| !tile.is_missing(*index))
                .map(|(_, error)| error),
            1.0,
        );
    }
    let mut corrections = Corrections {
        step_m,
        heights: BUMPS,
        first: 0,
        bumps: std::array::from_fn(|grid| std::mem::take(&mut bumps[grid].values.values)),
        pixels: vec![0; width * height],
    };
    let metres = corrections.metres(width);
    // How far beyond the bound each pixel still is; below 0 where it is not.
    let excess: Vec<f64> = differences
        .iter()
        .zip(&metres)
        .map(|(difference, metres)| (difference - metres).abs() - within)
        .collect();
    let step_m = f64::from(step_m);
    // The first unit mends nearly all: what it is less than a step makes the rest of the errors smaller.
    let mut beyond: Vec<f64> = excess
        .iter()
        .copied()
        .filter(|excess| *excess > 0.0)
        .collect();
    beyond.sort_unstable_by(f64::total_cmp);
    let most = beyond.get(beyond.len().saturating_sub(1 + beyond.len() / 100));
    let most = most.map_or(0.0, |most| (most / step_m * PARTS as f64).ceil());
    corrections.first = most.clamp(PARTS as f64 / 2.0, PARTS as f64) as u8;
    let first_m = step_m * f64::from(corrections.first) / PARTS as f64;
    for (index, &excess) in excess.iter().enumerate() {
        if excess > 0.0 {
            let further = ((excess - first_m) / step_m).ceil().max(0.0) as i64;
            let sign = differences[index] - metres[index];
            corrections.pixels[index] = (1 + further) * sign.signum() as i64;
        }
    }
    Some(corrections)
}
