//! A network of sines fitted to one tile from scratch, as before amortisation: the classical ceiling and its price.

use std::time::{Duration, Instant};

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde::Serialize;
use terrane_codec::Normalisation;
use terrane_networks::blocks::{Check, Modulation, SettingError, Siren, SirenBias, pixel_grid};
use terrane_networks::init::Init;
use terrane_train::config::check_each;
use terrane_train::data::Dataset;
use terrane_train::evaluate::numbers_of;
use terrane_train::measure::{self, Derivatives, Summary, TileMeasures, measure_analytic};

use super::State;
use super::descent::Descent;
use crate::Result;

/// Points whose derivatives are computed at once.
const POINTS: usize = 8192;
/// Bits of a stored weight.
const WEIGHT_BITS: usize = 32;

/// The network and its descent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SirenOptions {
    /// Width of the hidden layers.
    pub width: usize,
    /// Hidden layers, all of sines.
    pub layers: usize,
    /// Frequency factor of all sines.
    pub omega: f64,
    /// Where the first weights of every tile's network start.
    pub seed: u64,
    /// The steps.
    pub descent: Descent,
}

impl SirenOptions {
    /// Refuses sizes that no network can have.
    pub fn check(&self) -> Check {
        for (key, value, most) in [
            ("`width`", self.width, 16_384),
            ("`layers`", self.layers, 1024),
        ] {
            if !(1..=most).contains(&value) {
                return Err(SettingError::new(
                    key,
                    format!("be from 1 to {most}"),
                    value,
                ));
            }
        }
        check_each(&[("`omega`", self.omega)], "be a number above 0", |omega| {
            omega > 0.0
        })?;
        self.descent.check()
    }

    /// Bytes that fitting a tile of this side takes, as far as one can tell beforehand; `None` where nobody could count
    /// them.
    pub fn training_bytes(&self, side: usize) -> Option<u64> {
        let [width, layers, side] = [self.width, self.layers, side].map(|size| size as u64);
        let weights = width.checked_mul(width.checked_mul(layers)?.checked_add(4)?)?;
        let points = side.checked_mul(side)?;
        let recorded = points.checked_mul(width.checked_mul(layers)?.checked_mul(4)?)?;
        weights
            .checked_mul(16)?
            .checked_add(recorded.checked_mul(4)?)
    }
}

/// Networks of single tiles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sirens {
    /// How they were made.
    pub options: SirenOptions,
    /// Weights of one network.
    pub weights: usize,
    /// What a tile's network takes as it is.
    pub bits_per_pixel: f64,
    /// Means over tiles.
    pub mean: Summary,
    /// Mean time of a tile's steps.
    pub minutes_per_tile: f64,
    /// Means over tiles at the steps that were looked at.
    pub curve: Vec<SirenPoint>,
    /// Every tile.
    pub tiles: Vec<FittedSiren>,
}

/// The network of one tile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedSiren {
    /// Number of the tile in its dataset.
    pub tile: usize,
    /// Its measures with the best weights, with analytic derivatives.
    pub measures: TileMeasures,
    /// Time of its steps.
    pub minutes: f64,
    /// The steps that were looked at.
    pub curve: Vec<SirenPoint>,
}

/// The measures after some steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SirenPoint {
    /// Steps done.
    pub step: usize,
    /// Peak signal-to-noise ratio.
    pub psnr_db: f64,
    /// Root mean square height error.
    pub rmse_m: f64,
    /// Root mean square length of the gradient's error vector.
    pub gradient_rmse_m_per_px: f64,
    /// Root mean square error of the Laplacian.
    pub laplacian_rmse_m_per_px2: f64,
}

/// Fits a network of its own to every tile, one after another.
pub fn fit(
    dataset: &Dataset,
    tiles: &[usize],
    options: &SirenOptions,
    device: &Device,
    progress: &mut dyn FnMut(State),
) -> Result<Sirens> {
    let mut fitted = Vec::with_capacity(tiles.len());
    let mut weights = 0;
    for (index, &tile) in tiles.iter().enumerate() {
        let subject = Subject::load(dataset, tile, device)?;
        let steps = options.descent.steps;
        let (siren, count) = subject.fit(tile, options, device, &mut |point| {
            progress(State {
                step: index * steps + point.step,
                steps: tiles.len() * steps,
                psnr_db: point.psnr_db,
            });
        })?;
        weights = count;
        fitted.push(siren);
    }
    let measures: Vec<TileMeasures> = fitted.iter().map(|siren| siren.measures).collect();
    let count = fitted.len().max(1) as f64;
    Ok(Sirens {
        options: *options,
        weights,
        bits_per_pixel: (weights * WEIGHT_BITS) as f64 / dataset.side().pow(2) as f64,
        mean: measure::mean(&measures)?,
        minutes_per_tile: fitted.iter().map(|siren| siren.minutes).sum::<f64>() / count,
        curve: mean_curve(&fitted),
        tiles: fitted,
    })
}

/// A tile as one function on [−1, 1]².
struct Subject {
    side: usize,
    heights: Vec<f32>,
    map: Normalisation,
    /// Normalised heights `[pixels, 1]`.
    target: Tensor<2>,
    points: Tensor<2>,
}

impl Subject {
    fn load(dataset: &Dataset, tile: usize, device: &Device) -> Result<Self> {
        let side = dataset.side();
        let heights = dataset.heights(tile)?;
        let map = Normalisation::of(&heights);
        let values: Vec<f32> = heights
            .iter()
            .map(|&height| map.normalise(height))
            .collect();
        Ok(Self {
            side,
            map,
            target: Tensor::from_data(TensorData::new(values, [side * side, 1]), device),
            points: pixel_grid(side, device),
            heights,
        })
    }

    /// The fitted network and the number of its weights.
    fn fit(
        &self,
        tile: usize,
        options: &SirenOptions,
        device: &Device,
        see: &mut dyn FnMut(SirenPoint),
    ) -> Result<(FittedSiren, usize)> {
        let &SirenOptions {
            width,
            layers,
            omega,
            seed,
            descent,
        } = options;
        let mut init = Init::new(seed, device);
        let start = Siren::new(width, layers, omega, SirenBias::LikeWeights, &mut init);
        let weights = start.num_params();
        let plain = vec![Modulation::default(); layers];
        let errors = |siren: &Siren| {
            // The output is from −1 to 1, as the authors of SIREN have it.
            let heights = siren
                .forward(self.points.clone(), &plain)
                .mul_scalar(0.5)
                .add_scalar(0.5);
            (heights - self.target.clone()).square().mean()
        };
        let mut curve = Vec::new();
        let (clock, mut aside) = (Instant::now(), Duration::ZERO);
        let result = descent.run(start, device, &errors, &mut |step, _, siren: &Siren| {
            let since = Instant::now();
            let point = SirenPoint::new(step, &self.measure(siren, &plain)?);
            see(point);
            curve.push(point);
            aside += since.elapsed();
            Ok(())
        })?;
        let minutes = clock.elapsed().saturating_sub(aside).as_secs_f64() / 60.0;
        let measures = self.measure(&result.module, &plain)?;
        Ok((
            FittedSiren {
                tile,
                measures,
                minutes,
                curve,
            },
            weights,
        ))
    }

    fn measure(&self, siren: &Siren, plain: &[Modulation<2>]) -> Result<TileMeasures> {
        let [mut values, mut row, mut column, mut laplacian]: [Vec<f32>; 4] = Default::default();
        let [count, _] = self.points.dims();
        for start in (0..count).step_by(POINTS) {
            let points = self
                .points
                .clone()
                .narrow(0, start, POINTS.min(count - start));
            let jet = siren.jet(points, plain).per_pixel(2.0 / self.side as f64);
            values.extend(numbers_of(jet.value)?);
            row.extend(numbers_of(jet.row)?);
            column.extend(numbers_of(jet.column)?);
            laplacian.extend(numbers_of(jet.row_row + jet.column_column)?);
        }
        let decoded: Vec<f32> = values
            .iter()
            .map(|value| self.map.metres(0.5 * value + 0.5))
            .collect();
        for derivative in [&mut row, &mut column, &mut laplacian] {
            for value in derivative {
                *value *= 0.5 * self.map.range_m;
            }
        }
        let derivatives = Derivatives {
            gradient_y_m_per_px: &row,
            gradient_x_m_per_px: &column,
            laplacian_m_per_px2: &laplacian,
        };
        Ok(measure_analytic(
            &self.heights,
            &decoded,
            derivatives,
            self.side,
            self.side,
        )?)
    }
}

impl SirenPoint {
    fn new(step: usize, measures: &TileMeasures) -> Self {
        Self {
            step,
            psnr_db: measures.psnr_db,
            rmse_m: measures.rmse_m,
            gradient_rmse_m_per_px: measures.gradient_rmse_m_per_px,
            laplacian_rmse_m_per_px2: measures.laplacian_rmse_m_per_px2,
        }
    }
}

/// Means over tiles, which were looked at after the same steps.
fn mean_curve(tiles: &[FittedSiren]) -> Vec<SirenPoint> {
    let Some(first) = tiles.first() else {
        return Vec::new();
    };
    (0..first.curve.len())
        .map(|index| {
            let mean = |value: fn(&SirenPoint) -> f64| {
                tiles
                    .iter()
                    .map(|tile| value(&tile.curve[index]))
                    .sum::<f64>()
                    / tiles.len() as f64
            };
            SirenPoint {
                step: first.curve[index].step,
                psnr_db: mean(|point| point.psnr_db),
                rmse_m: mean(|point| point.rmse_m),
                gradient_rmse_m_per_px: mean(|point| point.gradient_rmse_m_per_px),
                laplacian_rmse_m_per_px2: mean(|point| point.laplacian_rmse_m_per_px2),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use terrane_train::fixture::dataset;
    use terrane_train::training::ScheduleConfig;

    use super::*;

    #[test]
    fn a_network_of_its_own_learns_a_tile_with_its_derivatives() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let options = SirenOptions {
            width: 32,
            layers: 2,
            omega: 30.0,
            seed: 1,
            descent: Descent {
                steps: 150,
                schedule: ScheduleConfig::Cosine {
                    peak: 2e-3,
                    floor: 0.0,
                    warmup_steps: 0,
                },
                log_every: 75,
            },
        };
        let tiles = &dataset.split("val")[..2];
        let mut last = None;
        let sirens = fit(
            &dataset,
            tiles,
            &options,
            &Device::flex(),
            &mut |progress| last = Some(progress),
        )
        .unwrap();
        assert_eq!(
            last.map(|progress| (progress.step, progress.steps)),
            Some((300, 300))
        );
        assert_eq!(sirens.weights, 2 * 32 + 32 + 32 * 32 + 32 + 32 + 1);
        assert_eq!(sirens.bits_per_pixel, (sirens.weights * 32) as f64 / 1024.0);
        assert_eq!(
            sirens
                .tiles
                .iter()
                .map(|siren| siren.tile)
                .collect::<Vec<_>>(),
            tiles
        );
        for siren in &sirens.tiles {
            let [first, _, end] = siren.curve[..] else {
                panic!("{:?}", siren.curve)
            };
            assert!(end.psnr_db > first.psnr_db + 15.0, "{:?}", siren.curve);
            assert!(
                end.gradient_rmse_m_per_px < first.gradient_rmse_m_per_px,
                "{:?}",
                siren.curve
            );
            assert!(siren.measures.psnr_db >= end.psnr_db - 1e-6);
        }
        let [a, b] = [0, 1].map(|tile: usize| sirens.tiles[tile].curve[1].rmse_m);
        let mean = f64::midpoint(a, b);
        assert!((sirens.curve[1].rmse_m - mean).abs() < 1e-12);
        assert_eq!(sirens.mean.tiles, 2);
        let section = sirens.section();
        let rows: Vec<usize> = section
            .tables
            .iter()
            .map(|table| table.rows.len())
            .collect();
        assert_eq!(rows, [3, 3]);
    }
}
