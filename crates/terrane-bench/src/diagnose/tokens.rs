//! What the tokens of patches hold: how many directions they use, whether they follow heights, and whether patches that
//! look alike have tokens that are alike.

use std::collections::BTreeSet;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use terrane_codec::random::Random;
use terrane_networks::methods::{Method, MethodConfig, Model, Precision};
use terrane_train::config::Config;
use terrane_train::data::Dataset;
use terrane_train::evaluate::{Batch, numbers_of};
use terrane_train::measure::{MeasureError, mean_and_deviation};

use super::covariance::{Covariance, Spectrum, Symmetric};
use super::patches::Patches;
use crate::{Error, Result};

/// Tiles that are encoded at once.
const BATCH: usize = 8;
/// Patches among which neighbours are looked for, and how many of them.
const POOL: usize = 500;
const NEIGHBOURS: usize = 10;
/// The stream of random numbers that draws them.
const DRAW: u64 = 1 << 59;
/// What a layer normalisation adds to a variance.
const NORM_EPSILON: f64 = 1e-5;
/// What is known of a patch beside its token: mean, deviation and steepest slope, in metres and normalised.
const FACTS: usize = 6;

/// The structure of a model's tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenStructure {
    /// Tiles that were encoded.
    pub tiles: usize,
    /// Their patches, each with a token; the token of a whole tile does not count.
    pub tokens: usize,
    /// Principal components of the tokens as they are stored.
    pub stored: Spectrum,
    /// The same after every token was centred and brought to unit deviation: a decoder that starts with a
    /// normalisation sees nothing else. `None` where it starts otherwise.
    pub decoded: Option<Spectrum>,
    /// With the mean height of the patch in metres, which no token can know: heights are normalised per tile.
    pub metres: Correlations,
    /// With its mean normalised height.
    pub normalised: Correlations,
    /// Whether neighbours in heights are neighbours in tokens.
    pub neighbours: Vec<Neighbours>,
    /// Mean height in metres and the dimension that follows it most, for some patches.
    pub samples: Vec<[f64; 2]>,
}

/// Correlations of every dimension of the tokens with a patch's mean height.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Correlations {
    /// Pearson's.
    pub pearson: Vec<f64>,
    /// The same with the patch's deviation and steepest slope held fixed by linear regression.
    pub partial: Vec<f64>,
    /// The largest of the first without its sign.
    pub max_pearson: f64,
    /// The largest of the second without its sign.
    pub max_partial: f64,
}

/// How many neighbours in heights are neighbours in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Neighbours {
    /// What of the heights is compared.
    pub heights: Heights,
    /// What of the tokens is compared.
    pub tokens: Tokens,
    /// Patches among which neighbours are looked for.
    pub pool: usize,
    /// Neighbours of a patch.
    pub k: usize,
    /// Fraction of them that are neighbours both ways, on average.
    pub fraction: f64,
    /// The fraction by chance.
    pub chance: f64,
}

/// Heights of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heights {
    /// In metres.
    Metres,
    /// As the network sees them.
    Normalised,
}

/// Tokens of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tokens {
    /// As they are stored.
    Stored,
    /// Centred and of unit deviation, as the decoder sees them.
    Decoded,
}

/// Encodes tiles and looks at the tokens of their patches.
pub fn structure(
    model: &Model,
    config: &Config,
    dataset: &Dataset,
    tiles: &[usize],
    seed: u64,
    device: &Device,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<TokenStructure> {
    let (patch, is_normed) = match (&config.method, model) {
        (MethodConfig::Huvr(method), Model::Huvr(model)) => (method.patch, model.up.is_some()),
        (MethodConfig::HuvrSiren(method), Model::HuvrSiren(model)) => {
            (method.patch, model.up.is_some())
        }
        _ => return Err(Error::NoPatchTokens),
    };
    if tiles.is_empty() {
        return Err(MeasureError::TooFewTiles { found: 0 }.into());
    }
    let [count, width] = config.method.token_shape();
    let patches = count - 1;
    let pool = pool(patches * tiles.len(), seed);
    let mut seen = Seen {
        stored: Covariance::new(width + FACTS),
        decoded: Covariance::new(width),
        drawn: Vec::new(),
    };
    let mut number = 0;
    for (done, numbers) in tiles.chunks(BATCH).enumerate() {
        let batch = Batch::load(config, dataset, numbers, device)?;
        let tokens = numbers_of(model.encode(batch.values.clone(), Precision::Full))?;
        let tokens = tokens.chunks_exact(count * width);
        for ((heights, map), tokens) in batch.heights.iter().zip(&batch.maps).zip(tokens) {
            let cut = Patches {
                heights,
                map: *map,
                side: dataset.side(),
                patch,
            };
            // The token of the whole tile comes first.
            for (index, token) in tokens.chunks_exact(width).skip(1).enumerate() {
                seen.add(&cut, index, token, pool.contains(&number));
                number += 1;
            }
        }
        progress(done * BATCH + numbers.len(), tiles.len());
    }
    let matrix = seen.stored.matrix();
    let metres = Correlations::of(&matrix, width, [width, width + 1, width + 2]);
    let most = metres.most();
    let samples = seen.drawn.iter();
    Ok(TokenStructure {
        tiles: tiles.len(),
        tokens: number,
        stored: matrix.leading(width).spectrum(),
        decoded: is_normed.then(|| seen.decoded.matrix().spectrum()),
        normalised: Correlations::of(&matrix, width, [width + 3, width + 4, width + 5]),
        neighbours: neighbours(&seen.drawn, is_normed),
        samples: samples
            .map(|drawn| [drawn.mean_m, drawn.stored[most]])
            .collect(),
        metres,
    })
}

/// What was seen of the tokens so far.
struct Seen {
    /// Tokens as they are stored, with the facts of their patches.
    stored: Covariance,
    /// Tokens as they are decoded.
    decoded: Covariance,
    drawn: Vec<Drawn>,
}

impl Seen {
    fn add(&mut self, tile: &Patches, index: usize, token: &[f32], is_drawn: bool) {
        let facts = tile.facts(index);
        let token: Vec<f64> = token.iter().map(|&value| value.into()).collect();
        let normed = norm(&token);
        self.stored.add(token.iter().copied().chain(facts));
        self.decoded.add(normed.iter().copied());
        if is_drawn {
            let (low_m, range_m) = tile.range();
            let metres: Vec<f64> = tile.pixels(index).collect();
            let normalised = metres.iter().map(|height| (height - low_m) / range_m);
            self.drawn.push(Drawn {
                normalised: normalised.collect(),
                metres,
                mean_m: facts[0],
                stored: token,
                decoded: normed,
            });
        }
    }
}

/// Numbers of some patches of all, each equally likely.
fn pool(patches: usize, seed: u64) -> BTreeSet<usize> {
    if patches <= POOL {
        return (0..patches).collect();
    }
    let mut random = Random::new(seed, DRAW);
    let mut pool = BTreeSet::new();
    while pool.len() < POOL {
        pool.insert(random.below(patches));
    }
    pool
}

/// A token as a normalisation without scale and shift leaves it.
fn norm(token: &[f64]) -> Vec<f64> {
    let count = token.len() as f64;
    let mean = token.iter().sum::<f64>() / count;
    let centred: Vec<f64> = token.iter().map(|value| value - mean).collect();
    let variance = centred.iter().map(|value| value * value).sum::<f64>() / count;
    let factor = 1.0 / (variance + NORM_EPSILON).sqrt();
    centred.iter().map(|value| value * factor).collect()
}

impl Patches<'_> {
    /// The height that is normalised to 0, and metres of what is normalised to 1.
    fn range(&self) -> (f64, f64) {
        (self.map.low_m.into(), self.map.range_m.into())
    }

    /// The length of the gradient by central differences, one-sided at the borders of the tile.
    fn slope(&self, row: usize, column: usize) -> f64 {
        let around = |index: usize| (index.saturating_sub(1), (index + 1).min(self.side - 1));
        let ((up, down), (left, right)) = (around(row), around(column));
        let y = (self.at(down, column) - self.at(up, column)) / (down - up) as f64;
        let x = (self.at(row, right) - self.at(row, left)) / (right - left) as f64;
        y.hypot(x)
    }

    /// Mean, deviation and steepest slope in metres, and the same normalised.
    fn facts(&self, index: usize) -> [f64; FACTS] {
        let (low_m, range_m) = self.range();
        let (mean, deviation) = mean_and_deviation(self.pixels(index));
        let steepest = self
            .positions(index)
            .map(|(row, column)| self.slope(row, column))
            .fold(0.0, f64::max);
        [
            mean,
            deviation,
            steepest,
            (mean - low_m) / range_m,
            deviation / range_m,
            steepest / range_m,
        ]
    }
}

impl Correlations {
    /// Of the first variables with the first of three others, the other two held fixed.
    fn of(matrix: &Symmetric, width: usize, [mean, deviation, steepest]: [usize; 3]) -> Self {
        let rest = matrix.given(&[deviation, steepest]);
        let with_mean = |matrix: &Symmetric| -> Vec<f64> {
            (0..width)
                .map(|dimension| matrix.correlation(dimension, mean))
                .collect()
        };
        let (pearson, partial) = (with_mean(matrix), with_mean(&rest));
        let most = |values: &[f64]| {
            values
                .iter()
                .fold(0.0, |most: f64, value| most.max(value.abs()))
        };
        Self {
            max_pearson: most(&pearson),
            max_partial: most(&partial),
            pearson,
            partial,
        }
    }

    /// The dimension with the largest of Pearson's.
    fn most(&self) -> usize {
        let sizes = self.pearson.iter().map(|value| value.abs()).enumerate();
        sizes
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
            .map_or(0, |(dimension, _)| dimension)
    }
}

/// A patch of the pool.
struct Drawn {
    metres: Vec<f64>,
    normalised: Vec<f64>,
    mean_m: f64,
    stored: Vec<f64>,
    decoded: Vec<f64>,
}

/// Agreement for heights and tokens of every kind; nothing where all patches are neighbours.
fn neighbours(drawn: &[Drawn], is_normed: bool) -> Vec<Neighbours> {
    if drawn.len() <= NEIGHBOURS + 1 {
        return Vec::new();
    }
    let lists = |points: fn(&Drawn) -> &[f64]| {
        let points: Vec<&[f64]> = drawn.iter().map(points).collect();
        nearest(&points, NEIGHBOURS)
    };
    let heights = [
        (Heights::Metres, lists(|drawn| &drawn.metres)),
        (Heights::Normalised, lists(|drawn| &drawn.normalised)),
    ];
    let mut tokens = vec![(Tokens::Stored, lists(|drawn| &drawn.stored))];
    if is_normed {
        tokens.push((Tokens::Decoded, lists(|drawn| &drawn.decoded)));
    }
    let pair = |(heights, a): &(Heights, Vec<BTreeSet<usize>>),
                (tokens, b): &(Tokens, Vec<BTreeSet<usize>>)| Neighbours {
        heights: *heights,
        tokens: *tokens,
        pool: drawn.len(),
        k: NEIGHBOURS,
        fraction: overlap(a, b),
        // Any neighbour is one of the others.
        chance: NEIGHBOURS as f64 / (drawn.len() - 1) as f64,
    };
    heights
        .iter()
        .flat_map(|heights| tokens.iter().map(move |tokens| pair(heights, tokens)))
        .collect()
}

/// The nearest others of every point.
fn nearest(points: &[&[f64]], k: usize) -> Vec<BTreeSet<usize>> {
    let distance =
        |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum() };
    points
        .iter()
        .enumerate()
        .map(|(index, point)| {
            let mut others: Vec<(f64, usize)> = points
                .iter()
                .enumerate()
                .filter(|&(other, _)| other != index)
                .map(|(other, candidate)| (distance(point, candidate), other))
                .collect();
            others.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            others.iter().take(k).map(|&(_, other)| other).collect()
        })
        .collect()
}

/// The fraction of common members, on average over points.
fn overlap(a: &[BTreeSet<usize>], b: &[BTreeSet<usize>]) -> f64 {
    let fractions = a.iter().zip(b).map(|(a, b)| {
        let common = a.intersection(b).count();
        common as f64 / a.len() as f64
    });
    fractions.sum::<f64>() / a.len() as f64
}

#[cfg(test)]
mod tests {
    use terrane_codec::Normalisation;
    use terrane_report::Section;
    use terrane_train::fixture::{config, dataset};

    use super::*;

    fn drawn(count: usize, mut point: impl FnMut(usize) -> [Vec<f64>; 2]) -> Vec<Drawn> {
        (0..count)
            .map(|index| {
                let [heights, tokens] = point(index);
                Drawn {
                    metres: heights.clone(),
                    normalised: heights,
                    mean_m: 0.0,
                    stored: tokens.clone(),
                    decoded: tokens,
                }
            })
            .collect()
    }

    #[test]
    fn neighbours_agree_where_tokens_follow_heights_and_by_chance_elsewhere() {
        let mut random = Random::new(4, 0);
        let mut point = || vec![random.normal(), random.normal()];
        let same = drawn(60, |_| {
            let heights = point();
            let tokens = heights.iter().map(|value| 3.0 * value + 1.0).collect();
            [heights, tokens]
        });
        let all = neighbours(&same, true);
        assert_eq!(all.len(), 4);
        assert!(
            all.iter()
                .all(|kind| kind.fraction == 1.0 && kind.k == 10 && kind.pool == 60)
        );
        let unlike = drawn(500, |_| [point(), point()]);
        let all = neighbours(&unlike, false);
        assert_eq!((all.len(), all[0].chance), (2, 10.0 / 499.0));
        assert!((all[0].fraction - all[0].chance).abs() < 0.006, "{all:?}");
        assert!(neighbours(&unlike[..11], true).is_empty());
    }

    #[test]
    fn patches_know_their_heights() {
        // A plane of 3 m per column and 4 m per row.
        let heights: Vec<f32> = (0..64)
            .map(|index| (3 * (index % 8) + 4 * (index / 8)) as f32)
            .collect();
        let cut = Patches {
            heights: &heights,
            map: Normalisation::of(&heights),
            side: 8,
            patch: 4,
        };
        let facts = cut.facts(3);
        assert!((facts[0] - (3.0 * 5.5 + 4.0 * 5.5)).abs() < 1e-12);
        assert!((facts[1] - (25.0_f64 * 1.25).sqrt()).abs() < 1e-12);
        assert!((facts[2] - 5.0).abs() < 1e-12 && (facts[5] - 5.0 / 49.0).abs() < 1e-12);
        assert_eq!(cut.pixels(1).next(), Some(12.0));
    }

    #[test]
    fn the_pool_is_drawn_by_a_seed() {
        assert_eq!(pool(20, 1).len(), 20);
        let drawn = pool(5000, 1);
        assert_eq!((drawn.len(), &drawn), (POOL, &pool(5000, 1)));
        assert_ne!(drawn, pool(5000, 2));
    }

    #[test]
    fn the_tokens_of_a_model_are_described() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let config = config(&[]);
        let device = Device::flex();
        let model = config.method.init(5, &device);
        let tiles = dataset.split("train");
        let mut seen = Vec::new();
        let found = structure(
            &model,
            &config,
            &dataset,
            &tiles,
            0,
            &device,
            &mut |done, all| {
                seen.push((done, all));
            },
        )
        .unwrap();
        assert_eq!(
            (found.tiles, found.tokens, found.samples.len()),
            (4, 64, 64)
        );
        assert_eq!(seen, [(4, 4)]);
        assert_eq!(found.stored.eigenvalues.len(), 8);
        // A centred token has one direction less.
        let decoded = found.decoded.as_ref().unwrap();
        assert!(decoded.eigenvalues[7] == 0.0 && decoded.eigenvalues[6] > 0.0);
        for spectrum in [&found.stored, decoded] {
            assert!(
                (1.0..=8.0).contains(&spectrum.participation_ratio)
                    && (1..=8).contains(&spectrum.rank_95)
            );
        }
        assert_eq!(found.neighbours.len(), 4);
        // An encoder sees normalised heights, also before it has learnt anything.
        assert!(found.normalised.max_pearson > 0.3, "{found:?}");
        for correlations in [&found.metres, &found.normalised] {
            assert!(
                correlations
                    .pearson
                    .iter()
                    .chain(&correlations.partial)
                    .all(|value| value.abs() <= 1.0)
            );
        }
        let sections = [found.section(), found.details()];
        let rows = |section: &Section| -> Vec<usize> {
            section
                .tables
                .iter()
                .map(|table| table.rows.len())
                .collect()
        };
        assert_eq!(sections.each_ref().map(rows), [[2, 4], [8, 8]]);
        let last = &sections[1].tables[0].json()[7]["cumulative"];
        assert!((last.as_f64().unwrap() - 1.0).abs() < 1e-12);
        // What correlates most is what the samples show.
        let mut again = Covariance::new(2);
        for &[mean, value] in &found.samples {
            again.add([mean, value].into_iter());
        }
        let rho = again.matrix().correlation(0, 1).abs();
        assert!((rho - found.metres.max_pearson).abs() < 1e-9);
    }
}
